//! Exact normalisations and exact samples of the built-in energies: quadrature, known moments, stratified mode counts.

use jarz::{Energy, Exact, Gaussian, Mixture, Random, Real, Stratification};

/// `log` of the integral of `exp(-U)` by the trapezoidal rule, which converges exponentially for smooth functions that vanish at both ends.
fn quadrature<E: Energy<f64>>(energy: &E, half_width: f64, spacing: f64) -> f64 {
    let n = (2.0 * half_width / spacing).ceil() as i64;
    let axis: Vec<f64> = (0..=n).map(|i| -half_width + i as f64 * spacing).collect();
    let points: Vec<f64> = match energy.dim() {
        1 => axis,
        _ => axis.iter().flat_map(|&a| axis.iter().flat_map(move |&b| [a, b])).collect(),
    };
    let mut u = vec![0.0; points.len() / energy.dim()];
    energy.energy(&points, &mut u, &mut E::Workspace::default());
    let lowest = u.iter().copied().fold(f64::INFINITY, f64::min);
    let sum: f64 = u.iter().map(|u| (lowest - u).exp()).sum();
    sum.ln() - lowest + energy.dim() as f64 * spacing.ln()
}

/// Widths are at least 0.5 and the spacing 0.1: the rule's own error is below `exp(-2 pi^2 25)`, that of the cut tails below `exp(-50)`.
#[test]
fn log_z_equals_quadrature() {
    let line = Mixture::new(&[vec![-3.0], vec![1.0], vec![4.0]], &[0.3, -1.2, 2.0], 0.5).unwrap();
    let plane = Mixture::new(&[vec![-2.0, 1.0], vec![3.0, 0.5]], &[-0.7, 1.1], 0.9).unwrap();
    for (model, width) in [(&line, 12.0), (&plane, 14.0)] {
        let (exact, numeric) = (Exact::<f64>::log_z(model), quadrature(model, width, 0.1));
        assert!((exact - numeric).abs() < 1e-11, "mixture: {exact} {numeric}");
    }
    let line = Gaussian::new(&[0.7], &[2.3]).unwrap();
    // Only the symmetric part counts: off-diagonal 0.4.
    let plane = Gaussian::new(&[0.7, -1.0], &[2.0, 0.1, 0.7, 0.8]).unwrap();
    for (model, width) in [(&line, 12.0), (&plane, 14.0)] {
        let (exact, numeric) = (Exact::<f64>::log_z(model), quadrature(model, width, 0.1));
        assert!((exact - numeric).abs() < 1e-11, "gaussian: {exact} {numeric}");
    }
}

#[test]
fn a_gaussian_without_a_normalisation_has_no_exact_side() {
    let saddle = Gaussian::new(&[0.0, 0.0], &[1.0, 2.0, 2.0, 1.0]).unwrap();
    assert!(Energy::<f64>::exact(&saddle).is_none());
    assert!(saddle.covariance().is_none());
}

/// First and second moments of samples, each within 5 standard errors of the truth.
fn check_moments<T: Real>(sample: &[T], mean: &[f64], second: &[f64], what: &str) {
    let d = mean.len();
    let n = (sample.len() / d) as f64;
    let compare = |value: &dyn Fn(&[T]) -> f64, truth: f64, name: String| {
        let (mut sum, mut squares) = (0.0, 0.0);
        for row in sample.chunks(d) {
            let v = value(row) - truth;
            sum += v;
            squares += v * v;
        }
        let z = sum / squares.sqrt();
        assert!(
            z.abs() < 5.0,
            "{what}: {name} is {} instead of {truth}, {z} standard errors off",
            truth + sum / n
        );
    };
    for i in 0..d {
        compare(&|row| row[i].to_f64(), mean[i], format!("mean {i}"));
        for j in 0..=i {
            compare(&|row| row[i].to_f64() * row[j].to_f64(), second[i * d + j], format!("moment {i} {j}"));
        }
    }
}

/// 5 standard errors, some 60 comparisons, false alarm 4e-5. (Stratified modes scatter less than the standard error used here.)
fn moments<T: Real>() {
    let n = 200_000u64;
    let means = [vec![-2.0, 0.5, 1.0], vec![1.5, 0.0, -1.0], vec![0.0, 3.0, 0.0]];
    let weights: [f64; 3] = [0.2, 0.5, 0.3];
    let sigma = 0.7;
    let model = Mixture::new(&means, &weights.map(|w| 5.0 + w.ln()), sigma).unwrap();
    let (mut mean, mut second) = (vec![0.0; 3], vec![0.0; 9]);
    for (m, w) in means.iter().zip(weights) {
        for i in 0..3 {
            mean[i] += w * m[i];
            for j in 0..3 {
                second[i * 3 + j] += w * (m[i] * m[j] + if i == j { sigma * sigma } else { 0.0 });
            }
        }
    }
    for start in [Stratification::Independent, Stratification::Stratified] {
        let mut x = vec![T::ZERO; 3 * n as usize];
        model.sample(0..n, n, start, &Random::new(8), &mut x);
        check_moments(&x, &mean, &second, &format!("mixture {start:?} {}", T::NAME));
    }

    let model = Gaussian::new(&[0.7, -1.0], &[2.0, 0.1, 0.7, 0.8]).unwrap();
    let mut x = vec![T::ZERO; 2 * n as usize];
    model.sample(0..n, n, Stratification::Independent, &Random::new(9), &mut x);
    // Inverse of [[2, 0.4], [0.4, 0.8]]: determinant 1.44.
    let c = [0.8 / 1.44, -0.4 / 1.44, -0.4 / 1.44, 2.0 / 1.44];
    let second = [c[0] + 0.49, c[1] - 0.7, c[2] - 0.7, c[3] + 1.0];
    check_moments(&x, &[0.7, -1.0], &second, "gaussian");
    let covariance = model.covariance().unwrap();
    (0..4).for_each(|i| assert!((covariance[i] - c[i]).abs() < 1e-14, "{covariance:?}"));
}

#[test]
fn samples_have_the_known_moments() {
    moments::<f64>();
    moments::<f32>();
}

/// Modes 1000 apart tell which mode a sample came from; a systematic draw gives each `N p` of them, rounded up or down.
#[test]
fn stratified_starts_give_every_mode_its_share() {
    for weights in [vec![0.25, 0.75], vec![0.1, 0.2, 0.3, 0.4], vec![0.999, 0.001], vec![1.0, 1.0, 1.0]] {
        let total: f64 = weights.iter().sum();
        let means: Vec<Vec<f64>> = (0..weights.len()).map(|k| vec![1000.0 * k as f64]).collect();
        let logs: Vec<f64> = weights.iter().map(|w: &f64| w.ln()).collect();
        let model = Mixture::new(&means, &logs, 1.0).unwrap();
        for n in [2u64, 7, 100, 1001] {
            for seed in 0..20 {
                let random = Random::new(seed);
                let mut x = vec![0.0f64; n as usize];
                model.sample(0..n, n, Stratification::Stratified, &random, &mut x);
                for (k, w) in weights.iter().enumerate() {
                    let count = x.iter().filter(|x| (*x / 1000.0).round() as usize == k).count() as f64;
                    let share = n as f64 * w / total;
                    assert!(
                        (count - share).abs() < 1.0 + 1e-9,
                        "mode {k}: {count} of {n} for a share of {share}"
                    );
                }
                // A sample depends on its id alone, not on the range it is drawn in.
                let mut part = vec![0.0f64; (n - n / 3) as usize];
                model.sample(n / 3..n, n, Stratification::Stratified, &random, &mut part);
                assert_eq!(part, x[(n / 3) as usize..]);
            }
        }
    }
}
