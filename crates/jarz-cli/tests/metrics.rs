//! 'jarz metrics': the real program on files, folders, weights, networks, and on what it cannot use.

mod common;
#[path = "../../jarz-metrics/tests/common/mod.rs"]
mod onnx;

use common::Jarz;
use jarz_data::write_npy_f64;
use serde_json::Value;

/// Points on a cross about a centre, the horizontal ones first: mean and covariance are known, and stretches of
/// the list differ, so that an error bar made of stretches is not zero.
fn cross(j: &Jarz, name: &str, centre: f64, size: f64) -> Vec<f64> {
    let rows: Vec<f64> = (0..400)
        .flat_map(|i| {
            let side = if i % 2 == 0 { size } else { -size };
            if i < 200 { [centre + side, 0.0] } else { [centre, side] }
        })
        .collect();
    write_npy_f64(j.path(name), &[400, 2], &rows).unwrap();
    rows
}

/// The kernel distance of points in two dimensions by its definition.
fn kernel_distance(a: &[f64], b: &[f64]) -> f64 {
    let kernel = |x: &[f64], y: &[f64]| ((x[0] * y[0] + x[1] * y[1]) / 2.0 + 1.0).powi(3);
    let sum = |a: &[f64], b: &[f64]| -> f64 {
        a.chunks(2).flat_map(|x| b.chunks(2).map(move |y| kernel(x, y))).sum()
    };
    let own = |a: &[f64]| {
        let n = (a.len() / 2) as f64;
        (sum(a, a) - a.chunks(2).map(|x| kernel(x, x)).sum::<f64>()) / (n * (n - 1.0))
    };
    own(a) + own(b) - 2.0 * sum(a, b) / (a.len() * b.len() / 4) as f64
}

fn measured(j: &Jarz, args: &[&str]) -> Value {
    serde_json::from_str(&j.ok(&[&["metrics", "--json"], args].concat())).unwrap()
}

fn number(value: &Value, path: &str) -> f64 {
    value.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {path} in {value}"))
}

#[test]
fn distances_of_points_are_those_of_their_moments() {
    let j = Jarz::new();
    let (a, b) = (cross(&j, "a.npy", 0.0, 1.0), cross(&j, "b.npy", 3.0, 2.0));
    let found = measured(&j, &["--samples", "a.npy", "--reference", "b.npy"]);
    // Variances 400 / 399 / 2 and four times that, in both directions.
    let expected = 9.0 + 2.0 * (0.5f64 * 400.0 / 399.0) * (2.0 - 1.0) * (2.0 - 1.0);
    assert!((number(&found, "/frechet/value/distance") - expected).abs() < 1e-9, "{found}");
    assert_eq!(found["frechet"]["name"], "Frechet distance (features as given)");
    let (kernel, expected) = (number(&found, "/kernel/value/distance"), kernel_distance(&a, &b));
    assert!((kernel / expected - 1.0).abs() < 1e-9, "{kernel} {expected}");
    assert!(number(&found, "/kernel/value/std_error") > 0.0);
    let same = measured(&j, &["--samples", "a.npy", "--reference", "a.npy"]);
    assert!(number(&same, "/frechet/value/distance").abs() < 1e-6);

    // Weights that leave out the second half leave the horizontal points.
    let logs: Vec<f64> = (0..400).map(|i| if i < 200 { 0.0 } else { -50.0 }).collect();
    write_npy_f64(j.path("logs.npy"), &[400], &logs).unwrap();
    let found = measured(&j, &["--samples", "a.npy", "--reference", "b.npy", "--log-weights", "logs.npy"]);
    assert!((number(&found, "/samples/effective") - 200.0).abs() < 1e-6, "{found}");
    let (own, other) = ((200.0f64 / 199.0).sqrt(), (2.0f64 * 400.0 / 399.0).sqrt());
    let expected = 9.0 + (own - other).powi(2) + other * other;
    assert!((number(&found, "/frechet/value/distance") - expected).abs() < 1e-6, "{found} {expected}");
    let text = j.ok(&["metrics", "--samples", "a.npy", "--reference", "b.npy", "--log-weights", "logs.npy"]);
    assert!(text.contains("worth 200.0 of equal weight") && text.contains(" ± "), "{text}");
}

#[test]
fn a_network_turns_images_into_features_under_its_own_name() {
    let j = Jarz::new();
    j.write("means.onnx", onnx::channel_means([0, 3, 0, 0]));
    let args = [
        "--samples",
        "digits",
        "--reference",
        "digits",
        "--extractor",
        "means.onnx",
        "--save-features",
        "kept",
    ];
    let found = measured(&j, &args);
    assert_eq!(found["extractor"]["name"], "means");
    assert_eq!(found["frechet"]["name"], "Frechet distance (means)");
    assert_eq!(found["extractor"]["sha256"].as_str().unwrap().len(), 64);
    assert!(number(&found, "/score/value/score") >= 1.0);
    // Kept features give the same distances, also beside images.
    let kept = measured(
        &j,
        &["--samples", "kept/samples-features.npy", "--reference", "kept/reference-features.npy"],
    );
    assert_eq!(found["kernel"]["value"], kept["kernel"]["value"]);
    let mixed = [
        "--samples",
        "digits",
        "--reference",
        "features:kept/reference-features.npy",
        "--extractor",
        "means.onnx",
    ];
    assert_eq!(measured(&j, &mixed)["kernel"]["value"], kept["kernel"]["value"]);
    // FID is the name of something else.
    j.fails(&[&["metrics", "--inception"], &args[..]].concat(), &["--inception", "2048", "3"]);
}

#[test]
fn what_cannot_be_compared_is_said() {
    let j = Jarz::new();
    cross(&j, "a.npy", 0.0, 1.0);
    write_npy_f64(j.path("three.npy"), &[100, 3], &(0..300).map(f64::from).collect::<Vec<_>>()).unwrap();
    write_npy_f64(j.path("few.npy"), &[3, 2], &[0.0, 1.0, 2.0, 3.0, 4.0, 6.0]).unwrap();
    j.write("bad.onnx", "nothing");
    j.write("means.onnx", onnx::channel_means([0, 3, 0, 0]));
    let fails = |samples: &str, more: &[&str], words: &[&str]| {
        j.fails(&[&["metrics", "--samples", samples, "--reference", "a.npy"], more].concat(), words);
    };
    fails("nowhere", &[], &["'nowhere'", "no file", "cifar10"]);
    fails("three.npy", &[], &["3 features", "2", "same extractor"]);
    fails("few.npy", &[], &["3 samples", "at least"]);
    fails("a.npy", &["--log-weights", "three.npy"], &["three.npy", "one log-weight per sample"]);
    fails("a.npy", &["--log-weights", "few.npy"], &["few.npy"]);
    fails("a.npy", &["--extractor", "bad.onnx"], &["bad.onnx", "no ONNX model"]);
    fails("a.npy", &["--extractor", "means.onnx"], &["a.npy", "--shape"]);
    fails("a.npy", &["--extractor", "means.onnx", "--shape", "2x2"], &["--shape 2x2", "32x32x3"]);
    fails("a.npy", &["--extractor", "means.onnx", "--shape", "2x2x3"], &["2 numbers", "2x2x3"]);
}
