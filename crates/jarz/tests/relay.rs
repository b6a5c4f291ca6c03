//! Copies of walkers that do not drive, which take over from the driving walkers.

use jarz::{
    Algorithm, Dataset, Energy, Gaussian, Kernel, Mixture, Optimizer, Relay, Rule, SelfInteractionRule,
    Settle, Setup, StepSize, Thresholds, Trainer, Trigger,
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

/// Errors of `log Z` over many runs.
#[derive(Default)]
struct Errors(Vec<f64>);

impl Errors {
    fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    /// Standard error of the mean.
    fn std_error(&self) -> f64 {
        let (n, mean) = (self.0.len() as f64, self.mean());
        (self.0.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / (n - 1.0) / n).sqrt()
    }
}

/// Those of the driving walkers, the keepers (if there are any) and the witnesses, in 40 runs.
fn errors(relay: Option<Relay>) -> [Errors; 3] {
    let mut errors = [Errors::default(), Errors::default(), Errors::default()];
    for seed in 0..40 {
        let mut setup = setup(100 + seed);
        setup.relay = relay;
        let mut trainer = run(setup, 600);
        let e = trainer.estimates().unwrap();
        let keepers = trainer.state().keepers.and_then(|(w, sums)| w.log_z.map(|z| z + sums.log_mean()));
        let found = [e.driving_log_z, keepers, e.log_z.map(|z| z.value)];
        for (errors, found) in errors.iter_mut().zip(found) {
            errors.0.extend(found.map(|f| f - e.log_z_exact.unwrap()));
        }
    }
    errors
}

/// Driving walkers that hand over in time have a `log Z` with at most a quarter of the error that they collect otherwise (the factor that is asked of the leave-one-out rule as well), and the witnesses,
/// which nobody copies, are right: within 5 standard errors of the mean of 40 runs, a false alarm in 10^5 (Student, 39 degrees of freedom).
#[test]
fn walkers_that_hand_over_collect_no_self_interaction() {
    let [alone, ..] = errors(None).map(|e| e.mean());
    let [drivers, _, witnesses] = errors(Some(Relay { keepers: 800, every: 10, rest: 3.0 }));
    let (drivers, error) = (drivers.mean(), witnesses.std_error());
    println!(
        "log Z errs by {alone:.4} without; drivers {drivers:.4}, witnesses {:.4} +- {error:.4} with hand-overs",
        witnesses.mean()
    );
    assert!(alone < 0.0 && 4.0 * drivers.abs() < alone.abs(), "{drivers} of {alone}");
    assert!(witnesses.mean().abs() < 5.0 * error, "{} +- {error}", witnesses.mean());
}

/// A few keepers whose copies drive with hardly a rest have a `log Z` that is too low: the copies push them. Witnesses on the same path do not mind: within 5
/// standard errors, a false alarm in 10^5, while the keepers are off by more than 10 of theirs.
#[test]
fn witnesses_are_right_also_if_keepers_are_not() {
    let [_, keepers, witnesses] = errors(Some(Relay { keepers: 50, every: 5, rest: 0.1 }));
    let [(keepers, far), (witnesses, near)] = [keepers, witnesses].map(|e| (e.mean(), e.std_error()));
    println!("log Z errs by {keepers:.4} +- {far:.4} (keepers) and {witnesses:.4} +- {near:.4} (witnesses)");
    assert!(keepers < -10.0 * far, "the test has no power: {keepers} +- {far}");
    assert!(witnesses.abs() < 5.0 * near, "{witnesses} +- {near}");
}

/// Keepers follow the running mean, which is elsewhere than the parameters: their copies are weighted on the way. Mean of `Z_hat / Z` right after a hand-over, over 60 runs, within 5
/// standard errors of one (a false alarm in 10^5); without these weights it would be off by the distance between the two, several times as much.
#[test]
fn copies_are_led_from_the_mean_to_the_parameters() {
    let (mut ratios, mut distance) = (Vec::new(), 0.0);
    let runs = 60;
    for seed in 0..runs {
        let mut setup = setup(300 + seed);
        (setup.relay, setup.average) = (Some(Relay { keepers: 8000, every: 50, rest: 2.0 }), Some(200.0));
        // The masses' parameters are what log Z depends on.
        setup.optimizer = Optimizer::new(Rule::Gradient, [vec![0.02; 6], vec![0.0, 0.5]].concat());
        (setup.walkers, setup.witnesses) = (2000, 2);
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
        (setup.relay, setup.average) = (Some(Relay { keepers: 800, every: 4, rest: 0.8 }), Some(5.0));
        let params = setup.optimizer.rates().len();
        setup.settle = Some(Settle { after: 6, learning: (0..params).map(|j| j > 3).collect(), rate: 0.2 });
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
        setup.relay = Some(Relay { keepers: 800, every: 4, rest: 1.0 });
        change(&mut setup);
        Trainer::new(setup).err().map(|e| e.to_string()).unwrap_or_default()
    };
    assert_eq!(refused(&|_| ()), "");
    assert!(refused(&|s| s.relay = Some(Relay { keepers: 0, every: 4, rest: 1.0 })).contains("say how many"));
    assert!(refused(&|s| s.algorithm = Algorithm::Pcd).contains("weights"));
    assert!(refused(&|s| s.batch = Some(20)).contains("mini-batches"));
    let settle = |learning: &[bool]| Some(Settle { after: 3, learning: learning.to_vec(), rate: 0.1 });
    assert_eq!(refused(&|s| s.settle = settle(&[true; 8])), "");
    assert!(refused(&|s| s.settle = settle(&[true; 7])).contains("of 8"));
    assert!(refused(&|s| s.settle = settle(&[false; 8])).contains("name some"));
    assert!(
        refused(&|s| (s.settle, s.relay) = (settle(&[true; 8]), None))
            .contains("needs witnesses and a relay")
    );
    assert!(
        refused(&|s| s.relay = Some(Relay { keepers: 800, every: 0, rest: 1.0 }))
            .contains("at least one iteration")
    );
    assert!(refused(&|s| s.relay = Some(Relay { keepers: 800, every: 4, rest: -1.0 })).contains("positive"));
    assert!(refused(&|s| s.relay = Some(Relay { keepers: 800, every: 4, rest: 1e6 })).contains("1000 steps"));
}

/// A last phase in which one parameter learns, driven by copies of the witnesses: the others stay as they are. Each step of Newton's with a rate `r` lets `P` parameters cost the walkers that made it `r P / N` nats at most, since the
/// step follows the noise of `N` walkers with a variance of `P / N` in units of its own spread; so the `log Z` of the witnesses is too low by no more than that, summed over all steps, within 5 standard errors of the mean of 40
/// runs, and not too high (a false alarm in 10^5).
#[test]
fn in_the_last_phase_few_parameters_learn() {
    let mut errors = Errors::default();
    for seed in 0..40 {
        let mut setup = setup(500 + seed);
        setup.relay = Some(Relay { keepers: 50, every: 5, rest: 0.5 });
        let params = setup.optimizer.rates().len();
        let learning: Vec<bool> = (0..params).map(|j| j + 1 == params).collect();
        setup.settle = Some(Settle { after: 200, learning, rate: 0.1 });
        let mut trainer = run(setup, 200);
        let before = trainer.state().theta;
        for _ in 0..200 {
            trainer.step().unwrap();
        }
        let after = trainer.state().theta;
        assert_eq!(after[..params - 1], before[..params - 1]);
        assert_ne!(after[params - 1], before[params - 1]);
        let e = trainer.estimates().unwrap();
        errors.0.push(e.log_z.unwrap().value - e.log_z_exact.unwrap());
    }
    let (mean, error) = (errors.mean(), errors.std_error());
    let most = 200.0 * 0.1 / 800.0;
    println!(
        "log Z of witnesses that have driven one parameter errs by {mean:.4} +- {error:.4}, at most -{most}"
    );
    assert!((-most - 5.0 * error..5.0 * error).contains(&mean), "{mean} +- {error}, at most -{most}");
}

/// The last phase takes Newton's steps: the mean of a Gaussian whose widths differ by a factor of 20 goes to the mean of the data equally fast in both directions, although rate and damping are the same. It
/// begins one width away; after 70 steps of rate 0.1, damped by a tenth, a five-hundredth of that is left, and the noise of 2000 walkers, of which resampling leaves a weight of 1000 at least, and of their slow
/// renewal: 5 errors of two independent means of 1000 (false alarms: some in 10^6).
#[test]
fn the_last_phase_is_as_fast_in_every_direction() {
    let widths: [f64; 2] = [0.1, 2.0];
    let precision = [widths[0].powi(-2), 0.0, 0.0, widths[1].powi(-2)];
    let data = Dataset::<f64>::sample(&Gaussian::new(&[0.0; 2], &precision).unwrap(), 4000, 5).unwrap();
    let target: Vec<f64> = (0..2).map(|j| (0..4000).map(|i| data.row(i)[j]).sum::<f64>() / 4000.0).collect();
    let start = [target[0] + widths[0], target[1] - widths[1]];
    let mut setup = Setup::new(Gaussian::new(&start, &precision).unwrap(), data);
    setup.kernel = Kernel::ghmc(1.0);
    setup.step_size = StepSize::fixed(2e-3);
    // Nothing learns before.
    setup.optimizer = Optimizer::new(Rule::Gradient, vec![0.0; 6]);
    setup.trigger = Trigger::EssBelow(Thresholds::constant(0.5));
    (setup.walkers, setup.witnesses, setup.seed) = (2000, 2000, 3);
    setup.relay = Some(Relay { keepers: 100, every: 20, rest: 0.5 });
    setup.settle = Some(Settle { after: 10, learning: (0..6).map(|j| j < 2).collect(), rate: 0.1 });
    let mut trainer = Trainer::new(setup).unwrap();
    for k in 0..80 {
        // The norm is that of what learns.
        let norm = trainer.step().unwrap().gradient_norm;
        assert_eq!(norm > 0.0, k >= 10, "{norm} in iteration {k}");
    }
    for j in 0..2 {
        let away = (trainer.energy().mean()[j] - target[j]) / widths[j];
        println!("{away:.4} widths away in direction {j}");
        assert!(away.abs() < 5.0 * (2f64 / 1000.0).sqrt(), "{away} widths away in direction {j}");
    }
}
