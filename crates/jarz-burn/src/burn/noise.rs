//! Random numbers of the walkers' moves.

use crate::burn::transfer;
use crate::names::Noise;
use burn_tensor::{Device, Distribution, Tensor};
use jarz::{Purpose, Random, Real, WalkerIds};
use std::sync::{Mutex, PoisonError};

/// Random numbers of one ensemble.
#[derive(Clone)]
pub(crate) struct Source {
    pub random: Random,
    pub kind: Noise,
    pub device: Device,
}

impl Source {
    /// Standard normals for the walkers `ids` (`rows` of them) in kernel step `step`.
    pub fn normals(&self, step: u64, ids: WalkerIds<'_>, rows: usize, dim: usize) -> Tensor<2> {
        if self.kind == Noise::Device {
            return self.draw(step, ids, Purpose::Noise, || {
                Tensor::random([rows, dim], Distribution::Normal(0.0, 1.0), &self.device)
            });
        }
        let stride = f32::noise_stride(dim);
        let mut padded = vec![0.0f32; rows * stride];
        self.random.normal_rows(step, Purpose::Noise, ids, dim, &mut padded);
        let values: Vec<f32> = padded.chunks_exact(stride).flat_map(|row| &row[..dim]).copied().collect();
        transfer::rows(values, dim, &self.device)
    }

    /// Logarithms of uniforms in (0, 1), for the Metropolis tests of step `step`.
    pub fn log_uniforms(&self, step: u64, ids: WalkerIds<'_>, rows: usize) -> Tensor<1> {
        if self.kind == Noise::Device {
            let draw = || Tensor::random([rows], Distribution::Uniform(0.0, 1.0), &self.device);
            return self.draw(step, ids, Purpose::Accept, draw).log();
        }
        let log = |i| self.random.uniform(step, ids.get(i), Purpose::Accept).ln() as f32;
        transfer::vector((0..rows).map(log), &self.device)
    }

    /// Draws with the device's generator, seeded from the address of the first number that is wanted.
    fn draw<R>(&self, step: u64, ids: WalkerIds<'_>, purpose: Purpose, draw: impl FnOnce() -> R) -> R {
        /// The generator's state belongs to the process.
        static GENERATOR: Mutex<()> = Mutex::new(());
        let words = self.random.words(step, ids.get(0), purpose, u32::MAX);
        let _alone = GENERATOR.lock().unwrap_or_else(PoisonError::into_inner);
        self.device.seed(u64::from(words[0]) | u64::from(words[1]) << 32);
        draw()
    }
}
