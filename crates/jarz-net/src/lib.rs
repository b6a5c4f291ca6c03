//! Networks as energies: an engine for blocks of walkers on the processor.

mod architecture;
mod conv;
mod error;
mod functions;
mod network;
mod plan;
mod product;
mod tensor;

pub use architecture::{Architecture, Layer, Shape, Weights};
pub use error::Error;
pub use network::{Network, Workspace};
