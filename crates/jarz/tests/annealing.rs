//! Annealed SMC of mixtures, whose `log Z` and masses are known, from a Gaussian that is neither centred on them nor as wide.

use jarz::annealing::{Annealed, AnnealingError, GaussianBase, Settings, anneal};
use jarz::{Energy, Measured, Mixture, Modes, ParamGroup, Real, Scheme};
use rayon::prelude::*;
use std::ops::ControlFlow;

/// Mean of mode `k`: on a triangle in the first two coordinates.
fn corner(k: usize, dim: usize) -> Vec<f64> {
    let mut mean = vec![0.0; dim];
    (mean[0], mean[1]) = [(-2.5, 0.0), (2.0, 0.5), (0.0, 3.0)][k];
    mean
}

fn mixture(modes: usize, dim: usize) -> Mixture {
    let means: Vec<_> = (0..modes).map(|k| corner(k, dim)).collect();
    Mixture::new(&means, &[0.0, 1.1, -0.3][..modes], 0.7).unwrap()
}

fn base(dim: usize) -> GaussianBase {
    GaussianBase::isotropic(vec![0.2; dim], 1.8).unwrap()
}

fn run<T: Real>(model: &Mixture, settings: &Settings) -> Annealed<T> {
    let base = base(Energy::<T>::dim(model));
    anneal(model, &base, settings, &mut |_| ControlFlow::Continue(())).unwrap()
}

fn masses<T: Real>(model: &Mixture, found: &Annealed<T>) -> Vec<Measured> {
    let modes = Modes::<T>::count(model);
    let mut memberships = vec![0.0; found.walkers.len() * modes];
    model.memberships(found.walkers.positions(), &mut memberships);
    found.masses(&memberships, modes).unwrap()
}

fn log_z(model: &Mixture) -> f64 {
    Energy::<f64>::exact(model).unwrap().log_z()
}

/// Four standard errors are exceeded once in 16 000 times; the 18 comparisons raise a false alarm with probability 1e-3 at most.
#[test]
fn log_z_and_masses_are_within_their_errors() {
    for (modes, dim) in [(2, 2), (3, 2), (2, 10), (3, 10)] {
        let model = mixture(modes, dim);
        let settings = Settings { walkers: 4000, moves: 2, seed: 11, threads: 2, ..Settings::default() };
        let found = run::<f64>(&model, &settings);
        let (z, error) = (found.log_z.value - log_z(&model), found.log_z.std_error.unwrap());
        println!(
            "{modes} modes, {dim} dimensions: log Z off by {z:.4} +- {error:.4}; {} rungs, {} resamplings, {} ancestors, ESS {:.2}",
            found.trace.len(),
            found.walkers.resamplings(),
            found.walkers.distinct_ancestors(),
            found.ess
        );
        assert!(z.abs() < 4.0 * error, "log Z off by {z} +- {error}");
        assert!(error < 0.1, "a bar of {error} would hide anything");
        for (found, truth) in masses(&model, &found).iter().zip(Modes::<f64>::masses(&model)) {
            let error = found.std_error.unwrap();
            println!("  mass {:.4} +- {error:.4}, truth {truth:.4}", found.value);
            assert!((found.value - truth).abs() < 4.0 * error && error < 0.06);
        }
    }
}

/// Single precision: the same within its errors (4 of them: false alarm 1e-4).
#[test]
fn single_precision() {
    let model = mixture(2, 10);
    let found = run::<f32>(&model, &Settings { walkers: 2000, seed: 3, threads: 1, ..Settings::default() });
    let off = found.log_z.value - log_z(&model);
    assert!(off.abs() < 4.0 * found.log_z.std_error.unwrap(), "{off} of {:?}", found.log_z);
}

/// 200 ensembles of 500 walkers that choose their ladders themselves. The mean of `Z_hat / Z` is 1 within 4 standard errors (false alarm 6e-5 a scheme), and
/// the root mean square of the stated errors is the scatter within a factor of 1.25: a standard deviation of 200 values is known to 5 %, so this leaves 4 of those
/// and the terms of order `1 / N`. Systematic resampling may scatter less than stated, by up to a factor of 2.
#[test]
fn error_bars_are_calibrated() {
    let model = mixture(2, 2);
    let (truth, mass) = (log_z(&model), Modes::<f64>::masses(&model)[0]);
    for (scheme, upper) in [(Scheme::Multinomial, 1.25), (Scheme::Systematic, 2.0)] {
        let runs: Vec<[f64; 4]> = (0..200u64)
            .into_par_iter()
            .map(|r| {
                let settings =
                    Settings { walkers: 500, scheme, seed: 900 + r, threads: 1, ..Settings::default() };
                let found = run::<f64>(&model, &settings);
                let first = masses(&model, &found)[0];
                let ratio = (found.log_z.value - truth).exp();
                [ratio, found.log_z.std_error.unwrap(), first.value, first.std_error.unwrap()]
            })
            .collect();
        let mean = |f: &dyn Fn(&[f64; 4]) -> f64| runs.iter().map(f).sum::<f64>() / 200.0;
        let scatter = |j: usize| {
            let centre = mean(&|r| r[j]);
            (mean(&|r| (r[j] - centre).powi(2)) * 200.0 / 199.0).sqrt()
        };
        let stated = |j: usize| mean(&|r| r[j] * r[j]).sqrt();
        println!(
            "{scheme:?}: Z_hat / Z {:.4} +- {:.4}, stated / scatter {:.3}; mass {:.4} +- {:.4} ({mass:.4}), {:.3}",
            mean(&|r| r[0]),
            scatter(0) / 200f64.sqrt(),
            stated(1) / scatter(0),
            mean(&|r| r[2]),
            scatter(2) / 200f64.sqrt(),
            stated(3) / scatter(2)
        );
        assert!((mean(&|r| r[0]) - 1.0).abs() < 4.0 * scatter(0) / 200f64.sqrt());
        assert!((mean(&|r| r[2]) - mass).abs() < 4.0 * scatter(2) / 200f64.sqrt());
        for ratio in [stated(1) / scatter(0), stated(3) / scatter(2)] {
            assert!(ratio > 0.8 && ratio < upper, "{scheme:?}: stated errors are {ratio} of the scatter");
        }
    }
}

#[test]
fn same_bits_on_any_number_of_threads_and_on_the_ladder_it_climbed() {
    let model = mixture(3, 10);
    let settings = Settings { walkers: 3000, moves: 2, seed: 5, threads: 1, ..Settings::default() };
    let one = run::<f32>(&model, &settings);
    assert!(one.walkers.resamplings() > 0);
    assert_eq!(one, run::<f32>(&model, &Settings { threads: 3, ..settings.clone() }));
    let again = Settings { ladder: Some(one.ladder()), ..settings.clone() };
    assert_eq!(one, run::<f32>(&model, &again));
    assert_ne!(one, run::<f32>(&model, &Settings { seed: 6, ..settings }));
}

/// The time step finds its acceptance, whatever the scale of the problem. With few rungs it lags behind as the energy grows stiffer, so these are many.
#[test]
fn acceptance_is_steered_at_any_scale() {
    for scale in [1e-4, 1.0, 1e4] {
        let means: Vec<Vec<f64>> = (0..2).map(|k| corner(k, 5).iter().map(|v| v * scale).collect()).collect();
        let model = Mixture::new(&means, &[0.0, 0.0], 0.7 * scale).unwrap();
        let base = GaussianBase::isotropic(vec![0.0; 5], 2.0 * scale).unwrap();
        let settings = Settings { walkers: 1000, step_ess: 0.99, threads: 1, ..Settings::default() };
        let found = anneal::<f64, _>(&model, &base, &settings, &mut |_| ControlFlow::Continue(())).unwrap();
        let mean = found.trace.iter().map(|r| r.acceptance).sum::<f64>() / found.trace.len() as f64;
        assert!((mean - settings.acceptance).abs() < 0.1, "scale {scale}: acceptance {mean}");
        assert!(found.trace.windows(2).all(|w| w[0].t < w[1].t) && found.trace.last().unwrap().t == 1.0);
    }
}

/// `|x|^2 / 2`, but what is given beyond a radius.
#[derive(Clone)]
struct Broken {
    radius: f64,
    beyond: f64,
}

impl Energy<f64> for Broken {
    type Workspace = ();
    fn dim(&self) -> usize {
        2
    }
    fn groups(&self) -> Vec<ParamGroup> {
        Vec::new()
    }
    fn params(&self) -> &[f64] {
        &[]
    }
    fn set_params(&mut self, _: &[f64]) {}
    fn energy_and_gradient(&self, x: &[f64], u: &mut [f64], g: &mut [f64], _: &mut ()) {
        for (i, row) in x.chunks(2).enumerate() {
            let square = row[0] * row[0] + row[1] * row[1];
            u[i] = if square.sqrt() > self.radius { self.beyond } else { 0.5 * square };
        }
        g.copy_from_slice(x);
    }
    fn add_param_gradient(&self, _: &[f64], _: &[f64], _: &mut [f64], _: &mut ()) {}
}

#[test]
fn energies_that_are_not_finite_are_errors() {
    let settings = Settings { walkers: 200, threads: 1, ..Settings::default() };
    let run = |radius: f64, beyond: f64, sigma: f64| {
        let base = GaussianBase::isotropic(vec![0.0; 2], sigma).unwrap();
        anneal(&Broken { radius, beyond }, &base, &settings, &mut |_| ControlFlow::Continue(()))
    };
    for beyond in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let error = run(1.0, beyond, 1.0).unwrap_err();
        assert!(matches!(error, AnnealingError::Diverged { t: 0.0, .. }), "{error}");
        assert!(error.to_string().contains("the energy of walker"), "{error}");
    }
    // Met only on the way: a hole without a bottom swallows walkers, a wall turns them back.
    let error = run(2.0, f64::NEG_INFINITY, 0.3).unwrap_err();
    assert!(matches!(error, AnnealingError::Diverged { t, .. } if t > 0.0), "{error}");
    let walled = run(2.0, f64::NAN, 0.3).unwrap();
    assert!(walled.walkers.positions().chunks(2).all(|x| x[0].hypot(x[1]) <= 2.0));
}

#[test]
fn it_can_be_stopped() {
    let model = mixture(2, 2);
    let mut rungs = 0;
    let settings = Settings { walkers: 100, threads: 1, ..Settings::default() };
    let stopped = anneal::<f64, _>(&model, &base(2), &settings, &mut |_| {
        rungs += 1;
        if rungs == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(matches!(stopped, Err(AnnealingError::Stopped { t }) if t > 0.0 && t < 1.0), "{stopped:?}");
    assert_eq!(rungs, 3);
}

#[test]
fn impossible_settings_are_refused_by_name() {
    let model = mixture(2, 2);
    let good = || Settings { walkers: 100, threads: 1, ..Settings::default() };
    let ladder = |rungs: &[(f64, f64)]| Settings { ladder: Some(rungs.to_vec()), ..good() };
    for (settings, word) in [
        (Settings { walkers: 1, ..good() }, "walkers"),
        (Settings { moves: 0, ..good() }, "move"),
        (Settings { step_ess: 1.0, ..good() }, "ESS of a step"),
        (Settings { step_ess: f64::NAN, ..good() }, "ESS of a step"),
        (Settings { acceptance: 0.0, ..good() }, "acceptance"),
        (Settings { threshold: 1.5, ..good() }, "threshold"),
        (Settings { friction: Some(0.0), ..good() }, "friction"),
        (Settings { friction: Some(f64::NAN), ..good() }, "friction"),
        (Settings { min_step: 0.0, ..good() }, "min_step"),
        (Settings { max_step: 1e-6, ..good() }, "max_step"),
        (ladder(&[]), "ladder"),
        (ladder(&[(0.5, 0.1)]), "ladder"),
        (ladder(&[(0.5, 0.1), (0.5, 0.1), (1.0, 0.1)]), "ladder"),
        (ladder(&[(0.5, 0.0), (1.0, 0.1)]), "time step"),
    ] {
        let result = anneal::<f64, _>(&model, &base(2), &settings, &mut |_| ControlFlow::Continue(()));
        let Err(AnnealingError::Settings(text)) = &result else { panic!("{settings:?}: {result:?}") };
        assert!(text.contains(word), "{text}");
    }
    let other = anneal::<f64, _>(&model, &base(3), &good(), &mut |_| ControlFlow::Continue(()));
    assert!(matches!(other, Err(AnnealingError::Settings(text)) if text.contains('3') && text.contains('2')));
    for bad in [GaussianBase::isotropic(vec![0.0], 0.0), GaussianBase::new(vec![], vec![])] {
        assert!(bad.is_err());
    }
    let found = run::<f64>(&model, &good());
    assert!(found.masses(&[0.5; 100], 2).is_err() && found.masses(&[f64::NAN; 100], 1).is_err());
}
