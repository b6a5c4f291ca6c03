//! Standard normals by Box-Muller, 16 walkers at a time, and their plain scalar twins.
//!
//! One uniform gives the radius. The other gives the angle: its lower bits an angle within an eighth of a turn around zero, its
//! two top bits whether sine and cosine change places and whether both change sign, which together make a full turn.

use super::Key;
use super::math::{ln_f64, minus_two_ln_f32, sin_cos_f32, sin_cos_f64};
use super::philox::{Panel, philox_panel};
use crate::real::{Real, WalkerIds};
use crate::simd::{LANES, Simd, Vector, Words, dispatch};

/// The random words of 16 walkers at one step, for one purpose.
#[derive(Clone, Copy)]
pub struct Stream<S: Simd>(Panel<S>);

/// Whether walkers can share a [`Stream`]: all but the low 32 bits of their ids must agree.
#[inline(always)]
pub(crate) fn share_stream(ids: &[u64; LANES]) -> bool {
    ids.iter().all(|id| id >> 32 == ids[0] >> 32)
}

impl<S: Simd> Stream<S> {
    /// Of the walkers `ids`, which must [share](share_stream) it.
    #[inline(always)]
    pub(crate) fn new(key: &Key, ids: &[u64; LANES]) -> Self {
        let [_, _, low, high] = key.counter(ids[0], 0);
        Stream(Panel::new(key.seed, S::W::load(ids), low, high))
    }

    /// `scale` times normals 4 `quad` to 4 `quad` + 3 of each walker.
    #[inline(always)]
    pub(crate) fn quad_f32(&self, quad: u32, scale: S::F) -> [S::F; 4] {
        four_f32::<S>(self.0.words(quad), scale)
    }

    /// `scale` times normals 4 `quad` to 4 `quad` + 3 of each walker.
    #[inline(always)]
    pub(crate) fn quad_f64(&self, quad: u32, scale: S::D) -> [S::D; 4] {
        let [a, b] = two_f64::<S>(self.0.words(2 * quad), scale);
        let [c, d] = two_f64::<S>(self.0.words(2 * quad + 1), scale);
        [a, b, c, d]
    }
}

/// Two Box-Muller pairs from four words.
#[inline(always)]
pub(crate) fn four_f32<S: Simd>(words: [S::W; 4], scale: S::F) -> [S::F; 4] {
    let [a, b] = pair_f32::<S>(S::low(words[0]), S::low(words[1]), scale);
    let [c, d] = pair_f32::<S>(S::low(words[2]), S::low(words[3]), scale);
    [a, b, c, d]
}

#[inline(always)]
fn pair_f32<S: Simd>(radius: S::U, angle: S::U, scale: S::F) -> [S::F; 2] {
    const CELL: f32 = 1.0 / 4_294_967_296.0;
    let u = S::unsigned(radius).mul_add(S::F::splat(CELL), S::F::splat(0.5 * CELL));
    let radius = minus_two_ln_f32::<S>(u).sqrt() * scale;
    let radius = S::from_bits(S::bits(radius) ^ (angle.shl(1) & S::U::splat(1 << 31)));
    let t = S::signed(angle.shl(2)) * S::F::splat(std::f32::consts::FRAC_PI_4 / 2_147_483_648.0);
    let (sin, cos) = sin_cos_f32(t);
    [radius * S::if_top_bit(angle, sin, cos), radius * S::if_top_bit(angle, cos, sin)]
}

/// A Box-Muller pair of 52 and 50 bits from four words.
#[inline(always)]
pub(crate) fn two_f64<S: Simd>(words: [S::W; 4], scale: S::D) -> [S::D; 2] {
    /// 2^52: its mantissa holds an integer.
    const INTEGER: f64 = 4_503_599_627_370_496.0;
    let d = S::D::splat;
    let low = S::W::splat(0xffff_ffff);
    let radius = ((words[0] & low) | words[1].shl(32)).shr(12) | S::W::splat(1f64.to_bits());
    let angle = (words[2] & low) | words[3].shl(32);
    // In [1, 2), shifted to (0, 1).
    let u = S::from_wide_bits(radius) - d(1.0 - 0.5 / INTEGER);
    let radius = (d(-2.0) * ln_f64::<S>(u)).sqrt() * scale;
    let radius = S::from_wide_bits(S::wide_bits(radius) ^ (angle.shl(1) & S::W::splat(1 << 63)));
    let fraction = (angle & S::W::splat((1 << 50) - 1)) | S::W::splat(INTEGER.to_bits());
    const HALF: f64 = (1u64 << 49) as f64;
    let t = (S::from_wide_bits(fraction) - d(INTEGER + HALF)) * d(std::f64::consts::FRAC_PI_4 / HALF);
    let (sin, cos) = sin_cos_f64(t);
    [radius * S::if_wide_top_bit(angle, sin, cos), radius * S::if_wide_top_bit(angle, cos, sin)]
}

/// Rows of normals, rows [`Real::noise_stride`] apart.
#[inline(always)]
fn rows<S: Simd, T: Real>(key: &Key, walkers: WalkerIds<'_>, dim: usize, out: &mut [T]) {
    let stride = T::noise_stride(dim);
    if stride == 0 {
        return;
    }
    let count = out.len() / stride;
    let one = T::splat::<S>(T::ONE);
    let mut row = 0;
    while row < count {
        let ids = std::array::from_fn(|l| walkers.get((row + l).min(count - 1)));
        if row + LANES > count || !share_stream(&ids) {
            one_row::<S, T>(key, ids[0], &mut out[row * stride..(row + 1) * stride]);
            row += 1;
            continue;
        }
        let stream = Stream::<S>::new(key, &ids);
        let mut at: [usize; LANES] = std::array::from_fn(|l| (row + l) * stride);
        for quad in 0..stride.div_ceil(4) {
            let normals = T::normals::<S>(&stream, quad as u32, one);
            let columns = (stride - 4 * quad).min(4);
            // SAFETY: row `l` has `stride` numbers from `at[l]` on, of which `4 quad` are done.
            unsafe { T::V::<S>::store_columns(normals, out.as_mut_ptr(), &at, columns) };
            at.iter_mut().for_each(|a| *a += 4);
        }
        row += LANES;
    }
}

/// The normals of one walker, 16 counters at a time.
#[inline(always)]
fn one_row<S: Simd, T: Real>(key: &Key, walker: u64, out: &mut [T]) {
    let [_, w, low, high] = key.counter(walker, 0).map(|word| S::W::splat(word as u64));
    let lanes = S::W::load(&std::array::from_fn(|l| l as u64));
    let per = T::NORMALS_PER_BLOCK;
    let at: [usize; LANES] = std::array::from_fn(|l| l * per);
    for (group, out) in out.chunks_mut(LANES * per).enumerate() {
        let block = S::W::splat((group * LANES) as u64) + lanes;
        let normals = T::from_words::<S>(philox_panel::<S>([block, w, low, high], key.seed));
        if out.len() == LANES * per {
            // SAFETY: 16 counters make `16 per` numbers, which is what `out` has room for.
            unsafe { T::V::<S>::store_columns(normals, out.as_mut_ptr(), &at, per) };
        } else {
            let mut whole = [T::ZERO; LANES * 4];
            // SAFETY: `per` is at most 4.
            unsafe { T::V::<S>::store_columns(normals, whole.as_mut_ptr(), &at, per) };
            out.copy_from_slice(&whole[..out.len()]);
        }
    }
}

dispatch! {
    /// Rows of standard normals for `walkers`.
    pub(crate) fn normal_rows{T: Real}{T}(key: &Key, walkers: WalkerIds<'_>, dim: usize, out: &mut [T]) = rows
}

/// Scalar twin of the `f32` normals: one counter's four, in double precision with the standard library's functions.
#[cfg(test)]
pub(crate) fn block_f32_scalar(words: [u32; 4]) -> [f64; 4] {
    let mut out = [0.0; 4];
    for pair in 0..2 {
        let u = (words[2 * pair] as f64 + 0.5) / 4_294_967_296.0;
        let word = words[2 * pair + 1];
        let angle = (word << 2) as i32 as f64 / 2_147_483_648.0 * std::f64::consts::FRAC_PI_4;
        let radius = (-2.0 * u.ln()).sqrt() * if word >> 30 & 1 == 1 { -1.0 } else { 1.0 };
        let swap = word >> 31 == 1;
        out[2 * pair] = radius * if swap { angle.sin() } else { angle.cos() };
        out[2 * pair + 1] = radius * if swap { angle.cos() } else { angle.sin() };
    }
    out
}

/// Scalar twin of the `f64` normals: one counter's two.
#[cfg(test)]
pub(crate) fn block_f64_scalar(words: [u32; 4]) -> [f64; 2] {
    let join = |low: u32, high: u32| (low as u64) | ((high as u64) << 32);
    let u = ((join(words[0], words[1]) >> 12) as f64 + 0.5) / (1u64 << 52) as f64;
    let word = join(words[2], words[3]);
    let centred = (word & ((1 << 50) - 1)) as f64 - (1u64 << 49) as f64;
    let angle = centred / (1u64 << 49) as f64 * std::f64::consts::FRAC_PI_4;
    let radius = (-2.0 * u.ln()).sqrt() * if word >> 62 & 1 == 1 { -1.0 } else { 1.0 };
    let (sin, cos) = angle.sin_cos();
    if word >> 63 == 1 { [radius * sin, radius * cos] } else { [radius * cos, radius * sin] }
}
