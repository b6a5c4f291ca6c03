//! The normals of fused moves: words by [ARS](super::ars), normals by Box-Muller, 16 dimensions of a walker at a time, and what is left of the dimensions
//! as tiles of four walkers and four dimensions.
//!
//! Groups of four dimensions come in pairs: the words of the first are radii, those of the second angles, and each lane's pair of normals is one for the
//! first group and one for the second. A last group without a partner makes pairs of its own neighbouring words.

use super::Key;
use super::ars::{PanelIds, Schedule, Stream};
use super::normal::{pairs_f32, pairs_f64, share_stream};
use crate::real::{Real, WalkerIds};
use crate::simd::tile::tile_of;
use crate::simd::{Aes, LANES, Simd, Tile, Unzip, Vector, dispatch_aes};
use std::ops::Range;

/// Where the two vectors of a Box-Muller pair go that [`fill_f32`] and [`fill_f64`] make as rows, for four of them: the first of the first, what each of
/// the four is away from the one before, and the second from the first.
#[derive(Clone, Copy)]
struct Places {
    first: usize,
    next: usize,
    second: usize,
}

impl Places {
    /// Stores pair `m`.
    #[inline(always)]
    fn store<S: Simd, T: Real>(&self, m: usize, [a, b]: [T::V<S>; 2], rows: &mut [[T; LANES]]) {
        let at = self.first + self.next * m;
        debug_assert!(at + self.second < rows.len());
        // SAFETY: `batch` only names places of whole vectors, for which there is room. Checks would be branches between the pairs, which the compiler
        // then makes one after the other instead of in lockstep.
        unsafe {
            a.store(rows.get_unchecked_mut(at));
            b.store(rows.get_unchecked_mut(at + self.second));
        }
    }
}

/// Which rows are made together: four walkers in 32 dimensions each, then eight in the 16 that may be left.
#[inline(always)]
fn batches(vectors: usize) -> usize {
    LANES / 4 * (vectors / 2) + LANES / 8 * (vectors % 2)
}

/// The words of such a batch, and where their normals go.
#[inline(always)]
fn batch<S: Aes, const B: usize>(
    stream: &Stream<'_, S, B>,
    vectors: usize,
    batch: usize,
) -> ([[[S::U; B]; 4]; 2], Places) {
    let (j, part) = (batch / 4, batch % 4);
    if j < vectors / 2 {
        let words = stream.row_words(j, 4 * part);
        return (words, Places { first: 2 * LANES * j + 4 * part, next: 1, second: LANES });
    }
    (stream.half_row_words(j, 8 * part), Places { first: 2 * LANES * j + 8 * part, next: 2, second: 1 })
}

/// `scale` times the normals of a panel in some groups of four dimensions, the first of which is even. The first `4 vectors` of them as rows: those of walker
/// `l` in the dimensions `16 v` to `16 v + 15` in `out[16 v + l]`. The others as tiles after that: tile `g` of group `q`, counted from the first of
/// these, in place `4 q + g`; if there is one only, of whose dimensions no more than two are wanted, as `columns`: one of them for all walkers in each of two
/// vectors.
#[inline(always)]
pub(crate) fn fill_f32<S: Aes>(
    schedule: &mut Schedule,
    key: &Key,
    ids: &PanelIds,
    quads: Range<usize>,
    vectors: usize,
    columns: bool,
    scale: S::F,
    out: &mut [[f32; LANES]],
) {
    let stream = Stream::<S, 1>::new(schedule, key, ids, quads, vectors);
    let (rows, out) = out.split_at_mut(LANES * vectors);
    let mut alone = None;
    if vectors > 0 {
        // Words of what comes next are made while the normals of this batch are.
        let (mut words, mut at) = batch(&stream, vectors, 0);
        for next in 1..batches(vectors) {
            let (mut next, then) = batch(&stream, vectors, next);
            for (next, now) in next.as_flattened_mut().iter_mut().zip(words.as_flattened_mut()) {
                S::in_order(&mut next[0], &mut now[0]);
            }
            store_rows_f32::<S>(&words, scale, at, rows);
            (words, at) = (next, then);
        }
        if let [line] = stream.lines() {
            let mut next = stream.words(line);
            for (next, now) in next.iter_mut().zip(&mut words[0]) {
                S::in_order(&mut next[0], &mut now[0]);
            }
            alone = Some(next);
        }
        store_rows_f32::<S>(&words, scale, at, rows);
    }
    match alone {
        Some(words) => store_alone_f32::<S>(words, scale, columns, out),
        None => fill_tiles_f32(&stream, columns, scale, out),
    }
}

/// The normals of a batch of rows.
#[inline(always)]
fn store_rows_f32<S: Simd>(
    [radii, angles]: &[[[S::U; 1]; 4]; 2],
    scale: S::F,
    at: Places,
    rows: &mut [[f32; LANES]],
) {
    let [first, second] = pairs_f32::<S, 1, 4>(radii, angles, scale);
    for m in 0..4 {
        at.store::<S, f32>(m, S::F::in_turns(first[m][0], second[m][0]), rows);
    }
}

/// The normals of a group without a partner.
#[inline(always)]
fn store_alone_f32<S: Simd>(
    [[a], [b], [c], [d]]: [[S::U; 1]; 4],
    scale: S::F,
    columns: bool,
    out: &mut [[f32; LANES]],
) {
    if columns {
        let [radii, angles] = S::U::first_two([a, b, c, d]);
        let [[[first]], [[second]]] = pairs_f32::<S, 1, 1>(&[[radii]], &[[angles]], scale);
        first.store(&mut out[0]);
        return second.store(&mut out[1]);
    }
    let [[r0, a0], [r1, a1]] = [S::U::unzip(a, b), S::U::unzip(c, d)];
    let [[n], [m]] = pairs_f32::<S, 2, 1>(&[[r0, r1]], &[[a0, a1]], scale);
    for (half, out) in out[..4].as_chunks_mut::<2>().0.iter_mut().enumerate() {
        let [first, second] = S::F::zip(n[half], m[half]);
        first.store(&mut out[0]);
        second.store(&mut out[1]);
    }
}

/// The part of [`fill_f32`] that comes as tiles.
#[inline(always)]
fn fill_tiles_f32<S: Aes>(stream: &Stream<'_, S, 1>, columns: bool, scale: S::F, out: &mut [[f32; LANES]]) {
    let (pairs, last) = stream.lines().as_chunks::<2>();
    let (outs, last_out) = out[..4 * stream.lines().len()].split_at_mut(8 * pairs.len());
    // Words of what comes next are made while the normals of this pair are.
    let mut alone = match last {
        [line] if pairs.is_empty() => Some(stream.words(line)),
        _ => None,
    };
    if let Some((first, others)) = pairs.split_first() {
        let mut words = [stream.words(&first[0]), stream.words(&first[1])];
        let mut outs = outs.as_chunks_mut::<8>().0.iter_mut();
        for (next, out) in others.iter().zip(&mut outs) {
            let mut next = [stream.words(&next[0]), stream.words(&next[1])];
            for (next, now) in next.as_flattened_mut().iter_mut().zip(words.as_flattened_mut()) {
                S::in_order(&mut next[0], &mut now[0]);
            }
            store_f32::<S>(&words, scale, out);
            words = next;
        }
        if let [line] = last {
            let mut next = stream.words(line);
            for (next, now) in next.iter_mut().zip(&mut words[0]) {
                S::in_order(&mut next[0], &mut now[0]);
            }
            alone = Some(next);
        }
        if let Some(out) = outs.next() {
            store_f32::<S>(&words, scale, out);
        }
    }
    if let Some(words) = alone {
        store_alone_f32::<S>(words, scale, columns, last_out);
    }
}

#[inline(always)]
fn store_f32<S: Simd>([radii, angles]: &[[[S::U; 1]; 4]; 2], scale: S::F, out: &mut [[f32; LANES]; 8]) {
    let [first, second] = pairs_f32::<S, 1, 4>(radii, angles, scale);
    for g in 0..4 {
        first[g][0].store(&mut out[g]);
        second[g][0].store(&mut out[4 + g]);
    }
}

/// The same in double precision.
#[inline(always)]
pub(crate) fn fill_f64<S: Aes>(
    schedule: &mut Schedule,
    key: &Key,
    ids: &PanelIds,
    quads: Range<usize>,
    vectors: usize,
    columns: bool,
    scale: S::D,
    out: &mut [[f64; LANES]],
) {
    let stream = Stream::<S, 2>::new(schedule, key, ids, quads, vectors);
    let (rows, out) = out.split_at_mut(LANES * vectors);
    for at in 0..batches(vectors) {
        let ([radii, angles], at) = batch(&stream, vectors, at);
        let (radii, angles) = (joined::<S>(radii), joined::<S>(angles));
        for half in 0..2 {
            let [a, b] = [2 * half, 2 * half + 1];
            let [first, second] = pairs_f64::<S, 2>(&[radii[a], radii[b]], &[angles[a], angles[b]], scale);
            for m in 0..2 {
                at.store::<S, f64>(2 * half + m, S::D::in_turns(first[m], second[m]), rows);
            }
        }
    }
    let (pairs, last) = stream.lines().as_chunks::<2>();
    let (outs, last_out) = out[..4 * stream.lines().len()].split_at_mut(8 * pairs.len());
    for ([a, b], out) in pairs.iter().zip(outs.as_chunks_mut::<8>().0) {
        let (radii, angles) = (joined::<S>(stream.words(a)), joined::<S>(stream.words(b)));
        for half in 0..2 {
            let [a, b] = [2 * half, 2 * half + 1];
            let [first, second] = pairs_f64::<S, 2>(&[radii[a], radii[b]], &[angles[a], angles[b]], scale);
            for m in 0..2 {
                first[m].store(&mut out[2 * half + m]);
                second[m].store(&mut out[4 + 2 * half + m]);
            }
        }
    }
    if let [line] = last {
        let [a, b, c, d] = joined::<S>(stream.words(line));
        if columns {
            let [radii, angles] = S::W::first_two([a, b, c, d]);
            let [[first], [second]] = pairs_f64::<S, 1>(&[radii], &[angles], scale);
            first.store(&mut last_out[0]);
            return second.store(&mut last_out[1]);
        }
        let [[r0, a0], [r1, a1]] = [S::W::unzip(a, b), S::W::unzip(c, d)];
        let [n, m] = pairs_f64::<S, 2>(&[r0, r1], &[a0, a1], scale);
        for (half, out) in last_out.as_chunks_mut::<2>().0.iter_mut().enumerate() {
            let [first, second] = S::D::zip(n[half], m[half]);
            first.store(&mut out[0]);
            second.store(&mut out[1]);
        }
    }

    #[inline(always)]
    fn joined<S: Aes>(words: [[S::U; 2]; 4]) -> [S::W; 4] {
        let mut out = [S::join(words[0][0], words[0][1]); 4];
        for g in 1..4 {
            out[g] = S::join(words[g][0], words[g][1]);
        }
        out
    }
}

/// Rows of `dim` normals.
#[inline(always)]
fn rows<S: Aes, T: Real>(key: &Key, walkers: WalkerIds<'_>, dim: usize, out: &mut [T]) {
    if dim == 0 {
        return;
    }
    let (count, quads) = (out.len() / dim, dim.div_ceil(4));
    assert!(count * dim <= out.len());
    let (mut schedule, mut tiles) = (Schedule::new(), [[T::ZERO; LANES]; 4 * Schedule::QUADS]);
    let one = T::splat::<S>(T::ONE);
    let mut row = 0;
    while row < count {
        let mut ids = std::array::from_fn(|l| walkers.get((row + l).min(count - 1)));
        let mut lanes = (count - row).min(LANES);
        if !share_stream(&ids) {
            (ids, lanes) = ([ids[0]; LANES], 1);
        }
        let starts: [usize; LANES] = std::array::from_fn(|l| (row + l.min(lanes - 1)) * dim);
        for group in (0..quads).step_by(Schedule::QUADS) {
            let end = (group + Schedule::QUADS).min(quads);
            let vectors = (dim - 4 * group).min(4 * Schedule::QUADS) / LANES;
            let ids = PanelIds::of(&ids);
            T::fill_noise::<S>(&mut schedule, key, &ids, group..end, vectors, false, one, &mut tiles);
            let (rows, tiles) = tiles.split_at(LANES * vectors);
            for (v, rows) in rows.as_chunks::<LANES>().0.iter().enumerate() {
                for l in 0..lanes {
                    let to = out.as_mut_ptr().wrapping_add(starts[l] + 4 * group + LANES * v);
                    // SAFETY: rows have `dim` numbers, and from `4 group` on there are as many whole vectors of them.
                    T::V::<S>::load(&rows[l]).store(unsafe { &mut *to.cast() });
                }
            }
            for (quad, tiles) in (group + 4 * vectors..end).zip(tiles.as_chunks::<4>().0) {
                let columns = (dim - 4 * quad).min(4);
                for g in 0..4 {
                    let (tile, at) = (T::V::<S>::load(&tiles[g]), tile_of(&starts, g));
                    // SAFETY: rows have `dim` numbers, and there are `columns` of them from `4 quad` on.
                    unsafe { tile.store_tile(out.as_mut_ptr().add(4 * quad), &at, columns) };
                }
            }
        }
        row += lanes;
    }
}

dispatch_aes! {
    /// Rows of `dim` standard normals for `walkers`.
    pub(crate) fn noise_rows{T: Real}{T}(key: &Key, walkers: WalkerIds<'_>, dim: usize, out: &mut [T]) = rows
}
