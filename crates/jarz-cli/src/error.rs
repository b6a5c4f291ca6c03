//! Errors of the command line.

/// What ends a command without success.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// Of a run.
    #[error(transparent)]
    Run(#[from] jarz_run::RunError),
    /// Of an experiment.
    #[error(transparent)]
    Experiment(#[from] jarz_experiments::ExperimentError),
    /// Of a data file.
    #[error(transparent)]
    Data(#[from] jarz_data::DataError),
    /// Of image data.
    #[error(transparent)]
    Image(#[from] jarz_data::ImageError),
    /// Of getting a data set.
    #[error(transparent)]
    Fetch(#[from] jarz_fetch::FetchError),
    /// Of a figure or report.
    #[error(transparent)]
    Figure(#[from] jarz_figures::FigureError),
    /// Of a distance.
    #[error(transparent)]
    Metrics(#[from] jarz_metrics::MetricsError),
    /// Of a view of runs.
    #[error(transparent)]
    View(#[from] jarz_view::ViewError),
    /// Of a device.
    #[error(transparent)]
    Device(#[from] jarz_burn::Error),
    /// Of any other file.
    #[error(transparent)]
    File(#[from] jarz_run::files::FileError),
    /// Anything else, already worded.
    #[error("{0}")]
    Message(String),
    /// Stopped by the user; says how to go on.
    #[error("{0}")]
    Interrupted(String),
}
