//! Repeated runs: the same configuration with one seed after the other, in `runs/run-01`, `runs/run-02`, ...

use crate::config::Config;
use crate::error::RunError;
use crate::folder::{RunFolder, is_run, read_config};
use crate::problem::{check_unchanged, resolve};
use crate::summary::{RunsSummary, Summary, read_summary};
use crate::train::{Session, resume, train};
use jarz::{Observer, Ranks, StopReason};
use std::path::Path;

/// What the caller of repeated runs provides.
pub struct Many<'a> {
    /// Makes an observer for a run, counted from 1.
    pub observer: &'a dyn Fn(usize) -> Box<dyn Observer>,
    /// Asked after every iteration.
    pub stop: &'a dyn Fn() -> bool,
    /// Hears about checkpoints that could not be read.
    pub warn: &'a dyn Fn(&str),
    /// Who shares the runs.
    pub ranks: Ranks,
    /// Threads, if the configuration leaves it open; 0 means one per core.
    pub threads: usize,
}

/// Starts `config.run.runs` runs in a new folder.
pub fn train_runs(
    mut config: Config,
    folder: &Path,
    force: bool,
    many: Many<'_>,
) -> Result<RunsSummary, RunError> {
    config.check()?;
    resolve(&mut config)?;
    let mut open = None;
    if many.ranks.is_first() {
        let folder = RunFolder::create(folder, force)?;
        folder.write_config(&config)?;
        open = Some(folder);
    }
    go(&config, folder, open, many)
}

/// Goes on with repeated runs.
pub fn resume_runs(folder: &Path, threads: Option<usize>, many: Many<'_>) -> Result<RunsSummary, RunError> {
    let mut config = read_config(folder)?;
    check_unchanged(&config)?;
    if let Some(threads) = threads {
        config.run.threads = threads;
    }
    let open = many.ranks.is_first().then(|| RunFolder::open(folder)).transpose()?;
    go(&config, folder, open, many)
}

fn go(
    config: &Config,
    path: &Path,
    folder: Option<RunFolder>,
    many: Many<'_>,
) -> Result<RunsSummary, RunError> {
    let mut done: Vec<Summary> = Vec::new();
    for run in 1..=config.run.runs {
        let place = path.join("runs").join(format!("run-{run:02}"));
        let mut one = config.clone();
        one.run.runs = 1;
        one.seed = config.seed + run as u64 - 1;
        let finished = read_summary(&place).filter(|s| {
            s.stop_reason == StopReason::Finished.name() && s.iterations >= config.run.iterations
        });
        // The first rank is ahead of the others with files: what it sees decides.
        let begun = is_run(&place);
        let [finished_there, begun] =
            [finished.is_some(), begun].map(|seen| many.ranks.first_says(seen as u64) == 1);
        let summary = match finished {
            Some(summary) if finished_there => summary,
            _ if finished_there => {
                return Err(RunError::Impossible(format!(
                    "this rank sees no summary in '{}'",
                    place.display()
                )));
            }
            _ => {
                let mut observer = (many.observer)(run);
                let session = Session {
                    observer: &mut *observer,
                    stop: many.stop,
                    warn: many.warn,
                    classifier: None,
                    ranks: many.ranks.clone(),
                    threads: many.threads,
                };
                match begun {
                    true => resume(&place, None, Some(config.run.threads), session)?,
                    false => train(one, &place, true, session)?,
                }
            }
        };
        let interrupted = summary.stop_reason != StopReason::Finished.name();
        done.push(summary);
        if interrupted {
            break;
        }
    }
    let summary = RunsSummary::new(&done)
        .ok_or_else(|| RunError::Impossible("there are no runs to summarise".into()))?;
    if let Some(folder) = &folder {
        folder.write_json("summary.json", &summary)?;
    }
    Ok(summary)
}
