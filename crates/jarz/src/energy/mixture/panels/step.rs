//! The step: noise and move.

use super::moves::{Parts, Place, Shares, add_parts, move_columns, move_rows, move_tiles};
use super::weights::{Own, Sums, weigh_panels};
use super::{MAX_MODES, Modes, PanelRows, QUADS, count, kept_of, to_lanes};
use crate::random::Key;
use crate::random::ars::{PanelIds, Schedule};
use crate::real::Real;
use crate::simd::{Aes, LANES, Vector, dispatch_aes};
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

/// The noise of a panel in [`QUADS`] groups of four dimensions, rows and then tiles, no vector of which lies across two cache lines.
#[repr(align(64))]
struct Noise<T>([[T; LANES]; 4 * QUADS]);

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
    shares: Shares<T>,
    parts_of_rows: Parts<T, LANES>,
    parts_of_tiles: Parts<T, 4>,
    parts_of_columns: Parts<T, 1>,
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
            shares: Shares::default(),
            parts_of_rows: Parts::default(),
            parts_of_tiles: Parts::default(),
            parts_of_columns: Parts::default(),
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
    ids: &PanelIds,
    arrays: &mut Arrays<'_, T>,
    workbench: &mut Workbench<T>,
    together: usize,
) {
    let Workbench {
        schedule,
        noise: Noise(noise),
        shares,
        parts_of_rows,
        parts_of_tiles,
        parts_of_columns,
        rows,
        sums,
        ..
    } = workbench;
    let from = step.from;
    let (n, dim, stride) = (count::<T, K>(from), from.dim, from.stride);
    let starts = panel.starts(dim, arrays.x.len());
    let own = if OWN { step.own.response.len().min(step.own.product.len()) } else { n * stride };
    let lengths = [from.offsets.len(), from.means.len(), step.to.means.len(), own];
    assert!(lengths.iter().all(|&l| l >= n * stride) && stride >= dim, "means shorter than their dimension");
    let r = kept_of::<S, T>(panel, n, arrays.kept);
    // One or two dimensions beside whole vectors are moved as columns, more of them as tiles.
    let narrow = matches!(dim % LANES, 1 | 2);
    shares.keep::<S>(n, &r, !narrow);
    for group in (0..stride / 4).step_by(QUADS) {
        let end = (group + QUADS).min(stride / 4);
        let part_of_row = (dim - 4 * group).min(4 * QUADS);
        let vectors = part_of_row / LANES;
        if K > 0 {
            fill_noise::<S, T>(step, ids, group..end, vectors, narrow, schedule, noise);
        } else {
            make_noise::<T>(S::ISA, step, ids, group..end, vectors, narrow, schedule, noise);
        }
        let mut place = Place { x: arrays.x.as_mut_ptr(), at: starts };
        if panel.lanes < LANES {
            // Walkers move one after the other: those that are repeated must not be found moved.
            for (row, start) in rows.iter_mut().zip(starts) {
                row[..part_of_row].copy_from_slice(&arrays.x[start + 4 * group..][..part_of_row]);
            }
            place = Place { x: rows.as_mut_ptr().cast::<T>().wrapping_sub(4 * group), at: AT_ROWS };
        }
        let beside = (group + 4 * vectors < end).then_some(group + 4 * vectors..end);
        if let Some(quads) = beside.clone() {
            let noise = &noise[LANES * vectors..];
            // SAFETY: `starts` and the lengths were checked above; spare rows have room for the group.
            unsafe {
                if narrow {
                    let column = 4 * quads.start;
                    move_columns::<S, T, K, OWN>(step, &place, column, &r, noise, parts_of_columns);
                } else {
                    move_tiles::<S, T, K, OWN>(step, &place, quads, shares, noise, parts_of_tiles);
                }
            }
        }
        let mut done = 0;
        while done < vectors {
            let noise = &noise[LANES * done..];
            let (first, column) = (done == 0, 4 * group + LANES * done);
            macro_rules! rows {
                ($v:literal) => {{
                    // SAFETY: as above.
                    unsafe {
                        move_rows::<S, T, K, OWN, $v>(
                            step,
                            &place,
                            column,
                            shares,
                            noise,
                            first,
                            parts_of_rows,
                        )
                    };
                    $v
                }};
            }
            done += match vectors {
                2 if K > 0 => rows!(2),
                3 if K > 0 => rows!(3),
                4 if K > 0 => rows!(4),
                _ => rows!(1),
            };
        }
        if panel.lanes < LANES {
            for (row, start) in rows.iter().zip(starts).take(panel.lanes) {
                arrays.x[start + 4 * group..][..part_of_row].copy_from_slice(&row[..part_of_row]);
            }
        }
        let rows = (vectors > 0).then_some(&*parts_of_rows);
        let tiles = beside.as_ref().filter(|_| !narrow).map(|_| &*parts_of_tiles);
        let columns = beside.filter(|_| narrow).map(|_| &*parts_of_columns);
        add_parts::<S, T, K, OWN>(n, group == 0, rows, tiles, columns, &mut sums[together]);
    }
}

/// The noise of a panel in some groups of four dimensions.
#[inline(always)]
fn fill_noise<S: Aes, T: Real>(
    step: &Step<'_, T>,
    ids: &PanelIds,
    quads: Range<usize>,
    vectors: usize,
    columns: bool,
    schedule: &mut Schedule,
    noise: &mut [[T; LANES]],
) {
    let scale = T::splat::<S>(T::from_f64(step.noise_scale));
    T::fill_noise::<S>(schedule, &step.key, ids, quads, vectors, columns, scale, noise);
}

dispatch_aes! {
    /// The same as a function of its own, compiled once per instruction set and precision, where 4 % more time do not matter as much as the
    /// time to compile it into one more kernel.
    fn make_noise{T: Real}{T}(
        step: &Step<'_, T>, ids: &PanelIds, quads: Range<usize>, vectors: usize, columns: bool, schedule: &mut Schedule,
        noise: &mut [[T; LANES]],
    ) = fill_noise
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
    fn panel(&self, at: usize, rows: usize) -> (PanelRows, PanelIds) {
        let mut lanes = (self.len(rows) - at).min(LANES);
        match *self {
            Movers::All(first) => {
                let boundary = (1u64 << 32) - ((first + at as u64) & 0xffff_ffff);
                lanes = lanes.min(boundary.min(LANES as u64) as usize);
                (PanelRows::contiguous(at, lanes), PanelIds::contiguous(first + at as u64, lanes))
            }
            Movers::Some(ids, first) => {
                let ids = &ids[at..];
                lanes = (1..lanes).find(|&l| ids[l] >> 32 != ids[0] >> 32).unwrap_or(lanes);
                let own: [u64; LANES] = std::array::from_fn(|l| ids[l.min(lanes - 1)]);
                (PanelRows::listed(own.map(|id| (id - first) as usize), lanes), PanelIds::of(&own))
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
    let (mut accepted, mut bad) = (S::D::splat(0.0), None);
    let mut panels = [(PanelRows::contiguous(0, LANES), PanelIds::contiguous(0, LANES)); TOGETHER];
    workbench.shares.expect(step.from.dim);
    let mut at = 0;
    while at < movers.len(rows) {
        let mut together = 0;
        while together < TOGETHER && at < movers.len(rows) {
            let (panel, ids) = movers.panel(at, rows);
            move_panel::<S, T, K, OWN>(step, &panel, &ids, arrays, workbench, together);
            panels[together] = (panel, ids);
            together += 1;
            at += panel.lanes;
        }
        let Workbench { sums, parts, .. } = &mut *workbench;
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
