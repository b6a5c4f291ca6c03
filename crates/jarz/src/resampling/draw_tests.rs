//! Scalar twins: the definitions, one point after the other.

use super::*;
use crate::resampling::Scheme;
use proptest::prelude::*;

fn plain(scheme: Scheme, p: &[f64], n: usize, random: &Random, step: u64, purpose: Purpose) -> Vec<u64> {
    let uniform = |i: u64| random.uniform(step, i, purpose);
    let strata = n as f64;
    match scheme {
        Scheme::Systematic => {
            let u = uniform(0);
            pick_sorted(p, n, |i| (i as f64 + u) / strata)
        }
        Scheme::Stratified => pick_sorted(p, n, |i| (i as f64 + uniform(i as u64)) / strata),
        Scheme::Multinomial => plain_multinomial(p, n, uniform),
        Scheme::Residual => {
            let total: f64 = p.iter().sum();
            let expected: Vec<f64> = p.iter().map(|p| strata * p / total).collect();
            let mut counts: Vec<u64> = expected.iter().map(|e| e.floor() as u64).collect();
            let rest: Vec<f64> = expected.iter().map(|e| e - e.floor()).collect();
            let missing = n - counts.iter().sum::<u64>() as usize;
            plain_multinomial(&rest, missing, uniform).iter().for_each(|a| counts[*a as usize] += 1);
            let copies = counts.iter().enumerate();
            copies.flat_map(|(i, count)| std::iter::repeat_n(i as u64, *count as usize)).collect()
        }
    }
}

fn plain_multinomial(p: &[f64], n: usize, uniform: impl Fn(u64) -> f64) -> Vec<u64> {
    let spacings: Vec<f64> = (0..=n as u64).map(|i| -uniform(i).ln()).collect();
    let total: f64 = spacings.iter().sum();
    let mut sum = 0.0;
    let points: Vec<f64> = spacings
        .iter()
        .map(|s| {
            sum += s;
            sum / total
        })
        .collect();
    pick_sorted(p, n, |i| points[i])
}

fn pick_sorted(p: &[f64], n: usize, point: impl Fn(usize) -> f64) -> Vec<u64> {
    let total: f64 = p.iter().sum();
    let last = p.iter().rposition(|&p| p > 0.0).unwrap_or(0);
    let (mut walker, mut cumulative) = (0, p[0]);
    let mut out = Vec::new();
    for i in 0..n {
        while cumulative <= point(i) * total && walker < last {
            walker += 1;
            cumulative += p[walker];
        }
        out.push(walker as u64);
    }
    out
}

/// Weights with ties, zeros and extremes; sums that round differently may move a point that lies on a boundary to the neighbour.
fn check(walkers: usize, n: usize, seed: u64, kind: u64) {
    let random = Random::new(seed);
    let weight = |i: usize| {
        let u = random.uniform(1, i as u64, Purpose::User);
        match kind {
            0 => u,
            1 => {
                if u < 0.7 {
                    0.0
                } else {
                    u
                }
            }
            2 => (-20.0 * u).exp(),
            _ => {
                if i == walkers / 2 {
                    1e6
                } else {
                    u
                }
            }
        }
    };
    let mut p: Vec<f64> = (0..walkers).map(weight).collect();
    p[walkers / 3] += 1e-3;
    for scheme in Scheme::ALL {
        let fast = scheme.ancestors(&p, n, &random, 5, Purpose::Resample);
        let slow = plain(scheme, &p, n, &random, 5, Purpose::Resample);
        assert_eq!(fast.len(), n);
        let differ = fast.iter().zip(&slow).filter(|(a, b)| a != b).count();
        assert!(differ <= 2, "{scheme:?}: {differ} of {n} differ");
        assert!(fast.is_sorted() && fast.iter().all(|a| p[*a as usize] > 0.0), "{scheme:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn fast_draws_equal_the_definitions(walkers in 1usize..9000, n in 1usize..9000, seed: u64, kind in 0u64..4) {
        check(walkers, n, seed, kind);
    }
}

#[test]
fn large_ensembles_on_one_thread_and_many() {
    check(100_000, 100_000, 3, 0);
    check(100_000, 70_000, 4, 1);
    let random = Random::new(8);
    let p: Vec<f64> = (0..100_000).map(|i| random.uniform(0, i, Purpose::User)).collect();
    for scheme in Scheme::ALL {
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| scheme.ancestors(&p, p.len(), &random, 0, Purpose::User))
        };
        assert_eq!(on(1), on(3));
    }
}
