//! Resampling: which walkers survive, and when (section "Resampling step" and appendix "Resampling Routines").

use crate::random::{Purpose, Random};
use crate::weights::WeightSums;

/// How ancestors are drawn. All schemes are unbiased: walker `i` is expected `N p_i` times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Scheme {
    /// `N` independent draws.
    Multinomial,
    /// One draw in each of `N` equal strata.
    Stratified,
    /// One uniform shared by all strata: counts are `N p_i` rounded up or down.
    #[default]
    Systematic,
    /// `floor(N p_i)` copies for certain, the rest multinomially.
    Residual,
}

impl Scheme {
    /// All schemes.
    pub const ALL: [Scheme; 4] =
        [Scheme::Multinomial, Scheme::Stratified, Scheme::Systematic, Scheme::Residual];

    /// Name used in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Scheme::Multinomial => "multinomial",
            Scheme::Stratified => "stratified",
            Scheme::Systematic => "systematic",
            Scheme::Residual => "residual",
        }
    }

    /// Draws `n` ancestors, ascending, with the normalised weights `p`. The uniforms are addressed by
    /// (seed, `step`, draw, `purpose`).
    pub fn ancestors(self, p: &[f64], n: usize, random: &Random, step: u64, purpose: Purpose) -> Vec<u64> {
        let uniform = |i: u64| random.uniform(step, i, purpose);
        let strata = n as f64;
        match self {
            Scheme::Systematic => {
                let u = uniform(0);
                pick_sorted(p, n, |i| (i as f64 + u) / strata)
            }
            Scheme::Stratified => pick_sorted(p, n, |i| (i as f64 + uniform(i as u64)) / strata),
            Scheme::Multinomial => multinomial(p, n, uniform),
            Scheme::Residual => {
                let total: f64 = p.iter().sum();
                let mut counts: Vec<u64> = Vec::with_capacity(p.len());
                let mut rest: Vec<f64> = Vec::with_capacity(p.len());
                for p in p {
                    let expected = strata * p / total;
                    let whole = expected.floor();
                    counts.push(whole as u64);
                    rest.push(expected - whole);
                }
                let certain: u64 = counts.iter().sum();
                // Rounding may make the certain copies one too many only if all residuals vanish.
                let missing = (n as u64).saturating_sub(certain) as usize;
                if missing > 0 {
                    for ancestor in multinomial(&rest, missing, uniform) {
                        counts[ancestor as usize] += 1;
                    }
                }
                let mut out = Vec::with_capacity(n);
                for (i, count) in counts.iter().enumerate() {
                    out.extend(std::iter::repeat_n(i as u64, *count as usize));
                }
                out.truncate(n);
                out
            }
        }
    }
}

/// `n` independent draws, sorted: uniform order statistics are made from exponential spacings in one pass.
fn multinomial(p: &[f64], n: usize, uniform: impl Fn(u64) -> f64) -> Vec<u64> {
    let mut points = Vec::with_capacity(n);
    let mut total = 0.0;
    for i in 0..n {
        total -= uniform(i as u64).ln();
        points.push(total);
    }
    total -= uniform(n as u64).ln();
    pick_sorted(p, n, |i| points[i] / total)
}

/// For ascending points in (0, 1), the walkers whose interval of the cumulative weights holds them.
fn pick_sorted(p: &[f64], n: usize, point: impl Fn(usize) -> f64) -> Vec<u64> {
    let total: f64 = p.iter().sum();
    let last = p.iter().rposition(|&p| p > 0.0).unwrap_or(0);
    let mut out = Vec::with_capacity(n);
    let (mut walker, mut cumulative) = (0, p.first().copied().unwrap_or(0.0));
    for i in 0..n {
        let target = point(i) * total;
        while cumulative <= target && walker < last {
            walker += 1;
            cumulative += p[walker];
        }
        out.push(walker as u64);
    }
    out
}

/// Copies to make, given ascending ancestors, so that every survivor stays where it is and only
/// empty places are filled: `(from, to)` pairs. In place, and as little traffic as the counts allow.
pub fn replacements(ancestors: &[u64]) -> Vec<(u64, u64)> {
    let n = ancestors.len();
    let mut alive = vec![false; n];
    for &a in ancestors {
        alive[a as usize] = true;
    }
    let mut empty = (0..n).filter(|&i| !alive[i]);
    let extra = ancestors.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
    extra.zip(&mut empty).map(|(from, to)| (from, to as u64)).collect()
}

/// When to resample.
#[derive(Clone, Debug, PartialEq)]
pub enum Trigger {
    /// Never.
    Never,
    /// When the ESS (a fraction of the walkers) falls below a constant, or a schedule of them.
    EssBelow(Thresholds),
    /// When `exp(entropy of the weights) / N` falls below a threshold.
    EntropyBelow(Thresholds),
    /// Every so many iterations.
    Every(u64),
}

impl Trigger {
    /// Whether the ensemble is to be resampled at the end of `iteration` (counted from 1).
    pub fn fires(&self, iteration: u64, sums: &WeightSums) -> bool {
        match self {
            Trigger::Never => false,
            Trigger::EssBelow(c) => sums.ess() < c.at(iteration),
            Trigger::EntropyBelow(c) => sums.perplexity() < c.at(iteration),
            Trigger::Every(lag) => *lag > 0 && iteration.is_multiple_of(*lag),
        }
    }
}

/// The constants `c_k`: a threshold that may change at given iterations, zero before the first.
#[derive(Clone, Debug, PartialEq)]
pub struct Thresholds(Vec<(u64, f64)>);

impl Thresholds {
    /// The same at all times.
    pub fn constant(c: f64) -> Self {
        Thresholds(vec![(0, c)])
    }

    /// `(k, c)`: from iteration `k` on the threshold is `c`. Sorted by `k`.
    pub fn steps(mut steps: Vec<(u64, f64)>) -> Self {
        steps.sort_by_key(|s| s.0);
        Thresholds(steps)
    }

    /// Threshold at an iteration.
    pub fn at(&self, iteration: u64) -> f64 {
        self.0.iter().rev().find(|(from, _)| *from <= iteration).map_or(0.0, |(_, c)| *c)
    }

    /// The steps.
    pub fn as_slice(&self) -> &[(u64, f64)] {
        &self.0
    }
}
