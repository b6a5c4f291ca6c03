//! What happens to one chunk of walkers: which of them move, what their weights gain besides, and sums. The kernels are in [`steps`](super::steps).

#[cfg(test)]
use super::Faults;
use super::{Advance, Chunk, Weighting};
use crate::data::Dataset;
use crate::energy::Energy;
use crate::kernel::{Kernel, KernelKind};
use crate::random::{Purpose, Random, Subset};
use crate::real::{Real, WalkerIds};
use crate::walkers::Walkers;
use crate::weights::WeightSums;
use std::ops::Range;

/// Memory of one thread, sized for one block.
#[derive(Default)]
pub(crate) struct Scratch<T, W> {
    pub(crate) energy: W,
    pub(crate) u: Vec<f64>,
    pub(super) noise: Vec<T>,
    pub(super) displacement: Vec<T>,
    pub(super) forward: Vec<f64>,
    pub(super) backward: Vec<f64>,
    pub(crate) weights: Vec<f64>,
    gradient: Vec<T>,
    /// Proposals of MALA, and gathered walkers of a mini-batch.
    pub(super) proposal: Vec<T>,
    pub(super) proposal_gradient: Vec<T>,
    /// Of the proposals, and the rows in which they were refused.
    pub(super) proposal_energy: W,
    pub(super) refused: Vec<usize>,
    gathered: Vec<T>,
    gathered_u: Vec<f64>,
    gathered_a: Vec<f64>,
    gathered_v: Vec<T>,
}

impl<T: Real, W> Scratch<T, W> {
    /// Adds log-weights to the sums; the weights relative to these are kept for the gradient.
    pub(super) fn weigh(&mut self, a: &[f64], sums: &mut WeightSums) {
        if self.weights.len() < a.len() {
            self.weights.resize(a.len(), 0.0);
        }
        sums.add(a, &mut self.weights[..a.len()]);
    }

    /// Makes room for a block of `rows` rows.
    pub(crate) fn fit(&mut self, rows: usize, dim: usize) {
        for buffer in [&mut self.u, &mut self.forward, &mut self.backward, &mut self.weights] {
            if buffer.len() < rows {
                buffer.resize(rows, 0.0);
            }
        }
        let buffers = [
            (&mut self.noise, T::noise_stride(dim)),
            (&mut self.displacement, dim),
            (&mut self.gradient, dim),
            (&mut self.proposal, dim),
            (&mut self.proposal_gradient, dim),
        ];
        for (buffer, stride) in buffers {
            if buffer.len() < rows * stride {
                buffer.resize(rows * stride, T::ZERO);
            }
        }
    }
}

/// A run of walkers, read-only.
pub(super) struct Rows<'a, T> {
    pub x: &'a [T],
    pub u: &'a [f64],
    pub a: &'a [f64],
}

impl<'a, T: Real> Rows<'a, T> {
    pub fn of(w: &'a Walkers<T>, range: Range<usize>) -> Self {
        let x = &w.positions[range.start * w.dim..range.end * w.dim];
        Rows { x, u: &w.energies[range.clone()], a: &w.log_weights[range] }
    }
}

/// A block of walkers that moves.
pub(super) struct Moving<'a, T> {
    pub ids: WalkerIds<'a>,
    pub x: &'a mut [T],
    pub g: &'a mut [T],
    /// Velocities, with momentum.
    pub v: &'a mut [T],
    pub u: &'a mut [f64],
    pub a: &'a mut [f64],
}

/// Acceptance and trouble met on the way.
pub(super) struct Tally<'a> {
    pub accepted: &'a mut f64,
    pub tried: &'a mut u64,
    pub bad: &'a mut Option<(u64, &'static str)>,
}

/// All that is the same for every chunk of one advance.
pub(super) struct Mover<'a, T> {
    pub random: Random,
    pub kernel: Kernel,
    /// `log sum exp A` of the whole ensemble before the advance.
    pub log_sum: f64,
    /// `theta' - theta`, for continuous-time weights.
    pub delta: Vec<f64>,
    pub advance: Advance<'a, T>,
    #[cfg(test)]
    pub faults: Faults,
}

impl<T: Real> Mover<'_, T> {
    /// For passes in which nothing moves.
    pub fn idle(random: Random, kernel: Kernel, iteration: u64) -> Self {
        Mover {
            random,
            kernel,
            log_sum: 0.0,
            delta: Vec::new(),
            advance: Advance {
                iteration,
                h: 0.0,
                weighting: Weighting::Equal,
                correction: None,
                restart: None,
            },
            #[cfg(test)]
            faults: Faults::NONE,
        }
    }

    /// Algorithm 1: every walker moves.
    pub fn full<E: Energy<T>>(
        &self,
        from: &E,
        to: &E,
        chunk: &mut Chunk<'_, T>,
        block: usize,
        scratch: &mut Scratch<T, E::Workspace>,
    ) {
        let dim = to.dim();
        let walkers = chunk.u.len();
        for at in (0..walkers).step_by(block) {
            let end = (at + block).min(walkers);
            scratch.fit(end - at, dim);
            let x = &mut chunk.x[at * dim..end * dim];
            let (u, a) = (&mut chunk.u[at..end], &mut chunk.a[at..end]);
            self.before_move(from, x, a, scratch);
            let mut spare = std::mem::take(&mut scratch.gradient);
            let g = &mut spare[..(end - at) * dim];
            let kept = if chunk.g.is_empty() { &mut [] } else { &mut chunk.g[at * dim..end * dim] };
            let (g, v) = match self.kernel.kind {
                KernelKind::Ula => (kept, &mut [][..]),
                KernelKind::Mala | KernelKind::Ghmc => (g, kept),
            };
            let ids = WalkerIds::From((chunk.first + at) as u64);
            let moving = Moving { ids, x: &mut *x, g, v, u, a: &mut *a };
            let sums = &mut *chunk.sums;
            let tally = Tally { accepted: &mut sums.accepted, tried: &mut sums.tried, bad: &mut sums.bad };
            let fresh = self.step(to, moving, tally, scratch);
            scratch.gradient = spare;
            if !fresh && !chunk.sums.weights.gradient.is_empty() {
                to.energy(x, &mut scratch.u[..end - at], &mut scratch.energy);
            }
            self.accumulate(to, x, a, &mut chunk.sums.weights, scratch);
        }
    }

    /// Algorithm 2: a subset moves, all are weighted.
    pub fn mini_batch<E: Energy<T>>(
        &self,
        from: &E,
        to: &E,
        chunk: &mut Chunk<'_, T>,
        subset: &Subset,
        block: usize,
        scratch: &mut Scratch<T, E::Workspace>,
    ) {
        let dim = to.dim();
        let walkers = chunk.u.len();
        for at in (0..walkers).step_by(block) {
            let end = (at + block).min(walkers);
            scratch.fit(end - at, dim);
            self.before_move(from, &chunk.x[at * dim..end * dim], &mut chunk.a[at..end], scratch);
        }
        let members = subset.members();
        let first = members.partition_point(|&m| (m as usize) < chunk.first);
        let last = members.partition_point(|&m| (m as usize) < chunk.first + walkers);
        for ids in members[first..last].chunks(block) {
            self.move_gathered(from, to, chunk, ids, scratch);
        }
        for at in (0..walkers).step_by(block) {
            let end = (at + block).min(walkers);
            scratch.fit(end - at, dim);
            let x = &chunk.x[at * dim..end * dim];
            to.energy(x, &mut scratch.u[..end - at], &mut scratch.energy);
            let (u, a) = (&mut chunk.u[at..end], &mut chunk.a[at..end]);
            self.weigh_where_they_stand(chunk.first + at, subset, &scratch.u, u, a);
            self.check(chunk.first + at, u, &mut chunk.sums.bad);
            self.accumulate(to, x, a, &mut chunk.sums.weights, scratch);
        }
    }

    /// Walkers from `first` on that are not in the mini-batch stay where they are: their weights gain what their energies lose.
    pub(super) fn weigh_where_they_stand(
        &self,
        first: usize,
        subset: &Subset,
        u_new: &[f64],
        u: &mut [f64],
        a: &mut [f64],
    ) {
        for i in (0..u.len()).filter(|i| !subset.contains(first + i)) {
            if self.advance.weighting == Weighting::Jarzynski {
                a[i] += u[i] - u_new[i];
            }
            u[i] = u_new[i];
        }
    }

    /// Gathers the mini-batch's walkers `ids` of this chunk, moves them, puts them back.
    fn move_gathered<E: Energy<T>>(
        &self,
        from: &E,
        to: &E,
        chunk: &mut Chunk<'_, T>,
        ids: &[u64],
        scratch: &mut Scratch<T, E::Workspace>,
    ) {
        let dim = to.dim();
        scratch.fit(ids.len(), dim);
        let mut x = std::mem::take(&mut scratch.gathered);
        let mut u = std::mem::take(&mut scratch.gathered_u);
        let mut a = std::mem::take(&mut scratch.gathered_a);
        let mut g = std::mem::take(&mut scratch.gradient);
        let mut v = std::mem::take(&mut scratch.gathered_v);
        v.clear();
        x.clear();
        u.clear();
        a.clear();
        for &id in ids {
            let i = id as usize - chunk.first;
            x.extend_from_slice(&chunk.x[i * dim..(i + 1) * dim]);
            u.push(chunk.u[i]);
            a.push(chunk.a[i]);
            if self.kernel.kind == KernelKind::Ghmc {
                v.extend_from_slice(&chunk.g[i * dim..(i + 1) * dim]);
            }
        }
        let g_rows = &mut g[..ids.len() * dim];
        if self.kernel.kind == KernelKind::Ula && self.advance.restart.is_none() {
            from.energy_and_gradient(&x, &mut u, g_rows, &mut scratch.energy);
        }
        let ids_of = WalkerIds::List(ids);
        let moving = Moving { ids: ids_of, x: &mut x, g: g_rows, v: &mut v, u: &mut u, a: &mut a };
        let sums = &mut *chunk.sums;
        let tally = Tally { accepted: &mut sums.accepted, tried: &mut sums.tried, bad: &mut sums.bad };
        self.step(to, moving, tally, scratch);
        for (row, &id) in ids.iter().enumerate() {
            let i = id as usize - chunk.first;
            chunk.x[i * dim..(i + 1) * dim].copy_from_slice(&x[row * dim..(row + 1) * dim]);
            (chunk.u[i], chunk.a[i]) = (u[row], a[row]);
            if self.kernel.kind == KernelKind::Ghmc {
                chunk.g[i * dim..(i + 1) * dim].copy_from_slice(&v[row * dim..(row + 1) * dim]);
            }
        }
        scratch.gathered_v = v;
        (scratch.gathered, scratch.gathered_u, scratch.gathered_a, scratch.gradient) = (x, u, a, g);
    }

    /// Weight changes that belong to the old position and parameters.
    fn before_move<E: Energy<T>>(
        &self,
        from: &E,
        x: &[T],
        a: &mut [f64],
        scratch: &mut Scratch<T, E::Workspace>,
    ) {
        let rows = a.len();
        if let Some(own) = self.advance.correction
            && let Some(per_walker) = from.per_walker()
        {
            let products = &mut scratch.forward[..rows];
            per_walker.self_products(x, own.response, own.mean, products);
            for (a, product) in a.iter_mut().zip(products) {
                let p = (*a - self.log_sum).exp();
                // A walker that carries all the weight has no others to be judged by.
                *a += if p < 0.5 { p / (1.0 - p) * *product } else { 0.0 };
            }
        }
        self.drift_weights(from, x, a, scratch);
    }

    /// Continuous-time weights: `A` changes by `-dU/dtheta . (theta' - theta)` where the walker stands.
    pub(super) fn drift_weights<E: Energy<T>>(
        &self,
        from: &E,
        x: &[T],
        a: &mut [f64],
        scratch: &mut Scratch<T, E::Workspace>,
    ) {
        if self.advance.weighting == Weighting::ContinuousTime
            && let Some(per_walker) = from.per_walker()
        {
            scratch.fit(a.len(), from.dim());
            let change = &mut scratch.forward[..a.len()];
            per_walker.directional(x, &self.delta, change);
            for (a, change) in a.iter_mut().zip(change) {
                *a -= *change;
            }
        }
    }

    /// Puts walkers on data points of their own choice.
    pub(super) fn restart(&self, data: &Dataset<T>, ids: WalkerIds<'_>, x: &mut [T]) {
        for (i, row) in x.chunks_exact_mut(data.dim()).enumerate() {
            let id = ids.get(i);
            let pick = self.random.below(self.advance.iteration, id, Purpose::Restart, data.len() as u64);
            row.copy_from_slice(data.row(pick as usize));
        }
    }

    /// All kernel steps of one block. Says whether the energy's workspace belongs to the final positions.
    fn step<E: Energy<T>>(
        &self,
        to: &E,
        mut rows: Moving<'_, T>,
        tally: Tally<'_>,
        scratch: &mut Scratch<T, E::Workspace>,
    ) -> bool {
        if let Some(data) = self.advance.restart {
            self.restart(data, rows.ids, rows.x);
            to.energy_and_gradient(rows.x, rows.u, rows.g, &mut scratch.energy);
        }
        match self.kernel.kind {
            KernelKind::Ula => {
                self.ula(to, &mut rows, tally, scratch);
                true
            }
            KernelKind::Mala | KernelKind::Ghmc => self.mala(to, &mut rows, tally, scratch),
        }
    }

    /// Adds a block to the sums; the energy's workspace must belong to `x`.
    pub fn accumulate<E: Energy<T>>(
        &self,
        energy: &E,
        x: &[T],
        a: &[f64],
        sums: &mut WeightSums,
        scratch: &mut Scratch<T, E::Workspace>,
    ) {
        scratch.weigh(a, sums);
        if !sums.gradient.is_empty() {
            let weights = &scratch.weights[..a.len()];
            energy.add_param_gradient(x, weights, &mut sums.gradient, &mut scratch.energy);
        }
    }

    /// Notes the first energy that is not finite.
    pub fn check(&self, first: usize, u: &[f64], bad: &mut Option<(u64, &'static str)>) {
        if bad.is_none()
            && let Some(i) = u.iter().position(|u| !u.is_finite())
        {
            *bad = Some(((first + i) as u64, "the energy"));
        }
    }
}
