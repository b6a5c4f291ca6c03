//! Data points in memory.

use crate::energy::{Energy, Stratification};
use crate::parallel::Layout;
use crate::random::{Purpose, Random};
use crate::ranks::{Ranks, Shard};
use crate::real::Real;
use std::ops::Range;

/// `n` points in `dim` dimensions, row-major. Among several ranks, each may hold a part of them only.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset<T> {
    dim: usize,
    values: Vec<T>,
    /// Points of all ranks, and the number of the first that is here.
    len: usize,
    first: usize,
}

impl<T: Real> Dataset<T> {
    /// From row-major values; `None` if there are none, or they do not fill whole rows, or one is not finite.
    pub fn new(dim: usize, values: Vec<T>) -> Option<Self> {
        let whole = dim > 0 && !values.is_empty() && values.len().is_multiple_of(dim);
        let len = values.len() / dim.max(1);
        (whole && values.iter().all(|v| v.is_finite())).then_some(Dataset { dim, values, len, first: 0 })
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

    /// How `n` points are shared out.
    pub fn shard(energy: &impl Energy<T>, n: usize, ranks: &Ranks) -> Shard {
        Shard::new(Layout::of_points(energy, n), n, ranks)
    }

    /// Forgets all points but those with the given numbers, which they keep.
    pub(crate) fn keep(self, rows: Range<usize>) -> Self {
        let values = self.rows(rows.clone()).to_vec();
        Dataset { values, first: rows.start, ..self }
    }

    /// Number of points, wherever they are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether all of them are here.
    pub(crate) fn is_whole(&self) -> bool {
        self.values.len() == self.len * self.dim
    }

    /// Points that are here.
    pub(crate) fn rows(&self, rows: Range<usize>) -> &[T] {
        &self.values[(rows.start - self.first) * self.dim..(rows.end - self.first) * self.dim]
    }

    /// Never: a data set has at least one point.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Dimension.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// All values that are here.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// Point `i`, which must be here.
    pub fn row(&self, i: usize) -> &[T] {
        self.rows(i..i + 1)
    }
}
