//! `jarz train` and `jarz resume`.

use super::print_json;
use crate::args::{DeviceArgs, NoiseArg, ResumeArgs, TrainArgs};
use crate::error::CliError;
use crate::figures;
use crate::ui::{Ui, stopped};
use jarz_burn::Noise;
use jarz_mpi::Job;
use jarz_run::{Config, Engine, Many, RunsSummary, Session, Summary};
use jarz_view::plus_minus;
use std::path::{Path, PathBuf};

/// Starts a run.
pub fn train(args: TrainArgs, job: &Job, ui: &Ui) -> Result<(), CliError> {
    let mut config = Config::load(&args.config, &args.set).map_err(jarz_run::RunError::from)?;
    if let Some(threads) = args.threads {
        config.run.threads = threads;
    }
    if let Some(runs) = args.runs {
        config.run.runs = runs;
    }
    config.run.tensorboard |= args.tensorboard;
    let stem = args.config.file_stem().unwrap_or_default();
    let out = args.out.unwrap_or_else(|| PathBuf::from("runs").join(stem));
    let iterations = config.run.iterations;
    let engine = engine(&args.device)?;
    let engine = engine.as_deref();
    ui.say(&format!("training in '{}'", out.display()));
    if config.run.runs > 1 {
        let make = |run: usize| observer(ui, run, iterations);
        let (ranks, threads) = (job.ranks(), job.threads().unwrap_or(0));
        let many = Many { observer: &make, stop: &stopped, warn: &|text| ui.warn(text), ranks, threads };
        return finish_runs(&out, jarz_run::train_runs_on(engine, config, &out, args.force, many), ui);
    }
    let summary = watched("training", iterations, job, ui, |session| {
        jarz_run::train_on(engine, config, &out, args.force, session)
    });
    finish(&out, summary, ui)
}

/// Goes on with a run.
pub fn resume(args: ResumeArgs, job: &Job, ui: &Ui) -> Result<(), CliError> {
    if args.dir.join("experiment.toml").is_file() {
        let dir = args.dir.display();
        let text = format!(
            "'{dir}' holds an experiment: repeat its 'jarz reproduce NAME --out {dir}', which keeps what is done"
        );
        return Err(CliError::Message(text));
    }
    let config = jarz_run::read_config(&args.dir)?;
    let iterations = args.iterations.unwrap_or(config.run.iterations);
    let engine = engine(&args.device)?;
    let engine = engine.as_deref();
    if config.run.runs > 1 {
        if args.iterations.is_some() {
            return Err(CliError::Message("--iterations extends single runs only".into()));
        }
        let make = |run: usize| observer(ui, run, iterations);
        let (ranks, threads) = (job.ranks(), job.threads().unwrap_or(0));
        let many = Many { observer: &make, stop: &stopped, warn: &|text| ui.warn(text), ranks, threads };
        return finish_runs(&args.dir, jarz_run::resume_runs_on(engine, &args.dir, args.threads, many), ui);
    }
    let summary = watched("resuming", iterations, job, ui, |session| {
        jarz_run::resume_on(engine, &args.dir, args.iterations, args.threads, session)
    });
    finish(&args.dir, summary, ui)
}

/// Does a run with its progress shown.
fn watched<R>(
    label: &str,
    iterations: u64,
    job: &Job,
    ui: &Ui,
    run: impl FnOnce(Session<'_>) -> Result<R, jarz_run::RunError>,
) -> Result<R, jarz_run::RunError> {
    let mut progress = ui.progress(label, 0, iterations);
    run(Session {
        observer: &mut progress,
        stop: &stopped,
        warn: &|text| ui.warn(text),
        classifier: None,
        ranks: job.ranks(),
        threads: job.threads().unwrap_or(0),
    })
}

/// The device that was asked for, if one was.
pub(super) fn engine(args: &DeviceArgs) -> Result<Option<Box<dyn Engine>>, CliError> {
    let Some(name) = &args.device else { return Ok(None) };
    let noise = match args.noise {
        NoiseArg::Device => Noise::Device,
        NoiseArg::Host => Noise::Host,
    };
    Ok(Some(jarz_burn::engine(name.parse()?, noise)?))
}

fn observer(ui: &Ui, run: usize, iterations: u64) -> Box<dyn jarz::Observer> {
    Box::new(ui.progress(&format!("run {run}"), 0, iterations))
}

/// A training error tells what is left of the run.
fn explain(folder: &Path, e: jarz_run::RunError) -> CliError {
    let kept = std::fs::read_dir(folder.join("checkpoints")).is_ok_and(|mut c| c.next().is_some());
    match e {
        jarz_run::RunError::Training(e) if kept => CliError::Message(format!(
            "{e}\nthe last checkpoint and the metrics so far are in '{}'",
            folder.display()
        )),
        e => e.into(),
    }
}

fn interrupted(folder: &Path, iteration: u64) -> CliError {
    CliError::Interrupted(format!(
        "stopped at iteration {iteration}; nothing is lost. Go on with: jarz resume {}",
        folder.display()
    ))
}

/// What is left to do for a rank that does not write.
fn end_silently(folder: &Path, stop_reason: &str, iterations: u64) -> Result<(), CliError> {
    match stop_reason {
        "interrupted" => Err(interrupted(folder, iterations)),
        _ => Ok(()),
    }
}

fn finish(folder: &Path, summary: Result<Summary, jarz_run::RunError>, ui: &Ui) -> Result<(), CliError> {
    let summary = summary.map_err(|e| explain(folder, e))?;
    if ui.silent {
        return end_silently(folder, &summary.stop_reason, summary.iterations);
    }
    figures::draw_run(folder)?;
    if ui.json {
        print_json(&summary)?;
    }
    if summary.stop_reason == "interrupted" {
        return Err(interrupted(folder, summary.iterations));
    }
    if !ui.json {
        print(folder, &summary);
    }
    for note in figures::warnings(folder)? {
        ui.warn(&note);
    }
    Ok(())
}

fn print(folder: &Path, s: &Summary) {
    println!("{}, {} iterations in {:.1} s", s.algorithm, s.iterations, s.seconds);
    let exact = |v: Option<f64>| v.map_or(String::new(), |v| format!("   (exact {v:.4})"));
    if let Some(log_z) = s.log_z {
        println!("  log Z          {}{}", plus_minus(log_z, s.log_z_std_error), exact(s.log_z_exact));
    }
    if let Some(biased) = s.driving_log_z {
        println!(
            "                 from the witnesses; the walkers that drive the parameters say {biased:.4}"
        );
    }
    match (s.cross_entropy, s.cross_entropy_exact) {
        (Some(h), e) => {
            println!("  cross-entropy  {} nats{}", plus_minus(h, s.cross_entropy_std_error), exact(e))
        }
        (None, Some(e)) => println!("  cross-entropy  {e:.4} nats (exact; this algorithm has no estimate)"),
        (None, None) => println!("  cross-entropy  unknown: this algorithm does not estimate it"),
    }
    if let Some(ess) = s.ess.filter(|_| s.log_z.is_some()) {
        println!(
            "  ESS            {ess:.3} after {} resamplings; {} initial walkers have descendants",
            s.resamplings, s.distinct_ancestors
        );
    }
    if let Some(acceptance) = s.acceptance {
        println!("  acceptance     {acceptance:.3}");
    }
    for (k, mass) in s.masses.iter().flatten().enumerate().take(10) {
        let walkers = s.walker_masses.as_ref().and_then(|m| m.get(k).copied());
        let error = s.walker_masses_std_error.as_ref().and_then(|m| m.get(k).copied().flatten());
        let walkers = walkers.map_or(String::new(), |w| format!("   (walkers {})", plus_minus(w, error)));
        println!("  mass of mode {k} {mass:.4}{walkers}");
    }
    println!("results in '{}': report.html, figures/, metrics.jsonl, summary.json", folder.display());
}

fn finish_runs(
    folder: &Path,
    summary: Result<RunsSummary, jarz_run::RunError>,
    ui: &Ui,
) -> Result<(), CliError> {
    let summary = summary.map_err(|e| explain(folder, e))?;
    if ui.silent {
        return end_silently(folder, &summary.stop_reason, summary.iterations);
    }
    for run in 1..=summary.runs {
        figures::draw_run(&folder.join("runs").join(format!("run-{run:02}")))?;
    }
    figures::draw_runs(folder)?;
    if ui.json {
        print_json(&summary)?;
    }
    if summary.stop_reason == "interrupted" {
        return Err(interrupted(folder, summary.iterations));
    }
    if !ui.json {
        let s = &summary;
        println!("{}, {} runs of {} iterations in {:.1} s", s.algorithm, s.runs, s.iterations, s.seconds);
        if let Some(log_z) = s.log_z {
            println!("  log Z          {}", plus_minus(log_z, s.log_z_std_error));
        }
        if let Some(h) = s.cross_entropy {
            println!("  cross-entropy  {} nats", plus_minus(h, s.cross_entropy_std_error));
        }
        for (k, mass) in s.masses.iter().flatten().enumerate().take(10) {
            let error = s.masses_std_error.as_ref().and_then(|m| m.get(k).copied().flatten());
            println!("  mass of mode {k} {}", plus_minus(*mass, error));
        }
        println!("results in '{}': report.html, figures/, runs/, summary.json", folder.display());
    }
    Ok(())
}
