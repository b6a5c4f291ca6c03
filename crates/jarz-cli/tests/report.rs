//! `jarz report`: pages made again from what a folder holds, and comparisons.

mod common;

use common::{Jarz, SMALL};
use std::fs;

fn train(j: &Jarz, out: &str, more: &[&str]) {
    j.write("small.toml", SMALL);
    j.ok(
        &[&["train", "small.toml", "--out", out, "--set", "run.iterations=60", "--quiet"][..], more].concat()
    );
}

fn read(j: &Jarz, name: &str) -> String {
    fs::read_to_string(j.path(name)).unwrap()
}

#[test]
fn the_page_of_a_run_is_made_again() {
    let j = Jarz::new();
    train(&j, "run", &[]);
    let (page, picture) = (read(&j, "run/report.html"), read(&j, "run/figures/training.svg"));
    fs::remove_file(j.path("run/report.html")).unwrap();
    fs::remove_dir_all(j.path("run/figures")).unwrap();
    let written = j.ok(&["report", "run"]);
    assert_eq!(written, "run/figures/training.svg\nrun/figures/training.png\nrun/report.html\n");
    assert!(
        read(&j, "run/report.html") == page && read(&j, "run/figures/training.svg") == picture,
        "as it was"
    );
    // Somewhere else: only the page, and the folder stays as it is.
    fs::remove_file(j.path("run/report.html")).unwrap();
    let written = j.ok(&["report", "run", "--out", "page.html", "--json"]);
    let written: serde_json::Value = serde_json::from_str(&written).unwrap();
    assert_eq!(written["written"], serde_json::json!(["page.html"]));
    assert!(read(&j, "page.html") == page && !j.path("run/report.html").exists());
    j.fails(&["report", "run", "--out", "nowhere/page.html"], &["nowhere/page.html"]);
}

#[test]
fn unfinished_runs() {
    let j = Jarz::new();
    train(&j, "run", &[]);
    fs::remove_file(j.path("run/summary.json")).unwrap();
    let rows = read(&j, "run/metrics.jsonl");
    let half: String = rows.lines().take(3).flat_map(|l| [l, "\n"]).collect();
    j.write("run/metrics.jsonl", half + "{\"iteration\":30,");
    j.ok(&["report", "run"]);
    let page = read(&j, "run/report.html");
    for part in ["first 20 of 60", "20 of 60 iterations so far", "At iteration 20", "seed 3"] {
        assert!(page.contains(part), "no '{part}'");
    }

    train(&j, "many", &["--runs", "3"]);
    fs::remove_dir_all(j.path("many/runs/run-03")).unwrap();
    fs::remove_file(j.path("many/runs/run-02/summary.json")).unwrap();
    fs::remove_file(j.path("many/summary.json")).unwrap();
    j.ok(&["report", "many"]);
    let page = read(&j, "many/report.html");
    assert!(page.contains("1 of 3 runs are finished, 2 have begun"), "says what is missing");
    fs::remove_dir_all(j.path("many/runs")).unwrap();
    j.ok(&["report", "many"]);
    assert!(read(&j, "many/report.html").contains("0 of 3 runs are finished, 0 have begun"));
}

#[test]
fn runs_are_compared() {
    let j = Jarz::new();
    train(&j, "a/run", &[]);
    train(&j, "b/run", &["--set", "kernel.kind=mala"]);
    train(&j, "many", &["--runs", "2"]);
    j.ok(&["report", "a/run", "b/run", "many"]);
    let page = read(&j, "comparison.html");
    // Folders of the same name are told apart, and what differs is listed, nothing else.
    for part in [
        "a/run, b/run, many compared",
        "<td>kernel.kind</td><td>ula</td><td>mala</td><td>ula</td>",
        "<td>run.runs</td>",
    ] {
        assert!(page.contains(part), "no '{part}'");
    }
    assert!(!page.contains("<td>kernel.step_size</td>") && !page.contains("<td>seed</td>"));
    let summary = j.json("a/run/summary.json");
    let exact = format!("{:.4}", summary["cross_entropy_exact"].as_f64().unwrap());
    assert!(page.contains(&exact), "the final figures are those of the run");
    // A page of ours is replaced, a file that is none is not, unless it is named.
    j.ok(&["report", "b/run", "a/run"]);
    assert!(read(&j, "comparison.html").contains("b/run, a/run compared"));
    j.write("comparison.html", "my own notes");
    j.fails(&["report", "a/run", "many"], &["comparison.html", "--out"]);
    assert_eq!(read(&j, "comparison.html"), "my own notes");
    // One that is no run spoils the comparison before anything is written.
    j.fails(&["report", "a/run", "nowhere", "--out", "new.html"], &["nowhere"]);
    assert!(!j.path("new.html").exists());
    j.ok(&["report", "a/run", "a/run", "--out", "twice.html"]);
    assert!(read(&j, "twice.html").contains("They are the same in all keys."));
}

/// Folders of runs below a folder, as an experiment has them: compared where asked for, never in place of the experiment's own page.
#[test]
fn collections_of_runs() {
    let j = Jarz::new();
    train(&j, "all/ula/run-01", &[]);
    train(&j, "all/ula/run-02", &["--set", "seed=4"]);
    train(&j, "all/mala/run-01", &["--set", "kernel.kind=mala"]);
    j.fails(&["report", "all"], &["all", "--out"]);
    assert!(!j.path("all/report.html").exists());
    j.ok(&["report", "all", "--out", "all.html"]);
    let page = read(&j, "all.html");
    assert!(page.contains("mala, ula compared") && page.contains("<dd>3, 4</dd>"), "groups and seeds");
    assert!(j.ok(&["watch", "all"]).contains("of 3 runs"));
}
