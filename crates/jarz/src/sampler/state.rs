//! The ensemble as a whole, to be kept and to go on from.

use super::Sampler;
use crate::energy::Energy;
use crate::ranks::{Plain, Topic};
use crate::real::Real;
use crate::walkers::Walkers;
use crate::weights::WeightSums;

impl<T: Real, E: Energy<T>> Sampler<T, E> {
    /// All walkers on the first rank; the others give theirs, and keep a copy of these alone.
    pub(crate) fn all_walkers(&self) -> Walkers<T> {
        let w = &self.walkers;
        Walkers {
            dim: w.dim,
            positions: self.to_first(&w.positions, w.dim),
            gradients: self.to_first(&w.gradients, self.kept()),
            energies: self.to_first(&w.energies, 1),
            log_weights: self.to_first(&w.log_weights, 1),
            ancestors: self.to_first(&w.ancestors, 1),
            log_z: w.log_z,
            resamplings: w.resamplings,
        }
    }

    fn to_first<V: Plain>(&self, values: &[V], width: usize) -> Vec<V> {
        let first = self.ranks.is_first();
        let to = if first { Vec::new() } else { vec![(0, values.to_vec())] };
        let others = (1..self.ranks.size()).filter(|_| first);
        let from: Vec<_> = others.map(|r| (r, self.shard.rows_of(r).len() * width)).collect();
        let mut all = values.to_vec();
        for (_, part) in self.ranks.exchange(Topic::States, &to, &from) {
            all.extend(part);
        }
        all
    }

    /// Whether walkers and sums are of a sampler like this one.
    pub(crate) fn fits(&self, w: &Walkers<T>, sums: &WeightSums) -> bool {
        let n = self.count();
        let lengths = [w.dim, w.positions.len(), w.gradients.len()];
        lengths == [self.walkers.dim, n * self.walkers.dim, n * self.kept()]
            && [w.energies.len(), w.log_weights.len(), w.ancestors.len()] == [n; 3]
            && sums.gradient.len() == self.sums.gradient.len()
            && w.ancestors.is_sorted()
            && w.ancestors.last().is_some_and(|a| *a < n as u64)
    }

    /// Everything that defines the ensemble's future, besides the configuration; all walkers are given, whichever this rank has.
    pub(crate) fn restore(&mut self, walkers: Walkers<T>, sums: WeightSums) {
        let (rows, kept, dim) = (self.shard.rows(), self.kept(), walkers.dim);
        fn cut<V>(mut values: Vec<V>, rows: &std::ops::Range<usize>, width: usize) -> Vec<V> {
            values.truncate(rows.end * width);
            values.drain(..rows.start * width);
            values
        }
        self.walkers = Walkers {
            dim,
            positions: cut(walkers.positions, &rows, dim),
            gradients: cut(walkers.gradients, &rows, kept),
            energies: cut(walkers.energies, &rows, 1),
            log_weights: cut(walkers.log_weights, &rows, 1),
            ancestors: cut(walkers.ancestors, &rows, 1),
            ..walkers
        };
        self.sums = sums;
    }
}
