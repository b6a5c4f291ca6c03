//! Energy-based models trained by gradient descent on the true cross-entropy, with walkers weighted by
//! Jarzynski's equality.
//!
//! The method is that of Carbone, Hua, Coste and Vanden-Eijnden, "Efficient training of energy-based models
//! using Jarzynski equality" (2023); labels such as eq. `X:A:k` refer to its equations.

pub mod algorithm;
pub mod annealing;
mod classes;
pub mod data;
pub mod energy;
pub mod error;
pub mod estimate;
pub mod kernel;
mod leave_one_out;
pub mod optimizer;
mod panels;
mod parallel;
pub mod random;
pub mod ranks;
mod real;
pub mod resampling;
pub mod run;
pub mod sampler;
pub mod schedule;
pub mod simd;
pub mod trainer;
pub mod walkers;
pub mod weights;

pub use algorithm::{Algorithm, SelfInteractionRule};
pub use classes::Classes;
pub use data::Dataset;
pub use energy::{
    Coordinates, Energy, Exact, Fused, Gaussian, Mixture, Modes, ParamGroup, PerWalker, Stratification,
};
pub use error::Error;
pub use estimate::{Estimates, Families, Measured};
pub use kernel::{Clip, Kernel, KernelKind, StepSize};
pub use optimizer::{Matrix, Optimizer, Rule};
pub use panels::{Lanes, Panels, PanelsOf};
pub use random::{Purpose, Random};
pub use ranks::{Communicator, Ranks};
pub use real::{Real, WalkerIds};
pub use resampling::{Scheme, Thresholds, Trigger};
pub use run::{Checkpoints, Loop, Observer, StopReason, Training};
pub use sampler::{Advance, Advanced, Disturbance, Sampler, SelfInteraction, Weighting};
pub use schedule::{Schedule, Shape};
pub use trainer::{Relay, Settle, Setup, State, StepInfo, Trainer, Witnesses};
pub use walkers::Walkers;

/// The example in the README is compiled and run with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;
