//! One run on several ranks, started by a real `mpirun`: the same numbers as on one, whatever happens on the way.
#![cfg(feature = "mpi")]

#[path = "../common/mod.rs"]
mod common;
mod failures;

use common::{Jarz, SMALL, final_state, rows, text};
use std::process::{Command, Output, Stdio};

/// A network on the 8 x 8 digits, with walkers in whitened coordinates and witnesses along a running mean.
const NETWORK: &str = r#"
seed = 4
[data]
kind = "images"
set = "digits"
labels = [[0, 60], [1, 30]]
noise = 0.1
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
count = 300
witnesses = 100
[kernel]
kind = "mala"
step_size = 0.05
[optimizer]
kind = "adam"
rates = { all = 0.01 }
average = 10.0
trust_region = 0.05
[resampling]
threshold = 0.99
[run]
iterations = 60
log_every = 5
"#;

/// `mpirun` with so many ranks, more than there are cores or not.
fn mpirun(j: &Jarz, ranks: usize, args: &[&str]) -> Command {
    let mut command = Command::new("mpirun");
    command
        .args(["--oversubscribe", "--bind-to", "none", "-n", &ranks.to_string()])
        .arg(env!("CARGO_BIN_EXE_jarz"))
        .args(args)
        .current_dir(j.dir.path())
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .stdin(Stdio::null());
    command
}

fn ok(out: Output) {
    assert!(out.status.success(), "{}{}", text(&out.stdout), text(&out.stderr));
}

/// Runs a configuration on one rank and on 2, 3 and 4, and compares all that is kept of them.
fn same_on_all(config: &str, iterations: u64, settings: &[&str]) {
    let j = Jarz::new();
    j.write("c.toml", config);
    let set: Vec<&str> = settings.iter().flat_map(|s| ["--set", s]).collect();
    j.ok(&[&["train", "c.toml", "--out", "r1", "--quiet"][..], &set].concat());
    let whole = rows(&j.path("r1/metrics.jsonl"));
    let weighted = whole[0]["log_z"].is_number();
    let resamplings = whole.last().unwrap()["resamplings"].as_u64().unwrap();
    assert!(!weighted || resamplings >= 3, "{settings:?}: {resamplings} resamplings");
    for ranks in 2..=4 {
        let folder = format!("r{ranks}");
        let args = [&["train", "c.toml", "--out", &folder, "--quiet"][..], &set].concat();
        ok(mpirun(&j, ranks, &args).output().unwrap());
        assert_eq!(rows(&j.path(&format!("{folder}/metrics.jsonl"))), whole, "{settings:?} on {ranks} ranks");
        let states = [j.path(&folder), j.path("r1")].map(|f| final_state(&f, iterations));
        assert!(states[0].same_bits(&states[1]), "{settings:?} on {ranks} ranks: another final state");
        assert_eq!(j.json(&format!("{folder}/summary.json"))["ranks"], ranks);
    }
}

#[test]
fn a_mixture_with_every_scheme() {
    for scheme in ["systematic", "stratified", "multinomial", "residual"] {
        let scheme = format!("resampling.scheme=\"{scheme}\"");
        same_on_all(SMALL, 300, &[&scheme]);
        same_on_all(SMALL, 300, &[&scheme, "walkers.batch=200", "data.batch=150"]);
    }
}

#[test]
fn a_mixture_in_several_segments_in_double_precision() {
    let settings = ["walkers.count=9001", "precision=\"f64\"", "run.iterations=120", "kernel.kind=\"mala\""];
    same_on_all(SMALL, 120, &settings);
}

#[test]
fn other_algorithms() {
    for kind in ["pcd", "cd", "jarzynski-continuous", "unweighted"] {
        same_on_all(SMALL, 100, &[&format!("algorithm.kind=\"{kind}\""), "run.iterations=100"]);
    }
}

#[test]
fn a_network() {
    same_on_all(NETWORK, 60, &[]);
    same_on_all(NETWORK, 60, &["walkers.batch=100", "data.batch=30"]);
}

#[test]
fn a_run_goes_on_with_other_ranks() {
    for (config, iterations) in [(SMALL, 300), (NETWORK, 60)] {
        let j = Jarz::new();
        j.write("c.toml", config);
        j.ok(&["train", "c.toml", "--out", "whole", "--quiet"]);
        let parts = [(3, iterations / 4), (1, iterations / 2), (4, 3 * iterations / 4), (2, iterations)];
        for (ranks, until) in parts {
            let until = until.to_string();
            let set = format!("run.iterations={until}");
            let first = ["train", "c.toml", "--out", "parts", "--set", &set, "--quiet"];
            let next = ["resume", "parts", "--iterations", &until, "--quiet"];
            let args = if ranks == 3 { &first[..] } else { &next[..] };
            match ranks {
                1 => _ = j.ok(args),
                _ => ok(mpirun(&j, ranks, args).output().unwrap()),
            }
        }
        // A run logs its last iteration; those of the parts lie on the grid of the whole.
        assert_eq!(rows(&j.path("parts/metrics.jsonl")), rows(&j.path("whole/metrics.jsonl")));
        let states = ["parts", "whole"].map(|f| final_state(&j.path(f), iterations));
        assert!(states[0].same_bits(&states[1]));
    }
}

#[test]
fn repeated_runs() {
    let j = Jarz::new();
    j.write("c.toml", SMALL);
    let runs = ["--runs", "2", "--quiet", "--set", "run.iterations=60"];
    j.ok(&[&["train", "c.toml", "--out", "one"][..], &runs].concat());
    ok(mpirun(&j, 3, &[&["train", "c.toml", "--out", "three"][..], &runs].concat()).output().unwrap());
    for run in ["run-01", "run-02"] {
        let of = |folder: &str| rows(&j.path(&format!("{folder}/runs/{run}/metrics.jsonl")));
        assert_eq!(of("three"), of("one"));
    }
}
