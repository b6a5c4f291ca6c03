//! `jarz evaluate`: held-out cross-entropy.

use super::print_json;
use crate::args::EvaluateArgs;
use crate::error::CliError;
use crate::ui::Ui;
use jarz_view::plus_minus;

/// Computes and prints it.
pub fn evaluate(args: EvaluateArgs, ui: &Ui) -> Result<(), CliError> {
    let e = jarz_run::evaluate(&args.dir, &args.data, args.array.as_deref(), &|text| ui.warn(text))?;
    if ui.json {
        return print_json(&e);
    }
    println!("{} points, model after {} iterations", e.points, e.iterations);
    match e.cross_entropy {
        Some(h) => println!("  cross-entropy  {} nats per point", plus_minus(h, e.cross_entropy_std_error)),
        None => println!("  cross-entropy  unknown from the walkers: this algorithm does not estimate log Z"),
    }
    if let Some(h) = e.cross_entropy_exact {
        println!("  with exact log Z  {} nats per point", plus_minus(h, e.cross_entropy_exact_std_error));
    }
    println!("  mean energy    {}", plus_minus(e.mean_energy, e.mean_energy_std_error));
    if let Some(log_z) = e.log_z {
        println!("  log Z          {}", plus_minus(log_z, e.log_z_std_error));
    }
    Ok(())
}
