//! Why a run cannot be shown.

use std::path::PathBuf;

/// What can go wrong with a view of runs.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    /// Of the run itself.
    #[error(transparent)]
    Run(#[from] jarz_run::RunError),
    /// Of a figure or page.
    #[error(transparent)]
    Figure(#[from] jarz_figures::FigureError),
    /// Of any other file.
    #[error(transparent)]
    File(#[from] jarz_run::files::FileError),
    /// The folder does not exist.
    #[error("there is no folder '{}'", folder.display())]
    Missing {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder holds neither a run nor folders of runs.
    #[error(
        "'{}' is not a run folder: it has no run.toml, and there are no runs below it; 'jarz train' makes one",
        folder.display()
    )]
    NoRuns {
        /// The folder.
        folder: PathBuf,
    },
    /// A row of metrics that cannot be read.
    #[error("{}: {damage}; remove that line to go on without it", path.display())]
    Damaged {
        /// The metrics file.
        path: PathBuf,
        /// Line and reason.
        damage: jarz_run::DamagedLine,
    },
    /// A page that needs another place.
    #[error(
        "'{}' holds several kinds of runs, whose own page 'jarz reproduce' writes; compare them with --out FILE",
        folder.display()
    )]
    Collection {
        /// The folder.
        folder: PathBuf,
    },
    /// No server at that port.
    #[error(
        "cannot serve on 127.0.0.1, port {port}: {error}; --port chooses another one, and --port 0 any that is free"
    )]
    Bind {
        /// The port asked for.
        port: u16,
        /// What the system says.
        error: std::io::Error,
    },
    /// The terminal does not do what it should.
    #[error("the terminal cannot be used: {0}; --once prints one picture as plain text")]
    Terminal(std::io::Error),
}
