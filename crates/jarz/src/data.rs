//! Data points in memory.

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
