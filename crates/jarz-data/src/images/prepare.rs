//! From pixels to numbers in `[-1, 1]`, with noise.

use jarz::{Dataset, Purpose, Random, Real};

use super::{ImageError, Images};

/// How pixels become numbers. The noise of image `i` is addressed by (seed, draw, `i`) alone: it does not depend on how
/// many images there are, nor on threads.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Preparation {
    /// Spreads every pixel evenly over its level: `2 (pixel + u) / levels - 1` with `u` in (0, 1), so that densities of
    /// these numbers bound probabilities of the pixels. Without it, `2 pixel / (levels - 1) - 1`.
    pub dequantise: bool,
    /// Standard deviation of Gaussian noise, in units of the scaled numbers.
    pub noise: f64,
    /// Seed of both noises.
    pub seed: u64,
    /// Other numbers of the same seed; for a fresh noise in every epoch, say.
    pub draw: u64,
}

impl Preparation {
    /// Distance between neighbouring levels of `images` after scaling. With dequantisation and no other noise, a
    /// cross-entropy of `h` nats per dimension bounds that of the pixels by `(h - ln(width)) / ln 2` bits per dimension.
    pub fn level_width(&self, images: &Images) -> f64 {
        let levels = f64::from(images.levels());
        2.0 / if self.dequantise { levels } else { levels - 1.0 }
    }
}

impl Images {
    /// The pixels as numbers, scaled to `[-1, 1]`, with noise as `how` says.
    pub fn values<T: Real>(&self, how: &Preparation) -> Result<Vec<T>, ImageError> {
        if !(how.noise >= 0.0 && how.noise.is_finite()) {
            let range = "0 or a positive number";
            return Err(ImageError::Number { what: "the noise", value: how.noise, range });
        }
        let width = how.level_width(self);
        let random = Random::new(how.seed);
        let mut values = Vec::with_capacity(self.pixels().len());
        let mut normals = vec![T::ZERO; self.dim()];
        for row in 0..self.len() {
            let first = values.len();
            if how.dequantise {
                dequantise(self.image(row), width, |block| {
                    random.words(how.draw, row as u64, Purpose::Dequantise, block)
                })
                .for_each(|v| values.push(T::from_f64(v)));
            } else {
                values.extend(self.image(row).iter().map(|&p| T::from_f64(f64::from(p) * width - 1.0)));
            }
            if how.noise > 0.0 {
                random.normals(how.draw, row as u64, Purpose::DataNoise, &mut normals);
                for (value, normal) in values[first..].iter_mut().zip(&normals) {
                    *value = T::from_f64(value.to_f64() + how.noise * normal.to_f64());
                }
            }
        }
        Ok(values)
    }

    /// [`Images::values`] as data points.
    pub fn dataset<T: Real>(&self, how: &Preparation) -> Result<Dataset<T>, ImageError> {
        let values = self.values(how)?;
        let too_large = ImageError::Number { what: "the noise", value: how.noise, range: "smaller" };
        Dataset::new(self.dim(), values).ok_or(too_large)
    }
}

/// Pixels with a uniform added, scaled. Four pixels share a block of random words; uniforms are centred in cells of 2^-32.
fn dequantise(pixels: &[u8], width: f64, words: impl Fn(u32) -> [u32; 4]) -> impl Iterator<Item = f64> {
    pixels.chunks(4).enumerate().flat_map(move |(block, four)| {
        let words = words(block as u32);
        (0..four.len()).map(move |i| {
            let u = (f64::from(words[i]) + 0.5) / (1u64 << 32) as f64;
            (f64::from(four[i]) + u) * width - 1.0
        })
    })
}
