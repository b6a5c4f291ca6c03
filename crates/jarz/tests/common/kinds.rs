//! Every kind of run, small enough to be repeated on many threads and ranks.

use jarz::{
    Algorithm, Clip, Dataset, Energy, Kernel, Mixture, Optimizer, Real, Rule, Setup, Thresholds, Trainer,
    Trigger,
};

fn along(value: f64) -> Vec<f64> {
    vec![value, 0.3 * value, 0.0, -0.1 * value, 0.05]
}

/// 2000 walkers in 5 dimensions (several chunks for either precision) that resample often.
pub fn setup<T: Real>(seed: u64) -> Setup<T, Mixture> {
    let teacher = Mixture::new(&[along(-1.5), along(1.0)], &[0.0, 1.0], 0.9).unwrap();
    let student = Mixture::new(&[along(-0.4), along(0.5)], &[0.0, 0.0], 0.9).unwrap();
    let data = Dataset::<T>::sample(&teacher, 1500, 99).unwrap();
    let params = Energy::<T>::params(&student).len();
    let mut setup = Setup::new(student, data);
    setup.optimizer = Optimizer::new(Rule::Gradient, vec![0.05; params]);
    setup.trigger = Trigger::EssBelow(Thresholds::constant(0.99));
    setup.walkers = 2000;
    setup.seed = seed;
    setup.threads = 1;
    setup
}

/// Estimates and state as text: the shortest decimals that give a number back are equal only if the numbers are.
pub fn fingerprint<T: Real>(trainer: &mut Trainer<T, Mixture>) -> String {
    format!("{:?}\n{:?}", trainer.estimates().unwrap(), trainer.state())
}

pub fn advance<T: Real>(trainer: &mut Trainer<T, Mixture>, until: u64) {
    while trainer.iteration() < until {
        trainer.step().unwrap();
    }
}

/// Every kind of run, by name.
pub fn kinds<T: Real>() -> Vec<(&'static str, Setup<T, Mixture>)> {
    let with = |change: fn(&mut Setup<T, Mixture>)| {
        let mut setup = setup::<T>(7);
        change(&mut setup);
        setup
    };
    vec![
        ("full batch", with(|_| {})),
        ("mini-batch", with(|s| (s.batch, s.data_batch) = (Some(700), Some(300)))),
        ("mala", with(|s| s.kernel = Kernel::mala().with_steps(2))),
        ("mala mini-batch", with(|s| (s.kernel, s.batch) = (Kernel::mala(), Some(501)))),
        // These keep up too well to be resampled by need.
        ("ghmc", with(|s| (s.kernel, s.trigger) = (Kernel::ghmc(0.5).with_steps(2), Trigger::Every(9)))),
        (
            "ghmc mini-batch",
            with(|s| (s.kernel, s.batch, s.trigger) = (Kernel::ghmc(1.0), Some(501), Trigger::Every(9))),
        ),
        ("clipped", with(|s| s.kernel = Kernel::ula().with_clip(Some(Clip::Norm(1.0))).with_steps(2))),
        ("continuous", with(|s| s.algorithm = Algorithm::JarzynskiContinuous)),
        (
            "trust region",
            with(|s| {
                s.trust_region = Some(1e-3);
                s.optimizer = Optimizer::new(Rule::Gradient, vec![0.5; 12]);
            }),
        ),
        ("witnesses", with(|s| s.witnesses = 900)),
        ("running mean", with(|s| (s.witnesses, s.average) = (900, Some(20.0)))),
        (
            "witnesses mini-batch",
            with(|s| (s.witnesses, s.batch, s.kernel) = (900, Some(700), Kernel::mala())),
        ),
        (
            "witnesses with momentum",
            with(|s| {
                (s.witnesses, s.average, s.kernel) = (900, Some(20.0), Kernel::ghmc(1.0));
                s.trigger = Trigger::Every(9);
            }),
        ),
        ("pcd", with(|s| s.algorithm = Algorithm::Pcd)),
        ("cd", with(|s| (s.algorithm, s.kernel) = (Algorithm::Cd, Kernel::ula().with_steps(3)))),
    ]
}
