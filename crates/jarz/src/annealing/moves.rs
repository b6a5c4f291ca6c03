//! One MALA move of a block of walkers, with or without momentum.

use super::BaseMeasure;
use crate::energy::Energy;
use crate::kernel::{propose, renew, reverse, velocity_after};
use crate::random::{Purpose, Random};
use crate::real::{Real, WalkerIds};

/// Deliberate mistakes, for tests that must notice them.
#[cfg(test)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Faults {
    /// Every proposal is taken.
    pub always_accept: bool,
    /// Weights gain `+(t' - t) f`.
    pub wrong_sign: bool,
    /// Moves belong to the `t` before.
    pub late_moves: bool,
    /// Resampling forgets what is cached.
    pub stale_caches: bool,
}

/// Memory of one thread for a block.
#[derive(Default)]
pub(super) struct Scratch<T, W> {
    pub energy: W,
    pub noise: Vec<T>,
    pub y: Vec<T>,
    pub g_y: Vec<T>,
    pub drift: Vec<T>,
    pub displacement: Vec<T>,
    pub u_y: Vec<f64>,
    pub b_y: Vec<f64>,
    pub forward: Vec<f64>,
    pub backward: Vec<f64>,
}

impl<T: Real, W> Scratch<T, W> {
    pub fn fit(&mut self, rows: usize, dim: usize) {
        self.noise.resize(rows * T::noise_stride(dim), T::ZERO);
        for buffer in [&mut self.y, &mut self.g_y, &mut self.drift, &mut self.displacement] {
            buffer.resize(rows * dim, T::ZERO);
        }
        for buffer in [&mut self.u_y, &mut self.b_y, &mut self.forward, &mut self.backward] {
            buffer.resize(rows, 0.0);
        }
    }
}

/// Sums of one chunk.
#[derive(Clone, Copy, Default)]
pub(super) struct Tally {
    pub accepted: f64,
    pub bad: Option<u64>,
}

/// A block of walkers: positions, velocities (with momentum), the model's gradients and energies, the base's energies.
pub(super) struct Block<'a, T> {
    pub first: u64,
    pub x: &'a mut [T],
    pub v: &'a mut [T],
    pub g: &'a mut [T],
    pub u: &'a mut [f64],
    pub b: &'a mut [f64],
}

/// One move at `t`.
pub(super) struct Move<'a, T, E> {
    pub energy: &'a E,
    pub base: &'a dyn BaseMeasure<T>,
    pub random: Random,
    pub number: u64,
    pub t: f64,
    pub h: f64,
    pub friction: Option<f64>,
    #[cfg(test)]
    pub faults: Faults,
}

impl<T: Real, E: Energy<T>> Move<'_, T, E> {
    /// MALA for `U_t = (1 - t) base + t U`.
    pub fn mala(&self, block: Block<'_, T>, tally: &mut Tally, s: &mut Scratch<T, E::Workspace>) {
        let (n, dim, h) = (block.u.len(), self.energy.dim(), self.h);
        s.fit(n, dim);
        let ids = WalkerIds::From(block.first);
        self.random.normal_rows(self.number, Purpose::AnnealNoise, ids, dim, &mut s.noise);
        if let Some(friction) = self.friction {
            renew(block.v, &mut s.noise, dim, h, friction);
        }
        self.base.energy_and_gradient(block.x, &mut s.b_y, &mut s.drift);
        self.mix(block.g, &mut s.drift);
        s.y.copy_from_slice(block.x);
        let scale = (2.0 * h).sqrt();
        propose(&mut s.y, &s.drift, &s.noise, dim, h, scale, None, &mut s.displacement, &mut s.forward);
        self.energy.energy_and_gradient(&s.y, &mut s.u_y, &mut s.g_y, &mut s.energy);
        self.base.energy_and_gradient(&s.y, &mut s.b_y, &mut s.drift);
        self.mix(&s.g_y, &mut s.drift);
        reverse(&s.displacement, &s.drift, dim, h, None, &mut s.backward);
        for i in 0..n {
            let (before, after) = (self.at(block.b[i], block.u[i]), self.at(s.b_y[i], s.u_y[i]));
            let log_ratio = (before + s.forward[i]) - (after + s.backward[i]);
            // A proposal where the energy is not a number is refused.
            let log_ratio = if log_ratio.is_nan() { f64::NEG_INFINITY } else { log_ratio };
            tally.accepted += log_ratio.exp().min(1.0);
            let id = block.first + i as u64;
            let taken = self.random.uniform(self.number, id, Purpose::AnnealAccept).ln() < log_ratio;
            #[cfg(test)]
            let taken = taken || self.faults.always_accept;
            let row = i * dim..(i + 1) * dim;
            if self.friction.is_some() {
                let at = i * T::noise_stride(dim);
                let (before, made) = (&s.noise[at..at + dim], &s.displacement[row.clone()]);
                velocity_after(
                    &mut block.v[row.clone()],
                    before,
                    made,
                    &s.drift[row.clone()],
                    taken,
                    h,
                    None,
                );
            }
            if taken {
                block.x[row.clone()].copy_from_slice(&s.y[row.clone()]);
                block.g[row.clone()].copy_from_slice(&s.g_y[row]);
                (block.u[i], block.b[i]) = (s.u_y[i], s.b_y[i]);
                if !s.u_y[i].is_finite() && tally.bad.is_none() {
                    tally.bad = Some(id);
                }
            }
        }
    }

    /// `U_t` from the energies of base and model.
    fn at(&self, base: f64, model: f64) -> f64 {
        (1.0 - self.t) * base + self.t * model
    }

    /// The gradient of `U_t` from that of the model and, in `drift`, that of the base.
    fn mix(&self, model: &[T], drift: &mut [T]) {
        let (base_share, model_share) = (T::from_f64(1.0 - self.t), T::from_f64(self.t));
        drift.iter_mut().zip(model).for_each(|(d, g)| *d = base_share * *d + model_share * *g);
    }
}
