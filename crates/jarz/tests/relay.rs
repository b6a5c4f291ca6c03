//! Copies of the witnesses that take over from the driving walkers.

use jarz::{
    Dataset, Energy, Kernel, Mixture, Optimizer, Relay, Rule, SelfInteractionRule, Setup, Thresholds,
    Trainer, Trigger,
};

/// Two modes in three dimensions, few driving walkers and fast steps with momentum: the self-interaction is strong.
fn setup(seed: u64) -> Setup<f64, Mixture> {
    let teacher = Mixture::new(&[vec![-1.0, 0.0, 0.4], vec![1.2, 0.3, 0.0]], &[0.0, 0.7], 1.0).unwrap();
    let student = Mixture::new(&[vec![-0.5, 0.0, 0.0], vec![0.5, 0.0, 0.0]], &[0.0, 0.0], 1.0).unwrap();
    let data = Dataset::sample(&teacher, 1000, 5).unwrap();
    let params = Energy::<f64>::params(&student).len();
    let mut setup = Setup::new(student, data);
    setup.self_interaction = Some(SelfInteractionRule::None);
    setup.kernel = Kernel::ghmc(1.0);
    setup.optimizer = Optimizer::new(Rule::Momentum { beta: 0.5 }, vec![0.02; params]);
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

/// Mean over 40 runs of the error of `log Z`, of the driving walkers and of the witnesses, and the standard error of the latter.
fn errors(relay: Option<Relay>) -> [f64; 3] {
    let runs = 40;
    let (mut drivers, mut witnesses) = (0.0, Vec::new());
    for seed in 0..runs {
        let mut setup = setup(100 + seed);
        setup.relay = relay;
        let e = run(setup, 600).estimates().unwrap();
        drivers += (e.driving_log_z.unwrap() - e.log_z_exact.unwrap()) / runs as f64;
        witnesses.push(e.log_z.unwrap().value - e.log_z_exact.unwrap());
    }
    let n = runs as f64;
    let mean = witnesses.iter().sum::<f64>() / n;
    let variance = witnesses.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / (n - 1.0);
    [drivers, mean, (variance / n).sqrt()]
}

/// Driving walkers that hand over in time have a `log Z` with at most a quarter of the error that they collect otherwise (the factor that is asked of the leave-one-out rule as well), and the witnesses,
/// whose copies they are, stay right: within 5 standard errors of the mean of 40 runs, a false alarm in 10^5 (Student, 39 degrees of freedom).
#[test]
fn walkers_that_hand_over_collect_no_self_interaction() {
    let [alone, ..] = errors(None);
    let [drivers, witnesses, error] = errors(Some(Relay { every: 10, rest: 3.0 }));
    println!(
        "log Z errs by {alone:.4} without; drivers {drivers:.4}, witnesses {witnesses:.4} +- {error:.4} with hand-overs"
    );
    assert!(alone < 0.0 && 4.0 * drivers.abs() < alone.abs(), "{drivers} of {alone}");
    assert!(witnesses.abs() < 5.0 * error, "{witnesses} +- {error}");
}

/// Witnesses that follow a running mean are elsewhere than the parameters: their copies are weighted on the way. Mean of `Z_hat / Z` right after a hand-over, over 60 runs, within 5
/// standard errors of one (a false alarm in 10^5); without these weights it would be off by the distance between the two, several times as much.
#[test]
fn copies_are_led_from_the_mean_to_the_parameters() {
    let (mut ratios, mut distance) = (Vec::new(), 0.0);
    let runs = 60;
    for seed in 0..runs {
        let mut setup = setup(300 + seed);
        (setup.relay, setup.average) = (Some(Relay { every: 50, rest: 2.0 }), Some(200.0));
        // The masses' parameters are what log Z depends on.
        setup.optimizer = Optimizer::new(Rule::Gradient, [vec![0.02; 6], vec![0.0, 0.5]].concat());
        (setup.walkers, setup.witnesses) = (2000, 8000);
        let mut trainer = run(setup, 50);
        let e = trainer.estimates().unwrap();
        let mut model = trainer.energy().clone();
        Energy::<f64>::set_params(&mut model, &trainer.state().theta);
        let exact = Energy::<f64>::exact(&model).unwrap().log_z();
        ratios.push((e.driving_log_z.unwrap() - exact).exp());
        distance += (e.log_z_exact.unwrap() - exact).abs() / runs as f64;
        assert_eq!(trainer.driving_walkers().len(), 2000);
        assert!(trainer.driving_walkers().ancestors().is_sorted());
    }
    let n = ratios.len() as f64;
    let mean = ratios.iter().sum::<f64>() / n;
    let error = (ratios.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / (n - 1.0) / n).sqrt();
    println!("Z_hat / Z {mean:.4} +- {error:.4}, log Z of mean and parameters differ by {distance:.4}");
    assert!((mean - 1.0).abs() < 5.0 * error, "{mean} +- {error}");
    assert!(distance > 10.0 * error, "the test has no power: {distance}, {error}");
}

#[test]
fn threads_and_stops_do_not_matter() {
    let short = |threads: usize| {
        let mut setup = setup(7);
        (setup.relay, setup.average) = (Some(Relay { every: 4, rest: 0.8 }), Some(5.0));
        setup.threads = threads;
        setup
    };
    let whole = run(short(1), 10).state();
    assert_eq!(run(short(3), 10).state(), whole);
    for stop in [3, 4, 5] {
        let mut resumed = Trainer::new(short(2)).unwrap();
        resumed.restore(run(short(1), stop).state()).unwrap();
        for _ in stop..10 {
            resumed.step().unwrap();
        }
        assert_eq!(resumed.state(), whole, "stopped after {stop}");
    }
}

#[test]
fn what_cannot_work_is_refused() {
    let refused = |change: &dyn Fn(&mut Setup<f64, Mixture>)| {
        let mut setup = setup(1);
        setup.relay = Some(Relay { every: 4, rest: 1.0 });
        change(&mut setup);
        Trainer::new(setup).err().map(|e| e.to_string()).unwrap_or_default()
    };
    assert_eq!(refused(&|_| ()), "");
    assert!(refused(&|s| s.witnesses = 0).contains("witnesses"));
    assert!(refused(&|s| s.batch = Some(20)).contains("mini-batches"));
    assert!(refused(&|s| s.relay = Some(Relay { every: 0, rest: 1.0 })).contains("at least one iteration"));
    assert!(refused(&|s| s.relay = Some(Relay { every: 4, rest: -1.0 })).contains("positive"));
    assert!(refused(&|s| s.relay = Some(Relay { every: 4, rest: 1e6 })).contains("1000 steps"));
}
