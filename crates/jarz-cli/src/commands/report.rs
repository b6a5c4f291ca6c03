//! `jarz report`.

use super::board::Board;
use super::print_json;
use super::reproduce::quoted;
use crate::args::ReportArgs;
use crate::error::CliError;
use crate::ui::Ui;
use jarz_experiments::{ExperimentError, is_experiment};
use jarz_run::files::{FileError, write_atomic};
use jarz_view::{Folder, compare, open_all, rebuild};
use std::path::{Path, PathBuf};

/// Where a comparison goes if nothing is said.
const COMPARISON: &str = "comparison.html";

/// Writes the page of one folder, or one that compares several.
pub fn report(args: ReportArgs, ui: &Ui) -> Result<(), CliError> {
    let written = match (&args.dirs[..], args.out) {
        ([dir], None) if is_experiment(dir) => experiment(dir, args.force, ui)?,
        ([dir], None) => rebuild(dir)?,
        ([dir], Some(out)) => save(out, &jarz_view::report(&Folder::open_strictly(dir)?))?,
        (dirs, out) => {
            let page = compare(&open_all(dirs)?);
            if out.is_none() {
                check_ours(Path::new(COMPARISON))?;
            }
            save(out.unwrap_or_else(|| COMPARISON.into()), &page)?
        }
    };
    if ui.json {
        return print_json(&serde_json::json!({ "written": written }));
    }
    written.iter().for_each(|path| println!("{}", path.display()));
    Ok(())
}

/// Makes figures, page and summary of an experiment again; all its runs must be finished.
fn experiment(dir: &Path, anew: bool, ui: &Ui) -> Result<Vec<PathBuf>, CliError> {
    let name = dir.file_name().unwrap_or_default().to_string_lossy().to_string();
    let board = Board::new(ui, &name);
    jarz_experiments::rebuild(dir, Some(&board), anew).map_err(|e| match e {
        ExperimentError::Interrupted => CliError::Interrupted(format!(
            "stopped, finished judgements are kept; to go on: jarz report {}{}",
            quoted(&dir.to_string_lossy()),
            if anew { " --force" } else { "" }
        )),
        e => e.into(),
    })?;
    Ok(["figures", "report.html", "summary.json"].map(|name| dir.join(name)).to_vec())
}

fn save(out: PathBuf, page: &jarz_figures::Report) -> Result<Vec<PathBuf>, CliError> {
    write_atomic(&out, page.to_html().as_bytes())?;
    Ok(vec![out])
}

/// A file of that name that is no page of ours is not overwritten unasked.
fn check_ours(path: &Path) -> Result<(), CliError> {
    match std::fs::read(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(FileError::at("read", path)(e).into()),
        Ok(bytes) if String::from_utf8_lossy(&bytes).contains("name=\"generator\" content=\"jarz") => Ok(()),
        Ok(_) => Err(CliError::Message(format!(
            "'{}' exists and is no page of jarz; choose another name with --out",
            path.display()
        ))),
    }
}
