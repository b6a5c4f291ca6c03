//! Writes arrays as `.npy` files that appear complete or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::DataError;
use crate::header::{MAGIC, MOST_AXES};

/// Writes `values`, in C order and of the given shape, as little-endian `f64`.
///
/// The bytes go into a temporary file in the same folder, which is flushed to disk and then takes
/// the name `path`, replacing any file there. If anything fails, the temporary file is removed and
/// a file that was at `path` stays as it was.
pub fn write_npy_f64(path: impl AsRef<Path>, shape: &[usize], values: &[f64]) -> Result<(), DataError> {
    write_npy(path.as_ref(), "<f8", shape, values, |value| value.to_le_bytes())
}

/// Writes `values`, in C order and of the given shape, as little-endian `f32`; see
/// [`write_npy_f64`].
pub fn write_npy_f32(path: impl AsRef<Path>, shape: &[usize], values: &[f32]) -> Result<(), DataError> {
    write_npy(path.as_ref(), "<f4", shape, values, |value| value.to_le_bytes())
}

fn write_npy<T: Copy, const N: usize>(
    path: &Path,
    descr: &str,
    shape: &[usize],
    values: &[T],
    bytes_of: impl Fn(T) -> [u8; N],
) -> Result<(), DataError> {
    let product = shape.iter().try_fold(1usize, |product, &axis| product.checked_mul(axis));
    if product != Some(values.len()) || shape.len() > MOST_AXES {
        return Err(DataError::ShapeMismatch {
            path: path.into(),
            shape: shape.to_vec(),
            values: values.len(),
        });
    }
    write_atomically(path, |out| {
        out.write_all(&npy_header(descr, shape))?;
        for &value in values {
            out.write_all(&bytes_of(value))?;
        }
        Ok(())
    })
    .map_err(|e| DataError::from_io(path, "write", e))
}

/// A version 1.0 header, padded so that the values begin at a multiple of 64 bytes.
fn npy_header(descr: &str, shape: &[usize]) -> Vec<u8> {
    let mut axes = String::new();
    for axis in shape {
        axes.push_str(&format!("{axis}, "));
    }
    let axes = match shape.len() {
        1 => axes.trim_end(),
        _ => axes.trim_end_matches(", "),
    };
    let mut dict = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({axes}), }}");
    let fixed = MAGIC.len() + 4;
    while !(fixed + dict.len() + 1).is_multiple_of(64) {
        dict.push(' ');
    }
    dict.push('\n');
    // At most 64 axes of 20 digits: always below 64 KiB.
    let length = dict.len() as u16;
    let mut header = MAGIC.to_vec();
    header.extend_from_slice(&[1, 0]);
    header.extend_from_slice(&length.to_le_bytes());
    header.extend_from_slice(dict.as_bytes());
    header
}

/// Removes the temporary file unless it has got its final name.
struct Temporary {
    path: PathBuf,
    kept: bool,
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.kept {
            // Nothing more can be done if even this fails.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Writes what `content` sends to its writer as the file at `path`, all or nothing: see [`write_npy_f64`].
pub fn write_atomically(
    path: &Path,
    content: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
) -> io::Result<()> {
    let Some(name) = path.file_name() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path has no file name"));
    };
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if path.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let (file, mut temporary) = create_temporary(folder, name)?;
    let mut out = BufWriter::new(&file);
    content(&mut out)?;
    out.flush()?;
    drop(out);
    file.sync_all()?;
    drop(file);
    fs::rename(&temporary.path, path)?;
    temporary.kept = true;
    // The name itself reaches the disk with the folder; not every system can flush one.
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// Creates a new hidden file next to the target, under a name that nobody else uses.
fn create_temporary(folder: &Path, name: &std::ffi::OsStr) -> io::Result<(File, Temporary)> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    for _ in 0..1000 {
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}-{number}.tmp", std::process::id()));
        let path = folder.join(hidden);
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => return Ok((file, Temporary { path, kept: false })),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "no free name for a temporary file"))
}
