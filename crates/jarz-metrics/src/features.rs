//! Features of samples, with weights, and their first two moments.

use crate::error::MetricsError;
use faer::Mat;

/// Rows of features with weights that add up to one.
#[derive(Clone, Debug, PartialEq)]
pub struct Features {
    dim: usize,
    values: Vec<f64>,
    weights: Vec<f64>,
}

/// Mean and covariance.
#[derive(Clone, Debug, PartialEq)]
pub struct Moments {
    /// The mean.
    pub mean: Vec<f64>,
    /// The covariance.
    pub covariance: Mat<f64>,
    /// Samples they were estimated from; none if they are exact.
    pub samples: Option<usize>,
}

impl Features {
    /// Row-major features of equal weight.
    pub fn new(dim: usize, values: Vec<f64>) -> Result<Self, MetricsError> {
        if dim == 0 || values.is_empty() || !values.len().is_multiple_of(dim) {
            let text = format!("{} numbers are not whole rows of {dim} features", values.len());
            return Err(MetricsError::Features(text));
        }
        if let Some(at) = values.iter().position(|v| !v.is_finite()) {
            let (row, column) = (at / dim + 1, at % dim + 1);
            return Err(MetricsError::Features(format!(
                "feature {column} of sample {row} is {}",
                values[at]
            )));
        }
        let n = values.len() / dim;
        Ok(Features { dim, values, weights: vec![1.0 / n as f64; n] })
    }

    /// With logarithms of weights, up to a constant.
    pub fn with_log_weights(mut self, log_weights: &[f64]) -> Result<Self, MetricsError> {
        if log_weights.len() != self.len() {
            let text = format!("there are {} log-weights for {} samples", log_weights.len(), self.len());
            return Err(MetricsError::Features(text));
        }
        let usable = |a: &f64| *a < f64::INFINITY; // Not a number is not, either.
        if !log_weights.iter().all(usable) || log_weights.iter().all(|a| *a == f64::NEG_INFINITY) {
            return Err(MetricsError::Features("log-weights must be numbers, not all of them -inf".into()));
        }
        self.weights = jarz::weights::normalise(log_weights);
        Ok(self)
    }

    /// How many samples.
    pub fn len(&self) -> usize {
        self.weights.len()
    }

    /// Never: there is at least one.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Features per sample.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The weights, which add up to one.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Features of sample `i`.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.dim..(i + 1) * self.dim]
    }

    /// How many samples of equal weight these are worth: `1 / sum w^2`.
    pub fn effective(&self) -> f64 {
        1.0 / self.weights.iter().map(|w| w * w).sum::<f64>()
    }

    /// Weighted mean, and weighted covariance with the denominator `1 - sum w^2`, which for equal weights is the usual `n - 1`.
    pub fn moments(&self) -> Result<Moments, MetricsError> {
        let (n, d) = (self.len(), self.dim);
        let left = 1.0 - 1.0 / self.effective();
        if n < 2 || left < 1e-12 {
            let found = if n < 2 { n } else { 1 };
            return Err(MetricsError::TooFew { what: "a covariance", found, needed: 2 });
        }
        let mut mean = vec![0.0; d];
        for (i, w) in self.weights.iter().enumerate() {
            mean.iter_mut().zip(self.row(i)).for_each(|(m, v)| *m += w * v);
        }
        let mut covariance = Mat::<f64>::zeros(d, d);
        // In pieces, so that a large set is not copied as a whole.
        for first in (0..n).step_by(1024) {
            let count = 1024.min(n - first);
            let centred = Mat::from_fn(d, count, |j, i| {
                self.weights[first + i].sqrt() * (self.values[(first + i) * d + j] - mean[j])
            });
            covariance += &centred * centred.transpose();
        }
        covariance *= faer::Scale(1.0 / left);
        Ok(Moments { mean, covariance, samples: Some(n) })
    }
}
