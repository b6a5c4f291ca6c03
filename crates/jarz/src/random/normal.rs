//! Standard normals by Box-Muller, 16 walkers at a time, and their plain scalar twins.
//!
//! One uniform gives the radius. The other gives the angle: its lower bits an angle within an eighth of a turn around zero, its
//! two top bits whether sine and cosine change places and whether both change sign, which together make a full turn.

use super::Key;
use super::math::{ln_f64, minus_two_ln_f32, sin_cos_f32, sin_cos_f64};
use super::philox::{Blocks, Line, Panel, philox_panels};
use crate::real::{Real, WalkerIds};
use crate::simd::{LANES, Simd, Vector, Words, dispatch};

/// The random words of 16 walkers at one step, for one purpose.
#[derive(Clone, Copy)]
pub struct Stream<S: Simd>(Panel<S>);

/// Groups of four normals that [`Blocks`] has room for, in either precision.
pub(crate) const QUADS: usize = Blocks::ROOM / 2;

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

    /// The lines of blocks from `first` on, kept in `blocks`.
    #[inline(always)]
    pub(crate) fn lines<'a>(&self, blocks: &'a mut Blocks, first: u32) -> &'a [Line; Blocks::ROOM] {
        self.0.lines(blocks, first)
    }

    /// `scale` times eight normals of each walker.
    #[inline(always)]
    pub(crate) fn eight_f32(&self, lines: &[Line; 2], scale: S::F) -> [[S::F; 4]; 2] {
        fours_f32::<S, 2>(&self.0.narrow_words_of(lines), scale)
    }

    /// `scale` times eight normals of each walker.
    #[inline(always)]
    pub(crate) fn eight_f64(&self, [a, b, c, d]: &[Line; 4], scale: S::D) -> [[S::D; 4]; 2] {
        [self.four_f64(&[*a, *b], scale), self.four_f64(&[*c, *d], scale)]
    }

    /// `scale` times four normals of each walker.
    #[inline(always)]
    pub(crate) fn four_f64(&self, lines: &[Line; 2], scale: S::D) -> [S::D; 4] {
        let [[a, b], [c, d]] = twos_f64::<S, 2>(&self.0.words_of(lines), scale);
        [a, b, c, d]
    }
}

/// Two Box-Muller pairs from four words, for `M` groups in lockstep.
#[inline(always)]
pub(crate) fn fours_f32<S: Simd, const M: usize>(words: &[[S::U; 4]; M], scale: S::F) -> [[S::F; 4]; M] {
    let (mut radii, mut angles) = ([[S::U::splat(0); M]; 2], [[S::U::splat(0); M]; 2]);
    for pair in 0..2 {
        for m in 0..M {
            (radii[pair][m], angles[pair][m]) = (words[m][2 * pair], words[m][2 * pair + 1]);
        }
    }
    let [first, second] = pairs_f32::<S, M, 2>(&radii, &angles, scale);
    let mut out = [[scale; 4]; M];
    for m in 0..M {
        out[m] = [first[0][m], second[0][m], first[1][m], second[1][m]];
    }
    out
}

/// Box-Muller pairs from words for the radii and words for the angles, in lockstep: all firsts, then all seconds, times `scale`, which is positive. It goes into
/// the coefficients of the squared radius, so that nothing is left to be multiplied by it.
#[inline(always)]
pub(crate) fn pairs_f32<S: Simd, const M: usize, const P: usize>(
    radii: &[[S::U; M]; P],
    angles: &[[S::U; M]; P],
    scale: S::F,
) -> [[[S::F; M]; P]; 2] {
    let mut out = [[[scale; M]; P]; 2];
    let (mut uniforms, mut turns) = ([[scale; M]; P], [[scale; M]; P]);
    for pair in 0..P {
        for m in 0..M {
            uniforms[pair][m] = S::unsigned(radii[pair][m]) + S::F::splat(0.5);
            turns[pair][m] = S::signed(angles[pair][m].shl(2))
                * S::F::splat(std::f32::consts::FRAC_PI_4 / 2_147_483_648.0);
        }
    }
    let squares = minus_two_ln_f32::<S, M, P>(&uniforms, 32.0, scale * scale);
    let [sin, cos] = sin_cos_f32(&turns);
    for pair in 0..P {
        for m in 0..M {
            let angle = angles[pair][m];
            let radius = squares[pair][m].sqrt();
            let radius = S::from_bits(S::bits(radius) ^ (angle.shl(1) & S::U::splat(1 << 31)));
            out[0][pair][m] = radius * S::if_top_bit(angle, sin[pair][m], cos[pair][m]);
            out[1][pair][m] = radius * S::if_top_bit(angle, cos[pair][m], sin[pair][m]);
        }
    }
    out
}

/// A Box-Muller pair of 52 and 50 bits from four words, for `M` groups in lockstep.
#[inline(always)]
pub(crate) fn twos_f64<S: Simd, const M: usize>(words: &[[S::W; 4]; M], scale: S::D) -> [[S::D; 2]; M] {
    let low = S::W::splat(0xffff_ffff);
    let (mut radii, mut angles) = ([low; M], [low; M]);
    for m in 0..M {
        let [w0, w1, w2, w3] = words[m];
        radii[m] = (w0 & low) | w1.shl(32);
        angles[m] = (w2 & low) | w3.shl(32);
    }
    let [first, second] = pairs_f64::<S, M>(&radii, &angles, scale);
    let mut out = [[scale; 2]; M];
    for m in 0..M {
        out[m] = [first[m], second[m]];
    }
    out
}

/// Box-Muller pairs of 52 and 50 bits from words for the radii and words for the angles, in lockstep: all firsts, then all seconds.
#[inline(always)]
pub(crate) fn pairs_f64<S: Simd, const M: usize>(
    words: &[S::W; M],
    angles: &[S::W; M],
    scale: S::D,
) -> [[S::D; M]; 2] {
    /// 2^52: its mantissa holds an integer.
    const INTEGER: f64 = 4_503_599_627_370_496.0;
    const HALF: f64 = (1u64 << 49) as f64;
    let d = S::D::splat;
    let mut out = [[scale; M]; 2];
    let (mut radii, mut turns) = ([scale; M], [scale; M]);
    for m in 0..M {
        let radius = words[m].shr(12) | S::W::splat(1f64.to_bits());
        // In [1, 2), shifted to (0, 1).
        radii[m] = ln_f64::<S>(S::from_wide_bits(radius) - d(1.0 - 0.5 / INTEGER));
        let fraction = (angles[m] & S::W::splat((1 << 50) - 1)) | S::W::splat(INTEGER.to_bits());
        turns[m] = (S::from_wide_bits(fraction) - d(INTEGER + HALF)) * d(std::f64::consts::FRAC_PI_4 / HALF);
    }
    let [sin, cos] = sin_cos_f64(&turns);
    for m in 0..M {
        let radius = (d(-2.0) * radii[m]).sqrt() * scale;
        let sign = angles[m].shl(1) & S::W::splat(1 << 63);
        let radius = S::from_wide_bits(S::wide_bits(radius) ^ sign);
        out[0][m] = radius * S::if_wide_top_bit(angles[m], sin[m], cos[m]);
        out[1][m] = radius * S::if_wide_top_bit(angles[m], cos[m], sin[m]);
    }
    out
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
    let mut blocks = Blocks::new();
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
        for quad in (0..stride.div_ceil(4)).step_by(2) {
            let lines = stream.lines(&mut blocks, (quad / QUADS * QUADS * 4 / T::NORMALS_PER_BLOCK) as u32);
            let normals = T::normals::<S>(&stream, lines, quad % QUADS, one);
            for half in 0..2 {
                let columns = stride.saturating_sub(4 * (quad + half)).min(4);
                if columns > 0 {
                    // SAFETY: row `l` has `stride` numbers, and `at[l]` is that of this quad in it.
                    unsafe { T::V::<S>::store_columns(normals[half], out.as_mut_ptr(), &at, columns) };
                }
                at.iter_mut().for_each(|a| *a += 4);
            }
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
        let [words] = philox_panels::<S, 1>([[block, w, low, high]], key.seed);
        let normals = T::from_words::<S>(words);
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

/// Uniforms of consecutive walkers.
#[inline(always)]
fn uniforms<S: Simd>(key: &Key, first: u64, block: u32, out: &mut [f64]) {
    /// Groups of walkers in lockstep.
    const M: usize = 2;
    let mut lanes = [0; LANES];
    for l in 0..LANES {
        lanes[l] = l as u64;
    }
    let lanes = S::W::load(&lanes);
    for (part, out) in out.chunks_mut(M * LANES).enumerate() {
        let first = first + (part * M * LANES) as u64;
        let last = first + (M * LANES) as u64 - 1;
        let mut counters = [[lanes; 4]; M];
        for m in 0..M {
            let at = first + (m * LANES) as u64;
            let [block, _, low, high] = key.counter(at, block).map(|word| S::W::splat(word as u64));
            counters[m] = [block, S::W::splat(at) + lanes, low, high];
        }
        if first >> 32 != last >> 32 {
            // Walkers of a part do not share the high bits of their ids.
            for m in 0..M {
                let mut words = [[0u64; LANES]; 4];
                for l in 0..LANES {
                    let counter = key.counter(first + (m * LANES + l) as u64, block);
                    for w in 0..4 {
                        words[w][l] = counter[w] as u64;
                    }
                }
                for w in 0..4 {
                    counters[m][w] = S::W::load(&words[w]);
                }
            }
        }
        let words = philox_panels::<S, M>(counters, key.seed);
        for (m, out) in out.chunks_mut(LANES).enumerate() {
            store_some::<S>(uniform::<S>(words[m][0], words[m][1]), out);
        }
    }
}

/// A uniform in (0, 1), as by [`super::uniform_from`].
#[inline(always)]
pub(crate) fn uniform<S: Simd>(w0: S::W, w1: S::W) -> S::D {
    /// 2^52: its mantissa holds an integer.
    const INTEGER: f64 = 4_503_599_627_370_496.0;
    let magic = S::W::splat(INTEGER.to_bits());
    let low = S::W::splat(0xffff_ffff);
    let bits = ((w0 & low) | w1.shl(32)).shr(11);
    let high = S::from_wide_bits(bits.shr(32) | magic) - S::D::splat(INTEGER);
    let rest = S::from_wide_bits((bits & low) | magic) - S::D::splat(INTEGER);
    let whole = high.mul_add(S::D::splat(4_294_967_296.0), rest);
    (whole + S::D::splat(0.5)) * S::D::splat(1.0 / (1u64 << 53) as f64)
}

/// Stores as many numbers as there is room for.
#[inline(always)]
fn store_some<S: Simd>(v: S::D, out: &mut [f64]) {
    if let Some(whole) = out.first_chunk_mut() {
        v.store(whole);
    } else {
        let mut lanes = [0.0; LANES];
        v.store(&mut lanes);
        out.copy_from_slice(&lanes[..out.len()]);
    }
}

#[inline(always)]
fn minus_lns<S: Simd>(values: &mut [f64]) {
    for v in values.chunks_mut(LANES) {
        let mut lanes = [1.0; LANES];
        lanes[..v.len()].copy_from_slice(v);
        store_some::<S>(S::D::splat(0.0) - ln_f64::<S>(S::D::load(&lanes)), v);
    }
}

dispatch! {
    /// Uniforms of the walkers from `first` on, in block 0 as by [`super::Random::uniform`].
    pub(crate) fn uniform_row{}{}(key: &Key, first: u64, block: u32, out: &mut [f64]) = uniforms
}
dispatch! {
    /// Replaces uniforms by `-ln u`.
    pub(crate) fn minus_ln{}{}(values: &mut [f64]) = minus_lns
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
