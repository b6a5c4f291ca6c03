//! `jarz export`: a trained network's weights as a file.

use super::print_json;
use crate::args::ExportArgs;
use crate::error::CliError;
use crate::ui::Ui;

/// Writes the weights and the architecture.
pub fn export(args: ExportArgs, ui: &Ui) -> Result<(), CliError> {
    let out = args.out.unwrap_or_else(|| args.dir.join("model.safetensors"));
    let architecture = out.with_extension("toml");
    if architecture == out {
        let text = format!(
            "'{}': the architecture goes into the file with the ending .toml; choose another --out",
            out.display()
        );
        return Err(CliError::Message(text));
    }
    if let Some(there) = [&out, &architecture].into_iter().find(|path| path.exists() && !args.force) {
        let text = format!("'{}' exists; choose another --out or overwrite it with --force", there.display());
        return Err(CliError::Message(text));
    }
    let parameters = jarz_run::export(&args.dir, &out, &|text| ui.warn(text))?;
    if ui.json {
        return print_json(
            &serde_json::json!({ "weights": out, "architecture": architecture, "parameters": parameters }),
        );
    }
    println!(
        "{parameters} parameters\n  weights:      {}\n  architecture: {}",
        out.display(),
        architecture.display()
    );
    Ok(())
}
