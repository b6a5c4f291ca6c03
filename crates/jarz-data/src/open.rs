//! Opens a regular file for reading, with an error that says what stands in the way.

use std::fs::{self, File};
use std::path::Path;

use crate::error::DataError;

/// Opens the file at `path` and returns it with its length in bytes.
pub(crate) fn open_file(path: &Path) -> Result<(File, u64), DataError> {
    // Looked at before it is opened: opening a pipe would wait for a writer.
    let about = fs::metadata(path).map_err(|e| DataError::from_io(path, "read", e))?;
    if about.is_dir() {
        return Err(DataError::NotAFile { path: path.into(), what: "a folder" });
    }
    if !about.is_file() {
        return Err(DataError::NotAFile { path: path.into(), what: "a device or a pipe" });
    }
    let file = File::open(path).map_err(|e| DataError::from_io(path, "read", e))?;
    let length = file.metadata().map_err(|e| DataError::from_io(path, "read", e))?.len();
    Ok((file, length))
}
