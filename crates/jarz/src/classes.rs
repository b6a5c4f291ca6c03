//! Kinds of walkers that somebody else can tell apart, and their masses.

use crate::estimate::{Families, Measured};
use crate::walkers::Walkers;
use crate::weights::normalise;

/// Kinds of walkers.
#[derive(Clone, Copy)]
pub struct Classes<'a, T> {
    /// How many.
    pub count: usize,
    /// A row of `count` probabilities for each of the positions.
    pub probabilities: &'a dyn Fn(&[T]) -> Vec<f64>,
}

impl<T> Classes<'_, T> {
    /// Masses of the kinds among weighted walkers, with standard errors by ancestry.
    pub fn masses(&self, walkers: &Walkers<T>) -> Vec<Measured> {
        let weights = normalise(&walkers.log_weights);
        self.masses_in(&walkers.positions, &Families::new(&walkers.ancestors, &weights))
    }

    pub(crate) fn masses_in(&self, positions: &[T], families: &Families<'_>) -> Vec<Measured> {
        let rows = (self.probabilities)(positions);
        (0..self.count).map(|k| families.mean(|i| rows[i * self.count + k])).collect()
    }
}
