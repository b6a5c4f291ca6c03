//! Estimates with error bars, from one run by ancestry and from repeated runs.
//!
//! After resampling, walkers that share an initial ancestor are not independent, families are. The variance of
//! `Z_hat / Z` and of weighted means is therefore estimated from the families' weights (Chan and Lai, Ann. Statist. 41,
//! 2013; Lee and Whiteley, Biometrika 105, 2018): exact on average for multinomial resampling, conservative for
//! the other schemes. The bars say nothing about the self-interaction bias, and nothing at all once few families are left.

use crate::ranks::{Ranks, Shard, Topic};
use crate::resampling::Scheme;
use std::ops::Range;

/// A value with its standard error, where one is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// The value.
    pub value: f64,
    /// Its standard error.
    pub std_error: Option<f64>,
}

/// Everything known about a run at one iteration.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimates {
    /// Iterations done.
    pub iteration: u64,
    /// `log Z` from the weights; none for unweighted algorithms.
    pub log_z: Option<Measured>,
    /// With witnesses, whose `log Z` the above is: what the walkers that drive the parameters say, self-interaction included.
    pub driving_log_z: Option<f64>,
    /// With witnesses: ESS of the walkers that drive the parameters.
    pub driving_ess: Option<f64>,
    /// `log Z` in closed form, where there is one.
    pub log_z_exact: Option<f64>,
    /// Mean of `U` over the data, with the error of a finite sample.
    pub data_energy: Measured,
    /// Cross-entropy from the weights (eq. `estim:Z:H`).
    pub cross_entropy: Option<Measured>,
    /// Cross-entropy with the exact `log Z`.
    pub cross_entropy_exact: Option<f64>,
    /// KL divergence from the weights, where the truth is known (on the same data, so it may dip below zero).
    pub kl: Option<f64>,
    /// KL divergence with the exact `log Z`, where the truth is known.
    pub kl_exact: Option<f64>,
    /// Effective fraction of the walkers (eq. `resampling`).
    pub ess: f64,
    /// Entropy of the weights in nats.
    pub weight_entropy: f64,
    /// Acceptance of the last iteration's kernel steps: real for MALA, would-be for ULA.
    pub acceptance: Option<f64>,
    /// Time step of the kernel.
    pub step_size: f64,
    /// Norm of the direction over the trained parameters.
    pub gradient_norm: f64,
    /// Factor by which the trust region shortened the last parameter step.
    pub step_scale: f64,
    /// Resamplings so far.
    pub resamplings: u64,
    /// Initial walkers that still have descendants.
    pub distinct_ancestors: u64,
    /// Masses of a mixture's modes, by its parameters.
    pub masses: Option<Vec<f64>>,
    /// Means of a mixture's modes.
    pub means: Option<Vec<Vec<f64>>>,
    /// Masses of the modes among the weighted walkers.
    pub walker_masses: Option<Vec<Measured>>,
}

/// Weights of the families of walkers that share an ancestor: runs of walkers, as resampling keeps relatives side by side.
pub struct Families<'a> {
    ancestors: &'a [u64],
    weights: &'a [f64],
    /// Who has the other walkers of the ensemble, if anybody.
    others: Option<(&'a Ranks, &'a Shard)>,
}

/// What a chunk of walkers says of its families: those at its ends may go on in the chunks beside it.
#[derive(Clone, Copy)]
struct Runs {
    first: (u64, f64),
    last: (u64, f64),
    /// Sum of squares over the families in between.
    inner: f64,
    count: u64,
}

impl Runs {
    const NUMBERS: usize = 6;

    fn of(ancestors: &[u64], value: impl Fn(usize) -> f64) -> Self {
        let mut runs = Runs { first: (u64::MAX, 0.0), last: (u64::MAX, 0.0), inner: 0.0, count: 0 };
        for (i, &ancestor) in ancestors.iter().enumerate() {
            if runs.count == 0 || ancestor != runs.last.0 {
                match runs.count {
                    0 => {}
                    1 => runs.first = runs.last,
                    _ => runs.inner += runs.last.1 * runs.last.1,
                }
                (runs.last, runs.count) = ((ancestor, 0.0), runs.count + 1);
            }
            runs.last.1 += value(i);
        }
        if runs.count == 1 {
            runs.first = runs.last;
        }
        runs
    }

    fn numbers(&self) -> [f64; Self::NUMBERS] {
        let (first, last) = (self.first, self.last);
        [first.0 as f64, first.1, last.0 as f64, last.1, self.inner, self.count as f64]
    }

    fn from_numbers(&[a, b, c, d, inner, count]: &[f64; Self::NUMBERS]) -> Self {
        Runs { first: (a as u64, b), last: (c as u64, d), inner, count: count as u64 }
    }

    /// The chunk after this one.
    fn join(self, next: Runs) -> Runs {
        if self.count == 0 || next.count == 0 {
            return if self.count == 0 { next } else { self };
        }
        let same = self.last.0 == next.first.0;
        let (mut inner, mut first, mut last) = (self.inner + next.inner, self.first, next.last);
        let square = |run: (u64, f64)| run.1 * run.1;
        if same {
            let joined = (self.last.0, self.last.1 + next.first.1);
            match (self.count, next.count) {
                (1, 1) => (first, last) = (joined, joined),
                (1, _) => first = joined,
                (_, 1) => last = joined,
                _ => inner += square(joined),
            }
        } else {
            inner += if self.count > 1 { square(self.last) } else { 0.0 };
            inner += if next.count > 1 { square(next.first) } else { 0.0 };
        }
        Runs { first, last, inner, count: self.count + next.count - same as u64 }
    }

    fn sum_of_squares(&self) -> f64 {
        let ends = if self.count > 1 { self.first.1 * self.first.1 } else { 0.0 };
        if self.count == 0 { 0.0 } else { ends + self.inner + self.last.1 * self.last.1 }
    }
}

impl<'a> Families<'a> {
    /// From ancestors, ascending, and normalised weights.
    pub fn new(ancestors: &'a [u64], weights: &'a [f64]) -> Self {
        Families { ancestors, weights, others: None }
    }

    /// The same for this rank's part of an ensemble. All ranks ask the same questions.
    pub(crate) fn among(
        ancestors: &'a [u64],
        weights: &'a [f64],
        ranks: &'a Ranks,
        shard: &'a Shard,
    ) -> Self {
        Families { ancestors, weights, others: Some((ranks, shard)) }
    }

    /// Walkers in all.
    fn len(&self) -> usize {
        self.others.map_or(self.weights.len(), |(_, shard)| shard.total())
    }

    /// Numbers about all chunks, given how to find them for the walkers of one.
    fn of_chunks<const N: usize>(&self, numbers: impl Fn(Range<usize>) -> [f64; N]) -> Vec<[f64; N]> {
        let n = self.weights.len();
        let Some((ranks, shard)) = self.others else { return vec![numbers(0..n)] };
        let chunk = shard.chunk();
        let mine: Vec<f64> = (0..n).step_by(chunk).flat_map(|at| numbers(at..(at + chunk).min(n))).collect();
        ranks.of_chunks(Topic::Estimates, shard, N, &mine).as_chunks().0.to_vec()
    }

    fn runs(&self, f: impl Fn(usize) -> f64) -> Runs {
        let of = |rows: Range<usize>| {
            let first = rows.start;
            Runs::of(&self.ancestors[rows], |i| self.weights[first + i] * f(first + i)).numbers()
        };
        let none = Runs { first: (0, 0.0), last: (0, 0.0), inner: 0.0, count: 0 };
        self.of_chunks(of).iter().map(Runs::from_numbers).fold(none, Runs::join)
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.runs(|_| 0.0).count
    }

    /// `sum_e (sum_{i in e} p_i f_i)^2`.
    fn sum_of_squares(&self, f: impl Fn(usize) -> f64) -> f64 {
        self.runs(f).sum_of_squares()
    }

    /// Estimated variance of `Z_hat / Z`. Multinomial resampling merges families even when all weights are
    /// equal, which is no variance of `Z_hat` and is taken out (Lee and Whiteley, eq. 3).
    pub fn relative_variance(&self, scheme: Scheme, resamplings: u64) -> f64 {
        let n = self.len() as f64;
        let merging = if scheme == Scheme::Multinomial { resamplings as f64 } else { 0.0 };
        let correction = ((merging + 1.0) * (n / (n - 1.0)).ln()).exp();
        (1.0 - correction * (1.0 - self.sum_of_squares(|_| 1.0))).max(0.0)
    }

    /// Standard error of `log Z`. The number of chance mergers in `R` multinomial resamplings fluctuates, which moves the estimated
    /// variance by `sqrt(2 R / N) / N`; it is taken to be at least twice that, since a bar of length zero would be a lie.
    pub fn log_z_std_error(&self, scheme: Scheme, resamplings: u64) -> f64 {
        let n = self.len() as f64;
        let merging = if scheme == Scheme::Multinomial { resamplings as f64 } else { 0.0 };
        let floor = 2.0 * (2.0 * merging / n).sqrt() / n;
        self.relative_variance(scheme, resamplings).max(floor).sqrt()
    }

    /// Weighted mean of `f` with its standard error.
    pub fn mean(&self, f: impl Fn(usize) -> f64) -> Measured {
        let sum = |rows: Range<usize>| [rows.map(|i| self.weights[i] * f(i)).sum::<f64>()];
        let value = self.of_chunks(sum).iter().map(|[sum]| sum).sum::<f64>();
        Measured { value, std_error: Some(self.sum_of_squares(|i| f(i) - value).sqrt()) }
    }
}

/// Mean and its standard error over repeated runs; the error needs at least two.
pub fn over_runs(values: &[f64]) -> Measured {
    let n = values.len() as f64;
    let value = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - value).powi(2)).sum::<f64>() / (n - 1.0);
    Measured { value, std_error: (values.len() > 1).then(|| (variance / n).sqrt()) }
}

/// Adds independent standard errors.
pub fn add_errors(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    Some((a?.powi(2) + b?.powi(2)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_resampling_it_is_the_variance_of_the_mean_weight() {
        let w = [1.0, 2.0, 3.0, 6.0];
        let p: Vec<f64> = w.iter().map(|w| w / 12.0).collect();
        let families = Families::new(&[0, 1, 2, 3], &p);
        // Variance of the mean of w / mean(w): s^2 / (n mean^2), s^2 = 14/3, mean = 3.
        let expected = (14.0 / 3.0) / (4.0 * 9.0);
        assert!((families.relative_variance(Scheme::Systematic, 0) - expected).abs() < 1e-15);
        assert!((families.relative_variance(Scheme::Multinomial, 0) - expected).abs() < 1e-15);
    }

    #[test]
    fn one_family_has_no_information() {
        let families = Families::new(&[2, 2, 2], &[0.2, 0.3, 0.5]);
        assert_eq!(families.relative_variance(Scheme::Systematic, 5), 1.0);
    }

    /// Sums over families by a table, against those of runs that are cut anywhere.
    #[test]
    fn families_do_not_notice_how_the_walkers_are_cut() {
        let random = crate::Random::new(5);
        for case in 0..200u64 {
            let n = 1 + random.below(case, 0, crate::Purpose::User, 30) as usize;
            let mut ancestors: Vec<u64> =
                (0..n).map(|i| random.below(case, 1 + i as u64, crate::Purpose::User, 8)).collect();
            ancestors.sort();
            let values: Vec<f64> =
                (0..n).map(|i| random.uniform(case, 100 + i as u64, crate::Purpose::User)).collect();
            let mut table = [0.0; 8];
            ancestors.iter().zip(&values).for_each(|(a, v)| table[*a as usize] += v);
            let expected: f64 = table.iter().map(|s| s * s).sum();
            for chunk in 1..=n {
                let parts = (0..n).step_by(chunk).map(|at| at..(at + chunk).min(n));
                let runs = parts.map(|rows| Runs::of(&ancestors[rows.clone()], |i| values[rows.start + i]));
                let runs = runs.reduce(Runs::join).unwrap();
                assert!((runs.sum_of_squares() - expected).abs() < 1e-13 * expected, "{n} in {chunk}");
                assert_eq!(runs.count as usize, table.iter().filter(|s| **s > 0.0).count());
            }
        }
    }

    #[test]
    fn runs_give_mean_and_error() {
        let m = over_runs(&[1.0, 2.0, 3.0]);
        assert_eq!(m.value, 2.0);
        assert!((m.std_error.unwrap() - (1.0f64 / 3.0).sqrt()).abs() < 1e-15);
        assert_eq!(over_runs(&[4.0]).std_error, None);
    }
}
