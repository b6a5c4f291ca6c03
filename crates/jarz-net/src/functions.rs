//! Functions of single numbers on vectors: activations with their derivatives, and the passes over arrays that go with them.

use jarz::Real;
use jarz::simd::{LANES, Simd, Vector, dispatch, multiversion};

/// An activation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Activation {
    Silu,
    LeakyRelu(f64),
    Softplus,
    Tanh,
}

/// A function with its derivative.
trait Function<T: Real>: Copy {
    fn at<S: Simd>(self, x: T::V<S>) -> [T::V<S>; 2];
}

/// `1 / (1 + exp(-x))`.
#[inline(always)]
fn sigmoid<S: Simd, T: Real>(x: T::V<S>) -> T::V<S> {
    let one = T::splat::<S>(T::ONE);
    one.div(one + T::exp::<S>(T::splat::<S>(T::ZERO) - x))
}

#[derive(Clone, Copy)]
struct Silu;

impl<T: Real> Function<T> for Silu {
    #[inline(always)]
    fn at<S: Simd>(self, x: T::V<S>) -> [T::V<S>; 2] {
        let s = sigmoid::<S, T>(x);
        let y = x * s;
        // s (1 + x (1 - s))
        [y, y.mul_add(T::splat::<S>(T::ONE) - s, s)]
    }
}

#[derive(Clone, Copy)]
struct LeakyRelu<T>(T);

impl<T: Real> Function<T> for LeakyRelu<T> {
    #[inline(always)]
    fn at<S: Simd>(self, x: T::V<S>) -> [T::V<S>; 2] {
        let slope = x.if_greater(T::splat::<S>(T::ZERO), T::splat::<S>(T::ONE), T::splat::<S>(self.0));
        [x * slope, slope]
    }
}

#[derive(Clone, Copy)]
struct Softplus;

impl<T: Real> Function<T> for Softplus {
    #[inline(always)]
    fn at<S: Simd>(self, x: T::V<S>) -> [T::V<S>; 2] {
        let (zero, two) = (T::splat::<S>(T::ZERO), T::splat::<S>(T::from_f64(2.0)));
        let positive = x.if_greater(zero, x, zero);
        let t = T::exp::<S>(x - positive - positive);
        // log(1 + t) = 2 artanh(t / (2 + t)), whose series in squares of at most 1/9 ends after 17 terms.
        let s = t.div(two + t);
        let r = s * s;
        let mut sum = T::splat::<S>(T::from_f64(1.0 / 35.0));
        for k in (0..17).rev() {
            sum = sum.mul_add(r, T::splat::<S>(T::from_f64(1.0 / (2 * k + 1) as f64)));
        }
        [(two * s).mul_add(sum, positive), sigmoid::<S, T>(x)]
    }
}

#[derive(Clone, Copy)]
struct Tanh;

impl<T: Real> Function<T> for Tanh {
    #[inline(always)]
    fn at<S: Simd>(self, x: T::V<S>) -> [T::V<S>; 2] {
        let (one, two) = (T::splat::<S>(T::ONE), T::splat::<S>(T::from_f64(2.0)));
        let y = two.mul_add(sigmoid::<S, T>(two * x), T::splat::<S>(-T::ONE));
        [y, y.neg_mul_add(y, one)]
    }
}

#[inline(always)]
fn each<S: Simd, T: Real, F: Function<T>>(f: F, x: &[T], y: &mut [T], slope: &mut [T]) {
    let ((xs, x), (ys, y), (slopes, slope)) =
        (x.as_chunks::<LANES>(), y.as_chunks_mut::<LANES>(), slope.as_chunks_mut::<LANES>());
    for i in 0..xs.len() {
        let [value, derivative] = f.at::<S>(T::V::<S>::load(&xs[i]));
        value.store(&mut ys[i]);
        derivative.store(&mut slopes[i]);
    }
    if !x.is_empty() {
        let mut ends = [[T::ZERO; LANES]; 2];
        let [value, derivative] = f.at::<S>(T::V::<S>::load_part(x));
        value.store(&mut ends[0]);
        derivative.store(&mut ends[1]);
        y.copy_from_slice(&ends[0][..x.len()]);
        slope.copy_from_slice(&ends[1][..x.len()]);
    }
}

#[inline(always)]
fn any<S: Simd, T: Real>(f: Activation, x: &[T], y: &mut [T], slope: &mut [T]) {
    // Checked once, so that the loops need no checks.
    let (y, slope) = (&mut y[..x.len()], &mut slope[..x.len()]);
    match f {
        Activation::Silu => each::<S, T, _>(Silu, x, y, slope),
        Activation::LeakyRelu(leak) => each::<S, T, _>(LeakyRelu(T::from_f64(leak)), x, y, slope),
        Activation::Softplus => each::<S, T, _>(Softplus, x, y, slope),
        Activation::Tanh => each::<S, T, _>(Tanh, x, y, slope),
    }
}

dispatch! {
    /// Values and derivatives.
    pub(crate) fn activate{T: Real}{T}(f: Activation, x: &[T], y: &mut [T], slope: &mut [T]) = any
}

multiversion! {
    /// `out = a b`, or `out += a b`, number by number.
    pub(crate) fn products[T: Real](a: &[T], b: &[T], add: bool, out: &mut [T]) {
        let (b, out) = (&b[..a.len()], &mut out[..a.len()]);
        for i in 0..a.len() {
            let product = a[i] * b[i];
            out[i] = if add { out[i] + product } else { product };
        }
    }
}

multiversion! {
    /// Rows of `columns` numbers, from where `rows` says, times the `p` of their image (equally many rows each), to rows of `width`
    /// numbers that zeros fill up; and their sum.
    pub(crate) fn scale_rows[T: Real](
        x: &[T], rows: &[u32], p: &[T], columns: usize, width: usize, out: &mut [T], sum: &mut [T],
    ) {
        let each = rows.len() / p.len();
        let sum = &mut sum[..columns];
        for (i, (&row, out)) in rows.iter().zip(out.chunks_exact_mut(width)).enumerate() {
            let (by, x) = (p[i / each], &x[row as usize..][..columns]);
            let (out, rest) = out.split_at_mut(columns);
            for j in 0..columns {
                out[j] = by * x[j];
                sum[j] += out[j];
            }
            rest.fill(T::ZERO);
        }
    }
}

multiversion! {
    /// `out += x`.
    pub(crate) fn accumulate[T: Real](x: &[T], out: &mut [f64]) {
        for (out, x) in out.iter_mut().zip(x) {
            *out += x.to_f64();
        }
    }
}

multiversion! {
    /// `|x|^2 / 2` of every row.
    pub(crate) fn half_squares[T: Real](x: &[T], dim: usize, out: &mut [f64]) {
        for (row, out) in x.chunks_exact(dim).zip(out) {
            let (groups, rest) = row.as_chunks::<LANES>();
            let mut lanes = [0.0; LANES];
            for group in groups {
                for l in 0..LANES {
                    lanes[l] += group[l].to_f64() * group[l].to_f64();
                }
            }
            let tail: f64 = rest.iter().map(|v| v.to_f64() * v.to_f64()).sum();
            *out = 0.5 * (lanes.iter().sum::<f64>() + tail);
        }
    }
}

multiversion! {
    /// `out += x`, the gradient of the base measure.
    pub(crate) fn add_base[T: Real](x: &[T], out: &mut [T]) {
        out.iter_mut().zip(x).for_each(|(out, x)| *out += *x);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jarz::simd::Isa;

    fn exact(f: Activation, x: f64) -> (f64, f64) {
        let s = 1.0 / (1.0 + (-x).exp());
        match f {
            Activation::Silu => (x * s, s * (1.0 + x * (1.0 - s))),
            Activation::LeakyRelu(leak) => {
                if x > 0.0 {
                    (x, 1.0)
                } else {
                    (leak * x, leak)
                }
            }
            Activation::Softplus => (x.max(0.0) + (-x.abs()).exp().ln_1p(), s),
            Activation::Tanh => (x.tanh(), 1.0 - x.tanh().powi(2)),
        }
    }

    /// Errors of a few units in the last place of the larger of value and one.
    fn close<T: Real>(unit: f64) {
        let x: Vec<T> = (-4000..=4000).map(|i| T::from_f64(i as f64 / 40.0)).collect();
        for f in [Activation::Silu, Activation::LeakyRelu(0.2), Activation::Softplus, Activation::Tanh] {
            let mut first = None;
            for isa in Isa::available() {
                let (mut y, mut slope) = (vec![T::ZERO; x.len()], vec![T::ZERO; x.len()]);
                activate(isa, f, &x, &mut y, &mut slope);
                for i in 0..x.len() {
                    let (value, derivative) = exact(f, x[i].to_f64());
                    let off = (y[i].to_f64() - value).abs() / value.abs().max(1.0);
                    let slope_off = (slope[i].to_f64() - derivative).abs();
                    assert!(
                        off < 8.0 * unit && slope_off < 16.0 * unit,
                        "{f:?} at {}: {off} {slope_off}",
                        x[i]
                    );
                }
                let first = first.get_or_insert((y.clone(), slope.clone()));
                assert!(*first == (y, slope), "{f:?}: {isa:?} gives other bits");
            }
        }
    }

    #[test]
    fn activations_are_exact_to_rounding_on_every_instruction_set() {
        close::<f32>(f32::EPSILON as f64);
        close::<f64>(f64::EPSILON);
    }

    #[test]
    fn what_is_not_a_number_stays_so() {
        for f in [Activation::Silu, Activation::Softplus, Activation::Tanh] {
            let (mut y, mut slope) = ([0.0f32; 1], [0.0; 1]);
            activate(Isa::best(), f, &[f32::NAN], &mut y, &mut slope);
            assert!(y[0].is_nan() && slope[0].is_nan(), "{f:?}");
        }
    }
}
