//! Everything that computes with burn.

mod data;
pub(crate) mod device;
mod energy;
mod engine;
mod ensemble;
mod estimates;
mod moves;
mod network;
mod noise;
mod optimizer;
mod philox;
mod state;
mod trainer;
mod transfer;

pub use engine::DeviceEngine;
pub use trainer::DeviceTrainer;

#[cfg(test)]
mod tests;
