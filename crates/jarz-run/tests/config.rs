//! Configurations: round trips, changes of single keys, and arbitrary bytes.

use jarz_run::{Config, ConfigError};
use proptest::prelude::*;

const FULL: &str = r#"
seed = 9
precision = "f32"
[data]
kind = "file"
path = "x.npz"
array = "train"
delimiter = ";"
header = true
batch = 10
[model]
kind = "mixture"
modes = 3
sigma = 0.5
start = "data-points"
epsilon = 0.2
means = [[1.0], [2.0, 3.0], []]
masses = [1.0, 2.0, 3.0]
[algorithm]
kind = "pcd"
self_interaction = "none"
[walkers]
count = 100
batch = 10
start = "independent"
[kernel]
kind = "mala"
step_size = 0.01
steps = 3
clip_norm = 5.0
[kernel.adapt]
target = 0.6
[optimizer]
kind = "adam"
rates = { all = 0.1, "mean.1" = 0.2 }
frozen = ["log_mass.0"]
beta1 = 0.5
epsilon = 1e-6
trust_region = 0.01
delay = 2.5
[optimizer.schedule]
shape = "cosine"
end = 0.1
[resampling]
scheme = "residual"
trigger = "entropy"
thresholds = [[10, 0.5], [20, 0.7]]
[run]
iterations = 7
threads = 2
runs = 3
"#;

const SHORT: &str = "[data]\nkind = \"file\"\npath = \"x.npy\"\n[model]\nkind = \"gaussian\"\n";

#[test]
fn what_is_written_reads_back_the_same() {
    for text in [FULL, SHORT] {
        let config = Config::parse(text, "test", &[]).unwrap();
        let again = Config::parse(&config.to_toml().unwrap(), "again", &[]).unwrap();
        assert_eq!(config, again);
    }
}

#[test]
fn single_keys_can_be_changed() {
    let changes = [
        "kernel.step_size=0.5",
        "optimizer.rates.mean.0=0.7",
        "model.mean=[1.0, 2.0]",
        "algorithm.kind=cd",
        "seed=12",
    ];
    let changes: Vec<String> = changes.iter().map(|s| s.to_string()).collect();
    let config = Config::parse(SHORT, "test", &changes).unwrap();
    assert_eq!(config.kernel.step_size, 0.5);
    assert_eq!(config.optimizer.rates["mean.0"], 0.7);
    assert_eq!(config.seed, 12);
    assert_eq!(config.algorithm.kind, jarz_run::config::AlgorithmKind::Cd);
    for broken in ["", "=", "a", ".=1", "seed.x=1", "seed=[", "data=3", "run.iterations=1e99"] {
        assert!(Config::parse(SHORT, "test", &[broken.to_string()]).is_err(), "{broken}");
    }
}

#[test]
fn errors_name_the_key() {
    let key = |change: &str| match Config::parse(SHORT, "test", &[change.to_string()]) {
        Err(ConfigError::Value { key, .. }) => key,
        other => panic!("{change}: {other:?}"),
    };
    assert_eq!(key("kernel.steps=0"), "kernel.steps");
    assert_eq!(key("kernel.adapt={target=1.5}"), "kernel.adapt.target");
    assert_eq!(key("optimizer.rates={all=-1.0}"), "optimizer.rates");
    assert_eq!(key("resampling.thresholds=[[0, 1.5]]"), "resampling.threshold");
    assert_eq!(key("run.runs=0"), "run.runs");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn arbitrary_bytes_are_no_reason_to_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = Config::parse(&String::from_utf8_lossy(&bytes), "bytes", &[]);
    }

    #[test]
    fn a_damaged_configuration_is_an_error_or_another_configuration(at in 0..FULL.len(), byte in 32u8..127, cut in any::<bool>()) {
        let mut text = FULL.as_bytes().to_vec();
        if cut { text.truncate(at) } else { text[at] = byte }
        if let Ok(config) = Config::parse(&String::from_utf8_lossy(&text), "damaged", &[]) {
            prop_assert!(config.check().is_ok());
        }
    }

    #[test]
    fn arbitrary_changes_are_no_reason_to_panic(change in "[a-z_.=\\[\\]{}\"0-9 -]{0,40}") {
        let _ = Config::parse(SHORT, "test", &[change]);
    }
}

#[test]
fn friction_without_momentum_is_refused() {
    let with = |changes: &[&str]| {
        let changes: Vec<String> = changes.iter().map(|c| c.to_string()).collect();
        Config::parse(SHORT, "test", &changes)
    };
    let error = with(&["kernel.friction=0.5"]).unwrap_err().to_string();
    assert!(error.contains("kernel.friction") && error.contains("ghmc"), "{error}");
    let error = with(&["kernel.kind=ghmc", "kernel.friction=0.0"]).unwrap_err().to_string();
    assert!(error.contains("kernel.friction = 0"), "{error}");
    assert_eq!(with(&["kernel.kind=ghmc", "kernel.friction=0.5"]).unwrap().kernel.friction, Some(0.5));
}
