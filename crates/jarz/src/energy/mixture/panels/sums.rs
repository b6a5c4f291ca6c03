//! Sums over rows: coefficients of weighted walkers.

use super::{PanelRows, to_lanes};
use crate::energy::mixture::NEGLIGIBLE;
use crate::real::{Real, sum_lanes};
use crate::simd::{LANES, Simd, Vector, dispatch};

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
    // Two rows at a time, with sums of their own: one row alone waits for its sums.
    let mut acc = [[[T::splat::<S>(T::ZERO); V]; K]; 2];
    macro_rules! add {
        ($i:expr, $to:expr) => {{
            let mut weight = [T::splat::<S>(T::ZERO); K];
            for k in 0..K {
                // SAFETY: every row has `modes` coefficients, as was checked.
                weight[k] = T::splat::<S>(unsafe { *c.get_unchecked($i * modes + first + k) });
            }
            for v in 0..V {
                // SAFETY: every row has `dim` numbers, and these end with the last vector or after it.
                let x = unsafe {
                    let at = x.as_ptr().add($i * dim + column + v * LANES);
                    if v + 1 < V {
                        T::V::<S>::load(&*at.cast::<[T; LANES]>())
                    } else {
                        T::V::<S>::load_part(std::slice::from_raw_parts(at, last))
                    }
                };
                for k in 0..K {
                    $to[k][v] = weight[k].mul_add(x, $to[k][v]);
                }
            }
        }};
    }
    for i in (0..rows & !1).step_by(2) {
        add!(i, acc[0]);
        add!(i + 1, acc[1]);
    }
    if rows % 2 == 1 {
        add!(rows - 1, acc[0]);
    }
    let [mut acc, others] = acc;
    for k in 0..K {
        for v in 0..V {
            acc[k][v] = acc[k][v] + others[k][v];
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
dispatch! { pub(super) fn sum_rows{T: Real}{T}(x: &[T], c: &[T], dim: usize, modes: usize, sums: &mut [T]) = sum_all }
