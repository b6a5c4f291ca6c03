//! What a move does to the weights, and the leave-one-out correction.

use super::step::{Arrays, Step};
use super::sums::share_two;
use super::{
    MAX_MODES, Modes, PanelRows, QUADS, count, four, keep, kept_of, normalise_pairs, soft_max, to_lanes,
};
use crate::random::ars::PanelIds;
use crate::random::math::{exp_f64, exps_f64};
use crate::real::Real;
use crate::simd::{LANES, Simd, Vector, dispatch};

/// What the leave-one-out correction needs, mode by mode.
#[derive(Clone, Debug, Default)]
pub struct Own<T> {
    /// Response of the means, padded like the means.
    pub response: Vec<T>,
    /// Response times average gradient of the means, padded like the means.
    pub product: Vec<T>,
    /// Response and average gradient of the log-masses.
    pub masses: Vec<[f64; 2]>,
    /// `log sum exp A` of the ensemble.
    pub log_sum: f64,
}

/// What the pass over the dimensions says of a panel.
#[derive(Default)]
pub(super) struct Sums {
    pub(super) forward: [f64; LANES],
    pub(super) squares: [[f64; LANES]; MAX_MODES],
    pub(super) along: [[f64; LANES]; MAX_MODES],
    pub(super) own_squares: [[f64; LANES]; MAX_MODES],
    pub(super) own_along: [[f64; LANES]; MAX_MODES],
}

/// Adds to a sum, or begins it.
#[inline(always)]
pub(super) fn add_to<S: Simd>(first: bool, v: S::D, sum: &mut [f64; LANES]) {
    if first { v } else { S::D::load(sum) + v }.store(sum)
}

/// Updates energies, log-weights and responsibilities of `M` panels that have moved. Adds to their would-be acceptances, and
/// returns the first walker whose weight is no longer finite.
#[inline(always)]
pub(super) fn weigh_panels<S: Simd, T: Real, const K: usize, const OWN: bool, const M: usize>(
    step: &Step<'_, T>,
    panels: &[(PanelRows, PanelIds)],
    arrays: &mut Arrays<'_, T>,
    sums: &[Sums],
    parts: &mut [[f64; LANES]; MAX_MODES],
    accepted: &mut S::D,
) -> Option<u64> {
    let (from, to) = (step.from, step.to);
    let n = count::<T, K>(from);
    let d = S::D::splat;
    let zero = [d(0.0); M];
    let (mut u_new, mut drift_square, mut drift_along) = (zero, zero, zero);
    let mut r = [zero; MAX_MODES];
    if n == 2 && size_of::<T>() == 4 {
        // Shares are rounded to the walkers' precision anyway, and the sums they come from were in it.
        let half = d(0.5 * to.precision);
        for m in 0..M {
            let a = S::D::load(&sums[m].squares[0]).neg_mul_add(half, d(to.log_masses[0]));
            let b = S::D::load(&sums[m].squares[1]).neg_mul_add(half, d(to.log_masses[1]));
            let [first, second] = share_two::<S, T>(T::narrow::<S>(b - a));
            (r[0][m], r[1][m]) = (T::widen::<S>(first), T::widen::<S>(second));
            let large = first.if_greater(second, first, second);
            u_new[m] = T::widen::<S>(T::ln_of_half::<S>(large)) - a.if_greater(b, a, b);
        }
    } else if n == 2 {
        let half = d(0.5 * to.precision);
        let mut logs = [zero; 2];
        for m in 0..M {
            for k in 0..2 {
                let square = S::D::load(&sums[m].squares[k]);
                logs[k][m] = square.neg_mul_add(half, d(to.log_masses[k]));
            }
        }
        u_new = normalise_pairs::<S, M>(&mut logs);
        for m in 0..M {
            u_new[m] = d(0.0) - u_new[m];
        }
        [r[0], r[1]] = logs;
    } else {
        for m in 0..M {
            parts[..n].copy_from_slice(&sums[m].squares[..n]);
            u_new[m] = soft_max::<S, T>(to, &mut parts[..n]);
            for k in 0..n {
                r[k][m] = S::D::load(&parts[k]);
            }
        }
    }
    for k in 0..n {
        for m in 0..M {
            drift_square[m] = r[k][m].mul_add(S::D::load(&sums[m].squares[k]), drift_square[m]);
            drift_along[m] = r[k][m].mul_add(S::D::load(&sums[m].along[k]), drift_along[m]);
            for l in 0..k {
                let both = r[k][m] * r[l][m];
                drift_square[m] = both.neg_mul_add(d(to.distances[k * n + l]), drift_square[m]);
            }
        }
    }
    let precision = to.precision;
    let mut gains = zero;
    for m in 0..M {
        let backward = drift_square[m] * d(0.25 * step.h * precision * precision);
        let backward = drift_along[m].neg_mul_add(d(0.5 * precision), backward);
        let u = S::D::load(&panels[m].0.gather(arrays.u));
        let before = S::D::load(&sums[m].forward).mul_add(d(0.5 * precision), u);
        gains[m] = before - (u_new[m] + backward);
    }
    let mut acceptances = zero;
    if size_of::<T>() == 4 {
        for m in 0..M {
            acceptances[m] = T::widen::<S>(T::exp::<S>(T::narrow::<S>(gains[m])));
        }
    } else {
        acceptances = exps_f64::<S, M>(&gains);
    }
    let mut bad = None;
    for m in 0..M {
        let (panel, ids) = &panels[m];
        let mut a = S::D::load(&panel.gather(arrays.a));
        if OWN {
            let old = kept_of::<S, T>(panel, n, arrays.kept);
            a = a + own_gain::<S, T>(from, step.own, &old[..n], &sums[m], a);
        }
        a = gains[m].mul_add(d(step.weigh), a);
        let mut acceptance = acceptances[m].if_greater(d(1.0), d(1.0), acceptances[m]);
        if panel.lanes < LANES {
            // Lanes that repeat the last walker do not count.
            let mut lanes = to_lanes::<S>(acceptance);
            lanes[panel.lanes..].fill(0.0);
            acceptance = S::D::load(&lanes);
        }
        *accepted = *accepted + acceptance;
        panel.scatter(&to_lanes::<S>(u_new[m]), arrays.u);
        panel.scatter(&to_lanes::<S>(a), arrays.a);
        for k in 0..n {
            r[k][m].store(&mut parts[k]);
        }
        keep::<S, T>(panel, &parts[..n], arrays.kept);
        let finite = gains[m].greater(d(f64::NEG_INFINITY)) & d(f64::INFINITY).greater(gains[m]);
        let lane = finite.trailing_ones() as usize;
        bad = bad.or((lane < panel.lanes).then(|| ids.get(lane)));
    }
    bad
}

/// Adds four dimensions to the sums that [`own_gain`] needs of one mode.
#[inline(always)]
fn add_own<S: Simd, T: Real>(
    mean: [T; 4],
    own: &Own<T>,
    at: usize,
    x: &[T::V<S>; 4],
    (square, along): (&mut T::V<S>, &mut T::V<S>),
) {
    let (response, product) = (four(&own.response, at), four(&own.product, at));
    for c in 0..4 {
        let apart = x[c] - T::splat::<S>(mean[c]);
        *square = (apart * T::splat::<S>(response[c])).mul_add(apart, *square);
        *along = apart.mul_add(T::splat::<S>(product[c]), *along);
    }
}

/// What leaving a walker's own push out adds to its log-weight `a`.
#[inline(always)]
fn own_gain<S: Simd, T: Real>(modes: &Modes<T>, own: &Own<T>, r: &[T::V<S>], sums: &Sums, a: S::D) -> S::D {
    let d = S::D::splat;
    let mut product = d(0.0);
    for (k, r) in r.iter().enumerate() {
        let r = T::widen::<S>(*r);
        let v = r * d(modes.precision);
        product = (v * v).mul_add(S::D::load(&sums.own_squares[k]), product);
        product = v.mul_add(S::D::load(&sums.own_along[k]), product);
        let [response, mean] = own.masses[k];
        product = (r * d(response)).mul_add(r + d(mean), product);
    }
    let p = exp_f64::<S>(a - d(own.log_sum));
    // A walker that carries all the weight has no others to be judged by.
    d(0.5).if_greater(p, p.div(d(1.0) - p) * product, d(0.0))
}

/// Leaves the own push of contiguous walkers out of their log-weights, where they stand.
#[inline(always)]
fn leave_out<S: Simd, T: Real>(modes: &Modes<T>, own: &Own<T>, x: &[T], kept: &[T], a: &mut [f64]) {
    let n = modes.count;
    let zero = T::splat::<S>(T::ZERO);
    let mut sums = Sums::default();
    for first in (0..a.len()).step_by(LANES) {
        let panel = PanelRows::contiguous(first, (a.len() - first).min(LANES));
        let starts = panel.starts(modes.dim, x.len());
        let r = kept_of::<S, T>(&panel, n, kept);
        for group in (0..modes.stride / 4).step_by(QUADS) {
            let (mut square_sums, mut along_sums) = ([zero; MAX_MODES], [zero; MAX_MODES]);
            for quad in group..(group + QUADS).min(modes.stride / 4) {
                let columns = (modes.dim - 4 * quad).min(4);
                // SAFETY: `starts` was checked, and no more columns are read than there are.
                let x = unsafe { T::V::<S>::load_columns(x.as_ptr().add(4 * quad), &starts, columns) };
                for k in 0..n {
                    let at = k * modes.stride + 4 * quad;
                    let sums = (&mut square_sums[k], &mut along_sums[k]);
                    add_own::<S, T>(four(&modes.means, at), own, at, &x, sums);
                }
            }
            for k in 0..n {
                add_to::<S>(group == 0, T::widen::<S>(square_sums[k]), &mut sums.own_squares[k]);
                add_to::<S>(group == 0, T::widen::<S>(along_sums[k]), &mut sums.own_along[k]);
            }
        }
        let before = S::D::load(&panel.gather(a));
        let after = before + own_gain::<S, T>(modes, own, &r[..n], &sums, before);
        panel.scatter(&to_lanes::<S>(after), a);
    }
}

dispatch! {
    /// Leaves the own push of contiguous walkers out of their log-weights, where they stand; at most [`MAX_MODES`] modes.
    pub(super) fn leave_own_out{T: Real}{T}(modes: &Modes<T>, own: &Own<T>, x: &[T], kept: &[T], a: &mut [f64]) = leave_out
}
