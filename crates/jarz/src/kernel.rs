//! Langevin kernels: how a walker moves, and the terms of its transition density that enter the weights.
//!
//! A step is `y = x - h c(x) + sqrt(2h) xi`, with `c` the gradient of the energy, clipped if so wished. Its
//! density is `b(x, y) ~ exp(-|y - x + h c(x)|^2 / 4h)`, and the weights need
//! `-log b(x, y) - |y - x|^2 / 4h = (y - x).c(x) / 2 + h |c(x)|^2 / 4`: the part of the paper's `alpha_k(x, y)` beyond
//! the energy. Because the clipped drift is the one in `b`, weights stay exact with clipping.
//!
//! With momentum (Horowitz, Phys. Lett. B 268, 1991) the state of a walker is `(x, v)`, with density `exp(-U(x) - |v|^2 / 2)`, so that weights are those of
//! MALA, `U_k(x) - U_{k+1}(x)` where the walker stands. A step first renews the velocity in part, `v <- a v + sqrt(1 - a^2) xi`, then makes one leapfrog step of
//! length `e = sqrt(2h)`: `y = x + e v - e^2 c(x) / 2`, which is the step above with `v` for `xi`, and `v' = (y - x) / e - e c(y) / 2`. The change of
//! `U + |v|^2 / 2` is what MALA has in its Metropolis test. Who is refused stays, with the velocity reversed. A leapfrog step with any force
//! that depends on the position alone is reversible and keeps volumes, so a clipped drift is exact here too.

use crate::real::{Real, sum_lanes, sum_pairs};
use crate::simd::{LANES, multiversion};

/// How walkers move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum KernelKind {
    /// Unadjusted Langevin; the weights correct for the time step (eq. `X:A:k`).
    #[default]
    Ula,
    /// Metropolis-adjusted Langevin: walkers are reweighted where they stand, then moved by a kernel that leaves the new density invariant.
    Mala,
    /// Langevin with momentum (generalised Hamiltonian Monte Carlo with one leapfrog step): like MALA, but what is noise there is a velocity that
    /// walkers keep from step to step and only partly forget.
    Ghmc,
}

/// A limit on the drift.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Clip {
    /// The gradient is scaled back to this length if longer.
    Norm(f64),
    /// Each component of the gradient is clamped to this size.
    Component(f64),
}

/// A kernel: kind, drift limit, and steps per parameter step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kernel {
    /// ULA, MALA, or MALA with momentum.
    pub kind: KernelKind,
    /// Limit on the drift.
    pub clip: Option<Clip>,
    /// Steps per parameter step.
    pub steps: u32,
    /// With momentum: how fast velocities are forgotten, `a = exp(-friction e)` per step of length `e = sqrt(2h)`. One means over the width of a
    /// unit Gaussian; without bound, the kernel is MALA.
    pub friction: f64,
}

impl Default for Kernel {
    fn default() -> Self {
        Kernel { kind: KernelKind::Ula, clip: None, steps: 1, friction: 1.0 }
    }
}

impl Kernel {
    /// Unadjusted Langevin, one step per parameter step.
    pub fn ula() -> Self {
        Kernel::default()
    }
    /// Metropolis-adjusted Langevin, one step per parameter step.
    pub fn mala() -> Self {
        Kernel { kind: KernelKind::Mala, ..Kernel::default() }
    }
    /// Metropolis-adjusted Langevin with momentum, one step per parameter step.
    pub fn ghmc(friction: f64) -> Self {
        Kernel { kind: KernelKind::Ghmc, friction, ..Kernel::default() }
    }
    /// With a drift limit.
    pub fn with_clip(self, clip: Option<Clip>) -> Self {
        Kernel { clip, ..self }
    }
    /// With several steps per parameter step.
    pub fn with_steps(self, steps: u32) -> Self {
        Kernel { steps, ..self }
    }
}

/// Clip limits as numbers: (limit of the norm, limit of a component), infinite where there is none.
fn limits(clip: Option<Clip>) -> (f64, f64) {
    match clip {
        None => (f64::INFINITY, f64::INFINITY),
        Some(Clip::Norm(limit)) => (limit, f64::INFINITY),
        Some(Clip::Component(limit)) => (f64::INFINITY, limit),
    }
}

/// Moves a block: `x <- x + displacement`, with `displacement = -h c + noise_scale xi`, and
/// `forward_i = displacement.c / 2 + h |c|^2 / 4`.
#[allow(clippy::too_many_arguments)]
pub(crate) fn propose<T: Real>(
    x: &mut [T],
    gradient: &[T],
    noise: &[T],
    dim: usize,
    h: f64,
    noise_scale: f64,
    clip: Option<Clip>,
    displacement: &mut [T],
    forward: &mut [f64],
) {
    let (norm, component) = limits(clip);
    let (h, s) = (T::from_f64(h), T::from_f64(noise_scale));
    let isa = crate::simd::Isa::best();
    let component = T::from_f64(component);
    propose_rows(isa, x, gradient, noise, dim, h, s, norm, component, displacement, forward);
}

/// `backward_i = -displacement.c' / 2 + h |c'|^2 / 4` with the drift `c'` at the new position.
pub(crate) fn reverse<T: Real>(
    displacement: &[T],
    gradient: &[T],
    dim: usize,
    h: f64,
    clip: Option<Clip>,
    backward: &mut [f64],
) {
    let (norm, component) = limits(clip);
    let (h, component) = (T::from_f64(h), T::from_f64(component));
    reverse_rows(crate::simd::Isa::best(), displacement, gradient, dim, h, norm, component, backward);
}

/// Renews velocities in part: noise rows become `a v + sqrt(1 - a^2) noise`, with `a = exp(-friction sqrt(2h))`.
pub(crate) fn renew<T: Real>(velocity: &[T], noise: &mut [T], dim: usize, h: f64, friction: f64) {
    let keep = (-friction * (2.0 * h).sqrt()).exp();
    let fresh = (1.0 - keep * keep).max(0.0).sqrt();
    renew_rows(crate::simd::Isa::best(), velocity, noise, dim, T::from_f64(keep), T::from_f64(fresh));
}

/// The velocity of a walker after a step: `displacement / e - e c' / 2` with the drift `c'` where it is taken, `-velocity` where it is refused.
pub(crate) fn velocity_after<T: Real>(
    out: &mut [T],
    before: &[T],
    displacement: &[T],
    gradient: &[T],
    taken: bool,
    h: f64,
    clip: Option<Clip>,
) {
    if !taken {
        out.iter_mut().zip(before).for_each(|(v, before)| *v = -*before);
        return;
    }
    let ((norm, component), e) = (limits(clip), (2.0 * h).sqrt());
    let (inverse, half) = (T::from_f64(1.0 / e), T::from_f64(-0.5 * e));
    let isa = crate::simd::Isa::best();
    arrive_row(isa, out, displacement, gradient, inverse, half, norm, T::from_f64(component));
}

/// Factor that brings a gradient back to the norm limit.
#[inline(always)]
fn norm_factor<T: Real>(row: &[T], limit: f64) -> T {
    if limit == f64::INFINITY {
        return T::ONE;
    }
    let norm = sum_pairs(row, row, |a, b, sum| a.mul_add(b, sum)).to_f64().sqrt();
    T::from_f64(if norm > limit { limit / norm } else { 1.0 })
}

#[inline(always)]
fn clamp<T: Real>(value: T, limit: T) -> T {
    // Written so that NaN stays NaN.
    let value = if value > limit { limit } else { value };
    if value < -limit { -limit } else { value }
}

multiversion! {
    fn propose_rows[T: Real](x: &mut [T], gradient: &[T], noise: &[T], dim: usize, h: T, scale: T, norm: f64, component: T, displacement: &mut [T], forward: &mut [f64]) {
        let stride = T::noise_stride(dim);
        let quarter = T::from_f64(0.25) * h;
        let half = T::from_f64(0.5);
        let rows = x.chunks_exact_mut(dim).zip(gradient.chunks_exact(dim)).zip(displacement.chunks_exact_mut(dim));
        for (i, ((x, g), step)) in rows.enumerate() {
            let noise = &noise[i * stride..i * stride + dim];
            let factor = norm_factor(g, norm);
            let mut lanes = [T::ZERO; LANES];
            let (x_groups, x_rest) = x.as_chunks_mut::<LANES>();
            let (g_groups, g_rest) = g.as_chunks::<LANES>();
            let (n_groups, n_rest) = noise.as_chunks::<LANES>();
            let (s_groups, s_rest) = step.as_chunks_mut::<LANES>();
            let one = |x: &mut T, g: T, n: T, step: &mut T, lane: &mut T| {
                let c = clamp(g * factor, component);
                let move_by = (-h).mul_add(c, scale * n);
                *x += move_by;
                *step = move_by;
                *lane = c.mul_add(half.mul_add(move_by, quarter * c), *lane);
            };
            for (((x, g), n), s) in x_groups.iter_mut().zip(g_groups).zip(n_groups).zip(s_groups) {
                for l in 0..LANES {
                    one(&mut x[l], g[l], n[l], &mut s[l], &mut lanes[l]);
                }
            }
            // The rest has a sum of its own: an index known only at run time would keep the lanes in memory.
            let mut rest = T::ZERO;
            for (((x, g), n), s) in x_rest.iter_mut().zip(g_rest).zip(n_rest).zip(s_rest) {
                one(x, *g, *n, s, &mut rest);
            }
            forward[i] = (sum_lanes(lanes) + rest).to_f64();
        }
    }
}

multiversion! {
    fn reverse_rows[T: Real](displacement: &[T], gradient: &[T], dim: usize, h: T, norm: f64, component: T, backward: &mut [f64]) {
        let quarter = T::from_f64(0.25) * h;
        let half = T::from_f64(-0.5);
        for (i, (step, g)) in displacement.chunks_exact(dim).zip(gradient.chunks_exact(dim)).enumerate() {
            let factor = norm_factor(g, norm);
            backward[i] = sum_pairs(step, g, |s, g, sum| {
                let c = clamp(g * factor, component);
                c.mul_add(half.mul_add(s, quarter * c), sum)
            }).to_f64();
        }
    }
}

multiversion! {
    fn renew_rows[T: Real](velocity: &[T], noise: &mut [T], dim: usize, keep: T, fresh: T) {
        for (v, noise) in velocity.chunks_exact(dim).zip(noise.chunks_exact_mut(T::noise_stride(dim))) {
            for (v, n) in v.iter().zip(noise) {
                *n = keep.mul_add(*v, fresh * *n);
            }
        }
    }
}

multiversion! {
    fn arrive_row[T: Real](out: &mut [T], displacement: &[T], gradient: &[T], inverse: T, half: T, norm: f64, component: T) {
        let factor = norm_factor(gradient, norm);
        for ((v, step), g) in out.iter_mut().zip(displacement).zip(gradient) {
            *v = half.mul_add(clamp(*g * factor, component), inverse * *step);
        }
    }
}

/// The time step `h` of the kernel.
#[derive(Clone, Debug, PartialEq)]
pub enum StepSize {
    /// Given for every iteration.
    Scheduled(crate::schedule::Schedule),
    /// Steered towards a target acceptance (would-be for ULA): `log h` moves by
    /// `gain (acceptance - target)` after every iteration.
    Adaptive {
        /// Where to start.
        initial: f64,
        /// Acceptance aimed at.
        target: f64,
        /// Speed of adaptation.
        gain: f64,
        /// `h` stays within these.
        bounds: (f64, f64),
    },
}

impl StepSize {
    /// A fixed step.
    pub fn fixed(h: f64) -> Self {
        StepSize::Scheduled(crate::schedule::Schedule::constant(h))
    }

    /// The step of the first iteration.
    pub fn initial(&self) -> f64 {
        match self {
            StepSize::Scheduled(schedule) => schedule.at(0),
            StepSize::Adaptive { initial, .. } => *initial,
        }
    }

    /// The step after `iteration` has shown `acceptance` with step `h`.
    pub fn next(&self, iteration: u64, h: f64, acceptance: f64) -> f64 {
        match self {
            StepSize::Scheduled(schedule) => schedule.at(iteration + 1),
            StepSize::Adaptive { target, gain, bounds, .. } => {
                if acceptance.is_finite() {
                    (h * (gain * (acceptance - target)).exp()).clamp(bounds.0, bounds.1)
                } else {
                    h
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "kernel_tests.rs"]
mod tests;
