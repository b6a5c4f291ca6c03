//! The ensemble: positions, cached energies and gradients, log-weights and ancestry.
//!
//! Resampling keeps walkers in order: descendants stand where their ancestors stood, relatives side by side. Any order is as good as another for the
//! mean number of descendants, but systematic resampling gives every stretch of walkers `N` times its weight, rounded up or down, so that a family, of whatever
//! size, grows or shrinks by its weight and by less than one walker by chance. Ordered otherwise, each of its members would be rounded on its own,
//! and hundreds of resamplings would let families, and the masses of modes they stand in, drift until few are left. It also means that
//! ancestors ascend, that a family is a run of walkers, and that walkers which change places go to neighbours.

use crate::real::Real;
use std::ops::Range;

/// Walkers with everything that must move along when resampling copies one over another.
#[derive(Clone, Debug, PartialEq)]
pub struct Walkers<T> {
    /// Dimension.
    pub dim: usize,
    /// Row-major positions.
    pub positions: Vec<T>,
    /// What the kernel reuses from step to step, under the parameters the energies belong to: the gradients at the positions, or
    /// what the model's fused step keeps in their place. Empty if nothing is.
    pub gradients: Vec<T>,
    /// Energies at the positions.
    pub energies: Vec<f64>,
    /// `A_i` since the last resampling.
    pub log_weights: Vec<f64>,
    /// Which initial walker each descends from, ascending.
    pub ancestors: Vec<u64>,
    /// `log Z` at the last resampling (at the start: of the initial model), where it is known.
    pub log_z: Option<f64>,
    /// Resamplings so far.
    pub resamplings: u64,
}

impl<T: Real> Walkers<T> {
    /// Walkers at given positions with equal weights. `log_z` is that of the density they sample.
    pub fn new(dim: usize, positions: Vec<T>, log_z: Option<f64>) -> Self {
        Walkers::from(0, dim, positions, log_z)
    }

    /// The same for a part of the ensemble, whose first walker has a number other than zero.
    pub fn from(first: usize, dim: usize, positions: Vec<T>, log_z: Option<f64>) -> Self {
        let n = positions.len() / dim;
        Walkers {
            dim,
            positions,
            gradients: Vec::new(),
            energies: vec![0.0; n],
            log_weights: vec![0.0; n],
            ancestors: (first as u64..(first + n) as u64).collect(),
            log_z,
            resamplings: 0,
        }
    }

    /// Number of walkers.
    pub fn len(&self) -> usize {
        self.energies.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.energies.is_empty()
    }

    /// Dimension.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Row-major positions.
    pub fn positions(&self) -> &[T] {
        &self.positions
    }

    /// Energies at the positions.
    pub fn energies(&self) -> &[f64] {
        &self.energies
    }

    /// Log-weights since the last resampling.
    pub fn log_weights(&self) -> &[f64] {
        &self.log_weights
    }

    /// Which initial walker each descends from.
    pub fn ancestors(&self) -> &[u64] {
        &self.ancestors
    }

    /// Resamplings so far.
    pub fn resamplings(&self) -> u64 {
        self.resamplings
    }

    /// How many initial walkers still have descendants.
    pub fn distinct_ancestors(&self) -> usize {
        self.ancestors.chunk_by(|a, b| a == b).count()
    }

    /// Replaces the walkers at `places` by descendants of those with the given numbers, ascending.
    pub(crate) fn descend(&mut self, places: Range<usize>, ancestors: &[u64], caches: bool) {
        let kept = self.gradients.len() / self.len().max(1);
        descend(&mut self.positions, self.dim, places.clone(), ancestors);
        descend(&mut self.ancestors, 1, places.clone(), ancestors);
        if caches {
            descend(&mut self.energies, 1, places.clone(), ancestors);
            descend(&mut self.gradients, kept, places, ancestors);
        }
    }
}

/// Overwrites the rows at `places` by those of `ancestors`, ascending, in place: those that come from behind first, from the front, then the others from the
/// end. As the ancestors ascend, no row is overwritten before it is read.
pub(crate) fn descend<V: Copy>(rows: &mut [V], width: usize, places: Range<usize>, ancestors: &[u64]) {
    let mut copy = |from: u64, to: usize| {
        let from = from as usize;
        rows.copy_within(from * width..(from + 1) * width, to * width);
    };
    let pairs = || ancestors.iter().copied().zip(places.clone());
    pairs().filter(|(from, to)| *from > *to as u64).for_each(|(from, to)| copy(from, to));
    pairs().rev().filter(|(from, to)| *from < *to as u64).for_each(|(from, to)| copy(from, to));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Random};
    use crate::resampling::Scheme;
    use crate::weights::normalise;
    use proptest::prelude::*;

    const N: usize = 1000;

    /// Descendants of each initial walker, or the weight of each family.
    fn by_family(walkers: &Walkers<f64>, of: impl Fn(usize) -> f64) -> Vec<f64> {
        let mut sums = vec![0.0; N];
        walkers.ancestors.iter().enumerate().for_each(|(i, &a)| sums[a as usize] += of(i));
        sums
    }

    /// Whatever the weights, a family of any size gets `N` times its weight, rounded up or down.
    #[test]
    fn families_are_rounded_as_a_whole() {
        let random = Random::new(3);
        let mut walkers = Walkers::new(1, (0..N).map(|i| i as f64).collect(), None);
        for step in 0..200 {
            for (i, a) in walkers.log_weights.iter_mut().enumerate() {
                *a = random.uniform(step, i as u64, Purpose::User);
            }
            let p = normalise(&walkers.log_weights);
            let weights = by_family(&walkers, |i| p[i]);
            let ancestors = Scheme::Systematic.ancestors(&p, N, &random, step, Purpose::Resample);
            let copies = ancestors.windows(2).filter(|pair| pair[0] == pair[1]).count();
            assert!(copies > 10, "the weights must be uneven enough to matter");
            walkers.descend(0..N, &ancestors, true);
            let counts = by_family(&walkers, |_| 1.0);
            for (count, weight) in counts.iter().zip(&weights) {
                assert!((count - N as f64 * weight).abs() < 1.0 + 1e-9, "{count} of {}", N as f64 * weight);
            }
            assert!(walkers.ancestors.is_sorted(), "families stand side by side");
            // Everything of a walker has moved along.
            assert!(walkers.positions.iter().zip(&walkers.ancestors).all(|(x, a)| *x == *a as f64));
        }
    }

    proptest! {
        /// Whatever part of the rows is replaced, by whatever ascending ancestors.
        #[test]
        fn rows_descend_in_place(
            (rows, from, mut ancestors) in (1usize..60).prop_flat_map(|n| {
                (0..=n, 0..=n).prop_flat_map(move |(a, b)| {
                    (Just(n), Just(a.min(b)), prop::collection::vec(0..n as u64, a.abs_diff(b)))
                })
            }),
            width in 1usize..4,
        ) {
            ancestors.sort();
            let old: Vec<usize> = (0..rows * width).collect();
            let (mut new, places) = (old.clone(), from..from + ancestors.len());
            descend(&mut new, width, places.clone(), &ancestors);
            for (i, row) in new.chunks(width).enumerate() {
                let expected = if places.contains(&i) { ancestors[i - from] as usize } else { i };
                prop_assert_eq!(row, &old[expected * width..(expected + 1) * width]);
            }
        }
    }
}
