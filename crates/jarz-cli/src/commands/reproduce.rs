//! `jarz reproduce`.

use super::board::Board;
use super::print_json;
use super::train::engine;
use crate::args::{NoiseArg, ReproduceArgs};
use crate::error::CliError;
use crate::ui::Ui;
use jarz_experiments::criterion::Verdict;
use jarz_experiments::plan::Plan;
use jarz_experiments::report::{count, verdict_table};
use jarz_experiments::timing::duration;
use jarz_experiments::{Estimate, ExperimentError, Finished, Options, built_in, image_experiments};
use jarz_figures::{Report, Section};
use jarz_run::Engine;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Lists experiments, runs one, or all of them.
pub fn reproduce(args: ReproduceArgs, ui: &Ui) -> Result<(), CliError> {
    match args.name.as_str() {
        "list" => list(ui),
        "all" => all(&args, ui),
        _ => {
            let stem = Path::new(&args.name).file_stem().unwrap_or_default().to_string_lossy().to_string();
            let out = args.out.clone().unwrap_or_else(|| PathBuf::from("runs").join(stem));
            let options = options(&args, &args.name, out, engine(&args.device)?.map(Arc::from));
            let plan = options.plan()?;
            if args.dry_run {
                let (_, value) = dry_run(&options, &plan, ui)?;
                return if ui.json { print_json(&value) } else { Ok(()) };
            }
            let finished = one(&options, &plan, ui).map_err(|e| how_to_go_on(e, &args, &options.out))?;
            if ui.json {
                return print_json(&finished.summary);
            }
            let out = options.out.display();
            println!("figures: {out}/figures, page: {out}/report.html, numbers: {out}/summary.json");
            Ok(())
        }
    }
}

fn options(args: &ReproduceArgs, name: &str, out: PathBuf, engine: Option<Arc<dyn Engine>>) -> Options {
    Options {
        name: name.into(),
        out,
        scale: args.scale.into(),
        runs: args.runs,
        seed: args.seed,
        threads: args.threads,
        force: args.force,
        engine,
    }
}

fn list(ui: &Ui) -> Result<(), CliError> {
    let all = [built_in(), image_experiments()].concat();
    if ui.json {
        let rows: Vec<_> = all.iter().map(|(n, t)| json!({"name": n, "title": t})).collect();
        return print_json(&rows);
    }
    for (name, title) in all {
        println!("{name:<20} {title}");
    }
    Ok(())
}

/// Every experiment in a folder of its own, and a page with all criteria.
fn all(args: &ReproduceArgs, ui: &Ui) -> Result<(), CliError> {
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from("runs/reproduce"));
    let engine: Option<Arc<dyn Engine>> = engine(&args.device)?.map(Arc::from);
    let options: Vec<Options> =
        built_in().iter().map(|(name, _)| options(args, name, out.join(name), engine.clone())).collect();
    let plans = options.iter().map(Options::plan).collect::<Result<Vec<_>, _>>()?;
    if args.dry_run {
        let (mut total, mut values) = (0.0, Vec::new());
        for (options, plan) in options.iter().zip(&plans) {
            let (estimate, value) = dry_run(options, plan, ui)?;
            total += estimate.total;
            values.push(value);
        }
        if ui.json {
            return print_json(&json!({ "seconds": total, "experiments": values }));
        }
        println!("all: about {}", duration(total));
        return Ok(());
    }
    let start = Instant::now();
    let mut finished = Vec::new();
    for (options, plan) in options.iter().zip(&plans) {
        finished.push(one(options, plan, ui).map_err(|e| how_to_go_on(e, args, &out))?);
    }
    let took = start.elapsed().as_secs_f64();
    overview(&finished, took).save(&out, "report")?;
    if ui.json {
        return print_json(&finished.iter().map(|f| &f.summary).collect::<Vec<&Value>>());
    }
    println!("\nall experiments, in {}", duration(took));
    for f in &finished {
        println!("{:<20} {}", f.name, count(&f.verdicts));
    }
    println!("page: {}/report.html, and one in every experiment's folder", out.display());
    Ok(())
}

fn overview(finished: &[Finished], seconds: f64) -> Report {
    let mut report = Report::new("The paper's synthetic experiments").subtitle(format!(
        "jarz {}, {}",
        env!("CARGO_PKG_VERSION"),
        duration(seconds)
    ));
    for f in finished {
        let table = verdict_table(&f.verdicts);
        report = report.heading(format!("{}: {}", f.name, f.title)).section(Section::Table {
            caption: count(&f.verdicts),
            headers: table.headers,
            rows: table.rows,
        });
    }
    report
}

/// Says what would be done.
fn dry_run(options: &Options, plan: &Plan, ui: &Ui) -> Result<(Estimate, Value), CliError> {
    let estimate = options.estimate(plan)?;
    if !ui.json {
        println!(
            "{}: {} variants x {} runs, {}",
            plan.name,
            plan.variants.len(),
            plan.runs,
            estimate.words()
        );
        for (v, seconds) in plan.variants.iter().zip(&estimate.of_variants).filter(|(_, s)| **s > 0.0) {
            let (c, step) = (&v.config, estimate.timings[index(plan, &v.name)].step);
            println!(
                "  {:<28} {} walkers, {} iterations of {:.3} ms: {} in all",
                v.name,
                c.walkers.count,
                c.run.iterations,
                1e3 * step,
                duration(*seconds)
            );
        }
    }
    let variants: Vec<Value> = plan
        .variants
        .iter()
        .enumerate()
        .map(|(i, v)| json!({"name": v.name, "seconds_per_iteration": estimate.timings[i].step, "seconds": estimate.of_variants[i]}))
        .collect();
    let value = json!({
        "experiment": plan.name, "scale": plan.scale.name(), "runs": plan.runs, "seconds": estimate.total,
        "at_a_time": estimate.workers, "threads_each": estimate.threads, "variants": variants,
    });
    Ok((estimate, value))
}

fn index(plan: &Plan, name: &str) -> usize {
    plan.variants.iter().position(|v| v.name == name).unwrap_or(0)
}

/// Runs an experiment and prints its tables.
fn one(options: &Options, plan: &Plan, ui: &Ui) -> Result<Finished, ExperimentError> {
    let runs = if plan.runs == 1 { "one run".to_string() } else { format!("{} runs", plan.runs) };
    let (title, out) = (&plan.resolved.title, options.out.display());
    ui.say(&format!("{}: {title}: {} variants, {runs} each, in '{out}'", plan.name, plan.variants.len()));
    let finished = options.reproduce(plan, &Board::new(ui, &plan.name))?;
    if !ui.json {
        println!("\n{}\n{}", plan.resolved.title, finished.table.to_text());
        print_verdicts(&finished.verdicts);
    }
    Ok(finished)
}

fn print_verdicts(verdicts: &[Verdict]) {
    for v in verdicts {
        println!("* {}\n  asked: {}\n  measured: {}", v.claim, v.asked, v.measured);
        match &v.outcome {
            jarz_experiments::criterion::Outcome::Undecided(reason) => {
                println!("  agrees? cannot be decided at this scale: {reason}")
            }
            outcome => println!("  agrees? {}", outcome.word()),
        }
    }
    if !verdicts.is_empty() {
        println!("{}\n", count(verdicts));
    }
}

/// For a shell.
pub(super) fn quoted(text: &str) -> String {
    match text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c)) {
        true => text.to_string(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// An interrupted experiment goes on with the same command.
fn how_to_go_on(e: ExperimentError, args: &ReproduceArgs, out: &Path) -> CliError {
    if !matches!(e, ExperimentError::Interrupted) {
        return e.into();
    }
    let mut text = format!("stopped, nothing is lost; to go on: jarz reproduce {}", quoted(&args.name));
    text += &format!(" --scale {}", jarz_experiments::Scale::from(args.scale).name());
    if let Some(runs) = args.runs {
        text += &format!(" --runs {runs}");
    }
    if let Some(seed) = args.seed {
        text += &format!(" --seed {seed}");
    }
    if let Some(device) = &args.device.device {
        let noise = if matches!(args.device.noise, NoiseArg::Host) { " --noise host" } else { "" };
        text += &format!(" --device {}{noise}", quoted(device));
    }
    CliError::Interrupted(text + &format!(" --out {}", quoted(&out.to_string_lossy())))
}
