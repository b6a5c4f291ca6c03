//! The portable path: arrays and loops, whatever the compiler makes of them.

use super::LANES;
use super::vector::{Simd, Vector, Words, operators, registers};
use crate::real::sum_lanes;

/// Plain arrays.
#[derive(Clone, Copy)]
pub struct Portable;

registers!(F, f32, 16);
registers!(D, f64, 16);
registers!(U, u32, 16);
registers!(W, u64, 16);

macro_rules! float {
    ($name:ident, $t:ty) => {
        operators!($name: Add add = |a: $t, b: $t| a + b, Sub sub = |a: $t, b: $t| a - b, Mul mul = |a: $t, b: $t| a * b);

        impl Vector for $name {
            type Scalar = $t;
            #[inline(always)]
            fn splat(value: $t) -> Self {
                $name([value; LANES])
            }
            #[inline(always)]
            fn mul_add(mut self, b: Self, c: Self) -> Self {
                for l in 0..LANES {
                    self.0[l] = self.0[l].mul_add(b.0[l], c.0[l]);
                }
                self
            }
            #[inline(always)]
            fn neg_mul_add(self, b: Self, c: Self) -> Self {
                self.each(|v| -v).mul_add(b, c)
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                self.each(<$t>::sqrt)
            }
            #[inline(always)]
            fn div(self, other: Self) -> Self {
                self.pairs(other, |a, b| a / b)
            }
            #[inline(always)]
            fn if_greater(self, other: Self, yes: Self, mut no: Self) -> Self {
                for l in 0..LANES {
                    if self.0[l] > other.0[l] {
                        no.0[l] = yes.0[l];
                    }
                }
                no
            }
            #[inline(always)]
            fn greater(self, other: Self) -> u16 {
                let mut mask = 0;
                for l in 0..LANES {
                    mask |= ((self.0[l] > other.0[l]) as u16) << l;
                }
                mask
            }
            #[inline(always)]
            fn load(from: &[$t; LANES]) -> Self {
                $name(*from)
            }
            #[inline(always)]
            fn load_part(from: &[$t]) -> Self {
                let mut out = [0.0; LANES];
                out[..from.len()].copy_from_slice(from);
                $name(out)
            }
            #[inline(always)]
            fn store(self, to: &mut [$t; LANES]) {
                *to = self.0;
            }
            #[inline(always)]
            fn sums(rows: &[Self; LANES]) -> Self {
                let mut out = [0.0; LANES];
                for i in 0..LANES {
                    let mut lanes = [0.0; LANES];
                    rows[i].store(&mut lanes);
                    out[i] = sum_lanes(lanes);
                }
                Self::load(&out)
            }
            #[inline(always)]
            unsafe fn load_columns(base: *const $t, at: &[usize; LANES], columns: usize) -> [Self; 4] {
                let mut out = [$name([0.0; LANES]); 4];
                for l in 0..LANES {
                    for c in 0..columns {
                        // SAFETY: the caller's promise.
                        out[c].0[l] = unsafe { *base.add(at[l] + c) };
                    }
                }
                out
            }
            #[inline(always)]
            unsafe fn store_columns(values: [Self; 4], base: *mut $t, at: &[usize; LANES], columns: usize) {
                for l in 0..LANES {
                    for c in 0..columns {
                        // SAFETY: the caller's promise.
                        unsafe { *base.add(at[l] + c) = values[c].0[l] };
                    }
                }
            }
        }
    };
}
float!(F, f32);
float!(D, f64);

macro_rules! words {
    ($name:ident, $t:ty) => {
        operators!($name: Add add = <$t>::wrapping_add, Sub sub = <$t>::wrapping_sub,
            BitAnd bitand = |a: $t, b: $t| a & b, BitOr bitor = |a: $t, b: $t| a | b, BitXor bitxor = |a: $t, b: $t| a ^ b);

        impl Words for $name {
            type Scalar = $t;
            #[inline(always)]
            fn splat(value: $t) -> Self {
                $name([value; LANES])
            }
            #[inline(always)]
            fn load(from: &[$t; LANES]) -> Self {
                $name(*from)
            }
            #[inline(always)]
            fn store(self, to: &mut [$t; LANES]) {
                *to = self.0;
            }
            #[inline(always)]
            fn shl(self, bits: u32) -> Self {
                self.each(|v| v << bits)
            }
            #[inline(always)]
            fn shr(self, bits: u32) -> Self {
                self.each(|v| v >> bits)
            }
        }
    };
}
words!(U, u32);
words!(W, u64);

/// One array from another, element by element.
macro_rules! convert {
    ($to:ident($zero:expr), $v:expr, $f:expr) => {{
        let mut out = [$zero; LANES];
        for l in 0..LANES {
            out[l] = $f($v.0[l]);
        }
        $to(out)
    }};
}

impl Simd for Portable {
    const ISA: super::Isa = super::Isa::Portable;
    type F = F;
    type D = D;
    type U = U;
    type W = W;

    #[inline(always)]
    fn widen(v: F) -> D {
        convert!(D(0.0), v, |v| v as f64)
    }
    #[inline(always)]
    fn narrow(v: D) -> F {
        convert!(F(0.0), v, |v| v as f32)
    }
    #[inline(always)]
    fn bits(v: F) -> U {
        convert!(U(0), v, f32::to_bits)
    }
    #[inline(always)]
    fn from_bits(v: U) -> F {
        convert!(F(0.0), v, f32::from_bits)
    }
    #[inline(always)]
    fn wide_bits(v: D) -> W {
        convert!(W(0), v, f64::to_bits)
    }
    #[inline(always)]
    fn from_wide_bits(v: W) -> D {
        convert!(D(0.0), v, f64::from_bits)
    }
    #[inline(always)]
    fn unsigned(v: U) -> F {
        convert!(F(0.0), v, |v| v as f32)
    }
    #[inline(always)]
    fn signed(v: U) -> F {
        convert!(F(0.0), v, |v| v as i32 as f32)
    }
    #[inline(always)]
    fn extend(v: U) -> W {
        convert!(W(0), v, |v| v as u64)
    }
    #[inline(always)]
    fn low(v: W) -> U {
        convert!(U(0), v, |v| v as u32)
    }
    #[inline(always)]
    fn high(v: W) -> U {
        convert!(U(0), v, |v| (v >> 32) as u32)
    }
    #[inline(always)]
    fn parts(x: F) -> (F, F) {
        let exponent = convert!(F(0.0), x, |x: f32| (x.to_bits() >> 23) as f32 - 127.0);
        (exponent, convert!(F(0.0), x, |x: f32| f32::from_bits(x.to_bits() & 0x007f_ffff | 0x3f00_0000)))
    }
    #[inline(always)]
    fn mul_low(a: W, b: W) -> W {
        a.pairs(b, |a, b| (a & 0xffff_ffff) * (b & 0xffff_ffff))
    }
    #[inline(always)]
    fn if_top_bit(bits: U, yes: F, mut no: F) -> F {
        for l in 0..LANES {
            if bits.0[l] >> 31 == 1 {
                no.0[l] = yes.0[l];
            }
        }
        no
    }
    #[inline(always)]
    fn if_wide_top_bit(bits: W, yes: D, mut no: D) -> D {
        for l in 0..LANES {
            if bits.0[l] >> 63 == 1 {
                no.0[l] = yes.0[l];
            }
        }
        no
    }
}
