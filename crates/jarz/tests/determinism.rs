//! Same seed, same bits: on any number of threads, and when a run is saved and restored half-way.

#[path = "common/kinds.rs"]
mod kinds;

use jarz::{Mixture, Optimizer, Real, Rule, Setup, StepSize, Trainer};
use kinds::{advance, fingerprint, kinds, setup};

const ITERATIONS: u64 = 60;

fn threads_do_not_matter<T: Real>() {
    for (name, setup) in kinds::<T>() {
        let mut first: Option<String> = None;
        for threads in 1..=4 {
            let mut setup = setup.clone();
            setup.threads = threads;
            let weighted = setup.algorithm.is_weighted();
            let mut trainer = Trainer::new(setup).unwrap();
            advance(&mut trainer, ITERATIONS);
            let resamplings = trainer.walkers().resamplings();
            let enough = if weighted { resamplings >= 2 } else { resamplings == 0 };
            assert!(enough, "{name}: {resamplings} resamplings");
            let print = fingerprint(&mut trainer);
            match &first {
                None => first = Some(print),
                Some(first) => {
                    assert!(*first == print, "{name} {}: {threads} threads differ from 1", T::NAME)
                }
            }
        }
    }
}

#[test]
fn threads_do_not_matter_in_f32() {
    threads_do_not_matter::<f32>();
}

#[test]
fn threads_do_not_matter_in_f64() {
    threads_do_not_matter::<f64>();
}

/// A state taken at `k` and put into a fresh trainer ends where the uninterrupted run ends.
fn resumes<T: Real>(name: &str, setup: Setup<T, Mixture>) {
    let mut whole = Trainer::new(setup.clone()).unwrap();
    let mut saved = Vec::new();
    for k in [0, 1, 31] {
        advance(&mut whole, k);
        saved.push((k, whole.state()));
    }
    advance(&mut whole, ITERATIONS);
    let end = fingerprint(&mut whole);
    for (k, state) in saved {
        let mut other = setup.clone();
        other.threads = 2;
        let mut resumed = Trainer::new(other).unwrap();
        // A trainer that has already gone elsewhere must forget it.
        advance(&mut resumed, 3);
        resumed.restore(state).unwrap();
        assert_eq!(resumed.iteration(), k);
        advance(&mut resumed, ITERATIONS);
        assert!(fingerprint(&mut resumed) == end, "{name} {}: resumed at {k} it ends elsewhere", T::NAME);
    }
}

#[test]
fn every_kind_of_run_resumes() {
    for (name, setup) in kinds::<f64>() {
        resumes(name, setup);
    }
    for (name, setup) in kinds::<f32>() {
        resumes(name, setup);
    }
}

#[test]
fn every_optimizer_and_the_adaptive_step_resume() {
    let rules = [
        ("gradient", Rule::Gradient, 0.05),
        ("momentum", Rule::Momentum { beta: 0.8 }, 0.01),
        ("adam", Rule::ADAM, 0.01),
        ("adagrad", Rule::AdaGrad { epsilon: 1e-8 }, 0.05),
    ];
    for (name, rule, rate) in rules {
        for trust_region in [None, Some(2e-3)] {
            let mut setup = setup::<f64>(3);
            setup.optimizer = Optimizer::new(rule, vec![rate; 12]);
            setup.trust_region = trust_region;
            setup.step_size =
                StepSize::Adaptive { initial: 0.02, target: 0.8, gain: 0.3, bounds: (1e-4, 2.0) };
            resumes(name, setup);
        }
    }
}

#[test]
fn a_state_of_another_setup_is_refused() {
    let state = {
        let mut small = setup::<f64>(1);
        small.walkers = 100;
        Trainer::new(small).unwrap().state()
    };
    let mut trainer = Trainer::new(setup::<f64>(1)).unwrap();
    let error = trainer.restore(state).unwrap_err();
    assert!(error.to_string().contains("another setup"), "{error}");
}

#[test]
fn seeds_differ() {
    let [a, b] = [1, 2].map(|seed| {
        let mut trainer = Trainer::new(setup::<f64>(seed)).unwrap();
        advance(&mut trainer, 5);
        trainer.state()
    });
    assert_ne!(a.theta, b.theta);
    let (x, y) = (a.walkers.positions(), b.walkers.positions());
    assert!(x.iter().zip(y).all(|(x, y)| x != y), "no position may be shared");
}
