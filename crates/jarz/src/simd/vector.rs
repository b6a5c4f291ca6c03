//! Groups of 16 numbers, one per walker of a panel, on any instruction set.
//!
//! A kernel is written once, generic over [`Simd`], and inlined into an entry point per instruction set
//! (`dispatch!`). Every operation is exactly rounded, so all sets give the same bits.

use super::tile::{Tile, Unzip};
use super::{Isa, LANES};
use std::ops::{Add, BitAnd, BitOr, BitXor, Mul, Sub};

/// 16 floating-point numbers.
pub trait Vector: Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> {
    /// The type of one of them.
    type Scalar: Copy;
    /// All equal.
    fn splat(value: Self::Scalar) -> Self;
    /// `self * b + c`, rounded once.
    fn mul_add(self, b: Self, c: Self) -> Self;
    /// `c - self * b`, rounded once.
    fn neg_mul_add(self, b: Self, c: Self) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// Quotient.
    fn div(self, other: Self) -> Self;
    /// `yes` where `self > other`, else `no`.
    fn if_greater(self, other: Self, yes: Self, no: Self) -> Self;
    /// Bit `l` says whether `self > other` in lane `l`.
    fn greater(self, other: Self) -> u16;
    /// Reads 16 numbers.
    fn load(from: &[Self::Scalar; LANES]) -> Self;
    /// Reads up to 16 numbers; the others are zero.
    fn load_part(from: &[Self::Scalar]) -> Self;
    /// Writes 16 numbers.
    fn store(self, to: &mut [Self::Scalar; LANES]);
    /// Reads 16 pairs: the firsts, then the seconds.
    #[inline(always)]
    fn load_pairs(from: &[Self::Scalar; 2 * LANES]) -> [Self; 2] {
        let mut parts = [[from[0]; LANES]; 2];
        for l in 0..LANES {
            (parts[0][l], parts[1][l]) = (from[2 * l], from[2 * l + 1]);
        }
        [Self::load(&parts[0]), Self::load(&parts[1])]
    }
    /// The reverse of [`Vector::load_pairs`].
    #[inline(always)]
    fn store_pairs(values: [Self; 2], to: &mut [Self::Scalar; 2 * LANES]) {
        let mut parts = [[to[0]; LANES]; 2];
        values[0].store(&mut parts[0]);
        values[1].store(&mut parts[1]);
        for l in 0..LANES {
            (to[2 * l], to[2 * l + 1]) = (parts[0][l], parts[1][l]);
        }
    }
    /// Lane `i` of the result is the sum over the lanes of `rows[i]`, folded in halves: lane `l` and lane `l + 8`, then `l + 4`, `l + 2`, `l + 1`.
    fn sums(rows: &[Self; LANES]) -> Self;
    /// Reads `columns` (1 to 4) neighbouring numbers of each of 16 rows and transposes them: lane `i` of result `c` is
    /// `base[at[i] + c]`. Results beyond `columns` are zero.
    ///
    /// # Safety
    /// `base[at[i] .. at[i] + columns]` must be readable for all `i`.
    unsafe fn load_columns(base: *const Self::Scalar, at: &[usize; LANES], columns: usize) -> [Self; 4];
    /// The reverse of [`Vector::load_columns`].
    ///
    /// # Safety
    /// `base[at[i] .. at[i] + columns]` must be writable for all `i`.
    unsafe fn store_columns(values: [Self; 4], base: *mut Self::Scalar, at: &[usize; LANES], columns: usize);
}

/// 16 unsigned integers; arithmetic wraps.
pub trait Words:
    Copy
    + Add<Output = Self>
    + Sub<Output = Self>
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
{
    /// The type of one of them.
    type Scalar: Copy;
    /// All equal.
    fn splat(value: Self::Scalar) -> Self;
    /// Reads 16 numbers.
    fn load(from: &[Self::Scalar; LANES]) -> Self;
    /// Writes 16 numbers.
    fn store(self, to: &mut [Self::Scalar; LANES]);
    /// Shift to the left.
    fn shl(self, bits: u32) -> Self;
    /// Shift to the right, zeros coming in.
    fn shr(self, bits: u32) -> Self;
}

/// An instruction set: its vectors, and how they turn into each other.
pub trait Simd: Copy + Send + Sync + 'static {
    /// Its name, for kernels that call others.
    const ISA: Isa;
    /// 16 `f32`.
    type F: Vector<Scalar = f32> + Tile<f32>;
    /// 16 `f64`.
    type D: Vector<Scalar = f64> + Tile<f64>;
    /// 16 `u32`.
    type U: Words<Scalar = u32> + Unzip;
    /// 16 `u64`.
    type W: Words<Scalar = u64> + Unzip;

    /// `f32` to `f64`.
    fn widen(v: Self::F) -> Self::D;
    /// `f64` to `f32`.
    fn narrow(v: Self::D) -> Self::F;
    /// Bits of `f32`.
    fn bits(v: Self::F) -> Self::U;
    /// `f32` of bits.
    fn from_bits(v: Self::U) -> Self::F;
    /// Bits of `f64`.
    fn wide_bits(v: Self::D) -> Self::W;
    /// `f64` of bits.
    fn from_wide_bits(v: Self::W) -> Self::D;
    /// Value of unsigned integers.
    fn unsigned(v: Self::U) -> Self::F;
    /// Value of signed integers.
    fn signed(v: Self::U) -> Self::F;
    /// `u32` to `u64`.
    fn extend(v: Self::U) -> Self::W;
    /// Low halves.
    fn low(v: Self::W) -> Self::U;
    /// High halves.
    fn high(v: Self::W) -> Self::U;
    /// Exponents and fractions of positive normal numbers: `x = 2^(e + 1) f` with `f` from 1/2 to 1.
    fn parts(x: Self::F) -> (Self::F, Self::F);
    /// 64-bit products of the low halves.
    fn mul_low(a: Self::W, b: Self::W) -> Self::W;
    /// `yes` where the top bit is set, else `no`.
    fn if_top_bit(bits: Self::U, yes: Self::F, no: Self::F) -> Self::F;
    /// `yes` where the top bit is set, else `no`.
    fn if_wide_top_bit(bits: Self::W, yes: Self::D, no: Self::D) -> Self::D;
}

/// A vector type as an array of registers, with its operators.
macro_rules! registers {
    ($name:ident, $register:ty, $count:literal) => {
        #[derive(Clone, Copy)]
        #[doc(hidden)]
        pub struct $name(pub(super) [$register; $count]);

        impl $name {
            #[inline(always)]
            #[allow(dead_code)]
            fn each(mut self, f: impl Fn($register) -> $register) -> Self {
                for i in 0..$count {
                    self.0[i] = f(self.0[i]);
                }
                self
            }
            #[inline(always)]
            fn pairs(mut self, other: Self, f: impl Fn($register, $register) -> $register) -> Self {
                for i in 0..$count {
                    self.0[i] = f(self.0[i], other.0[i]);
                }
                self
            }
        }
    };
}
pub(super) use registers;

/// Operator traits of a vector type from functions on registers.
macro_rules! operators {
    ($name:ident: $($op:ident $method:ident = $f:expr),* $(,)?) => {$(
        impl std::ops::$op for $name {
            type Output = Self;
            #[inline(always)]
            #[allow(unused_unsafe)]
            fn $method(self, other: Self) -> Self {
                self.pairs(other, #[inline(always)] |a, b| unsafe { $f(a, b) })
            }
        }
    )*};
}
pub(super) use operators;
