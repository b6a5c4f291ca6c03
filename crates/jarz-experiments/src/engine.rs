//! The runs of an experiment, spread over the cores. Each is an ordinary run of `jarz train` in a folder of its own: a finished
//! one is kept and an unfinished one resumed. Which thread does a run makes no difference to what comes out.

use crate::error::ExperimentError;
use crate::folder::run_folder;
use crate::plan::{Plan, PlannedVariant};
use crate::timing::Estimate;
use jarz::annealing::Rung;
use jarz::{Estimates, Observer, StepInfo, StopReason};
use jarz_net::Classifier;
use jarz_run::checkpoint::CheckpointStore;
use jarz_run::files::remove_stale;
use jarz_run::{Engine, RunError, Session, Summary, is_run, read_summary};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// What the caller of an experiment provides.
pub trait Watch: Sync {
    /// A line for the user.
    fn say(&self, text: &str);
    /// A warning.
    fn warn(&self, text: &str);
    /// Whether to stop; asked after every iteration.
    fn stopped(&self) -> bool;
    /// How far everything is.
    fn progress(&self, progress: Progress);
    /// How far the annealing of the run in a folder is.
    fn annealing(&self, _folder: &Path, _rung: &Rung) {}
    /// A run is done; its figures can be drawn.
    fn finished(&self, folder: &Path) -> Result<(), String>;
}

/// How far the runs of an experiment are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Share of the expected work that is done.
    pub share: f64,
    /// Runs done.
    pub done: usize,
    /// Runs in all.
    pub runs: usize,
}

/// A run still to be done.
pub(crate) struct Task<'a> {
    pub variant: usize,
    pub planned: &'a PlannedVariant,
    pub run: usize,
    /// Iterations that need not be done again.
    pub done: u64,
}

/// Whether a run is finished.
fn is_finished(summary: &Summary) -> bool {
    summary.stop_reason == StopReason::Finished.name()
}

/// The runs that are not finished, after a check that those in the folder belong to the plan.
pub(crate) fn pending<'a>(plan: &'a Plan, out: &Path) -> Result<Vec<Task<'a>>, ExperimentError> {
    let mut tasks = Vec::new();
    for run in 0..plan.runs {
        for (variant, planned) in plan.variants.iter().enumerate() {
            let folder = run_folder(out, &planned.name, run);
            let begun = is_run(&folder);
            if begun {
                let (found, config) = (jarz_run::read_config(&folder)?, planned.config_of(run, 0));
                if found.seed != config.seed || found.run.iterations != config.run.iterations {
                    return Err(ExperimentError::Folder(format!(
                        "the run in '{}' was changed and no longer belongs to this experiment; remove it or use --force",
                        folder.display()
                    )));
                }
            }
            if !begun || !read_summary(&folder).as_ref().is_some_and(is_finished) {
                let done = if begun { last_checkpoint(&folder) } else { 0 };
                tasks.push(Task { variant, planned, run, done });
            }
        }
    }
    Ok(tasks)
}

/// All runs of a plan, none of them begun.
pub(crate) fn all(plan: &Plan) -> Vec<Task<'_>> {
    let of_run = |run: usize| {
        plan.variants.iter().enumerate().map(move |(variant, planned)| Task {
            variant,
            planned,
            run,
            done: 0,
        })
    };
    (0..plan.runs).flat_map(of_run).collect()
}

/// Iteration of the newest checkpoint; zero if there is none.
fn last_checkpoint(folder: &Path) -> u64 {
    let checkpoints = folder.join("checkpoints");
    let list = || CheckpointStore::open(&checkpoints).ok()?.list().ok()?.last().copied();
    if checkpoints.is_dir() { list().unwrap_or(0) } else { 0 }
}

/// Draws the figures of finished runs that a killed process left without.
pub(crate) fn draw_missing(
    plan: &Plan,
    out: &Path,
    tasks: &[Task<'_>],
    watch: &dyn Watch,
) -> Result<(), ExperimentError> {
    for task in all(plan) {
        let is_pending = tasks.iter().any(|t| (t.variant, t.run) == (task.variant, task.run));
        let folder = run_folder(out, &task.planned.name, task.run);
        if !is_pending && !folder.join("report.html").is_file() {
            watch.finished(&folder).map_err(RunError::Impossible)?;
        }
    }
    Ok(())
}

/// Does all tasks, longest first, on as many workers as the estimate says.
pub(crate) fn work(
    mut tasks: Vec<Task<'_>>,
    plan: &Plan,
    out: &Path,
    estimate: &Estimate,
    classifier: Option<&Classifier<f32>>,
    engine: Option<&dyn Engine>,
    watch: &dyn Watch,
) -> Result<(), ExperimentError> {
    tasks.sort_by(|a, b| estimate.seconds(b).total_cmp(&estimate.seconds(a)));
    let runs = plan.runs * plan.variants.len();
    let board = Board {
        total: tasks.iter().map(|t| estimate.seconds(t)).sum::<f64>().max(1e-9),
        state: Mutex::new((0.0, runs - tasks.len())),
        runs,
        failed: AtomicBool::new(false),
        classifier,
        engine,
        watch,
    };
    let next = AtomicUsize::new(0);
    let worker = || -> Result<(), ExperimentError> {
        while let Some(task) = tasks.get(next.fetch_add(1, Ordering::SeqCst)) {
            let outcome = board.run(task, out, estimate);
            if outcome.is_err() {
                board.failed.store(true, Ordering::SeqCst);
            }
            outcome?;
        }
        Ok(())
    };
    let outcomes: Vec<Result<(), ExperimentError>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..estimate.workers).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().map(join).collect()
    });
    // A failure is worth more words than the interruptions it caused.
    let (failures, interruptions): (Vec<_>, Vec<_>) = outcomes
        .into_iter()
        .filter_map(Result::err)
        .partition(|e| !matches!(e, ExperimentError::Interrupted));
    failures.into_iter().chain(interruptions).next().map_or(Ok(()), Err)
}

fn join(
    worker: std::thread::ScopedJoinHandle<'_, Result<(), ExperimentError>>,
) -> Result<(), ExperimentError> {
    worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// What all workers know.
struct Board<'a> {
    total: f64,
    /// Work done, in expected seconds, and runs done.
    state: Mutex<(f64, usize)>,
    runs: usize,
    failed: AtomicBool,
    classifier: Option<&'a Classifier<f32>>,
    engine: Option<&'a dyn Engine>,
    watch: &'a dyn Watch,
}

impl Board<'_> {
    /// Starts or resumes a run and sees it through.
    fn run(&self, task: &Task<'_>, out: &Path, estimate: &Estimate) -> Result<(), ExperimentError> {
        let stop = || self.watch.stopped() || self.failed.load(Ordering::Relaxed);
        if stop() {
            return Err(ExperimentError::Interrupted);
        }
        let folder = run_folder(out, &task.planned.name, task.run);
        let config = task.planned.config_of(task.run, estimate.threads);
        let mut observer = Ticks { board: self, seconds: estimate.timings[task.variant].step, pending: 0 };
        let warn = |text: &str| self.watch.warn(text);
        let classifier = self.classifier;
        let session = Session {
            observer: &mut observer,
            stop: &stop,
            warn: &warn,
            classifier,
            ranks: jarz::Ranks::alone(),
            threads: 0,
        };
        let summary = if is_run(&folder) {
            jarz_run::resume_on(self.engine, &folder, None, Some(estimate.threads), session)
        } else {
            if folder.is_dir() {
                // Of a process that was killed before the run began.
                remove_stale(&folder, |_| true)?;
            }
            jarz_run::train_on(self.engine, config, &folder, false, session)
        };
        if !is_finished(&summary?) {
            return Err(ExperimentError::Interrupted);
        }
        self.watch.finished(&folder).map_err(RunError::Impossible)?;
        self.add(0.0, 1);
        Ok(())
    }

    fn add(&self, seconds: f64, runs: usize) {
        let mut state = self.state.lock().unwrap_or_else(|e| e.into_inner());
        state.0 += seconds;
        state.1 += runs;
        let share = if state.1 == self.runs { 1.0 } else { (state.0 / self.total).min(0.999) };
        let progress = Progress { share, done: state.1, runs: self.runs };
        drop(state);
        self.watch.progress(progress);
    }
}

/// Counts the steps of one run.
struct Ticks<'a, 'b> {
    board: &'a Board<'b>,
    seconds: f64,
    pending: u64,
}

impl Observer for Ticks<'_, '_> {
    fn log(&mut self, _: &Estimates) -> Result<(), String> {
        let steps = std::mem::take(&mut self.pending);
        self.board.add(self.seconds * steps as f64, 0);
        Ok(())
    }

    fn step(&mut self, _: &StepInfo) -> Result<(), String> {
        self.pending += 1;
        Ok(())
    }
}
