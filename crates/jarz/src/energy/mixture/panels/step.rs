//! The step: noise and move.

use super::weights::{Own, Sums, add_to, weigh_panels};
use super::{MAX_MODES, Modes, PanelRows, QUADS, count, kept_of, to_lanes};
use crate::random::Key;
use crate::random::ars::Schedule;
use crate::real::Real;
use crate::simd::tile::tile_of;
use crate::simd::{Aes, LANES, Simd, Tile, Vector, dispatch_aes, prefetch};
use std::ops::Range;

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

/// The noise of a panel in [`QUADS`] groups of four dimensions, four tiles each, no vector of which lies across two cache lines.
#[repr(align(64))]
struct Noise<T>([[T; LANES]; 4 * QUADS]);

/// What belongs to the four tiles of a panel: shares of the modes, and [`Sums`] in the walkers' precision.
#[derive(Default)]
#[repr(align(64))]
struct Tiles<T> {
    shares: [[[T; LANES]; 4]; MAX_MODES],
    forward: [[T; LANES]; 4],
    squares: [[[T; LANES]; 4]; MAX_MODES],
    along: [[[T; LANES]; 4]; MAX_MODES],
    own_squares: [[[T; LANES]; 4]; MAX_MODES],
    own_along: [[[T; LANES]; 4]; MAX_MODES],
}

/// Rows of a panel in [`QUADS`] groups of four dimensions.
type Rows<T> = [[T; 4 * QUADS]; LANES];

/// Where these rows begin.
const AT_ROWS: [usize; LANES] = {
    let mut at = [0; LANES];
    let mut l = 0;
    while l < LANES {
        at[l] = l * 4 * QUADS;
        l += 1;
    }
    at
};

/// Where the kernels put what they need for a moment.
pub struct Workbench<T> {
    schedule: Schedule,
    noise: Noise<T>,
    tiles: Tiles<T>,
    /// Of a panel that is not full.
    rows: Rows<T>,
    sums: [Sums; TOGETHER],
    parts: [[f64; LANES]; MAX_MODES],
}

impl<T: Default> Default for Workbench<T> {
    fn default() -> Self {
        Workbench {
            schedule: Schedule::new(),
            noise: Noise(std::array::from_fn(|_| std::array::from_fn(|_| T::default()))),
            tiles: Tiles::default(),
            rows: std::array::from_fn(|_| std::array::from_fn(|_| T::default())),
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
fn move_panel<S: Aes, T: Real, const K: usize, const OWN: bool>(
    step: &Step<'_, T>,
    panel: &PanelRows,
    ids: &[u64; LANES],
    arrays: &mut Arrays<'_, T>,
    (schedule, Noise(noise), tiles, rows): (&mut Schedule, &mut Noise<T>, &mut Tiles<T>, &mut Rows<T>),
    sums: &mut Sums,
) {
    let (from, to) = (step.from, step.to);
    let (n, dim, stride) = (count::<T, K>(from), from.dim, from.stride);
    let starts = panel.starts(dim, arrays.x.len());
    let own = if OWN { step.own.response.len().min(step.own.product.len()) } else { n * stride };
    let lengths = [from.offsets.len(), from.means.len(), to.means.len(), own];
    assert!(lengths.iter().all(|&l| l >= n * stride) && stride >= dim, "means shorter than their dimension");
    let pull = T::splat::<S>(T::from_f64(step.h * from.precision));
    let half_pull = T::splat::<S>(T::from_f64(0.5 * step.h * from.precision));
    // What of the last dimensions there is.
    let mut here = [T::ZERO; 4];
    here[..dim % 4].fill(T::ONE);
    let here = T::V::<S>::repeat(&here);
    let r = kept_of::<S, T>(panel, n, arrays.kept);
    for k in 1..n {
        for (tile, to) in r[k].spread().into_iter().zip(&mut tiles.shares[k]) {
            tile.store(to);
        }
    }
    for group in (0..stride / 4).step_by(QUADS) {
        let end = (group + QUADS).min(stride / 4);
        if K > 0 {
            fill_noise::<S, T>(step, ids, group..end, schedule, noise);
        } else {
            make_noise::<T>(S::ISA, step, ids, group..end, schedule, noise);
        }
        let whole = end.min(dim / 4);
        let part_of_row = (dim - 4 * group).min(4 * QUADS);
        let (mut x, mut at) = (arrays.x.as_mut_ptr(), starts);
        if panel.lanes < LANES {
            // Tiles move one after the other: those that repeat a walker must not find it moved.
            for (row, start) in rows.iter_mut().zip(starts) {
                row[..part_of_row].copy_from_slice(&arrays.x[start + 4 * group..][..part_of_row]);
            }
            (x, at) = (rows.as_mut_ptr().cast::<T>().wrapping_sub(4 * group), AT_ROWS);
        }
        for g in 0..4 {
            let mut part = Part::<S, T>::new();
            let mut r = [T::splat::<S>(T::ZERO); MAX_MODES];
            for k in 1..n {
                r[k] = T::V::<S>::load(&tiles.shares[k][g]);
            }
            let place = Place {
                n,
                stride,
                rows: tile_of(&at, g),
                r,
                pull,
                half_pull,
                x,
                offsets: from.offsets.as_ptr(),
                means: from.means.as_ptr(),
                new_means: to.means.as_ptr(),
                response: step.own.response.as_ptr(),
                product: step.own.product.as_ptr(),
            };
            let ahead = starts[0] + LANES * dim + LANES * (group * 4 + g * (end - group));
            for quad in group..whole {
                ask_for(x.wrapping_add(ahead + LANES * (quad - group)));
                let noise = T::V::<S>::load(&noise[4 * (quad - group) + g]);
                // SAFETY: `starts` and the lengths were checked above; spare rows have room for the group.
                unsafe { move_tile::<S, T, OWN>(&place, quad, 4, noise, &mut part) };
            }
            for quad in whole..end {
                // Dimensions beyond the last stay where they are.
                let noise = T::V::<S>::load(&noise[4 * (quad - group) + g]) * here;
                // SAFETY: as above.
                unsafe { move_tile::<S, T, OWN>(&place, quad, dim % 4, noise, &mut part) };
            }
            part.forward.store(&mut tiles.forward[g]);
            for k in 0..n {
                part.squares[k].store(&mut tiles.squares[k][g]);
                part.along[k].store(&mut tiles.along[k][g]);
                if OWN {
                    part.own_squares[k].store(&mut tiles.own_squares[k][g]);
                    part.own_along[k].store(&mut tiles.own_along[k][g]);
                }
            }
        }
        if panel.lanes < LANES {
            for (row, start) in rows.iter().zip(starts).take(panel.lanes) {
                arrays.x[start + 4 * group..][..part_of_row].copy_from_slice(&row[..part_of_row]);
            }
        }
        let first = group == 0;
        fold_to::<S, T>(first, &tiles.forward, &mut sums.forward);
        for k in 0..n {
            fold_to::<S, T>(first, &tiles.squares[k], &mut sums.squares[k]);
            fold_to::<S, T>(first, &tiles.along[k], &mut sums.along[k]);
            if OWN {
                fold_to::<S, T>(first, &tiles.own_squares[k], &mut sums.own_squares[k]);
                fold_to::<S, T>(first, &tiles.own_along[k], &mut sums.own_along[k]);
            }
        }
    }
}

/// Asks for a vector of the next panel, to which panels do not come in regular steps.
#[inline(always)]
fn ask_for<T>(at: *const T) {
    for line in 0..size_of::<T>() / 4 {
        prefetch(at.wrapping_add(line * 64 / size_of::<T>()));
    }
}

/// The noise of a panel in some groups of four dimensions.
#[inline(always)]
fn fill_noise<S: Aes, T: Real>(
    step: &Step<'_, T>,
    ids: &[u64; LANES],
    quads: Range<usize>,
    schedule: &mut Schedule,
    noise: &mut [[T; LANES]],
) {
    let scale = T::splat::<S>(T::from_f64(step.noise_scale));
    T::fill_tiles::<S>(schedule, &step.key, ids, quads, scale, noise);
}

dispatch_aes! {
    /// The same as a function of its own, compiled once per instruction set and precision, where 4 % more time do not matter as much as the
    /// time to compile it into one more kernel.
    fn make_noise{T: Real}{T}(
        step: &Step<'_, T>, ids: &[u64; LANES], quads: Range<usize>, schedule: &mut Schedule, noise: &mut [[T; LANES]],
    ) = fill_noise
}

/// The same with a panel's four tiles.
#[inline(always)]
fn fold_to<S: Simd, T: Real>(first: bool, [a, b, c, d]: &[[T; LANES]; 4], sum: &mut [f64; LANES]) {
    let load = T::V::<S>::load;
    add_to::<S>(first, T::widen::<S>(T::V::<S>::fold([load(a), load(b), load(c), load(d)])), sum);
}

/// Where a tile is, and all that its moves have in common: in one place, since the compiler cannot know that stores to positions change none of it.
struct Place<S: Simd, T: Real> {
    n: usize,
    stride: usize,
    rows: [usize; 4],
    r: [T::V<S>; MAX_MODES],
    pull: T::V<S>,
    half_pull: T::V<S>,
    x: *mut T,
    offsets: *const T,
    means: *const T,
    new_means: *const T,
    response: *const T,
    product: *const T,
}

/// [`Sums`] of a tile in the walkers' precision.
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

/// Moves a tile.
///
/// # Safety
/// `columns` numbers from `4 quad` on of every row must be within the array, as the means up to `4 quad + 4` must be.
#[inline(always)]
unsafe fn move_tile<S: Simd, T: Real, const OWN: bool>(
    place: &Place<S, T>,
    quad: usize,
    columns: usize,
    noise: T::V<S>,
    part: &mut Part<S, T>,
) {
    let n = place.n;
    let at = place.x.wrapping_add(4 * quad);
    let x = unsafe { T::V::<S>::load_tile(at, &place.rows, columns) };
    // The mean of the means is the first one and the shares of the others' offsets.
    let mut drift = x - unsafe { four_at::<S, T>(place.offsets, 4 * quad) };
    for k in 1..n {
        drift = place.r[k]
            .neg_mul_add(unsafe { four_at::<S, T>(place.offsets, place.stride * k + 4 * quad) }, drift);
    }
    if OWN {
        for k in 0..n {
            let apart = x - unsafe { four_at::<S, T>(place.means, place.stride * k + 4 * quad) };
            let (response, product) =
                (unsafe { four_at::<S, T>(place.response, place.stride * k + 4 * quad) }, unsafe {
                    four_at::<S, T>(place.product, place.stride * k + 4 * quad)
                });
            part.own_squares[k] = (apart * response).mul_add(apart, part.own_squares[k]);
            part.own_along[k] = apart.mul_add(product, part.own_along[k]);
        }
    }
    let by = drift.neg_mul_add(place.pull, noise);
    part.forward = drift.mul_add(drift.neg_mul_add(place.half_pull, noise), part.forward);
    let y = x + by;
    for k in 0..n {
        let apart = y - unsafe { four_at::<S, T>(place.new_means, place.stride * k + 4 * quad) };
        part.squares[k] = apart.mul_add(apart, part.squares[k]);
        part.along[k] = apart.mul_add(by, part.along[k]);
    }
    unsafe { y.store_tile(at, &place.rows, columns) };
}

/// Four neighbouring numbers, the same for all walkers.
///
/// # Safety
/// There must be that many.
#[inline(always)]
unsafe fn four_at<S: Simd, T: Real>(from: *const T, at: usize) -> T::V<S> {
    T::V::<S>::repeat(unsafe { &*from.add(at).cast() })
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
fn move_panels<S: Aes, T: Real, const K: usize, const OWN: bool>(
    step: &Step<'_, T>,
    movers: Movers<'_>,
    arrays: &mut Arrays<'_, T>,
    workbench: &mut Workbench<T>,
) -> (f64, Option<u64>) {
    let rows = arrays.u.len();
    let Workbench { schedule, noise, tiles, rows: spare, sums, parts } = workbench;
    let (mut accepted, mut bad) = (S::D::splat(0.0), None);
    let mut panels = [(PanelRows::contiguous(0, 1), [0; LANES]); TOGETHER];
    let mut at = 0;
    while at < movers.len(rows) {
        let mut together = 0;
        while together < TOGETHER && at < movers.len(rows) {
            let (panel, ids) = movers.panel(at, rows);
            move_panel::<S, T, K, OWN>(
                step,
                &panel,
                &ids,
                arrays,
                (schedule, noise, tiles, spare),
                &mut sums[together],
            );
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

dispatch_aes! {
    pub(super) fn move_some{T: Real, const K: usize, const OWN: bool}{T, K, OWN}(
        step: &Step<'_, T>, movers: Movers<'_>, arrays: &mut Arrays<'_, T>, workbench: &mut Workbench<T>,
    ) -> (f64, Option<u64>) = move_panels
}
