//! ARS (Salmon et al. 2011): the rounds of AES with keys that a Weyl sequence makes of the first one, one counter at a time and by panels.
//!
//! The counter is the address of [`Key::counter`], the key the seed.

use super::Key;
use crate::simd::{Aes, LANES, Words, aes};
use std::ops::Range;

/// Rounds of the generator: as with Philox the fewest that its authors found to pass all of TestU01's BigCrush. (Their default of 7 is a margin for the
/// cautious; the two rounds would be a fortieth of the mixture's step.)
pub const ARS_ROUNDS: usize = 5;
/// What is added to the halves of the key before every round.
pub const ARS_WEYL: [u64; 2] = [0x9E37_79B9_7F4A_7C15, 0xBB67_AE85_84CA_A73B];

/// The key of a round, of which the first is number 1.
#[inline(always)]
fn round_key(key: [u32; 4], round: usize) -> [u32; 4] {
    let mut out = key;
    for half in 0..2 {
        let word = u64::from(key[2 * half]) | u64::from(key[2 * half + 1]) << 32;
        let word = word.wrapping_add(ARS_WEYL[half].wrapping_mul(round as u64));
        (out[2 * half], out[2 * half + 1]) = (word as u32, (word >> 32) as u32);
    }
    out
}

/// ARS with `ROUNDS` rounds, one counter.
pub fn ars4x32<const ROUNDS: usize>(counter: [u32; 4], key: [u32; 4]) -> [u32; 4] {
    let mut state = std::array::from_fn(|w| counter[w] ^ key[w]);
    for round in 1..ROUNDS {
        state = aes::round(state, round_key(key, round));
    }
    aes::last(state, round_key(key, ROUNDS))
}

/// The seed as a key.
pub(crate) fn ars_key(seed: [u32; 2]) -> [u32; 4] {
    [seed[0], seed[1], 0, 0]
}

/// What all walkers of a step have in common, kept from panel to panel.
///
/// Bytes of a counter belong to the walker or to the block or are common to all. The first round replaces bytes one by one, and what follows
/// in it is linear: its result is a part of the walker's and a part of the block's, added up without carry. Both are made once.
pub struct Schedule {
    made: Option<([u32; 2], u32, u32, usize)>,
    /// The state before the first round of block 0 of a walker whose lower word is zero.
    start: [u32; 4],
    keys: [[u32; 4]; ARS_ROUNDS - 1],
    /// The blocks' parts in the first round, and its key, by groups of four dimensions.
    lines: [[u32; LANES]; Schedule::QUADS],
}

impl Schedule {
    /// Groups of four dimensions there is room for.
    pub(crate) const QUADS: usize = 16;

    pub(crate) fn new() -> Self {
        Schedule {
            made: None,
            start: [0; 4],
            keys: [[0; 4]; ARS_ROUNDS - 1],
            lines: [[0; LANES]; Self::QUADS],
        }
    }

    /// Makes what belongs to the groups from `first` on, `B` blocks each, and to walkers that share all but the lower word of their ids with `id`.
    #[inline(always)]
    fn prepare<S: Aes, const B: usize>(&mut self, key: &Key, id: u64, first: usize) {
        let [_, _, low, high] = key.counter(id, 0);
        let wanted = Some((key.seed, low, high, first));
        if self.made == wanted {
            return;
        }
        let seed = ars_key(key.seed);
        self.start = [seed[0], seed[1], low ^ seed[2], high ^ seed[3]];
        for (round, round_key_of) in (2..).zip(&mut self.keys) {
            *round_key_of = round_key(seed, round);
        }
        let start = S::repeat(&self.start);
        // A block's part and a walker's part both contain what is common to all, which is to be there once.
        let common = S::aes_round(start, S::repeat(&round_key(seed, 1)));
        for (quad, line) in (first..).zip(&mut self.lines) {
            let mut blocks = [0; LANES];
            for i in 0..4 {
                blocks[4 * i] = (B * quad + i % B) as u32;
            }
            S::aes_round(start ^ S::U::load(&blocks), common).store(line);
        }
        self.made = wanted;
    }
}

/// The random words of a panel's walkers as tiles (see [`crate::simd::Tile`]), with `B` blocks for a walker's four dimensions.
pub(crate) struct Stream<'a, S: Aes, const B: usize> {
    walkers: [[S::U; B]; 4],
    keys: [S::U; ARS_ROUNDS - 1],
    lines: &'a [[u32; LANES]],
}

impl<'a, S: Aes, const B: usize> Stream<'a, S, B> {
    /// Of some groups of four dimensions. All but the lower word of the ids must agree.
    #[inline(always)]
    pub(crate) fn new(
        schedule: &'a mut Schedule,
        key: &Key,
        ids: &[u64; LANES],
        quads: Range<usize>,
    ) -> Self {
        schedule.prepare::<S, B>(key, ids[0], quads.start);
        let start = S::repeat(&schedule.start);
        let mut walkers = [[start; B]; 4];
        for g in 0..4 {
            for b in 0..B {
                let mut words = [0; LANES];
                for i in 0..4 {
                    words[4 * i + 1] = ids[(4 * b + i) / B * 4 + g] as u32;
                }
                walkers[g][b] = S::aes_round(start ^ S::U::load(&words), S::U::splat(0));
            }
        }
        let mut keys = [start; ARS_ROUNDS - 1];
        for (key, from) in keys.iter_mut().zip(&schedule.keys) {
            *key = S::repeat(from);
        }
        Stream { walkers, keys, lines: &schedule.lines[..quads.len()] }
    }

    /// What the groups have of their own.
    #[inline(always)]
    pub(crate) fn lines(&self) -> &'a [[u32; LANES]] {
        self.lines
    }

    /// The words of a group's four tiles.
    #[inline(always)]
    pub(crate) fn words(&self, line: &[u32; LANES]) -> [[S::U; B]; 4] {
        let line = S::U::load(line);
        let mut out = self.walkers;
        for g in 0..4 {
            for b in 0..B {
                out[g][b] = out[g][b] ^ line;
            }
        }
        for round in 0..ARS_ROUNDS - 2 {
            for g in 0..4 {
                for b in 0..B {
                    out[g][b] = S::aes_round(out[g][b], self.keys[round]);
                }
            }
        }
        for g in 0..4 {
            for b in 0..B {
                out[g][b] = S::aes_last(out[g][b], self.keys[ARS_ROUNDS - 2]);
            }
        }
        out
    }
}
