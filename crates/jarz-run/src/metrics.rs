//! `metrics.jsonl`: one row of JSON per logged iteration.

use crate::clock::Clock;
use crate::files::{FileError, write_atomic};
use jarz::{Estimates, Measured, Observer};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Largest number of mean coordinates that a row carries; longer means are in the summary only.
const MAX_MEANS: usize = 256;

/// A logged iteration. Numbers that are not finite, and those an algorithm does not have, are null.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Row {
    pub iteration: u64,
    pub seconds: f64,
    pub log_z: Option<f64>,
    pub log_z_std_error: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driving_log_z: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driving_ess: Option<f64>,
    pub log_z_exact: Option<f64>,
    pub data_energy: Option<f64>,
    pub cross_entropy: Option<f64>,
    pub cross_entropy_std_error: Option<f64>,
    pub cross_entropy_exact: Option<f64>,
    pub kl: Option<f64>,
    pub kl_exact: Option<f64>,
    pub ess: Option<f64>,
    pub weight_entropy: Option<f64>,
    pub acceptance: Option<f64>,
    pub step_size: f64,
    pub gradient_norm: Option<f64>,
    pub step_scale: f64,
    pub resamplings: u64,
    pub distinct_ancestors: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub masses: Option<Vec<f64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub walker_masses: Option<Vec<f64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub walker_masses_std_error: Option<Vec<Option<f64>>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub means: Option<Vec<Vec<f64>>>,
}

impl Row {
    /// The row of some estimates.
    pub fn new(e: &Estimates, seconds: f64) -> Self {
        let finite = |v: f64| Some(v).filter(|v| v.is_finite());
        let value = |m: Option<Measured>| m.and_then(|m| finite(m.value));
        let error = |m: Option<Measured>| m.and_then(|m| m.std_error).and_then(finite);
        let short = |means: &Vec<Vec<f64>>| means.iter().map(Vec::len).sum::<usize>() <= MAX_MEANS;
        Row {
            iteration: e.iteration,
            seconds,
            log_z: value(e.log_z),
            log_z_std_error: error(e.log_z),
            driving_log_z: e.driving_log_z.and_then(finite),
            driving_ess: e.driving_ess.and_then(finite),
            log_z_exact: e.log_z_exact.and_then(finite),
            data_energy: finite(e.data_energy.value),
            cross_entropy: value(e.cross_entropy),
            cross_entropy_std_error: error(e.cross_entropy),
            cross_entropy_exact: e.cross_entropy_exact.and_then(finite),
            kl: e.kl.and_then(finite),
            kl_exact: e.kl_exact.and_then(finite),
            ess: finite(e.ess),
            weight_entropy: finite(e.weight_entropy),
            acceptance: e.acceptance,
            step_size: e.step_size,
            gradient_norm: finite(e.gradient_norm),
            step_scale: e.step_scale,
            resamplings: e.resamplings,
            distinct_ancestors: e.distinct_ancestors,
            masses: e.masses.clone(),
            walker_masses: e.walker_masses.as_ref().map(|m| m.iter().map(|m| m.value).collect()),
            walker_masses_std_error: e
                .walker_masses
                .as_ref()
                .map(|m| m.iter().map(|m| m.std_error).collect()),
            means: e.means.clone().filter(short),
        }
    }
}

/// Writes rows as they come; each is handed to the operating system at once.
pub struct MetricsWriter {
    path: PathBuf,
    file: File,
    clock: Clock,
}

impl MetricsWriter {
    /// Goes on after the rows before `iteration`; rows from there on (of a run that was killed after its last checkpoint)
    /// are dropped, since they will be made again.
    pub fn open(path: &Path, iteration: u64, clock: Clock) -> Result<Self, FileError> {
        if path.exists() {
            let text = std::fs::read(path).map_err(FileError::at("read", path))?;
            let wanted =
                |line: &&[u8]| serde_json::from_slice::<Row>(line).is_ok_and(|row| row.iteration < iteration);
            let kept: Vec<&[u8]> =
                text.split(|b| *b == b'\n').filter(wanted).flat_map(|l| [l, b"\n"]).collect();
            write_atomic(path, &kept.concat())?;
        }
        let file =
            OpenOptions::new().create(true).append(true).open(path).map_err(FileError::at("open", path))?;
        Ok(MetricsWriter { path: path.into(), file, clock })
    }
}

impl Observer for MetricsWriter {
    fn log(&mut self, estimates: &Estimates) -> Result<(), String> {
        let row = Row::new(estimates, self.clock.seconds());
        let mut text = serde_json::to_string(&row).map_err(|e| e.to_string())?;
        text.push('\n');
        // One write per row, so that a killed process leaves at most one torn row at the end.
        let written = self.file.write_all(text.as_bytes());
        written.map_err(|e| FileError::at("write", &self.path)(e).to_string())?;
        Ok(())
    }
}
