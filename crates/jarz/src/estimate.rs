//! Estimates with error bars, from one run by ancestry and from repeated runs.
//!
//! After resampling, walkers that share an initial ancestor are not independent, families are. The variance of
//! `Z_hat / Z` and of weighted means is therefore estimated from the families' weights (Chan and Lai, Ann. Statist. 41,
//! 2013; Lee and Whiteley, Biometrika 105, 2018): exact on average for multinomial resampling, conservative for
//! the other schemes. The bars say nothing about the self-interaction bias, and nothing at all once few families are left.

use crate::resampling::Scheme;

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

/// Weights of the families of walkers that share an ancestor.
pub struct Families<'a> {
    ancestors: &'a [u64],
    weights: &'a [f64],
    count: usize,
}

impl<'a> Families<'a> {
    /// From ancestors and normalised weights.
    pub fn new(ancestors: &'a [u64], weights: &'a [f64]) -> Self {
        let count = ancestors.iter().max().map_or(0, |&m| m as usize + 1);
        Families { ancestors, weights, count }
    }

    /// `sum_e (sum_{i in e} p_i f_i)^2`.
    fn sum_of_squares(&self, f: impl Fn(usize) -> f64) -> f64 {
        let mut sums = vec![0.0; self.count];
        for (i, (&e, p)) in self.ancestors.iter().zip(self.weights).enumerate() {
            sums[e as usize] += p * f(i);
        }
        sums.iter().map(|s| s * s).sum()
    }

    /// Estimated variance of `Z_hat / Z`. Multinomial resampling merges families even when all weights are
    /// equal, which is no variance of `Z_hat` and is taken out (Lee and Whiteley, eq. 3).
    pub fn relative_variance(&self, scheme: Scheme, resamplings: u64) -> f64 {
        let n = self.weights.len() as f64;
        let merging = if scheme == Scheme::Multinomial { resamplings as f64 } else { 0.0 };
        let correction = ((merging + 1.0) * (n / (n - 1.0)).ln()).exp();
        (1.0 - correction * (1.0 - self.sum_of_squares(|_| 1.0))).max(0.0)
    }

    /// Standard error of `log Z`. The number of chance mergers in `R` multinomial resamplings fluctuates, which moves the estimated
    /// variance by `sqrt(2 R / N) / N`; it is taken to be at least twice that, since a bar of length zero would be a lie.
    pub fn log_z_std_error(&self, scheme: Scheme, resamplings: u64) -> f64 {
        let n = self.weights.len() as f64;
        let merging = if scheme == Scheme::Multinomial { resamplings as f64 } else { 0.0 };
        let floor = 2.0 * (2.0 * merging / n).sqrt() / n;
        self.relative_variance(scheme, resamplings).max(floor).sqrt()
    }

    /// Weighted mean of `f` with its standard error.
    pub fn mean(&self, f: impl Fn(usize) -> f64) -> Measured {
        let value = self.weights.iter().enumerate().map(|(i, p)| p * f(i)).sum::<f64>();
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

    #[test]
    fn runs_give_mean_and_error() {
        let m = over_runs(&[1.0, 2.0, 3.0]);
        assert_eq!(m.value, 2.0);
        assert!((m.std_error.unwrap() - (1.0f64 / 3.0).sqrt()).abs() < 1e-15);
        assert_eq!(over_runs(&[4.0]).std_error, None);
    }
}
