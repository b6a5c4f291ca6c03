//! The classifier: it learns what can be learned, knows its gradient, and says what does not fit.

mod common;

use common::numbers;
use jarz_net::{Architecture, Classifier, Layer, Training};

/// Images of 8 x 8: a bright square in one of four corners, under noise.
fn corners(n: usize, seed: u64) -> (Vec<f32>, Vec<usize>) {
    let noise = numbers(seed, n * 64);
    let labels: Vec<usize> = (0..n).map(|i| i % 4).collect();
    let pixel = |i: usize| {
        let (label, y, x) = (labels[i / 64], i % 64 / 8, i % 8);
        let inside = (y / 4 == label / 2) && (x / 4 == label % 2);
        (noise[i] + if inside { 1.0 } else { 0.0 }) as f32
    };
    ((0..n * 64).map(pixel).collect(), labels)
}

/// The mean of 16 pixels differs by 1, with noise of 1 / sqrt(3 * 16): errors are all but impossible for a good classifier; 5 % are allowed.
#[test]
fn corners_are_told_apart() {
    let (x, labels) = corners(800, 1);
    let (held_out, held_out_labels) = corners(400, 2);
    let mut classifier = Classifier::<f32>::for_images([8, 8, 1], 4, 5).unwrap();
    let before = classifier.accuracy(&held_out, &held_out_labels).unwrap();
    let training = Training { epochs: 6, batch: 32, noise: 0.3, ..Training::default() };
    let losses = classifier.train(&x, &labels, training).unwrap();
    let after = classifier.accuracy(&held_out, &held_out_labels).unwrap();
    assert!(before < 0.6 && after > 0.95, "accuracy {before} -> {after}, losses {losses:?}");
    assert!(losses[5] < 0.5 * losses[0], "{losses:?}");
    let p = classifier.probabilities(&held_out);
    assert_eq!(p.len(), 1600);
    assert!(p.chunks(4).all(|p| (p.iter().sum::<f64>() - 1.0).abs() < 1e-12 && p.iter().all(|p| *p >= 0.0)));
    let mut again = Classifier::<f32>::for_images([8, 8, 1], 4, 5).unwrap();
    assert_eq!(again.train(&x, &labels, training).unwrap(), losses, "a seed determines the training");
}

/// One step of Adam goes by the rate against the sign of each derivative of the mean loss, found by differences.
#[test]
fn the_first_step_follows_the_gradient_of_the_loss() {
    let linear = |features| Layer::Linear { features };
    let architecture = Architecture { input: [1, 1, 3], layers: vec![linear(4), Layer::Tanh, linear(3)] };
    let (x, labels) = (numbers(3, 21), [0, 1, 2, 1, 0, 2, 2]);
    let mut classifier = Classifier::<f64>::new(&architecture, 2).unwrap();
    let start = classifier.network().params().to_vec();
    let loss = |theta: &[f64]| {
        let p = Classifier::<f64>::with_params(&architecture, theta).unwrap().probabilities(&x);
        labels.iter().enumerate().map(|(i, l)| -p[3 * i + l].ln()).sum::<f64>() / 7.0
    };
    let rate = 1e-3;
    let losses =
        classifier.train(&x, &labels, Training { epochs: 1, batch: 7, rate, noise: 0.0, seed: 1 }).unwrap();
    assert!((losses[0] - loss(&start)).abs() < 1e-12);
    for j in 0..start.len() {
        let along = |h: f64| {
            let mut theta = start.clone();
            theta[j] += h;
            loss(&theta)
        };
        let derivative = (along(1e-5) - along(-1e-5)) / 2e-5;
        assert!(derivative.abs() > 1e-6, "parameter {j} tells nothing");
        let step = classifier.network().params()[j] - start[j];
        assert!(
            (step + rate * derivative.signum()).abs() < 0.02 * rate,
            "parameter {j}: {step} for {derivative}"
        );
    }
}

#[test]
fn what_does_not_fit_is_said() {
    let one = Architecture { input: [1, 1, 3], layers: vec![Layer::Linear { features: 1 }] };
    assert!(Classifier::<f32>::new(&one, 1).unwrap_err().to_string().contains("one number per class"));
    let mut classifier = Classifier::<f32>::for_images([8, 8, 1], 2, 1).unwrap();
    let says = |e: jarz_net::Error, words: &str| assert!(e.to_string().contains(words), "{e}");
    says(classifier.train(&[0.0; 64], &[2], Training::default()).unwrap_err(), "label 2");
    says(classifier.train(&[0.0; 65], &[1], Training::default()).unwrap_err(), "rows of 64");
    says(classifier.accuracy(&[], &[]).unwrap_err(), "at least one");
    says(
        classifier.train(&[0.0; 64], &[1], Training { rate: -1.0, ..Training::default() }).unwrap_err(),
        "rate",
    );
}
