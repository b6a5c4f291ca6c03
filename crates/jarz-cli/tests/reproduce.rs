//! `jarz reproduce` on a small experiment: results, figures, keeping and resuming runs, and refusals.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

const ALGORITHMS: [&str; 4] = ["jarzynski", "jarzynski-paper-rule", "pcd", "cd"];

/// Two modes in five dimensions, trained for a moment; `variants` says which algorithms.
fn experiment(iterations: u64, log_every: u64, variants: &[&str]) -> String {
    let mut text = format!(
        "title = \"A small mixture\"\npaper = \"Nothing about this one, <really>.\"\n\n\
         [base]\nprecision = \"f32\"\n\
         [base.data]\nkind = \"mixture\"\npoints = 500\ndim = 5\nmeans = [[-4.0], [3.0]]\nmasses = [0.25, 0.75]\n\
         [base.model]\nkind = \"mixture\"\nmodes = 2\nstart = \"origin\"\nmeans = [[-0.1], [0.1]]\n\
         [base.walkers]\ncount = 500\n\
         [base.optimizer]\nrates = {{ log_mass = 0.1, mean = 0.02 }}\nfrozen = [\"log_mass.0\"]\n\
         [base.run]\niterations = {iterations}\nlog_every = {log_every}\n\n\
         [scale.paper]\nruns = 2\nset = [\"walkers.count=600\"]\n"
    );
    for name in variants {
        let changes = match *name {
            "jarzynski" => "",
            "jarzynski-paper-rule" => "\"algorithm.self_interaction=none\"",
            "pcd" => "\"algorithm.kind=pcd\"",
            _ => "\"algorithm.kind=cd\", \"kernel.steps=4\"",
        };
        text += &format!("\n[[variant]]\nname = \"{name}\"\nset = [{changes}]\n");
    }
    text
}

/// A folder with an experiment file in it.
fn place(text: &str) -> (TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("small.toml");
    fs::write(&file, text).unwrap();
    let out = folder.path().join("out");
    (folder, file, out)
}

fn command(file: &Path, out: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jarz"));
    command.arg("reproduce").arg(file).arg("--out").arg(out).args(["--threads", "1"]).args(more);
    command
}

fn run(file: &Path, out: &Path, more: &[&str]) -> Output {
    command(file, out, more).output().unwrap()
}

fn succeed(file: &Path, out: &Path, more: &[&str]) -> Output {
    let output = run(file, out, more);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

fn refuse(file: &Path, out: &Path, more: &[&str]) -> String {
    let output = run(file, out, more);
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!text.contains("panicked"), "{text}");
    text
}

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Logged rows without the time they took.
fn rows(run: &Path) -> Vec<Value> {
    let text = fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    let without_time = |line: &str| {
        let mut row: Value = serde_json::from_str(line).unwrap();
        row.as_object_mut().unwrap().remove("seconds");
        row
    };
    text.lines().map(without_time).collect()
}

#[test]
fn leaves_results_figures_and_a_page() {
    let (_folder, file, out) = place(&experiment(60, 10, &ALGORITHMS));
    let output = succeed(&file, &out, &["--quiet"]);
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(ALGORITHMS.iter().all(|name| table.contains(name)), "{table}");
    assert!(table.contains("mass") && table.contains("KL exact"), "{table}");

    let summary = read_json(&out.join("summary.json"));
    assert_eq!(summary["experiment"], "small");
    assert_eq!(summary["scale"], "quick");
    assert_eq!(summary["runs"], 1);
    assert_eq!(summary["seed"], 1);
    assert!(summary["version"].is_string());
    let results = summary["results"].as_array().unwrap();
    let names: Vec<&str> = results.iter().map(|r| r["variant"].as_str().unwrap()).collect();
    assert_eq!(names, ALGORITHMS);
    for (i, result) in results.iter().enumerate() {
        for key in ["mass", "data_mass", "kl_exact", "seconds"] {
            assert!(result[key].is_f64(), "{key} of {result}");
        }
        for key in ["ess", "resamplings"] {
            assert_eq!(result[key].is_null(), i >= 2, "{key} of {result}");
        }
        assert!(result.get("mass_std_error").is_some_and(Value::is_null));
        assert_eq!(result["means"].as_array().unwrap().len(), 2);
        assert_eq!(result["kl_estimated"].is_null(), i >= 2, "{result}");
        assert!((result["data_mass"].as_f64().unwrap() - 0.25).abs() < 0.1);
    }
    for name in ["small", "ess"] {
        let svg = fs::read_to_string(out.join(format!("figures/{name}.svg"))).unwrap();
        assert!(svg.starts_with("<svg"));
        assert!(fs::read(out.join(format!("figures/{name}.png"))).unwrap().starts_with(b"\x89PNG"));
    }
    let mut pages = vec![out.join("report.html")];
    for name in ALGORITHMS {
        let run = out.join(name).join("run-01");
        assert!(run.join("figures/training.svg").is_file() && run.join("figures/training.png").is_file());
        pages.push(run.join("report.html"));
    }
    for page in pages {
        let html = fs::read_to_string(page).unwrap();
        for attribute in ["src=\"", "href=\""] {
            let loads = html.match_indices(attribute).map(|(i, _)| &html[i + attribute.len()..]);
            // Besides pictures in the page itself, only links to files beside it.
            let here = |address: &str| address.starts_with("data:") || address.starts_with("./");
            assert!(loads.into_iter().all(here));
        }
        assert!(!html.contains("<really>"), "text is escaped");
    }
}

#[test]
fn several_runs_have_errors_and_their_own_seeds() {
    let (_folder, file, out) = place(&experiment(30, 10, &ALGORITHMS[..1]));
    let output = succeed(&file, &out, &["--scale", "paper", "--seed", "7", "--json", "--quiet"]);
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary, read_json(&out.join("summary.json")));
    assert_eq!((&summary["runs"], &summary["seed"]), (&2.into(), &7.into()));
    assert!(summary["results"][0]["mass_std_error"].as_f64().is_some_and(|e| e > 0.0));
    for (run, seed) in [("run-01", 7), ("run-02", 8)] {
        let config = fs::read_to_string(out.join("jarzynski").join(run).join("run.toml")).unwrap();
        assert!(config.contains(&format!("seed = {seed}")) && config.contains("count = 600"), "{config}");
    }
    // What was resolved is an experiment itself and repeats this one.
    let again = out.with_file_name("again");
    succeed(&out.join("experiment.toml"), &again, &["--scale", "paper", "--quiet"]);
    let runs = ["out", "again"].map(|o| rows(&out.with_file_name(o).join("jarzynski/run-02")));
    assert_eq!(runs[0], runs[1]);
}

#[test]
fn finished_runs_are_kept_and_unfinished_ones_resumed() {
    let (_folder, file, out) = place(&experiment(60, 10, &ALGORITHMS));
    succeed(&file, &out, &["--quiet"]);
    let summaries = ALGORITHMS.map(|name| out.join(name).join("run-01/summary.json"));
    let before: Vec<_> = summaries.iter().map(|s| fs::metadata(s).unwrap().modified().unwrap()).collect();
    let results = fs::read(out.join("summary.json")).unwrap();
    let curve = rows(&out.join("pcd/run-01"));

    fs::remove_file(&summaries[2]).unwrap();
    fs::remove_file(out.join("summary.json")).unwrap();
    succeed(&file, &out, &["--quiet"]);
    for (i, summary) in summaries.iter().enumerate() {
        let kept = fs::metadata(summary).unwrap().modified().unwrap() == before[i];
        assert_eq!(kept, i != 2, "{}", summary.display());
    }
    assert_eq!(rows(&out.join("pcd/run-01")), curve);
    let mass = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap()["results"][2]["mass"].clone();
    assert_eq!(mass(&fs::read(out.join("summary.json")).unwrap()), mass(&results));
}

#[test]
fn another_experiment_needs_force() {
    let (_folder, file, out) = place(&experiment(20, 10, &ALGORITHMS[2..]));
    succeed(&file, &out, &["--quiet"]);
    let text = refuse(&file, &out, &["--seed", "5"]);
    assert!(text.contains("--force") && text.contains("--out"), "{text}");
    fs::write(out.join("notes.txt"), "mine").unwrap();
    fs::write(out.join("cd/run-01/notes.txt"), "mine too").unwrap();

    fs::write(&file, experiment(20, 10, &ALGORITHMS[2..3])).unwrap();
    let text = refuse(&file, &out, &[]);
    assert!(text.contains("--force"), "{text}");
    assert!(out.join("cd/run-01/run.toml").is_file(), "a refusal changes nothing");
    succeed(&file, &out, &["--force", "--quiet"]);
    assert_eq!(read_json(&out.join("summary.json"))["results"].as_array().unwrap().len(), 1);
    assert!(!out.join("cd/run-01/run.toml").exists(), "the old run is gone");
    assert!(
        out.join("notes.txt").is_file() && out.join("cd/run-01/notes.txt").is_file(),
        "what is not ours stays"
    );
}

#[test]
fn a_folder_with_something_else_in_it_is_left_alone() {
    let (_folder, file, out) = place(&experiment(20, 10, &ALGORITHMS[..1]));
    fs::create_dir(&out).unwrap();
    fs::write(out.join("thesis.tex"), "years of work").unwrap();
    for more in [&[][..], &["--force"]] {
        let text = refuse(&file, &out, more);
        assert!(text.contains("not empty"), "{text}");
    }
    assert_eq!(fs::read_dir(&out).unwrap().count(), 1);
}

#[test]
fn broken_experiments_are_explained() {
    let good = experiment(20, 10, &ALGORITHMS[..1]);
    for (text, word) in [
        ("title = ".to_string(), "not a valid experiment"),
        (good.replace("[[variant]]", "[[variants]]"), "variant"),
        (good.replace("name = \"jarzynski\"", "name = \"../away\""), "names a folder"),
        (good.replace("set = []", "set = [\"kernel.steps=0\"]"), "kernel.steps"),
        (good.replace("set = []", "set = [\"kernel.stepps=2\"]"), "stepps"),
        (good.replace("set = []", "set = [\"seed=2\"]"), "seed"),
        (good.replace("set = []", "set = [\"run.runs=2\"]"), "--runs"),
        (good.replace("modes = 2", "modes = 1").replace("means = [[-0.1], [0.1]]\n", ""), "modes"),
        (good.replace("count = 500", "count = \"many\""), "count"),
        (good.clone() + &good[good.find("[[variant]]").unwrap()..], "two variants"),
    ] {
        let (_folder, file, out) = place(&text);
        let complaint = refuse(&file, &out, &[]);
        assert!(complaint.contains(word), "{word}: {complaint}");
        assert!(!out.exists(), "nothing is made for: {complaint}");
    }
    let (_folder, file, out) = place(&good);
    assert!(refuse(&file, &out, &["--runs", "0"]).contains("runs"));
    let text = refuse(Path::new("no-such-experiment"), &out, &[]);
    assert!(text.contains("gmm") && text.contains("no-such-experiment"), "{text}");
}

#[test]
fn the_list_names_the_built_in_experiments() {
    let output = Command::new(env!("CARGO_BIN_EXE_jarz")).args(["reproduce", "list"]).output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    for name in [
        "gmm",
        "gmm-thresholds",
        "pcd-oscillations",
        "no-resampling",
        "resampling-routines",
        "mode-collapse-1d",
        "self-interaction",
        "kernels",
    ] {
        assert!(text.lines().any(|line| line.split_whitespace().next() == Some(name)), "{name}: {text}");
    }
}

#[cfg(unix)]
#[test]
fn an_interrupted_experiment_goes_on_as_if_nothing_had_happened() {
    let (_folder, file, out) = place(&experiment(20_000, 100, &ALGORITHMS[..1]));
    let child =
        command(&file, &out, &["--quiet"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let metrics = out.join("jarzynski/run-01/metrics.jsonl");
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while fs::read_to_string(&metrics).map_or(0, |text| text.lines().count()) < 3 {
        assert!(std::time::Instant::now() < deadline, "the run does not get going");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let signal = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(signal.success());
    let output = child.wait_with_output().unwrap();
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("to go on: jarz reproduce"), "{text}");
    assert_eq!(read_json(&out.join("jarzynski/run-01/summary.json"))["stop_reason"], "interrupted");
    assert!(!out.join("summary.json").exists());

    succeed(&file, &out, &["--quiet"]);
    let straight = out.with_file_name("straight");
    succeed(&file, &straight, &["--quiet"]);
    assert_eq!(rows(&out.join("jarzynski/run-01")), rows(&straight.join("jarzynski/run-01")));
}
