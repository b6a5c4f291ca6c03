//! Energies written by a user: a double well that trains with the right `log Z`, one that breaks down, and setups that cannot work.

use jarz::{
    Algorithm, Dataset, Energy, Error, Gaussian, Kernel, Mixture, Optimizer, ParamGroup, Purpose, Random,
    Rule, SelfInteractionRule, Setup, StepSize, Trainer,
};

/// `U(x) = a x^4 - b x^2`.
#[derive(Clone)]
struct DoubleWell([f64; 2]);

impl Energy<f64> for DoubleWell {
    type Workspace = ();
    fn dim(&self) -> usize {
        1
    }
    fn groups(&self) -> Vec<ParamGroup> {
        vec![ParamGroup::new("quartic", 0..1), ParamGroup::new("quadratic", 1..2)]
    }
    fn params(&self) -> &[f64] {
        &self.0
    }
    fn set_params(&mut self, theta: &[f64]) {
        self.0.copy_from_slice(theta)
    }
    fn energy_and_gradient(&self, x: &[f64], u: &mut [f64], g: &mut [f64], _: &mut ()) {
        let [a, b] = self.0;
        for i in 0..x.len() {
            u[i] = a * x[i].powi(4) - b * x[i].powi(2);
            g[i] = 4.0 * a * x[i].powi(3) - 2.0 * b * x[i];
        }
    }
    fn add_param_gradient(&self, x: &[f64], weights: &[f64], out: &mut [f64], _: &mut ()) {
        for i in 0..x.len() {
            out[0] += weights[i] * x[i].powi(4);
            out[1] -= weights[i] * x[i].powi(2);
        }
    }
}

/// Grid, spacing and unnormalised density of a double well; beyond 4 it is below `exp(-200)`.
fn density(well: &DoubleWell) -> (Vec<f64>, f64, Vec<f64>) {
    let spacing = 1e-3;
    let x: Vec<f64> = (-4000..=4000).map(|i| i as f64 * spacing).collect();
    let [a, b] = well.0;
    let values = x.iter().map(|x| (b * x * x - a * x.powi(4)).exp()).collect();
    (x, spacing, values)
}

fn log_z(well: &DoubleWell) -> f64 {
    let (_, spacing, values) = density(well);
    (values.iter().sum::<f64>() * spacing).ln()
}

/// Independent samples by inverting the cumulative sum.
fn sample(well: &DoubleWell, n: u64, seed: u64) -> Vec<f64> {
    let (x, spacing, values) = density(well);
    let mut cumulative = values;
    for i in 1..x.len() {
        cumulative[i] += cumulative[i - 1];
    }
    let total = cumulative[x.len() - 1];
    let random = Random::new(seed);
    let draw = |i| {
        let u = random.uniform(0, i, Purpose::User) * total;
        let cell = cumulative.partition_point(|c| *c < u);
        let below = if cell == 0 { 0.0 } else { cumulative[cell - 1] };
        x[cell] + spacing * ((u - below) / (cumulative[cell] - below) - 0.5)
    };
    (0..n).map(draw).collect()
}

/// `log Z` of the trained model within 4 of its standard errors (false alarm 6e-5 each), the self-interaction of 300 steps of 0.005 with
/// 20 000 walkers being `300 * 0.005 * tr Cov(dU) / N` < 5e-4 for a trace below 6.
#[test]
fn a_double_well_trains_and_knows_its_log_z() {
    for kernel in [Kernel::ula(), Kernel::mala()] {
        let (start, truth) = (DoubleWell([1.0, 1.0]), DoubleWell([1.0, 2.0]));
        let data = Dataset::new(1, sample(&truth, 20_000, 4)).unwrap();
        let mut setup = Setup::new(start.clone(), data.clone());
        setup.initial = Some((sample(&start, 20_000, 5), Some(log_z(&start))));
        setup.kernel = kernel;
        setup.step_size = StepSize::fixed(0.02);
        setup.optimizer = Optimizer::new(Rule::Gradient, vec![0.005; 2]);
        let mut trainer = Trainer::new(setup).unwrap();
        assert!(!trainer.leaves_one_out());
        let cross_entropy = |well: &DoubleWell| {
            let u = data.values().iter().map(|x| well.0[0] * x.powi(4) - well.0[1] * x.powi(2));
            log_z(well) + u.sum::<f64>() / data.len() as f64
        };
        for _ in 0..300 {
            trainer.step().unwrap();
        }
        let estimates = trainer.estimates().unwrap();
        let found = estimates.log_z.unwrap();
        let (exact, error) = (log_z(trainer.energy()), found.std_error.unwrap());
        assert!(error > 0.0 && error < 0.05, "standard error {error}");
        assert!(
            (found.value - exact).abs() < 4.0 * error,
            "{kernel:?}: {} instead of {exact} +- {error}",
            found.value
        );
        let (before, after, best) =
            (cross_entropy(&start), cross_entropy(trainer.energy()), cross_entropy(&truth));
        assert!(
            after < before - 0.5 * (before - best),
            "{kernel:?}: {before} -> {after}, the truth has {best}"
        );
        assert_eq!((estimates.log_z_exact, estimates.masses), (None, None));
    }
}

/// `U = t` right of zero and 0 left of it; not a number for walkers in `[107, 108]` once `t` exceeds 0.035.
#[derive(Clone)]
struct Treacherous([f64; 1]);

impl Energy<f64> for Treacherous {
    type Workspace = ();
    fn dim(&self) -> usize {
        1
    }
    fn groups(&self) -> Vec<ParamGroup> {
        vec![ParamGroup::new("t", 0..1)]
    }
    fn params(&self) -> &[f64] {
        &self.0
    }
    fn set_params(&mut self, theta: &[f64]) {
        self.0.copy_from_slice(theta)
    }
    fn energy_and_gradient(&self, x: &[f64], u: &mut [f64], g: &mut [f64], _: &mut ()) {
        let t = self.0[0];
        for i in 0..x.len() {
            let broken = t > 0.035 && (107.0..=108.0).contains(&x[i]);
            u[i] = if broken {
                f64::NAN
            } else if x[i] > 0.0 {
                t
            } else {
                0.0
            };
            g[i] = 0.0;
        }
    }
    fn add_param_gradient(&self, x: &[f64], weights: &[f64], out: &mut [f64], _: &mut ()) {
        out[0] += x.iter().zip(weights).map(|(x, w)| if *x > 0.0 { *w } else { 0.0 }).sum::<f64>();
    }
}

/// The direction is exactly 1, so `t` is 0.01 after one iteration and 0.04 in the fourth, the first that breaks.
#[test]
fn a_walker_without_energy_is_named_with_the_iteration() {
    let runs = [
        (Kernel::ula(), None, Algorithm::Jarzynski),
        (Kernel::mala(), None, Algorithm::Jarzynski),
        (Kernel::ula(), Some(3), Algorithm::Jarzynski),
        (Kernel::mala(), Some(3), Algorithm::Jarzynski),
        (Kernel::ula(), None, Algorithm::Unweighted),
    ];
    for (kernel, batch, algorithm) in runs {
        let data = Dataset::new(1, vec![-5.0; 4]).unwrap();
        let mut setup = Setup::new(Treacherous([0.0]), data);
        setup.initial = Some(((0..400).map(|i| 100.5 + i as f64).collect(), Some(0.0)));
        (setup.kernel, setup.batch, setup.algorithm) = (kernel, batch, algorithm);
        setup.step_size = StepSize::fixed(1e-8);
        setup.optimizer = Optimizer::new(Rule::Gradient, vec![0.01]);
        setup.threads = 2;
        let mut trainer = Trainer::new(setup.clone()).unwrap();
        let error = (0..10).find_map(|_| trainer.step().err()).expect("the run must break down");
        let Error::Diverged { iteration, walker, .. } = error else { panic!("{error:?}") };
        assert_eq!(trainer.iteration(), 3, "iterations done: {error}");
        assert_eq!((iteration, walker), (3, 7), "{kernel:?} {batch:?}: {error}");
        assert!(
            error.to_string().contains("iteration 3") && error.to_string().contains("walker 7"),
            "{error}"
        );
        // Broken from the start.
        setup.energy = Treacherous([1.0]);
        let Err(Error::Diverged { iteration, walker, .. }) = Trainer::new(setup) else {
            panic!("must not start")
        };
        assert_eq!((iteration, walker), (0, 7));
    }
}

fn complaint<E: Energy<f64>>(setup: Setup<f64, E>, words: &[&str]) {
    match Trainer::new(setup) {
        Err(Error::Setup(text)) => {
            words.iter().for_each(|word| assert!(text.contains(word), "'{text}' does not say '{word}'"))
        }
        Err(other) => panic!("{other:?} instead of a complaint with {words:?}"),
        Ok(_) => panic!("accepted, though it should complain with {words:?}"),
    }
}

#[test]
fn setups_that_cannot_work_say_why() {
    let mixture = Mixture::new(&[vec![0.0, 1.0], vec![1.0, 0.0]], &[0.0, 0.0], 1.0).unwrap();
    let data = Dataset::new(2, vec![0.5; 40]).unwrap();
    let good = || {
        let mut setup = Setup::new(mixture.clone(), data.clone());
        setup.walkers = 100;
        setup
    };
    assert!(Trainer::new(good()).is_ok());
    let bad = |change: fn(&mut Setup<f64, Mixture>), words: &[&str]| {
        let mut setup = good();
        change(&mut setup);
        complaint(setup, words);
    };
    bad(|s| s.data = Dataset::new(3, vec![0.5; 30]).unwrap(), &["3 dimensions", "2"]);
    bad(|s| s.batch = Some(101), &["mini-batch", "101", "100"]);
    bad(|s| s.batch = Some(0), &["mini-batch", "0"]);
    bad(|s| s.data_batch = Some(21), &["data batch", "21", "20"]);
    bad(|s| s.walkers = 0, &["at least 2 walkers", "0"]);
    bad(|s| s.kernel = Kernel::ula().with_steps(0), &["at least one step"]);
    bad(|s| s.trust_region = Some(-1.0), &["trust region", "-1"]);
    bad(
        |s| s.optimizer = Optimizer::new(Rule::Gradient, vec![0.1; 5]),
        &["5 learning rates", "6 parameters"],
    );
    bad(|s| s.initial = Some((vec![0.0; 7], None)), &["walkers"]);

    let well = |change: fn(&mut Setup<f64, DoubleWell>), words: &[&str]| {
        let mut setup = Setup::new(DoubleWell([1.0, 1.0]), Dataset::new(1, vec![0.5; 40]).unwrap());
        setup.initial = Some((vec![0.1; 50], Some(0.0)));
        change(&mut setup);
        complaint(setup, words);
    };
    well(
        |s| s.self_interaction = Some(SelfInteractionRule::LeaveOneOut),
        &["leave-one-out", "gradients of single walkers"],
    );
    well(
        |s| s.algorithm = Algorithm::JarzynskiContinuous,
        &["continuous-time", "gradients of single walkers"],
    );
    well(|s| s.initial = None, &["sampled exactly", "initial walkers"]);

    let saddle = Gaussian::new(&[0.0, 0.0], &[1.0, 2.0, 2.0, 1.0]).unwrap();
    complaint(Setup::new(saddle, data.clone()), &["sampled exactly"]);
}

/// A time step that has no square root, or none that is a number, cannot work either.
#[test]
fn time_steps_that_cannot_work_are_refused() {
    for h in [-0.1, f64::NAN, f64::INFINITY] {
        let gauss = Gaussian::new(&[0.0], &[1.0]).unwrap();
        let mut setup = Setup::new(gauss, Dataset::new(1, vec![0.5; 40]).unwrap());
        setup.walkers = 100;
        setup.step_size = StepSize::fixed(h);
        complaint(setup, &["step"]);
    }
}
