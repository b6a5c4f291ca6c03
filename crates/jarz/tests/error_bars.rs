//! Error bars from ancestry against the scatter of many independent ensembles, along a prescribed path of mixtures.
//!
//! With independent initial walkers and multinomial resampling, `E[(Z_hat / Z)^2 V]` is exactly the variance of `Z_hat / Z` for the ancestral
//! estimate `V`; its plain average is so up to terms of order `1 / N`. Other schemes scatter less and are estimated conservatively.

use jarz::weights::normalise;
use jarz::{
    Advance, Exact, Families, Kernel, Mixture, Random, Sampler, Scheme, Stratification, Walkers, Weighting,
};
use rayon::prelude::*;

const STEPS: u64 = 8;

/// Modes that part and change their masses; the further, the more the weights scatter.
fn path(t: f64) -> Mixture {
    let means = [vec![-0.4 - 0.5 * t, 0.1], vec![0.6 + 0.4 * t, 0.2 * t]];
    Mixture::new(&means, &[0.0, 0.5 * t], 0.8).unwrap()
}

/// What one ensemble says: `Z_hat / Z`, the ancestral relative variance, a weighted mean and its squared standard error.
struct Replica {
    ratio: f64,
    variance: f64,
    mean: f64,
    mean_variance: f64,
}

fn replica(walkers: usize, scheme: Scheme, end: f64, seed: u64) -> Replica {
    let mut model = path(0.0);
    let mut x = vec![0.0f64; walkers * 2];
    let n = walkers as u64;
    model.sample(0..n, n, Stratification::Independent, &Random::new(seed), &mut x);
    let start = Walkers::new(2, x, Some(Exact::<f64>::log_z(&model)));
    let mut sampler = Sampler::new(start, &model, Kernel::ula(), scheme, None, seed, 1).unwrap();
    sampler.begin(&model).unwrap();
    for k in 0..STEPS {
        let next = path(end * (k + 1) as f64 / STEPS as f64);
        let weighting = Weighting::Jarzynski;
        let advance = Advance { iteration: k, h: 0.1, weighting, correction: None, restart: None };
        sampler.advance(&model, &next, advance).unwrap();
        model = next;
        if (k + 1) % 2 == 0 && k + 1 < STEPS {
            sampler.resample(&model, k + 1).unwrap();
        }
    }
    let w = sampler.walkers();
    assert_eq!(w.resamplings(), 3);
    let p = normalise(w.log_weights());
    let families = Families::new(w.ancestors(), &p);
    let mean = families.mean(|i| w.positions()[2 * i]);
    Replica {
        ratio: (sampler.log_z().unwrap() - Exact::<f64>::log_z(&model)).exp(),
        variance: families.relative_variance(scheme, w.resamplings()),
        mean: mean.value,
        mean_variance: mean.std_error.unwrap().powi(2),
    }
}

fn replicas(count: u64, walkers: usize, scheme: Scheme, end: f64) -> Vec<Replica> {
    (0..count).into_par_iter().map(|r| replica(walkers, scheme, end, 70_000 + r)).collect()
}

fn average(values: impl Iterator<Item = f64> + Clone) -> f64 {
    values.clone().sum::<f64>() / values.count() as f64
}

fn variance(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let mean = average(values.clone());
    let n = values.clone().count() as f64;
    values.map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0)
}

/// 6000 ensembles of 400 walkers: an empirical variance has a relative error of `sqrt(2 / 6000)` = 1.8 % (a little more with the tails of a
/// product of weights), so that the tolerance of 10 % leaves 4 standard errors and 2 % for terms of order `1 / N`.
/// False alarm 1e-3 over the 15 comparisons.
#[test]
fn bars_equal_the_scatter_of_independent_ensembles() {
    for scheme in Scheme::ALL {
        let runs = replicas(6000, 400, scheme, 1.0);
        let scatter = variance(runs.iter().map(|r| r.ratio));
        let bars = average(runs.iter().map(|r| r.variance));
        let weighted = average(runs.iter().map(|r| r.ratio.powi(2) * r.variance));
        let mean_scatter = variance(runs.iter().map(|r| r.mean));
        let mean_bars = average(runs.iter().map(|r| r.mean_variance));
        println!(
            "{scheme:?}: log Z {:.3} ({:.3} weighted), mean {:.3} of the scatter",
            bars / scatter,
            weighted / scatter,
            mean_bars / mean_scatter
        );
        assert!(scatter > 1e-4, "the path must be hard enough to scatter: {scatter}");
        for (what, ratio) in [
            ("log Z", bars / scatter),
            ("log Z, weighted", weighted / scatter),
            ("mean", mean_bars / mean_scatter),
        ] {
            assert!(ratio > 0.9, "{scheme:?}: bars of {what} are {ratio} of the scatter");
            assert!(
                scheme != Scheme::Multinomial || ratio < 1.1,
                "{scheme:?}: bars of {what} are {ratio} of the scatter"
            );
        }
    }
}

/// Two standard errors cover 95.4 % of normal errors: of 400 ensembles 382 +- 4, and 90 % is 5 standard deviations lower (false alarm 1e-5).
/// More than that is allowed: bars may be conservative. The path is twice as long here: where weights hardly differ, the multinomial estimate is a small
/// difference of larger numbers, and bars from it are too noisy to be normal.
#[test]
fn two_standard_errors_cover_log_z() {
    for scheme in Scheme::ALL {
        let runs = replicas(400, 2000, scheme, 2.0);
        let covered =
            runs.iter().filter(|r| r.ratio.ln().abs() < 2.0 * r.variance.sqrt()).count() as f64 / 400.0;
        println!("{scheme:?}: coverage {covered}");
        assert!(covered >= 0.9, "{scheme:?}: coverage {covered}");
    }
}
