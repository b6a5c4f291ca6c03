//! The ensemble: positions, cached energies and gradients, log-weights and ancestry.
//!
//! Walkers stand in [line](Walkers::line) for resampling, relatives side by side. Any line is as good as another for the mean number of
//! descendants, but systematic resampling gives every stretch of the line `N` times its weight, rounded up or down, so that a family, of whatever
//! size, grows or shrinks by its weight and by less than one walker by chance. Lined up otherwise, each of its members would be rounded on its own,
//! and hundreds of resamplings would let families, and the masses of modes they stand in, drift until few are left.

use crate::real::Real;
use crate::resampling::replacements;
use crate::weights::normalise;

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
    /// Which initial walker each descends from.
    pub ancestors: Vec<u64>,
    /// The walkers in line for resampling: every number once, relatives side by side.
    pub line: Vec<u64>,
    /// `log Z` at the last resampling (at the start: of the initial model), where it is known.
    pub log_z: Option<f64>,
    /// Resamplings so far.
    pub resamplings: u64,
}

impl<T: Real> Walkers<T> {
    /// Walkers at given positions with equal weights. `log_z` is that of the density they sample.
    pub fn new(dim: usize, positions: Vec<T>, log_z: Option<f64>) -> Self {
        let n = positions.len() / dim;
        Walkers {
            dim,
            positions,
            gradients: Vec::new(),
            energies: vec![0.0; n],
            log_weights: vec![0.0; n],
            ancestors: (0..n as u64).collect(),
            line: (0..n as u64).collect(),
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
        let mut seen = vec![false; self.ancestors.iter().max().map_or(0, |&m| m as usize + 1)];
        self.ancestors.iter().filter(|&&a| !std::mem::replace(&mut seen[a as usize], true)).count()
    }

    /// Normalised weights of the walkers in line.
    pub fn weights_in_line(&self) -> Vec<f64> {
        let p = normalise(&self.log_weights);
        self.line.iter().map(|&i| p[i as usize]).collect()
    }

    /// Whether every walker stands in line once.
    pub fn is_lined_up(&self) -> bool {
        let mut seen = vec![false; self.len()];
        let fresh = |&i: &u64| seen.get_mut(i as usize).is_some_and(|s| !std::mem::replace(s, true));
        self.line.len() == self.len() && self.line.iter().all(fresh)
    }

    /// Replaces the walkers by descendants of those at the given places in line, ascending. Survivors stay where they are in memory; further
    /// descendants overwrite the dead there, and follow their siblings in line. Returns the copies made, `(from, to)`.
    pub fn descend(&mut self, ancestors: &[u64], caches: bool) -> Vec<(u64, u64)> {
        let mut pairs = replacements(ancestors);
        for (from, to) in &mut pairs {
            (*from, *to) = (self.line[*from as usize], self.line[*to as usize]);
        }
        self.copy(&pairs, caches);
        let mut copies = pairs.iter().map(|pair| pair.1);
        let mut last = None;
        let next = |&a: &u64| match last.replace(a) == Some(a) {
            true => copies.next(),
            false => Some(self.line[a as usize]),
        };
        self.line = ancestors.iter().filter_map(next).collect();
        pairs
    }

    /// Copies walkers over others: `(from, to)` pairs whose targets are no sources.
    fn copy(&mut self, pairs: &[(u64, u64)], caches: bool) {
        let (d, kept) = (self.dim, self.gradients.len() / self.len().max(1));
        for &(from, to) in pairs {
            let (from, to) = (from as usize, to as usize);
            self.positions.copy_within(from * d..(from + 1) * d, to * d);
            self.ancestors[to] = self.ancestors[from];
            if caches {
                self.energies[to] = self.energies[from];
                self.gradients.copy_within(from * kept..(from + 1) * kept, to * kept);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Random};
    use crate::resampling::Scheme;

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
            let line = walkers.weights_in_line();
            let ancestors = Scheme::Systematic.ancestors(&line, N, &random, step, Purpose::Resample);
            let copies = walkers.descend(&ancestors, true);
            assert!(copies.len() > 10, "the weights must be uneven enough to matter");
            let counts = by_family(&walkers, |_| 1.0);
            for (count, weight) in counts.iter().zip(&weights) {
                assert!((count - N as f64 * weight).abs() < 1.0 + 1e-9, "{count} of {}", N as f64 * weight);
            }
            assert!(walkers.is_lined_up());
            let families: Vec<u64> = walkers.line.iter().map(|&i| walkers.ancestors[i as usize]).collect();
            assert!(families.is_sorted(), "families stand side by side");
            // Everything of a walker has moved along.
            assert!(walkers.positions.iter().zip(&walkers.ancestors).all(|(x, a)| *x == *a as f64));
        }
    }

    #[test]
    fn a_line_has_everybody_once() {
        let mut walkers = Walkers::new(1, vec![0.0; 3], None);
        for (line, fits) in
            [(vec![2, 0, 1], true), (vec![2, 0, 2], false), (vec![0, 1], false), (vec![0, 1, 3], false)]
        {
            walkers.line = line;
            assert_eq!(walkers.is_lined_up(), fits);
        }
    }
}
