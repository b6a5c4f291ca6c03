//! Event files, read back by the real TensorBoard package: a Python that has it is named by JARZ_TENSORBOARD_PYTHON, so these
//! tests run only when asked for: `cargo test --test tensorboard -- --ignored`.

#[path = "../common/mod.rs"]
mod common;

use common::{Jarz, SMALL};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// TensorBoard's own reader on a folder; each look gives all scalars, as a running TensorBoard would show them.
struct TensorBoard {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl TensorBoard {
    fn new(folder: &Path) -> Self {
        let python =
            std::env::var("JARZ_TENSORBOARD_PYTHON").expect("JARZ_TENSORBOARD_PYTHON names a Python");
        let mut child = Command::new(python)
            .args(["-c", include_str!("read_events.py")])
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        TensorBoard { child, input, output }
    }

    /// `{tag: [[step, value, wall time], ...]}`.
    fn look(&mut self) -> Value {
        self.input.write_all(b"\n").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).expect("TensorBoard reads the files")
    }
}

impl Drop for TensorBoard {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Every scalar of every row is there once, in single precision, and nothing else is.
fn check_same(events: &Value, metrics: &Path) {
    let rows = common::rows(metrics);
    assert!(rows.len() > 3);
    let names = [
        ("cross_entropy/estimate", "/cross_entropy"),
        ("cross_entropy/std_error", "/cross_entropy_std_error"),
        ("cross_entropy/exact", "/cross_entropy_exact"),
        ("kl/estimate", "/kl"),
        ("kl/exact", "/kl_exact"),
        ("log_z/estimate", "/log_z"),
        ("log_z/std_error", "/log_z_std_error"),
        ("log_z/exact", "/log_z_exact"),
        ("data_energy", "/data_energy"),
        ("walkers/ess", "/ess"),
        ("walkers/weight_entropy", "/weight_entropy"),
        ("walkers/acceptance", "/acceptance"),
        ("walkers/step_size", "/step_size"),
        ("walkers/resamplings", "/resamplings"),
        ("walkers/distinct_ancestors", "/distinct_ancestors"),
        ("gradient_norm", "/gradient_norm"),
        ("step_scale", "/step_scale"),
        ("masses/0", "/masses/0"),
        ("masses/1", "/masses/1"),
        ("walker_masses/0", "/walker_masses/0"),
        ("walker_masses/1", "/walker_masses/1"),
    ];
    assert_eq!(events.as_object().unwrap().len(), names.len(), "{:?}", events.as_object().unwrap().keys());
    for (tag, pointer) in names {
        let expected: Vec<(u64, f32)> = rows
            .iter()
            .filter_map(|r| Some((r["iteration"].as_u64()?, r.pointer(pointer)?.as_f64()? as f32)))
            .collect();
        let found = events[tag].as_array().unwrap_or_else(|| panic!("no {tag}"));
        let found: Vec<(u64, f32)> =
            found.iter().map(|e| (e[0].as_u64().unwrap(), e[1].as_f64().unwrap() as f32)).collect();
        let differs = (0..found.len().max(expected.len())).find(|i| found.get(*i) != expected.get(*i));
        let at = |list: &[(u64, f32)], i: usize| list.get(i).copied();
        let pair = differs.map(|i| (i, at(&found, i), at(&expected, i)));
        assert!(
            pair.is_none(),
            "{tag}: (place, found, expected) {pair:?} of {}, {}",
            found.len(),
            expected.len()
        );
        assert!(!expected.is_empty(), "{tag}");
    }
}

#[test]
#[ignore = "needs the Python package tensorboard"]
fn every_scalar_is_read_back() {
    let j = Jarz::new();
    j.write("small.toml", SMALL);
    j.ok(&["train", "small.toml", "--out", "run", "--tensorboard", "--quiet"]);
    let events = TensorBoard::new(&j.path("run/tensorboard")).look();
    check_same(&events, &j.path("run/metrics.jsonl"));
    // Wall times run on.
    let times: Vec<f64> =
        events["walkers/ess"].as_array().unwrap().iter().map(|e| e[2].as_f64().unwrap()).collect();
    assert!(times.windows(2).all(|t| t[0] <= t[1]) && times[0] > 1.7e9, "{times:?}");

    // The configuration can ask for it, extending a run goes on, and without either there are no files.
    j.ok(&["resume", "run", "--iterations", "340", "--quiet"]);
    check_same(&TensorBoard::new(&j.path("run/tensorboard")).look(), &j.path("run/metrics.jsonl"));
    let quick = ["train", "small.toml", "--quiet", "--set", "run.iterations=40", "--out"];
    j.ok(&[&quick[..], &["many", "--runs", "2", "--set", "run.tensorboard=true"]].concat());
    for run in ["run-01", "run-02"] {
        let folder = j.path("many/runs").join(run);
        check_same(&TensorBoard::new(&folder.join("tensorboard")).look(), &folder.join("metrics.jsonl"));
    }
    j.ok(&[&quick[..], &["without"]].concat());
    assert!(!j.path("without/tensorboard").exists());
}

/// A process killed after its last checkpoint has logged iterations that are made again; a TensorBoard that had read them already
/// shows them once, and so does one that is started later.
#[cfg(unix)]
#[test]
#[ignore = "needs the Python package tensorboard"]
fn rows_that_are_made_again_appear_once() {
    let j = Jarz::new();
    j.write("small.toml", SMALL);
    let args =
        ["--set", "run.iterations=4000", "--set", "run.checkpoint_every=700", "--tensorboard", "--quiet"];
    let mut child =
        j.command(&[&["train", "small.toml", "--out", "cut"][..], &args].concat()).spawn().unwrap();
    let metrics = j.path("cut/metrics.jsonl");
    let logged = || std::fs::read_to_string(&metrics).map_or(0, |text| text.lines().count());
    // Past the first checkpoint, and some rows further.
    while logged() < 85 {
        std::thread::sleep(Duration::from_millis(1));
        assert!(child.try_wait().unwrap().is_none(), "too fast to be killed in time");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let mut running = TensorBoard::new(&j.path("cut/tensorboard"));
    let before = running.look()["walkers/ess"].as_array().unwrap().len();
    assert!(before >= 85, "{before}");
    j.ok(&["resume", "cut", "--quiet"]);
    check_same(&running.look(), &metrics);
    check_same(&TensorBoard::new(&j.path("cut/tensorboard")).look(), &metrics);
    let sizes =
        std::fs::read_dir(j.path("cut/tensorboard")).unwrap().map(|f| f.unwrap().metadata().unwrap().len());
    assert_eq!(sizes.filter(|size| *size > 0).count(), 1, "one file holds everything");
    assert_eq!(logged(), 401);
    // And once more, with the same reader.
    j.ok(&["resume", "cut", "--iterations", "4100", "--quiet"]);
    check_same(&running.look(), &metrics);
    assert!(std::fs::read_dir(j.path("cut/tensorboard")).unwrap().count() <= 2, "empty files do not pile up");
}
