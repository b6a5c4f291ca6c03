//! The work that everybody does: one step of the paper's Gaussian mixture experiment, in several sizes.

use jarz::{
    Dataset, Energy, Mixture, Optimizer, Random, Real, Rule, SelfInteractionRule, Setup, State, Trainer,
    Trigger,
};
use std::time::{Duration, Instant};

use crate::error::BenchError;

/// Time step of the kernel and learning rates, as in `experiments/gmm.toml`.
pub const STEP_SIZE: f64 = 0.1;
/// Learning rate of the means.
pub const MEAN_RATE: f64 = 0.005;
/// Learning rate of the second mode's log-mass; the first one's is a gauge and stays.
pub const MASS_RATE: f64 = 0.025;
/// Seed of everything.
pub const SEED: u64 = 7;

/// Untimed steps after a fresh start, then timed ones. Both sides always time the same steps of the same run, in which the modes
/// still overlap and no share of a walker is negligible.
pub const WARM_UP: u64 = 2;
/// Timed steps between two fresh starts.
pub const TIMED: u64 = 10;

/// The size of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Name in the results.
    pub work: &'static str,
    /// What it is, for readers.
    pub title: &'static str,
    /// Dimension.
    pub dim: usize,
    /// Walkers `N`.
    pub walkers: usize,
    /// Data points `n`.
    pub points: usize,
    /// Walkers that move per step, if not all.
    pub batch: Option<usize>,
}

/// The steps that are compared with the peers.
pub const STEPS: [Shape; 5] = [
    Shape {
        work: "a",
        title: "full-batch step, d = 50, N = n = 10^5",
        dim: 50,
        walkers: 100_000,
        points: 100_000,
        batch: None,
    },
    Shape {
        work: "b",
        title: "full-batch step, d = 50, N = n = 10^4",
        dim: 50,
        walkers: 10_000,
        points: 10_000,
        batch: None,
    },
    Shape {
        work: "c",
        title: "mini-batch step, d = 50, N = n = 10^5, of which 10^4 move",
        dim: 50,
        walkers: 100_000,
        points: 100_000,
        batch: Some(10_000),
    },
    Shape {
        work: "e:d=2",
        title: "full-batch step, d = 2, N = n = 2.5 10^6",
        dim: 2,
        walkers: 2_500_000,
        points: 2_500_000,
        batch: None,
    },
    Shape {
        work: "e:d=1000",
        title: "full-batch step, d = 1000, N = n = 5000",
        dim: 1000,
        walkers: 5_000,
        points: 5_000,
        batch: None,
    },
];

impl Shape {
    /// Walkers that move in a step.
    pub fn moving(&self) -> usize {
        self.batch.unwrap_or(self.walkers)
    }
}

/// Two modes on the first axis.
fn mixture(dim: usize, first: f64, second: f64, log_masses: [f64; 2]) -> Result<Mixture, BenchError> {
    let mean = |at: f64| {
        let mut mean = vec![0.0; dim];
        mean[0] = at;
        mean
    };
    Mixture::new(&[mean(first), mean(second)], &log_masses, 1.0)
        .ok_or_else(|| BenchError::Usage(format!("no mixture has {dim} dimensions")))
}

/// The teacher's data and a student near the origin, trained with plain gradient steps; no resampling.
pub fn setup<T: Real>(
    shape: &Shape,
    rule: SelfInteractionRule,
    threads: usize,
) -> Result<Setup<T, Mixture>, BenchError> {
    let teacher = mixture(shape.dim, -10.0, 6.0, [0.25f64.ln(), 0.75f64.ln()])?;
    let student = mixture(shape.dim, -0.1, 0.1, [0.0, 0.0])?;
    let data = Dataset::<T>::sample(&teacher, shape.points, SEED)
        .ok_or_else(|| BenchError::Usage("there must be data points".into()))?;
    let mut rates = vec![MEAN_RATE; 2 * shape.dim];
    rates.extend([0.0, MASS_RATE]);
    let mut setup = Setup::new(student, data);
    setup.step_size = jarz::StepSize::fixed(STEP_SIZE);
    setup.optimizer = Optimizer::new(Rule::Gradient, rates);
    setup.self_interaction = Some(rule);
    setup.trigger = Trigger::Never;
    setup.walkers = shape.walkers;
    setup.batch = shape.batch;
    setup.seed = SEED;
    setup.threads = threads;
    Ok(setup)
}

/// Our side of the comparison.
pub struct Ours<T: Real, E: Energy<T> = Mixture> {
    trainer: Trainer<T, E>,
    start: State<T>,
}

impl<T: Real> Ours<T> {
    /// A trainer at its start.
    pub fn new(shape: &Shape, rule: SelfInteractionRule, threads: usize) -> Result<Self, BenchError> {
        Ok(Ours::starting(Trainer::new(setup::<T>(shape, rule, threads)?)?))
    }
}

impl<T: Real, E: Energy<T>> Ours<T, E> {
    /// A trainer whose present state is the start.
    pub fn starting(trainer: Trainer<T, E>) -> Self {
        Ours { start: trainer.state(), trainer }
    }

    /// The trainer.
    pub fn trainer(&self) -> &Trainer<T, E> {
        &self.trainer
    }

    /// The state it starts from.
    pub fn start(&self) -> &State<T> {
        &self.start
    }

    /// Back to the start.
    pub fn reset(&mut self) -> Result<(), BenchError> {
        Ok(self.trainer.restore(self.start.clone())?)
    }

    /// Steps.
    pub fn run(&mut self, steps: u64) -> Result<(), BenchError> {
        for _ in 0..steps {
            self.trainer.step()?;
        }
        Ok(())
    }

    /// Milliseconds a step, from at least `least` of timed steps.
    pub fn time(&mut self, least: Duration) -> Result<f64, BenchError> {
        let (mut spent, mut steps) = (Duration::ZERO, 0);
        while spent < least {
            self.reset()?;
            self.run(WARM_UP)?;
            let start = Instant::now();
            self.run(TIMED)?;
            spent += start.elapsed();
            steps += TIMED;
        }
        Ok(spent.as_secs_f64() * 1e3 / steps as f64)
    }
}

/// The random numbers of all benchmarks.
pub fn random() -> Random {
    Random::new(SEED)
}
