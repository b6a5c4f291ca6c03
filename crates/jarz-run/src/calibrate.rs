//! How long a run would take on this machine, found by running its first steps.

use crate::config::Config;
use crate::error::RunError;
use crate::problem::{Job, with_setup};
use crate::state::Scalar;
use jarz::{Energy, Setup, Trainer};
use std::time::{Duration, Instant};

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

/// Times the real steps of a configuration, without writing anything, for about `budget` and at least two steps.
pub fn calibrate(config: &Config, budget: Duration) -> Result<Timing, RunError> {
    config.check()?;
    with_setup(config, Calibrate { budget, limit: config.run.iterations.max(2), begun: Instant::now() })
}

struct Calibrate {
    budget: Duration,
    limit: u64,
    begun: Instant,
}

impl Job for Calibrate {
    type Output = Timing;

    fn run<T: Scalar, E: Energy<T>>(self, setup: Setup<T, E>) -> Result<Timing, RunError> {
        let mut trainer = Trainer::new(setup)?;
        let setup = self.begun.elapsed().as_secs_f64();
        // The first step warms up caches and threads and is not counted.
        trainer.step()?;
        let start = Instant::now();
        let mut steps = 0;
        while steps == 0 || (steps + 1 < self.limit && start.elapsed() < self.budget) {
            trainer.step()?;
            steps += 1;
        }
        let step = start.elapsed().as_secs_f64() / steps as f64;
        let start = Instant::now();
        trainer.estimates()?;
        Ok(Timing { setup, step, row: start.elapsed().as_secs_f64() })
    }
}
