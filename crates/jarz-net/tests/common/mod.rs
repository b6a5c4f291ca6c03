//! A plain twin of the engine: every layer by its definition, one number at a time.
#![allow(dead_code)]

use jarz::{Purpose, Random};
use jarz_net::{Architecture, Layer, Weights};

/// Uniform numbers in (-1, 1).
pub fn numbers(seed: u64, count: usize) -> Vec<f64> {
    let random = Random::new(seed);
    (0..count as u64).map(|i| 2.0 * random.uniform(0, i, Purpose::User) - 1.0).collect()
}

/// Parameters of a size that keeps outputs of order one.
pub fn params(architecture: &Architecture, seed: u64) -> Vec<f64> {
    let all = architecture.weights().unwrap();
    let raw = numbers(seed, architecture.params().unwrap());
    let scales = all.iter().flat_map(|w| vec![1.5 / (w.fan_in() as f64).sqrt(); w.count() + w.outputs]);
    raw.iter().zip(scales).map(|(r, s)| r * s).collect()
}

#[derive(Clone)]
struct Image {
    sides: [usize; 3],
    values: Vec<f64>,
}

impl Image {
    fn at(&self, y: isize, x: isize, c: usize) -> f64 {
        let [h, w, channels] = self.sides;
        let inside = y >= 0 && x >= 0 && (y as usize) < h && (x as usize) < w;
        if inside { self.values[(y as usize * w + x as usize) * channels + c] } else { 0.0 }
    }
}

fn conv(image: &Image, w: &Weights, params: &[f64], stride: usize, padding: usize) -> Image {
    let side = |n: usize| (n + 2 * padding - w.kernel) / stride + 1;
    let sides = [side(image.sides[0]), side(image.sides[1]), w.outputs];
    let mut values = Vec::new();
    for y in 0..sides[0] {
        for x in 0..sides[1] {
            for o in 0..w.outputs {
                let mut sum = params[w.first + w.count() + o];
                for (j, k) in (0..w.kernel * w.kernel).map(|p| (p / w.kernel, p % w.kernel)) {
                    for i in 0..w.inputs {
                        let at = ((j * w.kernel + k) * w.inputs + i) * w.outputs + o;
                        let (row, column) = (y * stride + j, x * stride + k);
                        let value =
                            image.at(row as isize - padding as isize, column as isize - padding as isize, i);
                        sum += params[w.first + at] * value;
                    }
                }
                values.push(sum);
            }
        }
    }
    Image { sides, values }
}

fn layers<'w>(
    image: Image,
    layers: &[Layer],
    weights: &mut impl Iterator<Item = &'w Weights>,
    params: &[f64],
) -> Image {
    let mut image = image;
    for layer in layers {
        let each = |image: Image, f: &dyn Fn(f64) -> f64| Image {
            values: image.values.iter().map(|&v| f(v)).collect(),
            ..image
        };
        image = match layer {
            Layer::Conv2d { stride, padding, .. } => {
                conv(&image, weights.next().unwrap(), params, *stride, *padding)
            }
            Layer::Linear { .. } => conv(&image, weights.next().unwrap(), params, 1, 0),
            Layer::Silu => each(image, &|v| v / (1.0 + (-v).exp())),
            Layer::LeakyRelu { slope } => each(image, &|v| if v > 0.0 { v } else { slope * v }),
            Layer::Softplus => each(image, &|v| v.max(0.0) + (-v.abs()).exp().ln_1p()),
            Layer::Tanh => each(image, &f64::tanh),
            Layer::Flatten => Image { sides: [1, 1, image.values.len()], values: image.values },
            Layer::Residual { layers: inner } => {
                let more = self::layers(image.clone(), inner, weights, params);
                Image { values: image.values.iter().zip(&more.values).map(|(a, b)| a + b).collect(), ..image }
            }
            Layer::AvgPool { kernel } => {
                let [h, w, c] = image.sides;
                let sides = [h / kernel, w / kernel, c];
                let mean = |n: usize| {
                    let (y, x, c) = (n / sides[2] / sides[1], n / sides[2] % sides[1], n % sides[2]);
                    let places =
                        (0..kernel * kernel).map(|p| (y * kernel + p / kernel, x * kernel + p % kernel));
                    places.map(|(y, x)| image.at(y as isize, x as isize, c)).sum::<f64>()
                        / (kernel * kernel) as f64
                };
                Image { sides, values: (0..sides.iter().product()).map(mean).collect() }
            }
            Layer::Sum => Image { sides: [1; 3], values: vec![image.values.iter().sum()] },
        };
    }
    image
}

/// The output of one image.
pub fn twin(architecture: &Architecture, params: &[f64], x: &[f64]) -> Vec<f64> {
    let weights = architecture.weights().unwrap();
    let image = Image { sides: architecture.input, values: x.to_vec() };
    layers(image, &architecture.layers, &mut weights.iter(), params).values
}
