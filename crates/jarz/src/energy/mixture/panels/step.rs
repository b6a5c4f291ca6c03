//! The step: noise, move, weight, and the leave-one-out correction.

use super::{MAX_MODES, Modes, PanelRows, QUADS, count, four, keep, kept_of, soft_max, to_lanes};
use crate::random::Key;
use crate::random::math::exp_f64;
use crate::random::normal::Stream;
use crate::real::Real;
use crate::simd::{LANES, Simd, Vector, dispatch, prefetch};

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

/// One ULA step of a panel.
pub struct Step<'a, T> {
    pub from: &'a Modes<T>,
    pub to: &'a Modes<T>,
    pub own: &'a Own<T>,
    pub key: Key,
    pub h: f64,
    pub noise_scale: f64,
    /// Share of the gain that goes to the log-weight: one, or zero for walkers without weights.
    pub weigh: f64,
}

/// The arrays a panel is taken from.
pub struct Arrays<'a, T> {
    pub x: &'a mut [T],
    pub kept: &'a mut [T],
    pub u: &'a mut [f64],
    pub a: &'a mut [f64],
}

/// Moves a panel: eq. `X:A:k`. Returns the sum of the would-be acceptances, and the first lane whose weight is no longer finite.
///
/// With `c = precision (x - sum_k r_k m_k)` the old drift and `y = x + move` the new position, the gain of the log-weight
/// needs `move.c`, `|c|^2`, and at `y` the distances to the new means, `move.c'` and `|c'|^2`. The responsibilities at `y`
/// are not known before all its distances are, but `move.c'` is the mean of `precision move.(y - m_k)` over them, and
/// `|c'|^2 = precision^2 (sum_k r_k |y - m_k|^2 - sum_{k<l} r_k r_l |m_k - m_l|^2)`: one pass over the dimensions suffices.
#[inline(always)]
fn move_panel<S: Simd, T: Real, const K: usize, const OWN: bool>(
    step: &Step<'_, T>,
    panel: &PanelRows,
    ids: &[u64; LANES],
    arrays: &mut Arrays<'_, T>,
) -> (f64, Option<usize>) {
    let (from, to) = (step.from, step.to);
    let (n, dim, stride) = (count::<T, K>(from), from.dim, from.stride);
    let starts = panel.starts(dim, arrays.x.len());
    let zero = T::splat::<S>(T::ZERO);
    let d = S::D::splat;

    let r = kept_of::<S, T>(panel, n, arrays.kept);

    let stream = Stream::<S>::new(&step.key, ids);
    let scale = T::splat::<S>(T::from_f64(step.noise_scale));
    let pull = T::splat::<S>(T::from_f64(step.h * from.precision));
    let half_pull = T::splat::<S>(T::from_f64(0.5 * step.h * from.precision));
    let mut forward = d(0.0);
    let (mut squares, mut along) = ([d(0.0); MAX_MODES], [d(0.0); MAX_MODES]);
    let (mut own_squares, mut own_along) = ([d(0.0); MAX_MODES], [d(0.0); MAX_MODES]);
    for group in (0..stride / 4).step_by(QUADS) {
        let mut forward_sum = zero;
        let (mut square_sums, mut along_sums) = ([zero; MAX_MODES], [zero; MAX_MODES]);
        let (mut own_square_sums, mut own_along_sums) = ([zero; MAX_MODES], [zero; MAX_MODES]);
        let end = (group + QUADS).min(stride / 4);
        let mut later = [zero; 4];
        for quad in group..end {
            let columns = (dim - 4 * quad).min(4);
            let at = unsafe { arrays.x.as_mut_ptr().add(4 * quad) };
            // SAFETY: `starts` was checked, and no more columns are read than there are.
            let mut x = unsafe { T::V::<S>::load_columns(at, &starts, columns) };
            // Panels do not walk through memory in regular steps: the next rows have to be asked for.
            for line in 0..size_of::<T>() {
                prefetch(at.wrapping_add(
                    starts[0] + LANES * dim + 4 * (LANES - 1) * quad + line * 64 / size_of::<T>(),
                ));
            }
            // Noise comes for two groups of four dimensions at a time.
            let mut noise = later;
            if (quad - group) % 2 == 0 {
                if quad + 1 < end {
                    [noise, later] = T::normals::<S>(&stream, quad as u32, scale);
                } else {
                    noise = T::last_normals::<S>(&stream, quad as u32, scale);
                }
            }
            for c in columns..4 {
                noise[c] = zero;
            }
            // The mean of the means is the first one and the shares of the others' offsets.
            let origin = four(&from.offsets, 4 * quad);
            let mut drifts = [zero; 4];
            for c in 0..4 {
                drifts[c] = x[c] - T::splat::<S>(origin[c]);
            }
            for k in 1..n {
                let offset = four(&from.offsets, k * stride + 4 * quad);
                for c in 0..4 {
                    drifts[c] = r[k].neg_mul_add(T::splat::<S>(offset[c]), drifts[c]);
                }
            }
            if OWN {
                for k in 0..n {
                    let at = k * stride + 4 * quad;
                    let sums = (&mut own_square_sums[k], &mut own_along_sums[k]);
                    add_own::<S, T>(four(&from.means, at), step.own, at, &x, sums);
                }
            }
            let mut by = [zero; 4];
            for c in 0..4 {
                let drift = drifts[c];
                by[c] = drift.neg_mul_add(pull, noise[c]);
                forward_sum = drift.mul_add(drift.neg_mul_add(half_pull, noise[c]), forward_sum);
                x[c] = x[c] + by[c];
            }
            for k in 0..n {
                let new = four(&to.means, k * stride + 4 * quad);
                for c in 0..4 {
                    let apart = x[c] - T::splat::<S>(new[c]);
                    square_sums[k] = apart.mul_add(apart, square_sums[k]);
                    along_sums[k] = apart.mul_add(by[c], along_sums[k]);
                }
            }
            // SAFETY: as above.
            unsafe { T::V::<S>::store_columns(x, at, &starts, columns) };
        }
        forward = forward + T::widen::<S>(forward_sum);
        for k in 0..n {
            squares[k] = squares[k] + T::widen::<S>(square_sums[k]);
            along[k] = along[k] + T::widen::<S>(along_sums[k]);
            if OWN {
                own_squares[k] = own_squares[k] + T::widen::<S>(own_square_sums[k]);
                own_along[k] = own_along[k] + T::widen::<S>(own_along_sums[k]);
            }
        }
    }

    let mut parts = [[0.0; LANES]; MAX_MODES];
    for k in 0..n {
        squares[k].store(&mut parts[k]);
    }
    let u_new = soft_max::<S, T>(to, &mut parts[..n]);
    let (mut drift_square, mut drift_along) = (d(0.0), d(0.0));
    for k in 0..n {
        let r = S::D::load(&parts[k]);
        drift_square = r.mul_add(squares[k], drift_square);
        drift_along = r.mul_add(along[k], drift_along);
        for l in 0..k {
            let both = r * S::D::load(&parts[l]);
            drift_square = both.neg_mul_add(d(to.distances[k * n + l]), drift_square);
        }
    }
    let precision = to.precision;
    let backward = drift_square * d(0.25 * step.h * precision * precision);
    let backward = drift_along.neg_mul_add(d(0.5 * precision), backward);
    let mut a = S::D::load(&panel.gather(arrays.a));
    let before = forward.mul_add(d(0.5 * precision), S::D::load(&panel.gather(arrays.u)));
    let gain = before - (u_new + backward);

    if OWN {
        a = a + own_gain::<S, T>(from, step.own, &r[..n], &own_squares, &own_along, a);
    }
    a = gain.mul_add(d(step.weigh), a);
    let accepted = exp_f64::<S>(gain);
    let accepted = to_lanes::<S>(accepted.if_greater(d(1.0), d(1.0), accepted));
    let gains = to_lanes::<S>(gain);
    panel.scatter(&to_lanes::<S>(u_new), arrays.u);
    panel.scatter(&to_lanes::<S>(a), arrays.a);
    keep::<S, T>(panel, &parts[..n], arrays.kept);
    let bad = gains[..panel.lanes].iter().position(|g| !g.is_finite());
    (accepted[..panel.lanes].iter().sum(), bad)
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
fn own_gain<S: Simd, T: Real>(
    modes: &Modes<T>,
    own: &Own<T>,
    r: &[T::V<S>],
    squares: &[S::D],
    along: &[S::D],
    a: S::D,
) -> S::D {
    let d = S::D::splat;
    let mut product = d(0.0);
    for (k, r) in r.iter().enumerate() {
        let r = T::widen::<S>(*r);
        let v = r * d(modes.precision);
        product = (v * v).mul_add(squares[k], product);
        product = v.mul_add(along[k], product);
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
    for first in (0..a.len()).step_by(LANES) {
        let panel = PanelRows::contiguous(first, (a.len() - first).min(LANES));
        let starts = panel.starts(modes.dim, x.len());
        let r = kept_of::<S, T>(&panel, n, kept);
        let (mut squares, mut along) = ([S::D::splat(0.0); MAX_MODES], [S::D::splat(0.0); MAX_MODES]);
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
                squares[k] = squares[k] + T::widen::<S>(square_sums[k]);
                along[k] = along[k] + T::widen::<S>(along_sums[k]);
            }
        }
        let before = S::D::load(&panel.gather(a));
        let after = before + own_gain::<S, T>(modes, own, &r[..n], &squares, &along, before);
        panel.scatter(&to_lanes::<S>(after), a);
    }
}

dispatch! {
    /// Leaves the own push of contiguous walkers out of their log-weights, where they stand; at most [`MAX_MODES`] modes.
    pub(super) fn leave_own_out{T: Real}{T}(modes: &Modes<T>, own: &Own<T>, x: &[T], kept: &[T], a: &mut [f64]) = leave_out
}

/// Which walkers a step moves: all of the arrays, or those listed (ascending), and what their ids are.
#[derive(Clone, Copy)]
pub enum Movers<'a> {
    /// All; the id of the first.
    All(u64),
    /// Ids, and what to subtract from them to get a row.
    Some(&'a [u64], u64),
}

impl Movers<'_> {
    fn len(&self, rows: usize) -> usize {
        match self {
            Movers::All(_) => rows,
            Movers::Some(ids, _) => ids.len(),
        }
    }

    /// The panel that starts with mover `at`: its rows and ids. Walkers whose ids differ above 32 bits do not share one.
    #[inline(always)]
    fn panel(&self, at: usize, rows: usize) -> (PanelRows, [u64; LANES]) {
        let mut lanes = (self.len(rows) - at).min(LANES);
        match *self {
            Movers::All(first) => {
                let boundary = (1u64 << 32) - ((first + at as u64) & 0xffff_ffff);
                lanes = lanes.min(boundary.min(LANES as u64) as usize);
                let panel = PanelRows::contiguous(at, lanes);
                (panel, panel.rows.map(|r| first + r as u64))
            }
            Movers::Some(ids, first) => {
                let ids = &ids[at..];
                lanes = (1..lanes).find(|&l| ids[l] >> 32 != ids[0] >> 32).unwrap_or(lanes);
                let own: [u64; LANES] = std::array::from_fn(|l| ids[l.min(lanes - 1)]);
                (PanelRows { rows: own.map(|id| (id - first) as usize), lanes }, own)
            }
        }
    }
}

#[inline(always)]
fn move_panels<S: Simd, T: Real, const K: usize, const OWN: bool>(
    step: &Step<'_, T>,
    movers: Movers<'_>,
    arrays: &mut Arrays<'_, T>,
) -> (f64, Option<u64>) {
    let rows = arrays.u.len();
    let (mut accepted, mut bad) = (0.0, None);
    let mut at = 0;
    while at < movers.len(rows) {
        let (panel, ids) = movers.panel(at, rows);
        let (share, lane) = move_panel::<S, T, K, OWN>(step, &panel, &ids, arrays);
        accepted += share;
        bad = bad.or(lane.map(|l| ids[l]));
        at += panel.lanes;
    }
    (accepted, bad)
}

dispatch! {
    pub(super) fn move_some{T: Real, const K: usize, const OWN: bool}{T, K, OWN}(
        step: &Step<'_, T>, movers: Movers<'_>, arrays: &mut Arrays<'_, T>,
    ) -> (f64, Option<u64>) = move_panels
}
