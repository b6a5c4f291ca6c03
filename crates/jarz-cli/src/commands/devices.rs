//! `jarz devices`: what can train besides the processor.

use super::print_json;
use crate::error::CliError;
use crate::ui::Ui;
use jarz_burn::Found;

/// Lists devices, and how to get the others.
pub fn devices(ui: &Ui) -> Result<(), CliError> {
    let found = jarz_burn::devices();
    if ui.json {
        let rows: Vec<_> = found
            .iter()
            .map(|found| match found {
                Found::Device { name, title } => {
                    serde_json::json!({ "device": name.to_string(), "state": "available", "title": title })
                }
                Found::Nothing { api, reason } => {
                    serde_json::json!({ "device": api.name(), "state": "none", "reason": reason })
                }
                Found::NotCompiled(api) => {
                    serde_json::json!({ "device": api.name(), "state": "not built in", "title": api.what() })
                }
            })
            .collect();
        return print_json(&rows);
    }
    let row = |name: &str, text: &str| println!("{name:<20} {text}");
    row("(none)", "the processor, whatever is said below; without --device");
    for found in &found {
        match found {
            Found::Device { name, title } => row(&name.to_string(), title),
            Found::Nothing { api, reason } => {
                row(api.name(), &format!("no device: {}", reason.lines().next().unwrap_or_default()))
            }
            Found::NotCompiled(api) => row(
                api.name(),
                &format!("not built in ({}); cargo build --release --features {}", api.what(), api.name()),
            ),
        }
    }
    Ok(())
}
