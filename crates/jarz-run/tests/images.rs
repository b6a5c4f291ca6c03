//! Networks trained on images: resumed runs, samples in the pixels' coordinates, and what is refused.

use jarz::{Estimates, Observer};
use jarz_run::{Config, RunError, SampleRequest, Session, Summary, read_summary, resume, sample, train};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

const DIGITS: &str = r#"
    seed = 3
    precision = "f32"
    [data]
    kind = "images"
    set = "digits"
    labels = [[0, 40], [1, 20]]
    noise = 0.2
    copies = 2
    batch = 32
    [model]
    kind = "network"
    base = "full"
    layers = [
        { type = "conv2d", channels = 4, kernel = 3, stride = 2, padding = 1 },
        { type = "silu" },
        { type = "flatten" },
        { type = "linear", features = 1 },
    ]
    [walkers]
    count = 48
    [kernel]
    kind = "mala"
    step_size = 0.05
    [optimizer]
    kind = "adam"
    rates = { all = 1e-3 }
    [run]
    iterations = 8
    log_every = 4
"#;

struct Nobody;

impl Observer for Nobody {
    fn log(&mut self, _: &Estimates) -> Result<(), String> {
        Ok(())
    }
}

fn config(changes: &[&str]) -> Result<Config, RunError> {
    let changes: Vec<String> = changes.iter().map(|c| c.to_string()).collect();
    Ok(Config::parse(DIGITS, "test", &changes)?)
}

fn run(folder: &Path, changes: &[&str], stop: &dyn Fn() -> bool) -> Result<Summary, RunError> {
    let session = Session {
        observer: &mut Nobody,
        stop,
        warn: &|text| panic!("{text}"),
        classifier: None,
        ranks: jarz::Ranks::alone(),
        threads: 0,
    };
    train(config(changes)?, folder, false, session)
}

/// Runs in one go, and stopped after two iterations and resumed on other threads: in `folder/whole` and `folder/cut`.
fn whole_and_resumed(folder: &Path, changes: &[&str]) -> [Summary; 2] {
    let (whole, cut) = (folder.join("whole"), folder.join("cut"));
    run(&whole, changes, &|| false).unwrap();
    let asked = AtomicU64::new(0);
    let changes = [changes, &["run.threads=1"]].concat();
    run(&cut, &changes, &|| asked.fetch_add(1, Ordering::Relaxed) == 2).unwrap();
    let session = Session {
        observer: &mut Nobody,
        stop: &|| false,
        warn: &|text| panic!("{text}"),
        classifier: None,
        ranks: jarz::Ranks::alone(),
        threads: 0,
    };
    resume(&cut, None, Some(2), session).unwrap();
    [whole, cut].map(|folder| read_summary(&folder).unwrap())
}

#[test]
fn a_resumed_run_with_witnesses_is_the_same_and_they_are_its_samples() {
    let folder = tempfile::tempdir().unwrap();
    // Resampled every other iteration, so that ancestors matter.
    let changes = ["walkers.witnesses=30", "resampling.trigger=every", "resampling.every=2"];
    let [a, b] = whole_and_resumed(folder.path(), &changes);
    assert!(a.driving_log_z.is_some() && a.driving_log_z != a.log_z);
    assert_eq!((a.log_z, a.driving_log_z, a.ess), (b.log_z, b.driving_log_z, b.ess));
    assert_eq!((a.resamplings, a.distinct_ancestors), (b.resamplings, b.distinct_ancestors));
    let request = SampleRequest { n: None, steps: None, seed: 1, threads: 1 };
    let samples = sample(&folder.path().join("whole"), &request, &|text| panic!("{text}")).unwrap();
    assert_eq!(samples.positions.len(), 30 * 64);
}

#[test]
fn a_resumed_run_with_momentum_and_the_natural_gradient_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    // Resampled every third iteration, so that velocities must follow their walkers.
    let changes = [
        "kernel.kind=ghmc",
        "optimizer.kind=natural",
        "optimizer.average=5.0",
        "walkers.witnesses=30",
        "resampling.trigger=every",
        "resampling.every=3",
    ];
    let [a, b] = whole_and_resumed(folder.path(), &changes);
    assert_eq!((a.log_z, a.driving_log_z, a.ess), (b.log_z, b.driving_log_z, b.ess));
    let [a, b] = ["whole", "cut"].map(|name| walkers(&folder.path().join(name)));
    assert_eq!(a, b);
    let changes = changes.map(|c| if c == "kernel.kind=ghmc" { "kernel.kind=mala" } else { c });
    run(&folder.path().join("mala"), &changes, &|| false).unwrap();
    assert_ne!(a, walkers(&folder.path().join("mala")), "momentum must make a difference");
}

#[test]
fn a_resumed_run_is_the_same_and_samples_are_images() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = whole_and_resumed(folder.path(), &[]);
    assert_eq!((a.log_z, a.cross_entropy, a.ess), (b.log_z, b.cross_entropy, b.ess));

    let request = SampleRequest { n: None, steps: None, seed: 1, threads: 1 };
    let samples = sample(&folder.path().join("whole"), &request, &|text| panic!("{text}")).unwrap();
    assert_eq!(samples.dim, 64);
    // The base has mean and covariance of the data, whose pixels lie in [-1, 1] up to the noise; whitened ones would have mean 0 and
    // variance 1 in every pixel, also in the corners, which are black in all digits.
    let n = samples.positions.len() / 64;
    let corner: f64 = samples.positions.iter().step_by(64).sum::<f64>() / n as f64;
    // Its standard error is 0.2 / sqrt(48) = 0.03; 6 of these are met by chance once in 10^9 times.
    assert!((corner + 1.0).abs() < 0.18, "{corner}");
}

/// Walkers at the end of a run, as images.
fn walkers(folder: &Path) -> Vec<f64> {
    let request = SampleRequest { n: None, steps: None, seed: 1, threads: 1 };
    sample(folder, &request, &|text| panic!("{text}")).unwrap().positions
}

#[test]
fn a_resumed_run_with_augmentation_is_the_same_and_not_that_without() {
    let augment = "walkers.augment={ probability = 0.3, colour = 0.5, blur = 1.0 }";
    for kernel in ["kernel.kind=mala", "kernel.kind=ula"] {
        let folder = tempfile::tempdir().unwrap();
        let changes = ["algorithm.kind=pcd", kernel, augment];
        whole_and_resumed(folder.path(), &changes);
        let [a, b] = ["whole", "cut"].map(|name| walkers(&folder.path().join(name)));
        assert_eq!(a, b);
        run(&folder.path().join("plain"), &changes[..2], &|| false).unwrap();
        assert_ne!(a, walkers(&folder.path().join("plain")));
    }
}

#[test]
fn walkers_are_augmented_as_images() {
    // Two flips are none, up to what the kernel does in two tiny steps.
    let folder = tempfile::tempdir().unwrap();
    let still = ["algorithm.kind=pcd", "kernel.kind=ula", "kernel.step_size=1e-8", "optimizer.rates.all=0.0"];
    let flip =
        "walkers.augment={ probability = 1.0, colour = 0.0, flip = 1.0, smallest_crop = 1.0, blur = 0.0 }";
    let end = |name: &str, more: &[&str]| {
        run(&folder.path().join(name), &[&still[..], &["data.noise=0.01"], more].concat(), &|| false)
            .unwrap();
        walkers(&folder.path().join(name))
    };
    let (never, once, twice) = (
        end("never", &["run.iterations=1"]),
        end("once", &["run.iterations=1", flip]),
        end("twice", &["run.iterations=2", flip]),
    );
    let mirrored: Vec<f64> = (0..never.len()).map(|i| never[i / 8 * 8 + 7 - i % 8]).collect();
    let far = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    // What sticks out of [-1, 1] by noise is cut off: a few times 0.01.
    assert!(
        far(&once, &mirrored) < 0.06 && far(&twice, &never) < 0.06,
        "{} {}",
        far(&once, &mirrored),
        far(&twice, &never)
    );
    assert!(far(&once, &never) > 0.5);
}

#[test]
fn what_does_not_fit_is_refused_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let refused =
        |changes: &[&str]| run(&folder.path().join("run"), changes, &|| false).unwrap_err().to_string();
    for (changes, words) in [
        (&["model.layers=[]"][..], &["model.layers", "network"][..]),
        (&["model.network=mnist"], &["model.layers"]),
        (&["model.layers=[]", "model.network=mnist"], &["28 x 28", "8 x 8"]),
        (&["model.layers=[]", "model.network=alexnet"], &["model.network", "alexnet"]),
        (&["model.width=3"], &["model.width"]),
        (&["data.set=no-such-folder"], &["no-such-folder"]),
        (&["data.labels=[[0, 400]]"], &["0", "400"]),
        (&["data.batch=100000"], &["data.batch", "120"]),
        (&["data.noise=-1.0"], &["data.noise"]),
        (&["data.copies=0"], &["data.copies"]),
        (&["data.noise=0.0"], &["noise"]),
        (&["walkers.witnesses=1"], &["walkers.witnesses"]),
        (&["walkers.witnesses=9", "algorithm.kind=pcd"], &["walkers.witnesses", "weights"]),
        (&["walkers.augment={}"], &["walkers.augment", "weights"]),
        (&["walkers.augment={ blur = -1.0 }", "algorithm.kind=pcd"], &["walkers.augment", "blur", "-1"]),
        (&["walkers.augment={ sharpen = 1.0 }", "algorithm.kind=pcd"], &["sharpen"]),
    ] {
        let text = refused(changes);
        assert!(words.iter().all(|w| text.contains(w)), "{changes:?}: {text}");
        assert!(!folder.path().join("run").exists(), "{changes:?} left something behind");
    }
}
