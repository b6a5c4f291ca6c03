//! The folder of an experiment: what is in it, and what may be removed.

use crate::error::ExperimentError;
use crate::file::{Experiment, parse};
use crate::plan::Plan;
use jarz_run::files::{FileError, remove_stale, write_atomic};
use jarz_run::{RunFolder, is_run};
use std::fs;
use std::path::{Path, PathBuf};

/// The resolved experiment.
pub(crate) const EXPERIMENT: &str = "experiment.toml";
/// Results, besides the runs' own folders; nothing else is ever removed.
const RESULTS: [&str; 3] = ["figures", "report.html", "summary.json"];
/// How the runs' folders begin.
const RUN: &str = "run-";

/// Folder of run `r` (counted from zero) of a variant.
pub fn run_folder(out: &Path, variant: &str, r: usize) -> PathBuf {
    out.join(variant).join(format!("{RUN}{:02}", r + 1))
}

/// Whether a folder is that of an experiment.
pub fn is_experiment(folder: &Path) -> bool {
    folder.join(EXPERIMENT).is_file()
}

/// The experiment in a folder, as it was planned.
pub fn read_plan(out: &Path) -> Result<Plan, ExperimentError> {
    let file = out.join(EXPERIMENT);
    let text = fs::read_to_string(&file).map_err(FileError::at("read", &file))?;
    let experiment = parse(&text, "", &format!("'{}'", file.display()))?;
    let scale = experiment.scales.keys().next().copied().unwrap_or_default();
    experiment.plan(scale, None, None)
}

/// Makes the folder ready for a plan: new, or one in which the same runs were begun, or cleared by `force`.
pub fn prepare(out: &Path, plan: &Plan, force: bool) -> Result<(), ExperimentError> {
    let file = out.join(EXPERIMENT);
    if file.exists() {
        let earlier = read_plan(out);
        if force {
            clear(out, earlier.as_ref().map(|p| &p.resolved).ok())?;
        } else if !earlier?.has_the_runs_of(plan) {
            return Err(ExperimentError::Folder(format!(
                "'{}' holds another experiment, or the same with another scale, seed or configuration; \
                 choose another --out, or overwrite it with --force",
                out.display()
            )));
        }
    } else {
        fs::create_dir_all(out).map_err(FileError::at("create the folder", out))?;
        remove_stale(out, |name| name == EXPERIMENT)?;
        let mut entries = fs::read_dir(out).map_err(FileError::at("read the folder", out))?;
        if entries.next().is_some() {
            return Err(ExperimentError::Folder(format!(
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

impl Plan {
    /// Whether the runs of the other plan are runs of this one, but for their number: figures and criteria may differ.
    pub(crate) fn has_the_runs_of(&self, other: &Plan) -> bool {
        (self.scale, self.seed) == (other.scale, other.seed)
            && self.variants.len() == other.variants.len()
            && self
                .variants
                .iter()
                .zip(&other.variants)
                .all(|(a, b)| a.name == b.name && a.config == b.config)
    }
}

/// Removes the runs and results of an earlier experiment, and nothing else.
fn clear(out: &Path, earlier: Option<&Experiment>) -> Result<(), ExperimentError> {
    let Some(earlier) = earlier else {
        return Err(ExperimentError::Folder(format!(
            "'{}' cannot be read, so it is not known which runs belong to it; remove the folder yourself or choose another --out",
            out.join(EXPERIMENT).display()
        )));
    };
    for variant in earlier.variant_names()? {
        let parent = out.join(variant);
        if !fs::symlink_metadata(&parent).is_ok_and(|meta| meta.is_dir()) {
            continue;
        }
        let entries = fs::read_dir(&parent).map_err(FileError::at("read the folder", &parent))?;
        let runs = entries.flatten().filter(|e| e.file_name().to_string_lossy().starts_with(RUN));
        for folder in runs.map(|e| e.path()).filter(|path| is_run(path)) {
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
