//! Sums over rows: coefficients of weighted walkers, and all that a data gradient needs.

use super::{Modes, PanelRows, keep, normalise_parts, to_lanes};
use crate::energy::mixture::NEGLIGIBLE;
use crate::real::{Real, sum_lanes};
use crate::simd::{LANES, Simd, Vector, dispatch, prefetch};

/// Shares of one mode, rounded, and added to their sums before and after rounding.
#[inline(always)]
fn weigh_lanes<S: Simd, T: Real>(w: S::D, r: T::V<S>, sums: &mut [S::D; 2]) -> T::V<S> {
    let share = w * T::widen::<S>(r);
    // Nothing below has to handle denormal numbers.
    let square = share * share;
    let share = square.if_greater(S::D::splat(NEGLIGIBLE * NEGLIGIBLE), share, S::D::splat(0.0));
    let rounded = T::narrow::<S>(share);
    sums[0] = sums[0] + share;
    sums[1] = sums[1] + T::widen::<S>(rounded);
    rounded
}

/// `c_ik = weight_i r_ik`, rounded to the walkers' precision; `masses` and `rounded` receive the sums of the `c_ik` before and after rounding.
#[inline(always)]
fn weigh_panels<S: Simd, T: Real>(
    kept: &[T],
    weights: &[f64],
    modes: usize,
    c: &mut [T],
    masses: &mut [f64],
    rounded: &mut [f64],
) {
    for first_mode in (0..modes).step_by(4) {
        let columns = (modes - first_mode).min(4);
        let mut sums = [[S::D::splat(0.0); 2]; 4];
        for first in (0..weights.len()).step_by(LANES) {
            let panel = PanelRows::contiguous(first, (weights.len() - first).min(LANES));
            if modes == 2
                && let Some(w) = weights[first..].first_chunk()
                && let Some(pairs) = kept[2 * first..].first_chunk()
                && let Some(out) = c[2 * first..].first_chunk_mut()
            {
                let (w, mut r) = (S::D::load(w), T::V::<S>::load_pairs(pairs));
                for k in 0..2 {
                    r[k] = weigh_lanes::<S, T>(w, r[k], &mut sums[k]);
                }
                T::V::<S>::store_pairs(r, out);
                continue;
            }
            let starts = panel.starts(modes, kept.len().min(c.len()));
            let mut w = panel.gather(weights);
            // Lanes that repeat the last walker do not count.
            w[panel.lanes..].fill(0.0);
            let w = S::D::load(&w);
            // SAFETY: `starts` was checked, and no more columns are read than there are.
            let mut r = unsafe { T::V::<S>::load_columns(kept.as_ptr().add(first_mode), &starts, columns) };
            for k in 0..columns {
                r[k] = weigh_lanes::<S, T>(w, r[k], &mut sums[k]);
            }
            if panel.lanes == LANES {
                // SAFETY: as above.
                unsafe { T::V::<S>::store_columns(r, c.as_mut_ptr().add(first_mode), &starts, columns) };
            } else {
                for k in 0..columns {
                    let mut lanes = [T::ZERO; LANES];
                    r[k].store(&mut lanes);
                    for l in 0..panel.lanes {
                        c[starts[l] + first_mode + k] = lanes[l];
                    }
                }
            }
        }
        for k in 0..columns {
            masses[first_mode + k] = sum_lanes(to_lanes::<S>(sums[k][0]));
            rounded[first_mode + k] = sum_lanes(to_lanes::<S>(sums[k][1]));
        }
    }
}

/// Responsibilities alone, of contiguous rows. As all modes have the same width, the logarithm of their ratios is linear in `x`, and
/// one product per mode does: `log r_k / r_0 = l_k - l_0 - precision |m_k - m_0|^2 / 2 + precision (x - m_0).(m_k - m_0)`.
/// `parts` has a panel per mode; `masses` receives the sums of what is kept.
#[inline(always)]
fn share_panels<S: Simd, T: Real>(
    modes: &Modes<T>,
    x: &[T],
    kept: &mut [T],
    parts: &mut [[f64; LANES]],
    masses: &mut [[f64; LANES]],
) {
    masses.fill([0.0; LANES]);
    let (n, dim) = (modes.count, modes.dim);
    let (padded, rows) = (dim.next_multiple_of(LANES), x.len() / dim);
    let zero = T::splat::<S>(T::ZERO);
    let origin = &modes.tilts[..padded];
    for first in (0..rows).step_by(LANES) {
        let panel = PanelRows::contiguous(first, (rows - first).min(LANES));
        let starts = panel.starts(dim, x.len());
        S::D::splat(0.0).store(&mut parts[0]);
        for k in 1..n {
            let tilt = &modes.tilts[k * padded..(k + 1) * padded];
            let mut total = S::D::splat(0.0);
            // As elsewhere, sums pass to `f64` after a while.
            for column in (0..padded).step_by(TILE * LANES) {
                let mut products = [zero; LANES];
                let tile = (&origin[column..], &tilt[column..]);
                match (padded - column) / LANES {
                    1 => products_of_tile::<S, T, 1>(x, &starts, column, tile, &mut products),
                    2 => products_of_tile::<S, T, 2>(x, &starts, column, tile, &mut products),
                    3 => products_of_tile::<S, T, 3>(x, &starts, column, tile, &mut products),
                    _ => products_of_tile::<S, T, TILE>(x, &starts, column, tile, &mut products),
                }
                total = total + T::widen::<S>(T::V::<S>::sums(&products));
            }
            let ratio =
                modes.log_masses[k] - modes.log_masses[0] - 0.5 * modes.precision * modes.distances[k * n];
            (total + S::D::splat(ratio)).store(&mut parts[k]);
        }
        if let [first, second] = &mut parts[..n] {
            let [a, b] = share_two::<S, T>(T::narrow::<S>(S::D::load(second)));
            T::widen::<S>(a).store(first);
            T::widen::<S>(b).store(second);
        } else {
            normalise_parts::<S>(&mut parts[..n]);
        }
        keep::<S, T>(&panel, &parts[..n], kept);
        for (part, mass) in parts.iter().zip(&mut *masses) {
            let mut rounded = T::widen::<S>(T::narrow::<S>(S::D::load(part)));
            if panel.lanes < LANES {
                // Lanes that repeat the last point do not count.
                let mut lanes = to_lanes::<S>(rounded);
                lanes[panel.lanes..].fill(0.0);
                rounded = S::D::load(&lanes);
            }
            (S::D::load(mass) + rounded).store(mass);
        }
    }
}

/// `(x - origin) tilt` of 16 rows, summed over the `V` vectors of columns from `column` on, lane by lane.
#[inline(always)]
fn products_of_tile<S: Simd, T: Real, const V: usize>(
    x: &[T],
    starts: &[usize; LANES],
    column: usize,
    (origin, tilt): (&[T], &[T]),
    products: &mut [T::V<S>; LANES],
) {
    /// How far ahead data is asked for, in numbers: about a panel.
    const AHEAD: usize = 1024;
    let zero = T::splat::<S>(T::ZERO);
    let (mut origins, mut tilts) = ([zero; V], [zero; V]);
    for v in 0..V {
        origins[v] = load_some::<S, T>(&origin[v * LANES..]);
        tilts[v] = load_some::<S, T>(&tilt[v * LANES..]);
    }
    for i in 0..LANES {
        let row = &x[starts[i] + column..];
        let mut product = zero;
        for v in 0..V {
            prefetch(row.as_ptr().wrapping_add(AHEAD + v * LANES));
            // What is read beyond the row meets a tilt of zero.
            let apart = load_some::<S, T>(&row[(v * LANES).min(row.len())..]) - origins[v];
            product = apart.mul_add(tilts[v], product);
        }
        products[i] = product;
    }
}

/// [`share_panels`] and [`sum_all`] in one for two modes and rows of `V` vectors: rows are read from memory once, and all sums stay in
/// registers.
#[inline(always)]
fn gather_pairs<S: Simd, T: Real, const V: usize>(
    modes: &Modes<T>,
    x: &[T],
    sums: &mut [T],
    masses: &mut [[f64; LANES]],
) {
    let dim = modes.dim;
    assert!(dim > (V - 1) * LANES && dim <= V * LANES, "rows of another length than the kernel's");
    let zero = T::splat::<S>(T::ZERO);
    let (mut origins, mut tilts) = ([zero; V], [zero; V]);
    for v in 0..V {
        origins[v] = load_some::<S, T>(&modes.tilts[v * LANES..]);
        tilts[v] = load_some::<S, T>(&modes.tilts[(V + v) * LANES..]);
    }
    let ratio = modes.log_masses[1] - modes.log_masses[0] - 0.5 * modes.precision * modes.distances[2];
    let mut gather = Gather::<S, T, V> {
        dim,
        origins,
        tilts,
        ratio: S::D::splat(ratio),
        sums: [[zero; V]; 2],
        masses: [S::D::splat(0.0); 2],
    };
    // Two panels at a time, and their sums after the shares of the next two: nobody waits for exponentials.
    let mut pairs = x.chunks_exact(2 * LANES * dim);
    if let Some(first) = pairs.next() {
        let (mut last, mut shares) = (first, gather.shares::<2>(first, LANES));
        for pair in &mut pairs {
            let next = gather.shares::<2>(pair, LANES);
            gather.sum::<2>(last, LANES, &shares);
            (last, shares) = (pair, next);
        }
        gather.sum::<2>(last, LANES, &shares);
    }
    for panel in pairs.remainder().chunks(LANES * dim) {
        let shares = gather.shares::<1>(panel, panel.len() / dim);
        gather.sum::<1>(panel, panel.len() / dim, &shares);
    }
    for k in 0..2 {
        for v in 0..V {
            let mut lanes = [T::ZERO; LANES];
            gather.sums[k][v].store(&mut lanes);
            let at = k * dim + v * LANES;
            let len = (dim - v * LANES).min(LANES);
            sums[at..at + len].copy_from_slice(&lanes[..len]);
        }
        gather.masses[k].store(&mut masses[k]);
    }
}

/// The sums of [`gather_pairs`] on their way.
struct Gather<S: Simd, T: Real, const V: usize> {
    dim: usize,
    origins: [T::V<S>; V],
    tilts: [T::V<S>; V],
    ratio: S::D,
    sums: [[T::V<S>; V]; 2],
    masses: [S::D; 2],
}

impl<S: Simd, T: Real, const V: usize> Gather<S, T, V> {
    /// Vector `v` of a row.
    ///
    /// # Safety
    /// There must be that row.
    #[inline(always)]
    unsafe fn vector(&self, x: &[T], row: usize, v: usize) -> T::V<S> {
        // SAFETY: rows have `dim` numbers, which end within the last vector.
        unsafe {
            let at = x.as_ptr().add(row * self.dim + v * LANES);
            if v + 1 < V {
                T::V::<S>::load(&*at.cast::<[T; LANES]>())
            } else {
                T::V::<S>::load_part(std::slice::from_raw_parts(at, self.dim - (V - 1) * LANES))
            }
        }
    }

    /// The shares of `M` panels of `count` rows each, which are added to the masses.
    #[inline(always)]
    fn shares<const M: usize>(&mut self, x: &[T], count: usize) -> [[[T; LANES]; 2]; M] {
        /// How far ahead data is asked for, in bytes: memory is slow, but the second-level cache has other uses.
        const AHEAD: usize = 8192;
        let ahead = AHEAD / size_of::<T>();
        assert!(x.len() == M * count * self.dim && count <= LANES);
        let zero = T::splat::<S>(T::ZERO);
        let mut logs = [zero; M];
        for m in 0..M {
            let mut products = [zero; LANES];
            for i in 0..count {
                let (row, mut sum) = (m * count + i, zero);
                for v in 0..V {
                    prefetch(x.as_ptr().wrapping_add(ahead + row * self.dim + v * LANES));
                    // SAFETY: there are as many rows.
                    let apart = unsafe { self.vector(x, row, v) } - self.origins[v];
                    sum = apart.mul_add(self.tilts[v], sum);
                }
                products[i] = sum;
            }
            logs[m] = T::narrow::<S>(T::widen::<S>(T::V::<S>::sums(&products)) + self.ratio);
        }
        let mut c = [[[T::ZERO; LANES]; 2]; M];
        for m in 0..M {
            let shares = share_two::<S, T>(logs[m]);
            for k in 0..2 {
                let mut share = shares[k];
                share.store(&mut c[m][k]);
                if count < LANES {
                    // Lanes without a row do not count.
                    c[m][k][count..].fill(T::ZERO);
                    share = T::V::<S>::load(&c[m][k]);
                }
                self.masses[k] = self.masses[k] + T::widen::<S>(share);
            }
        }
        c
    }

    /// Adds the rows of `M` panels of `count` rows each, by their shares.
    #[inline(always)]
    fn sum<const M: usize>(&mut self, x: &[T], count: usize, c: &[[[T; LANES]; 2]; M]) {
        assert!(x.len() == M * count * self.dim && count <= LANES);
        let mut sums = self.sums;
        for m in 0..M {
            for i in 0..count {
                let (c0, c1) = (T::splat::<S>(c[m][0][i]), T::splat::<S>(c[m][1][i]));
                for v in 0..V {
                    // SAFETY: there are as many rows.
                    let x = unsafe { self.vector(x, m * count + i, v) };
                    sums[0][v] = c0.mul_add(x, sums[0][v]);
                    sums[1][v] = c1.mul_add(x, sums[1][v]);
                }
            }
        }
        self.sums = sums;
    }
}

/// The shares of two modes from the logarithm of their ratio, second to first, in the precision in which they are needed.
#[inline(always)]
pub(super) fn share_two<S: Simd, T: Real>(log: T::V<S>) -> [T::V<S>; 2] {
    let (zero, one) = (T::splat::<S>(T::ZERO), T::splat::<S>(T::ONE));
    let e = T::exp::<S>(log.if_greater(zero, zero - log, log));
    // What is lost in rounding anyway is zero, so that nothing below has to handle denormal numbers.
    let negligible = T::splat::<S>(T::from_f64(NEGLIGIBLE));
    let e = e.if_greater(negligible, e, zero);
    let large = one.div(one + e);
    let small = e * large;
    [log.if_greater(zero, small, large), log.if_greater(zero, large, small)]
}

/// The first 16 numbers; zeros where they run out.
#[inline(always)]
fn load_some<S: Simd, T: Real>(from: &[T]) -> T::V<S> {
    match from.first_chunk() {
        Some(whole) => T::V::<S>::load(whole),
        None => T::V::<S>::load_part(from),
    }
}

/// Columns that [`sum_tile`] carries along at most, in vectors.
const TILE: usize = 4;

/// `sums[k][j] = sum_i c[i][first + k] x[i][j]` for `K` modes and the `V` vectors of columns from `column` on.
#[inline(always)]
fn sum_tile<S: Simd, T: Real, const K: usize, const V: usize>(
    x: &[T],
    c: &[T],
    (dim, modes): (usize, usize),
    (first, column): (usize, usize),
    sums: &mut [T],
) {
    let rows = x.len() / dim;
    let last = (dim - column - (V - 1) * LANES).min(LANES);
    assert!(x.len() == rows * dim && c.len() >= rows * modes, "not as many rows as coefficients");
    assert!(first + K <= modes && dim > column + (V - 1) * LANES, "not as many columns or modes");
    let mut acc = [[T::splat::<S>(T::ZERO); V]; K];
    for i in 0..rows {
        let mut weight = [T::splat::<S>(T::ZERO); K];
        for k in 0..K {
            // SAFETY: every row has `modes` coefficients, as was checked.
            weight[k] = T::splat::<S>(unsafe { *c.get_unchecked(i * modes + first + k) });
        }
        for v in 0..V {
            // SAFETY: every row has `dim` numbers, and these end with the last vector or after it.
            let x = unsafe {
                let at = x.as_ptr().add(i * dim + column + v * LANES);
                if v + 1 < V {
                    T::V::<S>::load(&*at.cast::<[T; LANES]>())
                } else {
                    T::V::<S>::load_part(std::slice::from_raw_parts(at, last))
                }
            };
            for k in 0..K {
                acc[k][v] = weight[k].mul_add(x, acc[k][v]);
            }
        }
    }
    for k in 0..K {
        for v in 0..V {
            let mut lanes = [T::ZERO; LANES];
            acc[k][v].store(&mut lanes);
            let at = k * dim + column + v * LANES;
            let len = (dim - column - v * LANES).min(LANES);
            sums[at..at + len].copy_from_slice(&lanes[..len]);
        }
    }
}

#[inline(always)]
fn sum_modes<S: Simd, T: Real, const K: usize>(
    x: &[T],
    c: &[T],
    shape: (usize, usize),
    first: usize,
    sums: &mut [T],
) {
    let dim = shape.0;
    for column in (0..dim).step_by(TILE * LANES) {
        let at = (first, column);
        match (dim - column).div_ceil(LANES) {
            1 => sum_tile::<S, T, K, 1>(x, c, shape, at, sums),
            2 => sum_tile::<S, T, K, 2>(x, c, shape, at, sums),
            3 => sum_tile::<S, T, K, 3>(x, c, shape, at, sums),
            _ => sum_tile::<S, T, K, TILE>(x, c, shape, at, sums),
        }
    }
}

#[inline(always)]
fn sum_all<S: Simd, T: Real>(x: &[T], c: &[T], dim: usize, modes: usize, sums: &mut [T]) {
    for first in (0..modes).step_by(2) {
        if first + 1 < modes {
            sum_modes::<S, T, 2>(x, c, (dim, modes), first, &mut sums[first * dim..(first + 2) * dim]);
        } else {
            sum_modes::<S, T, 1>(x, c, (dim, modes), first, &mut sums[first * dim..(first + 1) * dim]);
        }
    }
}

dispatch! {
    pub(super) fn weigh{T: Real}{T}(
        kept: &[T], weights: &[f64], modes: usize, c: &mut [T], masses: &mut [f64], rounded: &mut [f64],
    ) = weigh_panels
}
dispatch! {
    pub(super) fn share{T: Real}{T}(
        modes: &Modes<T>, x: &[T], kept: &mut [T], parts: &mut [[f64; LANES]], masses: &mut [[f64; LANES]],
    ) = share_panels
}
dispatch! {
    pub(super) fn gather_some{T: Real, const V: usize}{T, V}(
        modes: &Modes<T>, x: &[T], sums: &mut [T], masses: &mut [[f64; LANES]],
    ) = gather_pairs
}
dispatch! { pub(super) fn sum_rows{T: Real}{T}(x: &[T], c: &[T], dim: usize, modes: usize, sums: &mut [T]) = sum_all }
