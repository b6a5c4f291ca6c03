//! Tiles on AVX-512.

use super::avx512::{D, F, U, W, four_rows, two_rows};
use super::tile::{Tile, Unzip};
use std::arch::x86_64::*;

// SAFETY, for all of this file: see `Avx512`; pointers are the caller's promise or lie within the slice at hand.

impl Tile<f32> for F {
    #[inline(always)]
    fn repeat(from: &[f32; 4]) -> Self {
        unsafe { F([_mm512_broadcast_f32x4(_mm_loadu_ps(from.as_ptr()))]) }
    }
    #[inline(always)]
    unsafe fn load_tile(base: *const f32, at: &[usize; 4], columns: usize) -> Self {
        unsafe { F([four_rows(base, at, columns)]) }
    }
    #[inline(always)]
    unsafe fn store_tile(self, base: *mut f32, at: &[usize; 4], columns: usize) {
        unsafe {
            let mask = ((1u32 << columns) - 1) as u8;
            let v = self.0[0];
            let parts = [
                _mm512_castps512_ps128(v),
                _mm512_extractf32x4_ps::<1>(v),
                _mm512_extractf32x4_ps::<2>(v),
                _mm512_extractf32x4_ps::<3>(v),
            ];
            for i in 0..4 {
                let to = base.add(at[i]);
                if columns == 4 {
                    _mm_storeu_ps(to, parts[i]);
                } else if columns == 2 {
                    _mm_store_sd(to.cast(), _mm_castps_pd(parts[i]));
                } else {
                    _mm_mask_storeu_ps(to, mask, parts[i]);
                }
            }
        }
    }
    #[inline(always)]
    fn spread(self) -> [Self; 4] {
        let v = self.0[0];
        unsafe {
            [
                F([_mm512_permute_ps::<0x00>(v)]),
                F([_mm512_permute_ps::<0x55>(v)]),
                F([_mm512_permute_ps::<0xaa>(v)]),
                F([_mm512_permute_ps::<0xff>(v)]),
            ]
        }
    }
    #[inline(always)]
    fn fold([a, b, c, d]: [Self; 4]) -> Self {
        unsafe {
            let ab = _mm512_add_ps(_mm512_unpacklo_ps(a.0[0], b.0[0]), _mm512_unpackhi_ps(a.0[0], b.0[0]));
            let cd = _mm512_add_ps(_mm512_unpacklo_ps(c.0[0], d.0[0]), _mm512_unpackhi_ps(c.0[0], d.0[0]));
            let (ab, cd) = (_mm512_castps_pd(ab), _mm512_castps_pd(cd));
            let (first, second) = (_mm512_unpacklo_pd(ab, cd), _mm512_unpackhi_pd(ab, cd));
            F([_mm512_add_ps(_mm512_castpd_ps(first), _mm512_castpd_ps(second))])
        }
    }
    #[inline(always)]
    fn in_turns(first: Self, second: Self) -> [Self; 2] {
        unsafe {
            let low = _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0);
            let high = _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4);
            let (a, b) = (_mm512_castps_pd(first.0[0]), _mm512_castps_pd(second.0[0]));
            let (low, high) = (_mm512_permutex2var_pd(a, low, b), _mm512_permutex2var_pd(a, high, b));
            [F([_mm512_castpd_ps(low)]), F([_mm512_castpd_ps(high)])]
        }
    }
    #[inline(always)]
    fn zip(evens: Self, odds: Self) -> [Self; 2] {
        unsafe {
            let (e, o) = (evens.0[0], odds.0[0]);
            [F([_mm512_unpacklo_ps(e, o)]), F([_mm512_unpackhi_ps(e, o)])]
        }
    }
}

impl Unzip for U {
    #[inline(always)]
    fn unzip(a: Self, b: Self) -> [Self; 2] {
        unsafe {
            let (a, b) = (_mm512_castsi512_ps(a.0[0]), _mm512_castsi512_ps(b.0[0]));
            let (evens, odds) = (_mm512_shuffle_ps::<0x88>(a, b), _mm512_shuffle_ps::<0xdd>(a, b));
            [U([_mm512_castps_si512(evens)]), U([_mm512_castps_si512(odds)])]
        }
    }
    #[inline(always)]
    fn first_two([a, b, c, d]: [Self; 4]) -> [Self; 2] {
        unsafe {
            let (ab, cd) = (_mm512_unpacklo_epi32(a.0[0], b.0[0]), _mm512_unpacklo_epi32(c.0[0], d.0[0]));
            [U([_mm512_unpacklo_epi64(ab, cd)]), U([_mm512_unpackhi_epi64(ab, cd)])]
        }
    }
}

impl Tile<f64> for D {
    #[inline(always)]
    fn repeat(from: &[f64; 4]) -> Self {
        unsafe { D([_mm512_broadcast_f64x4(_mm256_loadu_pd(from.as_ptr())); 2]) }
    }
    #[inline(always)]
    unsafe fn load_tile(base: *const f64, at: &[usize; 4], columns: usize) -> Self {
        unsafe { D([two_rows(base, at[0], at[1], columns), two_rows(base, at[2], at[3], columns)]) }
    }
    #[inline(always)]
    unsafe fn store_tile(self, base: *mut f64, at: &[usize; 4], columns: usize) {
        unsafe {
            let mask = ((1u32 << columns) - 1) as u8;
            for half in 0..2 {
                let v = self.0[half];
                let parts = [_mm512_castpd512_pd256(v), _mm512_extractf64x4_pd::<1>(v)];
                for k in 0..2 {
                    let to = base.add(at[2 * half + k]);
                    if columns == 4 {
                        _mm256_storeu_pd(to, parts[k]);
                    } else {
                        _mm256_mask_storeu_pd(to, mask, parts[k]);
                    }
                }
            }
        }
    }
    #[inline(always)]
    fn spread(self) -> [Self; 4] {
        let mut out = [self; 4];
        for half in 0..2 {
            let v = self.0[half];
            unsafe {
                out[0].0[half] = _mm512_permutex_pd::<0x00>(v);
                out[1].0[half] = _mm512_permutex_pd::<0x55>(v);
                out[2].0[half] = _mm512_permutex_pd::<0xaa>(v);
                out[3].0[half] = _mm512_permutex_pd::<0xff>(v);
            }
        }
        out
    }
    #[inline(always)]
    fn fold([a, b, c, d]: [Self; 4]) -> Self {
        unsafe {
            // Halves of four doubles, of one vector and of another.
            let low = _mm512_set_epi64(13, 12, 5, 4, 9, 8, 1, 0);
            let high = _mm512_set_epi64(15, 14, 7, 6, 11, 10, 3, 2);
            let mut out = a;
            for half in 0..2 {
                let halves = |a: D, b: D| {
                    let (a, b) = (a.0[half], b.0[half]);
                    let (low, high) = (_mm512_permutex2var_pd(a, low, b), _mm512_permutex2var_pd(a, high, b));
                    _mm512_add_pd(low, high)
                };
                let (ac, bd) = (halves(a, c), halves(b, d));
                out.0[half] = _mm512_add_pd(_mm512_unpacklo_pd(ac, bd), _mm512_unpackhi_pd(ac, bd));
            }
            out
        }
    }
    #[inline(always)]
    fn in_turns(first: Self, second: Self) -> [Self; 2] {
        let mut out = [first; 2];
        for half in 0..2 {
            let (a, b) = (first.0[half], second.0[half]);
            unsafe {
                out[half].0[0] = _mm512_insertf64x4::<1>(a, _mm512_castpd512_pd256(b));
                out[half].0[1] = _mm512_shuffle_f64x2::<0xee>(a, b);
            }
        }
        out
    }
    #[inline(always)]
    fn zip(evens: Self, odds: Self) -> [Self; 2] {
        let mut out = [evens; 2];
        for half in 0..2 {
            unsafe {
                out[0].0[half] = _mm512_unpacklo_pd(evens.0[half], odds.0[half]);
                out[1].0[half] = _mm512_unpackhi_pd(evens.0[half], odds.0[half]);
            }
        }
        out
    }
}

impl Unzip for W {
    #[inline(always)]
    fn unzip(a: Self, b: Self) -> [Self; 2] {
        let mut out = [a; 2];
        for half in 0..2 {
            unsafe {
                out[0].0[half] = _mm512_unpacklo_epi64(a.0[half], b.0[half]);
                out[1].0[half] = _mm512_unpackhi_epi64(a.0[half], b.0[half]);
            }
        }
        out
    }
    #[inline(always)]
    fn first_two([a, b, c, d]: [Self; 4]) -> [Self; 2] {
        let mut out = [a; 2];
        unsafe {
            let firsts = _mm512_set_epi64(13, 12, 5, 4, 9, 8, 1, 0);
            for half in 0..2 {
                let [a, b, c, d] = [a.0[half], b.0[half], c.0[half], d.0[half]];
                let (ab, cd) = (_mm512_unpacklo_epi64(a, b), _mm512_unpacklo_epi64(c, d));
                out[0].0[half] = _mm512_permutex2var_epi64(ab, firsts, cd);
                let (ab, cd) = (_mm512_unpackhi_epi64(a, b), _mm512_unpackhi_epi64(c, d));
                out[1].0[half] = _mm512_permutex2var_epi64(ab, firsts, cd);
            }
        }
        out
    }
}
