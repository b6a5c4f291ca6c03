//! The folder of an experiment: what is in it, and what may be removed.

use super::experiment::{Experiment, Plan, parse};
use crate::error::CliError;
use jarz_run::files::{FileError, remove_stale, write_atomic};
use jarz_run::{RunFolder, is_run};
use std::fs;
use std::path::{Path, PathBuf};

/// The resolved experiment.
const EXPERIMENT: &str = "experiment.toml";
/// Results, besides the runs' own folders; nothing else is ever removed.
const RESULTS: [&str; 3] = ["figures", "report.html", "summary.json"];

/// Folder of run `r` (counted from zero) of a variant.
pub fn run_folder(out: &Path, variant: &str, r: usize) -> PathBuf {
    out.join(variant).join(format!("run-{:02}", r + 1))
}

/// Makes the folder ready for a plan: new, or one in which the same plan was begun, or cleared by `force`.
pub fn prepare(out: &Path, plan: &Plan, force: bool) -> Result<(), CliError> {
    let file = out.join(EXPERIMENT);
    if file.exists() {
        let text = fs::read_to_string(&file).map_err(FileError::at("read", &file))?;
        let earlier = parse(&text, "", &format!("'{}'", file.display()))?;
        if force {
            clear(out, &earlier)?;
        } else if earlier == plan.resolved {
            return Ok(());
        } else {
            return Err(CliError::Message(format!(
                "'{}' holds another experiment, or the same with another scale, seed or number of runs; \
                 choose another --out, or overwrite it with --force",
                out.display()
            )));
        }
    } else {
        fs::create_dir_all(out).map_err(FileError::at("create the folder", out))?;
        remove_stale(out, |name| name == EXPERIMENT)?;
        let mut entries = fs::read_dir(out).map_err(FileError::at("read the folder", out))?;
        if entries.next().is_some() {
            return Err(CliError::Message(format!(
                "'{}' is not empty and holds no experiment; choose another --out",
                out.display()
            )));
        }
    }
    let head = format!(
        "# The experiment in this folder, made by jarz {}.\n\
         # 'jarz reproduce experiment.toml --scale {} --out ELSEWHERE' repeats it.\n\n",
        env!("CARGO_PKG_VERSION"),
        plan.scale.name()
    );
    Ok(write_atomic(&file, (head + &plan.resolved.to_toml()?).as_bytes())?)
}

/// Removes the runs and results of an earlier experiment, and nothing else.
fn clear(out: &Path, earlier: &Experiment) -> Result<(), CliError> {
    for variant in &earlier.variants {
        let parent = out.join(&variant.name);
        if !fs::symlink_metadata(&parent).is_ok_and(|meta| meta.is_dir()) {
            continue;
        }
        let runs = earlier.scales.values().filter_map(|scale| scale.runs).max().unwrap_or(1);
        for r in 0..runs {
            let folder = run_folder(out, &variant.name, r);
            if !is_run(&folder) {
                continue;
            }
            // This removes what belongs to a run, unless another process is at work there.
            let emptied = RunFolder::create(&folder, true)?;
            let lock = emptied.file(".lock");
            drop(emptied);
            let _ = fs::remove_file(lock);
            // A folder with something of the user's in it stays.
            let _ = fs::remove_dir(&folder);
        }
        let _ = fs::remove_dir(&parent);
    }
    for name in RESULTS {
        let entry = out.join(name);
        let removed = match fs::symlink_metadata(&entry) {
            Err(_) => Ok(()),
            Ok(meta) if meta.is_dir() => fs::remove_dir_all(&entry),
            Ok(_) => fs::remove_file(&entry),
        };
        removed.map_err(FileError::at("remove", &entry))?;
    }
    Ok(())
}
