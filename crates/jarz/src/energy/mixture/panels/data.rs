//! All that a data gradient needs, from points in [panels](crate::panels): a point per lane, so that nothing is summed over lanes before the end.

use super::sums::share_two;
use super::{MAX_MODES, Modes, normalise_parts};
use crate::panels::{Lanes, PanelsOf};
use crate::real::Real;
use crate::simd::{LANES, Simd, Vector, dispatch, prefetch};

/// Panels that are taken together if they stay in the first-level cache, and if not.
const TOGETHER: [usize; 2] = [4, 2];
/// How much of them may be in that cache, in bytes.
const FIRST_LEVEL: usize = 32 * 1024;
/// Dimensions after which sums pass from the points' precision to `f64`.
const TERMS: usize = 64;

/// Where the kernel puts what it needs for a moment.
#[derive(Default)]
pub struct DataBench<T> {
    /// `sum_i r_ik x_ij` of the points of each lane, mode by mode.
    sums: Vec<Lanes<T>>,
    /// Shares of the panels at hand, mode by mode.
    shares: Vec<Lanes<T>>,
}

/// `sums[k dim + j] = sum_i r_ik x_ij` and `masses[k] = sum_i r_ik`, the latter lane by lane.
///
/// As all modes have the same width, the logarithm of the ratio of their shares is linear in `x`, and one product per mode does:
/// `log r_k / r_0 = l_k - l_0 - precision |m_k - m_0|^2 / 2 + precision (x - m_0).(m_k - m_0)`.
#[inline(always)]
fn gather_panels<S: Simd, T: Real, const K: usize>(
    modes: &Modes<T>,
    x: PanelsOf<'_, T>,
    sums: &mut [T],
    masses: &mut [[f64; LANES]],
    bench: &mut DataBench<T>,
) {
    let (n, dim) = (if K > 0 { K } else { modes.count }, modes.dim);
    assert!(x.vectors.len() == x.rows.div_ceil(LANES) * dim && sums.len() == n * dim && masses.len() == n);
    let zeros = Lanes([T::ZERO; LANES]);
    bench.sums.clear();
    bench.sums.resize(n * dim, zeros);
    bench.shares.resize(n * TOGETHER[0], zeros);
    masses.fill([0.0; LANES]);
    let mut rest = x.vectors;
    let mut rows = x.rows;
    macro_rules! groups {
        ($m:expr) => {
            while rows >= $m * LANES {
                let (group, others) = rest.split_at($m * dim);
                gather_group::<S, T, K, { $m }>(modes, group, LANES, bench, masses);
                (rest, rows) = (others, rows - $m * LANES);
            }
        };
    }
    if TOGETHER[0] * dim * size_of::<Lanes<T>>() <= FIRST_LEVEL {
        groups!(TOGETHER[0]);
    }
    groups!(TOGETHER[1]);
    groups!(1);
    if rows > 0 {
        gather_group::<S, T, K, 1>(modes, rest, rows, bench, masses);
    }
    for (sums, lanes) in sums.chunks_mut(LANES).zip(bench.sums.chunks(LANES)) {
        let mut vectors = [T::splat::<S>(T::ZERO); LANES];
        for (vector, Lanes(lanes)) in vectors.iter_mut().zip(lanes) {
            *vector = T::V::<S>::load(lanes);
        }
        let mut out = [T::ZERO; LANES];
        T::V::<S>::sums(&vectors).store(&mut out);
        sums.copy_from_slice(&out[..sums.len()]);
    }
}

/// Adds `M` panels of `count` points each.
#[inline(always)]
fn gather_group<S: Simd, T: Real, const K: usize, const M: usize>(
    modes: &Modes<T>,
    x: &[Lanes<T>],
    count: usize,
    bench: &mut DataBench<T>,
    masses: &mut [[f64; LANES]],
) {
    let (n, dim) = (if K > 0 { K } else { modes.count }, modes.dim);
    let padded = dim.next_multiple_of(LANES);
    let DataBench { sums, shares } = bench;
    assert!(x.len() == M * dim && modes.tilts.len() == n * padded && sums.len() == n * dim);
    assert!(shares.len() >= n * M && count <= LANES && masses.len() == n && n <= MAX_MODES);
    let mut logs = [[S::D::splat(0.0); M]; MAX_MODES];
    for k in 1..n {
        let ratio =
            modes.log_masses[k] - modes.log_masses[0] - 0.5 * modes.precision * modes.distances[k * n];
        logs[k] = ratios::<S, T, M>(x, &modes.tilts[..dim], &modes.tilts[k * padded..][..dim], ratio);
    }
    for m in 0..M {
        let mut parts = [T::splat::<S>(T::ZERO); MAX_MODES];
        if n == 2 {
            [parts[0], parts[1]] = share_two::<S, T>(T::narrow::<S>(logs[1][m]));
        } else {
            let mut wide = [[0.0; LANES]; MAX_MODES];
            for k in 0..n {
                logs[k][m].store(&mut wide[k]);
            }
            normalise_parts::<S>(&mut wide[..n]);
            for k in 0..n {
                parts[k] = T::narrow::<S>(S::D::load(&wide[k]));
            }
        }
        for k in 0..n {
            let Lanes(lanes) = &mut shares[k * M + m];
            parts[k].store(lanes);
            if count < LANES {
                // Lanes without a point do not count.
                lanes[count..].fill(T::ZERO);
                parts[k] = T::V::<S>::load(lanes);
            }
            (S::D::load(&masses[k]) + T::widen::<S>(parts[k])).store(&mut masses[k]);
        }
    }
    if K == 2 {
        let (first, second) = sums.split_at_mut(dim);
        let mut shares_of = [[T::splat::<S>(T::ZERO); M]; 2];
        for k in 0..2 {
            for m in 0..M {
                shares_of[k][m] = T::V::<S>::load(&shares[k * M + m].0);
            }
        }
        for (j, (Lanes(a), Lanes(b))) in first.iter_mut().zip(second).enumerate() {
            let (mut of_first, mut of_second) = (T::V::<S>::load(a), T::V::<S>::load(b));
            ask_for::<T, M>(x, dim + j);
            for m in 0..M {
                // SAFETY: `x` has `M dim` vectors, as was checked.
                let x = T::V::<S>::load(unsafe { &x.get_unchecked(m * dim + j).0 });
                of_first = shares_of[0][m].mul_add(x, of_first);
                of_second = shares_of[1][m].mul_add(x, of_second);
            }
            of_first.store(a);
            of_second.store(b);
        }
        return;
    }
    for (sums, shares) in sums.chunks_exact_mut(dim).zip(shares.chunks_exact(M)) {
        for (j, Lanes(sum)) in sums.iter_mut().enumerate() {
            let mut total = T::V::<S>::load(sum);
            for (m, Lanes(share)) in shares.iter().enumerate() {
                total = T::V::<S>::load(share).mul_add(T::V::<S>::load(&x[m * dim + j].0), total);
            }
            total.store(sum);
        }
    }
}

/// Asks for a part of the `M` panels after these, of which each of the two passes, the second after the first, asks for one half.
#[inline(always)]
fn ask_for<T, const M: usize>(x: &[Lanes<T>], part: usize) {
    let bytes = M * size_of::<Lanes<T>>() / 2;
    let next = x.as_ptr_range().end.cast::<u8>();
    for line in 0..bytes.div_ceil(64) {
        prefetch(next.wrapping_add(part * bytes + 64 * line));
    }
}

/// `log r_k / r_0` of `M` panels.
#[inline(always)]
fn ratios<S: Simd, T: Real, const M: usize>(
    x: &[Lanes<T>],
    origin: &[T],
    tilt: &[T],
    ratio: f64,
) -> [S::D; M] {
    let dim = origin.len();
    assert!(x.len() == M * dim && tilt.len() == dim);
    let mut totals = [S::D::splat(ratio); M];
    for from in (0..dim).step_by(TERMS) {
        let to = (from + TERMS).min(dim);
        let mut products = [T::splat::<S>(T::ZERO); M];
        for j in from..to {
            let (origin, tilt) = (T::splat::<S>(origin[j]), T::splat::<S>(tilt[j]));
            ask_for::<T, M>(x, j);
            for m in 0..M {
                // SAFETY: `x` has `M dim` vectors, as was checked.
                let Lanes(x) = unsafe { x.get_unchecked(m * dim + j) };
                products[m] = (T::V::<S>::load(x) - origin).mul_add(tilt, products[m]);
            }
        }
        for m in 0..M {
            totals[m] = totals[m] + T::widen::<S>(products[m]);
        }
    }
    totals
}

dispatch! {
    pub(super) fn gather_some{T: Real, const K: usize}{T, K}(
        modes: &Modes<T>, x: PanelsOf<'_, T>, sums: &mut [T], masses: &mut [[f64; LANES]], bench: &mut DataBench<T>,
    ) = gather_panels
}
