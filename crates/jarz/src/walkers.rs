//! The ensemble: positions, cached energies and gradients, log-weights and ancestry.

use crate::real::Real;

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

    /// Copies walkers over others: `(from, to)` pairs whose targets are no sources.
    pub(crate) fn copy(&mut self, pairs: &[(u64, u64)], caches: bool) {
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
