//! The sampler carries weighted walkers from one set of parameters to the next.
//!
//! [`Sampler::advance`] is one line pair of the paper's algorithms: move the walkers (all, or a mini-batch of them),
//! and update the weights of all. What the parameters do in between is up to the caller:
//! a trainer learns them, a test or an annealing prescribes them.

mod collect;
mod disturb;
mod fisher;
mod fused;
mod moves;
mod resample;
mod state;
mod steps;

pub use disturb::Disturbance;

use crate::data::Dataset;
use crate::energy::{Energy, Fused};
use crate::error::Error;
use crate::kernel::{Kernel, KernelKind};
use crate::parallel::{Layout, Pieces, Workers};
use crate::random::{Purpose, Random, Subset};
use crate::ranks::{Ranks, Shard, Topic};
use crate::real::Real;
use crate::resampling::{Draws, Scheme};
use crate::walkers::Walkers;
use crate::weights::WeightSums;
use moves::{Mover, Rows, Scratch};

/// Walkers that suffice to say how far a parameter step spreads the weights.
const SPREAD_OVER: usize = 512;

/// How walkers acquire weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weighting {
    /// Jarzynski's, exact for the kernel that runs (eq. `X:A:k`).
    Jarzynski,
    /// `dA = -dU/dtheta . dtheta`, exact only for continuous time (eq. `X:A:t`).
    ContinuousTime,
    /// None: all weights stay equal (PCD, CD, the "unweighted" control).
    Equal,
}

/// What the leave-one-out correction needs to know of the parameter step.
#[derive(Clone, Copy, Debug)]
pub struct SelfInteraction<'a> {
    /// Derivative of the new parameters in the direction, per parameter.
    pub response: &'a [f64],
    /// The walkers' weighted mean of `dU/dtheta`.
    pub mean: &'a [f64],
}

/// One advance of the ensemble.
#[derive(Clone, Copy, Debug)]
pub struct Advance<'a, T> {
    /// Iteration, part of the random numbers' address.
    pub iteration: u64,
    /// Time step of the kernel.
    pub h: f64,
    /// How weights are updated.
    pub weighting: Weighting,
    /// Leave-one-out correction, if any.
    pub correction: Option<SelfInteraction<'a>>,
    /// Data points to restart from before moving (contrastive divergence).
    pub restart: Option<&'a Dataset<T>>,
}

/// What an advance did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Advanced {
    /// Mean acceptance of the kernel steps: real for MALA, would-be for ULA.
    pub acceptance: f64,
    /// Kernel steps taken, over all walkers.
    pub kernel_steps: u64,
}

/// Sums of one chunk of walkers.
#[derive(Clone, Debug)]
struct ChunkSums {
    weights: WeightSums,
    accepted: f64,
    tried: u64,
    /// First walker that is no longer finite, and what of it.
    bad: Option<(u64, &'static str)>,
}

/// One chunk of the ensemble, on its way to a thread.
struct Chunk<'a, T> {
    /// Number of its first walker among those of all ranks.
    first: usize,
    x: &'a mut [T],
    /// What is kept from step to step.
    g: &'a mut [T],
    u: &'a mut [f64],
    a: &'a mut [f64],
    sums: &'a mut ChunkSums,
}

/// Weighted walkers and the machinery that moves them. Among several ranks, each has a part of the walkers, and its calls are made by all.
pub struct Sampler<T: Real, E: Energy<T>> {
    walkers: Walkers<T>,
    ranks: Ranks,
    shard: Shard,
    kernel: Kernel,
    scheme: Scheme,
    random: Random,
    batch: Option<usize>,
    subset: Subset,
    draws: Draws,
    fused: Option<Fused<T, E>>,
    layout: Layout,
    pub(crate) workers: Workers<Scratch<T, E::Workspace>>,
    chunk_sums: Vec<ChunkSums>,
    sums: WeightSums,
    #[cfg(test)]
    pub(crate) faults: Faults,
}

/// Deliberate mistakes, for tests that must notice them.
#[cfg(test)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Faults {
    /// Multiplies the noise of the kernel, not of its density.
    pub noise: f64,
    /// Resampling forgets the cached energies and gradients.
    pub stale_caches: bool,
    /// The two alphas of the weights change places.
    pub swapped_alphas: bool,
    /// The density of the step made is taken to be that of the drift without clipping.
    pub unclipped_density: bool,
    /// Refused walkers keep their velocity.
    pub unreversed: bool,
}

#[cfg(test)]
impl Faults {
    pub(crate) const NONE: Faults = Faults {
        noise: 1.0,
        stale_caches: false,
        swapped_alphas: false,
        unclipped_density: false,
        unreversed: false,
    };
}

impl<T: Real, E: Energy<T>> Sampler<T, E> {
    /// A sampler of `walkers`, which sample `energy`. With `batch`, only so many walkers (a random choice each time) move
    /// in an advance, and all are weighted (Algorithm 2).
    pub fn new(
        walkers: Walkers<T>,
        energy: &E,
        kernel: Kernel,
        scheme: Scheme,
        batch: Option<usize>,
        seed: u64,
        threads: usize,
    ) -> Result<Self, Error> {
        let n = walkers.len();
        Sampler::among(Ranks::alone(), n, walkers, energy, kernel, scheme, batch, seed, threads)
    }

    /// The same for `n` walkers that are shared out over ranks (see [`Sampler::shard`]), of which `walkers` are this one's.
    pub fn among(
        ranks: Ranks,
        n: usize,
        walkers: Walkers<T>,
        energy: &E,
        kernel: Kernel,
        scheme: Scheme,
        batch: Option<usize>,
        seed: u64,
        threads: usize,
    ) -> Result<Self, Error> {
        let dim = energy.dim();
        let setup = |text: String| Err(Error::Setup(text));
        let shard = Self::shard(energy, n, &ranks);
        let here = shard.rows().len();
        if walkers.dim != dim || walkers.positions.len() != here * dim || n < 2 {
            return setup(format!(
                "there must be at least 2 walkers in the model's {dim} dimensions, not {} in {}",
                walkers.len(),
                walkers.dim
            ));
        }
        if kernel.steps == 0 {
            return setup("the kernel needs at least one step per parameter step".into());
        }
        if let Some(batch) = batch
            && (batch == 0 || batch > n)
        {
            return setup(format!("a mini-batch of {batch} walkers does not fit {n} walkers"));
        }
        let layout = Layout::new(energy, n);
        let params = energy.params().len();
        let chunk = ChunkSums { weights: WeightSums::new(params), accepted: 0.0, tried: 0, bad: None };
        let mut sampler = Sampler {
            walkers,
            ranks,
            shard,
            kernel,
            scheme,
            random: Random::new(seed),
            batch: batch.filter(|&b| b < n),
            subset: Subset::default(),
            draws: Draws::default(),
            fused: energy.fused().filter(|_| kernel.kind == KernelKind::Ula && kernel.clip.is_none()),
            layout,
            workers: Workers::new(threads)?,
            chunk_sums: vec![chunk; shard.chunks().len()],
            sums: WeightSums::new(params),
            #[cfg(test)]
            faults: Faults::NONE,
        };
        sampler.walkers.gradients.resize(here * sampler.kept(), T::ZERO);
        Ok(sampler)
    }

    /// How `n` walkers are shared out.
    pub fn shard(energy: &E, n: usize, ranks: &Ranks) -> Shard {
        Shard::new(Layout::new(energy, n), n, ranks)
    }

    /// Walkers that are only watched, for now or for good: the sums leave out the parameter gradient, which is what a network spends most of its time on.
    pub(crate) fn leave_out_param_gradient(&mut self) {
        self.sum_param_gradient(0);
    }

    /// The sums have the gradient in so many parameters from the next advance on.
    pub(crate) fn sum_param_gradient(&mut self, params: usize) {
        self.sums.gradient.resize(params, 0.0);
        self.chunk_sums.iter_mut().for_each(|c| c.weights = WeightSums::new(params));
    }

    /// Numbers kept per walker from step to step: what a fused step wants, the gradient, which ULA on the full
    /// ensemble reuses, or the velocity.
    fn kept(&self) -> usize {
        match &self.fused {
            Some(fused) => fused.kept,
            None => match self.kernel.kind {
                KernelKind::Ula if self.batch.is_none() => self.walkers.dim,
                KernelKind::Ghmc => self.walkers.dim,
                KernelKind::Ula | KernelKind::Mala => 0,
            },
        }
    }

    /// Walkers of all ranks.
    pub fn count(&self) -> usize {
        self.shard.total()
    }

    /// The numbers of this rank's walkers among those of all ranks, and how the others are shared out.
    pub(crate) fn place(&self) -> &Shard {
        &self.shard
    }

    /// Those who share the walkers.
    pub fn ranks(&self) -> &Ranks {
        &self.ranks
    }

    /// This rank's walkers.
    pub fn walkers(&self) -> &Walkers<T> {
        &self.walkers
    }

    /// The random numbers.
    pub fn random(&self) -> Random {
        self.random
    }

    /// Weights and weighted parameter gradient of the present ensemble.
    pub fn sums(&self) -> &WeightSums {
        &self.sums
    }

    /// `log Z` of the present parameters, where that of the initial ones was known (eq. `estim:Z:H`).
    pub fn log_z(&self) -> Option<f64> {
        self.walkers.log_z.map(|z| z + self.sums.log_mean())
    }

    /// Computes energies, gradients and sums at the present positions, and draws velocities where walkers have one.
    pub fn begin(&mut self, energy: &E) -> Result<(), Error> {
        self.begin_at(energy, 0)
    }

    /// Takes other walkers, with their weights, in place of its own; they sample the density of `energy`. For a sampler that has all walkers.
    pub(crate) fn replace(&mut self, walkers: Walkers<T>, energy: &E, iteration: u64) -> Result<(), Error> {
        let resamplings = self.walkers.resamplings + walkers.resamplings;
        let mut gradients = std::mem::take(&mut self.walkers.gradients);
        gradients.fill(T::ZERO);
        self.walkers = Walkers { gradients, resamplings, ..walkers };
        self.begin_at(energy, iteration)
    }

    fn begin_at(&mut self, energy: &E, iteration: u64) -> Result<(), Error> {
        let mover = Mover::idle(self.random, self.kernel, iteration);
        let (layout, dim) = (self.layout, self.walkers.dim);
        let kept = self.kept();
        let momentum = self.kernel.kind == KernelKind::Ghmc;
        self.each_chunk(|fused, chunk, scratch| {
            let mut at = 0;
            while at < chunk.u.len() {
                let end = (at + layout.block).min(chunk.u.len());
                let (x, u) = (&chunk.x[at * dim..end * dim], &mut chunk.u[at..end]);
                let g = &mut chunk.g[at * kept..end * kept];
                match fused {
                    Some(fused) => (fused.evaluate)(energy, x, u, g, &mut scratch.energy),
                    None if momentum => {
                        mover.draw_velocities((chunk.first + at) as u64, dim, g, scratch);
                        energy.energy(x, u, &mut scratch.energy)
                    }
                    None if g.is_empty() => energy.energy(x, u, &mut scratch.energy),
                    None => energy.energy_and_gradient(x, u, g, &mut scratch.energy),
                }
                mover.check(chunk.first + at, u, &mut chunk.sums.bad);
                let a = &chunk.a[at..end];
                match fused {
                    Some(fused) => {
                        mover.accumulate_fused(fused, energy, x, g, a, &mut chunk.sums.weights, scratch)
                    }
                    None => mover.accumulate(energy, x, a, &mut chunk.sums.weights, scratch),
                }
                at = end;
            }
        });
        self.collect(iteration).map(|_| ())
    }

    /// Moves walkers and updates weights as the parameters go from those of `from` to those of `to`.
    pub fn advance(&mut self, from: &E, to: &E, advance: Advance<'_, T>) -> Result<Advanced, Error> {
        let n = self.count();
        if let Some(batch) = self.batch {
            self.random.subset(advance.iteration, Purpose::WalkerBatch, batch, n, &mut self.subset);
        }
        let mover = Mover {
            random: self.random,
            kernel: self.kernel,
            log_sum: self.sums.log_sum(),
            delta: match advance.weighting {
                Weighting::ContinuousTime => {
                    to.params().iter().zip(from.params()).map(|(b, a)| b - a).collect()
                }
                _ => Vec::new(),
            },
            advance,
            #[cfg(test)]
            faults: self.faults,
        };
        let subset = std::mem::take(&mut self.subset);
        let (layout, batch) = (self.layout, self.batch);
        self.each_chunk(|fused, chunk, scratch| match (fused, batch) {
            (Some(fused), None) => mover.full_fused(fused, from, to, chunk, layout.block, scratch),
            (Some(fused), Some(_)) => {
                mover.mini_batch_fused(fused, from, to, chunk, &subset, layout.block, scratch)
            }
            (None, None) => mover.full(from, to, chunk, layout.block, scratch),
            (None, Some(_)) => mover.mini_batch(from, to, chunk, &subset, layout.block, scratch),
        });
        self.subset = subset;
        self.collect(advance.iteration)
    }

    /// Weighted variance of `U_to - U_from` where the walkers stand, over blocks of them here and there in the ensemble (neighbours may
    /// have started in the same mode): how far one parameter step spreads the log-weights.
    pub fn spread(&self, to: &E) -> f64 {
        let (block, dim, n) = (self.layout.block, self.walkers.dim, self.count());
        let every = block * (n / SPREAD_OVER).max(1);
        let rows = self.shard.rows();
        // Blocks are parts of chunks, so each belongs to one rank.
        let blocks = rows.start.div_ceil(every)..rows.end.div_ceil(every);
        let place = |b: usize| b * every - rows.start..(b * every + block).min(rows.end) - rows.start;
        // Each block's largest log-weight, and sums relative to it.
        let mut moments = vec![[f64::NEG_INFINITY, 0.0, 0.0, 0.0]; blocks.len()];
        let pieces = Pieces::new(&mut moments, 1);
        self.workers.run(pieces.count(), |c, scratch| {
            // SAFETY: every piece is taken once, by the task of its number.
            let Some(moments) = unsafe { pieces.take(c) }.first_mut() else { return };
            let Rows { x, u, a } = Rows::of(&self.walkers, place(blocks.start + c));
            scratch.fit(u.len(), dim);
            to.energy(x, &mut scratch.u[..u.len()], &mut scratch.energy);
            moments[0] = a.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            for i in (0..u.len()).filter(|&i| a[i] > f64::NEG_INFINITY) {
                let (w, change) = ((a[i] - moments[0]).exp(), scratch.u[i] - u[i]);
                moments[1] += w;
                moments[2] += w * change;
                moments[3] += w * change * change;
            }
        });
        let of_rank = |r: usize| {
            let rows = self.shard.rows_of(r);
            rows.end.div_ceil(every) - rows.start.div_ceil(every)
        };
        let counts: Vec<usize> = (0..self.ranks.size()).map(|r| 4 * of_rank(r)).collect();
        let all = self.ranks.gather(Topic::Steps, moments.as_flattened(), &counts);
        let (blocks, _) = all.as_chunks::<4>();
        let top = blocks.iter().map(|b| b[0]).fold(f64::NEG_INFINITY, f64::max);
        let [w, m, s] = blocks.iter().fold([0.0; 3], |t, b| {
            let scale = (b[0] - top).exp();
            [t[0] + scale * b[1], t[1] + scale * b[2], t[2] + scale * b[3]]
        });
        (s / w - (m / w) * (m / w)).max(0.0)
    }

    /// Runs `work` on every chunk, with cleared sums.
    fn each_chunk(
        &mut self,
        work: impl Fn(Option<&Fused<T, E>>, &mut Chunk<'_, T>, &mut Scratch<T, E::Workspace>) + Sync,
    ) {
        let (rows, dim, kept) = (self.layout.chunk, self.walkers.dim, self.kept());
        let first = self.shard.rows().start;
        let w = &mut self.walkers;
        let (x, g) = (Pieces::new(&mut w.positions, rows * dim), Pieces::new(&mut w.gradients, rows * kept));
        let (u, a) = (Pieces::new(&mut w.energies, rows), Pieces::new(&mut w.log_weights, rows));
        let all_sums = Pieces::new(&mut self.chunk_sums, 1);
        let fused = self.fused.as_ref();
        self.workers.run(all_sums.count(), |c, scratch| {
            // SAFETY: every piece is taken once, by the task of its number.
            let (x, g, u, a) = unsafe { (x.take(c), g.take(c), u.take(c), a.take(c)) };
            let Some(sums) = unsafe { all_sums.take(c) }.first_mut() else { return };
            sums.weights.clear();
            (sums.accepted, sums.tried, sums.bad) = (0.0, 0, None);
            work(fused, &mut Chunk { first: first + c * rows, x, g, u, a, sums }, scratch);
        });
    }
}

#[cfg(test)]
mod exactness;
