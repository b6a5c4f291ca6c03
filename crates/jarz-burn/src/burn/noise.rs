//! Random numbers of the walkers' moves.

use crate::burn::{philox, transfer};
use crate::names::Noise;
use burn_tensor::{Device, Tensor};
use jarz::{Purpose, Random, Real, WalkerIds};

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
            return philox::normals(&self.random.key(step, Purpose::Noise), ids, rows, dim, &self.device);
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
            return philox::log_uniforms(&self.random.key(step, Purpose::Accept), ids, rows, &self.device);
        }
        let log = |i| self.random.uniform(step, ids.get(i), Purpose::Accept).ln() as f32;
        transfer::vector((0..rows).map(log), &self.device)
    }
}
