//! Everything that can go wrong with a run, worded for the person at the terminal.

use crate::checkpoint::CheckpointError;
use crate::config::ConfigError;
use crate::files::FileError;
use std::path::PathBuf;

/// Errors of a run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Data cannot be read or written.
    #[error(transparent)]
    Data(#[from] jarz_data::DataError),
    /// Images cannot be read.
    #[error(transparent)]
    Images(#[from] jarz_data::ImageError),
    /// A network cannot be built, or its weights cannot be read or written.
    #[error(transparent)]
    Network(#[from] jarz_net::Error),
    /// A checkpoint cannot be read or written.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// A file cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// Training failed.
    #[error(transparent)]
    Training(#[from] jarz::Error),
    /// An engine other than the processor failed, or cannot do what is asked.
    #[error("{0}")]
    Engine(Box<dyn std::error::Error + Send + Sync>),
    /// Annealing to the trained model failed or was stopped.
    #[error(transparent)]
    Annealing(#[from] jarz::annealing::AnnealingError),
    /// Parts that do not fit together.
    #[error("{0}")]
    Impossible(String),
    /// The data file of a run is no longer the same.
    #[error(
        "'{}' has changed since the run began, so the run cannot go on as if nothing had happened; \
         bring back the old file, or start a new run", path.display()
    )]
    DataChanged {
        /// The file.
        path: PathBuf,
    },
    /// The folder is already in use.
    #[error("'{}' already holds a run; choose another --out, resume it with 'jarz resume', or overwrite it with --force", folder.display())]
    Exists {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder holds something else.
    #[error("'{}' is not empty and is not a run folder; choose another --out", folder.display())]
    Foreign {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder is no run folder.
    #[error("'{}' is not a run folder: it has no {missing}", folder.display())]
    NotARun {
        /// The folder.
        folder: PathBuf,
        /// What is missing.
        missing: &'static str,
    },
    /// Another process works there.
    #[error("another process is writing to '{}'; wait for it or stop it first", folder.display())]
    Locked {
        /// The folder.
        folder: PathBuf,
    },
}
