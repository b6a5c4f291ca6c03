//! The normals of fused moves: words by [ARS](super::ars), normals by Box-Muller, as tiles of four walkers and four dimensions.
//!
//! Groups of four dimensions come in pairs: the words of the first are radii, those of the second angles, and each lane's pair of normals is one for the
//! first group and one for the second. A last group without a partner makes pairs of its own neighbouring words.

use super::Key;
use super::ars::{Schedule, Stream};
use super::normal::{pairs_f32, pairs_f64, share_stream};
use crate::real::{Real, WalkerIds};
use crate::simd::tile::tile_of;
use crate::simd::{Aes, LANES, Simd, Tile, Unzip, Vector, dispatch_aes};
use std::ops::Range;

/// `scale` times the normals of a panel in some groups of four dimensions, the first of which is even: tile `g` of group `q` in `out[4 q + g]`.
#[inline(always)]
pub(crate) fn fill_f32<S: Aes>(
    schedule: &mut Schedule,
    key: &Key,
    ids: &[u64; LANES],
    quads: Range<usize>,
    scale: S::F,
    out: &mut [[f32; LANES]],
) {
    let stream = Stream::<S, 1>::new(schedule, key, ids, quads);
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
    if let Some([[a], [b], [c], [d]]) = alone {
        let [[r0, a0], [r1, a1]] = [S::U::unzip(a, b), S::U::unzip(c, d)];
        let [[n], [m]] = pairs_f32::<S, 2, 1>(&[[r0, r1]], &[[a0, a1]], scale);
        for (half, out) in last_out.as_chunks_mut::<2>().0.iter_mut().enumerate() {
            let [first, second] = S::F::zip(n[half], m[half]);
            first.store(&mut out[0]);
            second.store(&mut out[1]);
        }
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
    ids: &[u64; LANES],
    quads: Range<usize>,
    scale: S::D,
    out: &mut [[f64; LANES]],
) {
    let stream = Stream::<S, 2>::new(schedule, key, ids, quads);
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
            T::fill_tiles::<S>(&mut schedule, key, &ids, group..end, one, &mut tiles);
            for (quad, tiles) in (group..end).zip(tiles.as_chunks::<4>().0) {
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
