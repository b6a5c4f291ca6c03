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
        let rows = (self.probabilities)(&walkers.positions);
        let weights = normalise(&walkers.log_weights);
        let families = Families::new(&walkers.ancestors, &weights);
        (0..self.count).map(|k| families.mean(|i| rows[i * self.count + k])).collect()
    }
}
