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

/// Numbers closer to zero are zero in what products are made of: the product of two is then far from where numbers lose digits and processors their speed.
fn tiny<T: Real>() -> T {
    T::from_f64(if size_of::<T>() == size_of::<f32>() { 1e-18 } else { 1e-150 })
}

/// Without numbers too close to zero.
#[inline(always)]
fn flush<S: Simd, T: Real>(x: T::V<S>) -> T::V<S> {
    let (zero, tiny) = (T::splat::<S>(T::ZERO), T::splat::<S>(tiny()));
    tiny.if_greater(x, x.if_greater(zero - tiny, zero, x), x)
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
fn each<S: Simd, T: Real, F: Function<T>>(f: F, x: &mut [T], slope: &mut [T]) {
    let ((xs, x), (slopes, slope)) = (x.as_chunks_mut::<LANES>(), slope.as_chunks_mut::<LANES>());
    for i in 0..xs.len() {
        let [value, derivative] = f.at::<S>(T::V::<S>::load(&xs[i]));
        flush::<S, T>(value).store(&mut xs[i]);
        flush::<S, T>(derivative).store(&mut slopes[i]);
    }
    if !x.is_empty() {
        let mut ends = [[T::ZERO; LANES]; 2];
        let [value, derivative] = f.at::<S>(T::V::<S>::load_part(x));
        flush::<S, T>(value).store(&mut ends[0]);
        flush::<S, T>(derivative).store(&mut ends[1]);
        x.copy_from_slice(&ends[0][..x.len()]);
        slope.copy_from_slice(&ends[1][..x.len()]);
    }
}

#[inline(always)]
fn any<S: Simd, T: Real>(f: Activation, x: &mut [T], slope: &mut [T]) {
    // Checked once, so that the loops need no checks.
    let slope = &mut slope[..x.len()];
    match f {
        Activation::Silu => each::<S, T, _>(Silu, x, slope),
        Activation::LeakyRelu(leak) => each::<S, T, _>(LeakyRelu(T::from_f64(leak)), x, slope),
        Activation::Softplus => each::<S, T, _>(Softplus, x, slope),
        Activation::Tanh => each::<S, T, _>(Tanh, x, slope),
    }
}

dispatch! {
    /// Values in place of arguments, and derivatives.
    pub(crate) fn activate{T: Real}{T}(f: Activation, x: &mut [T], slope: &mut [T]) = any
}

multiversion! {
    /// `x = x b`, number by number, without numbers too close to zero.
    pub(crate) fn scale[T: Real](x: &mut [T], b: &[T]) {
        let tiny = tiny::<T>();
        for (x, b) in x.iter_mut().zip(b) {
            let product = *x * *b;
            *x = if (product < tiny) & (product > -tiny) { T::ZERO } else { product };
        }
    }
}

dispatch! {
    /// Rows of `columns` numbers, from where `rows` says, times the `p` of their image (equally many rows each), to rows of `width`
    /// numbers (whole vectors) that zeros fill up; and their sum.
    pub(crate) fn scale_rows{T: Real}{T}(
        x: &[T], rows: &[u32], p: &[T], columns: usize, width: usize, out: &mut [T], sum: &mut [T],
    ) = scale_vectors
}

/// `by` times so many numbers of `x`, from where they begin, goes to a vector of `out`; `sum` with that added. A function, as a closure cannot be told to be inlined.
#[inline(always)]
fn scaled<S: Simd, T: Real>(
    x: &[T],
    (first, lanes, to): (usize, usize, usize),
    by: T::V<S>,
    out: &mut [T],
    sum: T::V<S>,
) -> T::V<S> {
    let x = &x[first..][..lanes];
    let x = match x.first_chunk::<LANES>() {
        Some(x) => T::V::<S>::load(x),
        None => T::V::<S>::load_part(x),
    };
    let product = flush::<S, T>(by * x);
    if let Some(out) = out[to..].first_chunk_mut::<LANES>() {
        product.store(out);
    }
    sum + product
}

#[inline(always)]
fn scale_vectors<S: Simd, T: Real>(
    x: &[T],
    rows: &[u32],
    p: &[T],
    columns: usize,
    width: usize,
    out: &mut [T],
    sum: &mut [T],
) {
    /// Sums side by side: one alone would wait for itself.
    const SUMS: usize = 4;
    let each = rows.len() / p.len();
    for (from, sum) in (0..width).step_by(LANES).zip(sum.as_chunks_mut::<LANES>().0) {
        let lanes = LANES.min(columns.saturating_sub(from));
        let mut sums = [T::splat::<S>(T::ZERO); SUMS];
        let images = rows.chunks_exact(each).zip(out.chunks_exact_mut(each * width));
        for ((rows, out), &by) in images.zip(p) {
            let by = T::splat::<S>(by);
            let (groups, rest) = rows.as_chunks::<SUMS>();
            let (out, out_rest) = out.split_at_mut(groups.len() * SUMS * width);
            for (rows, out) in groups.iter().zip(out.chunks_exact_mut(SUMS * width)) {
                for i in 0..SUMS {
                    let place = (rows[i] as usize + from, lanes, from);
                    sums[i] = scaled::<S, T>(x, place, by, &mut out[i * width..(i + 1) * width], sums[i]);
                }
            }
            for (&row, out) in rest.iter().zip(out_rest.chunks_exact_mut(width)) {
                sums[0] = scaled::<S, T>(x, (row as usize + from, lanes, from), by, out, sums[0]);
            }
        }
        let all = (sums[0] + sums[1]) + (sums[2] + sums[3]) + T::V::<S>::load(sum);
        all.store(sum);
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
                let (mut y, mut slope) = (x.clone(), vec![T::ZERO; x.len()]);
                activate(isa, f, &mut y, &mut slope);
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

    /// Of numbers that are common in saturated layers nothing comes close to where `f32` loses digits; what is not small stays as it is.
    #[test]
    fn nothing_is_too_small_for_products() {
        let x: Vec<f32> = (-1500..=0).map(|i| i as f32 / 10.0).collect();
        for isa in Isa::available() {
            for f in [Activation::Silu, Activation::Softplus, Activation::Tanh] {
                let (mut y, mut slope) = (x.clone(), vec![0.0; x.len()]);
                activate(isa, f, &mut y, &mut slope);
                assert!(y.iter().chain(&slope).all(|v| *v == 0.0 || v.abs() >= 1e-18), "{f:?} on {isa:?}");
            }
            let mut products = [1e-10f32, -1e-10, 1e-10, f32::NAN, 2.0];
            scale(isa, &mut products, &[1e-9, 1e-9, 1e-7, 1.0, 3.0]);
            assert_eq!((products[0], products[1], products[4]), (0.0, 0.0, 6.0), "{isa:?}");
            assert!((products[2] - 1e-17).abs() < 1e-23 && products[3].is_nan(), "{isa:?}");
            let (mut out, mut sum) = ([1.0f32; LANES], [0.0f32; LANES]);
            scale_rows(isa, &[1e-10, -1e-10, 1.0, 0.5], &[0], &[1e-9], 4, LANES, &mut out, &mut sum);
            assert_eq!((&out[..4], sum), (&[0.0, 0.0, 1e-9, 0.5e-9][..], out), "{isa:?}");
        }
    }

    #[test]
    fn what_is_not_a_number_stays_so() {
        for f in [Activation::Silu, Activation::Softplus, Activation::Tanh] {
            let (mut y, mut slope) = ([f32::NAN; 1], [0.0; 1]);
            activate(Isa::best(), f, &mut y, &mut slope);
            assert!(y[0].is_nan() && slope[0].is_nan(), "{f:?}");
        }
    }

    fn rows_scaled<T: Real>() {
        let x: Vec<T> = (0..300).map(|i| T::from_f64(((i * 37) % 101) as f64 / 8.0 - 5.0)).collect();
        for (images, each, columns) in [(1usize, 1usize, 3usize), (3, 4, 16), (2, 7, 20), (5, 2, 32)] {
            let p: Vec<T> = (0..images).map(|i| T::from_f64(0.5 + i as f64)).collect();
            let rows: Vec<u32> = (0..images * each).map(|i| (i * 11) as u32).collect();
            let width = columns.next_multiple_of(LANES);
            for isa in Isa::available() {
                let (mut out, mut sum) = (vec![T::ONE; rows.len() * width], vec![T::ONE; width]);
                scale_rows(isa, &x, &rows, &p, columns, width, &mut out, &mut sum);
                for j in 0..width {
                    let mut expected = 1.0;
                    for (i, &row) in rows.iter().enumerate() {
                        let product = if j < columns { p[i / each] * x[row as usize + j] } else { T::ZERO };
                        assert_eq!(out[i * width + j], product, "{isa:?}");
                        expected += product.to_f64();
                    }
                    // Multiples of 1/16 below 2^12: every sum is exact, in any order.
                    assert_eq!(sum[j].to_f64(), expected, "{isa:?}");
                }
            }
        }
    }

    #[test]
    fn rows_are_scaled_and_added_up() {
        rows_scaled::<f32>();
        rows_scaled::<f64>();
    }
}
