//! `jarz watch`: a run in the terminal, or as one plain picture.
#![cfg(unix)]

mod common;

use common::{Jarz, SMALL};
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

fn train(j: &Jarz, out: &str, more: &[&str]) {
    j.write("small.toml", SMALL);
    j.ok(
        &[&["train", "small.toml", "--out", out, "--set", "run.iterations=60", "--quiet"][..], more].concat()
    );
}

#[test]
fn one_picture_as_plain_text() {
    let j = Jarz::new();
    train(&j, "run", &[]);
    // The output is no terminal, so once is what happens anyway.
    let picture = j.ok(&["watch", "run"]);
    assert_eq!(picture, j.ok(&["watch", "run", "--once"]));
    assert!(!picture.contains('\u{1b}'), "plain text has no escape sequences");
    let s = j.json("run/summary.json");
    let mass = format!("{:.3}", s["masses"][0].as_f64().unwrap());
    for part in [
        "run: finished",
        "60 of 60",
        "cross-entropy, nats",
        "from the weights",
        "exact",
        "ESS / N",
        "mode 1",
        &mass,
    ] {
        assert!(picture.contains(part), "no '{part}' in\n{picture}");
    }
    // Each curve has its sign somewhere below its title.
    let charts: String = picture.lines().skip(3).filter(|l| l.contains('│')).collect();
    assert!(charts.matches('o').count() > 20 && charts.matches('*').count() > 20, "{picture}");
    assert!(picture.lines().all(|line| line.chars().count() <= 100));

    train(&j, "pcd", &["--set", "algorithm.kind=pcd"]);
    let picture = j.ok(&["watch", "pcd"]);
    assert!(!picture.contains("ESS") && picture.contains("(exact)"), "{picture}");
}

#[test]
fn unfinished_torn_and_damaged_runs() {
    let j = Jarz::new();
    train(&j, "run", &[]);
    let all = std::fs::read_to_string(j.path("run/metrics.jsonl")).unwrap();
    let rows: Vec<&str> = all.lines().collect();
    std::fs::remove_file(j.path("run/summary.json")).unwrap();
    j.write("run/metrics.jsonl", format!("{}\n{}\n{}", rows[0], rows[1], &rows[2][..80]));
    let picture = j.ok(&["watch", "run"]);
    assert!(
        picture.contains("not finished") && picture.contains("10 of 60") && !picture.contains("line"),
        "{picture}"
    );
    j.write("run/metrics.jsonl", format!("{}\n{}\n{}\n", rows[0], &rows[1][..80], rows[2]));
    let picture = j.ok(&["watch", "run"]);
    assert!(picture.contains("20 of 60") && picture.contains("line 2"), "{picture}");
    // A report is not made from what cannot be read.
    let before = std::fs::read(j.path("run/report.html")).unwrap();
    j.fails(&["report", "run"], &["metrics.jsonl", "line 2"]);
    assert_eq!(std::fs::read(j.path("run/report.html")).unwrap(), before);
    std::fs::remove_file(j.path("run/metrics.jsonl")).unwrap();
    assert!(j.ok(&["watch", "run"]).contains("no rows yet"));
    j.ok(&["report", "run"]);
}

#[test]
fn of_repeated_runs_the_one_written_last() {
    let j = Jarz::new();
    train(&j, "many", &["--runs", "2"]);
    let picture = j.ok(&["watch", "many"]);
    assert!(picture.contains("many/run-02 (2 of 2 runs)"), "{picture}");
}

#[test]
fn folders_that_hold_no_run() {
    let j = Jarz::new();
    std::fs::create_dir(j.path("empty")).unwrap();
    j.write("file", "");
    for command in ["watch", "report"] {
        j.fails(&[command, "nowhere"], &["nowhere"]);
        j.fails(&[command, "file"], &["file"]);
        j.fails(&[command, "empty"], &["empty", "run.toml"]);
    }
}

/// On a terminal: it grows with the run, q ends it, and the terminal is as it was.
#[test]
fn on_a_terminal() {
    let j = Jarz::new();
    train(&j, "run", &[]);
    let all = std::fs::read_to_string(j.path("run/metrics.jsonl")).unwrap();
    let rows: Vec<&str> = all.lines().collect();
    std::fs::remove_file(j.path("run/summary.json")).unwrap();
    j.write("run/metrics.jsonl", format!("{}\n", rows[..3].join("\n")));
    let line = format!("stty rows 30 cols 100; exec '{}' watch run", env!("CARGO_BIN_EXE_jarz"));
    // 'script' of util-linux gives it a terminal.
    let mut child = Command::new("script")
        .args(["-q", "-e", "-c", &line, "/dev/null"])
        .current_dir(j.dir.path())
        .env("TERM", "xterm-256color")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script of util-linux");
    let seen = Arc::new(Mutex::new(String::new()));
    let mut output = child.stdout.take().unwrap();
    let writer = seen.clone();
    let reader = std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(n) = output.read(&mut buffer)
            && n > 0
        {
            writer.lock().unwrap().push_str(&String::from_utf8_lossy(&buffer[..n]));
        }
    });
    let wait = |word: &str| {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !seen.lock().unwrap().contains(word) {
            assert!(Instant::now() < deadline, "no '{word}' in {:?}", seen.lock().unwrap());
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    wait("20 of 60 iterations");
    wait("\u{1b}[?1049h");
    // Only cells that differ are drawn again, so a text that was not there before at all is waited for.
    j.write("run/metrics.jsonl", format!("{}\noops\n", rows.join("\n")));
    wait("line 8 is");
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"h").unwrap();
    wait("all");
    input.write_all(b"q").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    reader.join().unwrap();
    let seen = seen.lock().unwrap();
    let end = &seen[seen.rfind("\u{1b}[?1049l").expect("leaves the alternate screen")..];
    assert!(end.contains("\u{1b}[?25h") || seen.contains("\u{1b}[?25h"), "shows the cursor again");
}
