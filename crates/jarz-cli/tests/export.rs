//! `jarz export` and `jarz evaluate --weights` with the real program: weights leave a run and come back, and files that do not fit say why.

mod common;

use common::{Jarz, SMALL};
use serde_json::Value;

const NETWORK: &str = r#"
seed = 3
[data]
kind = "mixture"
points = 400
dim = 2
means = [[-2.0], [2.0]]
masses = [0.5, 0.5]
[model]
kind = "network"
base = { mixture = 2 }
layers = [{ type = "linear", features = 8 }, { type = "tanh" }, { type = "linear", features = 1 }]
[walkers]
count = 200
witnesses = 100
[kernel]
kind = "mala"
step_size = 0.1
[optimizer]
kind = "adam"
rates = { all = 0.01 }
average = 3.0
[run]
iterations = 30
log_every = 10
threads = 1
"#;

/// The tensors of a weight file by name: shape and place of their numbers, and where these begin.
fn header(bytes: &[u8]) -> (Value, usize) {
    let size = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    (serde_json::from_slice(&bytes[8..8 + size]).unwrap(), 8 + size)
}

#[test]
fn weights_leave_a_run_and_come_back() {
    let j = Jarz::new();
    j.write("network.toml", NETWORK);
    j.ok(&["train", "network.toml", "--quiet", "--out", "run"]);
    // A layer of 2 x 8 with 8 biases, one of 8 x 1 with one, and the weight of one of two Gaussians.
    let said: Value = serde_json::from_str(&j.ok(&["export", "run", "--json"])).unwrap();
    assert_eq!(said["parameters"], 2 * 8 + 8 + 8 + 1 + 1);
    assert!(std::fs::read_to_string(j.path("run/model.toml")).unwrap().contains("tanh"));
    let bytes = std::fs::read(j.path("run/model.safetensors")).unwrap();
    let (tensors, first) = header(&bytes);
    assert_eq!(tensors["0.weight"]["shape"], serde_json::json!([8, 2]));

    let judge = ["--json", "--walkers", "300", "--threads", "1"];
    let evaluate = |with: &[&str]| -> Value {
        serde_json::from_str(&j.ok(&[&["evaluate", "run"], &judge[..], with].concat())).unwrap()
    };
    let (own, same) = (evaluate(&[]), evaluate(&["--weights", "run/model.safetensors"]));
    for key in ["log_z_annealed", "mean_energy", "cross_entropy_annealed", "points"] {
        assert_eq!(own[key], same[key], "{key}: the same weights");
    }
    assert!(
        own["log_z"].is_number() && same["log_z"].is_null(),
        "the training's weights are about its own model"
    );
    assert_eq!(same["weights"], "run/model.safetensors");
    assert_eq!(j.json("run/evaluate-weights.json"), same);
    assert_eq!(j.json("run/evaluate.json"), own, "not overwritten by what other weights gave");

    // Other weights are other weights: the last bias moves all energies by as much, and log Z by its opposite.
    let place = tensors["2.bias"]["data_offsets"][0].as_u64().unwrap() as usize + first;
    let mut moved = bytes.clone();
    let bias = f64::from_le_bytes(moved[place..place + 8].try_into().unwrap());
    moved[place..place + 8].copy_from_slice(&(bias + 2.0).to_le_bytes());
    j.write("moved.safetensors", &moved);
    let other = evaluate(&["--weights", "moved.safetensors"]);
    let change = |key: &str| other[key].as_f64().unwrap() - own[key].as_f64().unwrap();
    assert!((change("mean_energy") - 2.0).abs() < 1e-4 && (change("log_z_annealed") + 2.0).abs() < 1e-4);

    j.fails(&["export", "run"], &["model.safetensors", "--force"]);
    j.ok(&["export", "run", "--force"]);
    j.fails(&["export", "run", "--out", "weights.toml"], &["weights.toml", "--out"]);
    j.fails(&["export", "run", "--out", "nowhere/w.safetensors"], &["nowhere"]);
}

#[test]
fn weights_that_do_not_fit_are_refused() {
    let j = Jarz::new();
    j.write("network.toml", NETWORK);
    j.write("mixture.toml", SMALL);
    let changed = NETWORK.replace("seed = 3", "seed = 4");
    j.write("elsewhere.toml", changed);
    j.write("wider.toml", NETWORK.replace("features = 8", "features = 9"));
    for run in ["network", "mixture", "elsewhere", "wider"] {
        j.ok(&["train", &format!("{run}.toml"), "--quiet", "--out", run, "--set", "run.iterations=2"]);
    }
    for run in ["network", "elsewhere", "wider"] {
        j.ok(&["export", run, "--out", &format!("of-{run}.safetensors")]);
    }
    let refuse = |file: &str, words: &[&str]| {
        j.fails(&["evaluate", "network", "--weights", file], words);
        assert!(!j.path("network/evaluate-weights.json").exists());
    };
    refuse("nothing.safetensors", &["nothing.safetensors"]);
    refuse("of-wider.safetensors", &["of-wider.safetensors", "0.weight", "[9, 2]", "[8, 2]"]);
    // Another seed is other data, and so another base.
    refuse("of-elsewhere.safetensors", &["of-elsewhere.safetensors", "base"]);
    let bytes = std::fs::read(j.path("of-network.safetensors")).unwrap();
    j.write("short.safetensors", &bytes[..bytes.len() - 5]);
    refuse("short.safetensors", &["short.safetensors", "cut short"]);
    let (tensors, first) = header(&bytes);
    let place = tensors["0.bias"]["data_offsets"][0].as_u64().unwrap() as usize + first;
    let mut nan = bytes.clone();
    nan[place..place + 8].copy_from_slice(&f64::NAN.to_le_bytes());
    j.write("nan.safetensors", &nan);
    refuse("nan.safetensors", &["nan.safetensors", "0.bias", "NaN"]);
    j.fails(&["export", "mixture"], &["network", "summary.json"]);
    j.fails(&["evaluate", "mixture", "--weights", "of-network.safetensors"], &["network"]);
}
