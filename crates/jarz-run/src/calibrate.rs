//! How long a run would take on this machine, found by running its first steps.

use crate::config::{Config, ModelConfig};
use crate::error::RunError;
use crate::problem::{Job, network_setup, with_setup};
use crate::state::Scalar;
use crate::train::Engine;
use jarz::{Dataset, Energy, Setup, StepInfo, Trainer};
use std::time::{Duration, Instant};

/// Walkers of a network that are enough to find out: the time goes with their number.
const NETWORK_WALKERS: usize = 256;
/// Data points that are enough for the time of a row.
const ROW_POINTS: usize = 256;

/// What a run of some configuration costs here, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Timing {
    /// Making data and walkers.
    pub setup: f64,
    /// One iteration.
    pub step: f64,
    /// One logged row.
    pub row: f64,
}

impl Timing {
    /// Seconds of a whole run.
    pub fn seconds(&self, config: &Config) -> f64 {
        let rows = config.run.iterations / config.run.log_every + 1;
        self.setup + self.step * config.run.iterations as f64 + self.row * rows as f64
    }
}

/// Times the real steps of a configuration, without writing anything, for about `budget` and at least two steps. Of a network with many walkers a share of
/// walkers, mini-batches and data points is timed, since a single iteration may take minutes.
///
/// On an engine all walkers move, since the time of a device does not go with their number.
pub fn calibrate(engine: Option<&dyn Engine>, config: &Config, budget: Duration) -> Result<Timing, RunError> {
    config.check()?;
    if let Some(engine) = engine {
        return calibrate_engine(engine, config, budget);
    }
    let mut config = config.clone();
    let share = match config.model {
        ModelConfig::Network(_) => (config.walkers.count / NETWORK_WALKERS).max(1),
        _ => 1,
    };
    config.walkers.count = (config.walkers.count / share).max(2);
    config.walkers.batch = config.walkers.batch.map(|batch| (batch / share).max(2));
    config.walkers.witnesses = config.walkers.witnesses / share / 2 * 2;
    if let Some(relay) = &mut config.walkers.relay {
        relay.keepers = (relay.keepers / share).max(2);
    }
    let limit = config.run.iterations.max(2);
    with_setup(&config, Calibrate { budget, limit, share, begun: Instant::now() })
}

fn calibrate_engine(engine: &dyn Engine, config: &Config, budget: Duration) -> Result<Timing, RunError> {
    engine.check(config)?;
    let start = Instant::now();
    let mut trainer = engine.start(network_setup(config)?)?;
    let setup = start.elapsed().as_secs_f64();
    let step = time_steps(config.run.iterations.max(2), budget, || trainer.step())?;
    let start = Instant::now();
    trainer.estimates()?;
    Ok(Timing { setup, step, row: start.elapsed().as_secs_f64() })
}

/// Seconds of a step. The first one warms up caches and threads and is not counted.
fn time_steps(
    limit: u64,
    budget: Duration,
    mut step: impl FnMut() -> Result<StepInfo, jarz::Error>,
) -> Result<f64, RunError> {
    step()?;
    let start = Instant::now();
    let mut steps = 0;
    while steps == 0 || (steps + 1 < limit && start.elapsed() < budget) {
        step()?;
        steps += 1;
    }
    Ok(start.elapsed().as_secs_f64() / steps as f64)
}

struct Calibrate {
    budget: Duration,
    limit: u64,
    share: usize,
    begun: Instant,
}

impl Job for Calibrate {
    type Output = Timing;

    fn run<T: Scalar, E: Energy<T>>(self, mut setup: Setup<T, E>) -> Result<Timing, RunError> {
        let data = self.begun.elapsed().as_secs_f64();
        setup.data_batch = setup.data_batch.map(|batch| (batch / self.share).max(2));
        let (start, share) = (Instant::now(), self.share as f64);
        let mut trainer = Trainer::new(setup)?;
        let setup = data + share * start.elapsed().as_secs_f64();
        let step = share * time_steps(self.limit, self.budget, || trainer.step())?;
        let (all, start) = (trainer.data().len(), Instant::now());
        if self.share == 1 {
            trainer.estimates()?;
            return Ok(Timing { setup, step, row: start.elapsed().as_secs_f64() });
        }
        let some = all.min(ROW_POINTS);
        if let Some(points) = Dataset::new(
            trainer.data().dim(),
            trainer.data().values()[..some * trainer.data().dim()].to_vec(),
        ) {
            trainer.mean_energy(&points)?;
        }
        let row = start.elapsed().as_secs_f64() * all as f64 / some as f64;
        Ok(Timing { setup, step, row })
    }
}
