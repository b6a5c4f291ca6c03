//! Experiments: several variants of a configuration trained side by side, compared in one table, figure and report.
//!
//! An experiment is a TOML file (see [`experiment`]). Its runs are ordinary runs of `jarz train`, each in a folder of its
//! own: a finished one is kept and an unfinished one resumed when the same command is given again.

pub mod experiment;
mod folder;
mod report;
mod results;
mod table;

pub use experiment::Scale;

use crate::error::CliError;
use crate::figures::draw_run;
use crate::ui::{Ui, stopped};
use experiment::{Plan, PlannedVariant};
use folder::run_folder;
use jarz_run::checkpoint::CheckpointStore;
use jarz_run::files::{remove_stale, write_atomic};
use jarz_run::{Session, Summary, is_run};
use std::path::{Path, PathBuf};

/// What to run, and how.
#[derive(Clone, Debug)]
pub struct ReproduceOptions {
    /// Built-in name, or path of an experiment file.
    pub name: String,
    /// Folder for everything.
    pub out: PathBuf,
    /// How large.
    pub scale: Scale,
    /// Runs of every variant, if other than the experiment says.
    pub runs: Option<usize>,
    /// Seed of the first run, if other than the experiment says.
    pub seed: Option<u64>,
    /// Threads; 0 means one per core. Results do not depend on it.
    pub threads: usize,
    /// Whether another experiment in the folder may be overwritten.
    pub force: bool,
}

/// Names and titles of the experiments that come with the program.
pub fn list() -> Vec<(String, String)> {
    experiment::built_in()
}

/// Runs an experiment, or goes on with it; prints its table unless results are wanted as JSON, and returns what
/// `summary.json` holds.
pub fn reproduce(options: &ReproduceOptions, ui: &Ui) -> Result<serde_json::Value, CliError> {
    let plan = experiment::load(&options.name)?.plan(options.scale, options.runs, options.seed)?;
    folder::prepare(&options.out, &plan, options.force)?;
    ui.say(&format!(
        "{}: {} variants, {} each, in '{}'",
        plan.resolved.title,
        plan.variants.len(),
        if plan.runs == 1 { "one run".to_string() } else { format!("{} runs", plan.runs) },
        options.out.display()
    ));
    // Run by run, so that an early look at the folder shows all variants.
    for r in 0..plan.runs {
        for variant in &plan.variants {
            let folder = run_folder(&options.out, &variant.name, r);
            let finished = !stopped() && run_one(&plan, variant, r, &folder, options.threads, ui)?;
            if !finished {
                return Err(CliError::Interrupted(how_to_go_on(options, &plan)));
            }
            if !folder.join("report.html").is_file() {
                draw_run(&folder)?;
            }
        }
    }
    let results = results::collect(&options.out, &plan)?;
    report::write(&options.out, &plan, &results)?;
    let summary = results::to_json(&plan, &results);
    let text = format!("{summary:#}\n");
    write_atomic(options.out.join("summary.json"), text.as_bytes())?;
    if !ui.json {
        println!("{}\n{}", table::Table::new(&results).to_text(), table::verdict(&results));
    }
    Ok(summary)
}

/// Starts, resumes or keeps a run; tells whether it is finished.
fn run_one(
    plan: &Plan,
    variant: &PlannedVariant,
    r: usize,
    folder: &Path,
    threads: usize,
    ui: &Ui,
) -> Result<bool, CliError> {
    let config = variant.config_of(r, threads);
    let label = match plan.runs {
        1 => variant.name.clone(),
        runs => format!("{} {}/{runs}", variant.name, r + 1),
    };
    let begun = is_run(folder);
    if begun {
        let found = jarz_run::read_config(folder)?;
        if found.seed != config.seed || found.run.iterations != config.run.iterations {
            return Err(CliError::Message(format!(
                "the run in '{}' was changed and no longer belongs to this experiment; remove it or use --force",
                folder.display()
            )));
        }
        let is_finished = |s: &Summary| s.stop_reason == jarz::StopReason::Finished.name();
        if jarz_run::read_summary(folder).as_ref().is_some_and(is_finished) {
            ui.say(&format!("{label}: finished before, kept"));
            return Ok(true);
        }
    }
    let done = if begun { last_checkpoint(folder) } else { 0 };
    let mut progress = ui.progress(&label, done, config.run.iterations);
    let warn = |text: &str| ui.warn(text);
    let session = Session { observer: &mut progress, stop: &stopped, warn: &warn };
    let summary = if begun {
        jarz_run::resume(folder, None, Some(threads), session)?
    } else {
        if folder.is_dir() {
            // Of a process that was killed before the run began.
            remove_stale(folder, |_| true)?;
        }
        jarz_run::train(config, folder, false, session)?
    };
    Ok(summary.stop_reason == jarz::StopReason::Finished.name())
}

/// Iteration of the newest checkpoint; zero if there is none.
fn last_checkpoint(folder: &Path) -> u64 {
    let checkpoints = folder.join("checkpoints");
    let list = || CheckpointStore::open(&checkpoints).ok()?.list().ok()?.last().copied();
    if checkpoints.is_dir() { list().unwrap_or(0) } else { 0 }
}

/// The command that goes on with an interrupted experiment.
fn how_to_go_on(options: &ReproduceOptions, plan: &Plan) -> String {
    let quoted = |text: &str| match text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c)) {
        true => text.to_string(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    };
    format!(
        "stopped; to go on: jarz reproduce {} --scale {} --runs {} --seed {} --out {}",
        quoted(&options.name),
        plan.scale.name(),
        plan.runs,
        plan.seed,
        quoted(&options.out.to_string_lossy())
    )
}
