//! `jarz init`: a commented configuration to start from.

use super::print_json;
use crate::args::InitArgs;
use crate::error::CliError;
use crate::ui::Ui;
use jarz_run::files::write_atomic;

const SYNTHETIC: &str = r#"kind = "mixture"             # synthetic points from a Gaussian mixture: the truth is known
points = 10000
dim = 10
means = [[-4.0], [4.0]]      # coordinates not given are zero
masses = [0.25, 0.75]
# For your own points (.npy, .npz or CSV), replace this section by:
#   kind = "file"
#   path = "data.npy""#;

/// Writes it.
pub fn init(args: InitArgs, ui: &Ui) -> Result<(), CliError> {
    if args.file.exists() && !args.force {
        let text =
            format!("'{}' exists; name another file or overwrite it with --force", args.file.display());
        return Err(CliError::Message(text));
    }
    let mut note = String::new();
    let data = match &args.data {
        None => SYNTHETIC.to_string(),
        Some(path) => {
            let table = jarz_run::read_points(path, None, None, None)?;
            note = format!(" ({} points in {} dimensions)", table.rows, table.cols);
            let path = toml::Value::String(path.display().to_string());
            format!(
                "kind = \"file\"\npath = {path}             # .npy, .npz or CSV\n# batch = 1000               # points used per iteration; all if not given"
            )
        }
    };
    let text = include_str!("starter.toml").replace("# DATA", &data);
    write_atomic(&args.file, text.as_bytes())?;
    if ui.json {
        return print_json(&serde_json::json!({ "config": args.file }));
    }
    println!("wrote '{0}'{note}; train with: jarz train {0}", args.file.display());
    Ok(())
}
