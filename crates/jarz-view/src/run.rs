//! One run, as its folder shows it now.

use crate::ViewError;
use jarz::StopReason;
use jarz_run::{Config, MetricsReader, Row, Summary, read_config, read_summary};
use std::path::{Path, PathBuf};

/// A run, finished or not.
#[derive(Debug)]
pub struct Run {
    folder: PathBuf,
    config: Config,
    summary: Option<Summary>,
    metrics: MetricsReader,
}

impl Run {
    /// Reads a run folder. Damaged rows are left out and remembered.
    pub fn open(folder: &Path) -> Result<Self, ViewError> {
        let mut run = Self {
            folder: folder.into(),
            config: read_config(folder)?,
            summary: read_summary(folder),
            metrics: MetricsReader::new(folder.join("metrics.jsonl")),
        };
        run.metrics.look()?;
        Ok(run)
    }

    /// Reads a run folder in which every row must be sound.
    pub fn open_strictly(folder: &Path) -> Result<Self, ViewError> {
        let run = Self::open(folder)?;
        run.check()?;
        Ok(run)
    }

    /// Complains about damaged rows.
    pub fn check(&self) -> Result<(), ViewError> {
        match self.metrics.damaged().first() {
            None => Ok(()),
            Some(damage) => {
                Err(ViewError::Damaged { path: self.metrics.path().into(), damage: damage.clone() })
            }
        }
    }

    /// Takes in what has changed in the folder; tells whether anything has.
    pub fn refresh(&mut self) -> Result<bool, ViewError> {
        let (config, summary) = (read_config(&self.folder)?, read_summary(&self.folder));
        let changed = config != self.config || summary != self.summary;
        self.config = config;
        self.summary = summary;
        Ok(self.metrics.look()? || changed)
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder's name.
    pub fn name(&self) -> String {
        name_of(&self.folder)
    }

    /// The resolved configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Final figures, if it has come to an end or a stop.
    pub fn summary(&self) -> Option<&Summary> {
        self.summary.as_ref()
    }

    /// Logged iterations so far.
    pub fn rows(&self) -> &[Row] {
        self.metrics.rows()
    }

    /// Rows that cannot be read, in words.
    pub fn damages(&self) -> Vec<String> {
        self.metrics.damaged().iter().map(|d| format!("metrics.jsonl: {d}; it is left out.")).collect()
    }

    /// Whether all iterations are done.
    pub fn is_finished(&self) -> bool {
        let done = |s: &Summary| {
            s.stop_reason == StopReason::Finished.name() && s.iterations >= self.config.run.iterations
        };
        self.summary().is_some_and(done)
    }

    /// Iterations done, as far as the folder tells.
    pub fn iterations(&self) -> u64 {
        let logged = self.rows().last().map_or(0, |r| r.iteration);
        self.summary().map_or(logged, |s| s.iterations.max(logged))
    }

    /// Whether its walkers carry weights.
    pub fn is_weighted(&self) -> bool {
        is_weighted(&self.config)
    }

    /// Computing time so far.
    pub fn seconds(&self) -> Option<f64> {
        let logged = self.rows().last().map(|r| r.seconds);
        self.summary().map(|s| s.seconds).into_iter().chain(logged).reduce(f64::max)
    }
}

/// Whether the walkers of a configuration carry weights.
pub(crate) fn is_weighted(config: &Config) -> bool {
    config.algorithm.kind.algorithm().is_weighted()
}

/// Last part of a path; for `.` and the like, that of the folder it stands for.
pub(crate) fn name_of(folder: &Path) -> String {
    let last = |path: &Path| path.file_name().map(|n| n.to_string_lossy().into_owned());
    let resolved = || folder.canonicalize().ok().and_then(|path| last(&path));
    last(folder).or_else(resolved).unwrap_or_else(|| "run".into())
}
