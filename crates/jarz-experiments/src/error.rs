//! Everything that can go wrong with an experiment.

/// What ends an experiment without success.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// Of a run.
    #[error(transparent)]
    Run(#[from] jarz_run::RunError),
    /// Of a figure or report.
    #[error(transparent)]
    Figure(#[from] jarz_figures::FigureError),
    /// Of any other file.
    #[error(transparent)]
    File(#[from] jarz_run::files::FileError),
    /// An experiment file that cannot be used.
    #[error("{origin} is not a valid experiment:\n{reason}")]
    Invalid {
        /// File or name.
        origin: String,
        /// What is wrong, with the key, and what to do.
        reason: String,
    },
    /// There is no such experiment.
    #[error("there is no experiment '{name}': give {known} or the path of an experiment file")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// An option that does not fit.
    #[error("{0}")]
    Option(String),
    /// A folder that cannot be used.
    #[error("{0}")]
    Folder(String),
    /// Stopped on request; what is done is kept.
    #[error("stopped")]
    Interrupted,
}

impl From<jarz_run::ConfigError> for ExperimentError {
    fn from(e: jarz_run::ConfigError) -> Self {
        ExperimentError::Run(e.into())
    }
}
