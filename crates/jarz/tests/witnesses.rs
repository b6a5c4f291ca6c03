//! Witnesses: walkers that are weighted along the path of the parameters and have no part in it.

use jarz::{
    Algorithm, Dataset, Energy, Kernel, Mixture, Optimizer, Rule, SelfInteractionRule, Setup, Thresholds,
    Trainer, Trigger,
};

/// Two modes in three dimensions, few driving walkers and fast Adam steps: the self-interaction is strong.
fn setup(seed: u64) -> Setup<f64, Mixture> {
    let teacher = Mixture::new(&[vec![-1.0, 0.0, 0.4], vec![1.2, 0.3, 0.0]], &[0.0, 0.7], 1.0).unwrap();
    let student = Mixture::new(&[vec![-0.5, 0.0, 0.0], vec![0.5, 0.0, 0.0]], &[0.0, 0.0], 1.0).unwrap();
    let data = Dataset::sample(&teacher, 1000, 5).unwrap();
    let params = Energy::<f64>::params(&student).len();
    let mut setup = Setup::new(student, data);
    setup.self_interaction = Some(SelfInteractionRule::None);
    setup.optimizer = Optimizer::new(Rule::Momentum { beta: 0.9 }, vec![0.02; params]);
    setup.trigger = Trigger::EssBelow(Thresholds::constant(0.7));
    (setup.walkers, setup.witnesses) = (200, 800);
    (setup.seed, setup.threads) = (seed, 1);
    setup
}

fn run(setup: Setup<f64, Mixture>, iterations: u64) -> Trainer<f64, Mixture> {
    let mut trainer = Trainer::new(setup).unwrap();
    for _ in 0..iterations {
        trainer.step().unwrap();
    }
    trainer
}

#[test]
fn witnesses_leave_the_path_alone() {
    let with = run(setup(3), 50);
    let mut alone = setup(3);
    alone.witnesses = 0;
    let alone = run(alone, 50);
    assert_eq!(Energy::<f64>::params(with.energy()), Energy::<f64>::params(alone.energy()));
    assert_eq!(with.driving_walkers(), alone.walkers());
    assert_eq!((with.walkers().len(), with.driving_walkers().len()), (800, 200));
    assert_ne!(
        with.walkers().positions()[..600],
        alone.walkers().positions()[..600],
        "random numbers of their own"
    );
}

/// `Z_hat / Z` averages to one for the witnesses, whatever the optimizer does, also along a running mean of the parameters; that of the walkers that drive it falls short by far.
/// 40 runs, limit 5 standard errors of their mean: a false alarm in 10^5 (Student, 39 degrees of freedom).
#[test]
fn witnesses_are_free_of_the_self_interaction() {
    for (kernel, average) in [(Kernel::ula(), None), (Kernel::mala(), None), (Kernel::ula(), Some(30.0))] {
        let runs = 40;
        let (mut of_witnesses, mut of_drivers) = (Vec::new(), Vec::new());
        for seed in 0..runs {
            let mut setup = setup(100 + seed);
            (setup.kernel, setup.average) = (kernel, average);
            let e = run(setup, 400).estimates().unwrap();
            let exact = e.log_z_exact.unwrap();
            of_witnesses.push((e.log_z.unwrap().value - exact).exp());
            of_drivers.push((e.driving_log_z.unwrap() - exact).exp());
        }
        let deviation = |ratios: &[f64]| {
            let n = ratios.len() as f64;
            let mean = ratios.iter().sum::<f64>() / n;
            let variance = ratios.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / (n - 1.0);
            (mean - 1.0) / (variance / n).sqrt()
        };
        let (witnesses, drivers) = (deviation(&of_witnesses), deviation(&of_drivers));
        println!("{:?}: witnesses {witnesses:.2}, drivers {drivers:.2} standard errors", kernel.kind);
        assert!(witnesses.abs() < 5.0, "{witnesses} standard errors");
        // Those are weighted for the parameters, not for their mean.
        assert!(average.is_some() || drivers < -5.0, "the test has no power: {drivers}");
    }
}

/// The mean follows its definition, and is the model that estimates are about.
#[test]
fn the_model_is_the_running_mean() {
    let mut averaged = setup(3);
    averaged.average = Some(4.0);
    let (mut averaged, mut plain) = (Trainer::new(averaged).unwrap(), Trainer::new(setup(3)).unwrap());
    let mut mean = Energy::<f64>::params(plain.energy()).to_vec();
    for _ in 0..20 {
        averaged.step().unwrap();
        plain.step().unwrap();
        for (mean, theta) in mean.iter_mut().zip(Energy::<f64>::params(plain.energy())) {
            *mean += 0.25 * (theta - *mean);
        }
    }
    assert_eq!(Energy::<f64>::params(averaged.energy()), mean);
    let exact = averaged.energy().clone();
    assert_eq!(averaged.estimates().unwrap().log_z_exact, Some(jarz::Exact::<f64>::log_z(&exact)));
}

#[test]
fn a_mean_needs_witnesses() {
    for (average, witnesses, words) in [(Some(10.0), 0, "witnesses"), (Some(0.5), 800, "running mean")] {
        let mut setup = setup(1);
        (setup.average, setup.witnesses) = (average, witnesses);
        let error = Trainer::new(setup).err().unwrap().to_string();
        assert!(error.contains(words), "{error}");
    }
    let mut pcd = setup(1);
    (pcd.algorithm, pcd.witnesses, pcd.average) = (Algorithm::Pcd, 0, Some(10.0));
    assert!(Trainer::new(pcd).is_ok(), "without weights any walkers will do");
}

#[test]
fn witnesses_need_weights() {
    let mut pcd = setup(1);
    pcd.algorithm = Algorithm::Pcd;
    let error = Trainer::new(pcd).err().unwrap().to_string();
    assert!(error.contains("witnesses"), "{error}");
    let mut given = setup(1);
    given.initial = Some((vec![0.0; 600], Some(0.0)));
    assert!(Trainer::new(given).err().unwrap().to_string().contains("initial walkers"));
}
