//! Scalar twins: the definitions, one point after the other.

use super::*;
use crate::resampling::{Scheme, independent, poisson};
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
        Scheme::Multinomial => plain_independent(p, n, random, (step, purpose), false),
        Scheme::Residual => plain_independent(p, n, random, (step, purpose), true),
    }
}

/// Poisson numbers of copies, one after the other, and sorted points for what is missing.
fn plain_independent(
    p: &[f64],
    n: usize,
    random: &Random,
    (step, purpose): (u64, Purpose),
    certain: bool,
) -> Vec<u64> {
    let total: f64 = p.iter().sum();
    let normalised = (total - 1.0).abs() <= independent::NORMALISED;
    let scale = n as f64 / if normalised { 1.0 } else { total };
    let whole: Vec<f64> = p.iter().map(|p| if certain { (p * scale).floor() } else { 0.0 }).collect();
    let rest: Vec<f64> = p.iter().zip(&whole).map(|(p, whole)| p * scale - whole).collect();
    let mut shortened = independent::first_shortened(n, certain);
    for attempt in !normalised as u32.. {
        let uniform = |walker: u64, block: u32, half: usize| {
            let words = random.words(step, walker, purpose, block);
            let bits = (words[2 * half] as u64) << 32 | words[2 * half + 1] as u64;
            ((bits >> (64 - poisson::BITS)) as f64 + 0.5) / (1u64 << poisson::BITS) as f64
        };
        let number = |i: usize| {
            let mean = rest[i] * shortened;
            if mean <= poisson::MOST {
                return invert(mean, uniform((i / 32 * 16 + i % 16) as u64, attempt, i % 32 / 16));
            }
            let parts = (mean / poisson::MOST).ceil() as usize;
            let part = |j: usize| {
                let block = poisson::block_of_many(attempt) + (j / 32 * 16 + j % 16) as u32;
                invert(mean / parts as f64, uniform(i as u64, block, j % 32 / 16))
            };
            (0..parts).map(part).sum()
        };
        let mut copies: Vec<usize> = (0..p.len()).map(|i| whole[i] as usize + number(i)).collect();
        let drawn: usize = copies.iter().sum();
        if drawn > n {
            assert!(shortened > 0.0, "certain copies are too many");
            let next = attempt + 1;
            let all = rest.iter().sum();
            shortened = if next < independent::ATTEMPTS { independent::shortened(all) } else { 0.0 };
            continue;
        }
        let spacing = |i: u64| {
            let words = random.words(step, i, purpose, independent::ONE_BY_ONE);
            -crate::random::uniform_from(words[0], words[1]).ln()
        };
        let spacings: Vec<f64> = (0..=(n - drawn) as u64).map(spacing).collect();
        let all: f64 = spacings.iter().sum();
        let mut sum = 0.0;
        let points: Vec<f64> = spacings
            .iter()
            .map(|s| {
                sum += s;
                sum / all
            })
            .collect();
        pick_sorted(&rest, n - drawn, |i| points[i]).iter().for_each(|&walker| copies[walker as usize] += 1);
        let copies = copies.iter().enumerate();
        return copies.flat_map(|(i, &count)| std::iter::repeat_n(i as u64, count)).collect();
    }
    unreachable!()
}

fn invert(mean: f64, u: f64) -> usize {
    let (mut term, mut number) = ((-mean).exp(), 0);
    let mut below = term;
    while u > below {
        number += 1;
        term *= mean / number as f64;
        below += term;
    }
    number
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

/// How often each count of walker 0 occurs in many draws, against its probabilities: Pearson's sum over those expected at least 10 times, which must
/// stay below the quantile of 1e-6 (Wilson and Hilferty).
fn check_counts(p: &[f64], n: usize, scheme: Scheme, probability: impl Fn(usize) -> f64) {
    const DRAWS: usize = 40_000;
    let random = Random::new(11);
    let mut seen = vec![0usize; n + 1];
    let mut draws = Draws::default();
    for step in 0..DRAWS as u64 {
        let ancestors = scheme.ancestors_in(p, n, &random, step, Purpose::User, &mut draws);
        seen[ancestors.iter().filter(|a| **a == 0).count()] += 1;
    }
    let (mut sum, mut cells, mut tail) = (0.0, 0.0, (DRAWS as f64, DRAWS as f64));
    for (count, seen) in seen.iter().enumerate() {
        let expected = DRAWS as f64 * probability(count);
        if expected >= 10.0 {
            sum += (*seen as f64 - expected).powi(2) / expected;
            cells += 1.0;
            tail = (tail.0 - expected, tail.1 - *seen as f64);
        }
    }
    assert!(
        cells > 3.0 && tail.0 < 0.01 * DRAWS as f64 && (tail.1 - tail.0).abs() < 6.0 * (tail.0 + 10.0).sqrt(),
        "{tail:?}"
    );
    let spread = 2.0 / (9.0 * cells);
    let limit = cells * (1.0 - spread + 4.75 * f64::sqrt(spread)).powi(3);
    assert!(sum < limit, "{scheme:?}: {sum} of {cells} cells, {limit} allowed");
}

/// Probability of `k` successes in `n`.
fn binomial(n: usize, p: f64, k: usize) -> f64 {
    if k > n {
        return 0.0;
    }
    let log_choose: f64 = (1..=k).map(|i| (((n - k + i) as f64) / i as f64).ln()).sum();
    (log_choose + k as f64 * p.ln() + (n - k) as f64 * (1.0 - p).ln()).exp()
}

#[test]
fn multinomial_counts_are_binomial() {
    // Most drawn one by one; most by Poisson numbers; as sums of several; weights that are not normalised.
    check_counts(&[0.3, 0.5, 0.2], 12, Scheme::Multinomial, |k| binomial(12, 0.3, k));
    check_counts(&[0.02, 0.03, 0.95], 600, Scheme::Multinomial, |k| binomial(600, 0.02, k));
    check_counts(&[0.25, 0.75], 800, Scheme::Multinomial, |k| binomial(800, 0.25, k));
    check_counts(&[1.0, 2.0, 5.0], 90, Scheme::Multinomial, |k| binomial(90, 0.125, k));
}

#[test]
fn residual_counts_are_certain_and_binomial() {
    // Walker 0 expects 5.9 copies, nine others 1.3, and 21 the rest: six draws are not certain.
    let mut p = vec![1.3 / 40.0; 31];
    p[0] = 5.9 / 40.0;
    let others: f64 = p[..10].iter().sum();
    p[10..].fill((1.0 - others) / 21.0);
    let n = 40;
    let rest: Vec<f64> = p.iter().map(|p| p * n as f64 - (p * n as f64).floor()).collect();
    let left: f64 = rest.iter().sum();
    let certain = (p[0] * n as f64).floor() as usize;
    let probability = |k: usize| {
        if k < certain { 0.0 } else { binomial(left.round() as usize, rest[0] / left, k - certain) }
    };
    check_counts(&p, n, Scheme::Residual, probability);
}

/// Neighbours' counts must be as negatively correlated as independent draws make them.
#[test]
fn multinomial_counts_of_two_walkers_compete() {
    let (p, n) = ([0.3, 0.4, 0.3], 50usize);
    let random = Random::new(12);
    let mut draws = Draws::default();
    const DRAWS: usize = 40_000;
    let mut sum = 0.0;
    for step in 0..DRAWS as u64 {
        let ancestors = Scheme::Multinomial.ancestors_in(&p, n, &random, step, Purpose::User, &mut draws);
        let count = |walker: u64| ancestors.iter().filter(|a| **a == walker).count() as f64;
        sum += (count(0) - n as f64 * p[0]) * (count(1) - n as f64 * p[1]);
    }
    let (covariance, expected) = (sum / DRAWS as f64, -(n as f64) * p[0] * p[1]);
    // Variance of a product of two correlated normals.
    let variance = expected * expected + (n as f64).powi(2) * p[0] * (1.0 - p[0]) * p[1] * (1.0 - p[1]);
    let error = (variance / DRAWS as f64).sqrt();
    assert!((covariance - expected).abs() < 5.0 * error, "{covariance} instead of {expected} +- {error}");
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

/// All instruction sets draw the same copies and sum alike; the definitions above hold for the best of them.
#[test]
fn poisson_numbers_have_the_same_bits_on_all_instruction_sets() {
    let random = Random::new(23);
    for walkers in [1, 31, 512, 1700] {
        let weight = |i: usize| 40.0 * random.uniform(1, i as u64, Purpose::User).powi(6);
        let p: Vec<f64> = (0..walkers).map(weight).collect();
        let key = random.key(2, Purpose::User);
        let attempt = poisson::Attempt { key, number: 1, scale: 1.0, most: 1e6, shortened: 0.9 };
        let drawn = |isa: Isa| {
            let (mut copies, mut whole) = (vec![0; walkers], vec![0; walkers]);
            let (mut sums, mut left) =
                (vec![1.0; SEGMENT / poisson::GROUP], vec![1.0; SEGMENT / poisson::GROUP]);
            let said = poisson::draw_segment::<false>(isa, &attempt, 4096, &p, &mut copies, &mut sums);
            let many = poisson::draw_many(isa, &attempt, 4096, &p, &mut copies);
            let rest = poisson::draw_segment::<true>(isa, &attempt, 4096, &p, &mut whole, &mut left);
            assert!(said.copies + many == copies.iter().sum::<u32>() as usize && !rest.many);
            let bits = [said.expected, said.rest, rest.expected, rest.rest].map(f64::to_bits);
            (copies, whole, sums, left, bits)
        };
        for isa in Isa::available() {
            assert_eq!(drawn(isa), drawn(Isa::Portable), "{isa:?}");
        }
    }
}

/// Memory of a larger ensemble must not show.
#[test]
fn memory_is_reused_without_a_trace() {
    let random = Random::new(21);
    let mut draws = Draws::default();
    for (round, n) in [9000usize, 70, 4097, 600, 5000].into_iter().enumerate() {
        let p: Vec<f64> = (0..n).map(|i| random.uniform(1, i as u64, Purpose::User)).collect();
        for scheme in Scheme::ALL {
            let reused =
                scheme.ancestors_in(&p, n, &random, round as u64, Purpose::User, &mut draws).to_vec();
            assert_eq!(reused, scheme.ancestors(&p, n, &random, round as u64, Purpose::User), "{scheme:?}");
        }
    }
}

/// Whatever the weights are, there are as many ancestors as asked for.
#[test]
fn weights_that_are_none_do_no_harm() {
    let random = Random::new(22);
    let tiny = f64::MIN_POSITIVE * 1e-10;
    for weights in [
        [0.0; 3],
        [f64::NAN; 3],
        [f64::INFINITY; 3],
        [tiny; 3],
        [1e300; 3],
        [-1.0, 5.0, -3.9],
        [1e6, 0.0, 1e-300],
    ] {
        let p: Vec<f64> = (0..200).map(|i| weights[i % 3]).collect();
        for scheme in Scheme::ALL {
            let ancestors = scheme.ancestors(&p, 300, &random, 0, Purpose::User);
            assert!(
                ancestors.len() == 300 && ancestors.iter().all(|a| *a < 200),
                "{scheme:?} of {weights:?}"
            );
        }
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
