//! `jarz evaluate`: a trained model judged by annealing, and its cross-entropy.

use super::print_json;
use crate::args::EvaluateArgs;
use crate::error::CliError;
use crate::ui::{Ui, stopped};
use jarz::annealing::{AnnealingError, Rung, Settings};
use jarz_run::files::write_atomic;
use jarz_run::{EvaluateRequest, Evaluation, Judgement, RunError};
use jarz_view::plus_minus;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Fewer ancestors than this, and error bars by ancestry mean little.
const FEW_ANCESTORS: usize = 30;

/// Computes, writes and prints it.
pub fn evaluate(args: EvaluateArgs, ui: &Ui) -> Result<(), CliError> {
    if let Some(out) = args.out.as_ref().filter(|out| out.exists() && !args.force) {
        let text = format!("'{}' exists; choose another --out or overwrite it with --force", out.display());
        return Err(CliError::Message(text));
    }
    let out = args.out.clone().unwrap_or_else(|| {
        args.dir.join(if args.weights.is_some() { "evaluate-weights.json" } else { "evaluate.json" })
    });
    let default = Settings::default();
    let annealing = Settings {
        walkers: args.walkers,
        moves: args.moves,
        friction: args.friction,
        acceptance: args.acceptance.unwrap_or(if args.friction.is_some() { 0.9 } else { default.acceptance }),
        step_ess: args.step_ess,
        seed: args.seed,
        threads: args.threads,
        ..default
    };
    let request = EvaluateRequest { data: args.data, array: args.array, weights: args.weights, annealing };
    let mut told = Instant::now();
    let mut progress = |rung: &Rung| {
        if told.elapsed() >= Duration::from_secs(5) {
            told = Instant::now();
            ui.say(&format!("annealing: t = {:.4}, ESS {:.2}", rung.t, rung.ess));
        }
        if stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let result = jarz_run::evaluate(&args.dir, &request, &mut progress, &|text| ui.warn(text));
    let e = result.map_err(|e| match e {
        RunError::Annealing(AnnealingError::Stopped { t }) => {
            CliError::Interrupted(format!("stopped while annealing, at t = {t:.4}; nothing was written"))
        }
        e => e.into(),
    })?;
    let ancestors = e.judgement.annealing.distinct_ancestors;
    if ancestors < FEW_ANCESTORS {
        ui.warn(&format!(
            "only {ancestors} of the annealing's first walkers have descendants, so that its error bars mean little; \
             ask for more --walkers, more --moves or a larger --step-ess"
        ));
    }
    let text = serde_json::to_string_pretty(&e).map_err(|e| CliError::Message(e.to_string()))?;
    write_atomic(&out, (text + "\n").as_bytes())?;
    if ui.json {
        return print_json(&e);
    }
    print(&e);
    println!("written to {}", out.display());
    Ok(())
}

fn print(e: &Evaluation) {
    let j = &e.judgement;
    let unknown = match &e.weights {
        Some(file) => {
            println!("weights of '{}', {} points", file.display(), e.points);
            || "unknown: these are not the weights that were trained here".to_string()
        }
        None => {
            println!("model after {} iterations of {}, {} points", j.iterations, j.algorithm, e.points);
            || "unknown: this algorithm does not estimate log Z".to_string()
        }
    };
    let tracked = |value: Option<f64>, error| value.map_or_else(unknown, |v: f64| plus_minus(v, error));
    println!("  log Z, annealed          {}", plus_minus(j.log_z_annealed, j.log_z_annealed_std_error));
    println!("  log Z, tracked           {}", tracked(j.log_z, j.log_z_std_error));
    if let Some(exact) = j.log_z_exact {
        println!("  log Z, exact             {exact:.4}");
    }
    println!(
        "  cross-entropy, annealed  {} nats per point",
        plus_minus(e.cross_entropy_annealed, e.cross_entropy_annealed_std_error)
    );
    println!("  cross-entropy, tracked   {}", tracked(e.cross_entropy, e.cross_entropy_std_error));
    if let Some(h) = e.cross_entropy_exact {
        println!("  cross-entropy, exact     {}", plus_minus(h, e.cross_entropy_exact_std_error));
    }
    println!("  mean energy              {}", plus_minus(e.mean_energy, e.mean_energy_std_error));
    print_masses(j);
    let a = &j.annealing;
    println!(
        "annealing: {} walkers, {} rungs, {} resamplings, {} ancestors left, ESS {:.2}",
        a.walkers, a.rungs, a.resamplings, a.distinct_ancestors, a.ess
    );
}

/// Masses of the walkers, of the model and, where known, by its parameters, side by side.
fn print_masses(j: &Judgement) {
    let (Some(walkers), Some(model)) = (&j.walker_masses, &j.model_masses) else { return };
    // An error too small to be seen in the table would only bring a tail of zeros.
    let error = |list: &Option<Vec<Option<f64>>>, k: usize| {
        list.as_ref().and_then(|l| *l.get(k)?).filter(|e| *e > 1e-5)
    };
    println!("  class  {:>20}  {:>20}  {:>8}", "mass of the walkers", "of the model", "exact");
    for k in 0..walkers.len().min(model.len()) {
        let exact = j.masses.as_ref().and_then(|m| m.get(k)).map_or("—".into(), |m| format!("{m:.4}"));
        println!(
            "  {k:>5}  {:>20}  {:>20}  {exact:>8}",
            plus_minus(walkers[k], error(&j.walker_masses_std_error, k)),
            plus_minus(model[k], error(&j.model_masses_std_error, k)),
        );
    }
}
