//! AVX-512: 16 `f32` are one register.

use super::LANES;
use super::tile::tile_of;
use super::vector::{Simd, Vector, Words, operators, registers};
use std::arch::x86_64::*;

/// AVX-512 (F, BW, DQ, VL). Its operations may only be reached from code compiled for these features, on a processor that has them:
/// `dispatch!` sees to both.
#[derive(Clone, Copy)]
pub struct Avx512;

registers!(F, __m512, 1);
registers!(D, __m512d, 2);
registers!(U, __m512i, 1);
registers!(W, __m512i, 2);

operators!(F: Add add = _mm512_add_ps, Sub sub = _mm512_sub_ps, Mul mul = _mm512_mul_ps);
operators!(D: Add add = _mm512_add_pd, Sub sub = _mm512_sub_pd, Mul mul = _mm512_mul_pd);
operators!(U: Add add = _mm512_add_epi32, Sub sub = _mm512_sub_epi32, BitAnd bitand = _mm512_and_si512,
    BitOr bitor = _mm512_or_si512, BitXor bitxor = _mm512_xor_si512);
operators!(W: Add add = _mm512_add_epi64, Sub sub = _mm512_sub_epi64, BitAnd bitand = _mm512_and_si512,
    BitOr bitor = _mm512_or_si512, BitXor bitxor = _mm512_xor_si512);

// SAFETY, for all of this file: see `Avx512`; pointers are the caller's promise or lie within the slice at hand.

impl Vector for F {
    type Scalar = f32;
    #[inline(always)]
    fn splat(value: f32) -> Self {
        unsafe { F([_mm512_set1_ps(value)]) }
    }
    #[inline(always)]
    fn mul_add(self, b: Self, c: Self) -> Self {
        unsafe { F([_mm512_fmadd_ps(self.0[0], b.0[0], c.0[0])]) }
    }
    #[inline(always)]
    fn neg_mul_add(self, b: Self, c: Self) -> Self {
        unsafe { F([_mm512_fnmadd_ps(self.0[0], b.0[0], c.0[0])]) }
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        unsafe { F([_mm512_sqrt_ps(self.0[0])]) }
    }
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        unsafe { F([_mm512_div_ps(self.0[0], other.0[0])]) }
    }
    #[inline(always)]
    fn if_greater(self, other: Self, yes: Self, no: Self) -> Self {
        unsafe {
            let mask = _mm512_cmp_ps_mask::<_CMP_GT_OQ>(self.0[0], other.0[0]);
            F([_mm512_mask_blend_ps(mask, no.0[0], yes.0[0])])
        }
    }
    #[inline(always)]
    fn greater(self, other: Self) -> u16 {
        unsafe { _mm512_cmp_ps_mask::<_CMP_GT_OQ>(self.0[0], other.0[0]) }
    }
    #[inline(always)]
    fn load(from: &[f32; LANES]) -> Self {
        unsafe { F([_mm512_loadu_ps(from.as_ptr())]) }
    }
    #[inline(always)]
    fn load_part(from: &[f32]) -> Self {
        let mask = ((1u32 << from.len().min(LANES)) - 1) as u16;
        unsafe { F([_mm512_maskz_loadu_ps(mask, from.as_ptr())]) }
    }
    #[inline(always)]
    fn store(self, to: &mut [f32; LANES]) {
        unsafe { _mm512_storeu_ps(to.as_mut_ptr(), self.0[0]) }
    }
    #[inline(always)]
    fn load_pairs(from: &[f32; 2 * LANES]) -> [Self; 2] {
        unsafe {
            let even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
            let odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
            let (a, b) = (_mm512_loadu_ps(from.as_ptr()), _mm512_loadu_ps(from.as_ptr().add(16)));
            [F([_mm512_permutex2var_ps(a, even, b)]), F([_mm512_permutex2var_ps(a, odd, b)])]
        }
    }
    #[inline(always)]
    fn store_pairs(values: [Self; 2], to: &mut [f32; 2 * LANES]) {
        unsafe {
            let low = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
            let high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
            let (a, b) = (values[0].0[0], values[1].0[0]);
            _mm512_storeu_ps(to.as_mut_ptr(), _mm512_permutex2var_ps(a, low, b));
            _mm512_storeu_ps(to.as_mut_ptr().add(16), _mm512_permutex2var_ps(a, high, b));
        }
    }
    #[inline(always)]
    fn sums(rows: &[Self; LANES]) -> Self {
        unsafe {
            // Of two vectors' halves those in their place are blended, for which there are more units than for shuffles.
            let others = _mm512_set_epi64(13, 12, 7, 6, 9, 8, 3, 2);
            let mut fours = [_mm512_setzero_ps(); 4];
            for k in 0..4 {
                // Rows k, k + 4, k + 8, k + 12, a 128-bit lane each.
                let (a, b) = (fold(rows[k], rows[k + 8]), fold(rows[k + 4], rows[k + 12]));
                let same = _mm512_mask_blend_ps(0xf0f0, a, b);
                let others = _mm512_permutex2var_pd(_mm512_castps_pd(a), others, _mm512_castps_pd(b));
                fours[k] = _mm512_add_ps(same, _mm512_castpd_ps(others));
            }
            let mut twos = [fours[0]; 2];
            for k in 0..2 {
                let (a, b) = (fours[k], fours[k + 2]);
                let same = _mm512_mask_blend_ps(0xcccc, a, b);
                let others = _mm512_shuffle_pd::<0x55>(_mm512_castps_pd(a), _mm512_castps_pd(b));
                twos[k] = _mm512_add_ps(same, _mm512_castpd_ps(others));
            }
            let [a, b] = twos;
            let (same, others) = (_mm512_mask_blend_ps(0xaaaa, a, b), _mm512_mask_blend_ps(0xaaaa, b, a));
            F([_mm512_add_ps(same, _mm512_permute_ps::<0xb1>(others))])
        }
    }
    #[inline(always)]
    unsafe fn load_columns(base: *const f32, at: &[usize; LANES], columns: usize) -> [Self; 4] {
        unsafe {
            transpose([
                four_rows(base, &tile_of(at, 0), columns),
                four_rows(base, &tile_of(at, 1), columns),
                four_rows(base, &tile_of(at, 2), columns),
                four_rows(base, &tile_of(at, 3), columns),
            ])
        }
    }
    #[inline(always)]
    unsafe fn store_columns(values: [Self; 4], base: *mut f32, at: &[usize; LANES], columns: usize) {
        unsafe {
            let rows = transpose([values[0].0[0], values[1].0[0], values[2].0[0], values[3].0[0]]);
            let mask = ((1u32 << columns) - 1) as u8;
            for k in 0..4 {
                let v = rows[k].0[0];
                let parts = [
                    _mm512_castps512_ps128(v),
                    _mm512_extractf32x4_ps::<1>(v),
                    _mm512_extractf32x4_ps::<2>(v),
                    _mm512_extractf32x4_ps::<3>(v),
                ];
                for lane in 0..4 {
                    let to = base.add(at[4 * lane + k]);
                    if columns == 4 {
                        _mm_storeu_ps(to, parts[lane]);
                    } else {
                        _mm_mask_storeu_ps(to, mask, parts[lane]);
                    }
                }
            }
        }
    }
}

/// Adds the halves of each vector, and puts the two results side by side.
#[inline(always)]
unsafe fn fold(a: F, b: F) -> __m512 {
    unsafe {
        let same = _mm512_mask_blend_ps(0xff00, a.0[0], b.0[0]);
        let others = _mm512_shuffle_f32x4::<0x4e>(a.0[0], b.0[0]);
        _mm512_add_ps(same, others)
    }
}

/// The same for the sums of the two halves of vectors of doubles.
#[inline(always)]
unsafe fn fold_wide(a: D, b: D) -> __m512d {
    unsafe {
        let (a, b) = (_mm512_add_pd(a.0[0], a.0[1]), _mm512_add_pd(b.0[0], b.0[1]));
        _mm512_add_pd(_mm512_shuffle_f64x2::<0x44>(a, b), _mm512_shuffle_f64x2::<0xee>(a, b))
    }
}

/// Up to four numbers of a row.
#[inline(always)]
unsafe fn row(from: *const f32, columns: usize) -> __m128 {
    unsafe {
        if columns == 4 {
            _mm_loadu_ps(from)
        } else if columns == 2 {
            _mm_castpd_ps(_mm_load_sd(from.cast()))
        } else {
            _mm_maskz_loadu_ps(((1u32 << columns) - 1) as u8, from)
        }
    }
}

/// Up to four numbers of four rows, a 128-bit lane each.
#[inline(always)]
pub(super) unsafe fn four_rows(base: *const f32, at: &[usize; 4], columns: usize) -> __m512 {
    unsafe {
        let v = _mm512_castps128_ps512(row(base.add(at[0]), columns));
        let v = _mm512_insertf32x4::<1>(v, row(base.add(at[1]), columns));
        let v = _mm512_insertf32x4::<2>(v, row(base.add(at[2]), columns));
        _mm512_insertf32x4::<3>(v, row(base.add(at[3]), columns))
    }
}

/// Up to four numbers of two rows.
#[inline(always)]
pub(super) unsafe fn two_rows(base: *const f64, first: usize, second: usize, columns: usize) -> __m512d {
    unsafe {
        let (a, b) = (base.add(first), base.add(second));
        let mask = ((1u32 << columns) - 1) as u8;
        let (a, b) = if columns == 4 {
            (_mm256_loadu_pd(a), _mm256_loadu_pd(b))
        } else {
            (_mm256_maskz_loadu_pd(mask, a), _mm256_maskz_loadu_pd(mask, b))
        };
        _mm512_insertf64x4::<1>(_mm512_castpd256_pd512(a), b)
    }
}

/// Transposes the 4 x 4 matrices in the 128-bit lanes.
#[inline(always)]
unsafe fn transpose(z: [__m512; 4]) -> [F; 4] {
    unsafe {
        let t0 = _mm512_castps_pd(_mm512_unpacklo_ps(z[0], z[1]));
        let t1 = _mm512_castps_pd(_mm512_unpackhi_ps(z[0], z[1]));
        let t2 = _mm512_castps_pd(_mm512_unpacklo_ps(z[2], z[3]));
        let t3 = _mm512_castps_pd(_mm512_unpackhi_ps(z[2], z[3]));
        [
            F([_mm512_castpd_ps(_mm512_unpacklo_pd(t0, t2))]),
            F([_mm512_castpd_ps(_mm512_unpackhi_pd(t0, t2))]),
            F([_mm512_castpd_ps(_mm512_unpacklo_pd(t1, t3))]),
            F([_mm512_castpd_ps(_mm512_unpackhi_pd(t1, t3))]),
        ]
    }
}

impl Vector for D {
    type Scalar = f64;
    #[inline(always)]
    fn splat(value: f64) -> Self {
        unsafe { D([_mm512_set1_pd(value); 2]) }
    }
    #[inline(always)]
    fn mul_add(mut self, b: Self, c: Self) -> Self {
        for i in 0..2 {
            self.0[i] = unsafe { _mm512_fmadd_pd(self.0[i], b.0[i], c.0[i]) };
        }
        self
    }
    #[inline(always)]
    fn neg_mul_add(mut self, b: Self, c: Self) -> Self {
        for i in 0..2 {
            self.0[i] = unsafe { _mm512_fnmadd_pd(self.0[i], b.0[i], c.0[i]) };
        }
        self
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        self.each(|v| unsafe { _mm512_sqrt_pd(v) })
    }
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        self.pairs(other, |a, b| unsafe { _mm512_div_pd(a, b) })
    }
    #[inline(always)]
    fn if_greater(self, other: Self, yes: Self, mut no: Self) -> Self {
        for i in 0..2 {
            no.0[i] = unsafe {
                let mask = _mm512_cmp_pd_mask::<_CMP_GT_OQ>(self.0[i], other.0[i]);
                _mm512_mask_blend_pd(mask, no.0[i], yes.0[i])
            };
        }
        no
    }
    #[inline(always)]
    fn greater(self, other: Self) -> u16 {
        let mut mask = 0;
        for i in 0..2 {
            mask |= (unsafe { _mm512_cmp_pd_mask::<_CMP_GT_OQ>(self.0[i], other.0[i]) } as u16) << (8 * i);
        }
        mask
    }
    #[inline(always)]
    fn load(from: &[f64; LANES]) -> Self {
        unsafe { D([_mm512_loadu_pd(from.as_ptr()), _mm512_loadu_pd(from.as_ptr().add(8))]) }
    }
    #[inline(always)]
    fn load_part(from: &[f64]) -> Self {
        let mask = (1u32 << from.len().min(LANES)) - 1;
        // Masked-off numbers are not touched, so the second address need not be valid.
        unsafe {
            D([
                _mm512_maskz_loadu_pd(mask as u8, from.as_ptr()),
                _mm512_maskz_loadu_pd((mask >> 8) as u8, from.as_ptr().wrapping_add(8)),
            ])
        }
    }
    #[inline(always)]
    fn store(self, to: &mut [f64; LANES]) {
        unsafe {
            _mm512_storeu_pd(to.as_mut_ptr(), self.0[0]);
            _mm512_storeu_pd(to.as_mut_ptr().add(8), self.0[1]);
        }
    }
    #[inline(always)]
    fn sums(rows: &[Self; LANES]) -> Self {
        unsafe {
            let mut out = D([_mm512_setzero_pd(); 2]);
            for half in 0..2 {
                let rows = &rows[8 * half..8 * half + 8];
                let mut folded = [_mm512_setzero_pd(); 2];
                for k in 0..2 {
                    // Rows k, k + 2, k + 4, k + 6, a 128-bit lane each.
                    let (a, b) = (fold_wide(rows[k], rows[k + 2]), fold_wide(rows[k + 4], rows[k + 6]));
                    let (even, odd) =
                        (_mm512_shuffle_f64x2::<0x88>(a, b), _mm512_shuffle_f64x2::<0xdd>(a, b));
                    folded[k] = _mm512_add_pd(even, odd);
                }
                let (low, high) =
                    (_mm512_unpacklo_pd(folded[0], folded[1]), _mm512_unpackhi_pd(folded[0], folded[1]));
                out.0[half] = _mm512_add_pd(low, high);
            }
            out
        }
    }
    #[inline(always)]
    unsafe fn load_columns(base: *const f64, at: &[usize; LANES], columns: usize) -> [Self; 4] {
        unsafe {
            let mut out = [D([_mm512_setzero_pd(); 2]); 4];
            for half in 0..2 {
                let at = &at[8 * half..8 * half + 8];
                let (z0, z1) = (two_rows(base, at[0], at[2], columns), two_rows(base, at[1], at[3], columns));
                let (z2, z3) = (two_rows(base, at[4], at[6], columns), two_rows(base, at[5], at[7], columns));
                let (t0, t1) = (_mm512_unpacklo_pd(z0, z1), _mm512_unpackhi_pd(z0, z1));
                let (t2, t3) = (_mm512_unpacklo_pd(z2, z3), _mm512_unpackhi_pd(z2, z3));
                out[0].0[half] = _mm512_shuffle_f64x2::<0x88>(t0, t2);
                out[1].0[half] = _mm512_shuffle_f64x2::<0x88>(t1, t3);
                out[2].0[half] = _mm512_shuffle_f64x2::<0xdd>(t0, t2);
                out[3].0[half] = _mm512_shuffle_f64x2::<0xdd>(t1, t3);
            }
            out
        }
    }
    #[inline(always)]
    unsafe fn store_columns(values: [Self; 4], base: *mut f64, at: &[usize; LANES], columns: usize) {
        unsafe {
            let mask = ((1u32 << columns) - 1) as u8;
            let low = _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0);
            let high = _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4);
            for half in 0..2 {
                let [c0, c1, c2, c3] =
                    [values[0].0[half], values[1].0[half], values[2].0[half], values[3].0[half]];
                let even = (_mm512_unpacklo_pd(c0, c1), _mm512_unpacklo_pd(c2, c3));
                let odd = (_mm512_unpackhi_pd(c0, c1), _mm512_unpackhi_pd(c2, c3));
                for (first, (u, v)) in [(0, even), (1, odd)] {
                    for (from, index) in [(first, low), (first + 4, high)] {
                        let rows = _mm512_permutex2var_pd(u, index, v);
                        let parts = [_mm512_castpd512_pd256(rows), _mm512_extractf64x4_pd::<1>(rows)];
                        for k in 0..2 {
                            let to = base.add(at[8 * half + from + 2 * k]);
                            if columns == 4 {
                                _mm256_storeu_pd(to, parts[k]);
                            } else {
                                _mm256_mask_storeu_pd(to, mask, parts[k]);
                            }
                        }
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
        unsafe { U([_mm512_set1_epi32(value as i32)]) }
    }
    #[inline(always)]
    fn load(from: &[u32; LANES]) -> Self {
        unsafe { U([_mm512_loadu_si512(from.as_ptr().cast())]) }
    }
    #[inline(always)]
    fn store(self, to: &mut [u32; LANES]) {
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), self.0[0]) }
    }
    #[inline(always)]
    fn shl(self, bits: u32) -> Self {
        self.pairs(U::splat(bits), |a, b| unsafe { _mm512_sllv_epi32(a, b) })
    }
    #[inline(always)]
    fn shr(self, bits: u32) -> Self {
        self.pairs(U::splat(bits), |a, b| unsafe { _mm512_srlv_epi32(a, b) })
    }
}

impl Words for W {
    type Scalar = u64;
    #[inline(always)]
    fn splat(value: u64) -> Self {
        unsafe { W([_mm512_set1_epi64(value as i64); 2]) }
    }
    #[inline(always)]
    fn load(from: &[u64; LANES]) -> Self {
        let at = from.as_ptr().cast::<__m512i>();
        unsafe { W([_mm512_loadu_si512(at), _mm512_loadu_si512(at.add(1))]) }
    }
    #[inline(always)]
    fn store(self, to: &mut [u64; LANES]) {
        let at = to.as_mut_ptr().cast::<__m512i>();
        unsafe {
            _mm512_storeu_si512(at, self.0[0]);
            _mm512_storeu_si512(at.add(1), self.0[1]);
        }
    }
    #[inline(always)]
    fn shl(self, bits: u32) -> Self {
        self.pairs(W::splat(bits as u64), |a, b| unsafe { _mm512_sllv_epi64(a, b) })
    }
    #[inline(always)]
    fn shr(self, bits: u32) -> Self {
        self.pairs(W::splat(bits as u64), |a, b| unsafe { _mm512_srlv_epi64(a, b) })
    }
}

impl Simd for Avx512 {
    const ISA: super::Isa = super::Isa::Avx512;
    type F = F;
    type D = D;
    type U = U;
    type W = W;

    #[inline(always)]
    fn widen(v: F) -> D {
        unsafe {
            let low = _mm512_castps512_ps256(v.0[0]);
            let high = _mm512_extractf32x8_ps::<1>(v.0[0]);
            D([_mm512_cvtps_pd(low), _mm512_cvtps_pd(high)])
        }
    }
    #[inline(always)]
    fn narrow(v: D) -> F {
        unsafe {
            let (low, high) = (_mm512_cvtpd_ps(v.0[0]), _mm512_cvtpd_ps(v.0[1]));
            F([_mm512_insertf32x8::<1>(_mm512_castps256_ps512(low), high)])
        }
    }
    #[inline(always)]
    fn bits(v: F) -> U {
        unsafe { U([_mm512_castps_si512(v.0[0])]) }
    }
    #[inline(always)]
    fn from_bits(v: U) -> F {
        unsafe { F([_mm512_castsi512_ps(v.0[0])]) }
    }
    #[inline(always)]
    fn wide_bits(v: D) -> W {
        unsafe { W([_mm512_castpd_si512(v.0[0]), _mm512_castpd_si512(v.0[1])]) }
    }
    #[inline(always)]
    fn from_wide_bits(v: W) -> D {
        unsafe { D([_mm512_castsi512_pd(v.0[0]), _mm512_castsi512_pd(v.0[1])]) }
    }
    #[inline(always)]
    fn unsigned(v: U) -> F {
        unsafe { F([_mm512_cvtepu32_ps(v.0[0])]) }
    }
    #[inline(always)]
    fn signed(v: U) -> F {
        unsafe { F([_mm512_cvtepi32_ps(v.0[0])]) }
    }
    #[inline(always)]
    fn extend(v: U) -> W {
        unsafe {
            let low = _mm512_castsi512_si256(v.0[0]);
            let high = _mm512_extracti64x4_epi64::<1>(v.0[0]);
            W([_mm512_cvtepu32_epi64(low), _mm512_cvtepu32_epi64(high)])
        }
    }
    #[inline(always)]
    fn low(v: W) -> U {
        unsafe {
            let index = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
            U([_mm512_permutex2var_epi32(v.0[0], index, v.0[1])])
        }
    }
    #[inline(always)]
    fn high(v: W) -> U {
        unsafe {
            let index = _mm512_set_epi32(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
            U([_mm512_permutex2var_epi32(v.0[0], index, v.0[1])])
        }
    }
    #[inline(always)]
    fn parts(x: F) -> (F, F) {
        unsafe {
            let fraction = _mm512_getmant_ps::<_MM_MANT_NORM_P5_1, _MM_MANT_SIGN_SRC>(x.0[0]);
            (F([_mm512_getexp_ps(x.0[0])]), F([fraction]))
        }
    }
    #[inline(always)]
    fn mul_low(a: W, b: W) -> W {
        a.pairs(b, |a, b| unsafe { _mm512_mul_epu32(a, b) })
    }
    #[inline(always)]
    fn if_top_bit(bits: U, yes: F, no: F) -> F {
        unsafe { F([_mm512_mask_blend_ps(_mm512_movepi32_mask(bits.0[0]), no.0[0], yes.0[0])]) }
    }
    #[inline(always)]
    fn if_wide_top_bit(bits: W, yes: D, mut no: D) -> D {
        for i in 0..2 {
            no.0[i] = unsafe { _mm512_mask_blend_pd(_mm512_movepi64_mask(bits.0[i]), no.0[i], yes.0[i]) };
        }
        no
    }
}
