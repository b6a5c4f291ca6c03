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

/// Directions that wait until walkers have forgotten where they were cause less self-interaction. Steps are shorter than above, since those that wait must not be long. Mean error of the
/// driving walkers' `log Z` over 40 runs: at least four times smaller with a delay of 5, in which what walkers remember of where they were in a mode falls to less than a tenth. Four is the factor that is
/// also asked of the leave-one-out rule.
#[test]
fn waiting_directions_cause_no_self_interaction() {
    let mean_error = |delay: Option<f64>| {
        let runs = 40;
        let error = |seed: u64| {
            let mut setup = setup(100 + seed);
            (setup.kernel, setup.delay) = (Kernel::ghmc(1.0), delay);
            setup.optimizer =
                Optimizer::new(Rule::Momentum { beta: 0.5 }, vec![0.02; setup.optimizer.rates().len()]);
            let e = run(setup, 600).estimates().unwrap();
            e.driving_log_z.unwrap() - e.log_z_exact.unwrap()
        };
        (0..runs).map(error).sum::<f64>() / runs as f64
    };
    let (at_once, later) = (mean_error(None), mean_error(Some(5.0)));
    println!("log Z of driving walkers errs by {at_once:.4} at once, {later:.4} with a delay");
    assert!(at_once < 0.0 && 4.0 * later.abs() < at_once.abs(), "{later} of {at_once}");
}

/// Parameters stay for as long as the delay, then move by the direction of that many iterations ago.
#[test]
fn directions_wait_their_turn() {
    let delayed = |delay: Option<f64>, iterations: u64| {
        let mut setup = setup(3);
        setup.optimizer = Optimizer::new(Rule::Gradient, vec![0.02; setup.optimizer.rates().len()]);
        setup.delay = delay;
        Energy::<f64>::params(run(setup, iterations).energy()).to_vec()
    };
    let start = delayed(None, 0);
    // ULA with h = 0.1: five iterations.
    let delay = Some(0.5);
    assert_eq!(delayed(delay, 5), start);
    // The first direction is that of the initial walkers, however long it waits.
    assert_eq!(delayed(delay, 6), delayed(None, 1));
    assert_ne!(delayed(delay, 7), delayed(None, 2));
}

#[test]
fn waiting_directions_are_part_of_the_state() {
    let delayed = || {
        let mut setup = setup(3);
        (setup.delay, setup.kernel) = (Some(0.7), Kernel::mala());
        setup
    };
    let whole = run(delayed(), 20).state();
    for stop in [4, 13] {
        let state = run(delayed(), stop).state();
        assert_eq!(state.waiting.len(), 1 + 7.min(stop as usize) * state.theta.len());
        let mut resumed = Trainer::new(delayed()).unwrap();
        resumed.restore(state.clone()).unwrap();
        for _ in stop..20 {
            resumed.step().unwrap();
        }
        assert_eq!(resumed.state(), whole);
        let error = Trainer::new(setup(3)).unwrap().restore(state).unwrap_err().to_string();
        assert!(error.contains("another setup"), "{error}");
    }
}

#[test]
fn no_delay_with_leave_one_out() {
    let mut both = setup(3);
    (both.delay, both.self_interaction) = (Some(0.7), Some(SelfInteractionRule::LeaveOneOut));
    assert!(Trainer::new(both).err().unwrap().to_string().contains("delay"));
    let mut chosen = setup(3);
    (chosen.delay, chosen.self_interaction) = (Some(0.7), None);
    assert!(!Trainer::new(chosen).unwrap().leaves_one_out());
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
