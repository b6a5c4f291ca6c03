//! Killed at random moments, a run always resumes, and ends exactly like one that was left alone.

mod common;

use common::{Jarz, SMALL, final_state, rows, text};
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
fn killed_thirty_times_a_run_ends_bit_identically() {
    let j = Jarz::new();
    j.write("small.toml", SMALL);
    let config = ["--set", "run.iterations=6000", "--set", "run.checkpoint_seconds=0.02", "--quiet"];
    let start = Instant::now();
    j.ok(&[&["train", "small.toml", "--out", "whole"][..], &config].concat());
    let whole = start.elapsed();

    let mut child = j
        .command(&[&["train", "small.toml", "--out", "killed"][..], &config].concat())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while !j.path("killed/run.toml").exists() {
        std::thread::sleep(Duration::from_millis(2));
    }
    // Moments from a fixed generator; short enough that the run lives through all of them.
    let random = jarz::Random::new(20);
    let (mut kills, mut finished_early) = (0, 0);
    for moment in 0..30u64 {
        let wait = whole.mul_f64(0.05 * random.uniform(0, moment, jarz::Purpose::User));
        std::thread::sleep(wait);
        match child.try_wait().unwrap() {
            None => {
                child.kill().unwrap();
                kills += 1;
            }
            Some(status) => {
                assert!(status.success(), "resume {moment} failed");
                finished_early += 1;
            }
        }
        child.wait().unwrap();
        child = j
            .command(&["resume", "killed", "--quiet"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
    }
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert!(kills >= 20, "only {kills} kills hit a running process, {finished_early} runs were done");
    assert_eq!(rows(&j.path("killed/metrics.jsonl")), rows(&j.path("whole/metrics.jsonl")));
    assert!(final_state(&j.path("killed"), 6000).same_bits(&final_state(&j.path("whole"), 6000)));
    let (a, b) = (j.json("killed/summary.json"), j.json("whole/summary.json"));
    for key in ["log_z", "log_z_std_error", "cross_entropy", "masses", "means", "ess", "resamplings"] {
        assert_eq!(a[key], b[key], "{key}");
    }
}
