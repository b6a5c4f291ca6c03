//! Resampling: of one ensemble, wherever its walkers are.
//!
//! Descendants keep the order of their ancestors, so those of a rank's walkers are a stretch of the new ensemble. Where it reaches beyond
//! the rank's own places, walkers move on to neighbours; nothing else is sent of them.

use super::Sampler;
use super::moves::Mover;
use crate::energy::Energy;
use crate::error::Error;
use crate::random::Purpose;
use crate::ranks::{Topic, overlap};
use crate::real::Real;
use crate::resampling::draw::Uniforms;
use crate::resampling::share::{Share, with_edges};
use std::ops::Range;

/// What goes with a moving walker besides its position and what is kept of it: energy and ancestor.
const BESIDES: usize = 2;

/// Places in the new ensemble, with a rank that they have to do with.
type Places = Vec<(usize, Range<usize>)>;

impl<T: Real, E: Energy<T>> Sampler<T, E> {
    /// Draws new walkers in proportion to the weights, which become equal; `log Z` keeps what they had to say.
    pub fn resample(&mut self, energy: &E, iteration: u64) -> Result<(), Error> {
        let p = self.sums.normalise(&self.walkers.log_weights);
        let p = with_edges(p, &self.ranks, &self.shard);
        let share = Share::of_rank(&p, &self.ranks, &self.shard);
        let (scheme, n, random) = (self.scheme, self.count(), self.random);
        let draws = &mut self.draws;
        self.workers.install(|parallel| {
            let (random, purpose) = (&random, Purpose::Resample);
            scheme.draw(&share, n, &Uniforms { random, step: iteration, purpose, parallel }, draws)
        });
        #[cfg(test)]
        let caches = !self.faults.stale_caches;
        #[cfg(not(test))]
        let caches = true;
        let draws = std::mem::take(&mut self.draws);
        let (ancestors, first) = draws.drawn(&share);
        self.descend(ancestors, first, caches);
        self.draws = draws;
        self.walkers.log_z = self.log_z();
        self.walkers.log_weights.fill(0.0);
        self.walkers.resamplings += 1;
        self.refresh(energy)
    }

    /// Puts the descendants in their places: `ancestors` are those of the walkers from place `first` on, and may begin and end with walkers of
    /// neighbours.
    fn descend(&mut self, ancestors: &[u64], first: usize, caches: bool) {
        let rows = self.shard.rows();
        let begin = ancestors.partition_point(|&a| (a as usize) < rows.start);
        let end = ancestors.partition_point(|&a| (a as usize) < rows.end);
        let stretch = first + begin..first + end;
        let here: Vec<u64> = ancestors[begin..end].iter().map(|a| a - rows.start as u64).collect();
        let [to, from] = self.moves(&stretch);
        let leaving = |places: &Range<usize>| &here[places.start - stretch.start..places.end - stretch.start];
        let positions: Vec<_> = to.iter().map(|(r, places)| (*r, self.pack(leaving(places)))).collect();
        let others: Vec<_> = to.iter().map(|(r, places)| (*r, self.pack_rest(leaving(places)))).collect();
        let stay = overlap(&stretch, &rows);
        let (dim, kept) = (self.walkers.dim, self.kept());
        self.walkers.descend(stay.start - rows.start..stay.end - rows.start, leaving(&stay), caches);
        if self.ranks.is_alone() {
            return;
        }
        let lengths =
            |per: usize| from.iter().map(|(r, places)| (*r, places.len() * per)).collect::<Vec<_>>();
        let positions = self.ranks.exchange(Topic::Walkers, &positions, &lengths(dim + kept));
        let others = self.ranks.exchange(Topic::Walkers, &others, &lengths(BESIDES));
        for ((rank, rows_in), (_, rest)) in positions.iter().zip(&others) {
            let Some((_, places)) = from.iter().find(|(r, _)| r == rank) else { continue };
            let walkers = rows_in.chunks_exact(dim + kept).zip(rest.as_chunks::<BESIDES>().0);
            for (place, (row, &[energy, ancestor])) in places.clone().zip(walkers) {
                let i = place - rows.start;
                let w = &mut self.walkers;
                w.positions[i * dim..(i + 1) * dim].copy_from_slice(&row[..dim]);
                w.gradients[i * kept..(i + 1) * kept].copy_from_slice(&row[dim..]);
                (w.energies[i], w.ancestors[i]) = (f64::from_bits(energy), ancestor);
            }
        }
    }

    /// Which new places this rank's descendants go to on other ranks, and which of its own are filled by others, given the stretch of places of its
    /// descendants.
    fn moves(&self, stretch: &Range<usize>) -> [Places; 2] {
        if self.ranks.is_alone() {
            return [Vec::new(), Vec::new()];
        }
        let (me, rows) = (self.ranks.rank(), self.shard.rows());
        let all = self.ranks.gather_equal(Topic::Draws, &[stretch.start as u64, stretch.end as u64]);
        let others = || (0..self.ranks.size()).filter(|r| *r != me);
        let to = others().map(|r| (r, overlap(stretch, &self.shard.rows_of(r))));
        let from = others().map(|r| (r, overlap(&rows, &(all[2 * r] as usize..all[2 * r + 1] as usize))));
        let some = |(_, places): &(usize, Range<usize>)| !places.is_empty();
        [to.filter(some).collect(), from.filter(some).collect()]
    }

    /// Positions of walkers, and what is kept of them.
    fn pack(&self, walkers: &[u64]) -> Vec<T> {
        let (w, dim, kept) = (&self.walkers, self.walkers.dim, self.kept());
        let row = |i: usize| {
            let (x, g) = (&w.positions[i * dim..(i + 1) * dim], &w.gradients[i * kept..(i + 1) * kept]);
            x.iter().chain(g).copied()
        };
        walkers.iter().flat_map(|&i| row(i as usize)).collect()
    }

    /// Their energies and ancestors.
    fn pack_rest(&self, walkers: &[u64]) -> Vec<u64> {
        let w = &self.walkers;
        walkers.iter().flat_map(|&i| [w.energies[i as usize].to_bits(), w.ancestors[i as usize]]).collect()
    }

    /// Sums of the ensemble as it stands.
    fn refresh(&mut self, energy: &E) -> Result<(), Error> {
        let mover = Mover::idle(self.random, self.kernel, 0);
        let (layout, dim) = (self.layout, self.walkers.dim);
        let kept = self.kept();
        self.each_chunk(|fused, chunk, scratch| {
            for at in (0..chunk.a.len()).step_by(layout.block) {
                let end = (at + layout.block).min(chunk.a.len());
                let (x, a) = (&chunk.x[at * dim..end * dim], &chunk.a[at..end]);
                let sums = &mut chunk.sums.weights;
                if let Some(fused) = fused {
                    let g = &chunk.g[at * kept..end * kept];
                    mover.accumulate_fused(fused, energy, x, g, a, sums, scratch);
                } else {
                    scratch.fit(a.len(), dim);
                    if !sums.gradient.is_empty() {
                        energy.energy(x, &mut scratch.u[..a.len()], &mut scratch.energy);
                    }
                    mover.accumulate(energy, x, a, sums, scratch);
                }
            }
        });
        self.collect(0).map(|_| ())
    }
}
