//! Ranks that die, and errors that only one of them sees.

use crate::common::{Jarz, SMALL, final_state, rows, text};
use crate::mpirun;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A job that is not over by then hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// Waits for a job to end by itself.
fn ends(child: &mut Child) -> std::process::ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if start.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("the job hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The processes that a launcher has started.
fn ranks_of(launcher: u32) -> Vec<u32> {
    let children = format!("/proc/{launcher}/task/{launcher}/children");
    let children = std::fs::read_to_string(children).unwrap_or_default();
    let is_rank = |pid: &u32| {
        std::fs::read_link(format!("/proc/{pid}/exe"))
            .is_ok_and(|exe| exe == Path::new(env!("CARGO_BIN_EXE_jarz")))
    };
    children.split_whitespace().filter_map(|pid| pid.parse().ok()).filter(is_rank).collect()
}

#[test]
fn a_rank_killed_ten_times_takes_the_job_down_and_nothing_is_lost() {
    let j = Jarz::new();
    j.write("c.toml", SMALL);
    let config = ["--set", "run.iterations=3000", "--set", "run.checkpoint_seconds=0.02", "--quiet"];
    j.ok(&[&["train", "c.toml", "--out", "whole"][..], &config].concat());
    let random = jarz::Random::new(21);
    let (mut kills, mut messages) = (0, 0);
    for moment in 0..40u64 {
        if kills == 10 {
            break;
        }
        let size = 2 + (moment % 3) as usize;
        let args = match j.path("killed/run.toml").exists() {
            true => vec!["resume", "killed", "--quiet"],
            false => [&["train", "c.toml", "--out", "killed"][..], &config].concat(),
        };
        let mut job = mpirun(&j, size, &args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let born = Instant::now();
        while ranks_of(job.id()).len() < size
            && job.try_wait().unwrap().is_none()
            && born.elapsed() < PATIENCE
        {
            std::thread::sleep(Duration::from_millis(2));
        }
        std::thread::sleep(Duration::from_secs_f64(0.5 * random.uniform(0, moment, jarz::Purpose::User)));
        let ranks = ranks_of(job.id());
        let victim = ranks.get(random.below(1, moment, jarz::Purpose::User, size as u64) as usize);
        let killed = victim.is_some_and(|pid| {
            Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success()
        });
        let status = ends(&mut job);
        if killed && !status.success() {
            kills += 1;
            let said = text(&job.wait_with_output().unwrap().stderr);
            messages +=
                (said.contains("signal 9") || said.contains("killed") || said.contains("Killed")) as u32;
        }
    }
    assert_eq!(kills, 10, "too few kills hit a running job");
    assert_eq!(messages, 10, "a death without a word");
    let mut job = mpirun(&j, 2, &["resume", "killed", "--quiet"]).spawn().unwrap();
    while job.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(job.wait().unwrap().success());
    assert_eq!(rows(&j.path("killed/metrics.jsonl")), rows(&j.path("whole/metrics.jsonl")));
    assert!(final_state(&j.path("killed"), 3000).same_bits(&final_state(&j.path("whole"), 3000)));
}

#[test]
fn errors_end_all_ranks_with_one_word() {
    let j = Jarz::new();
    j.write("c.toml", SMALL);
    std::fs::create_dir(j.path("taken")).unwrap();
    j.write("taken/mine.txt", "not a run");
    let cases: [(&[&str], &str); 4] = [
        (&["train", "c.toml", "--out", "taken"], "taken"),
        (&["train", "missing.toml", "--out", "x"], "missing.toml"),
        (&["train", "c.toml", "--out", "x", "--set", "kernel.step_size=1e300"], "diverged"),
        (&["sample", "x"], "only 'jarz train'"),
    ];
    for (args, word) in cases {
        let mut job = mpirun(&j, 3, args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        assert!(!ends(&mut job).success(), "{args:?}");
        let said = text(&job.wait_with_output().unwrap().stderr);
        assert_eq!(said.matches("error on rank").count(), 1, "{args:?}: {said}");
        assert!(said.contains(word), "{args:?}: {said}");
    }
    assert!(j.path("taken/mine.txt").exists());
}

/// What Ctrl-C does to all processes of a terminal, and `mpirun` to its ranks: they agree on where to stop.
#[test]
fn stopping_one_rank_stops_all_after_the_iteration() {
    let j = Jarz::new();
    j.write("c.toml", SMALL);
    let args = ["train", "c.toml", "--out", "r", "--quiet", "--set", "run.iterations=10000000"];
    let mut job = mpirun(&j, 3, &args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let start = Instant::now();
    while !(j.path("r/metrics.jsonl").exists() && ranks_of(job.id()).len() == 3) {
        assert!(start.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(200));
    // Any rank may be told.
    let pid = ranks_of(job.id())[2].to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert!(!ends(&mut job).success());
    let said = text(&job.wait_with_output().unwrap().stderr);
    assert!(said.contains("nothing is lost"), "{said}");
    let summary = j.json("r/summary.json");
    assert_eq!(summary["stop_reason"], "interrupted");
    assert!(final_state(&j.path("r"), summary["iterations"].as_u64().unwrap()).arrays.contains_key("theta"));
}
