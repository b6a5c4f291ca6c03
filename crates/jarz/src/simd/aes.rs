//! The round of the Advanced Encryption Standard (FIPS 197), of four 128-bit blocks at a time.
//!
//! A block is four neighbouring 32-bit lanes, the columns of the standard's state, its rows from the lowest byte up.

use super::LANES;
use super::portable::{self, Portable};
use super::vector::{Simd, Words};

/// Instruction sets on which counters can be encrypted.
pub trait Aes: Simd {
    /// One block four times.
    fn repeat(block: &[u32; 4]) -> Self::U;
    /// One block twice, then another twice.
    fn repeat_two(first: &[u32; 4], second: &[u32; 4]) -> Self::U;
    /// The words of eight blocks, two to a lane, the lower one first.
    fn join(first: Self::U, second: Self::U) -> Self::W;
    /// `mix_columns(shift_rows(sub_bytes(state))) ^ key`.
    fn aes_round(state: Self::U, key: Self::U) -> Self::U;
    /// The last round, which does not mix columns.
    fn aes_last(state: Self::U, key: Self::U) -> Self::U;
    /// Has the compiler make `first` before it uses `then`. Rounds that nobody waits for can fill the gaps of other work only if they come first in the
    /// program, and the compiler likes to have them last.
    #[inline(always)]
    fn in_order(first: &mut Self::U, then: &mut Self::U) {
        let _ = (first, then);
    }
}

/// Product in the field of the standard.
const fn times(a: u8, b: u8) -> u8 {
    let (mut a, mut b, mut product) = (a, b, 0);
    while b > 0 {
        if b & 1 == 1 {
            product ^= a;
        }
        a = (a << 1) ^ if a >> 7 == 1 { 0x1b } else { 0 };
        b >>= 1;
    }
    product
}

/// What `sub_bytes` makes of each byte: its inverse in the field, then an affine map.
pub(crate) const SUBSTITUTES: [u8; 256] = {
    let mut table = [0; 256];
    let mut x = 0;
    while x < 256 {
        // The inverse is the power 254.
        let (mut inverse, mut i) = (1, 0);
        while i < 254 {
            inverse = times(inverse, x as u8);
            i += 1;
        }
        let b = inverse;
        table[x] = b ^ b.rotate_left(1) ^ b.rotate_left(2) ^ b.rotate_left(3) ^ b.rotate_left(4) ^ 0x63;
        x += 1;
    }
    table
};

/// What a byte of the first row adds to its column.
static MIXED: [u32; 256] = {
    let mut table = [0; 256];
    let mut x = 0;
    while x < 256 {
        let s = SUBSTITUTES[x];
        table[x] = u32::from_le_bytes([times(s, 2), s, s, times(s, 3)]);
        x += 1;
    }
    table
};

/// One round of one block, by tables.
#[inline]
pub(crate) fn round(state: [u32; 4], key: [u32; 4]) -> [u32; 4] {
    let mut out = key;
    for column in 0..4 {
        for row in 0..4 {
            let byte = state[(column + row) % 4].to_le_bytes()[row];
            out[column] ^= MIXED[byte as usize].rotate_left(8 * row as u32);
        }
    }
    out
}

/// The last round of one block.
#[inline]
pub(crate) fn last(state: [u32; 4], key: [u32; 4]) -> [u32; 4] {
    let mut out = key;
    for column in 0..4 {
        for row in 0..4 {
            let byte = state[(column + row) % 4].to_le_bytes()[row];
            out[column] ^= (SUBSTITUTES[byte as usize] as u32) << (8 * row);
        }
    }
    out
}

/// Applies a function to each block.
#[inline(always)]
fn each_block<U: Words<Scalar = u32>>(state: U, key: U, f: impl Fn([u32; 4], [u32; 4]) -> [u32; 4]) -> U {
    let (mut blocks, mut keys) = ([0; LANES], [0; LANES]);
    state.store(&mut blocks);
    key.store(&mut keys);
    for (block, key) in blocks.as_chunks_mut().0.iter_mut().zip(keys.as_chunks().0) {
        *block = f(*block, *key);
    }
    U::load(&blocks)
}

impl Aes for Portable {
    #[inline(always)]
    fn repeat(block: &[u32; 4]) -> Self::U {
        portable::U(std::array::from_fn(|l| block[l % 4]))
    }
    #[inline(always)]
    fn repeat_two(first: &[u32; 4], second: &[u32; 4]) -> Self::U {
        portable::U(std::array::from_fn(|l| if l < LANES / 2 { first[l % 4] } else { second[l % 4] }))
    }
    #[inline(always)]
    fn join(first: Self::U, second: Self::U) -> Self::W {
        let of = |l: usize| u64::from(if l < LANES { first.0[l] } else { second.0[l - LANES] });
        portable::W(std::array::from_fn(|l| of(2 * l) | of(2 * l + 1) << 32))
    }
    #[inline(always)]
    fn aes_round(state: Self::U, key: Self::U) -> Self::U {
        each_block(state, key, round)
    }
    #[inline(always)]
    fn aes_last(state: Self::U, key: Self::U) -> Self::U {
        each_block(state, key, last)
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Aes;
    use crate::simd::{avx2, avx2::Avx2, avx512, avx512::Avx512};
    use std::arch::x86_64::*;

    // SAFETY: as for all operations of these sets, which `dispatch_aes!` sees to.

    impl Aes for Avx512 {
        #[inline(always)]
        fn repeat(block: &[u32; 4]) -> avx512::U {
            unsafe { avx512::U([_mm512_broadcast_i32x4(_mm_loadu_si128(block.as_ptr().cast()))]) }
        }
        #[inline(always)]
        fn repeat_two(first: &[u32; 4], second: &[u32; 4]) -> avx512::U {
            unsafe {
                let first = _mm512_broadcast_i32x4(_mm_loadu_si128(first.as_ptr().cast()));
                let second = _mm_loadu_si128(second.as_ptr().cast());
                avx512::U([_mm512_mask_broadcast_i32x4(first, 0xff00, second)])
            }
        }
        #[inline(always)]
        fn join(first: avx512::U, second: avx512::U) -> avx512::W {
            avx512::W([first.0[0], second.0[0]])
        }
        #[inline(always)]
        fn aes_round(state: avx512::U, key: avx512::U) -> avx512::U {
            unsafe { avx512::U([_mm512_aesenc_epi128(state.0[0], key.0[0])]) }
        }
        #[inline(always)]
        fn aes_last(state: avx512::U, key: avx512::U) -> avx512::U {
            unsafe { avx512::U([_mm512_aesenclast_epi128(state.0[0], key.0[0])]) }
        }
        #[inline(always)]
        fn in_order(first: &mut avx512::U, then: &mut avx512::U) {
            unsafe { in_order(&mut first.0[0], &mut then.0[0]) }
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn in_order(first: &mut __m512i, then: &mut __m512i) {
        // SAFETY: no instruction at all.
        unsafe {
            std::arch::asm!(
                "/* {0} {1} */",
                inout(zmm_reg) * first,
                inout(zmm_reg) * then,
                options(pure, nomem, nostack, preserves_flags)
            )
        }
    }

    /// The two blocks of a register one after the other: few processors without AVX-512 have an instruction for both.
    macro_rules! by_halves {
        ($state:ident, $key:ident, $f:ident) => {{
            let mut out = $state;
            for i in 0..2 {
                out.0[i] = unsafe {
                    let (s, k) = ($state.0[i], $key.0[i]);
                    let low = $f(_mm256_castsi256_si128(s), _mm256_castsi256_si128(k));
                    let high = $f(_mm256_extracti128_si256::<1>(s), _mm256_extracti128_si256::<1>(k));
                    _mm256_set_m128i(high, low)
                };
            }
            out
        }};
    }

    impl Aes for Avx2 {
        #[inline(always)]
        fn repeat(block: &[u32; 4]) -> avx2::U {
            unsafe { avx2::U([_mm256_broadcastsi128_si256(_mm_loadu_si128(block.as_ptr().cast())); 2]) }
        }
        #[inline(always)]
        fn repeat_two(first: &[u32; 4], second: &[u32; 4]) -> avx2::U {
            avx2::U([Self::repeat(first).0[0], Self::repeat(second).0[0]])
        }
        #[inline(always)]
        fn join(first: avx2::U, second: avx2::U) -> avx2::W {
            avx2::W([first.0[0], first.0[1], second.0[0], second.0[1]])
        }
        #[inline(always)]
        fn aes_round(state: avx2::U, key: avx2::U) -> avx2::U {
            by_halves!(state, key, _mm_aesenc_si128)
        }
        #[inline(always)]
        fn aes_last(state: avx2::U, key: avx2::U) -> avx2::U {
            by_halves!(state, key, _mm_aesenclast_si128)
        }
    }
}
