//! Networks as energies on accelerators: training with walkers that stay on the device.
//!
//! Every interface to devices is a cargo feature (`cuda`, `rocm`, `metal`, `vulkan`, `wgpu`). Without any, this crate knows the names of devices and
//! says how to get them.

#[cfg(feature = "device")]
mod burn;
mod error;
mod names;

#[cfg(feature = "device")]
pub use burn::{DeviceEngine, DeviceTrainer};
pub use error::Error;
pub use names::{Api, Found, Name, Noise, Which};

/// All devices of the interfaces this program was built with, and the other interfaces.
#[cfg(feature = "device")]
pub fn devices() -> Vec<Found> {
    burn::device::devices()
}

/// All interfaces: this program was built without them.
#[cfg(not(feature = "device"))]
pub fn devices() -> Vec<Found> {
    Api::ALL.into_iter().map(Found::NotCompiled).collect()
}

/// A device as the engine of runs.
#[cfg(feature = "device")]
pub fn engine(name: Name, noise: Noise) -> Result<Box<dyn jarz_run::Engine>, Error> {
    Ok(Box::new(DeviceEngine::open(name, noise)?))
}

/// This program was built without devices, which is what the error says.
#[cfg(not(feature = "device"))]
pub fn engine(name: Name, _: Noise) -> Result<Box<dyn jarz_run::Engine>, Error> {
    Err(Error::NotCompiled { name: name.to_string(), feature: name.api.name() })
}
