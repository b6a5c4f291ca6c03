//! `jarz sample`: samples as `.npy` files.

use super::print_json;
use crate::args::SampleArgs;
use crate::error::CliError;
use crate::ui::Ui;
use jarz_data::write_npy_f64;
use jarz_run::SampleRequest;
use jarz_run::files::{FileError, write_atomic};

/// Draws samples and writes them.
pub fn sample(args: SampleArgs, ui: &Ui) -> Result<(), CliError> {
    let out = args.out.unwrap_or_else(|| args.dir.join("samples"));
    if out.join("weighted.npy").exists() && !args.force {
        let text = format!(
            "'{}' already holds samples; choose another --out or overwrite them with --force",
            out.display()
        );
        return Err(CliError::Message(text));
    }
    let request = SampleRequest { n: args.n, steps: args.steps, seed: args.seed, threads: args.threads };
    let samples = jarz_run::sample(&args.dir, &request, &|text| ui.warn(text))?;
    if !samples.weighted {
        ui.warn(
            "the walkers of this algorithm carry no weights: where they sit may not be what the model says",
        );
    }
    let n = samples.log_weights.len();
    std::fs::create_dir_all(&out).map_err(FileError::at("create the folder", &out))?;
    write_npy_f64(out.join("weighted.npy"), &[n, samples.dim], &samples.positions)?;
    write_npy_f64(out.join("log_weights.npy"), &[n], &samples.log_weights)?;
    write_npy_f64(out.join("equal.npy"), &[n, samples.dim], &samples.equal)?;
    let info = serde_json::json!({
        "samples": n,
        "dim": samples.dim,
        "ess": samples.ess,
        "kernel_steps": samples.steps,
        "seed": args.seed,
        "bias_corrected": samples.weighted,
        "files": { "weighted": "weighted.npy", "log_weights": "log_weights.npy", "equal_weight": "equal.npy" },
        "folder": out,
    });
    let text = serde_json::to_string_pretty(&info).map_err(|e| CliError::Message(e.to_string()))?;
    write_atomic(out.join("samples.json"), text.as_bytes())?;
    if ui.json {
        return print_json(&info);
    }
    println!(
        "{n} samples in {} dimensions after {} kernel steps, ESS {:.3}\n  weighted:     {}\n  log-weights:  {}\n  equal weight: {}",
        samples.dim,
        samples.steps,
        samples.ess,
        out.join("weighted.npy").display(),
        out.join("log_weights.npy").display(),
        out.join("equal.npy").display()
    );
    Ok(())
}
