//! The steps of the kernels: what happens to one block of walkers.

use super::Weighting;
use super::moves::{Mover, Moving, Scratch, Tally};
use crate::energy::Energy;
use crate::kernel::{KernelKind, propose, renew, reverse, velocity_after};
use crate::random::Purpose;
use crate::real::{Real, WalkerIds};

impl<T: Real> Mover<'_, T> {
    pub(super) fn noise_scale(&self) -> f64 {
        let scale = (2.0 * self.advance.h).sqrt();
        #[cfg(test)]
        let scale = scale * self.faults.noise;
        scale
    }

    /// Address of the noise of kernel step `s`.
    pub(super) fn noise_step(&self, s: u32) -> u64 {
        self.advance.iteration * self.kernel.steps as u64 + s as u64
    }

    fn fill_noise(&self, s: u32, ids: WalkerIds<'_>, rows: usize, dim: usize, noise: &mut [T]) -> u64 {
        let step = self.noise_step(s);
        let noise = &mut noise[..rows * T::noise_stride(dim)];
        self.random.normal_rows(step, Purpose::Noise, ids, dim, noise);
        step
    }

    /// Walker `i` gets a new energy, and its log-weight a gain, which is returned.
    fn weigh(
        &self,
        rows: &mut Moving<'_, T>,
        i: usize,
        gain: f64,
        energy: f64,
        bad: &mut Option<(u64, &'static str)>,
    ) -> f64 {
        #[cfg(test)]
        let gain = if self.faults.swapped_alphas { -gain } else { gain };
        if !gain.is_finite() && bad.is_none() {
            *bad = Some((rows.ids.get(i), "the weight"));
        }
        if self.advance.weighting == Weighting::Jarzynski {
            rows.a[i] += gain;
        }
        rows.u[i] = energy;
        gain
    }

    /// ULA. The cached energy and drift are those of the old parameters, the new ones come from `to`: the weight
    /// gains `alpha_k(x, y) - alpha_{k+1}(y, x)`. From the second step on both belong to the new parameters.
    pub(super) fn ula<E: Energy<T>>(
        &self,
        to: &E,
        rows: &mut Moving<'_, T>,
        tally: Tally<'_>,
        scratch: &mut Scratch<T, E::Workspace>,
    ) {
        let (n, dim, h, clip) = (rows.u.len(), to.dim(), self.advance.h, self.kernel.clip);
        let scale = self.noise_scale();
        for s in 0..self.kernel.steps {
            self.fill_noise(s, rows.ids, n, dim, &mut scratch.noise);
            let (displacement, forward) = (&mut scratch.displacement[..n * dim], &mut scratch.forward[..n]);
            propose(rows.x, rows.g, &scratch.noise, dim, h, scale, clip, displacement, forward);
            #[cfg(test)]
            if self.faults.unclipped_density {
                let back: Vec<T> = displacement.iter().map(|d| -*d).collect();
                reverse(&back, rows.g, dim, h, None, forward);
            }
            let (u_new, backward) = (&mut scratch.u[..n], &mut scratch.backward[..n]);
            to.energy_and_gradient(rows.x, u_new, rows.g, &mut scratch.energy);
            reverse(displacement, rows.g, dim, h, clip, backward);
            for i in 0..n {
                let gain = (rows.u[i] + forward[i]) - (u_new[i] + backward[i]);
                *tally.accepted += self.weigh(rows, i, gain, u_new[i], tally.bad).exp().min(1.0);
            }
            *tally.tried += n as u64;
        }
    }

    /// MALA, with or without momentum: reweight where the walker stands, then steps that leave the new density invariant. Says whether the energy's workspace belongs to
    /// the final positions: it does if the model can collect it from those of the two evaluations.
    pub(super) fn mala<E: Energy<T>>(
        &self,
        to: &E,
        rows: &mut Moving<'_, T>,
        tally: Tally<'_>,
        scratch: &mut Scratch<T, E::Workspace>,
    ) -> bool {
        let mut collected = true;
        let (n, dim, h, clip) = (rows.u.len(), to.dim(), self.advance.h, self.kernel.clip);
        let scale = self.noise_scale();
        let u_new = &mut scratch.u[..n];
        to.energy_and_gradient(rows.x, u_new, rows.g, &mut scratch.energy);
        for i in 0..n {
            self.weigh(rows, i, rows.u[i] - u_new[i], u_new[i], tally.bad);
        }
        for s in 0..self.kernel.steps {
            let step = self.fill_noise(s, rows.ids, n, dim, &mut scratch.noise);
            let momentum = self.kernel.kind == KernelKind::Ghmc;
            if momentum {
                renew(rows.v, &mut scratch.noise, dim, h, self.kernel.friction);
            }
            let (y, g_y) = (&mut scratch.proposal[..n * dim], &mut scratch.proposal_gradient[..n * dim]);
            y.copy_from_slice(rows.x);
            let (displacement, forward) = (&mut scratch.displacement[..n * dim], &mut scratch.forward[..n]);
            propose(y, rows.g, &scratch.noise, dim, h, scale, clip, displacement, forward);
            let (u_y, backward) = (&mut scratch.u[..n], &mut scratch.backward[..n]);
            to.energy_and_gradient(y, u_y, g_y, &mut scratch.proposal_energy);
            reverse(displacement, g_y, dim, h, clip, backward);
            scratch.refused.clear();
            for i in 0..n {
                let log_ratio = (rows.u[i] + forward[i]) - (u_y[i] + backward[i]);
                // A proposal where the energy is not a number is refused.
                let log_ratio = if log_ratio.is_nan() { f64::NEG_INFINITY } else { log_ratio };
                *tally.accepted += log_ratio.exp().min(1.0);
                let taken = self.random.uniform(step, rows.ids.get(i), Purpose::Accept).ln() < log_ratio;
                let row = i * dim..(i + 1) * dim;
                if momentum {
                    let at = i * T::noise_stride(dim);
                    let (before, made) = (&scratch.noise[at..at + dim], &displacement[row.clone()]);
                    let v = &mut rows.v[row.clone()];
                    velocity_after(v, before, made, &g_y[row.clone()], taken, h, clip);
                    #[cfg(test)]
                    if self.faults.unreversed && !taken {
                        v.copy_from_slice(before);
                    }
                }
                if taken {
                    rows.x[row.clone()].copy_from_slice(&y[row.clone()]);
                    rows.g[row.clone()].copy_from_slice(&g_y[row]);
                    rows.u[i] = u_y[i];
                } else {
                    scratch.refused.push(i);
                }
            }
            *tally.tried += n as u64;
            let Scratch { energy, proposal_energy, refused, .. } = &mut *scratch;
            std::mem::swap(energy, proposal_energy);
            collected &= to.take_rows(refused, proposal_energy, energy);
        }
        collected
    }

    /// Velocities of the walkers from `first` on, as of walkers that never moved.
    pub(super) fn draw_velocities<W>(
        &self,
        first: u64,
        dim: usize,
        v: &mut [T],
        scratch: &mut Scratch<T, W>,
    ) {
        let (rows, stride) = (v.len() / dim, T::noise_stride(dim));
        scratch.fit(rows, dim);
        let noise = &mut scratch.noise[..rows * stride];
        self.random.normal_rows(
            self.advance.iteration,
            Purpose::Momentum,
            WalkerIds::From(first),
            dim,
            noise,
        );
        for (v, noise) in v.chunks_exact_mut(dim).zip(noise.chunks_exact(stride)) {
            v.copy_from_slice(&noise[..dim]);
        }
    }
}
