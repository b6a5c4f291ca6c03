//! Training runs in a folder: start, stop, resume.

use crate::checkpoint::CheckpointStore;
use crate::clock::Clock;
use crate::config::Config;
use crate::error::RunError;
use crate::folder::{RunFolder, read_config};
use crate::follow::read_metrics;
use crate::metrics::MetricsWriter;
use crate::problem::{Job, check_unchanged, network_setup, resolve, with_setup};
use crate::sample::pixels;
use crate::state::{Scalar, from_snapshot, to_snapshot};
use crate::summary::Summary;
use crate::tensorboard::EventWriter;
use jarz::{Checkpoints, Classes, Energy, Loop, Observer, Setup, State, Trainer, Training};
use jarz_net::{Classifier, NetEnergy};
use std::path::Path;
use std::time::{Duration, Instant};

/// What the caller of a run provides.
pub struct Session<'a> {
    /// Told about every iteration and logged row, besides the metrics file.
    pub observer: &'a mut dyn Observer,
    /// Asked after every iteration.
    pub stop: &'a dyn Fn() -> bool,
    /// Hears about checkpoints that could not be read.
    pub warn: &'a dyn Fn(&str),
    /// Tells kinds of images apart, whose masses are then logged.
    pub classifier: Option<&'a Classifier<f32>>,
}

/// What trains networks in place of the processor.
pub trait Engine {
    /// Says what of a configuration it cannot do, and what to change.
    fn check(&self, config: &Config) -> Result<(), RunError>;
    /// Makes the walkers and gets ready.
    fn start(&self, setup: Setup<f32, NetEnergy<f32>>) -> Result<Box<dyn Training<f32>>, RunError>;
}

/// Starts a run in a new folder.
pub fn train(config: Config, folder: &Path, force: bool, session: Session<'_>) -> Result<Summary, RunError> {
    train_on(None, config, folder, force, session)
}

/// Starts a run in a new folder, on an engine or the processor.
pub fn train_on(
    engine: Option<&dyn Engine>,
    mut config: Config,
    folder: &Path,
    force: bool,
    session: Session<'_>,
) -> Result<Summary, RunError> {
    config.check()?;
    resolve(&mut config)?;
    begin(engine, Train { config: &config, folder: Place::New { folder, force }, session })
}

/// Goes on with a run, or extends a finished one to `iterations`.
pub fn resume(
    folder: &Path,
    iterations: Option<u64>,
    threads: Option<usize>,
    session: Session<'_>,
) -> Result<Summary, RunError> {
    resume_on(None, folder, iterations, threads, session)
}

/// Goes on with a run on an engine or the processor, wherever it began.
pub fn resume_on(
    engine: Option<&dyn Engine>,
    folder: &Path,
    iterations: Option<u64>,
    threads: Option<usize>,
    session: Session<'_>,
) -> Result<Summary, RunError> {
    let mut config = read_config(folder)?;
    check_unchanged(&config)?;
    let folder = RunFolder::open(folder)?;
    if let Some(iterations) = iterations {
        config.run.iterations = iterations;
        config.check()?;
        folder.write_config(&config)?;
    }
    if let Some(threads) = threads {
        config.run.threads = threads;
    }
    begin(engine, Train { config: &config, folder: Place::Existing(folder), session })
}

fn begin(engine: Option<&dyn Engine>, train: Train<'_, '_>) -> Result<Summary, RunError> {
    let Some(engine) = engine else { return with_setup(train.config, train) };
    engine.check(train.config)?;
    let setup = network_setup(train.config)?;
    let energy = setup.energy.clone();
    let mut trainer = engine.start(setup)?;
    train.drive(&mut *trainer, &energy)
}

/// Where a run is kept.
enum Place<'a> {
    New { folder: &'a Path, force: bool },
    Existing(RunFolder),
}

struct Train<'a, 's> {
    config: &'a Config,
    folder: Place<'a>,
    session: Session<'s>,
}

impl Job for Train<'_, '_> {
    type Output = Summary;

    fn run<T: Scalar, E: Energy<T>>(self, setup: Setup<T, E>) -> Result<Summary, RunError> {
        let energy = setup.energy.clone();
        // Everything that can be wrong with the configuration shows before a folder is touched.
        let mut trainer = Trainer::new(setup)?;
        self.drive(&mut trainer, &energy)
    }
}

impl Train<'_, '_> {
    fn drive<T: Scalar>(
        self,
        trainer: &mut dyn Training<T>,
        energy: &impl Energy<T>,
    ) -> Result<Summary, RunError> {
        let folder = match self.folder {
            Place::Existing(folder) => folder,
            Place::New { folder, force } => {
                let folder = RunFolder::create(folder, force)?;
                folder.write_config(self.config)?;
                folder
            }
        };
        let store = CheckpointStore::open(folder.file("checkpoints"))?;
        let earlier = restore(trainer, &store, self.session.warn)?;
        let clock = Clock::new(earlier);
        let mut metrics = MetricsWriter::open(&folder.file("metrics.jsonl"), trainer.iteration(), clock)?;
        let run = &self.config.run;
        let mut events = match run.tensorboard {
            true => {
                let rows = read_metrics(&folder.file("metrics.jsonl"))?;
                Some(EventWriter::open(&folder.file("tensorboard"), &rows, clock)?)
            }
            false => None,
        };
        let mut writer = CheckpointWriter {
            store,
            clock,
            every: run.checkpoint_every,
            interval: Duration::from_secs_f64(run.checkpoint_seconds.min(1e9)),
            last: Instant::now(),
            saved: None,
        };
        let mut observers: Vec<&mut dyn Observer> = vec![&mut metrics, self.session.observer];
        observers.extend(events.iter_mut().map(|events| events as &mut dyn Observer));
        let classifier = self.session.classifier;
        if classifier.is_some_and(|c| c.network().inputs() != energy.dim()) {
            return Err(RunError::Impossible("the classifier is for images of another size".into()));
        }
        let kinds = |z: &[T]| classifier.map_or_else(Vec::new, |c| c.probabilities(&pixels(energy, z)));
        let mut steps = Loop {
            iterations: run.iterations,
            log_every: run.log_every,
            classes: classifier.map(|c| Classes { count: c.classes(), probabilities: &kinds }),
            observers,
            checkpoints: Some(&mut writer),
            stop: self.session.stop,
        };
        let stopped = steps.run(trainer)?;
        let estimates = steps.estimates(trainer)?;
        let (algorithm, leaves) = (trainer.algorithm(), trainer.leaves_one_out());
        let summary = Summary::new(self.config.seed, algorithm, leaves, stopped, &estimates, clock.seconds());
        folder.write_json("summary.json", &summary)?;
        Ok(summary)
    }
}

/// Goes to the newest checkpoint, if there is one, and says how much computing time led to it.
fn restore<T: Scalar>(
    trainer: &mut dyn Training<T>,
    store: &CheckpointStore,
    warn: &dyn Fn(&str),
) -> Result<f64, RunError> {
    let Some(loaded) = store.load_latest()? else { return Ok(0.0) };
    for (_, reason) in &loaded.rejected {
        warn(&format!("{reason}\ngoing on from '{}' instead", loaded.path.display()));
    }
    let (state, seconds) = from_snapshot::<T>(&loaded.snapshot)?;
    if state.iteration != loaded.iteration {
        let text = format!("'{}' holds iteration {}; it was renamed", loaded.path.display(), state.iteration);
        return Err(RunError::Impossible(text));
    }
    trainer.restore(state)?;
    Ok(seconds)
}

/// Keeps checkpoints by iterations and by time.
struct CheckpointWriter {
    store: CheckpointStore,
    clock: Clock,
    every: Option<u64>,
    interval: Duration,
    last: Instant,
    saved: Option<u64>,
}

impl<T: Scalar> Checkpoints<T> for CheckpointWriter {
    fn due(&mut self, iteration: u64) -> bool {
        iteration > 0
            && (self.every.is_some_and(|every| iteration.is_multiple_of(every))
                || self.last.elapsed() >= self.interval)
    }

    fn save(&mut self, state: &State<T>) -> Result<(), String> {
        if self.saved != Some(state.iteration) {
            let snapshot = to_snapshot(state, self.clock.seconds());
            self.store.save(state.iteration, &snapshot).map_err(|e| e.to_string())?;
            self.saved = Some(state.iteration);
        }
        self.last = Instant::now();
        Ok(())
    }
}
