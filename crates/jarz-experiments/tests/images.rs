//! The experiment on the built-in digits, cut short: everything a page needs is there, and the numbers are those of the folder.

mod common;

use common::Silent;
use jarz_experiments::{Options, Scale, file, image_experiments, rebuild};

#[test]
fn digits_are_trained_judged_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    let mut experiment = file::load("digits").unwrap();
    let scale = experiment.scales.get_mut(&Scale::Quick).expect("a quick scale");
    let short = ["run.iterations=6", "run.log_every=2", "walkers.count=96", "data.copies=1", "data.batch=64"];
    scale.set.extend(short.map(String::from));
    let images = experiment.images.as_mut().expect("a section [images]");
    images.walkers = 96;
    let plan = experiment.plan(Scale::Quick, Some(1), None).unwrap();
    let options = Options {
        name: "digits".into(),
        out: folder.path().join("digits"),
        scale: Scale::Quick,
        runs: None,
        seed: None,
        threads: 2,
        force: false,
    };
    let finished = options.reproduce(&plan, &Silent).unwrap();
    let s = &finished.summary;
    let shares: Vec<f64> = serde_json::from_value(s["data_masses"].clone()).unwrap();
    for (share, expected) in shares.iter().zip([4.0 / 7.0, 2.0 / 7.0, 1.0 / 7.0]) {
        assert!((share - expected).abs() < 1e-12);
    }
    // Three kinds: guessing would be right for some 40 % of the held-out images.
    assert!(s["classifier_accuracy"].as_f64().unwrap() > 0.8, "{}", s["classifier_accuracy"]);
    let variants = s["variants"].as_array().unwrap();
    assert_eq!(variants.len(), 2);
    for v in variants {
        for masses in ["walker_masses", "model_masses"] {
            let masses: Vec<f64> = serde_json::from_value(v["result"][masses].clone()).unwrap();
            assert!((masses.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{v}");
        }
        assert!(v["result"]["held_out_annealed"].as_f64().unwrap().is_finite());
    }
    // Two estimates of one log Z, after so few steps that walkers and parameters have had no time to agree on a bias; 5 joint standard
    // errors are met by chance once in 10^6 times.
    let first = |key: &str| variants[0]["result"][key].as_f64().unwrap();
    let error = first("log_z_std_error").hypot(first("log_z_annealed_std_error"));
    let off = first("log_z") - first("log_z_annealed");
    assert!(off.abs() < 5.0 * error, "{off} with errors {error}");
    assert!(variants[1]["result"]["log_z"].is_null(), "PCD has no log Z");
    for picture in ["data", "walkers-1", "walkers-2", "by-weight-1", "training"] {
        let png = std::fs::read(options.out.join(format!("figures/{picture}.png"))).unwrap();
        assert!(png.starts_with(b"\x89PNG"), "{picture}");
    }
    let page = std::fs::read_to_string(options.out.join("report.html")).unwrap();
    assert!(page.matches("data:image/png;base64").count() >= 4 && page.contains("by annealing"));
    assert_eq!(rebuild(&options.out).unwrap().summary, finished.summary);
}

#[test]
fn all_of_them_have_their_scales() {
    for (name, title) in image_experiments() {
        assert!(!title.is_empty());
        for scale in [Scale::Quick, Scale::Paper] {
            let plan = file::load(&name).unwrap().plan(scale, None, None).unwrap();
            assert_eq!(plan.variants.len(), 2, "{name}");
        }
    }
    let no = file::load("gmm").unwrap().plan(Scale::Default, None, None).unwrap_err().to_string();
    assert!(no.contains("[scale.default]"), "{no}");
}
