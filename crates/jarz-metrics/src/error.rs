//! What can go wrong.

use std::path::PathBuf;

/// Errors of the metrics.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MetricsError {
    /// Numbers that are no features.
    #[error("{0}")]
    Features(String),
    /// Two sets whose features have different lengths.
    #[error(
        "the samples have {samples} features each, but the reference has {reference}: they must come from the same extractor"
    )]
    Dimensions {
        /// Of the samples.
        samples: usize,
        /// Of the reference.
        reference: usize,
    },
    /// Too few samples.
    #[error("{what}: there are {found} samples, and it takes at least {needed}")]
    TooFew {
        /// What they are for.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many it takes.
        needed: usize,
    },
    /// A file that is no usable network.
    #[error("'{path}' cannot be used as an extractor: {reason}")]
    Extractor {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// Stopped on request.
    #[error("stopped after {done} of {total} images")]
    Stopped {
        /// Images that were done.
        done: usize,
        /// Images in all.
        total: usize,
    },
    /// The eigenvalues could not be found.
    #[error("the eigenvalues of a covariance could not be computed")]
    Eigenvalues,
}
