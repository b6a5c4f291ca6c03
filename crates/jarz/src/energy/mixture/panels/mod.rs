//! The mixture's kernels, on panels of 16 walkers, one per lane.
//!
//! A walker's sums over dimensions are then plain vector sums, in one order on every processor. Rows are transposed on the fly, four dimensions at a time.
//! The step does without: it works on 16 dimensions of a walker at a time, and on tiles of four walkers and four dimensions (see [`crate::simd::Tile`]) where
//! fewer are left, as which the noise comes out of the generator.

mod data;
mod kernels;
mod moves;
mod step;
mod sums;
mod weights;

pub use data::DataBench;
pub use kernels::MixtureKernels;
pub use step::{Arrays, Movers, Step, Workbench};
pub use weights::Own;

use super::NEGLIGIBLE;
use crate::random::math::{exp_f64, exps_f64, ln_f64, lns_f64};
use crate::real::Real;
use crate::simd::{LANES, Simd, Vector, dispatch};

/// Modes that one pass over a panel can take along.
pub const MAX_MODES: usize = 8;
/// Groups of four dimensions after which sums pass from the walkers' precision to `f64`; a panel's noise is made for as many at a time.
const QUADS: usize = 16;
const _: () = assert!(QUADS == crate::random::ars::Schedule::QUADS);

/// The modes of a mixture as the kernels want them.
#[derive(Clone, Debug, Default)]
pub struct Modes<T> {
    pub count: usize,
    pub dim: usize,
    /// Dimension rounded up to whole groups of four.
    pub stride: usize,
    /// Means, each followed by zeros up to the stride.
    pub means: Vec<T>,
    /// The first mean, then the others as seen from it, padded like the means.
    pub offsets: Vec<T>,
    pub log_masses: Vec<f64>,
    pub precision: f64,
    /// Squared distances between means, `count` x `count`.
    pub distances: Vec<f64>,
    /// The first mean, then `precision (mean_k - mean_0)`, each followed by zeros up to whole vectors.
    pub tilts: Vec<T>,
}

/// Which rows a panel consists of. Lanes beyond `lanes` repeat the last walker: they do the same and store the same.
#[derive(Clone, Copy)]
pub struct PanelRows {
    first: usize,
    pub lanes: usize,
    /// Whether they are 16 rows from the first on; if not, they are listed.
    is_whole: bool,
    listed: [usize; LANES],
}

impl PanelRows {
    /// Rows `first..first + lanes`.
    #[inline(always)]
    pub fn contiguous(first: usize, lanes: usize) -> Self {
        if lanes == LANES {
            return PanelRows { first, lanes, is_whole: true, listed: [0; LANES] };
        }
        Self::listed(std::array::from_fn(|l| first + l.min(lanes - 1)), lanes)
    }

    /// Some rows in ascending order.
    #[inline(always)]
    pub fn listed(rows: [usize; LANES], lanes: usize) -> Self {
        let is_whole = lanes == LANES && rows[LANES - 1] - rows[0] == LANES - 1;
        PanelRows { first: rows[0], lanes, is_whole, listed: rows }
    }

    /// Where each row of length `dim` starts; checked to lie within `len` numbers.
    #[inline(always)]
    fn starts(&self, dim: usize, len: usize) -> [usize; LANES] {
        let last = if self.is_whole { self.first + LANES - 1 } else { self.listed[LANES - 1] };
        assert!((last + 1).checked_mul(dim).is_some_and(|end| end <= len), "walkers beyond their array");
        if self.is_whole {
            let first = self.first * dim;
            return std::array::from_fn(|l| first + l * dim);
        }
        // They ascend, but that is not to be relied on here.
        assert!(self.listed.iter().all(|&row| row <= last), "walkers not in order");
        self.listed.map(|row| row * dim)
    }

    /// The first row of 16 contiguous ones.
    #[inline(always)]
    fn whole(&self) -> Option<usize> {
        self.is_whole.then_some(self.first)
    }

    #[inline(always)]
    fn gather(&self, from: &[f64]) -> [f64; LANES] {
        if let Some(whole) = self.whole().and_then(|row| from.get(row..)?.first_chunk()) {
            return *whole;
        }
        let mut values = [0.0; LANES];
        for l in 0..LANES {
            values[l] = from[self.listed[l]];
        }
        values
    }

    #[inline(always)]
    fn scatter(&self, values: &[f64; LANES], to: &mut [f64]) {
        if let Some(whole) = self.whole().and_then(|row| to.get_mut(row..)?.first_chunk_mut()) {
            *whole = *values;
            return;
        }
        for l in 0..self.lanes {
            to[self.listed[l]] = values[l];
        }
    }
}

/// Number of modes: known when the kernel is compiled (`K > 0`), or not.
#[inline(always)]
fn count<T, const K: usize>(modes: &Modes<T>) -> usize {
    if K > 0 { K } else { modes.count }
}

#[inline(always)]
fn to_lanes<S: Simd>(v: S::D) -> [f64; LANES] {
    let mut lanes = [0.0; LANES];
    v.store(&mut lanes);
    lanes
}

/// Turns squared distances to the modes into responsibilities; returns the energy.
#[inline(always)]
fn soft_max<S: Simd, T: Real>(modes: &Modes<T>, parts: &mut [[f64; LANES]]) -> S::D {
    let half = S::D::splat(0.5 * modes.precision);
    for (part, log_mass) in parts.iter_mut().zip(&modes.log_masses) {
        S::D::load(part).neg_mul_add(half, S::D::splat(*log_mass)).store(part);
    }
    S::D::splat(0.0) - normalise_parts::<S>(parts)
}

/// Turns logarithms into shares of one; returns the logarithm of their sum.
#[inline(always)]
fn normalise_parts<S: Simd>(parts: &mut [[f64; LANES]]) -> S::D {
    let d = S::D::splat;
    if let [first, second] = parts {
        let mut logs = [[S::D::load(first)], [S::D::load(second)]];
        let [log_sum] = normalise_pairs::<S, 1>(&mut logs);
        logs[0][0].store(first);
        logs[1][0].store(second);
        return log_sum;
    }
    let mut top = d(f64::NEG_INFINITY);
    for part in parts.iter() {
        let log = S::D::load(part);
        top = log.if_greater(top, log, top);
    }
    let mut sum = d(0.0);
    for part in parts.iter_mut() {
        let e = exp_f64::<S>(S::D::load(part) - top);
        // What is lost in rounding anyway is zero, so that nothing below has to handle denormal numbers.
        let e = e.if_greater(d(NEGLIGIBLE), e, d(0.0));
        e.store(part);
        sum = sum + e;
    }
    let scale = d(1.0).div(sum);
    for part in parts.iter_mut() {
        (S::D::load(part) * scale).store(part);
    }
    top + ln_f64::<S>(sum)
}

/// [`normalise_parts`] for two modes and `M` panels in lockstep: one exponential less, and nobody waits.
#[inline(always)]
fn normalise_pairs<S: Simd, const M: usize>(logs: &mut [[S::D; M]; 2]) -> [S::D; M] {
    let d = S::D::splat;
    let [a, b] = *logs;
    let (mut top, mut e) = (a, a);
    for m in 0..M {
        top[m] = a[m].if_greater(b[m], a[m], b[m]);
        e[m] = a[m].if_greater(b[m], b[m], a[m]) - top[m];
    }
    e = exps_f64::<S, M>(&e);
    let mut sums = e;
    for m in 0..M {
        e[m] = e[m].if_greater(d(NEGLIGIBLE), e[m], d(0.0));
        sums[m] = d(1.0) + e[m];
        let large = d(1.0).div(sums[m]);
        let small = e[m] * large;
        logs[0][m] = a[m].if_greater(b[m], large, small);
        logs[1][m] = a[m].if_greater(b[m], small, large);
    }
    let mut out = lns_f64::<S, M>(&sums);
    for m in 0..M {
        out[m] = top[m] + out[m];
    }
    out
}

/// Squared distances of a panel to the modes from `first` on, as many as `out` has room for (at most [`MAX_MODES`]).
#[inline(always)]
fn squares<S: Simd, T: Real>(
    modes: &Modes<T>,
    first: usize,
    x: &[T],
    starts: &[usize; LANES],
    out: &mut [[f64; LANES]],
) {
    let mut totals = [S::D::splat(0.0); MAX_MODES];
    for group in (0..modes.stride / 4).step_by(QUADS) {
        let mut sums = [T::splat::<S>(T::ZERO); MAX_MODES];
        for quad in group..(group + QUADS).min(modes.stride / 4) {
            let columns = (modes.dim - 4 * quad).min(4);
            // SAFETY: `starts` was checked, and no more columns are read than there are.
            let x = unsafe { T::V::<S>::load_columns(x.as_ptr().add(4 * quad), starts, columns) };
            for k in 0..out.len() {
                let mean = four(&modes.means, (first + k) * modes.stride + 4 * quad);
                for c in 0..4 {
                    let apart = x[c] - T::splat::<S>(mean[c]);
                    sums[k] = apart.mul_add(apart, sums[k]);
                }
            }
        }
        for k in 0..out.len() {
            totals[k] = totals[k] + T::widen::<S>(sums[k]);
        }
    }
    for (total, out) in totals.iter().zip(out) {
        total.store(out);
    }
}

/// Energies and responsibilities (`kept`, one row of modes per walker) of contiguous walkers. `parts` has a panel per mode.
#[inline(always)]
fn evaluate_panels<S: Simd, T: Real, const K: usize>(
    modes: &Modes<T>,
    x: &[T],
    u: &mut [f64],
    kept: &mut [T],
    parts: &mut [[f64; LANES]],
) {
    let n = count::<T, K>(modes);
    let parts = &mut parts[..n];
    for first in (0..u.len()).step_by(LANES) {
        let panel = PanelRows::contiguous(first, (u.len() - first).min(LANES));
        let starts = panel.starts(modes.dim, x.len());
        if K > 0 {
            squares::<S, T>(modes, 0, x, &starts, &mut parts[..K]);
        } else {
            for (at, parts) in parts.chunks_mut(MAX_MODES).enumerate() {
                squares::<S, T>(modes, at * MAX_MODES, x, &starts, parts);
            }
        }
        let energy = soft_max::<S, T>(modes, parts);
        panel.scatter(&to_lanes::<S>(energy), u);
        keep::<S, T>(&panel, parts, kept);
    }
}

/// Stores a panel's responsibilities.
#[inline(always)]
fn keep<S: Simd, T: Real>(panel: &PanelRows, parts: &[[f64; LANES]], kept: &mut [T]) {
    let n = parts.len();
    if n == 2
        && let Some(pairs) = panel.whole().and_then(|row| kept.get_mut(2 * row..)?.first_chunk_mut())
    {
        let (first, second) = (S::D::load(&parts[0]), S::D::load(&parts[1]));
        return T::V::<S>::store_pairs([T::narrow::<S>(first), T::narrow::<S>(second)], pairs);
    }
    let starts = panel.starts(n, kept.len());
    for k in (0..n).step_by(4) {
        let mut four = [T::splat::<S>(T::ZERO); 4];
        for c in 0..(n - k).min(4) {
            four[c] = T::narrow::<S>(S::D::load(&parts[k + c]));
        }
        // SAFETY: `starts` was checked, and no more columns are written than there are.
        unsafe { T::V::<S>::store_columns(four, kept.as_mut_ptr().add(k), &starts, (n - k).min(4)) };
    }
}

/// A panel's responsibilities.
#[inline(always)]
fn kept_of<S: Simd, T: Real>(panel: &PanelRows, n: usize, kept: &[T]) -> [T::V<S>; MAX_MODES] {
    let mut r = [T::splat::<S>(T::ZERO); MAX_MODES];
    if n == 2
        && let Some(pairs) = panel.whole().and_then(|row| kept.get(2 * row..)?.first_chunk())
    {
        [r[0], r[1]] = T::V::<S>::load_pairs(pairs);
        return r;
    }
    let starts = panel.starts(n, kept.len());
    for k in (0..n).step_by(4) {
        let columns = (n - k).min(4);
        // SAFETY: `starts` was checked, and no more columns are read than there are.
        let four = unsafe { T::V::<S>::load_columns(kept.as_ptr().add(k), &starts, columns) };
        r[k..k + columns].copy_from_slice(&four[..columns]);
    }
    r
}

/// Four neighbouring numbers.
#[inline(always)]
fn four<T: Copy>(from: &[T], at: usize) -> [T; 4] {
    [from[at], from[at + 1], from[at + 2], from[at + 3]]
}

dispatch! {
    fn evaluate_some{T: Real, const K: usize}{T, K}(
        modes: &Modes<T>, x: &[T], u: &mut [f64], kept: &mut [T], parts: &mut [[f64; LANES]],
    ) = evaluate_panels
}
