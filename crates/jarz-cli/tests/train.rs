//! The whole way with the real program: init, train, stop, resume, sample, evaluate.

mod common;

use common::{Jarz, SMALL, final_state, rows, text};
use std::process::Stdio;
use std::time::Duration;

#[test]
fn train_leaves_a_complete_run_folder() {
    let j = Jarz::new();
    j.write("small.toml", SMALL);
    let out = j.ok(&["train", "small.toml", "--out", "run"]);
    assert!(out.contains("log Z") && out.contains("cross-entropy") && out.contains("±"), "{out}");
    let s = j.json("run/summary.json");
    let keys = [
        "algorithm",
        "iterations",
        "stop_reason",
        "log_z",
        "log_z_std_error",
        "cross_entropy",
        "cross_entropy_std_error",
        "ess",
        "resamplings",
        "seconds",
        "masses",
        "means",
    ];
    for key in keys {
        assert!(!s[key].is_null(), "no {key} in {s}");
    }
    assert_eq!(s["algorithm"], "jarzynski");
    assert_eq!(s["iterations"], 300);
    assert_eq!(s["stop_reason"], "finished");
    assert_eq!(s["self_interaction"], "leave-one-out");
    // 300 iterations, a row every 10, first and last among them.
    let rows = rows(&j.path("run/metrics.jsonl"));
    assert_eq!(rows.len(), 31);
    assert_eq!(rows[30]["iteration"], 300);
    for file in ["run.toml", "report.html", "figures"] {
        assert!(j.path("run").join(file).exists(), "no {file}");
    }
    let figures: Vec<_> =
        std::fs::read_dir(j.path("run/figures")).unwrap().map(|f| f.unwrap().path()).collect();
    assert!(figures.iter().any(|f| f.extension().unwrap() == "svg"));
    assert!(figures.iter().any(|f| f.extension().unwrap() == "png"));
    assert_eq!(std::fs::read_dir(j.path("run/checkpoints")).unwrap().count(), 2, "the last two are kept");

    // The resolved configuration repeats the run to the last digit, and threads make no difference.
    j.ok(&["train", "run/run.toml", "--out", "again", "--threads", "1", "--quiet"]);
    j.ok(&["train", "run/run.toml", "--out", "four", "--threads", "4", "--quiet"]);
    for other in ["again", "four"] {
        assert_eq!(common::rows(&j.path(other).join("metrics.jsonl")), rows, "{other}");
        assert!(final_state(&j.path(other), 300).same_bits(&final_state(&j.path("run"), 300)), "{other}");
    }
    let out = j.ok(&["train", "small.toml", "--out", "other", "--set", "seed=4", "--quiet", "--json"]);
    let other: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_ne!(other["log_z"], s["log_z"], "another seed, another run");
}

#[test]
fn existing_runs_are_safe() {
    let j = Jarz::new();
    j.write("small.toml", SMALL);
    let quick = ["train", "small.toml", "--out", "run", "--set", "run.iterations=20", "--quiet"];
    j.ok(&quick);
    let before = std::fs::read(j.path("run/summary.json")).unwrap();
    j.fails(&quick, &["already holds a run", "--force", "jarz resume"]);
    assert_eq!(std::fs::read(j.path("run/summary.json")).unwrap(), before);
    j.ok(&[&quick[..], &["--force"]].concat());
    std::fs::create_dir(j.path("precious")).unwrap();
    j.write("precious/thesis.txt", "years of work");
    for force in [&[][..], &["--force"][..]] {
        let args = [&["train", "small.toml", "--out", "precious", "--quiet"][..], force].concat();
        j.fails(&args, &["not a run folder"]);
    }
    assert_eq!(std::fs::read_to_string(j.path("precious/thesis.txt")).unwrap(), "years of work");
}

/// Ctrl-C: a checkpoint, a word on how to resume, exit code 130; the resumed run equals the uninterrupted one.
#[cfg(unix)]
#[test]
fn interrupt_and_resume_give_the_same_result() {
    let j = Jarz::new();
    j.write("small.toml", SMALL);
    let long = ["--set", "run.iterations=3000", "--quiet"];
    j.ok(&[&["train", "small.toml", "--out", "whole"][..], &long].concat());
    let child = j
        .command(&[&["train", "small.toml", "--out", "cut"][..], &long].concat())
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    while !j.path("cut/metrics.jsonl").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let status = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(130), "{}", text(&out.stderr));
    assert!(text(&out.stderr).contains("jarz resume cut"), "{}", text(&out.stderr));
    assert_eq!(j.json("cut/summary.json")["stop_reason"], "interrupted");
    j.ok(&["resume", "cut", "--quiet"]);
    assert_eq!(rows(&j.path("cut/metrics.jsonl")), rows(&j.path("whole/metrics.jsonl")));
    assert!(final_state(&j.path("cut"), 3000).same_bits(&final_state(&j.path("whole"), 3000)));
    // Resuming what is finished changes nothing; extending it does more.
    j.ok(&["resume", "cut", "--quiet"]);
    assert_eq!(rows(&j.path("cut/metrics.jsonl")).len(), 301);
    j.ok(&["resume", "cut", "--iterations", "3100", "--quiet"]);
    assert_eq!(j.json("cut/summary.json")["iterations"], 3100);
}

#[test]
fn a_corrupt_checkpoint_falls_back_on_the_one_before() {
    let j = Jarz::new();
    j.write("small.toml", SMALL);
    j.ok(&["train", "small.toml", "--out", "run", "--quiet"]);
    let expected = rows(&j.path("run/metrics.jsonl"));
    let newest = j.path("run/checkpoints/000000000300.safetensors");
    let mut bytes = std::fs::read(&newest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&newest, &bytes).unwrap();
    let out = j.run(&["resume", "run", "--quiet"]);
    let err = text(&out.stderr);
    assert!(out.status.success() && err.contains("warning") && err.contains("000000000275"), "{err}");
    assert_eq!(rows(&j.path("run/metrics.jsonl")), expected);
    for name in ["000000000300", "000000000275"] {
        std::fs::write(j.path(&format!("run/checkpoints/{name}.safetensors")), b"gone").unwrap();
    }
    j.fails(&["resume", "run"], &["000000000300", "000000000275"]);
    j.fails(&["sample", "run"], &["000000000300"]);
}

/// The user story: my own file, a likelihood with an error bar, samples.
#[test]
fn own_data_sample_and_evaluate() {
    let j = Jarz::new();
    // Two clusters on a grid of normal quantiles: no randomness needed.
    let mut csv = String::from("a,b\n");
    for i in 0..600 {
        let angle = i as f64 * 2.399963;
        let radius = (-2.0 * ((i as f64 + 0.5) / 600.0).ln()).sqrt();
        let shift = if i % 3 == 0 { -4.0 } else { 4.0 };
        csv += &format!("{},{}\n", shift + radius * angle.cos(), 1.0 + radius * angle.sin());
    }
    j.write("points.csv", &csv);
    j.ok(&["init", "--data", "points.csv"]);
    j.fails(&["init", "--data", "points.csv"], &["jarz.toml", "--force"]);
    let small =
        ["--set", "walkers.count=2000", "--set", "run.iterations=1500", "--set", "optimizer.rates.mean=0.05"];
    j.ok(&[&["train", "jarz.toml", "--out", "run", "--quiet"][..], &small].concat());
    let e: serde_json::Value =
        serde_json::from_str(&j.ok(&["evaluate", "run", "--data", "points.csv", "--json"])).unwrap();
    let (h, se) = (e["cross_entropy"].as_f64().unwrap(), e["cross_entropy_std_error"].as_f64().unwrap());
    let summary = j.json("run/summary.json");
    assert!((h - summary["cross_entropy"].as_f64().unwrap()).abs() < 1e-9, "same data, same figure");
    assert!(se > 0.0 && se < 0.5, "{se}");
    // Entropy of the truth: two unit Gaussians in 2-D with masses 1/3 and 2/3, far apart.
    let truth = (std::f64::consts::TAU * std::f64::consts::E).ln()
        - (1.0f64 / 3.0 * (1.0f64 / 3.0).ln() + 2.0 / 3.0 * (2.0f64 / 3.0).ln());
    assert!((h - truth).abs() < 0.15 + 4.0 * se, "cross-entropy {h} +- {se}, truth {truth}");

    let out = j.ok(&["sample", "run", "--n", "5000", "--json"]);
    let info: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((info["samples"].as_u64(), info["kernel_steps"].as_u64()), (Some(5000), Some(100)));
    assert!(info["ess"].as_f64().unwrap() > 0.3);
    let read =
        |name: &str| jarz_data::read_table(j.path("run/samples").join(name), &Default::default()).unwrap();
    let (weighted, logs, equal) = (read("weighted.npy"), read("log_weights.npy"), read("equal.npy"));
    assert_eq!((weighted.rows, weighted.cols, logs.rows, equal.rows), (5000, 2, 5000, 5000));
    let left =
        |t: &jarz_data::Table| t.values.chunks(2).filter(|r| r[0] < 0.0).count() as f64 / t.rows as f64;
    let p = jarz::weights::normalise(&logs.values);
    let weighted_left: f64 =
        weighted.values.chunks(2).zip(&p).filter(|(r, _)| r[0] < 0.0).map(|(_, p)| p).sum();
    // Mass of the left cluster: 1/3, within 5 standard errors of 2000 walkers with ESS above a half.
    let tolerance = 5.0 * (0.22f64 / 1000.0).sqrt();
    assert!((weighted_left - 1.0 / 3.0).abs() < tolerance, "{weighted_left}");
    assert!((left(&equal) - weighted_left).abs() < 0.02);
    j.fails(&["sample", "run", "--n", "10"], &["already holds samples", "--force"]);
    let out = j.ok(&["sample", "run", "--n", "10", "--out", "few"]);
    assert!(out.contains("10 samples"), "{out}");
}

#[test]
fn repeated_runs_give_error_bars() {
    let j = Jarz::new();
    j.write("small.toml", SMALL);
    j.ok(&["train", "small.toml", "--out", "many", "--runs", "3", "--set", "run.iterations=60", "--quiet"]);
    let s = j.json("many/summary.json");
    let single: Vec<f64> = (1..=3)
        .map(|r| j.json(&format!("many/runs/run-0{r}/summary.json"))["log_z"].as_f64().unwrap())
        .collect();
    let mean = single.iter().sum::<f64>() / 3.0;
    let sd = (single.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 2.0).sqrt();
    assert!((s["log_z"].as_f64().unwrap() - mean).abs() < 1e-12);
    assert!((s["log_z_std_error"].as_f64().unwrap() - sd / 3f64.sqrt()).abs() < 1e-12);
    assert!(sd > 0.0 && j.path("many/report.html").exists());
    // An unfinished set goes on where it was.
    std::fs::remove_dir_all(j.path("many/runs/run-03")).unwrap();
    j.ok(&["resume", "many", "--quiet"]);
    assert_eq!(j.json("many/summary.json")["log_z"], s["log_z"]);
}

#[test]
fn every_algorithm_kernel_and_optimizer_runs() {
    let j = Jarz::new();
    j.write("small.toml", SMALL);
    let variants: &[&[&str]] = &[
        &["algorithm.kind=pcd"],
        &["algorithm.kind=cd", "kernel.steps=4"],
        &["algorithm.kind=unweighted"],
        &["algorithm.kind=jarzynski-continuous", "kernel.step_size=0.01"],
        &["algorithm.self_interaction=none", "precision=f32"],
        &["kernel.kind=mala", "kernel.adapt={target=0.7}"],
        &["walkers.batch=100", "resampling.scheme=residual"],
        &["optimizer.kind=momentum", "optimizer.beta1=0.5", "resampling.scheme=multinomial"],
        &["optimizer.kind=adam", "optimizer.rates={all=0.01}", "resampling.trigger=entropy"],
        &["optimizer.kind=adagrad", "optimizer.trust_region=0.01", "data.batch=100"],
        &["kernel.clip_norm=3.0", "resampling.trigger=every", "resampling.every=7"],
        &["kernel.schedule={shape=\"cosine\", end=0.1}", "optimizer.schedule={shape=\"linear\", end=0.1}"],
        &["resampling.thresholds=[[20, 0.9]]", "resampling.scheme=stratified"],
        &["model={kind=\"gaussian\"}", "optimizer.rates={all=0.01}", "optimizer.frozen=[]"],
    ];
    for (i, variant) in variants.iter().enumerate() {
        let out = format!("run{i}");
        let mut args =
            vec!["train", "small.toml", "--quiet", "--json", "--out", &out, "--set", "run.iterations=40"];
        variant.iter().for_each(|v| args.extend(["--set", v]));
        let summary: serde_json::Value = serde_json::from_str(&j.ok(&args)).unwrap();
        assert_eq!(summary["iterations"], 40, "{variant:?}");
        let weighted =
            !variant.iter().any(|v| v.ends_with("pcd") || v.ends_with("=cd") || v.ends_with("unweighted"));
        assert_eq!(summary["log_z"].is_number(), weighted, "{variant:?}: {summary}");
        assert!(j.path(&out).join("report.html").exists(), "{variant:?}");
    }
}

#[test]
fn help_and_completions() {
    let j = Jarz::new();
    for command in ["train", "resume", "sample", "evaluate", "init", "reproduce", "completions"] {
        assert!(j.ok(&["--help"]).contains(command));
        assert!(j.ok(&[command, "--help"]).contains("Usage"), "{command}");
    }
    for shell in ["bash", "zsh", "fish"] {
        assert!(j.ok(&["completions", shell]).contains("jarz"), "{shell}");
    }
}
