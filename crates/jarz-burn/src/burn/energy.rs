//! The energy on the device: `U(z) = |z|^2 / 2 + f(mean + L z)`.
//!
//! Energies of walkers are some hundreds, of which single precision keeps four digits after the point. What weights need are small
//! differences, so only `f` and its gradient are kept, and the base's part of a difference is put together from the displacement.

use crate::burn::network::{Deltas, Network, Theta};
use crate::burn::transfer::rows;
use burn_tensor::{Device, Tensor};
use jarz_net::{Architecture, Base};
use std::ops::Range;

/// Memory that the passes of one block of walkers may take.
const BLOCK_BYTES: usize = 256 << 20;
/// Arrays of the size of a layer's output that live at the same time: values, derivatives, and those on the way back.
const ARRAYS: usize = 3;

/// A network on a base measure.
pub(crate) struct DeviceEnergy {
    pub network: Network,
    pub device: Device,
    maps: Maps,
    /// Rows that are evaluated together.
    block: usize,
}

/// `x = mean + L z`.
enum Maps {
    Same,
    Diagonal { mean: Tensor<2>, scale: Tensor<2> },
    Full { mean: Tensor<2>, factor: Tensor<2> },
}

/// The network's part of the energy and of its gradient, and what the parameters' gradient needs.
pub(crate) struct Pass {
    pub f: Tensor<1>,
    pub g: Tensor<2>,
    pub deltas: Deltas,
}

impl DeviceEnergy {
    pub fn new(architecture: &Architecture, base: &Base, device: &Device) -> Result<Self, jarz_net::Error> {
        if !base.components().is_empty() {
            let text = "a mixture as base measure cannot be on a device yet: take a Gaussian";
            return Err(jarz_net::Error::Data(text.into()));
        }
        let dim = base.dim();
        let put = |values: &[f64]| rows(values.iter().map(|v| *v as f32).collect(), dim, device);
        let standard = *base == Base::standard(dim);
        let maps = match base.factor().len() {
            _ if standard => Maps::Same,
            n if n == dim => Maps::Diagonal { mean: put(base.mean()), scale: put(base.factor()) },
            _ => Maps::Full { mean: put(base.mean()), factor: put(base.factor()) },
        };
        let bytes = (architecture.activations()? + 2 * dim) * ARRAYS * size_of::<f32>();
        Ok(DeviceEnergy {
            network: Network::new(architecture)?,
            device: device.clone(),
            maps,
            block: (BLOCK_BYTES / bytes).max(1),
        })
    }

    /// Ranges of rows that are evaluated together.
    pub fn blocks(&self, rows: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let block = self.block;
        (0..rows).step_by(block).map(move |first| first..rows.min(first + block))
    }

    fn to_data(&self, z: Tensor<2>) -> Tensor<2> {
        match &self.maps {
            Maps::Same => z,
            Maps::Diagonal { mean, scale } => z * scale.clone() + mean.clone(),
            Maps::Full { mean, factor } => z.matmul(factor.clone().transpose()) + mean.clone(),
        }
    }

    fn gradient_to_base(&self, of_x: Tensor<2>) -> Tensor<2> {
        match &self.maps {
            Maps::Same => of_x,
            Maps::Diagonal { scale, .. } => of_x * scale.clone(),
            Maps::Full { factor, .. } => of_x.matmul(factor.clone()),
        }
    }

    /// `f` of any number of rows.
    pub fn values(&self, theta: &Theta, z: &Tensor<2>) -> Tensor<1> {
        let parts =
            self.blocks(z.dims()[0]).map(|rows| self.network.forward(theta, self.to_data(take(z, &rows))));
        Tensor::cat(parts.collect(), 0)
    }

    /// `f` and its gradient in `z`, for one block.
    pub fn pass(&self, theta: &Theta, z: Tensor<2>) -> Pass {
        let (f, tape) = self.network.record(theta, self.to_data(z.clone()));
        let (of_x, deltas) = self.network.backward(theta, tape, true);
        Pass { f, g: self.gradient_to_base(of_x.unwrap_or(z)), deltas }
    }

    /// `f`, and the weighted sum of `df/dtheta`, for one block.
    pub fn param_pass(&self, theta: &Theta, z: Tensor<2>, weights: Tensor<1>) -> (Tensor<1>, Tensor<1>) {
        let (f, tape) = self.network.record(theta, self.to_data(z));
        let (_, deltas) = self.network.backward(theta, tape, false);
        (f, self.network.weighted_gradient(theta, deltas, weights))
    }
}

/// Some rows.
pub(crate) fn take(rows: &Tensor<2>, range: &Range<usize>) -> Tensor<2> {
    if range.len() == rows.dims()[0] {
        return rows.clone();
    }
    rows.clone().narrow(0, range.start, range.len())
}

/// Some numbers.
pub(crate) fn take1(values: &Tensor<1>, range: &Range<usize>) -> Tensor<1> {
    if range.len() == values.dims()[0] {
        return values.clone();
    }
    values.clone().narrow(0, range.start, range.len())
}

/// The sum of all numbers, in an order of its own: burn's `sum` lets parts of the device add to it as they get ready, so that the last bit of it
/// differs from time to time.
pub(crate) fn total(values: Tensor<1>) -> Tensor<1> {
    values.sum_dim(0)
}

/// Sums that may have no terms yet.
pub(crate) fn add(sum: Option<Tensor<1>>, term: Tensor<1>) -> Option<Tensor<1>> {
    Some(match sum {
        Some(sum) => sum + term,
        None => term,
    })
}
