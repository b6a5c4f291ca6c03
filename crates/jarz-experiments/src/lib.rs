//! Experiments: variants of a configuration trained side by side, several times each, drawn, and held against what is expected.
//!
//! An experiment is a TOML file (see [`file::Experiment`]). Its runs are ordinary runs of `jarz train`, each in a folder of its
//! own, spread over the cores: a finished one is kept and an unfinished one resumed when the same command is given again.

pub mod criterion;
mod engine;
mod error;
pub mod figure;
pub mod file;
mod folder;
pub mod images;
pub mod plan;
pub mod quantity;
pub mod reduce;
pub mod report;
pub mod results;
pub mod statistics;
mod table;
pub mod theory;
pub mod timing;

pub use engine::{Progress, Watch};
pub use error::ExperimentError;
pub use file::{Scale, built_in, image_experiments};
pub use folder::{is_experiment, read_plan};
pub use report::{Finished, rebuild};
pub use table::Table;
pub use timing::Estimate;

use images::Kinds;
use jarz_run::Engine;
use plan::Plan;
use std::path::PathBuf;
use std::sync::Arc;

/// What to run, and how.
#[derive(Clone, Debug)]
pub struct Options {
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
    /// Cores; 0 means all. Results do not depend on it.
    pub threads: usize,
    /// Whether another experiment in the folder may be overwritten.
    pub force: bool,
    /// What trains in place of the processor, which does the rest: classifier, annealing, pages.
    pub engine: Option<Arc<dyn Engine>>,
}

impl Options {
    /// The plan these options make.
    pub fn plan(&self) -> Result<Plan, ExperimentError> {
        file::load(&self.name)?.plan(self.scale, self.runs, self.seed)
    }

    fn cores(&self) -> usize {
        match self.threads {
            0 => std::thread::available_parallelism().map_or(1, |n| n.get()),
            n => n,
        }
    }

    /// How long what is left will take on this machine; writes nothing.
    pub fn estimate(&self, plan: &Plan) -> Result<Estimate, ExperimentError> {
        let tasks = match folder::read_plan(&self.out) {
            Ok(earlier) if !self.force && earlier.has_the_runs_of(plan) => engine::pending(plan, &self.out)?,
            _ => engine::all(plan),
        };
        Estimate::new(plan, &tasks, self.cores(), self.engine.as_deref())
    }

    /// Runs an experiment, or goes on with it.
    pub fn reproduce(&self, plan: &Plan, watch: &dyn Watch) -> Result<Finished, ExperimentError> {
        // What an engine cannot do shows before a folder is touched.
        if let Some(engine) = &self.engine {
            plan.variants.iter().try_for_each(|variant| engine.check(&variant.config))?;
        }
        folder::prepare(&self.out, plan, self.force)?;
        let tasks = engine::pending(plan, &self.out)?;
        let kept = plan.runs * plan.variants.len() - tasks.len();
        if kept > 0 {
            watch.say(&format!("{kept} runs finished before are kept"));
        }
        engine::draw_missing(plan, &self.out, &tasks, watch)?;
        // Kinds of images are told apart while the runs go on.
        let kinds = Kinds::of(plan)?;
        if !tasks.is_empty() {
            let estimate = Estimate::new(plan, &tasks, self.cores(), self.engine.as_deref())?;
            watch.say(&format!("this will take {}", estimate.words()));
            let classifier = kinds.as_ref().and_then(|k| k.classifier.as_ref());
            engine::work(tasks, plan, &self.out, &estimate, classifier, self.engine.as_deref(), watch)?;
        }
        report::write(&self.out, plan, kinds.as_ref(), Some(watch), false)
    }
}
