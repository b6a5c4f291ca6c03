//! Networks as energies on accelerators: training with walkers that stay on the device.

mod error;
mod names;

#[cfg(feature = "device")]
mod data;
#[cfg(feature = "device")]
mod device;
#[cfg(feature = "device")]
mod energy;
#[cfg(feature = "device")]
mod ensemble;
#[cfg(feature = "device")]
mod moves;
#[cfg(feature = "device")]
mod network;
#[cfg(feature = "device")]
mod noise;
#[cfg(feature = "device")]
mod optimizer;
#[cfg(feature = "device")]
mod transfer;

pub use error::Error;
pub use names::{Api, Found, Name, Which};

#[cfg(all(test, feature = "device"))]
mod tests;
