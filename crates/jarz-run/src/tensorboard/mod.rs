//! Event files for TensorBoard: the scalars of every logged iteration.
//!
//! One file holds them all, and it is a function of the rows of `metrics.jsonl`. A resumed run begins a new file with the rows that
//! were kept and empties the old one, so that iterations which are made again appear once. (A TensorBoard that is running stays with
//! a file until it ends, and never gets over one that is gone.)

mod event;
mod record;

use crate::clock::Clock;
use crate::files::{FileError, write_atomic};
use crate::metrics::Row;
use event::{restart, scalars, version};
use jarz::{Estimates, Observer};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// What TensorBoard looks for in a file's name.
const PREFIX: &str = "events.out.tfevents.";
const SUFFIX: &str = ".jarz";
/// Most modes whose masses are written.
const MAX_MODES: usize = 64;

/// Writes scalars as they come.
pub struct EventWriter {
    path: PathBuf,
    file: File,
    clock: Clock,
    /// When the run would have begun had it never been stopped, in seconds since 1970.
    origin: f64,
}

impl EventWriter {
    /// Begins a file in `folder` with the rows there are so far, in place of the file of an earlier session.
    pub fn open(folder: &Path, rows: &[Row], clock: Clock) -> Result<Self, FileError> {
        fs::create_dir_all(folder).map_err(FileError::at("create the folder", folder))?;
        let earlier = event_files(folder)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64());
        let origin = now - clock.seconds();
        // A running TensorBoard reads files in the order of their names and goes on with the next one.
        let number = earlier.last().map_or(0, |(n, _)| n + 1).max(now as u64);
        let path = folder.join(format!("{PREFIX}{number:010}{SUFFIX}"));
        let mut bytes = record::framed(&version(now));
        // It forgets what it has read of the earlier file from this step on.
        bytes.extend(record::framed(&restart(now, rows.first().map_or(0, |r| r.iteration))));
        for row in rows {
            bytes.extend(record::framed(&scalars(origin + row.seconds, row.iteration, &tagged(row))));
        }
        write_atomic(&path, &bytes)?;
        for (_, old) in earlier {
            retire(&old)?;
        }
        let file = OpenOptions::new().append(true).open(&path).map_err(FileError::at("open", &path))?;
        Ok(Self { path, file, clock, origin })
    }
}

impl Observer for EventWriter {
    fn log(&mut self, estimates: &Estimates) -> Result<(), String> {
        let row = Row::new(estimates, self.clock.seconds());
        let event = scalars(self.origin + row.seconds, row.iteration, &tagged(&row));
        // One write per row, so that a killed process leaves at most one torn record, which readers wait for.
        let written = self.file.write_all(&record::framed(&event));
        written.map_err(|e| FileError::at("write", &self.path)(e).to_string())
    }
}

/// Empties the file of an earlier session; removes one that was emptied before.
fn retire(path: &Path) -> Result<(), FileError> {
    let file = OpenOptions::new().write(true).open(path).map_err(FileError::at("open", path))?;
    let length = file.metadata().map_err(FileError::at("read", path))?.len();
    match length {
        0 => fs::remove_file(path).map_err(FileError::at("remove", path)),
        _ => file.set_len(0).map_err(FileError::at("empty", path)),
    }
}

/// Event files of earlier sessions, by number.
fn event_files(folder: &Path) -> Result<Vec<(u64, PathBuf)>, FileError> {
    let failed = |e| FileError::at("list the folder", folder)(e);
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(|e| FileError::at("list the folder", folder)(e))?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|n| n.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.parse().ok());
        found.extend(number.map(|n| (n, entry.path())));
    }
    found.sort();
    Ok(found)
}

/// The scalars of a row with their names; a slash makes a group.
fn tagged(row: &Row) -> Vec<(String, f64)> {
    let mut out: Vec<(String, f64)> = Vec::new();
    let named = [
        ("cross_entropy/estimate", row.cross_entropy),
        ("cross_entropy/std_error", row.cross_entropy_std_error),
        ("cross_entropy/exact", row.cross_entropy_exact),
        ("kl/estimate", row.kl),
        ("kl/exact", row.kl_exact),
        ("log_z/estimate", row.log_z),
        ("log_z/std_error", row.log_z_std_error),
        ("log_z/exact", row.log_z_exact),
        ("data_energy", row.data_energy),
        ("walkers/ess", row.ess),
        ("walkers/weight_entropy", row.weight_entropy),
        ("walkers/acceptance", row.acceptance),
        ("walkers/step_size", Some(row.step_size)),
        ("walkers/resamplings", Some(row.resamplings as f64)),
        ("walkers/distinct_ancestors", Some(row.distinct_ancestors as f64)),
        ("gradient_norm", row.gradient_norm),
        ("step_scale", Some(row.step_scale)),
    ];
    out.extend(named.into_iter().filter_map(|(tag, value)| Some((tag.to_string(), value?))));
    for (group, masses) in [("masses", &row.masses), ("walker_masses", &row.walker_masses)] {
        let masses = masses.iter().flatten().take(MAX_MODES).enumerate();
        out.extend(masses.map(|(k, mass)| (format!("{group}/{k}"), *mass)));
    }
    out
}
