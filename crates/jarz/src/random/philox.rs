//! The Philox4x32 bijection, one counter at a time and 16 at once.

use crate::simd::{Simd, Words};

/// Rounds of the generator: the fewest that its authors found to pass all of TestU01's BigCrush. (Their default of 10 is a margin
/// for the cautious; the three rounds would be a fifth of the time of a normal.)
pub const ROUNDS: usize = 7;
/// What the first and the third word of the counter are multiplied with.
pub const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
/// What is added to the key after every round.
pub const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];

#[inline(always)]
fn wide(a: u32, b: u32) -> (u32, u32) {
    let product = a as u64 * b as u64;
    ((product >> 32) as u32, product as u32)
}

/// Philox4x32 with `ROUNDS` rounds (10 as published), one counter.
#[inline]
pub fn philox4x32<const ROUNDS: usize>(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..ROUNDS {
        let (high_0, low_0) = wide(MULTIPLIERS[0], counter[0]);
        let (high_1, low_1) = wide(MULTIPLIERS[1], counter[2]);
        counter = [high_1 ^ counter[1] ^ key[0], low_1, high_0 ^ counter[3] ^ key[1], low_0];
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    counter
}

/// Rounds of Philox4x32 for `M` groups of 16 counters in lockstep, each word in the low half of a 64-bit lane (what is in the high halves
/// does not matter). One group alone would leave the processor waiting for its products.
#[inline(always)]
fn rounds<S: Simd, const M: usize>(c: &mut [[S::W; 4]; M], key: [u32; 2], from: u32, to: u32) {
    let (m0, m1) = (S::W::splat(MULTIPLIERS[0] as u64), S::W::splat(MULTIPLIERS[1] as u64));
    for round in from..to {
        let key = round_key(key, round);
        let (k0, k1) = (S::W::splat(key[0] as u64), S::W::splat(key[1] as u64));
        for m in 0..M {
            let (p0, p1) = (S::mul_low(m0, c[m][0]), S::mul_low(m1, c[m][2]));
            c[m] = [p1.shr(32) ^ c[m][1] ^ k0, p1, p0.shr(32) ^ c[m][3] ^ k1, p0];
        }
    }
}

#[inline(always)]
fn round_key(key: [u32; 2], round: u32) -> [u32; 2] {
    [key[0].wrapping_add(WEYL[0].wrapping_mul(round)), key[1].wrapping_add(WEYL[1].wrapping_mul(round))]
}

/// Philox4x32 of `M` groups of 16 counters.
#[inline(always)]
pub(crate) fn philox_panels<S: Simd, const M: usize>(mut c: [[S::W; 4]; M], key: [u32; 2]) -> [[S::W; 4]; M] {
    rounds::<S, M>(&mut c, key, 0, ROUNDS as u32);
    c
}

/// What the walkers of a panel have in common of one block after three rounds.
pub(crate) type Line = [u64; 4];

/// The [`Line`] of the counters `(block, walker, low, high)`, whoever the walkers are.
#[inline(always)]
fn line(key: [u32; 2], low: u32, high: u32, block: u32) -> Line {
    // Round 0; the first word differs between walkers.
    let (high_0, c3) = wide(MULTIPLIERS[0], block);
    let (_, c1) = wide(MULTIPLIERS[1], low);
    let c2 = high_0 ^ high ^ key[1];
    // Round 1; the third word differs.
    let key_1 = round_key(key, 1);
    let (high_1, next_1) = wide(MULTIPLIERS[1], c2);
    let c0 = high_1 ^ c1 ^ key_1[0];
    // Round 2.
    let key_2 = round_key(key, 2);
    let (high_0, next_3) = wide(MULTIPLIERS[0], c0);
    [c3 ^ key_1[1], next_1 ^ key_2[0], high_0 ^ key_2[1], next_3].map(u64::from)
}

/// The lines of blocks in a row, which many panels share.
pub(crate) struct Blocks {
    made: Option<([u32; 2], u32, u32, u32)>,
    lines: [Line; Blocks::ROOM],
}

impl Blocks {
    /// Blocks there is room for.
    pub(crate) const ROOM: usize = 32;

    #[inline(always)]
    pub(crate) fn new() -> Self {
        Blocks { made: None, lines: [[0; 4]; Self::ROOM] }
    }

    /// The lines from block `first` on, of all walkers that share `low` and `high`.
    #[inline(always)]
    pub(crate) fn from(&mut self, key: [u32; 2], low: u32, high: u32, first: u32) -> &[Line; Self::ROOM] {
        let wanted = Some((key, low, high, first));
        if self.made != wanted {
            for (line_of, block) in self.lines.iter_mut().zip(first..) {
                *line_of = line(key, low, high, block);
            }
            self.made = wanted;
        }
        &self.lines
    }
}

/// The counters `(block, walker, low, high)` of 16 walkers that share `low` and `high`, for any block.
///
/// Words that are the same for all walkers stay so for a while: of the first three rounds only two of six products
/// differ between walkers, and one of these is the same for all blocks and is done here, once. The others make the blocks' lines.
#[derive(Clone, Copy)]
pub(crate) struct Panel<S: Simd> {
    key: [u32; 2],
    low: u32,
    high: u32,
    /// First product of the second round.
    product: S::W,
}

impl<S: Simd> Panel<S> {
    #[inline(always)]
    pub(crate) fn new(key: [u32; 2], walkers: S::W, low: u32, high: u32) -> Self {
        let (shared, _) = wide(MULTIPLIERS[1], low);
        let c0 = walkers ^ S::W::splat((shared ^ key[0]) as u64);
        Panel { key, low, high, product: S::mul_low(S::W::splat(MULTIPLIERS[0] as u64), c0) }
    }

    /// Lines from block `first` on, kept in `blocks`.
    #[inline(always)]
    pub(crate) fn lines<'a>(&self, blocks: &'a mut Blocks, first: u32) -> &'a [Line; Blocks::ROOM] {
        blocks.from(self.key, self.low, self.high, first)
    }

    /// The four words of `M` blocks from `block` on, as by [`philox_panels`].
    #[inline(always)]
    pub(crate) fn words<const M: usize>(&self, block: u32) -> [[S::W; 4]; M] {
        let mut lines = [[0; 4]; M];
        for m in 0..M {
            lines[m] = line(self.key, self.low, self.high, block + m as u32);
        }
        self.words_of(&lines)
    }

    /// The four words of `M` blocks.
    #[inline(always)]
    pub(crate) fn words_of<const M: usize>(&self, lines: &[Line; M]) -> [[S::W; 4]; M] {
        let mut c = self.after_three_rounds(lines);
        rounds::<S, M>(&mut c, self.key, 3, ROUNDS as u32);
        c
    }

    /// The same words, 32 bits to a lane: the last round is done on twice as many lanes.
    #[inline(always)]
    pub(crate) fn narrow_words_of<const M: usize>(&self, lines: &[Line; M]) -> [[S::U; 4]; M] {
        let mut c = self.after_three_rounds(lines);
        let last = ROUNDS as u32 - 1;
        rounds::<S, M>(&mut c, self.key, 3, last);
        let key = round_key(self.key, last);
        let (m0, m1) = (S::W::splat(MULTIPLIERS[0] as u64), S::W::splat(MULTIPLIERS[1] as u64));
        let mut out = [[S::U::splat(0); 4]; M];
        for m in 0..M {
            let (p0, p1) = (S::mul_low(m0, c[m][0]), S::mul_low(m1, c[m][2]));
            out[m] = [
                S::high(p1) ^ S::low(c[m][1]) ^ S::U::splat(key[0]),
                S::low(p1),
                S::high(p0) ^ S::low(c[m][3]) ^ S::U::splat(key[1]),
                S::low(p0),
            ];
        }
        out
    }

    #[inline(always)]
    fn after_three_rounds<const M: usize>(&self, lines: &[Line; M]) -> [[S::W; 4]; M] {
        let mut c = [[self.product; 4]; M];
        let high = self.product.shr(32);
        for m in 0..M {
            let [to_2, next_0, next_2, next_3] = lines[m].map(S::W::splat);
            let p1 = S::mul_low(S::W::splat(MULTIPLIERS[1] as u64), high ^ to_2);
            c[m] = [p1.shr(32) ^ next_0, p1, self.product ^ next_2, next_3];
        }
        c
    }
}
