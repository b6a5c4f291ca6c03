//! Networks as energies: an engine for blocks of walkers on the processor.

mod architecture;
mod base;
mod classifier;
mod conv;
mod copies;
mod energy;
mod error;
mod functions;
mod init;
mod mixture;
mod network;
mod parts;
mod plan;
mod product;
mod tensor;
mod tiles;
mod weights;

pub use architecture::{Architecture, Layer, Shape, Weights};
pub use base::{Base, BaseKind, Maps};
pub use classifier::{Classifier, Training};
pub use energy::{NetEnergy, NetWorkspace};
pub use error::Error;
pub use init::initial_params;
pub use mixture::Component;
pub use network::{Network, Workspace};
pub use weights::Saved;
