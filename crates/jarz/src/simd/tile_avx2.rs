//! Tiles on AVX2.

use super::avx2::{D, F, U, W, first_four, two_rows, wide_row};
use super::tile::{Tile, Unzip};
use std::arch::x86_64::*;

// SAFETY, for all of this file: see `Avx2`; pointers are the caller's promise or lie within the slice at hand.

impl Tile<f32> for F {
    #[inline(always)]
    fn repeat(from: &[f32; 4]) -> Self {
        unsafe {
            let four = _mm_loadu_ps(from.as_ptr());
            F([_mm256_set_m128(four, four); 2])
        }
    }
    #[inline(always)]
    unsafe fn load_tile(base: *const f32, at: &[usize; 4], columns: usize) -> Self {
        unsafe { F([two_rows(base, at[0], at[1], columns), two_rows(base, at[2], at[3], columns)]) }
    }
    #[inline(always)]
    unsafe fn store_tile(self, base: *mut f32, at: &[usize; 4], columns: usize) {
        unsafe {
            let mask = first_four(columns);
            for half in 0..2 {
                let v = self.0[half];
                let parts = [_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v)];
                for k in 0..2 {
                    let to = base.add(at[2 * half + k]);
                    if columns == 4 {
                        _mm_storeu_ps(to, parts[k]);
                    } else {
                        _mm_maskstore_ps(to, mask, parts[k]);
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
                out[0].0[half] = _mm256_permute_ps::<0x00>(v);
                out[1].0[half] = _mm256_permute_ps::<0x55>(v);
                out[2].0[half] = _mm256_permute_ps::<0xaa>(v);
                out[3].0[half] = _mm256_permute_ps::<0xff>(v);
            }
        }
        out
    }
    #[inline(always)]
    fn fold([a, b, c, d]: [Self; 4]) -> Self {
        let mut out = a;
        for half in 0..2 {
            let [a, b, c, d] = [a.0[half], b.0[half], c.0[half], d.0[half]];
            out.0[half] = unsafe {
                let ab = _mm256_add_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
                let cd = _mm256_add_ps(_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
                let (ab, cd) = (_mm256_castps_pd(ab), _mm256_castps_pd(cd));
                let (first, second) = (_mm256_unpacklo_pd(ab, cd), _mm256_unpackhi_pd(ab, cd));
                _mm256_add_ps(_mm256_castpd_ps(first), _mm256_castpd_ps(second))
            };
        }
        out
    }
    #[inline(always)]
    fn in_turns(first: Self, second: Self) -> [Self; 2] {
        let mut out = [first; 2];
        for half in 0..2 {
            let (a, b) = (first.0[half], second.0[half]);
            unsafe {
                out[half].0[0] = _mm256_permute2f128_ps::<0x20>(a, b);
                out[half].0[1] = _mm256_permute2f128_ps::<0x31>(a, b);
            }
        }
        out
    }
    #[inline(always)]
    fn zip(evens: Self, odds: Self) -> [Self; 2] {
        let mut out = [evens; 2];
        for half in 0..2 {
            unsafe {
                out[0].0[half] = _mm256_unpacklo_ps(evens.0[half], odds.0[half]);
                out[1].0[half] = _mm256_unpackhi_ps(evens.0[half], odds.0[half]);
            }
        }
        out
    }
}

impl Unzip for U {
    #[inline(always)]
    fn unzip(a: Self, b: Self) -> [Self; 2] {
        let mut out = [a; 2];
        for half in 0..2 {
            unsafe {
                let (a, b) = (_mm256_castsi256_ps(a.0[half]), _mm256_castsi256_ps(b.0[half]));
                out[0].0[half] = _mm256_castps_si256(_mm256_shuffle_ps::<0x88>(a, b));
                out[1].0[half] = _mm256_castps_si256(_mm256_shuffle_ps::<0xdd>(a, b));
            }
        }
        out
    }
    #[inline(always)]
    fn first_two([a, b, c, d]: [Self; 4]) -> [Self; 2] {
        let mut out = [a; 2];
        for i in 0..2 {
            unsafe {
                let ab = _mm256_unpacklo_epi32(a.0[i], b.0[i]);
                let cd = _mm256_unpacklo_epi32(c.0[i], d.0[i]);
                out[0].0[i] = _mm256_unpacklo_epi64(ab, cd);
                out[1].0[i] = _mm256_unpackhi_epi64(ab, cd);
            }
        }
        out
    }
}

impl Tile<f64> for D {
    #[inline(always)]
    fn repeat(from: &[f64; 4]) -> Self {
        unsafe { D([_mm256_loadu_pd(from.as_ptr()); 4]) }
    }
    #[inline(always)]
    unsafe fn load_tile(base: *const f64, at: &[usize; 4], columns: usize) -> Self {
        unsafe {
            D([
                wide_row(base.add(at[0]), columns),
                wide_row(base.add(at[1]), columns),
                wide_row(base.add(at[2]), columns),
                wide_row(base.add(at[3]), columns),
            ])
        }
    }
    #[inline(always)]
    unsafe fn store_tile(self, base: *mut f64, at: &[usize; 4], columns: usize) {
        unsafe {
            let mask = _mm256_cvtepi32_epi64(first_four(columns));
            for i in 0..4 {
                let to = base.add(at[i]);
                if columns == 4 {
                    _mm256_storeu_pd(to, self.0[i]);
                } else {
                    _mm256_maskstore_pd(to, mask, self.0[i]);
                }
            }
        }
    }
    #[inline(always)]
    fn spread(self) -> [Self; 4] {
        let mut out = [self; 4];
        for i in 0..4 {
            let v = self.0[i];
            unsafe {
                out[0].0[i] = _mm256_permute4x64_pd::<0x00>(v);
                out[1].0[i] = _mm256_permute4x64_pd::<0x55>(v);
                out[2].0[i] = _mm256_permute4x64_pd::<0xaa>(v);
                out[3].0[i] = _mm256_permute4x64_pd::<0xff>(v);
            }
        }
        out
    }
    #[inline(always)]
    fn fold([a, b, c, d]: [Self; 4]) -> Self {
        let mut out = a;
        for i in 0..4 {
            let [a, b, c, d] = [a.0[i], b.0[i], c.0[i], d.0[i]];
            out.0[i] = unsafe {
                let (low, high) =
                    (_mm256_permute2f128_pd::<0x20>(a, c), _mm256_permute2f128_pd::<0x31>(a, c));
                let ac = _mm256_add_pd(low, high);
                let (low, high) =
                    (_mm256_permute2f128_pd::<0x20>(b, d), _mm256_permute2f128_pd::<0x31>(b, d));
                let bd = _mm256_add_pd(low, high);
                _mm256_add_pd(_mm256_unpacklo_pd(ac, bd), _mm256_unpackhi_pd(ac, bd))
            };
        }
        out
    }
    #[inline(always)]
    fn in_turns(D(a): Self, D(b): Self) -> [Self; 2] {
        [D([a[0], b[0], a[1], b[1]]), D([a[2], b[2], a[3], b[3]])]
    }
    #[inline(always)]
    fn zip(evens: Self, odds: Self) -> [Self; 2] {
        let mut out = [evens; 2];
        for i in 0..4 {
            unsafe {
                out[0].0[i] = _mm256_unpacklo_pd(evens.0[i], odds.0[i]);
                out[1].0[i] = _mm256_unpackhi_pd(evens.0[i], odds.0[i]);
            }
        }
        out
    }
}

impl Unzip for W {
    #[inline(always)]
    fn unzip(a: Self, b: Self) -> [Self; 2] {
        let mut out = [a; 2];
        for i in 0..4 {
            unsafe {
                out[0].0[i] = _mm256_unpacklo_epi64(a.0[i], b.0[i]);
                out[1].0[i] = _mm256_unpackhi_epi64(a.0[i], b.0[i]);
            }
        }
        out
    }
    #[inline(always)]
    fn first_two([a, b, c, d]: [Self; 4]) -> [Self; 2] {
        let mut out = [a; 2];
        for i in 0..4 {
            unsafe {
                let [a, b, c, d] = [a.0[i], b.0[i], c.0[i], d.0[i]];
                let (ab, cd) = (_mm256_unpacklo_epi64(a, b), _mm256_unpacklo_epi64(c, d));
                out[0].0[i] = _mm256_permute2x128_si256::<0x20>(ab, cd);
                let (ab, cd) = (_mm256_unpackhi_epi64(a, b), _mm256_unpackhi_epi64(c, d));
                out[1].0[i] = _mm256_permute2x128_si256::<0x20>(ab, cd);
            }
        }
        out
    }
}
