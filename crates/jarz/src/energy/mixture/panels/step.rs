//! The step: noise, move, weight, and the leave-one-out correction.

use super::{
    MAX_MODES, Modes, PanelRows, QUADS, count, four, keep, kept_of, normalise_pairs, soft_max, to_lanes,
};
use crate::random::Key;
use crate::random::math::{exp_f64, exps_f64};
use crate::random::normal::Stream;
use crate::random::philox::Blocks;
use crate::real::Real;
use crate::simd::{LANES, Simd, Vector, dispatch, prefetch};
use std::ops::Range;

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

/// Panels whose weights are updated together: each is a long chain of an exponential, a logarithm and an exponential.
const TOGETHER: usize = 2;

/// What the pass over the dimensions says of a panel.
#[derive(Default)]
struct Sums {
    forward: [f64; LANES],
    squares: [[f64; LANES]; MAX_MODES],
    along: [[f64; LANES]; MAX_MODES],
    own_squares: [[f64; LANES]; MAX_MODES],
    own_along: [[f64; LANES]; MAX_MODES],
}

/// The noise of a panel in [`QUADS`] groups of four dimensions, no vector of which lies across two cache lines.
#[repr(align(64))]
struct Noise<T>([[T; LANES]; 4 * QUADS]);

/// Where the kernels put what they need for a moment.
pub struct Workbench<T> {
    blocks: Blocks,
    noise: Noise<T>,
    sums: [Sums; TOGETHER],
    parts: [[f64; LANES]; MAX_MODES],
}

impl<T: Default> Default for Workbench<T> {
    fn default() -> Self {
        Workbench {
            blocks: Blocks::new(),
            noise: Noise(std::array::from_fn(|_| std::array::from_fn(|_| T::default()))),
            sums: Default::default(),
            parts: [[0.0; LANES]; MAX_MODES],
        }
    }
}

/// Moves a panel: the pass over the dimensions of eq. `X:A:k`.
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
    (blocks, Noise(noise)): (&mut Blocks, &mut Noise<T>),
    sums: &mut Sums,
) {
    let (from, to) = (step.from, step.to);
    let (n, dim, stride) = (count::<T, K>(from), from.dim, from.stride);
    let starts = panel.starts(dim, arrays.x.len());
    let lengths = [from.offsets.len(), from.means.len(), to.means.len()];
    assert!(lengths.iter().all(|&l| l >= n * stride) && stride >= dim, "means shorter than their dimension");
    let r = kept_of::<S, T>(panel, n, arrays.kept);
    let at = Place { n, dim, stride, starts: &starts, r: &r, x: arrays.x.as_mut_ptr() };
    for group in (0..stride / 4).step_by(QUADS) {
        let end = (group + QUADS).min(stride / 4);
        if K > 0 {
            fill_noise::<S, T>(step, ids, group..end, blocks, noise);
        } else {
            make_noise::<T>(S::ISA, step, ids, group..end, blocks, noise);
        }
        let mut part = Part::<S, T>::new();
        let whole = end.min(dim / 4);
        for quad in group..whole {
            // SAFETY: `starts` and the lengths were checked above.
            unsafe { move_quad::<S, T, OWN>(step, &at, quad, 4, &noise[4 * (quad - group)..], &mut part) };
        }
        for quad in whole..end {
            // Dimensions beyond the last stay where they are.
            for c in dim - 4 * quad..4 {
                noise[4 * (quad - group) + c] = [T::ZERO; LANES];
            }
            // SAFETY: as above.
            unsafe {
                move_quad::<S, T, OWN>(
                    step,
                    &at,
                    quad,
                    dim - 4 * quad,
                    &noise[4 * (quad - group)..],
                    &mut part,
                )
            };
        }
        let first = group == 0;
        add_to::<S>(first, T::widen::<S>(part.forward), &mut sums.forward);
        for k in 0..n {
            add_to::<S>(first, T::widen::<S>(part.squares[k]), &mut sums.squares[k]);
            add_to::<S>(first, T::widen::<S>(part.along[k]), &mut sums.along[k]);
            if OWN {
                add_to::<S>(first, T::widen::<S>(part.own_squares[k]), &mut sums.own_squares[k]);
                add_to::<S>(first, T::widen::<S>(part.own_along[k]), &mut sums.own_along[k]);
            }
        }
    }
}

/// The noise of a panel in some groups of four dimensions.
#[inline(always)]
fn fill_noise<S: Simd, T: Real>(
    step: &Step<'_, T>,
    ids: &[u64; LANES],
    quads: Range<usize>,
    blocks: &mut Blocks,
    noise: &mut [[T; LANES]],
) {
    let stream = Stream::<S>::new(&step.key, ids);
    let lines = stream.lines(blocks, (4 / T::NORMALS_PER_BLOCK * quads.start) as u32);
    T::fill::<S>(&stream, lines, quads.len(), T::splat::<S>(T::from_f64(step.noise_scale)), noise);
}

dispatch! {
    /// The same as a function of its own, compiled once per instruction set and precision, where 4 % more time do not matter as much as the
    /// time to compile it into one more kernel.
    fn make_noise{T: Real}{T}(
        step: &Step<'_, T>, ids: &[u64; LANES], quads: Range<usize>, blocks: &mut Blocks, noise: &mut [[T; LANES]],
    ) = fill_noise
}

/// Adds to a sum, or begins it.
#[inline(always)]
fn add_to<S: Simd>(first: bool, v: S::D, sum: &mut [f64; LANES]) {
    if first { v } else { S::D::load(sum) + v }.store(sum)
}

/// Where a panel is.
struct Place<'a, S: Simd, T: Real> {
    n: usize,
    dim: usize,
    stride: usize,
    starts: &'a [usize; LANES],
    r: &'a [T::V<S>; MAX_MODES],
    x: *mut T,
}

/// [`Sums`] in the walkers' precision.
struct Part<S: Simd, T: Real> {
    forward: T::V<S>,
    squares: [T::V<S>; MAX_MODES],
    along: [T::V<S>; MAX_MODES],
    own_squares: [T::V<S>; MAX_MODES],
    own_along: [T::V<S>; MAX_MODES],
}

impl<S: Simd, T: Real> Part<S, T> {
    #[inline(always)]
    fn new() -> Self {
        let zeros = [T::splat::<S>(T::ZERO); MAX_MODES];
        Part { forward: zeros[0], squares: zeros, along: zeros, own_squares: zeros, own_along: zeros }
    }
}

/// Moves a panel in up to four dimensions.
///
/// # Safety
/// `columns` numbers from `4 quad` on of every row must be within the array, as the means up to `4 quad + 4` must be.
#[inline(always)]
unsafe fn move_quad<S: Simd, T: Real, const OWN: bool>(
    step: &Step<'_, T>,
    place: &Place<'_, S, T>,
    quad: usize,
    columns: usize,
    noise: &[[T; LANES]],
    part: &mut Part<S, T>,
) {
    let (from, to, n, stride) = (step.from, step.to, place.n, place.stride);
    let pull = T::splat::<S>(T::from_f64(step.h * from.precision));
    let half_pull = T::splat::<S>(T::from_f64(0.5 * step.h * from.precision));
    let at = unsafe { place.x.add(4 * quad) };
    let mut x = unsafe { T::V::<S>::load_columns(at, place.starts, columns) };
    // Panels do not walk through memory in regular steps: the next rows have to be asked for.
    for line in 0..size_of::<T>() {
        prefetch(at.wrapping_add(
            place.starts[0] + LANES * place.dim + 4 * (LANES - 1) * quad + line * 64 / size_of::<T>(),
        ));
    }
    // The mean of the means is the first one and the shares of the others' offsets.
    let origin = unsafe { four_at(&from.offsets, 4 * quad) };
    let mut drifts = x;
    for c in 0..4 {
        drifts[c] = x[c] - T::splat::<S>(origin[c]);
    }
    for k in 1..n {
        let offset = unsafe { four_at(&from.offsets, k * stride + 4 * quad) };
        for c in 0..4 {
            drifts[c] = place.r[k].neg_mul_add(T::splat::<S>(offset[c]), drifts[c]);
        }
    }
    if OWN {
        for k in 0..n {
            let at = k * stride + 4 * quad;
            let sums = (&mut part.own_squares[k], &mut part.own_along[k]);
            add_own::<S, T>(unsafe { four_at(&from.means, at) }, step.own, at, &x, sums);
        }
    }
    let mut by = x;
    for c in 0..4 {
        let (drift, noise) = (drifts[c], T::V::<S>::load(&noise[c]));
        by[c] = drift.neg_mul_add(pull, noise);
        part.forward = drift.mul_add(drift.neg_mul_add(half_pull, noise), part.forward);
        x[c] = x[c] + by[c];
    }
    for k in 0..n {
        let new = unsafe { four_at(&to.means, k * stride + 4 * quad) };
        for c in 0..4 {
            let apart = x[c] - T::splat::<S>(new[c]);
            part.squares[k] = apart.mul_add(apart, part.squares[k]);
            part.along[k] = apart.mul_add(by[c], part.along[k]);
        }
    }
    unsafe { T::V::<S>::store_columns(x, at, place.starts, columns) };
}

/// Four neighbouring numbers.
///
/// # Safety
/// There must be that many.
#[inline(always)]
unsafe fn four_at<T: Copy>(from: &[T], at: usize) -> [T; 4] {
    debug_assert!(at + 4 <= from.len());
    unsafe { from.as_ptr().add(at).cast::<[T; 4]>().read_unaligned() }
}

/// Updates energies, log-weights and responsibilities of `M` panels that have moved. Adds to their would-be acceptances, and
/// returns the first walker whose weight is no longer finite.
#[inline(always)]
fn weigh_panels<S: Simd, T: Real, const K: usize, const OWN: bool, const M: usize>(
    step: &Step<'_, T>,
    panels: &[(PanelRows, [u64; LANES])],
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
    if n == 2 {
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
    let acceptances = exps_f64::<S, M>(&gains);
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
        bad = bad.or((lane < panel.lanes).then(|| ids[lane]));
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
    workbench: &mut Workbench<T>,
) -> (f64, Option<u64>) {
    let rows = arrays.u.len();
    let Workbench { blocks, noise, sums, parts } = workbench;
    let (mut accepted, mut bad) = (S::D::splat(0.0), None);
    let mut panels = [(PanelRows::contiguous(0, 1), [0; LANES]); TOGETHER];
    let mut at = 0;
    while at < movers.len(rows) {
        let mut together = 0;
        while together < TOGETHER && at < movers.len(rows) {
            let (panel, ids) = movers.panel(at, rows);
            move_panel::<S, T, K, OWN>(step, &panel, &ids, arrays, (blocks, noise), &mut sums[together]);
            panels[together] = (panel, ids);
            together += 1;
            at += panel.lanes;
        }
        if together == TOGETHER {
            let worst =
                weigh_panels::<S, T, K, OWN, TOGETHER>(step, &panels, arrays, sums, parts, &mut accepted);
            bad = bad.or(worst);
            continue;
        }
        for m in 0..together {
            let (panels, sums) = (&panels[m..], &sums[m..]);
            let worst = weigh_panels::<S, T, K, OWN, 1>(step, panels, arrays, sums, parts, &mut accepted);
            bad = bad.or(worst);
        }
    }
    (to_lanes::<S>(accepted).iter().sum(), bad)
}

dispatch! {
    pub(super) fn move_some{T: Real, const K: usize, const OWN: bool}{T, K, OWN}(
        step: &Step<'_, T>, movers: Movers<'_>, arrays: &mut Arrays<'_, T>, workbench: &mut Workbench<T>,
    ) -> (f64, Option<u64>) = move_panels
}
