//! What happens to one chunk of walkers whose model has a fused step.

use super::moves::{Mover, Scratch};
use super::{Chunk, ChunkSums, SelfInteraction, Weighting};
use crate::energy::{Energy, Fused, FusedBlock, FusedRows, FusedStep};
use crate::random::{Purpose, Subset};
use crate::real::{Real, WalkerIds};
use crate::weights::WeightSums;

impl<T: Real> Mover<'_, T> {
    /// Algorithm 1 with the model's fused step.
    pub fn full_fused<E: Energy<T>>(
        &self,
        fused: &Fused<T, E>,
        from: &E,
        to: &E,
        chunk: &mut Chunk<'_, T>,
        block: usize,
        scratch: &mut Scratch<T, E::Workspace>,
    ) {
        let (dim, walkers) = (to.dim(), chunk.u.len());
        for at in (0..walkers).step_by(block) {
            let end = (at + block).min(walkers);
            let first = (chunk.first + at) as u64;
            let ids = WalkerIds::From(first);
            let x = &mut chunk.x[at * dim..end * dim];
            let kept = &mut chunk.g[at * fused.kept..end * fused.kept];
            let (u, a) = (&mut chunk.u[at..end], &mut chunk.a[at..end]);
            self.drift_weights(from, x, a, scratch);
            let mut old = from;
            if let Some(data) = self.advance.restart {
                self.restart(data, ids, x);
                (fused.evaluate)(to, x, u, kept, &mut scratch.energy);
                old = to;
            }
            for s in 0..self.kernel.steps {
                let own = self.advance.correction.filter(|_| s == 0);
                let rows = FusedRows::All { first };
                let moving = FusedBlock { rows, x: &mut *x, kept: &mut *kept, u: &mut *u, a: &mut *a };
                self.fused_step(fused, old, to, s, own, moving, chunk.sums, scratch);
                old = to;
            }
            self.accumulate_fused(fused, to, x, kept, a, &mut chunk.sums.weights, scratch);
        }
    }

    /// Algorithm 2 with the model's fused step.
    pub fn mini_batch_fused<E: Energy<T>>(
        &self,
        fused: &Fused<T, E>,
        from: &E,
        to: &E,
        chunk: &mut Chunk<'_, T>,
        subset: &Subset,
        block: usize,
        scratch: &mut Scratch<T, E::Workspace>,
    ) {
        let (dim, walkers) = (to.dim(), chunk.u.len());
        for at in (0..walkers).step_by(block) {
            let end = (at + block).min(walkers);
            let (x, a) = (&chunk.x[at * dim..end * dim], &mut chunk.a[at..end]);
            if let Some(own) = self.advance.correction {
                let kept = &chunk.g[at * fused.kept..end * fused.kept];
                (fused.leave_own_out)(from, own, self.log_sum, x, kept, a, &mut scratch.energy);
            }
            self.drift_weights(from, x, a, scratch);
        }
        let members = subset.members();
        let first = members.partition_point(|&m| (m as usize) < chunk.first);
        let last = members.partition_point(|&m| (m as usize) < chunk.first + walkers);
        let (ids, first) = (&members[first..last], chunk.first as u64);
        let mut old = from;
        if let Some(data) = self.advance.restart {
            for &id in ids {
                let i = (id - first) as usize;
                let (x, kept) = (
                    &mut chunk.x[i * dim..(i + 1) * dim],
                    &mut chunk.g[i * fused.kept..(i + 1) * fused.kept],
                );
                self.restart(data, WalkerIds::From(id), x);
                (fused.evaluate)(to, x, &mut chunk.u[i..i + 1], kept, &mut scratch.energy);
            }
            old = to;
        }
        for s in 0..self.kernel.steps {
            let rows = FusedRows::Listed { ids, first };
            let moving = FusedBlock {
                rows,
                x: &mut *chunk.x,
                kept: &mut *chunk.g,
                u: &mut *chunk.u,
                a: &mut *chunk.a,
            };
            self.fused_step(fused, old, to, s, None, moving, chunk.sums, scratch);
            old = to;
        }
        for at in (0..walkers).step_by(block) {
            let end = (at + block).min(walkers);
            scratch.fit(end - at, dim);
            let x = &chunk.x[at * dim..end * dim];
            let kept = &mut chunk.g[at * fused.kept..end * fused.kept];
            (fused.evaluate)(to, x, &mut scratch.u[..end - at], kept, &mut scratch.energy);
            let (u, a) = (&mut chunk.u[at..end], &mut chunk.a[at..end]);
            self.weigh_where_they_stand(chunk.first + at, subset, &scratch.u, u, a);
            self.check(chunk.first + at, u, &mut chunk.sums.bad);
            self.accumulate_fused(fused, to, x, kept, a, &mut chunk.sums.weights, scratch);
        }
    }

    /// Kernel step `s` of walkers whose energies and kept numbers belong to `from`.
    fn fused_step<E: Energy<T>>(
        &self,
        fused: &Fused<T, E>,
        from: &E,
        to: &E,
        s: u32,
        own: Option<SelfInteraction<'_>>,
        moving: FusedBlock<'_, T>,
        sums: &mut ChunkSums,
        scratch: &mut Scratch<T, E::Workspace>,
    ) {
        let weigh = if self.advance.weighting == Weighting::Jarzynski { 1.0 } else { 0.0 };
        #[cfg(test)]
        let weigh = if self.faults.swapped_alphas { -weigh } else { weigh };
        let step = FusedStep {
            key: self.random.key(self.noise_step(s), Purpose::Noise),
            h: self.advance.h,
            noise_scale: self.noise_scale(),
            weigh,
            own,
            log_sum: self.log_sum,
        };
        sums.tried += match moving.rows {
            FusedRows::All { .. } => moving.u.len() as u64,
            FusedRows::Listed { ids, .. } => ids.len() as u64,
        };
        let done = (fused.advance)(from, to, &step, moving, &mut scratch.energy);
        sums.accepted += done.accepted;
        sums.bad = sums.bad.or(done.bad.map(|id| (id, "the weight")));
    }

    /// Adds a block to the sums, given what the model keeps of it.
    pub fn accumulate_fused<E: Energy<T>>(
        &self,
        fused: &Fused<T, E>,
        energy: &E,
        x: &[T],
        kept: &[T],
        a: &[f64],
        sums: &mut WeightSums,
        scratch: &mut Scratch<T, E::Workspace>,
    ) {
        scratch.weigh(a, sums);
        if !sums.gradient.is_empty() {
            let weights = &scratch.weights[..a.len()];
            (fused.add_param_gradient)(energy, x, kept, weights, &mut sums.gradient, &mut scratch.energy);
        }
    }
}
