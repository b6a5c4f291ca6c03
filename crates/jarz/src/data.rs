//! Data points in memory.

use crate::energy::{Energy, Stratification};
use crate::random::{Purpose, Random};
use crate::real::Real;

/// `n` points in `dim` dimensions, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset<T> {
    dim: usize,
    values: Vec<T>,
}

impl<T: Real> Dataset<T> {
    /// From row-major values; `None` if there are none, or they do not fill whole rows, or one is not finite.
    pub fn new(dim: usize, values: Vec<T>) -> Option<Self> {
        let whole = dim > 0 && !values.is_empty() && values.len().is_multiple_of(dim);
        (whole && values.iter().all(|v| v.is_finite())).then_some(Dataset { dim, values })
    }

    /// From double precision.
    pub fn from_f64(dim: usize, values: &[f64]) -> Option<Self> {
        Dataset::new(dim, values.iter().map(|&v| T::from_f64(v)).collect())
    }

    /// `n` independent samples of a model that can be sampled exactly.
    pub fn sample(model: &impl Energy<T>, n: usize, seed: u64) -> Option<Self> {
        let mut values = vec![T::ZERO; n * model.dim()];
        // Other numbers than the initial walkers of the same seed.
        let words = Random::new(seed).words(0, 0, Purpose::Data, 0);
        let random = Random::new(words[0] as u64 | (words[1] as u64) << 32);
        model.exact()?.sample(0..n as u64, n as u64, Stratification::Independent, &random, &mut values);
        Dataset::new(model.dim(), values)
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        self.values.len() / self.dim
    }

    /// Never: a data set has at least one point.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Dimension.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// All values.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// Point `i`.
    pub fn row(&self, i: usize) -> &[T] {
        &self.values[i * self.dim..(i + 1) * self.dim]
    }
}
