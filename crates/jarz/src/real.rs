//! The scalar type of the walkers' positions: `f32` for speed, `f64` for the last digit.
//! Energies and log-weights are `f64` whatever the positions are.

use crate::energy::mixture::panels::MixtureKernels;
use crate::random::Key;
use crate::random::ars::{PanelIds, Schedule};
use crate::random::math::{exp_f32, exp_f64, ln_f64, minus_two_ln_f32};
use crate::random::noise::{fill_f32, fill_f64, noise_rows};
use crate::random::normal::{Stream, fours_f32, normal_rows, twos_f64};
use crate::random::philox::{Blocks, Line};
use crate::ranks::Plain;
use crate::simd::{Aes, Isa, LANES, Simd, Tile, Vector};
use std::fmt::{Debug, Display};
use std::ops::{Add, AddAssign, Div, Mul, Neg, Range, Sub};

/// A floating-point type that walkers' positions can be stored in.
pub trait Real:
    Copy
    + Default
    + PartialOrd
    + Debug
    + Display
    + Send
    + Sync
    + 'static
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + MixtureKernels
    + Plain
{
    /// Name used in configurations and files.
    const NAME: &'static str;
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// Normals made from one 128-bit counter block.
    const NORMALS_PER_BLOCK: usize;

    /// Rounds from `f64`.
    fn from_f64(value: f64) -> Self;
    /// Widens to `f64`.
    fn to_f64(self) -> f64;
    /// `self * a + b`, rounded once.
    fn mul_add(self, a: Self, b: Self) -> Self;
    /// Not NaN and not infinite.
    fn is_finite(self) -> bool;

    /// Distance between the rows of a noise buffer for `dim` dimensions.
    fn noise_stride(dim: usize) -> usize {
        dim.div_ceil(Self::NORMALS_PER_BLOCK) * Self::NORMALS_PER_BLOCK
    }

    /// Fills rows of standard normals (see [`crate::random::Random::normal_rows`]).
    #[doc(hidden)]
    fn normal_rows(isa: Isa, key: &Key, walkers: WalkerIds<'_>, dim: usize, out: &mut [Self]);
    /// Fills rows of standard normals (see [`crate::random::Random::noise_rows`]).
    #[doc(hidden)]
    fn noise_rows(isa: Isa, key: &Key, walkers: WalkerIds<'_>, dim: usize, out: &mut [Self]);
    /// 16 such numbers on an instruction set.
    #[doc(hidden)]
    type V<S: Simd>: Vector<Scalar = Self> + Tile<Self>;
    #[doc(hidden)]
    fn splat<S: Simd>(value: Self) -> Self::V<S> {
        Self::V::<S>::splat(value)
    }
    /// Exponential: to the last bit or two from -87 to 87 (`f32`) and from -708 to 709 (`f64`).
    #[doc(hidden)]
    fn exp<S: Simd>(v: Self::V<S>) -> Self::V<S>;
    /// Natural logarithm of numbers from 1/2 to 1.
    #[doc(hidden)]
    fn ln_of_half<S: Simd>(v: Self::V<S>) -> Self::V<S>;
    #[doc(hidden)]
    fn widen<S: Simd>(v: Self::V<S>) -> S::D;
    #[doc(hidden)]
    fn narrow<S: Simd>(v: S::D) -> Self::V<S>;
    /// `scale` times normals 4 `quad` to 4 `quad` + 7 of each walker of the stream, counted from the first of the `lines`.
    #[doc(hidden)]
    fn normals<S: Simd>(
        stream: &Stream<S>,
        lines: &[Line; Blocks::ROOM],
        quad: usize,
        scale: Self::V<S>,
    ) -> [[Self::V<S>; 4]; 2];
    /// `scale` times the normals of a panel's fused move in some groups of four dimensions, the first `4 vectors` of them as rows, the others as tiles or
    /// `columns`.
    #[doc(hidden)]
    fn fill_noise<S: Aes>(
        schedule: &mut Schedule,
        key: &Key,
        ids: &PanelIds,
        quads: Range<usize>,
        vectors: usize,
        columns: bool,
        scale: Self::V<S>,
        out: &mut [[Self; LANES]],
    );
    /// [`Real::NORMALS_PER_BLOCK`] normals (the others are zero) from the four words of 16 counters.
    #[doc(hidden)]
    fn from_words<S: Simd>(words: [S::W; 4]) -> [Self::V<S>; 4];
}

/// Which walkers a block of rows belongs to.
#[derive(Clone, Copy, Debug)]
pub enum WalkerIds<'a> {
    /// `first, first + 1, ...`
    From(u64),
    /// One id per row.
    List(&'a [u64]),
}

impl WalkerIds<'_> {
    /// Id of row `i`.
    #[inline(always)]
    pub fn get(&self, i: usize) -> u64 {
        match self {
            WalkerIds::From(first) => first + i as u64,
            WalkerIds::List(ids) => ids[i],
        }
    }
}

macro_rules! real {
    ($t:ty, $name:literal, $per_block:literal, $vector:ident, $widen:ident, $narrow:ident, $eight:ident, $fill:ident, $words:ident, $exp:ident, $ln:ident) => {
        impl Real for $t {
            const NAME: &'static str = $name;
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const NORMALS_PER_BLOCK: usize = $per_block;
            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                value as $t
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn mul_add(self, a: Self, b: Self) -> Self {
                <$t>::mul_add(self, a, b)
            }
            #[inline(always)]
            fn is_finite(self) -> bool {
                <$t>::is_finite(self)
            }
            fn normal_rows(isa: Isa, key: &Key, walkers: WalkerIds<'_>, dim: usize, out: &mut [Self]) {
                normal_rows(isa, key, walkers, dim, out)
            }
            fn noise_rows(isa: Isa, key: &Key, walkers: WalkerIds<'_>, dim: usize, out: &mut [Self]) {
                noise_rows(isa, key, walkers, dim, out)
            }
            type V<S: Simd> = S::$vector;
            #[inline(always)]
            fn exp<S: Simd>(v: S::$vector) -> S::$vector {
                $exp::<S>(v)
            }
            #[inline(always)]
            fn ln_of_half<S: Simd>(v: S::$vector) -> S::$vector {
                $ln::<S>(v)
            }
            #[inline(always)]
            fn widen<S: Simd>(v: S::$vector) -> S::D {
                $widen::<S>(v)
            }
            #[inline(always)]
            fn narrow<S: Simd>(v: S::D) -> S::$vector {
                $narrow::<S>(v)
            }
            #[inline(always)]
            fn normals<S: Simd>(
                stream: &Stream<S>,
                lines: &[Line; Blocks::ROOM],
                quad: usize,
                scale: S::$vector,
            ) -> [[S::$vector; 4]; 2] {
                stream.$eight(&some(lines, 4 / $per_block * quad), scale)
            }
            #[inline(always)]
            fn fill_noise<S: Aes>(
                schedule: &mut Schedule,
                key: &Key,
                ids: &PanelIds,
                quads: Range<usize>,
                vectors: usize,
                columns: bool,
                scale: S::$vector,
                out: &mut [[$t; LANES]],
            ) {
                $fill::<S>(schedule, key, ids, quads, vectors, columns, scale, out)
            }
            #[inline(always)]
            fn from_words<S: Simd>(words: [S::W; 4]) -> [S::$vector; 4] {
                $words::<S>(words)
            }
        }
    };
}

real!(f32, "f32", 4, F, widen, narrow, eight_f32, fill_f32, words_to_f32, exp_f32, ln_of_half_f32);
real!(f64, "f64", 2, D, same, same, eight_f64, fill_f64, words_to_f64, exp_f64, ln_f64);

#[inline(always)]
fn widen<S: Simd>(v: S::F) -> S::D {
    S::widen(v)
}

#[inline(always)]
fn narrow<S: Simd>(v: S::D) -> S::F {
    S::narrow(v)
}

#[inline(always)]
fn same<S: Simd>(v: S::D) -> S::D {
    v
}

#[inline(always)]
fn ln_of_half_f32<S: Simd>(v: S::F) -> S::F {
    let [[out]] = minus_two_ln_f32::<S, 1, 1>(&[[v]], 0.0, S::F::splat(1.0));
    out * S::F::splat(-0.5)
}

#[inline(always)]
fn words_to_f32<S: Simd>(words: [S::W; 4]) -> [S::F; 4] {
    let [four] = fours_f32::<S, 1>(&[words.map(S::low)], S::F::splat(1.0));
    four
}

/// `M` lines from one on.
#[inline(always)]
fn some<const M: usize>(lines: &[Line; Blocks::ROOM], first: usize) -> [Line; M] {
    std::array::from_fn(|m| lines[first + m])
}

#[inline(always)]
fn words_to_f64<S: Simd>(words: [S::W; 4]) -> [S::D; 4] {
    let [[a, b]] = twos_f64::<S, 1>(&[words], S::D::splat(1.0));
    let none = S::D::splat(0.0);
    [a, b, none, none]
}

/// Adds up one group of lanes in a fixed order.
#[inline(always)]
pub fn sum_lanes<T: Real>(mut lanes: [T; LANES]) -> T {
    let mut width = LANES / 2;
    while width > 0 {
        for l in 0..width {
            let other = lanes[l + width];
            lanes[l] += other;
        }
        width /= 2;
    }
    lanes[0]
}

/// Sums `f` over pairs of components, in groups of 16, then of 4, then one by one: a fixed order, whatever the processor.
#[inline(always)]
pub(crate) fn sum_pairs<T: Real>(a: &[T], b: &[T], f: impl Fn(T, T, T) -> T) -> T {
    let ((a_groups, a_rest), (b_groups, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut lanes = [T::ZERO; LANES];
    for (a, b) in a_groups.iter().zip(b_groups) {
        for l in 0..LANES {
            lanes[l] = f(a[l], b[l], lanes[l]);
        }
    }
    // The rest has sums of its own: an index known only at run time would keep the lanes in memory.
    let ((a_groups, a_rest), (b_groups, b_rest)) = (a_rest.as_chunks::<4>(), b_rest.as_chunks::<4>());
    let mut four = [T::ZERO; 4];
    for (a, b) in a_groups.iter().zip(b_groups) {
        for l in 0..4 {
            four[l] = f(a[l], b[l], four[l]);
        }
    }
    let mut last = T::ZERO;
    for (a, b) in a_rest.iter().zip(b_rest) {
        last = f(*a, *b, last);
    }
    sum_lanes(lanes) + (((four[0] + four[2]) + (four[1] + four[3])) + last)
}
