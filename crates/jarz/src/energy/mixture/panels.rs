//! The mixture's kernels, on panels of 16 walkers, one per lane.
//!
//! A walker's sums over dimensions are then plain vector sums, in one order on every processor, and its noise comes out of the generator
//! where it is needed. Rows are transposed on the fly, four dimensions at a time.

use super::NEGLIGIBLE;
use crate::random::Key;
use crate::random::math::{exp_f64, ln_f64};
use crate::random::normal::Stream;
use crate::real::{Real, sum_lanes};
use crate::simd::{Isa, LANES, Simd, Vector, dispatch, prefetch};

/// Modes that one pass over a panel can take along.
pub const MAX_MODES: usize = 8;
/// Groups of four dimensions after which sums pass from the walkers' precision to `f64`.
const QUADS: usize = 16;

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
    pub rows: [usize; LANES],
    pub lanes: usize,
}

impl PanelRows {
    /// Rows `first..first + lanes`.
    #[inline(always)]
    pub fn contiguous(first: usize, lanes: usize) -> Self {
        let mut rows = [0; LANES];
        for l in 0..LANES {
            rows[l] = first + l.min(lanes - 1);
        }
        PanelRows { rows, lanes }
    }

    /// Where each row of length `dim` starts; checked to lie within `len` numbers.
    #[inline(always)]
    fn starts(&self, dim: usize, len: usize) -> [usize; LANES] {
        let mut starts = [0; LANES];
        for l in 0..LANES {
            starts[l] = self.rows[l] * dim;
            assert!(starts[l] + dim <= len, "walkers beyond their array");
        }
        starts
    }

    /// The first row of 16 contiguous ones.
    #[inline(always)]
    fn whole(&self) -> Option<usize> {
        (self.lanes == LANES && self.rows[LANES - 1] - self.rows[0] == LANES - 1).then_some(self.rows[0])
    }

    #[inline(always)]
    fn gather(&self, from: &[f64]) -> [f64; LANES] {
        if let Some(whole) = self.whole().and_then(|row| from.get(row..)?.first_chunk()) {
            return *whole;
        }
        let mut values = [0.0; LANES];
        for l in 0..LANES {
            values[l] = from[self.rows[l]];
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
            to[self.rows[l]] = values[l];
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
        // One exponential less.
        let (a, b) = (S::D::load(first), S::D::load(second));
        let (top, low) = (a.if_greater(b, a, b), a.if_greater(b, b, a));
        let e = exp_f64::<S>(low - top);
        let e = e.if_greater(d(NEGLIGIBLE), e, d(0.0));
        let sum = d(1.0) + e;
        let large = d(1.0).div(sum);
        let small = e * large;
        a.if_greater(b, large, small).store(first);
        a.if_greater(b, small, large).store(second);
        return top + ln_f64::<S>(sum);
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
    fn leave_own_out{T: Real}{T}(modes: &Modes<T>, own: &Own<T>, x: &[T], kept: &[T], a: &mut [f64]) = leave_out
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
    fn evaluate_some{T: Real, const K: usize}{T, K}(
        modes: &Modes<T>, x: &[T], u: &mut [f64], kept: &mut [T], parts: &mut [[f64; LANES]],
    ) = evaluate_panels
}
dispatch! {
    fn move_some{T: Real, const K: usize, const OWN: bool}{T, K, OWN}(
        step: &Step<'_, T>, movers: Movers<'_>, arrays: &mut Arrays<'_, T>,
    ) -> (f64, Option<u64>) = move_panels
}

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
        normalise_parts::<S>(&mut parts[..n]);
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
    const AHEAD: usize = 1024;
    let (dim, rows) = (modes.dim, x.len() / modes.dim);
    let tail = dim - (V - 1) * LANES;
    let zero = T::splat::<S>(T::ZERO);
    let (mut origins, mut tilts) = ([zero; V], [zero; V]);
    for v in 0..V {
        origins[v] = load_some::<S, T>(&modes.tilts[v * LANES..]);
        tilts[v] = load_some::<S, T>(&modes.tilts[(V + v) * LANES..]);
    }
    let ratio = modes.log_masses[1] - modes.log_masses[0] - 0.5 * modes.precision * modes.distances[2];
    let mut acc = [[zero; V]; 2];
    let mut mass = [S::D::splat(0.0); 2];
    for first in (0..rows).step_by(LANES) {
        let count = (rows - first).min(LANES);
        let panel = &x[first * dim..(first + count) * dim];
        let mut products = [zero; LANES];
        for (row, product) in panel.chunks_exact(dim).zip(&mut products) {
            let mut sum = zero;
            for v in 0..V {
                prefetch(row.as_ptr().wrapping_add(AHEAD + v * LANES));
                let apart = load_vector::<S, T, V>(row, v, tail) - origins[v];
                sum = apart.mul_add(tilts[v], sum);
            }
            *product = sum;
        }
        let total = T::widen::<S>(T::V::<S>::sums(&products)) + S::D::splat(ratio);
        let mut parts = [[0.0; LANES]; 2];
        total.store(&mut parts[1]);
        normalise_parts::<S>(&mut parts);
        let mut c = [[T::ZERO; LANES]; 2];
        for k in 0..2 {
            // Lanes without a row do not count.
            parts[k][count..].fill(0.0);
            let rounded = T::narrow::<S>(S::D::load(&parts[k]));
            rounded.store(&mut c[k]);
            mass[k] = mass[k] + T::widen::<S>(rounded);
        }
        for (i, row) in panel.chunks_exact(dim).enumerate() {
            let (c0, c1) = (T::splat::<S>(c[0][i]), T::splat::<S>(c[1][i]));
            for v in 0..V {
                let x = load_vector::<S, T, V>(row, v, tail);
                acc[0][v] = c0.mul_add(x, acc[0][v]);
                acc[1][v] = c1.mul_add(x, acc[1][v]);
            }
        }
    }
    for k in 0..2 {
        for v in 0..V {
            let mut lanes = [T::ZERO; LANES];
            acc[k][v].store(&mut lanes);
            let at = k * dim + v * LANES;
            let len = (dim - v * LANES).min(LANES);
            sums[at..at + len].copy_from_slice(&lanes[..len]);
        }
        mass[k].store(&mut masses[k]);
    }
}

/// Vector `v` of a row's `V`, of which the last has `tail` numbers.
#[inline(always)]
fn load_vector<S: Simd, T: Real, const V: usize>(row: &[T], v: usize, tail: usize) -> T::V<S> {
    if v + 1 < V || tail == LANES {
        load_some::<S, T>(&row[v * LANES..])
    } else {
        T::V::<S>::load_part(&row[v * LANES..v * LANES + tail])
    }
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
    let mut acc = [[T::splat::<S>(T::ZERO); V]; K];
    for (row, c) in x.chunks_exact(dim).zip(c.chunks_exact(modes)) {
        let row = &row[column..];
        let mut weight = [T::splat::<S>(T::ZERO); K];
        for k in 0..K {
            weight[k] = T::splat::<S>(c[first + k]);
        }
        for v in 0..V {
            let x = load_some::<S, T>(&row[v * LANES..]);
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
    fn weigh{T: Real}{T}(
        kept: &[T], weights: &[f64], modes: usize, c: &mut [T], masses: &mut [f64], rounded: &mut [f64],
    ) = weigh_panels
}
dispatch! {
    fn share{T: Real}{T}(
        modes: &Modes<T>, x: &[T], kept: &mut [T], parts: &mut [[f64; LANES]], masses: &mut [[f64; LANES]],
    ) = share_panels
}
dispatch! {
    fn gather_some{T: Real, const V: usize}{T, V}(
        modes: &Modes<T>, x: &[T], sums: &mut [T], masses: &mut [[f64; LANES]],
    ) = gather_pairs
}
dispatch! { fn sum_rows{T: Real}{T}(x: &[T], c: &[T], dim: usize, modes: usize, sums: &mut [T]) = sum_all }

/// The kernels by scalar type: compiled once, here, and not in every crate that uses a mixture.
#[doc(hidden)]
pub trait MixtureKernels: Sized {
    /// Energies and responsibilities of a block. `parts` is scratch memory, a panel per mode.
    fn evaluate(
        isa: Isa,
        modes: &Modes<Self>,
        x: &[Self],
        u: &mut [f64],
        kept: &mut [Self],
        parts: &mut [[f64; LANES]],
    );
    /// Responsibilities alone, and their sums, lane by lane. `parts` is scratch memory, a panel per mode.
    fn share(
        isa: Isa,
        modes: &Modes<Self>,
        x: &[Self],
        kept: &mut [Self],
        parts: &mut [[f64; LANES]],
        masses: &mut [[f64; LANES]],
    );
    /// Of data points: `sums[k][j] = sum_i r_ik x_ij` and `masses[k] = sum_i r_ik`, the latter lane by lane, in one pass. Says no where
    /// it cannot: for more or fewer than two modes and for many dimensions.
    fn gather(
        isa: Isa,
        modes: &Modes<Self>,
        x: &[Self],
        sums: &mut [Self],
        masses: &mut [[f64; LANES]],
    ) -> bool;
    /// Leaves the own push of contiguous walkers out of their log-weights, where they stand; at most [`MAX_MODES`] modes.
    fn leave_own_out(
        isa: Isa,
        modes: &Modes<Self>,
        own: &Own<Self>,
        x: &[Self],
        kept: &[Self],
        a: &mut [f64],
    );
    /// One ULA step of the movers; at most [`MAX_MODES`] modes. Returns the sum of the would-be acceptances and the first
    /// walker whose weight is no longer finite.
    fn advance(
        isa: Isa,
        step: &Step<'_, Self>,
        movers: Movers<'_>,
        arrays: &mut Arrays<'_, Self>,
    ) -> (f64, Option<u64>);
    /// `c_ik = weight_i r_ik`, rounded to the walkers' precision; `masses` and `rounded` receive the sums of the `c_ik` before and
    /// after rounding.
    fn weigh(
        isa: Isa,
        kept: &[Self],
        weights: &[f64],
        modes: usize,
        c: &mut [Self],
        masses: &mut [f64],
        rounded: &mut [f64],
    );
    /// `sums[k][j] = sum_i c[i][k] x[i][j]` over the rows of a block.
    fn sum_rows(isa: Isa, x: &[Self], c: &[Self], dim: usize, modes: usize, sums: &mut [Self]);
}

macro_rules! kernels {
    ($t:ty) => {
        impl MixtureKernels for $t {
            fn evaluate(
                isa: Isa,
                modes: &Modes<$t>,
                x: &[$t],
                u: &mut [f64],
                kept: &mut [$t],
                parts: &mut [[f64; LANES]],
            ) {
                match modes.count {
                    2 => evaluate_some::<$t, 2>(isa, modes, x, u, kept, parts),
                    _ => evaluate_some::<$t, 0>(isa, modes, x, u, kept, parts),
                }
            }
            fn share(
                isa: Isa,
                modes: &Modes<$t>,
                x: &[$t],
                kept: &mut [$t],
                parts: &mut [[f64; LANES]],
                masses: &mut [[f64; LANES]],
            ) {
                share(isa, modes, x, kept, parts, masses)
            }
            fn gather(
                isa: Isa,
                modes: &Modes<$t>,
                x: &[$t],
                sums: &mut [$t],
                masses: &mut [[f64; LANES]],
            ) -> bool {
                match (modes.count, modes.dim.div_ceil(LANES)) {
                    (2, 1) => gather_some::<$t, 1>(isa, modes, x, sums, masses),
                    (2, 2) => gather_some::<$t, 2>(isa, modes, x, sums, masses),
                    (2, 3) => gather_some::<$t, 3>(isa, modes, x, sums, masses),
                    (2, 4) => gather_some::<$t, 4>(isa, modes, x, sums, masses),
                    _ => return false,
                }
                true
            }
            fn leave_own_out(
                isa: Isa,
                modes: &Modes<$t>,
                own: &Own<$t>,
                x: &[$t],
                kept: &[$t],
                a: &mut [f64],
            ) {
                leave_own_out(isa, modes, own, x, kept, a)
            }
            fn advance(
                isa: Isa,
                step: &Step<'_, $t>,
                movers: Movers<'_>,
                arrays: &mut Arrays<'_, $t>,
            ) -> (f64, Option<u64>) {
                match (step.from.count, step.own.response.is_empty()) {
                    (2, true) => move_some::<$t, 2, false>(isa, step, movers, arrays),
                    (2, false) => move_some::<$t, 2, true>(isa, step, movers, arrays),
                    (_, true) => move_some::<$t, 0, false>(isa, step, movers, arrays),
                    (_, false) => move_some::<$t, 0, true>(isa, step, movers, arrays),
                }
            }
            fn weigh(
                isa: Isa,
                kept: &[$t],
                weights: &[f64],
                modes: usize,
                c: &mut [$t],
                masses: &mut [f64],
                rounded: &mut [f64],
            ) {
                weigh(isa, kept, weights, modes, c, masses, rounded)
            }
            fn sum_rows(isa: Isa, x: &[$t], c: &[$t], dim: usize, modes: usize, sums: &mut [$t]) {
                sum_rows(isa, x, c, dim, modes, sums)
            }
        }
    };
}
kernels!(f32);
kernels!(f64);
