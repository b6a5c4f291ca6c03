//! The SHA-256 digest of a file, to record which data a run has used.

use std::fmt::Write as _;
use std::io::Read;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::error::DataError;
use crate::open::open_file;

/// The SHA-256 digest of the file at `path`, as 64 lower-case hexadecimal digits.
pub fn file_sha256(path: impl AsRef<Path>) -> Result<String, DataError> {
    let path = path.as_ref();
    let (mut file, _) = open_file(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0u8; 1 << 16];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => hasher.update(&buffer[..count]),
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(DataError::from_io(path, "read", e)),
        }
    }
    let mut hex = String::with_capacity(64);
    for byte in hasher.finalize() {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    Ok(hex)
}
