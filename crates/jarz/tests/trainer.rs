//! The trainer against closed forms: direction, maximum likelihood, trust region, step size, mini-batches, restarts, samples.

use jarz::weights::normalise;
use jarz::{
    Algorithm, Dataset, Energy, Exact, Gaussian, Kernel, Mixture, Optimizer, Rule, Scheme,
    SelfInteractionRule, Setup, StepSize, Thresholds, Trainer, Trigger,
};

fn run<E: Energy<f64>>(trainer: &mut Trainer<f64, E>, iterations: u64) {
    for _ in 0..iterations {
        trainer.step().unwrap();
    }
}

/// Truth of the two-dimensional Gaussian tests.
fn target() -> Gaussian {
    Gaussian::new(&[0.6, -0.4], &[1.4, 0.3, 0.3, 0.9]).unwrap()
}

fn gaussian_setup(start: Gaussian, rate: f64) -> Setup<f64, Gaussian> {
    let data = Dataset::sample(&target(), 3000, 17).unwrap();
    let mut setup = Setup::new(start, data);
    setup.optimizer = Optimizer::new(Rule::Gradient, vec![rate; 6]);
    setup.walkers = 4000;
    setup.threads = 2;
    setup
}

/// Mean and covariance of the data: with them everything about a Gaussian's likelihood is known.
fn data_moments(data: &Dataset<f64>) -> ([f64; 2], [f64; 4]) {
    let n = data.len() as f64;
    let rows = || data.values().chunks(2);
    let mean = [0, 1].map(|i| rows().map(|x| x[i]).sum::<f64>() / n);
    let at = |i: usize, j: usize| rows().map(|x| (x[i] - mean[i]) * (x[j] - mean[j])).sum::<f64>() / n;
    (mean, [at(0, 0), at(0, 1), at(1, 0), at(1, 1)])
}

fn inverse(m: [f64; 4]) -> [f64; 4] {
    let determinant = m[0] * m[3] - m[1] * m[2];
    [m[3] / determinant, -m[1] / determinant, -m[2] / determinant, m[0] / determinant]
}

/// `log Z + mean of U over the data`, by hand.
fn cross_entropy(theta: &[f64], data: &Dataset<f64>) -> f64 {
    let (mean, p) = ([theta[0], theta[1]], [theta[2], 0.5 * (theta[3] + theta[4]), theta[5]]);
    let u = data.values().chunks(2).map(|x| {
        let (a, b) = (x[0] - mean[0], x[1] - mean[1]);
        0.5 * (p[0] * a * a + 2.0 * p[1] * a * b + p[2] * b * b)
    });
    std::f64::consts::TAU.ln() - 0.5 * (p[0] * p[2] - p[1] * p[1]).ln() + u.sum::<f64>() / data.len() as f64
}

/// A tiny step lowers the exact cross-entropy by `rate * D . D_exact`, where `D_exact = -dH/dtheta` comes from central differences.
/// The second order of a step of 1e-6 is a millionth of that.
#[test]
fn a_tiny_step_goes_downhill() {
    let rate = 1e-6;
    for kernel in [Kernel::ula(), Kernel::mala()] {
        let start = Gaussian::new(&[-0.5, 0.7], &[0.8, 0.0, 0.0, 1.5]).unwrap();
        let mut setup = gaussian_setup(start, rate);
        setup.kernel = kernel;
        let data = setup.data.clone();
        let mut trainer = Trainer::new(setup).unwrap();
        let before = Energy::<f64>::params(trainer.energy()).to_vec();
        trainer.step().unwrap();
        let after = Energy::<f64>::params(trainer.energy()).to_vec();
        let mut expected = 0.0;
        for j in 0..6 {
            let shifted = |by: f64| {
                let mut theta = before.clone();
                theta[j] += by;
                cross_entropy(&theta, &data)
            };
            expected += (shifted(1e-4) - shifted(-1e-4)) / 2e-4 * (after[j] - before[j]);
        }
        let change = cross_entropy(&after, &data) - cross_entropy(&before, &data);
        assert!(change < 0.0, "the cross-entropy rose by {change}");
        assert!((change - expected).abs() < 1e-3 * expected.abs(), "{change} instead of {expected}");
        assert!(change < -rate * 0.1, "the start is far off: {change}");
    }
}

/// Maximum likelihood in closed form is the data's mean and inverse covariance. The walkers stand for the model with an effective number of
/// at least half of 4000, so the parameters err by the standard errors of that many samples: `sqrt(C_ii / M)` for a mean and
/// `sqrt((P_ii P_jj + P_ij^2) / M)` for a precision. 5 of them, 12 comparisons: false alarm 7e-6.
#[test]
fn training_ends_at_maximum_likelihood() {
    for kernel in [Kernel::ula(), Kernel::mala()] {
        let start = Gaussian::new(&[-0.5, 0.7], &[1.0, 0.0, 0.0, 1.0]).unwrap();
        let mut setup = gaussian_setup(start, 0.1);
        setup.kernel = kernel;
        let (mean, covariance) = data_moments(&setup.data);
        let precision = inverse(covariance);
        let mut trainer = Trainer::new(setup).unwrap();
        // The slowest direction relaxes as exp(-0.1 / (2 * 1.4^2) k) or faster: by exp(-38).
        for _ in 0..1500 {
            trainer.step().unwrap();
        }
        let theta = Energy::<f64>::params(trainer.energy()).to_vec();
        let effective = 2000.0;
        for i in 0..2 {
            let (off, error) = (theta[i] - mean[i], (covariance[3 * i] / effective).sqrt());
            assert!(off.abs() < 5.0 * error, "{kernel:?}: mean {i} is off by {off}, standard error {error}");
            for j in 0..2 {
                let (p, found) = (precision[2 * i + j], 0.5 * (theta[2 + 2 * i + j] + theta[2 + 2 * j + i]));
                let error = ((precision[3 * i] * precision[3 * j] + p * p) / effective).sqrt();
                assert!(
                    (found - p).abs() < 5.0 * error,
                    "{kernel:?}: precision {i} {j}: {found}, not {p} +- {error}"
                );
            }
        }
        let estimates = trainer.estimates().unwrap();
        let exact = cross_entropy(&theta, &Dataset::sample(&target(), 3000, 17).unwrap());
        assert!((estimates.cross_entropy_exact.unwrap() - exact).abs() < 1e-10);
    }
}

/// Weighted variance of `U_after - U_before` at given walkers, from the public parts.
fn spread(trainer: &Trainer<f64, Mixture>, x: &[f64], before: &[f64], p: &[f64]) -> f64 {
    let mut after = vec![0.0; before.len()];
    Energy::<f64>::energy(trainer.energy(), x, &mut after, &mut Default::default());
    let change = || after.iter().zip(before).map(|(a, b)| a - b);
    let mean: f64 = change().zip(p).map(|(c, p)| c * p).sum();
    change().zip(p).map(|(c, p)| p * (c - mean).powi(2)).sum()
}

fn mixture_setup(dim: usize, rate: f64) -> Setup<f64, Mixture> {
    let at = |v: f64| (0..dim).map(|j| if j == 0 { v } else { 0.1 * j as f64 }).collect::<Vec<_>>();
    let teacher = Mixture::new(&[at(-2.0), at(1.5)], &[0.0, 0.7], 1.0).unwrap();
    let student = Mixture::new(&[at(-0.5), at(0.5)], &[0.0, 0.0], 1.0).unwrap();
    let params = Energy::<f64>::params(&student).len();
    let mut setup = Setup::new(student, Dataset::sample(&teacher, 1000, 23).unwrap());
    setup.optimizer = Optimizer::new(Rule::Gradient, vec![rate; params]);
    setup.walkers = 1000;
    setup.threads = 1;
    setup
}

#[test]
fn the_trust_region_shortens_steps_until_they_fit() {
    let limit = 0.01;
    let mut setup = mixture_setup(4, 3.0);
    setup.trust_region = Some(limit);
    let mut trainer = Trainer::new(setup.clone()).unwrap();
    for _ in 0..20 {
        let walkers = trainer.walkers().clone();
        let theta = Energy::<f64>::params(trainer.energy()).to_vec();
        let info = trainer.step().unwrap();
        assert_ne!(theta, Energy::<f64>::params(trainer.energy()));
        let found =
            spread(&trainer, walkers.positions(), walkers.energies(), &normalise(walkers.log_weights()));
        assert!(found <= limit * (1.0 + 1e-9), "iteration {}: spread {found}", info.iteration);
        assert!(info.iteration > 1 || info.step_scale < 1.0, "a rate of 3 must be cut: {}", info.step_scale);
        assert_eq!(trainer.estimates().unwrap().step_scale, info.step_scale);
    }
    // The same step without a trust region goes beyond it.
    setup.trust_region = None;
    let mut free = Trainer::new(setup).unwrap();
    let walkers = free.walkers().clone();
    assert_eq!(free.step().unwrap().step_scale, 1.0);
    let p = vec![1.0 / walkers.len() as f64; walkers.len()];
    assert!(spread(&free, walkers.positions(), walkers.energies(), &p) > limit);
}

/// Requirement: within 0.05 of the target, averaged over the last iterations, from either side. The noise of a mean acceptance over 100
/// iterations of 1000 walkers is below 0.002.
#[test]
fn the_adaptive_step_reaches_its_acceptance() {
    for kernel in [Kernel::ula(), Kernel::mala()] {
        for (initial, target) in [(1e-3, 0.7), (3.0, 0.7), (0.1, 0.9)] {
            let mut setup = mixture_setup(10, 1e-3);
            setup.kernel = kernel;
            setup.step_size = StepSize::Adaptive { initial, target, gain: 0.5, bounds: (1e-6, 10.0) };
            let mut trainer = Trainer::new(setup).unwrap();
            let seen: Vec<f64> = (0..300).map(|_| trainer.step().unwrap().acceptance).collect();
            let mean = seen[200..].iter().sum::<f64>() / 100.0;
            assert!((mean - target).abs() < 0.05, "{kernel:?} from {initial}: {mean} instead of {target}");
        }
    }
}

/// Algorithm 2: so many walkers move, the others gain `U_k(x) - U_{k+1}(x)` where they stand.
#[test]
fn a_mini_batch_moves_some_and_weights_all() {
    for (kernel, rule) in
        [(Kernel::ula(), SelfInteractionRule::None), (Kernel::ula(), SelfInteractionRule::LeaveOneOut)]
    {
        let mut setup = mixture_setup(3, 0.05);
        (setup.kernel, setup.batch, setup.self_interaction) = (kernel, Some(137), Some(rule));
        setup.trigger = Trigger::Never;
        let mut trainer = Trainer::new(setup).unwrap();
        let mut ever = vec![false; 1000];
        for _ in 0..10 {
            let old = trainer.walkers().clone();
            trainer.step().unwrap();
            let new = trainer.walkers();
            let mut u = vec![0.0; 1000];
            Energy::<f64>::energy(trainer.energy(), new.positions(), &mut u, &mut Default::default());
            let mut moved = 0;
            for i in 0..1000 {
                let row = 3 * i..3 * i + 3;
                let gain = new.log_weights()[i] - old.log_weights()[i];
                assert_ne!(gain, 0.0, "the weight of walker {i} did not change");
                assert!(
                    (new.energies()[i] - u[i]).abs() < 1e-12 * u[i].abs().max(1.0),
                    "cached energy of {i}"
                );
                if old.positions()[row.clone()] != new.positions()[row] {
                    moved += 1;
                    ever[i] = true;
                } else if rule == SelfInteractionRule::None {
                    assert!((gain - (old.energies()[i] - u[i])).abs() < 1e-12, "walker {i} gained {gain}");
                }
            }
            assert_eq!(moved, 137);
        }
        // Batches are drawn anew: after 10 of 137, a walker has moved with probability 1 - 0.863^10 = 0.77 (5 sigma: 0.067).
        let share = ever.iter().filter(|e| **e).count() as f64 / 1000.0;
        assert!((share - 0.771).abs() < 0.067, "{share} of the walkers have moved");
    }
}

/// Data points 1000 apart and a nearly flat model: a walker of CD is one step of length `sqrt(2h) |xi|` away from a data point, one of PCD
/// has diffused. `|xi|^2` in 2 dimensions exceeds 60 with probability `exp(-30)`.
#[test]
fn contrastive_divergence_restarts_at_the_data() {
    let points = [0.0, 0.0, 1000.0, 0.0, 0.0, -1000.0];
    let farthest = |algorithm| {
        let flat = Gaussian::new(&[0.0, 0.0], &[1e-6, 0.0, 0.0, 1e-6]).unwrap();
        let mut setup = Setup::new(flat, Dataset::new(2, points.to_vec()).unwrap());
        (setup.algorithm, setup.walkers, setup.threads) = (algorithm, 300, 1);
        setup.optimizer = Optimizer::new(Rule::Gradient, vec![0.0; 6]);
        let mut trainer = Trainer::new(setup).unwrap();
        run(&mut trainer, 200);
        let distance = |x: &[f64]| {
            let each = points.chunks(2).map(|p| (x[0] - p[0]).hypot(x[1] - p[1]));
            each.fold(f64::INFINITY, f64::min)
        };
        assert_eq!(trainer.estimates().unwrap().log_z, None);
        trainer.walkers().positions().chunks(2).map(distance).fold(0.0, f64::max)
    };
    let one_step = 0.2f64.sqrt() * 60f64.sqrt() + 0.1 * 1e-6 * 1000.0;
    assert!(farthest(Algorithm::Cd) < one_step);
    assert!(farthest(Algorithm::Pcd) > one_step);
}

/// The continuous-time rule drops terms of relative order `rate` (second order of the parameter step) and `sqrt(h)`: with 1e-3 and 1e-8
/// the two rules' log-weights must agree to a hundredth of their size, and disagree visibly when the step is not small.
#[test]
fn continuous_weights_are_the_limit_of_the_discrete_ones() {
    let difference = |h: f64, rate: f64| {
        let [a, b] = [Algorithm::Jarzynski, Algorithm::JarzynskiContinuous].map(|algorithm| {
            let mut setup = mixture_setup(2, rate);
            (setup.algorithm, setup.trigger) = (algorithm, Trigger::Never);
            setup.self_interaction = Some(SelfInteractionRule::None);
            setup.step_size = StepSize::fixed(h);
            let mut trainer = Trainer::new(setup).unwrap();
            run(&mut trainer, 50);
            trainer.walkers().log_weights().to_vec()
        });
        let size = a.iter().fold(0.0f64, |m, a| m.max(a.abs()));
        a.iter().zip(&b).fold(0.0f64, |m, (a, b)| m.max((a - b).abs())) / size
    };
    let fine = difference(1e-8, 1e-3);
    assert!(fine < 0.01, "relative difference {fine}");
    assert!(difference(0.3, 0.1) > 0.1, "coarse steps must tell the rules apart");
}

/// Systematic draws give walker `i` within one of `n p_i` copies, which bounds the difference of the means without any statistics;
/// multinomial draws are compared at 5 standard errors (false alarm 6e-7).
#[test]
fn equal_weight_samples_have_the_weighted_mean() {
    for scheme in [Scheme::Systematic, Scheme::Multinomial] {
        let mut setup = mixture_setup(1, 0.05);
        (setup.scheme, setup.trigger) = (scheme, Trigger::EssBelow(Thresholds::constant(0.1)));
        let mut trainer = Trainer::new(setup).unwrap();
        run(&mut trainer, 30);
        assert!(trainer.estimates().unwrap().ess < 0.99, "weights must be uneven");
        let (x, p) = (trainer.walkers().positions(), normalise(trainer.walkers().log_weights()));
        let mean: f64 = x.iter().zip(&p).map(|(x, p)| p * x).sum();
        let n = 30_000;
        let drawn = trainer.equal_weight_samples(n);
        assert_eq!(drawn.len(), n);
        let off = drawn.iter().sum::<f64>() / n as f64 - mean;
        let limit = match scheme {
            Scheme::Systematic => x.iter().map(|x| (x - mean).abs()).sum::<f64>() / n as f64,
            _ => 5.0 * (x.iter().zip(&p).map(|(x, p)| p * (x - mean).powi(2)).sum::<f64>() / n as f64).sqrt(),
        };
        let plain = x.iter().sum::<f64>() / 1000.0;
        assert!(
            off.abs() <= limit,
            "{scheme:?}: off by {off}, allowed {limit} (unweighted: {})",
            plain - mean
        );
    }
}

#[test]
fn log_z_at_the_start_is_exact() {
    let mut trainer = Trainer::new(mixture_setup(3, 0.1)).unwrap();
    let estimates = trainer.estimates().unwrap();
    let log_z = 1.5 * std::f64::consts::TAU.ln() + 2f64.ln();
    assert!((estimates.log_z.unwrap().value - log_z).abs() < 1e-13);
    assert!((Exact::<f64>::log_z(trainer.energy()) - log_z).abs() < 1e-13);
    assert_eq!((estimates.resamplings, estimates.distinct_ancestors), (0, 1000));
}
