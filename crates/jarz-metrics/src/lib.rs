//! Distances between sets of images, or of any samples, by their features: the Frechet distance, the kernel distance (MMD, as in KID) with an error bar,
//! and the score of a classifier (as in the Inception score). Samples may carry weights.
//!
//! Features come from any network in ONNX format ([`Extractor`]) or are given as they are. The names FID, KID and Inception score belong to features of the
//! Inception-v3 network alone; whoever calls has to know whether it was that one.

mod error;
mod extractor;
mod features;
mod frechet;
mod kernel;
mod score;

pub use error::MetricsError;
pub use extractor::{Extracted, Extractor, Range};
pub use features::{Features, Moments};
pub use frechet::{Frechet, frechet};
pub use kernel::{KernelDistance, KernelOptions, kernel_distance};
pub use score::{Score, classifier_score};
