//! Run folders written by a device: the same files, curves and continuation as on the processor.
#![cfg(feature = "device")]

mod common;

use common::{config, engine};
use jarz::{Observer, Ranks, StepInfo};
use jarz_burn::{Api, DeviceEngine, Found, Name, Noise};
use jarz_run::{Config, Engine, RunError, Session, read_metrics};
use std::cell::Cell;
use std::path::Path;

struct Nobody;

impl Observer for Nobody {
    fn log(&mut self, _: &jarz::Estimates) -> Result<(), String> {
        Ok(())
    }
    fn step(&mut self, _: &StepInfo) -> Result<(), String> {
        Ok(())
    }
}

fn session<'a>(observer: &'a mut Nobody, stop: &'a dyn Fn() -> bool) -> Session<'a> {
    let warn: &dyn Fn(&str) = &|text| panic!("{text}");
    Session { observer, stop, warn, classifier: None, ranks: Ranks::alone(), threads: 1 }
}

fn train(engine: Option<&dyn Engine>, config: Config, folder: &Path) -> Result<(), RunError> {
    jarz_run::train_on(engine, config, folder, false, session(&mut Nobody, &|| false)).map(|_| ())
}

/// Cross-entropies over the iterations, with the standard errors of `log Z`.
fn curve(folder: &Path) -> Vec<(u64, f64, f64)> {
    let rows = read_metrics(&folder.join("metrics.jsonl")).unwrap();
    let point = |row: &jarz_run::Row| Some((row.iteration, row.cross_entropy?, row.log_z_std_error?));
    rows.iter().map(|row| point(row).unwrap()).collect()
}

/// One configuration, once here and once there. The device makes the processor's random numbers, so that all that differs is rounding: less
/// than 1e-3 nats over 40 iterations, a small part of the error bars of `log Z` and of what is learnt. The network is smooth: where a layer has a kink,
/// rounding may put a walker on its other side, which is more than rounding.
#[test]
fn one_configuration_gives_the_same_curve() {
    let folder = tempfile::tempdir().unwrap();
    let changes = [
        "model.layers=[{type=\"conv2d\",channels=4,kernel=3,stride=2,padding=1},{type=\"silu\"},{type=\"flatten\"},\
         {type=\"linear\",features=8},{type=\"tanh\"},{type=\"linear\",features=1}]",
        "walkers.count=512",
        "data.batch=48",
        "optimizer.kind=adam",
        "optimizer.rates={all=0.006}",
        "run.iterations=40",
        "run.log_every=4",
    ];
    let (here, there) = (folder.path().join("here"), folder.path().join("there"));
    train(None, config(&changes), &here).unwrap();
    train(Some(&engine(Noise::Device)), config(&changes), &there).unwrap();
    let (a, b) = (curve(&here), curve(&there));
    for (a, b) in a.iter().zip(&b) {
        println!("iteration {:>3}: {:.5} here, {:.5} there; log Z ± {:.5}", a.0, a.1, b.1, a.2);
    }
    assert_eq!((a.len(), b.len()), (11, 11));
    assert!(a[0].1 - a[10].1 > 0.1, "the curve must have somewhere to go");
    assert!(a[10].2 > 5e-3, "the error bar must be larger than what is asked for");
    assert!(a.iter().zip(&b).all(|(a, b)| a.0 == b.0 && (a.1 - b.1).abs() < 1e-3));
    for file in ["run.toml", "metrics.jsonl", "summary.json", "checkpoints"] {
        assert!(there.join(file).exists(), "{file}");
    }
    assert_eq!(std::fs::read(here.join("run.toml")).unwrap(), std::fs::read(there.join("run.toml")).unwrap());
}

/// A run that was stopped goes on, on the device bit for bit as if it had not been, and on the processor as well.
#[test]
fn runs_go_on_there_and_here() {
    let folder = tempfile::tempdir().unwrap();
    let changes = [
        "optimizer.kind=adam",
        "optimizer.rates={all=0.002}",
        "resampling.threshold=0.999",
        "run.log_every=1",
    ];
    let engine = engine(Noise::Device);
    let engine: Option<&dyn Engine> = Some(&engine);
    let whole = folder.path().join("whole");
    train(engine, config(&changes), &whole).unwrap();
    let lines = |folder: &Path| -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(folder.join("metrics.jsonl")).unwrap();
        let row = |line: &str| {
            let mut row: serde_json::Value = serde_json::from_str(line).unwrap();
            row.as_object_mut().unwrap().remove("seconds");
            row
        };
        text.lines().map(row).collect()
    };
    for on_device in [true, false] {
        let part = folder.path().join(format!("part-{on_device}"));
        let left = Cell::new(7);
        let stop = || left.replace(left.get() - 1) == 0;
        jarz_run::train_on(engine, config(&changes), &part, false, session(&mut Nobody, &stop)).unwrap();
        let engine = engine.filter(|_| on_device);
        jarz_run::resume_on(engine, &part, None, None, session(&mut Nobody, &|| false)).unwrap();
        let (a, b) = (lines(&whole), lines(&part));
        assert_eq!(a.len(), 13);
        assert_eq!(a.len(), b.len());
        if on_device {
            assert_eq!(a, b);
            continue;
        }
        assert_eq!(a[..7], b[..7]);
        let at = |row: &serde_json::Value| row["cross_entropy"].as_f64().unwrap();
        assert!(a.iter().zip(&b).all(|(a, b)| (at(a) - at(b)).abs() < 1e-3), "{a:?}\n{b:?}");
    }
    // What the processor does with a trained model works for models of the device.
    let request = jarz_run::SampleRequest { n: Some(10), steps: None, seed: 1, threads: 1 };
    let samples = jarz_run::sample(&whole, &request, &|text| panic!("{text}")).unwrap();
    assert_eq!(samples.equal.len(), 10 * 64);
}

#[test]
fn what_the_device_cannot_do_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine(Noise::Device);
    let cases: &[(&[&str], &[&str])] = &[
        (&["precision=f64"], &["precision", "f32", "processor"]),
        (&["kernel.kind=ghmc"], &["kernel.kind", "ghmc", "mala"]),
        (&["optimizer.kind=natural"], &["optimizer.kind", "natural", "adam"]),
        (&["optimizer.delay=3.0"], &["optimizer.delay", "leave it out"]),
        (&[r#"optimizer.settle={after=5,only=["2"]}"#], &["optimizer.settle", "leave it out"]),
        (&["model.base={mixture=2}"], &["model.base", "full"]),
        (&["walkers.relay={keepers=10,every=5}"], &["walkers.relay", "leave it out"]),
        (&["algorithm.self_interaction=leave-one-out"], &["leave-one-out", "walkers.witnesses"]),
        (&["algorithm.kind=jarzynski-continuous"], &["jarzynski-continuous", "jarzynski"]),
        (&["walkers.count=20000000"], &["20000000 walkers", "MiB", "walkers.count"]),
    ];
    for (changes, words) in cases {
        let place = folder.path().join("run");
        let e = train(Some(&engine), config(changes), &place).unwrap_err().to_string();
        assert!(words.iter().all(|word| e.contains(word)), "{changes:?}: {e}");
        assert!(!place.exists(), "{changes:?} left a folder behind");
    }
}

/// The device of the tests is listed under its name; one that is not there is refused with what to do.
#[test]
fn devices_are_found_or_refused() {
    let listed = jarz_burn::devices();
    println!("{listed:?}");
    let is_ours = |found: &Found| matches!(found, Found::Device { name, .. } if *name == common::name());
    assert!(listed.iter().any(is_ours), "{listed:?}");
    assert!(listed.iter().any(|found| matches!(found, Found::NotCompiled(_))) || listed.len() >= 5);
    let missing: Name = format!("{}:virtual:15", Api::Wgpu.name()).parse().unwrap();
    let e = DeviceEngine::open(missing, Noise::Device).err().unwrap().to_string();
    for word in ["wgpu:virtual:15", "jarz devices", "processor"] {
        assert!(e.contains(word), "{e}");
    }
}
