//! ARS (Salmon et al. 2011): the rounds of AES with keys that a Weyl sequence makes of the first one, one counter at a time and by panels.
//!
//! The counter is the address of [`Key::counter`], the key the seed.

use super::Key;
use crate::simd::{Aes, LANES, Tile, Words, aes};
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

/// What a [`Schedule`] was made for.
#[derive(PartialEq, Eq)]
struct Made {
    seed: [u32; 2],
    step: [u32; 2],
    quads: Range<usize>,
    vectors: usize,
}

/// What all walkers of a step have in common, kept from panel to panel.
///
/// Bytes of a counter belong to the walker or to the block or are common to all. The first round replaces bytes one by one, and what follows
/// in it is linear: its result is a part of the walker's and a part of the block's, added up without carry. Both are made once.
pub struct Schedule {
    made: Option<Made>,
    /// The state before the first round of block 0 of a walker whose lower word is zero.
    start: [u32; 4],
    keys: [[u32; 4]; ARS_ROUNDS - 1],
    /// The blocks' parts in the first round, and its key, by groups of four dimensions.
    lines: [[u32; LANES]; Schedule::QUADS],
    /// The same for rows: of 32 dimensions the even groups of four, then the odd ones, in two vectors each if a walker needs as many.
    rows: [[[[u32; LANES]; 2]; 2]; Schedule::QUADS / 8],
    /// The same of 16 dimensions, as often as a vector has room for them.
    half_rows: [[[u32; LANES]; 2]; Schedule::QUADS / 8],
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
            rows: [[[[0; LANES]; 2]; 2]; Self::QUADS / 8],
            half_rows: [[[0; LANES]; 2]; Self::QUADS / 8],
        }
    }

    /// Makes what belongs to some groups, `B` blocks each, of which the first `4 vectors` come as rows and the others as tiles, and to walkers that share
    /// all but the lower word of their ids with `id`.
    #[inline(always)]
    fn prepare<S: Aes, const B: usize>(&mut self, key: &Key, id: u64, quads: Range<usize>, vectors: usize) {
        let [_, _, low, high] = key.counter(id, 0);
        let wanted = Some(Made { seed: key.seed, step: [low, high], quads: quads.clone(), vectors });
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
        let make = |line: &mut [u32; LANES], [a, b, c, d]: [usize; 4]| {
            let mut blocks = [0; LANES];
            (blocks[0], blocks[4], blocks[8], blocks[12]) = (a as u32, b as u32, c as u32, d as u32);
            S::aes_round(start ^ S::U::load(&blocks), common).store(line);
        };
        for (quad, line) in quads.clone().zip(&mut self.lines).skip(4 * vectors) {
            make(line, std::array::from_fn(|i| B * quad + i % B));
        }
        for j in 0..vectors.div_ceil(2) {
            for odd in 0..2 {
                let quad = |i: usize| quads.start + 8 * j + 2 * i + odd;
                for b in 0..B {
                    let slots = std::array::from_fn(|i| B * quad((4 * b + i) / B) + i % B);
                    make(&mut self.rows[j][odd][b], slots);
                }
                make(&mut self.half_rows[j][odd], std::array::from_fn(|i| B * quad(i / B % 2) + i % B));
            }
        }
        self.made = wanted;
    }
}

/// Ids of a panel's walkers, which have all but their lower words in common.
#[derive(Clone, Copy)]
pub struct PanelIds {
    first: u64,
    low: [u32; LANES],
}

impl PanelIds {
    /// `first, first + 1, ...` as far as `lanes`, and the last again for the rest.
    #[inline(always)]
    pub(crate) fn contiguous(first: u64, lanes: usize) -> Self {
        let (low, last) = (first as u32, lanes as u32 - 1);
        PanelIds { first, low: std::array::from_fn(|l| low.wrapping_add((l as u32).min(last))) }
    }

    /// Any that share their upper words.
    #[inline(always)]
    pub(crate) fn of(ids: &[u64; LANES]) -> Self {
        PanelIds { first: ids[0], low: ids.map(|id| id as u32) }
    }

    /// That of walker `l`.
    #[inline(always)]
    pub(crate) fn get(&self, l: usize) -> u64 {
        self.first >> 32 << 32 | u64::from(self.low[l])
    }
}

/// The random words of a panel's walkers as rows and as tiles (see [`crate::simd::Tile`]), with `B` blocks for a walker's four dimensions.
pub(crate) struct Stream<'a, S: Aes, const B: usize> {
    walkers: [[S::U; B]; 4],
    /// The same in memory.
    parts: [[[u32; LANES]; B]; 4],
    keys: [S::U; ARS_ROUNDS - 1],
    schedule: &'a Schedule,
    lines: &'a [[u32; LANES]],
}

impl<'a, S: Aes, const B: usize> Stream<'a, S, B> {
    /// Of some groups of four dimensions, the first `4 vectors` of them as rows.
    #[inline(always)]
    pub(crate) fn new(
        schedule: &'a mut Schedule,
        key: &Key,
        ids: &PanelIds,
        quads: Range<usize>,
        vectors: usize,
    ) -> Self {
        let count = quads.len();
        schedule.prepare::<S, B>(key, ids.first, quads, vectors);
        let start = S::repeat(&schedule.start);
        let (mut walkers, mut parts) = ([[start; B]; 4], [[[0; LANES]; B]; 4]);
        // The second word of a counter is the walker's.
        let spread = S::from_bits(S::U::load(&ids.low)).spread();
        let second = S::U::load(&std::array::from_fn(|w| if w % 4 == 1 { u32::MAX } else { 0 }));
        for g in 0..4 {
            for b in 0..B {
                let words = if B == 1 {
                    S::bits(spread[g]) & second
                } else {
                    let mut words = [0; LANES];
                    for i in 0..4 {
                        words[4 * i + 1] = ids.low[(4 * b + i) / B * 4 + g];
                    }
                    S::U::load(&words)
                };
                walkers[g][b] = S::aes_round(start ^ words, S::U::splat(0));
                walkers[g][b].store(&mut parts[g][b]);
            }
        }
        let mut keys = [start; ARS_ROUNDS - 1];
        for (key, from) in keys.iter_mut().zip(&schedule.keys) {
            *key = S::repeat(from);
        }
        Stream { walkers, parts, keys, schedule, lines: &schedule.lines[4 * vectors..count] }
    }

    /// What the groups that come as tiles have of their own.
    #[inline(always)]
    pub(crate) fn lines(&self) -> &'a [[u32; LANES]] {
        self.lines
    }

    /// The words of a group's four tiles.
    #[inline(always)]
    pub(crate) fn words(&self, line: &[u32; LANES]) -> [[S::U; B]; 4] {
        self.encrypt(&self.walkers, &[S::U::load(line); B])
    }

    /// A walker's part in the first round.
    #[inline(always)]
    fn part_of(&self, walker: usize) -> &[u32; 4] {
        let slot = walker / 4 * B;
        &self.parts[walker % 4][slot / 4].as_chunks().0[slot % 4]
    }

    /// The words of four walkers from `first` on in the 32 dimensions `32 j` to `32 j + 31`: those of the even groups of four, then those of the odd ones.
    #[inline(always)]
    pub(crate) fn row_words(&self, j: usize, first: usize) -> [[[S::U; B]; 4]; 2] {
        let mut walkers = self.walkers;
        for m in 0..4 {
            walkers[m] = [S::repeat(self.part_of(first + m)); B];
        }
        let mut lines = [[walkers[0][0]; B]; 2];
        for odd in 0..2 {
            for b in 0..B {
                lines[odd][b] = S::U::load(&self.schedule.rows[j][odd][b]);
            }
        }
        [self.encrypt(&walkers, &lines[0]), self.encrypt(&walkers, &lines[1])]
    }

    /// The words of eight walkers from `first` on, two by two, in the 16 dimensions `32 j` to `32 j + 15`, likewise.
    #[inline(always)]
    pub(crate) fn half_row_words(&self, j: usize, first: usize) -> [[[S::U; B]; 4]; 2] {
        let mut walkers = self.walkers;
        for m in 0..4 {
            let pair = [self.part_of(first + 2 * m), self.part_of(first + 2 * m + 1)];
            if B == 1 {
                walkers[m] = [S::repeat_two(pair[0], pair[1]); B];
            } else {
                for b in 0..B {
                    walkers[m][b] = S::repeat(pair[b]);
                }
            }
        }
        let [even, odd] = &self.schedule.half_rows[j];
        [self.encrypt(&walkers, &[S::U::load(even); B]), self.encrypt(&walkers, &[S::U::load(odd); B])]
    }

    /// The rounds that are left, in lockstep.
    #[inline(always)]
    fn encrypt(&self, walkers: &[[S::U; B]; 4], lines: &[S::U; B]) -> [[S::U; B]; 4] {
        let mut out = *walkers;
        for g in 0..4 {
            for b in 0..B {
                out[g][b] = out[g][b] ^ lines[b];
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
