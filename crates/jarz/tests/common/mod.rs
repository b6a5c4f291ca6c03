//! The 50-dimensional mixture of the paper's appendix, set up as the large-scale tests need it.

use jarz::optimizer::learning_rates;
use jarz::{
    Dataset, Energy, Estimates, Kernel, Mixture, Optimizer, Purpose, Random, Real, Rule, Setup, StepSize,
    Thresholds, Trainer, Trigger,
};

/// Dimension of the experiment.
pub const DIM: usize = 50;
/// Walkers and data points.
pub const COUNT: usize = 10_000;

fn on_first_axis(value: f64) -> Vec<f64> {
    let mut mean = vec![0.0; DIM];
    mean[0] = value;
    mean
}

/// Jarzynski with ULA at h = 0.1, resampling below an ESS of 1/1.8, and the given steps for log-masses and means.
pub fn experiment<T: Real>(seed: u64, mass_step: f64, mean_step: f64) -> Setup<T, Mixture> {
    let teacher = Mixture::paper(&on_first_axis(-10.0), &on_first_axis(6.0), -(3f64.ln())).unwrap();
    let data = Dataset::<T>::sample(&teacher, COUNT, seed).unwrap();
    let mut start = vec![0.0f64; 2 * DIM];
    Random::new(seed).normals(0, 0, Purpose::Parameters, &mut start);
    start.iter_mut().for_each(|v| *v *= 0.01);
    (start[0], start[DIM]) = (-0.1, 0.1);
    let student = Mixture::paper(&start[..DIM], &start[DIM..], 0.0).unwrap();
    let groups = Energy::<T>::groups(&student);
    let named = [("mean".to_string(), mean_step), ("log_mass".to_string(), mass_step)];
    let rates = learning_rates(&groups, &named, &["log_mass.0".into()]).unwrap();
    let mut setup = Setup::new(student, data);
    setup.optimizer = Optimizer::new(Rule::Gradient, rates);
    setup.kernel = Kernel::ula();
    setup.step_size = StepSize::fixed(0.1);
    setup.trigger = Trigger::EssBelow(Thresholds::constant(1.0 / 1.8));
    setup.walkers = COUNT;
    setup.seed = seed;
    setup.threads = 0;
    setup
}

/// Trains for so many iterations and says what came out.
#[allow(dead_code)] // Not every test that shares the setup does.
pub fn run<T: Real>(setup: Setup<T, Mixture>, iterations: u64) -> Estimates {
    let mut trainer = Trainer::new(setup).unwrap();
    for _ in 0..iterations {
        trainer.step().unwrap();
    }
    trainer.estimates().unwrap()
}
