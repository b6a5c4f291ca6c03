//! Experiments with grids, criteria and several runs: spread over cores, interrupted, extended, estimated.

mod common;

use common::{Jarz, rows, text};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

/// Two kernels at two time steps, and PCD.
fn experiment(iterations: u64) -> String {
    format!(
        r#"
title = "A small grid"
[base]
precision = "f32"
[base.data]
kind = "mixture"
points = 300
dim = 4
means = [[-4.0], [3.0]]
masses = [0.25, 0.75]
[base.model]
kind = "mixture"
modes = 2
start = "origin"
means = [[-0.1], [0.1]]
[base.walkers]
count = 300
[base.optimizer]
rates = {{ log_mass = 0.1, mean = 0.02 }}
frozen = ["log_mass.0"]
[base.run]
iterations = {iterations}
log_every = 10
checkpoint_every = 50
[scale.quick]
runs = 3
[[variant]]
name = "pcd"
set = ["algorithm.kind=pcd"]
[[grid]]
[[grid.axis]]
name = "kernel"
[[grid.axis.option]]
name = "ula"
label = "ULA"
set = ["kernel.kind=ula"]
[[grid.axis.option]]
name = "mala"
label = "MALA"
set = ["kernel.kind=mala"]
[[grid.axis]]
name = "h"
label = "time step"
values = [0.05, 0.1]
set = ["kernel.step_size={{}}"]
scale.paper = [0.2]
[[figure]]
[[figure.panel]]
title = "ESS"
variants = ["*la-*"]
x = "h"
y = ["ess"]
[[figure.panel]]
title = "Mass"
split = "variant"
y = ["mass"]
runs = "median"
[[criterion]]
claim = "The ESS is at most one."
variants = ["ula-*", "mala-*"]
quantity = "ess"
over = "max"
runs = "each"
below = 1.0000001
[[criterion]]
claim = "The ESS is at least two."
variants = ["ula-h0.1"]
quantity = "ess"
above = 2.0
[[criterion]]
claim = "The mass is right to a digit that nobody has measured."
variants = ["ula-h0.1"]
quantity = "mass_error"
below = 1e-9
undecided.quick = "there are 300 walkers"
"#
    )
}

const VARIANTS: [&str; 5] = ["pcd", "ula-h0.05", "ula-h0.1", "mala-h0.05", "mala-h0.1"];

fn all_rows(out: &Path, runs: usize) -> Vec<Vec<Value>> {
    let place = |v: &str, r: usize| out.join(v).join(format!("run-{r:02}")).join("metrics.jsonl");
    VARIANTS.iter().flat_map(|v| (1..=runs).map(move |r| rows(&place(v, r)))).collect()
}

fn reproduce<'a>(out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["reproduce", "grid.toml", "--quiet", "--out", out], more].concat()
}

#[test]
fn a_grid_is_run_drawn_and_judged() {
    let j = Jarz::new();
    j.write("grid.toml", experiment(60));
    let printed = j.ok(&reproduce("out", &["--threads", "2"]));
    assert!(printed.contains("agrees? yes") && printed.contains("agrees? no"), "{printed}");
    assert!(printed.contains("cannot be decided at this scale: there are 300 walkers"), "{printed}");

    let summary = j.json("out/summary.json");
    let names: Vec<&str> =
        summary["results"].as_array().unwrap().iter().map(|r| r["variant"].as_str().unwrap()).collect();
    assert_eq!(names, VARIANTS);
    assert_eq!(summary["results"][4]["choices"], serde_json::json!({"kernel": "mala", "h": 0.1}));
    let agrees: Vec<&str> =
        summary["criteria"].as_array().unwrap().iter().map(|c| c["agrees"].as_str().unwrap()).collect();
    assert_eq!(agrees, ["yes", "no", "cannot be decided"]);

    let page = fs::read_to_string(j.path("out/report.html")).unwrap();
    for words in ["what the paper says", "agrees?", "The ESS is at least two.", "seeds"] {
        assert!(page.contains(words), "{words}");
    }
    let svg = fs::read_to_string(j.path("out/figures/grid.svg")).unwrap();
    assert!(svg.contains("time step") && svg.contains("MALA"), "axes and series have their names");
    assert!(j.path("out/mala-h0.1/run-03/report.html").is_file());
    // The configuration says what the grid chose, and nothing else of the grid.
    let config = fs::read_to_string(j.path("out/mala-h0.05/run-02/run.toml")).unwrap();
    assert!(
        config.contains("kind = \"mala\"")
            && config.contains("step_size = 0.05")
            && config.contains("seed = 2")
    );
}

#[test]
fn the_page_of_an_experiment_is_made_again() {
    let j = Jarz::new();
    j.write("grid.toml", experiment(20));
    j.ok(&reproduce("out", &["--threads", "2"]));
    let read = |name: &str| fs::read(j.path(name)).unwrap();
    let made = ["out/report.html", "out/summary.json", "out/figures/grid.svg"];
    let before = made.map(read);
    made.iter().for_each(|name| fs::remove_file(j.path(name)).unwrap());
    let printed = j.ok(&["report", "out"]);
    assert!(printed.contains("report.html"), "{printed}");
    assert_eq!(made.map(read), before);

    fs::remove_file(j.path("out/mala-h0.1/run-03/metrics.jsonl")).unwrap();
    j.fails(&["report", "out"], &["run-03"]);
}

#[test]
fn runs_are_the_same_whatever_the_cores() {
    let j = Jarz::new();
    j.write("grid.toml", experiment(60));
    for (out, cores) in [("one", "1"), ("three", "3"), ("many", "40")] {
        j.ok(&reproduce(out, &["--threads", cores]));
    }
    let one = all_rows(&j.path("one"), 3);
    assert_eq!(one, all_rows(&j.path("three"), 3));
    assert_eq!(one, all_rows(&j.path("many"), 3), "more cores than runs");
    assert_ne!(one[0], one[1], "runs differ in their seeds");
}

/// Runs go longest first, so which one is at work when the process is stopped does not matter here: some are done, some are not.
#[cfg(unix)]
#[test]
fn stopped_or_killed_it_goes_on_as_if_nothing_had_happened() {
    let j = Jarz::new();
    j.write("grid.toml", experiment(1500));
    let straight = reproduce("straight", &["--threads", "2"]);
    let start = Instant::now();
    j.ok(&straight);
    let whole = start.elapsed();
    let interrupted = reproduce("stopped", &["--threads", "2"]);
    for (moment, signal) in [(0.2, "-INT"), (0.3, "-KILL"), (0.3, "-INT"), (0.3, "-KILL")] {
        let child = j.command(&interrupted).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(whole.mul_f64(moment));
        let sent = std::process::Command::new("kill").args([signal, &child.id().to_string()]).status();
        let out = child.wait_with_output().unwrap();
        if signal == "-INT" && sent.unwrap().success() && !out.status.success() {
            let err = text(&out.stderr);
            assert!(err.contains("to go on: jarz reproduce grid.toml --scale quick --out stopped"), "{err}");
            assert!(!j.path("stopped/summary.json").exists(), "results come when all runs are done");
        }
    }
    j.ok(&interrupted);
    assert_eq!(all_rows(&j.path("stopped"), 3), all_rows(&j.path("straight"), 3));
    let without_time = |name: &str| {
        let mut summary = j.json(name);
        for result in summary["results"].as_array_mut().unwrap() {
            result.as_object_mut().unwrap().remove("seconds");
        }
        summary
    };
    assert_eq!(without_time("stopped/summary.json"), without_time("straight/summary.json"));
    for name in VARIANTS {
        assert!(j.path(&format!("stopped/{name}/run-01/report.html")).is_file(), "{name} has its page");
    }
}

#[test]
fn more_runs_and_other_criteria_keep_what_is_done() {
    let j = Jarz::new();
    let file = j.write("grid.toml", experiment(40));
    j.ok(&reproduce("out", &["--runs", "2"]));
    let metrics = j.path("out/ula-h0.1/run-02/metrics.jsonl");
    let before = fs::metadata(&metrics).unwrap().modified().unwrap();

    let other = experiment(40)
        .replace("above = 2.0", "above = 0.0")
        .replace("title = \"Mass\"", "title = \"Masses\"");
    fs::write(file, other).unwrap();
    j.ok(&reproduce("out", &["--runs", "4"]));
    assert_eq!(fs::metadata(&metrics).unwrap().modified().unwrap(), before);
    assert_eq!(rows(&j.path("out/ula-h0.1/run-04/metrics.jsonl")).len(), 5);
    let summary = j.json("out/summary.json");
    assert_eq!(summary["runs"], 4);
    assert_eq!(summary["criteria"][1]["agrees"], "yes");

    // Another configuration is another experiment.
    j.write("grid.toml", experiment(50));
    j.fails(&reproduce("out", &[]), &["--force", "--out"]);
}

#[test]
fn a_dry_run_tells_how_long_it_takes_and_leaves_nothing() {
    let j = Jarz::new();
    j.write("grid.toml", experiment(3000));
    let printed = j.ok(&reproduce("out", &["--dry-run", "--threads", "2"]));
    assert!(printed.contains("15 runs to do, 2 at a time"), "{printed}");
    assert!(VARIANTS.iter().all(|v| printed.contains(v)), "{printed}");
    assert!(!j.path("out").exists() && fs::read_dir(j.dir.path()).unwrap().count() == 1);

    let json = |more: &[&str]| -> Value {
        serde_json::from_str(&j.ok(&reproduce("out", &[&["--dry-run", "--json"], more].concat()))).unwrap()
    };
    // Two estimates cannot be compared on a machine with other work; one of them must add up.
    for runs in [3, 6] {
        let told = json(&["--threads", "1", "--runs", &runs.to_string()]);
        let seconds = |v: &Value, key: &str| v[key].as_f64().unwrap();
        let variants = told["variants"].as_array().unwrap();
        let parts: Vec<f64> = variants.iter().map(|v| seconds(v, "seconds")).collect();
        let (sum, total) = (parts.iter().sum::<f64>(), seconds(&told, "seconds"));
        assert!(parts.len() == 5 && (sum / total - 1.0).abs() < 1e-9, "{told}");
        for (v, part) in variants.iter().zip(parts) {
            let steps = runs as f64 * 3000.0 * seconds(v, "seconds_per_iteration");
            assert!(steps > 0.0 && part >= steps, "{told}");
        }
    }

    // What is done is not counted again.
    j.write("grid.toml", experiment(40));
    j.ok(&reproduce("out", &[]));
    let printed = j.ok(&reproduce("out", &["--dry-run", "--runs", "5"]));
    assert!(printed.contains("10 runs to do"), "{printed}");
}

#[test]
fn mistakes_are_named_with_their_keys() {
    let good = experiment(20);
    for (from, to, words) in [
        ("quantity = \"mass_error\"", "quantity = \"massive\"", &["massive", "mass_error"][..]),
        ("y = [\"mass\"]", "y = []", &["Mass", "y is empty"]),
        ("y = [\"mass\"]", "y = [\"mas\"]", &["mas", "quantity"]),
        ("above = 2.0", "abov = 2.0", &["abov"]),
        ("above = 2.0", "", &["The ESS is at least two", "below"]),
        ("above = 2.0", "above = 2.0\nover = \"twice\"", &["twice"]),
        (
            "variants = [\"ula-h0.1\"]\nquantity = \"ess\"",
            "variants = [\"ula\"]\nquantity = \"ess\"",
            &["ula", "mala-h0.1"],
        ),
        ("x = \"h\"", "x = \"step\"", &["step", "axis"]),
        ("split = \"variant\"", "split = \"colour\"", &["split", "colour"]),
        ("values = [0.05, 0.1]", "values = []", &["axis \"h\"", "values"]),
        ("values = [0.05, 0.1]", "values = [0.05, -0.1]", &["step_size", "-0.1"]),
        ("values = [0.05, 0.1]", "values = [0.05, 0.05]", &["two variants", "ula-h0.05"]),
        ("kernel.step_size={}", "kernel.step_size=0.1", &["axis \"h\"", "{}"]),
        ("kernel.step_size={}", "kernel.stepsize={}", &["stepsize"]),
        ("name = \"mala\"", "name = \"../mala\"", &["../mala"]),
        ("undecided.quick", "undecided.quickly", &["quickly"]),
        ("runs = 3", "runs = -3", &["runs"]),
        ("[[grid.axis]]\nname = \"kernel\"", "[[grid.axis]]\nname = \"\"", &["axis name"]),
    ] {
        assert!(good.contains(from), "{from}");
        let j = Jarz::new();
        j.write("grid.toml", good.replacen(from, to, 1));
        j.fails(&reproduce("out", &[]), words);
        assert!(!j.path("out").exists(), "{to}: nothing is made");
    }
    let j = Jarz::new();
    j.write("grid.toml", &good);
    j.fails(&reproduce("out", &["--seed", "9223372036854775807"]), &["--seed"]);
}
