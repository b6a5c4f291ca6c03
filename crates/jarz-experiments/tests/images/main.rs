//! The experiment on the built-in digits, cut short: everything a page needs is there, and the numbers are those of the folder.

#[path = "../common/mod.rs"]
mod common;
mod engine;

use common::Silent;
use jarz::annealing::Rung;
use jarz_experiments::plan::Plan;
use jarz_experiments::{ExperimentError, Options, Progress, Scale, Watch, file, image_experiments, rebuild};
use jarz_run::{Engine, read_metrics};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the rungs of annealings, and stops after so many.
struct Counter {
    rungs: AtomicUsize,
    stop_after: usize,
}

impl Counter {
    fn new(stop_after: usize) -> Self {
        Counter { rungs: AtomicUsize::new(0), stop_after }
    }

    fn rungs(&self) -> usize {
        self.rungs.load(Ordering::SeqCst)
    }
}

impl Watch for Counter {
    fn say(&self, _: &str) {}
    fn warn(&self, text: &str) {
        panic!("{text}");
    }
    fn stopped(&self) -> bool {
        self.rungs() >= self.stop_after
    }
    fn progress(&self, _: Progress) {}
    fn annealing(&self, _: &Path, _: &Rung) {
        self.rungs.fetch_add(1, Ordering::SeqCst);
    }
    fn finished(&self, _: &Path) -> Result<(), String> {
        Ok(())
    }
}

/// Masses are logged all along, and at the end they are those of the judgement.
fn check_masses(out: &Path, variant: &str, judged: &serde_json::Value) {
    let rows = read_metrics(&out.join(variant).join("run-01/metrics.jsonl")).unwrap();
    assert_eq!(rows.iter().map(|r| r.iteration).collect::<Vec<_>>(), [0, 2, 4, 6]);
    for row in &rows {
        let masses = row.walker_masses.as_ref().expect("masses");
        assert!((masses.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        let errors = row.walker_masses_std_error.as_ref().expect("errors");
        assert!(errors.iter().all(|e| e.is_some() == (variant == "jarzynski")), "{variant}: {errors:?}");
    }
    let expected: Vec<f64> = serde_json::from_value(judged["walker_masses"].clone()).unwrap();
    let last = rows[3].walker_masses.as_ref().unwrap();
    // The same numbers, but for their last bits on the way through a file.
    assert!(last.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12), "{last:?} {expected:?}");
}

/// Judgements are kept, made anew when asked for or when the run has changed, and stopping leaves them as they are.
fn check_kept(out: &Path, summary: &serde_json::Value) {
    let again = |stop_after: usize, anew: bool| {
        let counter = Counter::new(stop_after);
        let outcome = rebuild(out, Some(&counter), anew).map(|f| f.summary);
        (outcome, counter.rungs())
    };
    let (kept, rungs) = again(usize::MAX, false);
    assert_eq!((&kept.unwrap(), rungs), (summary, 0));

    let file = out.join("pcd/run-01/evaluate.json");
    let text = std::fs::read_to_string(&file).unwrap();
    // At once, and while or after the first of two models is judged.
    for stop_after in [0, 1] {
        let (stopped, rungs) = again(stop_after, true);
        assert!(matches!(stopped, Err(ExperimentError::Interrupted)));
        assert_eq!(rungs, stop_after);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    }
    let (anew, rungs) = again(usize::MAX, true);
    assert!(rungs >= 2, "{rungs} rungs");
    assert_eq!(&anew.unwrap(), summary);

    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let checkpoint = value["made_from"]["checkpoint"].as_str().unwrap();
    std::fs::write(&file, text.replace(checkpoint, &checkpoint.replace(['0', '1', '2', '3'], "f"))).unwrap();
    let (changed, some) = again(usize::MAX, false);
    assert!(some > 0 && some < rungs, "{some} of {rungs} rungs");
    assert_eq!(&changed.unwrap(), summary);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
}

#[test]
fn digits_are_trained_judged_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    let mut experiment = file::load("digits").unwrap();
    let scale = experiment.scales.get_mut(&Scale::Quick).expect("a quick scale");
    let short = ["run.iterations=6", "run.log_every=2", "walkers.count=96", "data.copies=1", "data.batch=64"];
    scale.set.extend(short.map(String::from));
    // Two iterations: parameters must move before the end.
    scale.set.push("optimizer.delay=0.3".into());
    let images = experiment.images.as_mut().expect("a section [images]");
    images.walkers = 96;
    let plan = experiment.plan(Scale::Quick, Some(1), None).unwrap();
    let options = options(folder.path().join("digits"), None);
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
    for (variant, judged) in ["jarzynski", "pcd"].iter().zip(variants) {
        check_masses(&options.out, variant, &judged["result"]);
    }
    for picture in
        ["data", "walkers-1", "walkers-2", "by-weight-1", "resampled-1", "training", "masses", "neighbours-2"]
    {
        let png = std::fs::read(options.out.join(format!("figures/{picture}.png"))).unwrap();
        assert!(png.starts_with(b"\x89PNG"), "{picture}");
    }
    let page = std::fs::read_to_string(options.out.join("report.html")).unwrap();
    assert!(page.matches("data:image/png;base64").count() >= 4 && page.contains("by annealing"));
    for words in ["Before and after resampling", "of them distinct", "Relative error of each kind"] {
        assert!(page.contains(words), "{words}");
    }
    // Samples have noise, held-out digits too; nothing was learnt by heart in six iterations.
    let median = |near: &serde_json::Value| near["median"].as_f64().unwrap();
    assert!(median(&s["nearest_held_out"]) > 0.1 && median(&variants[0]["nearest"]) > 0.1, "{s}");
    check_kept(&options.out, s);
}

/// As for CIFAR-10: no classifier, two resampling schemes, augmented walkers.
fn without_a_classifier() -> Plan {
    let mut experiment = file::load("digits").unwrap();
    let scale = experiment.scales.get_mut(&Scale::Quick).expect("a quick scale");
    let short = ["run.iterations=4", "run.log_every=2", "walkers.count=64", "data.copies=1", "data.batch=64"];
    scale.set.extend(short.map(String::from));
    let images = experiment.images.as_mut().expect("a section [images]");
    (images.epochs, images.walkers) = (0, 64);
    experiment.variants[1].set.push("walkers.augment={ probability = 0.5 }".into());
    experiment.plan(Scale::Quick, Some(1), None).unwrap()
}

fn options(out: PathBuf, engine: Option<Arc<dyn Engine>>) -> Options {
    let name = "digits".to_string();
    Options { name, out, scale: Scale::Quick, runs: None, seed: None, threads: 2, force: false, engine }
}

#[test]
fn without_a_classifier_there_are_no_masses() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path().join("digits"), None);
    let finished = options.reproduce(&without_a_classifier(), &Silent).unwrap();
    assert!(finished.summary["kinds"].as_array().unwrap().is_empty());
    assert!(finished.summary["variants"][1]["result"]["walker_masses"].is_null());
    assert!(finished.verdicts.iter().all(|v| !v.claim.contains("kind")), "{:?}", finished.verdicts);
    let page = std::fs::read_to_string(options.out.join("report.html")).unwrap();
    assert!(page.contains("Nearest training images") && !page.contains("classifier: right"));
}

#[test]
fn all_of_them_have_their_scales() {
    for (name, title) in image_experiments() {
        assert!(!title.is_empty());
        for scale in [Scale::Quick, Scale::Paper] {
            let plan = file::load(&name).unwrap().plan(scale, None, None).unwrap();
            assert_eq!(plan.variants.len(), if name == "cifar10" { 4 } else { 2 }, "{name}");
        }
    }
    let no = file::load("gmm").unwrap().plan(Scale::Default, None, None).unwrap_err().to_string();
    assert!(no.contains("[scale.default]"), "{no}");
}

#[test]
fn a_scale_may_judge_with_more_care() {
    let plan = |name: &str, changes: &str| {
        let mut experiment = file::load(name).unwrap();
        let scale = experiment.scales.get_mut(&Scale::Quick).expect("a quick scale");
        scale.images = toml::from_str(changes).unwrap();
        experiment.plan(Scale::Quick, None, None)
    };
    let images = |changes: &str| plan("digits", changes).unwrap().resolved.images.unwrap();
    let (before, after) = (images(""), images("walkers = 77\nstep_ess = 0.999"));
    assert_eq!((after.walkers, after.step_ess), (77, 0.999));
    assert_eq!(jarz_experiments::images::ImagesSpec { walkers: 77, step_ess: 0.999, ..before }, after);
    for (name, changes, word) in
        [("digits", "walker = 5", "walker"), ("gmm", "walkers = 5", "no section [images]")]
    {
        let wrong = plan(name, changes).map(|_| ()).unwrap_err().to_string();
        assert!(wrong.contains("[scale.quick]") && wrong.contains(word), "{wrong}");
    }
}
