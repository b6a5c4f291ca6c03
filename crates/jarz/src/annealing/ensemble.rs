//! The walkers of an annealing. What is cached of them is the model's energy and gradient and the base's energy, so that `U_t` is known for every
//! `t` and a move costs one evaluation of the model.

use super::moves::{Block, Move, Scratch, Tally};
use super::{AnnealingError, BaseMeasure, Settings};
use crate::energy::Energy;
use crate::kernel::{propose, reverse};
use crate::parallel::{Layout, Pieces, Workers};
use crate::random::{Purpose, Random};
use crate::real::{Real, WalkerIds};
use crate::resampling::Draws;
use crate::resampling::draw::Uniforms;
use crate::resampling::share::Share;
use crate::walkers::{Walkers, descend};
use crate::weights::{WeightSums, normalise};

/// Walkers that the first time step is tried with.
const TRIED: usize = 256;
/// Number of the first of those tries: beyond all moves.
const TRIES_FROM: u64 = 1 << 40;

/// Weighted walkers on their way from the base to the model.
pub(super) struct Ensemble<'a, T: Real, E: Energy<T>> {
    energy: &'a E,
    base: &'a dyn BaseMeasure<T>,
    settings: &'a Settings,
    /// Energies and gradients are the model's.
    walkers: Walkers<T>,
    base_energies: Vec<f64>,
    /// With momentum; empty without.
    velocities: Vec<T>,
    moves: u64,
    random: Random,
    draws: Draws,
    layout: Layout,
    workers: Workers<Scratch<T, E::Workspace>>,
}

impl<'a, T: Real, E: Energy<T>> Ensemble<'a, T, E> {
    /// Exact samples of the base, evaluated.
    pub fn new(
        energy: &'a E,
        base: &'a dyn BaseMeasure<T>,
        settings: &'a Settings,
    ) -> Result<Self, AnnealingError> {
        let (n, dim) = (settings.walkers, energy.dim());
        let random = Random::new(settings.seed);
        let mut positions = vec![T::ZERO; n * dim];
        base.sample(0..n as u64, &random, &mut positions);
        let mut walkers = Walkers::new(dim, positions, Some(base.log_z()));
        walkers.gradients.resize(n * dim, T::ZERO);
        let mut ensemble = Ensemble {
            energy,
            base,
            settings,
            walkers,
            base_energies: vec![0.0; n],
            velocities: vec![T::ZERO; if settings.friction.is_some() { n * dim } else { 0 }],
            moves: 0,
            random,
            draws: Draws::default(),
            layout: Layout::new(energy, n),
            workers: Workers::new(settings.threads)?,
        };
        let tally = ensemble.each_block(|block, tally, s| {
            s.fit(block.u.len(), dim);
            energy.energy_and_gradient(block.x, block.u, block.g, &mut s.energy);
            base.energy_and_gradient(block.x, block.b, &mut s.drift);
            if !block.v.is_empty() {
                let ids = WalkerIds::From(block.first);
                random.normal_rows(0, Purpose::AnnealMomentum, ids, dim, &mut s.noise);
            }
            for (v, noise) in block.v.chunks_exact_mut(dim).zip(s.noise.chunks_exact(T::noise_stride(dim))) {
                v.copy_from_slice(&noise[..dim]);
            }
            let bad = block.u.iter().zip(&*block.b).position(|(u, b)| !(u - b).is_finite());
            tally.bad = tally.bad.or(bad.map(|i| block.first + i as u64));
        });
        finite(&tally, 0.0)?;
        Ok(ensemble)
    }

    /// Log-weights since the last resampling.
    pub fn log_weights(&self) -> &[f64] {
        self.walkers.log_weights()
    }

    /// `f = U - base` of every walker.
    pub fn f(&self) -> Vec<f64> {
        self.walkers.energies.iter().zip(&self.base_energies).map(|(u, b)| u - b).collect()
    }

    /// Would-be acceptance of proposals that target the base; nobody moves.
    pub fn try_base(&self, h: f64, try_number: u64) -> f64 {
        let dim = self.walkers.dim;
        let n = self.walkers.len().min(TRIED);
        let x = &self.walkers.positions[..n * dim];
        let (mut b, mut gradient) = (vec![0.0; n], vec![T::ZERO; n * dim]);
        let mut noise = vec![T::ZERO; n * T::noise_stride(dim)];
        let number = TRIES_FROM + try_number;
        self.random.normal_rows(number, Purpose::AnnealNoise, WalkerIds::From(0), dim, &mut noise);
        self.base.energy_and_gradient(x, &mut b, &mut gradient);
        let (mut y, mut displacement) = (x.to_vec(), vec![T::ZERO; n * dim]);
        let (mut forward, mut backward) = (vec![0.0; n], vec![0.0; n]);
        let scale = (2.0 * h).sqrt();
        propose(&mut y, &gradient, &noise, dim, h, scale, None, &mut displacement, &mut forward);
        let mut b_y = vec![0.0; n];
        self.base.energy_and_gradient(&y, &mut b_y, &mut gradient);
        reverse(&displacement, &gradient, dim, h, None, &mut backward);
        let ratios = (0..n).map(|i| ((b[i] + forward[i]) - (b_y[i] + backward[i])).exp());
        // Far too long steps overflow to what is not a number: refused.
        ratios.map(|r| if r.is_nan() { 0.0 } else { r.min(1.0) }).sum::<f64>() / n as f64
    }

    /// Weights follow from `t` to `next`; returns the ESS.
    pub fn reweight(&mut self, t: f64, next: f64) -> Result<f64, AnnealingError> {
        let gain = -(next - t);
        #[cfg(test)]
        let gain = if self.settings.faults.wrong_sign { -gain } else { gain };
        let f = self.f();
        for (a, f) in self.walkers.log_weights.iter_mut().zip(&f) {
            *a += gain * f;
        }
        let sums = WeightSums::of(&self.walkers.log_weights);
        if !sums.log_mean().is_finite() {
            let lost = self.walkers.log_weights.iter().position(|a| !a.is_finite());
            let walker = lost.unwrap_or(0) as u64;
            return Err(AnnealingError::Diverged { t: next, walker, what: "the weight" });
        }
        Ok(sums.ess())
    }

    /// Draws new walkers in proportion to the weights, which become equal; `log Z` keeps what they had to say.
    pub fn resample(&mut self, rung: u64) {
        let w = &mut self.walkers;
        let p = normalise(&w.log_weights);
        let (random, scheme, n, draws) = (self.random, self.settings.scheme, w.len(), &mut self.draws);
        let share = Share::all(&p);
        self.workers.install(|parallel| {
            let uniforms =
                Uniforms { random: &random, step: rung, purpose: Purpose::AnnealResample, parallel };
            scheme.draw(&share, n, &uniforms, draws)
        });
        let (ancestors, _) = draws.drawn(&share);
        #[cfg(test)]
        let caches = !self.settings.faults.stale_caches;
        #[cfg(not(test))]
        let caches = true;
        w.descend(0..n, ancestors, caches);
        if caches {
            descend(&mut self.base_energies, 1, 0..n, ancestors);
            let width = self.velocities.len() / n;
            descend(&mut self.velocities, width, 0..n, ancestors);
        }
        w.log_z = w.log_z.map(|z| z + WeightSums::of(&w.log_weights).log_mean());
        w.log_weights.fill(0.0);
        w.resamplings += 1;
    }

    /// All moves at `t`; returns their mean acceptance.
    pub fn advance(&mut self, t: f64, h: f64) -> Result<f64, AnnealingError> {
        #[cfg(test)]
        let t = if self.settings.faults.late_moves { (t - 0.1).max(0.0) } else { t };
        let mut accepted = 0.0;
        for _ in 0..self.settings.moves {
            let one = Move {
                energy: self.energy,
                base: self.base,
                random: self.random,
                number: self.moves,
                t,
                h,
                friction: self.settings.friction,
                #[cfg(test)]
                faults: self.settings.faults,
            };
            let tally = self.each_block(|block, tally, scratch| one.mala(block, tally, scratch));
            finite(&tally, t)?;
            accepted += tally.accepted;
            self.moves += 1;
        }
        Ok(accepted / (self.settings.moves as f64 * self.walkers.len() as f64))
    }

    /// The walkers.
    pub fn into_walkers(self) -> Walkers<T> {
        self.walkers
    }

    /// Runs `work` on every block; sums of chunks are added in their order.
    fn each_block(
        &mut self,
        work: impl Fn(Block<'_, T>, &mut Tally, &mut Scratch<T, E::Workspace>) + Sync,
    ) -> Tally {
        let (n, dim, rows, size) =
            (self.walkers.len(), self.walkers.dim, self.layout.chunk, self.layout.block);
        let mut tallies = vec![Tally::default(); self.layout.chunks(n)];
        let w = &mut self.walkers;
        let (x, g) = (Pieces::new(&mut w.positions, rows * dim), Pieces::new(&mut w.gradients, rows * dim));
        let (u, b) = (Pieces::new(&mut w.energies, rows), Pieces::new(&mut self.base_energies, rows));
        let moves = !self.velocities.is_empty();
        let v = Pieces::new(&mut self.velocities, if moves { rows * dim } else { 0 });
        let all = Pieces::new(&mut tallies, 1);
        self.workers.run(all.count(), |c, scratch| {
            // SAFETY: every piece is taken once, by the task of its number.
            let (x, g, u, b, v) = unsafe { (x.take(c), g.take(c), u.take(c), b.take(c), v.take(c)) };
            let Some(tally) = unsafe { all.take(c) }.first_mut() else { return };
            let blocks = x.chunks_mut(size * dim).zip(g.chunks_mut(size * dim));
            let energies = u.chunks_mut(size).zip(b.chunks_mut(size));
            for (k, ((x, g), (u, b))) in blocks.zip(energies).enumerate() {
                let first = (c * rows + k * size) as u64;
                let at = k * size * dim;
                let v = if moves { &mut v[at..at + x.len()] } else { &mut [] };
                work(Block { first, x, v, g, u, b }, tally, scratch);
            }
        });
        tallies.iter().fold(Tally::default(), |sum, tally| Tally {
            accepted: sum.accepted + tally.accepted,
            bad: sum.bad.or(tally.bad),
        })
    }
}

fn finite(tally: &Tally, t: f64) -> Result<(), AnnealingError> {
    match tally.bad {
        Some(walker) => Err(AnnealingError::Diverged { t, walker, what: "the energy" }),
        None => Ok(()),
    }
}
