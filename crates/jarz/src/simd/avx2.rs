//! AVX2 with fused multiply-add: 16 `f32` are two registers.

use super::LANES;
use super::tile::Tile;
use super::vector::{Simd, Vector, Words, operators, registers};
use std::arch::x86_64::*;

/// AVX2, FMA, BMI2. Its operations may only be reached from code compiled for these features, on a processor that has them:
/// `dispatch!` sees to both.
#[derive(Clone, Copy)]
pub struct Avx2;

registers!(F, __m256, 2);
registers!(D, __m256d, 4);
registers!(U, __m256i, 2);
registers!(W, __m256i, 4);

operators!(F: Add add = _mm256_add_ps, Sub sub = _mm256_sub_ps, Mul mul = _mm256_mul_ps);
operators!(D: Add add = _mm256_add_pd, Sub sub = _mm256_sub_pd, Mul mul = _mm256_mul_pd);
operators!(U: Add add = _mm256_add_epi32, Sub sub = _mm256_sub_epi32, BitAnd bitand = _mm256_and_si256,
    BitOr bitor = _mm256_or_si256, BitXor bitxor = _mm256_xor_si256);
operators!(W: Add add = _mm256_add_epi64, Sub sub = _mm256_sub_epi64, BitAnd bitand = _mm256_and_si256,
    BitOr bitor = _mm256_or_si256, BitXor bitxor = _mm256_xor_si256);

// SAFETY, for all of this file: see `Avx2`; pointers are the caller's promise or lie within the slice at hand.

/// What `f32` and `f64` have in common.
macro_rules! float {
    ($t:ty, $per:literal, $count:literal, $ops:ident) => {
        #[inline(always)]
        fn splat(value: $t) -> Self {
            unsafe { Self([$ops!(set1)(value); $count]) }
        }
        #[inline(always)]
        fn mul_add(mut self, b: Self, c: Self) -> Self {
            for i in 0..$count {
                self.0[i] = unsafe { $ops!(fmadd)(self.0[i], b.0[i], c.0[i]) };
            }
            self
        }
        #[inline(always)]
        fn neg_mul_add(mut self, b: Self, c: Self) -> Self {
            for i in 0..$count {
                self.0[i] = unsafe { $ops!(fnmadd)(self.0[i], b.0[i], c.0[i]) };
            }
            self
        }
        #[inline(always)]
        fn sqrt(self) -> Self {
            self.each(|v| unsafe { $ops!(sqrt)(v) })
        }
        #[inline(always)]
        fn div(self, other: Self) -> Self {
            self.pairs(other, |a, b| unsafe { $ops!(div)(a, b) })
        }
        #[inline(always)]
        fn if_greater(self, other: Self, yes: Self, mut no: Self) -> Self {
            for i in 0..$count {
                no.0[i] = unsafe {
                    let mask = $ops!(greater)(self.0[i], other.0[i]);
                    $ops!(blendv)(no.0[i], yes.0[i], mask)
                };
            }
            no
        }
        #[inline(always)]
        fn greater(self, other: Self) -> u16 {
            let mut mask = 0;
            for i in 0..$count {
                let bits = unsafe { $ops!(movemask)($ops!(greater)(self.0[i], other.0[i])) };
                mask |= (bits as u16) << ($per * i);
            }
            mask
        }
        #[inline(always)]
        fn load(from: &[$t; LANES]) -> Self {
            let mut out = Self::splat(0.0);
            for i in 0..$count {
                out.0[i] = unsafe { $ops!(loadu)(from.as_ptr().add($per * i)) };
            }
            out
        }
        #[inline(always)]
        fn load_part(from: &[$t]) -> Self {
            let mut padded = [0.0; LANES];
            padded[..from.len()].copy_from_slice(from);
            Self::load(&padded)
        }
        #[inline(always)]
        fn store(self, to: &mut [$t; LANES]) {
            for i in 0..$count {
                unsafe { $ops!(storeu)(to.as_mut_ptr().add($per * i), self.0[i]) };
            }
        }
    };
}

macro_rules! single {
    (set1) => {
        _mm256_set1_ps
    };
    (fmadd) => {
        _mm256_fmadd_ps
    };
    (fnmadd) => {
        _mm256_fnmadd_ps
    };
    (sqrt) => {
        _mm256_sqrt_ps
    };
    (div) => {
        _mm256_div_ps
    };
    (greater) => {
        _mm256_cmp_ps::<_CMP_GT_OQ>
    };
    (blendv) => {
        _mm256_blendv_ps
    };
    (movemask) => {
        _mm256_movemask_ps
    };
    (loadu) => {
        _mm256_loadu_ps
    };
    (storeu) => {
        _mm256_storeu_ps
    };
}

macro_rules! double {
    (set1) => {
        _mm256_set1_pd
    };
    (fmadd) => {
        _mm256_fmadd_pd
    };
    (fnmadd) => {
        _mm256_fnmadd_pd
    };
    (sqrt) => {
        _mm256_sqrt_pd
    };
    (div) => {
        _mm256_div_pd
    };
    (greater) => {
        _mm256_cmp_pd::<_CMP_GT_OQ>
    };
    (blendv) => {
        _mm256_blendv_pd
    };
    (movemask) => {
        _mm256_movemask_pd
    };
    (loadu) => {
        _mm256_loadu_pd
    };
    (storeu) => {
        _mm256_storeu_pd
    };
}

impl Vector for F {
    type Scalar = f32;
    float!(f32, 8, 2, single);
    #[inline(always)]
    fn sums(rows: &[Self; LANES]) -> Self {
        let mut out = rows[0];
        for half in 0..2 {
            let mut fours = [rows[0].0[0]; 4];
            for k in 0..4 {
                let (a, b) = (rows[8 * half + k], rows[8 * half + k + 4]);
                // SAFETY: see `Avx2`.
                fours[k] = unsafe {
                    let (a, b) = (_mm256_add_ps(a.0[0], a.0[1]), _mm256_add_ps(b.0[0], b.0[1]));
                    _mm256_add_ps(_mm256_permute2f128_ps::<0x20>(a, b), _mm256_permute2f128_ps::<0x31>(a, b))
                };
            }
            let [a, b, c, d] = fours;
            out.0[half] = F::fold([F([a; 2]), F([b; 2]), F([c; 2]), F([d; 2])]).0[0];
        }
        out
    }
    #[inline(always)]
    unsafe fn load_columns(base: *const f32, at: &[usize; LANES], columns: usize) -> [Self; 4] {
        unsafe {
            let mut out = [F::splat(0.0); 4];
            for half in 0..2 {
                let at = &at[8 * half..8 * half + 8];
                let rows = transpose([
                    two_rows(base, at[0], at[4], columns),
                    two_rows(base, at[1], at[5], columns),
                    two_rows(base, at[2], at[6], columns),
                    two_rows(base, at[3], at[7], columns),
                ]);
                for c in 0..4 {
                    out[c].0[half] = rows[c];
                }
            }
            out
        }
    }
    #[inline(always)]
    unsafe fn store_columns(values: [Self; 4], base: *mut f32, at: &[usize; LANES], columns: usize) {
        unsafe {
            let mask = first_four(columns);
            for half in 0..2 {
                let rows =
                    transpose([values[0].0[half], values[1].0[half], values[2].0[half], values[3].0[half]]);
                for k in 0..4 {
                    let parts = [_mm256_castps256_ps128(rows[k]), _mm256_extractf128_ps::<1>(rows[k])];
                    for lane in 0..2 {
                        let to = base.add(at[8 * half + 4 * lane + k]);
                        if columns == 4 {
                            _mm_storeu_ps(to, parts[lane]);
                        } else {
                            _mm_maskstore_ps(to, mask, parts[lane]);
                        }
                    }
                }
            }
        }
    }
}

/// A mask of the first `columns` of four 32-bit lanes.
#[inline(always)]
pub(super) unsafe fn first_four(columns: usize) -> __m128i {
    unsafe { _mm_cmpgt_epi32(_mm_set1_epi32(columns as i32), _mm_set_epi32(3, 2, 1, 0)) }
}

/// Up to four numbers of two rows, one per 128-bit lane.
#[inline(always)]
pub(super) unsafe fn two_rows(base: *const f32, first: usize, second: usize, columns: usize) -> __m256 {
    unsafe {
        let (a, b) = (base.add(first), base.add(second));
        if columns == 4 {
            _mm256_set_m128(_mm_loadu_ps(b), _mm_loadu_ps(a))
        } else {
            let mask = first_four(columns);
            _mm256_set_m128(_mm_maskload_ps(b, mask), _mm_maskload_ps(a, mask))
        }
    }
}

/// Up to four numbers of a row.
#[inline(always)]
pub(super) unsafe fn wide_row(from: *const f64, columns: usize) -> __m256d {
    unsafe {
        if columns == 4 {
            _mm256_loadu_pd(from)
        } else {
            _mm256_maskload_pd(from, _mm256_cvtepi32_epi64(first_four(columns)))
        }
    }
}

/// Transposes the 4 x 4 matrices in the 128-bit lanes.
#[inline(always)]
unsafe fn transpose(z: [__m256; 4]) -> [__m256; 4] {
    unsafe {
        let t0 = _mm256_castps_pd(_mm256_unpacklo_ps(z[0], z[1]));
        let t1 = _mm256_castps_pd(_mm256_unpackhi_ps(z[0], z[1]));
        let t2 = _mm256_castps_pd(_mm256_unpacklo_ps(z[2], z[3]));
        let t3 = _mm256_castps_pd(_mm256_unpackhi_ps(z[2], z[3]));
        [
            _mm256_castpd_ps(_mm256_unpacklo_pd(t0, t2)),
            _mm256_castpd_ps(_mm256_unpackhi_pd(t0, t2)),
            _mm256_castpd_ps(_mm256_unpacklo_pd(t1, t3)),
            _mm256_castpd_ps(_mm256_unpackhi_pd(t1, t3)),
        ]
    }
}

/// Transposes a 4 x 4 matrix of doubles.
#[inline(always)]
unsafe fn transpose_wide(z: [__m256d; 4]) -> [__m256d; 4] {
    unsafe {
        let (t0, t1) = (_mm256_unpacklo_pd(z[0], z[1]), _mm256_unpackhi_pd(z[0], z[1]));
        let (t2, t3) = (_mm256_unpacklo_pd(z[2], z[3]), _mm256_unpackhi_pd(z[2], z[3]));
        [
            _mm256_permute2f128_pd::<0x20>(t0, t2),
            _mm256_permute2f128_pd::<0x20>(t1, t3),
            _mm256_permute2f128_pd::<0x31>(t0, t2),
            _mm256_permute2f128_pd::<0x31>(t1, t3),
        ]
    }
}

impl Vector for D {
    type Scalar = f64;
    float!(f64, 4, 4, double);
    #[inline(always)]
    fn sums(rows: &[Self; LANES]) -> Self {
        let mut out = rows[0];
        for q in 0..4 {
            let mut fours = [rows[0].0[0]; 4];
            // SAFETY: see `Avx2`.
            unsafe {
                for k in 0..4 {
                    let D([a, b, c, d]) = rows[4 * q + k];
                    fours[k] = _mm256_add_pd(_mm256_add_pd(a, c), _mm256_add_pd(b, d));
                }
                let mut twos = [fours[0]; 2];
                for k in 0..2 {
                    let (a, b) = (fours[k], fours[k + 2]);
                    let (low, high) =
                        (_mm256_permute2f128_pd::<0x20>(a, b), _mm256_permute2f128_pd::<0x31>(a, b));
                    twos[k] = _mm256_add_pd(low, high);
                }
                let [a, b] = twos;
                out.0[q] = _mm256_add_pd(_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b));
            }
        }
        out
    }
    #[inline(always)]
    unsafe fn load_columns(base: *const f64, at: &[usize; LANES], columns: usize) -> [Self; 4] {
        unsafe {
            let mut out = [D::splat(0.0); 4];
            for q in 0..4 {
                let at = &at[4 * q..4 * q + 4];
                let rows = transpose_wide([
                    wide_row(base.add(at[0]), columns),
                    wide_row(base.add(at[1]), columns),
                    wide_row(base.add(at[2]), columns),
                    wide_row(base.add(at[3]), columns),
                ]);
                for c in 0..4 {
                    out[c].0[q] = rows[c];
                }
            }
            out
        }
    }
    #[inline(always)]
    unsafe fn store_columns(values: [Self; 4], base: *mut f64, at: &[usize; LANES], columns: usize) {
        unsafe {
            let mask = _mm256_cvtepi32_epi64(first_four(columns));
            for q in 0..4 {
                let rows = transpose_wide([values[0].0[q], values[1].0[q], values[2].0[q], values[3].0[q]]);
                for k in 0..4 {
                    let to = base.add(at[4 * q + k]);
                    if columns == 4 {
                        _mm256_storeu_pd(to, rows[k]);
                    } else {
                        _mm256_maskstore_pd(to, mask, rows[k]);
                    }
                }
            }
        }
    }
}

impl Words for U {
    type Scalar = u32;
    #[inline(always)]
    fn splat(value: u32) -> Self {
        unsafe { U([_mm256_set1_epi32(value as i32); 2]) }
    }
    #[inline(always)]
    fn load(from: &[u32; LANES]) -> Self {
        let at = from.as_ptr().cast::<__m256i>();
        unsafe { U([_mm256_loadu_si256(at), _mm256_loadu_si256(at.add(1))]) }
    }
    #[inline(always)]
    fn store(self, to: &mut [u32; LANES]) {
        let at = to.as_mut_ptr().cast::<__m256i>();
        for i in 0..2 {
            unsafe { _mm256_storeu_si256(at.add(i), self.0[i]) };
        }
    }
    #[inline(always)]
    fn shl(self, bits: u32) -> Self {
        self.pairs(U::splat(bits), |a, b| unsafe { _mm256_sllv_epi32(a, b) })
    }
    #[inline(always)]
    fn shr(self, bits: u32) -> Self {
        self.pairs(U::splat(bits), |a, b| unsafe { _mm256_srlv_epi32(a, b) })
    }
}

impl Words for W {
    type Scalar = u64;
    #[inline(always)]
    fn splat(value: u64) -> Self {
        unsafe { W([_mm256_set1_epi64x(value as i64); 4]) }
    }
    #[inline(always)]
    fn load(from: &[u64; LANES]) -> Self {
        let at = from.as_ptr().cast::<__m256i>();
        let mut out = W::splat(0);
        for i in 0..4 {
            out.0[i] = unsafe { _mm256_loadu_si256(at.add(i)) };
        }
        out
    }
    #[inline(always)]
    fn store(self, to: &mut [u64; LANES]) {
        let at = to.as_mut_ptr().cast::<__m256i>();
        for i in 0..4 {
            unsafe { _mm256_storeu_si256(at.add(i), self.0[i]) };
        }
    }
    #[inline(always)]
    fn shl(self, bits: u32) -> Self {
        self.pairs(W::splat(bits as u64), |a, b| unsafe { _mm256_sllv_epi64(a, b) })
    }
    #[inline(always)]
    fn shr(self, bits: u32) -> Self {
        self.pairs(W::splat(bits as u64), |a, b| unsafe { _mm256_srlv_epi64(a, b) })
    }
}

/// The low (`0x88`) or high (`0xdd`) halves of 64-bit words.
#[inline(always)]
unsafe fn halves<const WHICH: i32>(v: W) -> U {
    let mut out = U::splat(0);
    for i in 0..2 {
        out.0[i] = unsafe {
            let (a, b) = (_mm256_castsi256_ps(v.0[2 * i]), _mm256_castsi256_ps(v.0[2 * i + 1]));
            let mixed = _mm256_castps_si256(_mm256_shuffle_ps::<WHICH>(a, b));
            _mm256_permute4x64_epi64::<0xd8>(mixed)
        };
    }
    out
}

impl Simd for Avx2 {
    const ISA: super::Isa = super::Isa::Avx2;
    type F = F;
    type D = D;
    type U = U;
    type W = W;

    #[inline(always)]
    fn widen(v: F) -> D {
        let mut out = D::splat(0.0);
        for i in 0..2 {
            unsafe {
                out.0[2 * i] = _mm256_cvtps_pd(_mm256_castps256_ps128(v.0[i]));
                out.0[2 * i + 1] = _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(v.0[i]));
            }
        }
        out
    }
    #[inline(always)]
    fn narrow(v: D) -> F {
        let mut out = F::splat(0.0);
        for i in 0..2 {
            out.0[i] =
                unsafe { _mm256_set_m128(_mm256_cvtpd_ps(v.0[2 * i + 1]), _mm256_cvtpd_ps(v.0[2 * i])) };
        }
        out
    }
    #[inline(always)]
    fn bits(v: F) -> U {
        unsafe { U([_mm256_castps_si256(v.0[0]), _mm256_castps_si256(v.0[1])]) }
    }
    #[inline(always)]
    fn from_bits(v: U) -> F {
        unsafe { F([_mm256_castsi256_ps(v.0[0]), _mm256_castsi256_ps(v.0[1])]) }
    }
    #[inline(always)]
    fn wide_bits(v: D) -> W {
        let mut out = W::splat(0);
        for i in 0..4 {
            out.0[i] = unsafe { _mm256_castpd_si256(v.0[i]) };
        }
        out
    }
    #[inline(always)]
    fn from_wide_bits(v: W) -> D {
        let mut out = D::splat(0.0);
        for i in 0..4 {
            out.0[i] = unsafe { _mm256_castsi256_pd(v.0[i]) };
        }
        out
    }
    #[inline(always)]
    fn unsigned(v: U) -> F {
        // Both halves convert exactly, and the sum is rounded once.
        let (high, low) = (v.shr(16), v & U::splat(0xffff));
        Self::signed(high).mul_add(F::splat(65536.0), Self::signed(low))
    }
    #[inline(always)]
    fn signed(v: U) -> F {
        unsafe { F([_mm256_cvtepi32_ps(v.0[0]), _mm256_cvtepi32_ps(v.0[1])]) }
    }
    #[inline(always)]
    fn extend(v: U) -> W {
        let mut out = W::splat(0);
        for i in 0..2 {
            unsafe {
                out.0[2 * i] = _mm256_cvtepu32_epi64(_mm256_castsi256_si128(v.0[i]));
                out.0[2 * i + 1] = _mm256_cvtepu32_epi64(_mm256_extracti128_si256::<1>(v.0[i]));
            }
        }
        out
    }
    #[inline(always)]
    fn low(v: W) -> U {
        unsafe { halves::<0x88>(v) }
    }
    #[inline(always)]
    fn high(v: W) -> U {
        unsafe { halves::<0xdd>(v) }
    }
    #[inline(always)]
    fn parts(x: F) -> (F, F) {
        let bits = Self::bits(x);
        let exponent = Self::signed(bits.shr(23) - U::splat(127));
        (exponent, Self::from_bits(bits & U::splat(0x007f_ffff) | U::splat(0x3f00_0000)))
    }
    #[inline(always)]
    fn mul_low(a: W, b: W) -> W {
        a.pairs(b, |a, b| unsafe { _mm256_mul_epu32(a, b) })
    }
    #[inline(always)]
    fn if_top_bit(bits: U, yes: F, mut no: F) -> F {
        for i in 0..2 {
            no.0[i] = unsafe { _mm256_blendv_ps(no.0[i], yes.0[i], _mm256_castsi256_ps(bits.0[i])) };
        }
        no
    }
    #[inline(always)]
    fn if_wide_top_bit(bits: W, yes: D, mut no: D) -> D {
        for i in 0..4 {
            no.0[i] = unsafe { _mm256_blendv_pd(no.0[i], yes.0[i], _mm256_castsi256_pd(bits.0[i])) };
        }
        no
    }
}
