//! What can go wrong with networks, said so that the reader knows what to do.

use std::path::PathBuf;

/// Errors of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A layer that does not fit what comes before it.
    #[error("{layer}: {reason}")]
    Layer {
        /// Where it is and what it is: `layers.3 (conv2d)`.
        layer: String,
        /// What does not fit, and what would.
        reason: String,
    },
    /// An architecture that fits together but not its use.
    #[error("{0}")]
    Architecture(String),
    /// Text that is no architecture.
    #[error("this is no architecture: {0}")]
    Text(String),
    /// Data of another shape.
    #[error("{0}")]
    Data(String),
    /// A weight file that cannot be used.
    #[error("{path}: {reason}")]
    Weights {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A file that cannot be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The core refused.
    #[error(transparent)]
    Core(#[from] jarz::Error),
}
