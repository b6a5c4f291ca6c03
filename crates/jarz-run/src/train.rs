//! Training runs in a folder: start, stop, resume.

use crate::checkpoint::{CheckpointStore, Loaded};
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
use jarz::{Checkpoints, Classes, Energy, Loop, Observer, Ranks, Setup, State, Trainer, Training};
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
    /// Who shares the run. All ranks make the same calls; the first reads and writes the folder, the others read checkpoints.
    pub ranks: Ranks,
    /// Threads, if the configuration leaves it open; 0 means one per core.
    pub threads: usize,
}

/// What trains networks in place of the processor.
pub trait Engine: std::fmt::Debug + Send + Sync {
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
    // All have read the configuration before the first may write it.
    session.ranks.first_says(0);
    let open = session.ranks.is_first().then(|| RunFolder::open(folder)).transpose()?;
    if let Some(iterations) = iterations {
        config.run.iterations = iterations;
        config.check()?;
        if let Some(folder) = &open {
            folder.write_config(&config)?;
        }
    }
    if let Some(threads) = threads {
        config.run.threads = threads;
    }
    begin(engine, Train { config: &config, folder: Place::Existing { folder, open }, session })
}

fn begin(engine: Option<&dyn Engine>, train: Train<'_, '_>) -> Result<Summary, RunError> {
    let Some(engine) = engine else { return with_setup(train.config, train) };
    if !train.session.ranks.is_alone() {
        let text = "a device trains alone: start the run without mpirun, or without --device";
        return Err(RunError::Impossible(text.into()));
    }
    engine.check(train.config)?;
    let setup = network_setup(train.config)?;
    let energy = setup.energy.clone();
    let mut trainer = engine.start(setup)?;
    train.drive(&mut *trainer, &energy)
}

/// Where a run is kept.
enum Place<'a> {
    New {
        folder: &'a Path,
        force: bool,
    },
    /// Open on the first rank.
    Existing {
        folder: &'a Path,
        open: Option<RunFolder>,
    },
}

struct Train<'a, 's> {
    config: &'a Config,
    folder: Place<'a>,
    session: Session<'s>,
}

impl Job for Train<'_, '_> {
    type Output = Summary;

    fn run<T: Scalar, E: Energy<T>>(self, setup: Setup<T, E>) -> Result<Summary, RunError> {
        let (energy, ranks) = (setup.energy.clone(), self.session.ranks.clone());
        // Everything that can be wrong with the configuration shows before a folder is touched.
        let threads = if setup.threads == 0 { self.session.threads } else { setup.threads };
        let mut trainer = Trainer::new(Setup { ranks, threads, ..setup })?;
        self.drive(&mut trainer, &energy)
    }
}

impl Train<'_, '_> {
    /// Sees a run through; `energy` is that of the trainer, at whatever parameters.
    fn drive<T: Scalar>(
        self,
        trainer: &mut dyn Training<T>,
        energy: &impl Energy<T>,
    ) -> Result<Summary, RunError> {
        let ranks = self.session.ranks.clone();
        let (folder, path) = match self.folder {
            Place::Existing { folder, open } => (open, folder),
            Place::New { folder, force } if ranks.is_first() => {
                let created = RunFolder::create(folder, force)?;
                created.write_config(self.config)?;
                (Some(created), folder)
            }
            Place::New { folder, .. } => (None, folder),
        };
        let checkpoints = path.join("checkpoints");
        let store = match ranks.is_first() {
            true => CheckpointStore::open(checkpoints)?,
            false => CheckpointStore::at(checkpoints),
        };
        // The others look when the first has made or cleared the folder.
        let mut loaded = if ranks.is_first() { store.load_latest()? } else { None };
        let mut earlier = 0.0;
        if ranks.first_says(loaded.is_some() as u64) == 1 {
            if loaded.is_none() {
                loaded = store.load_latest()?;
            }
            earlier = go_on(loaded, &store, trainer, self.session.warn)?;
        }
        let clock = Clock::new(earlier);
        let run = &self.config.run;
        let (mut metrics, mut events, mut writer) = (None, None, None);
        if let Some(folder) = &folder {
            let file = folder.file("metrics.jsonl");
            metrics = Some(MetricsWriter::open(&file, trainer.iteration(), clock)?);
            if run.tensorboard {
                let rows = read_metrics(&file)?;
                events = Some(EventWriter::open(&folder.file("tensorboard"), &rows, clock)?);
            }
            writer = Some(CheckpointWriter {
                store,
                clock,
                every: run.checkpoint_every,
                interval: Duration::from_secs_f64(run.checkpoint_seconds.min(1e9)),
                last: Instant::now(),
                saved: None,
            });
        }
        let mut observers: Vec<&mut dyn Observer> = Vec::new();
        observers.extend(metrics.iter_mut().map(|metrics| metrics as &mut dyn Observer));
        observers.push(self.session.observer);
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
            checkpoints: writer.as_mut().map(|writer| writer as &mut dyn Checkpoints<T>),
            stop: self.session.stop,
        };
        let stopped = steps.run(trainer)?;
        let estimates = steps.estimates(trainer)?;
        let (algorithm, leaves) = (trainer.algorithm(), trainer.leaves_one_out());
        let mut summary =
            Summary::new(self.config.seed, algorithm, leaves, stopped, &estimates, clock.seconds());
        summary.add_traffic(&ranks);
        if let Some(folder) = &folder {
            folder.write_json("summary.json", &summary)?;
        }
        Ok(summary)
    }
}

/// Goes on from the latest checkpoint; the computing time it had taken.
fn go_on<T: Scalar>(
    loaded: Option<Loaded>,
    store: &CheckpointStore,
    trainer: &mut dyn Training<T>,
    warn: &dyn Fn(&str),
) -> Result<f64, RunError> {
    let Some(loaded) = loaded else {
        let folder = store.folder().display();
        return Err(RunError::Impossible(format!(
            "this rank sees no checkpoint in '{folder}': it must be a folder that all machines share"
        )));
    };
    for (_, reason) in loaded.rejected.iter().filter(|_| trainer.ranks().is_first()) {
        warn(&format!("{reason}\ngoing on from '{}' instead", loaded.path.display()));
    }
    let (state, seconds) = from_snapshot::<T>(&loaded.snapshot)?;
    if state.iteration != loaded.iteration {
        let path = loaded.path.display();
        let text = format!("'{path}' holds iteration {}; it was renamed", state.iteration);
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
