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

/// The counters `(block, walker, low, high)` of 16 walkers that share `low` and `high`, for any block.
///
/// Words that are the same for all walkers stay so for a while: of the first three rounds only two of six products
/// differ between walkers, and one of these is the same for all blocks and is done here, once.
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

    /// The four words of `M` blocks from `block` on, as by [`philox_panels`].
    #[inline(always)]
    pub(crate) fn words<const M: usize>(&self, block: u32) -> [[S::W; 4]; M] {
        let mut c = [[self.product; 4]; M];
        for m in 0..M {
            c[m] = self.after_three_rounds(block + m as u32);
        }
        rounds::<S, M>(&mut c, self.key, 3, ROUNDS as u32);
        c
    }

    #[inline(always)]
    fn after_three_rounds(&self, block: u32) -> [S::W; 4] {
        let splat = |word: u32| S::W::splat(word as u64);
        // Round 0: (c0 in `product`, c1, c2, c3).
        let (high_0, c3) = wide(MULTIPLIERS[0], block);
        let (_, c1) = wide(MULTIPLIERS[1], self.low);
        let c2 = high_0 ^ self.high ^ self.key[1];
        // Round 1.
        let key = round_key(self.key, 1);
        let (high_1, next_1) = wide(MULTIPLIERS[1], c2);
        let c0 = high_1 ^ c1 ^ key[0];
        let c2 = self.product.shr(32) ^ splat(c3 ^ key[1]);
        // Round 2.
        let key = round_key(self.key, 2);
        let (high_0, c3) = wide(MULTIPLIERS[0], c0);
        let p1 = S::mul_low(splat(MULTIPLIERS[1]), c2);
        [p1.shr(32) ^ splat(next_1 ^ key[0]), p1, self.product ^ splat(high_0 ^ key[1]), splat(c3)]
    }
}
