//! What can go wrong while measuring.

use std::path::PathBuf;

/// An error of the benchmark suite.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The library refused a setup or a step.
    #[error("the step under test failed: {0}")]
    Step(#[from] jarz::Error),
    /// A network could not be made or written.
    #[error("the network under test failed: {0}")]
    Network(#[from] jarz_net::Error),
    /// An array for the peers could not be written or read.
    #[error(transparent)]
    Data(#[from] jarz_data::DataError),
    /// Images could not be made.
    #[error(transparent)]
    Images(#[from] jarz_data::ImageError),
    /// Threads for the limits could not be made.
    #[error("cannot start threads: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),
    /// A file or process.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: std::io::Error,
    },
    /// A peer said something that is no answer, or an error.
    #[error("peer {peer}: {reason}")]
    Peer {
        /// Its name.
        peer: String,
        /// What it said.
        reason: String,
    },
    /// A peer computes something else than we do, so that its time means nothing.
    #[error("peer {peer} does not compute the same numbers, and is not timed: {what}")]
    Differs {
        /// Its name.
        peer: String,
        /// Which numbers, and by how much.
        what: String,
    },
    /// Something the user asked for does not exist.
    #[error("{0}")]
    Usage(String),
    /// An instruction count beyond its headroom, or one that could not be taken.
    #[error("{0}")]
    Instructions(String),
    /// A reference file that cannot be read.
    #[error("{path}: {reason}")]
    Reference {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

impl BenchError {
    /// For `map_err` on input and output.
    pub fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| BenchError::Io { what, source }
    }
}
