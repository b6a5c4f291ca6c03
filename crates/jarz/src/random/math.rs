//! Elementary functions on vectors, with the same bits on every instruction set.
//! The polynomials are the classical minimax ones (Cephes for `f32`, fdlibm for `f64`) but where noted.

use crate::simd::{Simd, Vector, Words};

/// `sum_i coefficients[i] x^(n-i)`, highest power first.
#[inline(always)]
pub(crate) fn horner<V: Vector, const N: usize>(x: V, coefficients: [V::Scalar; N]) -> V {
    let mut p = V::splat(coefficients[0]);
    for i in 1..N {
        p = p.mul_add(x, V::splat(coefficients[i]));
    }
    p
}

/// The same polynomial of several vectors in lockstep.
#[inline(always)]
fn horners<V: Vector, const M: usize, const P: usize, const N: usize>(
    x: &[[V; M]; P],
    coefficients: [V::Scalar; N],
) -> [[V; M]; P] {
    let mut p = [[V::splat(coefficients[0]); M]; P];
    for i in 1..N {
        for j in 0..P {
            for m in 0..M {
                p[j][m] = p[j][m].mul_add(x[j][m], V::splat(coefficients[i]));
            }
        }
    }
    p
}

/// `-2 ln (x / 2^bits)` times `scale` of positive normal numbers up to `2^bits`, where it is zero and nowhere less. The quotient `-2 ln(1 + f) / f`, with `f`
/// from -1/2 to 0, is a minimax fit of relative error 2e-7, bound to the right value at -1/2.
///
/// Additions where they will do: processors have as many units for them alone as for products.
#[inline(always)]
pub(crate) fn minus_two_ln_f32<S: Simd, const M: usize, const P: usize>(
    x: &[[S::F; M]; P],
    bits: f32,
    scale: S::F,
) -> [[S::F; M]; P] {
    const MINUS_TWO_LN_2: f32 = -2.0 * std::f32::consts::LN_2;
    let slope = scale * S::F::splat(MINUS_TWO_LN_2);
    let (mut e, mut f) = (*x, *x);
    for p in 0..P {
        for m in 0..M {
            let (exponent, fraction) = S::parts(x[p][m]);
            e[p][m] = (exponent - S::F::splat(bits - 1.0)) * slope;
            f[p][m] = fraction - S::F::splat(1.0);
        }
    }
    let coefficients = [
        2.459_722_8f32,
        2.309_941,
        1.664_588,
        -0.046_585_526,
        0.549_211_3,
        -0.663_370_1,
        1.000_083_1,
        -1.999_999_6,
    ];
    let mut out = [[scale * S::F::splat(coefficients[0]); M]; P];
    for i in 1..coefficients.len() {
        let next = scale * S::F::splat(coefficients[i]);
        for p in 0..P {
            for m in 0..M {
                out[p][m] = out[p][m].mul_add(f[p][m], next);
            }
        }
    }
    for p in 0..P {
        for m in 0..M {
            out[p][m] = f[p][m].mul_add(out[p][m], e[p][m]);
        }
    }
    out
}

/// Sines and cosines for angles within a quarter turn around zero.
#[inline(always)]
pub(crate) fn sin_cos_f32<V: Vector<Scalar = f32>, const M: usize, const P: usize>(
    t: &[[V; M]; P],
) -> [[[V; M]; P]; 2] {
    let mut tt = *t;
    for p in 0..P {
        for m in 0..M {
            tt[p][m] = t[p][m] * t[p][m];
        }
    }
    let mut s = horners(&tt, [-1.951_529_6e-4f32, 8.332_161e-3, -1.666_665_5e-1]);
    let c = horners(&tt, [2.443_315_7e-5f32, -1.388_731_6e-3, 4.166_664_6e-2, -0.5, 1.0]);
    for p in 0..P {
        for m in 0..M {
            s[p][m] = (s[p][m] * tt[p][m]).mul_add(t[p][m], t[p][m]);
        }
    }
    [s, c]
}

/// Sines and cosines for angles within a quarter turn around zero.
#[inline(always)]
pub(crate) fn sin_cos_f64<V: Vector<Scalar = f64>, const M: usize>(t: &[V; M]) -> [[V; M]; 2] {
    let mut tt = *t;
    for m in 0..M {
        tt[m] = t[m] * t[m];
    }
    let [mut s] = horners(
        &[tt],
        [
            1.589_690_995_211_55e-10f64,
            -2.505_076_025_340_686_3e-8,
            2.755_731_370_707_006_8e-6,
            -1.984_126_982_985_795e-4,
            8.333_333_333_322_49e-3,
            -1.666_666_666_666_663_2e-1,
        ],
    );
    let [c] = horners(
        &[tt],
        [
            -1.135_964_755_778_819_5e-11f64,
            2.087_572_321_298_175e-9,
            -2.755_731_435_139_066_3e-7,
            2.480_158_728_947_673e-5,
            -1.388_888_888_887_411e-3,
            4.166_666_666_666_66e-2,
            -0.5,
            1.0,
        ],
    );
    for m in 0..M {
        s[m] = (s[m] * tt[m]).mul_add(t[m], t[m]);
    }
    [s, c]
}

/// 1.5 * 2^52: its low mantissa bits hold an integer.
const INTEGER: f64 = 6_755_399_441_055_744.0;
const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// Natural logarithm of positive normal numbers.
#[inline(always)]
pub(crate) fn ln_f64<S: Simd>(x: S::D) -> S::D {
    let [out] = lns_f64::<S, 1>(&[x]);
    out
}

/// Natural logarithms in lockstep.
#[inline(always)]
pub(crate) fn lns_f64<S: Simd, const M: usize>(x: &[S::D; M]) -> [S::D; M] {
    const SQRT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
    let d = S::D::splat;
    let (mut f, mut e, mut s, mut r) = (*x, *x, *x, *x);
    for m in 0..M {
        let bits = S::wide_bits(x[m]);
        let over = bits - S::W::splat(SQRT_HALF);
        f[m] = S::from_wide_bits(bits - (over & S::W::splat(0xfff0_0000_0000_0000))) - d(1.0);
        // The exponent as a number: shifted right with its sign (through an offset), then into the mantissa of `INTEGER`.
        let exponent = (over + S::W::splat(1 << 63)).shr(52);
        e[m] = S::from_wide_bits(exponent + S::W::splat(INTEGER.to_bits() - 2048)) - d(INTEGER);
        s[m] = f[m].div(d(2.0) + f[m]);
        r[m] = s[m] * s[m];
    }
    let [mut out] = horners(
        &[r],
        [
            1.479_819_860_511_658_6e-1f64,
            1.531_383_769_920_937_3e-1,
            1.818_357_216_161_805e-1,
            2.222_219_843_214_978_4e-1,
            2.857_142_874_366_239e-1,
            3.999_999_999_940_942e-1,
            6.666_666_666_666_735e-1,
        ],
    );
    for m in 0..M {
        let r = r[m] * out[m];
        let half = d(0.5) * f[m] * f[m];
        let tail = half - s[m].mul_add(half + r, e[m] * d(LN2_LOW));
        out[m] = e[m].mul_add(d(LN2_HIGH), f[m] - tail);
    }
    out
}

/// Exponentials of numbers between -708 and 709, in lockstep.
#[inline(always)]
pub(crate) fn exps_within_f64<S: Simd, const M: usize>(v: &[S::D; M]) -> [S::D; M] {
    let d = S::D::splat;
    let (mut shifted, mut r) = (*v, *v);
    for m in 0..M {
        shifted[m] = v[m].mul_add(d(std::f64::consts::LOG2_E), d(INTEGER));
        let n = shifted[m] - d(INTEGER);
        r[m] = n.mul_add(d(-LN2_LOW), n.mul_add(d(-LN2_HIGH), v[m]));
    }
    let [mut p] = horners(
        &[r],
        [
            1.0 / 6_227_020_800.0,
            1.0 / 479_001_600.0,
            1.0 / 39_916_800.0,
            1.0 / 3_628_800.0,
            1.0 / 362_880.0,
            1.0 / 40_320.0,
            1.0 / 5_040.0,
            1.0 / 720.0,
            1.0 / 120.0,
            1.0 / 24.0,
            1.0 / 6.0,
            0.5,
            1.0,
            1.0,
        ],
    );
    for m in 0..M {
        p[m] = p[m] * S::from_wide_bits((S::wide_bits(shifted[m]) + S::W::splat(1023)).shl(52));
    }
    p
}

/// Exponential of numbers between -708 and 709.
#[inline(always)]
pub(crate) fn exp_within_f64<S: Simd>(v: S::D) -> S::D {
    let [out] = exps_within_f64::<S, 1>(&[v]);
    out
}

/// Exponential; below -708 the result is 0, above 709 infinity.
#[inline(always)]
pub(crate) fn exp_f64<S: Simd>(x: S::D) -> S::D {
    let [out] = exps_f64::<S, 1>(&[x]);
    out
}

/// Exponentials in lockstep; below -708 the result is 0, above 709 infinity.
#[inline(always)]
pub(crate) fn exps_f64<S: Simd, const M: usize>(x: &[S::D; M]) -> [S::D; M] {
    let d = S::D::splat;
    let mut v = *x;
    for m in 0..M {
        v[m] = x[m].if_greater(d(-708.0), x[m], d(-708.0));
        v[m] = d(709.0).if_greater(v[m], v[m], d(709.0));
    }
    let mut out = exps_within_f64::<S, M>(&v);
    for m in 0..M {
        let value = x[m].if_greater(d(-708.0), out[m], d(0.0));
        let value = x[m].if_greater(d(709.0), d(f64::INFINITY), value);
        // NaN is greater than nothing and stays; minus infinity, which also fails the first test, becomes zero.
        let number = x[m].if_greater(d(f64::NEG_INFINITY), value, x[m]);
        out[m] = d(-1.0).if_greater(number, d(0.0), number);
    }
    out
}

/// Exponential; arguments beyond -87 and 87 count as these.
#[inline(always)]
pub(crate) fn exp_f32<S: Simd>(x: S::F) -> S::F {
    /// 1.5 * 2^23: its low mantissa bits hold an integer.
    const INTEGER: f32 = 12_582_912.0;
    let f = S::F::splat;
    let v = x.if_greater(f(87.0), f(87.0), x);
    let v = f(-87.0).if_greater(v, f(-87.0), v);
    let shifted = v.mul_add(f(std::f32::consts::LOG2_E), f(INTEGER));
    let n = shifted - f(INTEGER);
    let r = n.mul_add(f(2.121_944_4e-4), n.mul_add(f(-0.693_359_4), v));
    let p = horner(r, [1.987_569_1e-4f32, 1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5]);
    let p = (r * r).mul_add(p, r + f(1.0));
    // The integer sits in the low bits; shifting by 23 leaves nothing above it.
    p * S::from_bits((S::bits(shifted) + S::U::splat(127)).shl(23))
}
