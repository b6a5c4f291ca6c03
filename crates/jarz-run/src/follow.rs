//! Reading `metrics.jsonl`, also while it grows.

use crate::files::FileError;
use crate::metrics::Row;
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// A line of a metrics file that is no row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedLine {
    /// Counted from one.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
}

impl std::fmt::Display for DamagedLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {} is not a row of metrics: {}", self.line, self.reason)
    }
}

/// Follows a metrics file: each look takes what has been added since the last one.
///
/// A last line without its end is still being written, or was cut off when the process was killed; it is left alone until the
/// rest of it comes. A file that was replaced (by a run that was resumed) or cut is read again from the beginning.
#[derive(Debug)]
pub struct MetricsReader {
    path: PathBuf,
    identity: Option<Identity>,
    /// Where the next line begins.
    offset: u64,
    lines: usize,
    rows: Vec<Row>,
    damaged: Vec<DamagedLine>,
}

/// Tells a file from one that took its place.
type Identity = (Option<std::time::SystemTime>, u64);

fn identity(meta: &Metadata) -> Identity {
    #[cfg(unix)]
    let number = std::os::unix::fs::MetadataExt::ino(meta);
    #[cfg(not(unix))]
    let number = 0;
    (meta.created().ok(), number)
}

impl MetricsReader {
    /// Nothing is read yet, and the file need not exist yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), identity: None, offset: 0, lines: 0, rows: Vec::new(), damaged: Vec::new() }
    }

    /// Takes what is new; tells whether anything was.
    pub fn look(&mut self) -> Result<bool, FileError> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(self.begin_again(None)),
            Err(e) => return Err(FileError::at("open", &self.path)(e)),
        };
        let read = |error| FileError::at("read", &self.path)(error);
        let meta = file.metadata().map_err(read)?;
        let found = identity(&meta);
        let mut new = false;
        if self.identity != Some(found) || meta.len() < self.offset {
            new = self.begin_again(Some(found));
        }
        if meta.len() == self.offset {
            return Ok(new);
        }
        let read = |error| FileError::at("read", &self.path)(error);
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(self.offset)).map_err(read)?;
        file.read_to_end(&mut bytes).map_err(read)?;
        let Some(end) = bytes.iter().rposition(|b| *b == b'\n') else { return Ok(new) };
        bytes[..end].split(|b| *b == b'\n').for_each(|line| self.take(line));
        self.offset += end as u64 + 1;
        Ok(true)
    }

    fn take(&mut self, line: &[u8]) {
        self.lines += 1;
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        match serde_json::from_slice(line) {
            Ok(row) => self.rows.push(row),
            Err(e) => self.damaged.push(DamagedLine { line: self.lines, reason: e.to_string() }),
        }
    }

    /// Forgets everything; tells whether there was anything.
    fn begin_again(&mut self, identity: Option<Identity>) -> bool {
        let known = self.lines > 0;
        *self = Self { identity, ..Self::new(std::mem::take(&mut self.path)) };
        known
    }

    /// The rows so far.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Lines that are no rows; they are left out.
    pub fn damaged(&self) -> &[DamagedLine] {
        &self.damaged
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// All rows of a metrics file. A torn last row is left out; a damaged one before it is an error.
pub fn read_metrics(path: &Path) -> Result<Vec<Row>, FileError> {
    if !path.exists() {
        return Err(FileError::at("open", path)(io::Error::from(ErrorKind::NotFound)));
    }
    let mut reader = MetricsReader::new(path);
    reader.look()?;
    match reader.damaged.first() {
        None => Ok(reader.rows),
        Some(damage) => {
            let text = format!("{damage}; remove that line to go on without it");
            Err(FileError::at("read", path)(io::Error::new(ErrorKind::InvalidData, text)))
        }
    }
}
