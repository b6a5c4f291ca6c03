//! The folder in which a run keeps its latest checkpoints.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::codec::Encoded;
use super::{CheckpointError, Snapshot, decode};
use crate::files::{FileError, remove_stale, write_atomic_with};

/// How many checkpoints stay in the folder.
const KEPT: usize = 2;

const SUFFIX: &str = ".safetensors";

/// A folder of checkpoints, one file per iteration, of which the last two are kept.
///
/// Files with other names are never touched. One run writes to a folder at a time; others may
/// read from it meanwhile.
#[derive(Debug, Clone)]
pub struct CheckpointStore {
    folder: PathBuf,
}

/// The checkpoint to resume from.
#[derive(Debug)]
pub struct Loaded {
    /// The iteration it was saved at, from the name of the file.
    pub iteration: u64,
    /// What was saved.
    pub snapshot: Snapshot,
    /// The file.
    pub path: PathBuf,
    /// Later checkpoints that cannot be used, latest first; each message names its file.
    pub rejected: Vec<(PathBuf, CheckpointError)>,
}

impl CheckpointStore {
    /// Opens a folder, which is created if needed, and clears it of the temporary files of killed
    /// processes.
    ///
    /// # Errors
    /// The folder cannot be created, listed or cleared.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, CheckpointError> {
        let folder = folder.into();
        fs::create_dir_all(&folder).map_err(FileError::at("create the folder", &folder))?;
        remove_stale(&folder, |target| iteration_of(target).is_some())?;
        Ok(Self { folder })
    }

    /// A folder that another process keeps, to be read.
    #[must_use]
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file that holds, or would hold, the checkpoint of an iteration.
    #[must_use]
    pub fn path(&self, iteration: u64) -> PathBuf {
        self.folder.join(name_of(iteration))
    }

    /// Writes a checkpoint, all or nothing, then removes all but the last two up to this one.
    ///
    /// Checkpoints of later iterations, if there are any, stay: they belong to another run, or
    /// were rejected when this one was resumed and will be replaced when it gets there.
    ///
    /// # Errors
    /// The snapshot cannot be encoded or the file cannot be written; older checkpoints are then
    /// as they were. Or an old checkpoint could not be removed, once the new one was in place.
    pub fn save(&self, iteration: u64, snapshot: &Snapshot) -> Result<PathBuf, CheckpointError> {
        let path = self.path(iteration);
        let encoded = Encoded::new(snapshot).map_err(|error| error.in_file(&path))?;
        write_atomic_with(&path, |writer| encoded.write_to(writer))?;
        let present = self.list()?;
        let done = present.iter().filter(|&&other| other <= iteration);
        for &old in done.rev().skip(KEPT) {
            let old = self.path(old);
            match fs::remove_file(&old) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(FileError::at("remove the old checkpoint", &old)(error).into());
                }
                _ => {}
            }
        }
        Ok(path)
    }

    /// The latest checkpoint that is intact; none if the folder holds no checkpoint.
    ///
    /// # Errors
    /// There are checkpoints but none is usable, or the folder cannot be listed. A checkpoint of a
    /// newer program version is an error too: an earlier one is not taken in its place.
    pub fn load_latest(&self) -> Result<Option<Loaded>, CheckpointError> {
        let mut rejected = Vec::new();
        for iteration in self.list()?.into_iter().rev() {
            let path = self.path(iteration);
            match load(&path) {
                Ok(snapshot) => {
                    return Ok(Some(Loaded { iteration, snapshot, path, rejected }));
                }
                Err(error) if error.is_newer() => return Err(error),
                Err(error) => rejected.push((path, error)),
            }
        }
        if rejected.is_empty() {
            return Ok(None);
        }
        let folder = self.folder.clone();
        Err(CheckpointError::AllRejected { folder, rejected })
    }

    /// The iterations that have a checkpoint file, intact or not, in increasing order.
    ///
    /// # Errors
    /// The folder cannot be listed.
    pub fn list(&self) -> Result<Vec<u64>, CheckpointError> {
        let failed = |error| FileError::at("list the folder", &self.folder)(error);
        let mut iterations = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let kind = entry.file_type().map_err(failed)?;
            if let Some(iteration) = entry.file_name().to_str().and_then(iteration_of)
                && (kind.is_file() || kind.is_symlink())
            {
                iterations.push(iteration);
            }
        }
        iterations.sort_unstable();
        Ok(iterations)
    }
}

fn load(path: &Path) -> Result<Snapshot, CheckpointError> {
    let bytes = fs::read(path).map_err(FileError::at("read the checkpoint", path))?;
    decode(&bytes).map_err(|error| error.in_file(path))
}

fn name_of(iteration: u64) -> String {
    format!("{iteration:012}{SUFFIX}")
}

/// The iteration whose file has that very name.
fn iteration_of(name: &str) -> Option<u64> {
    let iteration = name.strip_suffix(SUFFIX)?.parse().ok()?;
    (name_of(iteration) == name).then_some(iteration)
}
