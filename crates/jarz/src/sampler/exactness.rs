//! Exactness with the protocol prescribed: `log Z`, means and second moments against closed forms.
//!
//! For parameters moved on a fixed path, `Z_hat / Z` and `(Z_hat / Z) sum_i p_i phi(X_i)` are unbiased estimators of 1 and of
//! the model's mean of `phi`, for any number of walkers, any resampling in between (also when a trigger decides) and any time step.
//! Many independent small ensembles give each its mean and standard error, and the difference in standard errors is
//! compared with [`LIMIT`]. Clips are mild and go with short steps: a tight clip over a long time makes the weights so heavy-tailed
//! that their variance is infinite, and no standard error means anything.
//!
//! False-alarm rate: a standard normal exceeds 5.5 with probability 3.8e-8; for the some 2000 comparisons made here
//! that is below 1e-4 in all. The mutations must exceed the same limit.

use super::*;
use crate::energy::{Exact, Gaussian, Mixture, Stratification};
use crate::kernel::Clip;
use crate::resampling::{Thresholds, Trigger};
use crate::weights::normalise;
use rayon::prelude::*;

const LIMIT: f64 = 5.5;
const STEPS: u64 = 10;

#[derive(Clone, Copy, Debug)]
struct Setup {
    kernel: Kernel,
    h: f64,
    batch: Option<usize>,
    scheme: Option<Scheme>,
    faults: Faults,
}

const RIGHT: Faults = Faults::NONE;

/// A path of parameters with the truth at its end.
trait Path: Sync {
    type Model: Energy<f64> + Exact<f64>;
    fn at(&self, t: f64) -> Self::Model;
    /// Mean and second moments `E[x_i x_j]`, i <= j, at the end.
    fn truth(&self) -> Vec<f64>;
}

struct GaussianPath;
impl Path for GaussianPath {
    type Model = Gaussian;
    fn at(&self, t: f64) -> Gaussian {
        let mean = [0.8 * t, -0.5 * t];
        let precision = [1.0 + 0.9 * t, 0.5 * t, 0.5 * t, 0.8 + 0.7 * t];
        Gaussian::new(&mean, &precision).unwrap()
    }
    fn truth(&self) -> Vec<f64> {
        let end = self.at(1.0);
        let (m, c) = (end.mean(), end.covariance().unwrap());
        vec![m[0], m[1], c[0] + m[0] * m[0], c[1] + m[0] * m[1], c[3] + m[1] * m[1]]
    }
}

/// Three uneven modes that part and change their masses.
struct MixturePath;
impl Path for MixturePath {
    type Model = Mixture;
    fn at(&self, t: f64) -> Mixture {
        let means = [vec![-0.4 - t, 0.1], vec![0.6 + 0.8 * t, 0.3 * t], vec![0.0, 1.0 - 1.5 * t]];
        Mixture::new(&means, &[0.0, 0.7 * t, -0.4 + 0.2 * t], 0.8).unwrap()
    }
    fn truth(&self) -> Vec<f64> {
        let end = self.at(1.0);
        let mass: Vec<f64> = {
            let e: Vec<f64> = end.log_masses().iter().map(|l| l.exp()).collect();
            e.iter().map(|v| v / e.iter().sum::<f64>()).collect()
        };
        let mut out = vec![0.0; 5];
        for k in 0..3 {
            let (m, v) = (end.mean(k), end.sigma().powi(2));
            let terms = [m[0], m[1], m[0] * m[0] + v, m[0] * m[1], m[1] * m[1] + v];
            (0..5).for_each(|j| out[j] += mass[k] * terms[j]);
        }
        out
    }
}

/// One small ensemble along the path: `Z_hat / Z` times (1, means, second moments).
fn estimate<P: Path>(path: &P, setup: &Setup, walkers: usize, seed: u64) -> ([f64; 6], u64) {
    let mut model = path.at(0.0);
    let n = walkers;
    let mut x = vec![0.0; n * 2];
    model.sample(0..n as u64, n as u64, Stratification::Stratified, &Random::new(seed), &mut x);
    let scheme = setup.scheme.unwrap_or_default();
    let start = Walkers::new(2, x, Some(Exact::<f64>::log_z(&model)));
    let mut sampler = Sampler::new(start, &model, setup.kernel, scheme, setup.batch, seed, 1).unwrap();
    sampler.faults = setup.faults;
    let trigger = match setup.scheme {
        Some(_) => Trigger::EssBelow(Thresholds::constant(0.97)),
        None => Trigger::Never,
    };
    sampler.begin(&model).unwrap();
    for k in 0..STEPS {
        let next = path.at((k + 1) as f64 / STEPS as f64);
        let weighting = Weighting::Jarzynski;
        let advance = Advance { iteration: k, h: setup.h, weighting, correction: None, restart: None };
        sampler.advance(&model, &next, advance).unwrap();
        model = next;
        if trigger.fires(k + 1, sampler.sums()) {
            sampler.resample(&model, k + 1).unwrap();
        }
    }
    let ratio = (sampler.log_z().unwrap() - Exact::<f64>::log_z(&model)).exp();
    let p = normalise(sampler.walkers().log_weights());
    let mut out = [ratio, 0.0, 0.0, 0.0, 0.0, 0.0];
    for (p, x) in p.iter().zip(sampler.walkers().positions().chunks(2)) {
        let terms = [x[0], x[1], x[0] * x[0], x[0] * x[1], x[1] * x[1]];
        (0..5).for_each(|j| out[j + 1] += ratio * p * terms[j]);
    }
    (out, sampler.walkers().resamplings())
}

/// Deviations from the truth in standard errors, and the resamplings that happened. A standard error of `Z_hat / Z` above 5 % counts as
/// infinitely far off: wild weights would hide any bias. Sound ones scatter far less (with the ESS kept above 0.97 by 32 walkers over
/// 10 steps, by `sqrt(10 * 0.03 / 32)` or so), but a drift clipped hard has heavy tails: single ensembles of 4000 reach 80 times the truth.
fn deviations<P: Path>(path: &P, setup: &Setup, replicas: u64) -> (Vec<f64>, u64) {
    let runs: Vec<_> = (0..replicas).into_par_iter().map(|r| estimate(path, setup, 32, 1000 + r)).collect();
    let truth = [vec![1.0], path.truth()].concat();
    let n = replicas as f64;
    let scores = (0..6)
        .map(|j| {
            let mean = runs.iter().map(|(v, _)| v[j]).sum::<f64>() / n;
            let var = runs.iter().map(|(v, _)| (v[j] - mean).powi(2)).sum::<f64>() / (n - 1.0);
            if j == 0 && (var / n).sqrt() > 0.05 {
                f64::INFINITY
            } else {
                (mean - truth[j]) / (var / n).sqrt()
            }
        })
        .collect();
    (scores, runs.iter().map(|(_, r)| r).sum())
}

fn worst(scores: &[f64]) -> f64 {
    scores.iter().fold(0.0, |w: f64, s| if s.is_nan() { f64::INFINITY } else { w.max(s.abs()) })
}

fn setups() -> Vec<Setup> {
    let mut all = Vec::new();
    for base in [Kernel::ula(), Kernel::mala()] {
        for clip in [None, Some(Clip::Norm(2.0)), Some(Clip::Component(1.5))] {
            let steps = if clip.is_none() { vec![0.02, 0.1, 0.35] } else { vec![0.02, 0.1] };
            for h in steps {
                for batch in [None, Some(9)] {
                    for scheme in [None].into_iter().chain(Scheme::ALL.map(Some)) {
                        let kernel = base.with_clip(clip);
                        all.push(Setup { kernel, h, batch, scheme, faults: RIGHT });
                    }
                }
            }
        }
        // Several kernel steps per parameter step.
        let kernel = base.with_steps(3);
        all.push(Setup { kernel, h: 0.1, batch: None, scheme: Some(Scheme::Systematic), faults: RIGHT });
        all.push(Setup { kernel, h: 0.1, batch: Some(9), scheme: Some(Scheme::Residual), faults: RIGHT });
    }
    for (kernel, h) in
        [(Kernel::ghmc(1.0), 0.1), (Kernel::ghmc(0.2), 0.35), (Kernel::ghmc(0.2).with_steps(3), 0.02)]
    {
        for clip in [None, Some(Clip::Norm(2.0))] {
            for (batch, scheme) in [
                (None, None),
                (None, Some(Scheme::Systematic)),
                (Some(9), None),
                (Some(9), Some(Scheme::Multinomial)),
            ] {
                all.push(Setup { kernel: kernel.with_clip(clip), h, batch, scheme, faults: RIGHT });
            }
        }
    }
    all
}

fn check_all<P: Path>(path: &P) {
    let mut failures = Vec::new();
    for setup in setups() {
        let (scores, resamplings) = deviations(path, &setup, 4000);
        assert_eq!(setup.scheme.is_some(), resamplings > 0, "{setup:?}: {resamplings} resamplings");
        if worst(&scores) > LIMIT {
            failures.push(format!("{setup:?}: {scores:.1?}"));
        }
    }
    assert!(failures.is_empty(), "{} setups are off:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn gaussian_is_exact_for_every_kernel_batch_scheme_step_and_clip() {
    check_all(&GaussianPath);
}

#[test]
fn mixture_is_exact_for_every_kernel_batch_scheme_step_and_clip() {
    check_all(&MixturePath);
}

/// A larger ensemble, where the estimate itself (not only its mean) must be close: `log Z` within 5.5 of
/// the standard errors that 64 independent runs show.
#[test]
fn log_z_of_one_run_is_close() {
    for kernel in [Kernel::ula(), Kernel::mala()] {
        let setup = Setup { kernel, h: 0.1, batch: None, scheme: Some(Scheme::Systematic), faults: RIGHT };
        let logs: Vec<f64> = (0..64u64)
            .into_par_iter()
            .map(|r| estimate(&MixturePath, &setup, 4096, 5000 + r).0[0].ln())
            .collect();
        let mean = logs.iter().sum::<f64>() / 64.0;
        let sd = (logs.iter().map(|l| (l - mean).powi(2)).sum::<f64>() / 63.0).sqrt();
        assert!(sd < 0.05, "sd {sd}");
        assert!(mean.abs() < LIMIT * sd / 8.0, "{kernel:?}: {mean} +- {}", sd / 8.0);
    }
}

/// The tests above would be worth nothing if they did not notice these mistakes, for every one of these steps and batches.
fn mutation_is_noticed(faults: Faults, kernel: Kernel) {
    mutation_is_noticed_by(4000, faults, kernel);
}

/// The same with another number of ensembles.
fn mutation_is_noticed_by(replicas: u64, faults: Faults, kernel: Kernel) {
    for h in [0.1, 0.35] {
        for batch in [None, Some(9)] {
            let setup = Setup { kernel, h, batch, scheme: Some(Scheme::Multinomial), faults };
            let (mixture, _) = deviations(&MixturePath, &setup, replicas);
            let (gauss, _) = deviations(&GaussianPath, &setup, replicas);
            assert!(worst(&mixture).max(worst(&gauss)) > LIMIT, "{setup:?}: {mixture:.1?} {gauss:.1?}");
        }
    }
}

/// Mini-batches have little of the wrong noise in them, so it takes more ensembles to see it for certain.
#[test]
fn mutation_noise_off_by_five_percent_is_noticed() {
    mutation_is_noticed_by(16_000, Faults { noise: 1.05, ..RIGHT }, Kernel::ula());
    mutation_is_noticed_by(16_000, Faults { noise: 0.95, ..RIGHT }, Kernel::ula());
}

#[test]
fn mutation_caches_left_behind_on_resampling_is_noticed() {
    mutation_is_noticed(Faults { stale_caches: true, ..RIGHT }, Kernel::ula());
    mutation_is_noticed(Faults { stale_caches: true, ..RIGHT }, Kernel::mala());
    mutation_is_noticed(Faults { stale_caches: true, ..RIGHT }, Kernel::ghmc(1.0));
}

#[test]
fn mutation_swapped_alphas_is_noticed() {
    mutation_is_noticed(Faults { swapped_alphas: true, ..RIGHT }, Kernel::ula());
    mutation_is_noticed(Faults { swapped_alphas: true, ..RIGHT }, Kernel::mala());
    mutation_is_noticed(Faults { swapped_alphas: true, ..RIGHT }, Kernel::ghmc(1.0));
}

/// Clipping the drift of the walker, not that of its transition density: a small mistake where clipping is rare, so it takes more
/// ensembles to see it.
#[test]
fn mutation_clip_missing_from_the_density_is_noticed() {
    for clip in [Clip::Norm(2.0), Clip::Component(1.5)] {
        let faults = Faults { unclipped_density: true, ..RIGHT };
        mutation_is_noticed_by(16_000, faults, Kernel::ula().with_clip(Some(clip)));
    }
}

/// Walkers with momentum that begin as exact samples of a fixed mixture, with velocities, stay that: positions, velocities and what they have to do with each other after
/// steps so long that many are refused. Returns the deviations of all means up to the second order, in standard errors.
fn stationary(kernel: Kernel, h: f64, faults: Faults) -> (Vec<f64>, f64) {
    let n = 200_000u64;
    let model = MixturePath.at(1.0);
    let mut x = vec![0.0; 2 * n as usize];
    model.sample(0..n, n, Stratification::Independent, &Random::new(77), &mut x);
    let mut sampler =
        Sampler::new(Walkers::new(2, x, None), &model, kernel, Scheme::Systematic, None, 78, 0).unwrap();
    sampler.faults = faults;
    sampler.begin(&model).unwrap();
    let mut accepted = 0.0;
    for iteration in 0..40 {
        let advance = Advance { iteration, h, weighting: Weighting::Equal, correction: None, restart: None };
        accepted += sampler.advance(&model, &model, advance).unwrap().acceptance / 40.0;
    }
    let (w, truth) = (sampler.walkers(), MixturePath.truth());
    let truth = [&truth[..], &[0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]].concat();
    let rows: Vec<[f64; 14]> = (w.positions().chunks(2).zip(w.gradients.chunks(2)))
        .map(|(x, v)| {
            let [a, b, p, q] = [x[0], x[1], v[0], v[1]];
            [a, b, a * a, a * b, b * b, p, q, p * p, p * q, q * q, a * p, a * q, b * p, b * q]
        })
        .collect();
    let scores = (0..14).map(|j| {
        let mean = rows.iter().map(|r| r[j]).sum::<f64>() / n as f64;
        let variance = rows.iter().map(|r| (r[j] - mean).powi(2)).sum::<f64>() / n as f64;
        (mean - truth[j]) / (variance / n as f64).sqrt()
    });
    (scores.collect(), accepted)
}

#[test]
fn momentum_leaves_positions_and_velocities_as_they_are() {
    for (friction, h, clip) in
        [(0.1, 0.6, None), (1.0, 0.6, None), (0.1, 0.3, Some(Clip::Norm(1.0))), (1e9, 0.6, None)]
    {
        let (scores, accepted) = stationary(Kernel::ghmc(friction).with_clip(clip), h, RIGHT);
        assert!((0.3..0.97).contains(&accepted), "acceptance {accepted}");
        assert!(worst(&scores) < LIMIT, "friction {friction}, h {h}, {clip:?}: {scores:.1?}");
    }
}

#[test]
fn mutation_velocity_of_the_refused_not_reversed_is_noticed() {
    let (scores, _) = stationary(Kernel::ghmc(0.1), 0.6, Faults { unreversed: true, ..RIGHT });
    assert!(worst(&scores) > LIMIT, "{scores:.1?}");
}

/// Without memory of velocities, the kernel is MALA: the same walkers from the same random numbers.
#[test]
fn momentum_with_endless_friction_is_mala() {
    let run = |kernel| {
        let setup = Setup { kernel, h: 0.3, batch: Some(9), scheme: Some(Scheme::Systematic), faults: RIGHT };
        (0..20).map(|seed| estimate(&MixturePath, &setup, 32, seed).0).collect::<Vec<_>>()
    };
    assert_eq!(run(Kernel::ghmc(1e9)), run(Kernel::mala()));
}
