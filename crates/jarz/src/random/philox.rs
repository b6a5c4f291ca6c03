//! The Philox4x32 bijection, one counter at a time and in groups of lanes.

use crate::simd::LANES;

const MULTIPLIER_0: u32 = 0xD251_1F53;
const MULTIPLIER_1: u32 = 0xCD9E_8D57;
const WEYL_0: u32 = 0x9E37_79B9;
const WEYL_1: u32 = 0xBB67_AE85;

#[inline(always)]
fn wide(a: u32, b: u32) -> (u32, u32) {
    let product = a as u64 * b as u64;
    ((product >> 32) as u32, product as u32)
}

/// Philox4x32 with `ROUNDS` rounds (10 as published), one counter.
#[inline]
pub fn philox4x32<const ROUNDS: usize>(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..ROUNDS {
        let (high_0, low_0) = wide(MULTIPLIER_0, counter[0]);
        let (high_1, low_1) = wide(MULTIPLIER_1, counter[2]);
        counter = [high_1 ^ counter[1] ^ key[0], low_1, high_0 ^ counter[3] ^ key[1], low_0];
        key = [key[0].wrapping_add(WEYL_0), key[1].wrapping_add(WEYL_1)];
    }
    counter
}

/// The same for a group of counters, word by word.
#[inline(always)]
pub(crate) fn philox_lanes<const ROUNDS: usize>(counter: &mut [[u32; LANES]; 4], mut key: [u32; 2]) {
    for _ in 0..ROUNDS {
        let [c0, c1, c2, c3] = *counter;
        let mut next = [[0u32; LANES]; 4];
        for l in 0..LANES {
            let (high_0, low_0) = wide(MULTIPLIER_0, c0[l]);
            let (high_1, low_1) = wide(MULTIPLIER_1, c2[l]);
            next[0][l] = high_1 ^ c1[l] ^ key[0];
            next[1][l] = low_1;
            next[2][l] = high_0 ^ c3[l] ^ key[1];
            next[3][l] = low_0;
        }
        *counter = next;
        key = [key[0].wrapping_add(WEYL_0), key[1].wrapping_add(WEYL_1)];
    }
}
