//! Exactness: on a given ladder `Z_hat / Z` and `(Z_hat / Z) sum_i p_i phi(X_i)` are unbiased estimators of 1 and of the model's mean of `phi`
//! for any number of walkers. Many small ensembles give each its mean and standard error; the truth is in closed form.
//!
//! False-alarm rate: a standard normal exceeds 5.5 with probability 3.8e-8; 80 comparisons make 3e-6. The mutations must exceed the same limit.

use super::moves::Faults;
use super::*;
use crate::energy::Mixture;
use crate::resampling::Scheme;
use rayon::prelude::*;

const LIMIT: f64 = 5.5;
const ENSEMBLES: u64 = 3000;
const WALKERS: usize = 32;

fn model() -> Mixture {
    Mixture::new(&[vec![-1.2, 0.2], vec![0.9, 0.5], vec![0.3, -1.0]], &[0.0, 0.7, -0.4], 0.8).unwrap()
}

/// Means and second moments of the model.
fn truth() -> [f64; 5] {
    let m = model();
    let total: f64 = m.log_masses().iter().map(|l| l.exp()).sum();
    let mut out = [0.0; 5];
    for k in 0..3 {
        let (mass, c, v) = (m.log_masses()[k].exp() / total, m.mean(k), m.sigma().powi(2));
        let terms = [c[0], c[1], c[0] * c[0] + v, c[0] * c[1], c[1] * c[1] + v];
        (0..5).for_each(|j| out[j] += mass * terms[j]);
    }
    out
}

fn settings(scheme: Scheme, moves: u32, h: f64, faults: Faults) -> Settings {
    let ladder = (1..=8).map(|k| (k as f64 / 8.0, h)).collect();
    Settings {
        walkers: WALKERS,
        moves,
        threshold: 0.95,
        scheme,
        ladder: Some(ladder),
        threads: 1,
        faults,
        ..Settings::default()
    }
}

/// `Z_hat / Z` times (1, means, second moments) of one small ensemble.
fn estimate(settings: &Settings, seed: u64) -> ([f64; 6], u64) {
    let (model, base) = (model(), GaussianBase::new(vec![0.1, 0.0], vec![1.4, 1.2]).unwrap());
    let settings = Settings { seed, ..settings.clone() };
    let found = anneal::<f64, _>(&model, &base, &settings, &mut |_| ControlFlow::Continue(())).unwrap();
    let ratio = (found.log_z.value - Energy::<f64>::exact(&model).unwrap().log_z()).exp();
    let mut out = [ratio, 0.0, 0.0, 0.0, 0.0, 0.0];
    for (p, x) in found.weights.iter().zip(found.walkers.positions().chunks(2)) {
        let terms = [x[0], x[1], x[0] * x[0], x[0] * x[1], x[1] * x[1]];
        (0..5).for_each(|j| out[j + 1] += ratio * p * terms[j]);
    }
    (out, found.walkers.resamplings())
}

/// The largest deviation from the truth, in standard errors. Weights so wild that `Z_hat / Z` is not known to 5 % count as infinitely far off.
fn worst(settings: &Settings) -> f64 {
    let runs: Vec<_> = (0..ENSEMBLES).into_par_iter().map(|r| estimate(settings, 300 + r)).collect();
    assert!(runs.iter().map(|(_, resamplings)| resamplings).sum::<u64>() > 0);
    let n = ENSEMBLES as f64;
    let truth = truth();
    let score = |j: usize| {
        let mean = runs.iter().map(|(v, _)| v[j]).sum::<f64>() / n;
        let error = (runs.iter().map(|(v, _)| (v[j] - mean).powi(2)).sum::<f64>() / (n - 1.0) / n).sqrt();
        let expected = if j == 0 { 1.0 } else { truth[j - 1] };
        if (j == 0 && error > 0.05) || !mean.is_finite() {
            f64::INFINITY
        } else {
            (mean - expected).abs() / error
        }
    };
    (0..6).map(score).fold(0.0, f64::max)
}

#[test]
fn unbiased_on_a_given_ladder_for_every_scheme() {
    for scheme in Scheme::ALL {
        for (moves, h) in [(1, 0.3), (2, 0.1)] {
            let off = worst(&settings(scheme, moves, h, Faults::default()));
            assert!(off < LIMIT, "{scheme:?}, {moves} moves with h = {h}: {off} standard errors off");
        }
    }
}

#[test]
fn unbiased_with_momentum() {
    for (scheme, friction, moves, h) in [
        (Scheme::Systematic, 0.3, 1, 0.3),
        (Scheme::Multinomial, 0.3, 3, 0.6),
        (Scheme::Residual, 2.0, 2, 0.1),
    ] {
        let settings = Settings { friction: Some(friction), ..settings(scheme, moves, h, Faults::default()) };
        let off = worst(&settings);
        assert!(off < LIMIT, "{settings:?}: {off} standard errors off");
    }
}

/// The tests above would be worth nothing if they did not notice these mistakes.
#[test]
fn mutations_are_noticed() {
    let right = Faults::default();
    for faults in [
        Faults { always_accept: true, ..right },
        Faults { wrong_sign: true, ..right },
        Faults { late_moves: true, ..right },
        Faults { stale_caches: true, ..right },
    ] {
        for friction in [None, Some(0.5)] {
            let settings = Settings { friction, ..settings(Scheme::Multinomial, 1, 0.3, faults) };
            let off = worst(&settings);
            assert!(off > LIMIT, "{faults:?}, friction {friction:?}, is only {off} standard errors off");
        }
    }
}
