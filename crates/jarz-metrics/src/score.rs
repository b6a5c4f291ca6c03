//! The score of a classifier: how sure it is of every sample, and how many classes it sees in all.

use crate::error::MetricsError;
use crate::features::Features;
use serde::Serialize;

/// `exp` of the mean of `KL(p(class | sample) || p(class))`: 1 at worst, the number of classes at best.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Score {
    /// Over all samples.
    pub score: f64,
    /// Mean over parts of the samples, as it is usually reported.
    pub mean_of_splits: f64,
    /// Standard deviation over these parts.
    pub deviation_of_splits: f64,
    /// How many parts.
    pub splits: usize,
}

/// The score from the classifier's logits; `splits` parts of consecutive samples give a scatter.
pub fn classifier_score(logits: &Features, splits: usize) -> Result<Score, MetricsError> {
    let n = logits.len();
    if splits < 2 || n < splits {
        return Err(MetricsError::TooFew { what: "a score", found: n, needed: splits.max(2) });
    }
    let score = part(logits, 0, n);
    let parts: Vec<f64> = (0..splits).map(|s| part(logits, s * n / splits, (s + 1) * n / splits)).collect();
    let mean = parts.iter().sum::<f64>() / splits as f64;
    let variance = parts.iter().map(|p| (p - mean) * (p - mean)).sum::<f64>() / splits as f64;
    Ok(Score { score, mean_of_splits: mean, deviation_of_splits: variance.sqrt(), splits })
}

/// Of the samples from `first` to before `last`, with their weights.
fn part(logits: &Features, first: usize, last: usize) -> f64 {
    let mut marginal = vec![0.0; logits.dim()];
    let (mut entropy, mut total) = (0.0, 0.0);
    for i in first..last {
        let (row, w) = (logits.row(i), logits.weights()[i]);
        let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let log_sum = top + row.iter().map(|l| (l - top).exp()).sum::<f64>().ln();
        for (m, l) in marginal.iter_mut().zip(row) {
            let log_p = l - log_sum;
            *m += w * log_p.exp();
            entropy += w * log_p.exp() * log_p;
        }
        total += w;
    }
    let plogp = |m: &f64| if *m > 0.0 { m / total * (m / total).ln() } else { 0.0 };
    (entropy / total - marginal.iter().map(plogp).sum::<f64>()).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A classifier that is sure of one of `k` classes.
    fn sure(classes: &[usize], k: usize) -> Features {
        let row = |c: &usize| (0..k).map(|j| if j == *c { 200.0 } else { 0.0 }).collect::<Vec<f64>>();
        Features::new(k, classes.iter().flat_map(row).collect()).unwrap()
    }

    #[test]
    fn sure_of_all_classes_gives_their_number_and_never_sure_gives_one() {
        let all: Vec<usize> = (0..1000).map(|i| i % 5).collect();
        let found = classifier_score(&sure(&all, 8), 10).unwrap();
        assert!((found.score - 5.0).abs() < 1e-9 && (found.mean_of_splits - 5.0).abs() < 1e-9);
        assert!(found.deviation_of_splits < 1e-9);
        let unsure = Features::new(8, vec![0.3; 800]).unwrap();
        assert!((classifier_score(&unsure, 10).unwrap().score - 1.0).abs() < 1e-12);
    }

    /// Two classes of masses p and 1 - p: the exponential of their entropy.
    #[test]
    fn weights_count() {
        let classes: Vec<usize> = (0..100).map(|i| i % 2).collect();
        let logs: Vec<f64> = classes.iter().map(|c| if *c == 0 { 3f64.ln() } else { 0.0 }).collect();
        let found = classifier_score(&sure(&classes, 2).with_log_weights(&logs).unwrap(), 5).unwrap();
        let expected = (-(0.75 * 0.75f64.ln() + 0.25 * 0.25f64.ln())).exp();
        assert!((found.score - expected).abs() < 1e-9, "{} {expected}", found.score);
        assert!(classifier_score(&sure(&[0, 1], 2), 10).is_err());
    }
}
