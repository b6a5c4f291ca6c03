//! Bad input: a clear error that names the thing, exit code 1, nothing left behind.

mod common;

use common::{Jarz, SMALL};

#[test]
fn configurations() {
    let j = Jarz::new();
    j.fails(&["train", "nowhere.toml"], &["nowhere.toml"]);
    j.write("broken.toml", "[data\nkind = 3");
    j.fails(&["train", "broken.toml"], &["broken.toml", "line 1"]);
    j.write("empty.toml", "");
    j.fails(&["train", "empty.toml"], &["missing field", "data"]);
    j.write("binary.toml", [0xff, 0xfe, 0x00, 0x80]);
    j.fails(&["train", "binary.toml"], &["binary.toml"]);
    j.write("small.toml", SMALL);
    let cases: &[(&str, &[&str])] = &[
        ("kernel.stepsize=0.1", &["stepsize", "step_size"]),
        ("kernel.step_size=-1", &["kernel.step_size", "positive"]),
        ("kernel.step_size=nan", &["kernel.step_size", "positive"]),
        ("kernel.step_size=fast", &["step_size"]),
        ("kernel.kind=hmc", &["hmc", "ula", "mala"]),
        ("kernel", &["--set kernel", "kernel.step_size=0.05"]),
        ("seed=-1", &["seed"]),
        ("walkers.count=1", &["walkers.count"]),
        ("walkers.batch=5000", &["walkers.batch", "1000"]),
        ("walkers.count=100000000000", &["walkers.count", "GiB"]),
        ("resampling.threshold=2", &["resampling.threshold"]),
        ("resampling.trigger=every", &["resampling.every"]),
        ("optimizer.rates={means=0.1}", &["means", "mean.0", "log_mass.1"]),
        ("optimizer.frozen=[\"weights\"]", &["weights", "mean.0"]),
        ("optimizer.beta1=1.5", &["optimizer.beta1"]),
        ("model.modes=0", &["model.modes"]),
        ("model.means=[[0.0,0,0,0,0,0,0,0]]", &["model.means"]),
        ("model.kind=spline", &["spline", "mixture", "network"]),
        ("model.kind=network", &["model", "layers"]),
        ("data.masses=[0.5]", &["data.masses"]),
        ("data.points=0", &["data.points"]),
        ("data.batch=2000", &["data.batch"]),
        ("run.log_every=0", &["run.log_every"]),
        ("run.threads=100000", &["run.threads"]),
        ("optimizer.prior=1", &["optimizer.prior", "natural"]),
        ("optimizer.delay=0", &["optimizer.delay", "positive"]),
        (r#"optimizer.settle={after=3,only=["nothing"]}"#, &["optimizer.settle.only", "nothing", "mean"]),
        ("walkers.relay={every=10}", &["walkers.relay", "keepers"]),
        ("walkers.relay={keepers=1,every=10}", &["walkers.relay.keepers", "at least 2"]),
        ("walkers.relay={keepers=9,every=0}", &["walkers.relay.every", "at least 1"]),
        ("walkers.relay={keepers=9,every=5,rest=-1.0}", &["walkers.relay.rest", "positive"]),
        ("algorithm.kind=sgd", &["sgd", "jarzynski"]),
        ("algorithm.self_interaction=maybe", &["maybe", "leave-one-out"]),
    ];
    for (set, words) in cases {
        j.fails(&["train", "small.toml", "--out", "run", "--set", set], words);
        assert!(!j.path("run").exists(), "{set} left a folder behind");
    }
}

#[test]
fn data_files() {
    let j = Jarz::new();
    let config = "[data]\nkind = \"file\"\npath = \"points.csv\"\n[model]\nkind = \"mixture\"\nmodes = 2\n[run]\niterations = 5\n";
    j.write("own.toml", config);
    let train = ["train", "own.toml", "--out", "run", "--quiet"];
    j.fails(&train, &["points.csv"]);
    j.write("points.csv", "");
    j.fails(&train, &["points.csv", "empty"]);
    j.write("points.csv", "1,2\n3\n");
    j.fails(&train, &["points.csv", "2"]);
    j.write("points.csv", "1,2\n3,x\n");
    j.fails(&train, &["points.csv", "x"]);
    j.write("points.csv", "1,2\n3,NaN\n");
    j.fails(&train, &["points.csv", "NaN"]);
    j.write("points.npy", b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 8), }");
    j.fails(&[&train[..], &["--set", "data.path=points.npy"]].concat(), &["points.npy"]);
    assert!(!j.path("run").exists());
    j.write("points.csv", "1,2\n3,4\n5,6\n2,2\n");
    j.ok(&train);
    // Another file under the same name must not be mistaken for the run's data.
    j.write("points.csv", "1,2\n3,4\n5,6\n2,3\n");
    j.fails(&["resume", "run"], &["points.csv", "changed"]);
    j.write("points.csv", "1,2\n3,4\n5,6\n2,2\n");
    j.write("wide.csv", "1,2,3\n3,4,5\n");
    j.fails(&["evaluate", "run", "--data", "wide.csv"], &["wide.csv", "3", "2"]);
    j.fails(&["evaluate", "run", "--data", "none.csv"], &["none.csv"]);
}

#[test]
fn folders() {
    let j = Jarz::new();
    for command in
        [&["resume", "nowhere"][..], &["sample", "nowhere"], &["evaluate", "nowhere", "--data", "x.npy"]]
    {
        j.fails(command, &["nowhere"]);
    }
    std::fs::create_dir(j.path("empty")).unwrap();
    j.fails(&["resume", "empty"], &["empty", "run.toml"]);
    j.write("small.toml", SMALL);
    j.write("file", "I am a file");
    j.fails(&["train", "small.toml", "--out", "file/run"], &["file/run"]);
    // A place where nothing can be created. (Full disks are tested with the checkpoints.)
    let out = j.run(&["train", "small.toml", "--out", "/proc/run"]);
    assert_eq!(out.status.code(), Some(1));
}

#[test]
fn diverging_runs_say_so_and_keep_what_there_is() {
    let j = Jarz::new();
    j.write("small.toml", SMALL);
    let args = [
        "train",
        "small.toml",
        "--out",
        "run",
        "--set",
        "kernel.step_size=1000.0",
        "--set",
        "run.checkpoint_every=1",
        "--quiet",
    ];
    j.fails(&args, &["diverged at iteration", "smaller kernel step", "run"]);
    assert!(j.path("run/metrics.jsonl").exists() && j.path("run/run.toml").exists());
    assert!(std::fs::read_dir(j.path("run/checkpoints")).unwrap().count() > 0);
}

#[test]
fn two_processes_do_not_share_a_folder() {
    let j = Jarz::new();
    j.write("small.toml", SMALL);
    let mut child = j
        .command(&["train", "small.toml", "--out", "run", "--set", "run.iterations=1000000", "--quiet"])
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    while !j.path("run/metrics.jsonl").exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let result = std::panic::catch_unwind(|| j.fails(&["resume", "run"], &["another process"]));
    child.kill().unwrap();
    child.wait().unwrap();
    result.unwrap();
}

/// Each of the processes that a launcher starts would do the whole run.
#[cfg(not(feature = "mpi"))]
#[test]
fn several_processes_without_mpi_are_refused() {
    let j = Jarz::new();
    j.write("small.toml", SMALL);
    for launcher in ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"] {
        let out = j.command(&["train", "small.toml", "--out", "r"]).env(launcher, "3").output().unwrap();
        let said = common::text(&out.stderr);
        assert_eq!(out.status.code(), Some(1), "{said}");
        assert!(said.contains("one of 3 processes") && said.contains("--features mpi"), "{said}");
        assert!(!j.path("r").exists());
    }
    let out = j.command(&["train", "small.toml", "--out", "r"]).env("PMI_SIZE", "1").output().unwrap();
    assert!(out.status.success(), "{}", common::text(&out.stderr));
}
