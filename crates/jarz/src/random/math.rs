//! Elementary functions on groups of lanes, with the same bits on every instruction set.
//! The polynomials are the classical minimax ones (Cephes for `f32`, fdlibm for `f64`).

use crate::simd::LANES;

/// Natural logarithm of positive normal numbers.
#[inline(always)]
pub(crate) fn ln_f32(x: [f32; LANES]) -> [f32; LANES] {
    const SQRT_HALF: i32 = 0x3f35_04f3;
    let mut out = [0.0f32; LANES];
    for l in 0..LANES {
        let bits = x[l].to_bits() as i32;
        let exponent = (bits - SQRT_HALF) >> 23;
        let f = f32::from_bits((bits - (exponent << 23)) as u32) - 1.0;
        let e = exponent as f32;
        let mut p = 7.037_683_6e-2f32;
        p = p.mul_add(f, -1.151_461e-1);
        p = p.mul_add(f, 1.167_699_9e-1);
        p = p.mul_add(f, -1.242_014_1e-1);
        p = p.mul_add(f, 1.424_932_3e-1);
        p = p.mul_add(f, -1.666_805_8e-1);
        p = p.mul_add(f, 2.000_071_5e-1);
        p = p.mul_add(f, -2.499_999_4e-1);
        p = p.mul_add(f, 3.333_333e-1);
        let ff = f * f;
        let tail = (p * f).mul_add(ff, e * -2.121_944_4e-4);
        let small = ff.mul_add(-0.5, tail) + f;
        out[l] = e.mul_add(0.693_359_4, small);
    }
    out
}

/// Sine and cosine of `2 pi w / 2^32` for 32-bit words `w`.
#[inline(always)]
pub(crate) fn sin_cos_turn_f32(w: [u32; LANES]) -> ([f32; LANES], [f32; LANES]) {
    let mut sin = [0.0f32; LANES];
    let mut cos = [0.0f32; LANES];
    for l in 0..LANES {
        let quadrant = w[l].wrapping_add(1 << 29) >> 30;
        let rest = w[l].wrapping_sub(quadrant << 30) as i32;
        let t = rest as f32 * (std::f32::consts::FRAC_PI_2 / (1u32 << 30) as f32);
        let tt = t * t;
        let mut s = -1.951_529_6e-4f32;
        s = s.mul_add(tt, 8.332_161e-3);
        s = s.mul_add(tt, -1.666_665_5e-1);
        let s = (s * tt).mul_add(t, t);
        let mut c = 2.443_315_7e-5f32;
        c = c.mul_add(tt, -1.388_731_6e-3);
        c = c.mul_add(tt, 4.166_664_6e-2);
        let c = (c * tt).mul_add(tt, tt.mul_add(-0.5, 1.0));
        let (a, b) = if quadrant & 1 == 0 { (s, c) } else { (c, s) };
        sin[l] = f32::from_bits(a.to_bits() ^ ((quadrant & 2) << 30));
        cos[l] = f32::from_bits(b.to_bits() ^ ((quadrant.wrapping_add(1) & 2) << 30));
    }
    (sin, cos)
}

/// Natural logarithm of positive normal numbers.
#[inline(always)]
pub(crate) fn ln_f64(x: [f64; LANES]) -> [f64; LANES] {
    const SQRT_HALF: i64 = 0x3fe6_a09e_667f_3bcd;
    const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
    const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    const INTEGER: f64 = 6_755_399_441_055_744.0; // 1.5 * 2^52: its low mantissa bits hold an integer
    let mut out = [0.0f64; LANES];
    for l in 0..LANES {
        let bits = x[l].to_bits() as i64;
        let exponent = (bits - SQRT_HALF) >> 52;
        let f = f64::from_bits((bits - (exponent << 52)) as u64) - 1.0;
        // i64 to f64 without a conversion instruction that AVX2 lacks.
        let e = f64::from_bits((INTEGER.to_bits() as i64 + exponent) as u64) - INTEGER;
        let s = f / (2.0 + f);
        let z = s * s;
        let mut r = 1.479_819_860_511_658_6e-1f64;
        r = r.mul_add(z, 1.531_383_769_920_937_3e-1);
        r = r.mul_add(z, 1.818_357_216_161_805e-1);
        r = r.mul_add(z, 2.222_219_843_214_978_4e-1);
        r = r.mul_add(z, 2.857_142_874_366_239e-1);
        r = r.mul_add(z, 3.999_999_999_940_942e-1);
        r = r.mul_add(z, 6.666_666_666_666_735e-1);
        r *= z;
        let half = 0.5 * f * f;
        out[l] = e * LN2_HIGH - ((half - s.mul_add(half + r, e * LN2_LOW)) - f);
    }
    out
}

/// Exponential; below -708 the result is 0, above 709 infinity.
#[inline(always)]
pub(crate) fn exp_f64(x: [f64; LANES]) -> [f64; LANES] {
    const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
    const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    const INTEGER: f64 = 6_755_399_441_055_744.0;
    let mut out = [0.0f64; LANES];
    for l in 0..LANES {
        let v = if x[l] > -708.0 { x[l] } else { -708.0 };
        let v = if v < 709.0 { v } else { 709.0 };
        let shifted = v.mul_add(std::f64::consts::LOG2_E, INTEGER);
        let n = shifted - INTEGER;
        let r = n.mul_add(-LN2_LOW, n.mul_add(-LN2_HIGH, v));
        let mut p: f64 = 1.0 / 6_227_020_800.0;
        p = p.mul_add(r, 1.0 / 479_001_600.0);
        p = p.mul_add(r, 1.0 / 39_916_800.0);
        p = p.mul_add(r, 1.0 / 3_628_800.0);
        p = p.mul_add(r, 1.0 / 362_880.0);
        p = p.mul_add(r, 1.0 / 40_320.0);
        p = p.mul_add(r, 1.0 / 5_040.0);
        p = p.mul_add(r, 1.0 / 720.0);
        p = p.mul_add(r, 1.0 / 120.0);
        p = p.mul_add(r, 1.0 / 24.0);
        p = p.mul_add(r, 1.0 / 6.0);
        p = p.mul_add(r, 0.5);
        p = p.mul_add(r, 1.0);
        p = p.mul_add(r, 1.0);
        let scale = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
        let value = p * scale;
        let value = if x[l] > -708.0 { value } else { 0.0 };
        let value = if x[l] > 709.0 { f64::INFINITY } else { value };
        out[l] = if x[l].is_nan() { x[l] } else { value };
    }
    out
}

/// Sine and cosine of a full turn times `u / 2^52`, for the low 52 bits of words.
#[inline(always)]
pub(crate) fn sin_cos_turn_f64(w: [u64; LANES]) -> ([f64; LANES], [f64; LANES]) {
    const INTEGER: f64 = 6_755_399_441_055_744.0;
    let mut sin = [0.0f64; LANES];
    let mut cos = [0.0f64; LANES];
    for l in 0..LANES {
        let quadrant = (w[l].wrapping_add(1 << 49) >> 50) & 3;
        // Sign-extended distance to the quadrant's centre, in units of 2^-52 turns.
        let rest = (w[l].wrapping_sub(quadrant << 50) << 12) as i64 >> 12;
        let rest = f64::from_bits((INTEGER.to_bits() as i64).wrapping_add(rest) as u64) - INTEGER;
        let t = rest * (std::f64::consts::FRAC_PI_2 / (1u64 << 50) as f64);
        let tt = t * t;
        let mut s = 1.589_690_995_211_55e-10f64;
        s = s.mul_add(tt, -2.505_076_025_340_686_3e-8);
        s = s.mul_add(tt, 2.755_731_370_707_006_8e-6);
        s = s.mul_add(tt, -1.984_126_982_985_795e-4);
        s = s.mul_add(tt, 8.333_333_333_322_49e-3);
        s = s.mul_add(tt, -1.666_666_666_666_663_2e-1);
        let s = (s * tt).mul_add(t, t);
        let mut c = -1.135_964_755_778_819_5e-11f64;
        c = c.mul_add(tt, 2.087_572_321_298_175e-9);
        c = c.mul_add(tt, -2.755_731_435_139_066_3e-7);
        c = c.mul_add(tt, 2.480_158_728_947_673e-5);
        c = c.mul_add(tt, -1.388_888_888_887_411e-3);
        c = c.mul_add(tt, 4.166_666_666_666_66e-2);
        let c = (c * tt).mul_add(tt, tt.mul_add(-0.5, 1.0));
        let (a, b) = if quadrant & 1 == 0 { (s, c) } else { (c, s) };
        sin[l] = f64::from_bits(a.to_bits() ^ ((quadrant & 2) << 62));
        cos[l] = f64::from_bits(b.to_bits() ^ ((quadrant.wrapping_add(1) & 2) << 62));
    }
    (sin, cos)
}
