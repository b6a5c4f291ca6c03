//! Numbers on their way to the device and back.

use crate::burn::device::{guarded, with_complaint};
use crate::error::Error;
use crate::names::Name;
use burn_tensor::{Device, Int, Tensor, TensorData};

/// What can go wrong in the middle of an iteration.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The device does not answer.
    Device(String),
    /// Energy or weight of this walker is not finite.
    Diverged(u64),
    /// Parts that do not fit together.
    Core(jarz::Error),
}

impl Trouble {
    /// With the place and time it occurred.
    pub fn at(self, device: Name, iteration: u64) -> jarz::Error {
        match self {
            Trouble::Device(reason) => {
                jarz::Error::Part(Error::Failed { name: device.to_string(), reason }.to_string())
            }
            Trouble::Diverged(walker) => {
                jarz::Error::Diverged { iteration, what: "the energy or the weight", walker }
            }
            Trouble::Core(e) => e,
        }
    }
}

impl From<jarz::Error> for Trouble {
    fn from(e: jarz::Error) -> Self {
        Trouble::Core(e)
    }
}

impl From<jarz_net::Error> for Trouble {
    fn from(e: jarz_net::Error) -> Self {
        Trouble::Core(jarz::Error::Setup(e.to_string()))
    }
}

/// Runs work of a device, which may panic instead of saying what is wrong.
pub(crate) fn careful<R>(
    device: Name,
    iteration: u64,
    work: impl FnOnce() -> Result<R, Trouble>,
) -> Result<R, jarz::Error> {
    let done = guarded(work).unwrap_or_else(|reason| Err(Trouble::Device(reason)));
    done.map_err(|trouble| trouble.at(device, iteration))
}

/// A vector on the device.
pub(crate) fn vector(values: impl Iterator<Item = f32>, device: &Device) -> Tensor<1> {
    let values: Vec<f32> = values.collect();
    let count = values.len();
    Tensor::from_data(TensorData::new(values, [count]), device)
}

/// Rows on the device.
pub(crate) fn rows(values: Vec<f32>, dim: usize, device: &Device) -> Tensor<2> {
    let count = values.len() / dim;
    Tensor::from_data(TensorData::new(values, [count, dim]), device)
}

/// Places in an array on the device.
pub(crate) fn indices(places: impl Iterator<Item = u64>, device: &Device) -> Tensor<1, Int> {
    let places: Vec<i32> = places.map(|place| place as i32).collect();
    let count = places.len();
    Tensor::from_data(TensorData::new(places, [count]), device)
}

/// All numbers of a tensor.
pub(crate) fn singles<const D: usize>(tensor: Tensor<D>) -> Result<Vec<f32>, Trouble> {
    tensor.try_into_vec_as::<f32>().map_err(|e| Trouble::Device(with_complaint(&e.to_string())))
}

/// The same in double precision.
pub(crate) fn numbers<const D: usize>(tensor: Tensor<D>) -> Result<Vec<f64>, Trouble> {
    Ok(singles(tensor)?.into_iter().map(f64::from).collect())
}
