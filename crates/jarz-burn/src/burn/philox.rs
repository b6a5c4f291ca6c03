//! The random words of [`jarz::random`] on the device: Philox on tensors of unsigned integers, and normals from them.
//!
//! Words are addressed, so that a device makes the very numbers that the processor has for a walker and step, in whatever blocks.

use burn_tensor::{DType, Device, FloatDType, Int, Tensor, TensorCreationOptions, TensorData};
use jarz::WalkerIds;
use jarz::random::{Key, MULTIPLIERS, ROUNDS, WEYL};

/// Words of a row per walker and a column per block; sides of one stand for any number.
type Words = Tensor<2, Int>;

/// One over the number of words.
const CELL: f64 = 1.0 / 4_294_967_296.0;

fn put(values: Vec<u32>, sides: [usize; 2], device: &Device) -> Words {
    let options = TensorCreationOptions::new(device.clone()).with_dtype(DType::U32);
    Tensor::from_data(TensorData::new(values, sides), options)
}

/// Four random words for each of the first `blocks` blocks of the walkers.
fn words(key: &Key, ids: WalkerIds<'_>, rows: usize, blocks: usize, device: &Device) -> [Words; 4] {
    let [_, _, low, high] = key.counter(ids.get(0), 0);
    let walkers = (0..rows).map(|i| ids.get(i) as u32).collect();
    let mut counter = [
        put((0..blocks as u32).collect(), [1, blocks], device),
        put(walkers, [rows, 1], device),
        put(vec![low], [1, 1], device),
        put(vec![high], [1, 1], device),
    ];
    let mut key = key.seed();
    for _ in 0..ROUNDS {
        let [c0, c1, c2, c3] = counter;
        let (high_0, low_0) = wide(c0, MULTIPLIERS[0]);
        let (high_1, low_1) = wide(c2, MULTIPLIERS[1]);
        let mix = |high: Words, word: Words, key: u32| high.bitwise_xor(word).bitwise_xor_scalar(key);
        counter = [mix(high_1, c1, key[0]), low_1, mix(high_0, c3, key[1]), low_0];
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    counter
}

/// High and low word of a product: devices multiply words, so the high one is put together from halves.
fn wide(x: Words, by: u32) -> (Words, Words) {
    let low = |w: Words| w.bitwise_and_scalar(0xffff_u32);
    let high = |w: Words| w.bitwise_right_shift_scalar(16_u32);
    let (a, b) = (low(x.clone()), high(x.clone()));
    let inner = a.clone() * (by >> 16);
    let outer = b.clone() * (by & 0xffff);
    let carry = high(a * (by & 0xffff)) + low(inner.clone()) + low(outer.clone());
    (b * (by >> 16) + high(inner) + high(outer) + high(carry), x * by)
}

fn float(words: Words) -> Tensor<2> {
    words.cast(FloatDType::F32)
}

/// Standard normals by Box and Muller's transform, as [`jarz::Random::normal_rows`] makes them.
pub(crate) fn normals(key: &Key, ids: WalkerIds<'_>, rows: usize, dim: usize, device: &Device) -> Tensor<2> {
    let blocks = dim.div_ceil(4);
    let [w0, w1, w2, w3] = words(key, ids, rows, blocks, device).map(|w| w.expand([rows, blocks]));
    let [a, b] = pair(w0, w1);
    let [c, d] = pair(w2, w3);
    let four: Tensor<3> = Tensor::stack(vec![a, b, c, d], 2);
    four.reshape([rows, 4 * blocks]).narrow(1, 0, dim)
}

/// Two normals from two words.
fn pair(radius: Words, angle: Words) -> [Tensor<2>; 2] {
    let radius = ((float(radius) * CELL + 0.5 * CELL).log() * -2.0).sqrt();
    let bit = |place: u32| angle.clone().bitwise_right_shift_scalar(place).bitwise_and_scalar(1_u32);
    // The lower bits are an angle within an eighth of a turn around zero; the two on top make it a full turn.
    let turn = angle.clone().bitwise_left_shift_scalar(2_u32).bitwise_xor_scalar(1_u32 << 31);
    let turn = (float(turn) * (2.0 * CELL) - 1.0) * std::f64::consts::FRAC_PI_4;
    let [sin, cos] = sin_cos(turn);
    let radius = radius * (float(bit(30)) * -2.0 + 1.0);
    let swap = bit(31).equal_scalar(1_u32);
    let first = cos.clone().mask_where(swap.clone(), sin.clone());
    let second = sin.mask_where(swap, cos);
    [radius.clone() * first, radius * second]
}

/// Within an eighth of a turn around zero, where a few terms of the series suffice: devices may have coarse functions of their own.
fn sin_cos(x: Tensor<2>) -> [Tensor<2>; 2] {
    let square = x.clone().square();
    let series = |terms: [f64; 4]| {
        let sum = |s: Option<Tensor<2>>, t: &f64| {
            Some(s.map_or_else(|| square.clone() * *t, |s| (s + *t) * square.clone()))
        };
        terms.iter().rev().fold(None, sum).map_or_else(|| x.clone(), |s| s + 1.0)
    };
    let sin = series([-1.0 / 6.0, 1.0 / 120.0, -1.0 / 5040.0, 1.0 / 362_880.0]);
    let cos = series([-0.5, 1.0 / 24.0, -1.0 / 720.0, 1.0 / 40_320.0]);
    [sin * x, cos]
}

/// Logarithms of uniforms in (0, 1), one for each walker: those of [`jarz::Random::uniform`].
pub(crate) fn log_uniforms(key: &Key, ids: WalkerIds<'_>, rows: usize, device: &Device) -> Tensor<1> {
    let [low, high, ..] = words(key, ids, rows, 1, device).map(|w| w.expand([rows, 1]));
    let uniform = (float(high) + float(low) * CELL) * CELL;
    uniform.log().reshape([rows])
}
