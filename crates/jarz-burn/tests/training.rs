//! Runs on the device against runs on the processor with the same random numbers.
#![cfg(feature = "device")]

mod common;

use common::{config, engine};
use jarz::{Estimates, State, StepInfo, Trainer, Training};
use jarz_burn::Noise;
use jarz_run::network_setup;

const ITERATIONS: usize = 12;

/// What a run did.
struct Record {
    steps: Vec<StepInfo>,
    estimates: Estimates,
    state: State<f32>,
}

fn run(trainer: &mut dyn Training<f32>) -> Record {
    let steps = (0..ITERATIONS).map(|_| trainer.step().unwrap()).collect();
    Record { steps, estimates: trainer.estimates().unwrap(), state: trainer.state().unwrap() }
}

/// Numbers differ by at most `tolerance` in units of the largest, or of one.
fn close(what: &str, a: impl IntoIterator<Item = f64>, b: impl IntoIterator<Item = f64>, tolerance: f64) {
    let (a, b): (Vec<f64>, Vec<f64>) = (a.into_iter().collect(), b.into_iter().collect());
    assert_eq!(a.len(), b.len(), "{what}");
    let unit = b.iter().fold(1.0f64, |m, v| m.max(v.abs()));
    let worst = a.iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) / unit;
    println!("  {what}: {worst:.1e}");
    assert!(worst <= tolerance, "{what} differ by {worst}");
}

/// Log-weights and what `log Z` gained, together, so that it does not matter how much of one is in the other.
fn weights(state: &State<f32>) -> Vec<f64> {
    let walkers = state.witnesses.as_ref().map_or(&state.walkers, |(witnesses, _)| witnesses);
    let base = 0.5 * walkers.dim as f64 * std::f64::consts::TAU.ln();
    walkers.log_weights.iter().map(|a| a + walkers.log_z.map_or(0.0, |z| z - base)).collect()
}

/// Single precision keeps 6e-8 of numbers that are some tens; a dozen iterations of some thousand operations each, whose errors have
/// either sign, leave less than 1e-4 of it.
const ROUNDING: f64 = 1e-4;

/// The same run twice. At least one resampling must occur where weights are at stake.
fn agree(changes: &[&str], resamplings: bool) {
    let config = config(changes);
    println!("{changes:?}");
    let here = run(&mut Trainer::new(network_setup(&config).unwrap()).unwrap());
    let there = run(&mut engine(Noise::Host).trainer(network_setup(&config).unwrap()).unwrap());
    let each = |record: &Record, f: fn(&StepInfo) -> f64| record.steps.iter().map(f).collect::<Vec<_>>();
    for (what, f) in [
        ("acceptance", (|s| s.acceptance) as fn(&StepInfo) -> f64),
        ("ESS", |s| s.ess),
        ("resamplings", |s| f64::from(s.resampled)),
        ("gradient norm", |s| s.gradient_norm),
        ("step scale", |s| s.step_scale),
    ] {
        close(what, each(&there, f), each(&here, f), ROUNDING);
    }
    assert_eq!(resamplings, here.state.walkers.resamplings > 0, "what the test is about must occur");
    let shortened = here.steps.iter().any(|s| s.step_scale < 1.0);
    assert_eq!(shortened, config.optimizer.trust_region.is_some(), "what the test is about must occur");
    assert_eq!(here.state.walkers.ancestors, there.state.walkers.ancestors);
    assert_eq!(here.estimates.distinct_ancestors, there.estimates.distinct_ancestors);
    if config.algorithm.kind.algorithm().is_weighted() {
        let largest = weights(&here.state).iter().fold(0.0f64, |m, w| m.max(w.abs()));
        assert!(largest > 100.0 * ROUNDING, "weights of {largest} say nothing");
    }
    close("log-weights", weights(&there.state), weights(&here.state), ROUNDING);
    close("parameters", there.state.theta, here.state.theta, ROUNDING);
    close("mean parameters", there.state.average, here.state.average, ROUNDING);
    let wide = |values: &[f32]| values.iter().map(|v| f64::from(*v)).collect::<Vec<_>>();
    let (a, b) = (&there.state.walkers, &here.state.walkers);
    close("positions", wide(&a.positions), wide(&b.positions), ROUNDING);
    close("gradients", wide(&a.gradients), wide(&b.gradients), ROUNDING);
    close("energies", a.energies.clone(), b.energies.clone(), ROUNDING);
    for (what, f) in [
        ("log Z", (|e| e.log_z.map(|z| z.value)) as fn(&Estimates) -> Option<f64>),
        ("error of log Z", |e| e.log_z.and_then(|z| z.std_error)),
        ("log Z of those that drive", |e| e.driving_log_z),
        ("energy of the data", |e| Some(e.data_energy.value)),
        ("its error", |e| e.data_energy.std_error),
        ("cross-entropy", |e| e.cross_entropy.map(|h| h.value)),
        ("entropy of the weights", |e| Some(e.weight_entropy)),
        ("norm of the whole gradient", |e| Some(e.gradient_norm)),
        ("step size", |e| Some(e.step_size)),
    ] {
        close(what, f(&there.estimates), f(&here.estimates), ROUNDING);
    }
}

#[test]
fn unadjusted_steps_with_adam() {
    let optimizer = ["optimizer.kind=adam", "optimizer.rates={all=0.002}", "optimizer.clip_norm=1.0"];
    agree(&[&optimizer[..], &["resampling.threshold=0.999"]].concat(), true);
}

#[test]
fn adjusted_steps_with_witnesses_of_the_mean() {
    agree(
        &[
            "kernel.kind=mala",
            "kernel.adapt={target=0.7}",
            "walkers.witnesses=64",
            "optimizer.rates={all=0.5}",
            "optimizer.average=5",
            "optimizer.trust_region=1e-4",
            "resampling.trigger=every",
            "resampling.every=5",
        ],
        true,
    );
}

#[test]
fn mini_batches_with_a_clipped_drift() {
    let changes = ["walkers.batch=40", "data.batch=32", "kernel.clip_norm=7.5", "kernel.steps=2"];
    let rest = ["optimizer.kind=momentum", "optimizer.rates={all=0.05}", "resampling.scheme=multinomial"];
    agree(&[&changes[..], &rest, &["resampling.threshold=0.999"]].concat(), true);
}

#[test]
fn mini_batches_of_adjusted_steps() {
    agree(
        &["walkers.batch=40", "kernel.kind=mala", "kernel.clip_component=1.5", "optimizer.rates={all=0.5}"],
        false,
    );
}

/// Augmented walkers go on from where they were put, with energies and gradients of that place.
#[test]
fn with_augmentation() {
    let augment =
        "walkers.augment={ probability = 0.2, colour = 0.5, flip = 0.5, smallest_crop = 0.5, blur = 1.0 }";
    for kernel in ["kernel.kind=ula", "kernel.kind=mala"] {
        for batch in ["walkers.batch=40", "walkers.count=80"] {
            agree(&["algorithm.kind=pcd", augment, kernel, batch, "optimizer.rates={all=0.5}"], false);
        }
    }
}

#[test]
fn without_weights() {
    let adagrad = ["optimizer.kind=adagrad", "optimizer.rates={all=0.01}"];
    agree(&[&["algorithm.kind=pcd"], &adagrad[..]].concat(), false);
    agree(&["algorithm.kind=cd", "kernel.steps=3", "optimizer.rates={all=0.5}"], false);
    agree(&["algorithm.kind=unweighted", "optimizer.rates={all=0.5}"], false);
}
