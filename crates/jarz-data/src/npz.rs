//! Reads one array out of a NumPy `.npz` archive.

use std::io::{BufReader, Read, Seek};

use zip::ZipArchive;
use zip::result::ZipError;

use crate::error::DataError;
use crate::header::{MAGIC, read_header};
use crate::npy::{Length, read_npy_from};
use crate::options::ReadOptions;
use crate::origin::Origin;
use crate::table::Table;

/// The most arrays that an error message lists.
const LISTED: usize = 20;

/// Reads one array of an `.npz` archive, plain or compressed.
///
/// The only array of the archive is taken, or the one named by [`ReadOptions::array`]. The sizes
/// that the archive claims are never trusted: memory grows with the bytes that come out of it.
pub fn read_npz<R: Read + Seek>(reader: R, options: &ReadOptions) -> Result<Table, DataError> {
    read_npz_from(reader, options, &Origin::default())
}

pub(crate) fn read_npz_from<R: Read + Seek>(
    reader: R,
    options: &ReadOptions,
    origin: &Origin,
) -> Result<Table, DataError> {
    let mut reader = reader;
    refuse_other(&mut reader, origin)?;
    let mut archive = ZipArchive::new(BufReader::new(reader)).map_err(|e| archive_error(e, origin))?;
    if archive.has_duplicate_names() {
        return Err(DataError::Archive {
            origin: origin.clone(),
            problem: "two of its entries have the same name".to_string(),
        });
    }
    let index = choose(&mut archive, options.array.as_deref(), origin)?;
    let entry = archive.by_index(index).map_err(|e| archive_error(e, origin))?;
    let name = String::from_utf8_lossy(array_name(entry.name_raw()).unwrap_or_default());
    let origin = origin.with_array(&name);
    let claimed = Length::Claimed(entry.size());
    read_npy_from(entry, claimed, options.limit(), &origin).map_err(damaged)
}

/// Recognises an empty file and a bare `.npy` array, and goes back to the start.
fn refuse_other(reader: &mut (impl Read + Seek), origin: &Origin) -> Result<(), DataError> {
    let mut start = Vec::new();
    reader
        .take(MAGIC.len() as u64)
        .read_to_end(&mut start)
        .and_then(|_| reader.rewind())
        .map_err(|source| DataError::Io { origin: origin.clone(), action: "read the archive", source })?;
    if start.is_empty() {
        return Err(DataError::EmptyFile { origin: origin.clone() });
    }
    if start == MAGIC {
        return Err(DataError::WrongFormat {
            origin: origin.clone(),
            expected: "a NumPy .npz archive",
            found: "a single .npy array",
        });
    }
    Ok(())
}

/// The name of the array that an entry holds, if it holds one.
fn array_name(entry: &[u8]) -> Option<&[u8]> {
    entry.strip_suffix(b".npy")
}

/// The place in the archive of the wanted array, or of the only one.
fn choose<R: Read + Seek>(
    archive: &mut ZipArchive<R>,
    wanted: Option<&str>,
    origin: &Origin,
) -> Result<usize, DataError> {
    let arrays: Vec<usize> = (0..)
        .zip(archive.file_names_raw())
        .filter(|(_, entry)| array_name(entry).is_some())
        .map(|(index, _)| index)
        .collect();
    let Some(&first) = arrays.first() else {
        return Err(DataError::NoArray { origin: origin.clone() });
    };
    if let Some(wanted) = wanted {
        let found = archive.file_names_raw().position(|entry| {
            array_name(entry).is_some_and(|name| name == wanted.as_bytes() || entry == wanted.as_bytes())
        });
        return match found {
            Some(index) => Ok(index),
            None => Err(DataError::ArrayNotFound {
                origin: origin.clone(),
                wanted: wanted.to_string(),
                available: describe(archive, &arrays),
            }),
        };
    }
    if arrays.len() > 1 {
        return Err(DataError::SeveralArrays {
            origin: origin.clone(),
            available: describe(archive, &arrays),
        });
    }
    Ok(first)
}

/// Names the arrays with their shapes, for an error message.
fn describe<R: Read + Seek>(archive: &mut ZipArchive<R>, arrays: &[usize]) -> Vec<String> {
    let mut texts: Vec<String> = arrays
        .iter()
        .take(LISTED)
        .map(|&index| match archive.by_index(index) {
            Ok(mut entry) => {
                let name =
                    String::from_utf8_lossy(array_name(entry.name_raw()).unwrap_or_default()).into_owned();
                match read_header(&mut entry, &Origin::default()) {
                    Ok(header) => {
                        let axes: Vec<String> = header.shape.iter().map(u64::to_string).collect();
                        format!("'{name}' of shape ({})", axes.join(", "))
                    }
                    Err(DataError::UnsupportedType { dtype, .. }) => {
                        format!("'{name}' of unsupported type {dtype}")
                    }
                    Err(_) => format!("'{name}' (unreadable)"),
                }
            }
            Err(_) => format!("entry {} (unreadable)", index + 1),
        })
        .collect();
    if arrays.len() > LISTED {
        texts.push(format!("and {} more", arrays.len() - LISTED));
    }
    texts
}

fn archive_error(error: ZipError, origin: &Origin) -> DataError {
    DataError::Archive { origin: origin.clone(), problem: error.to_string() }
}

/// A failure while decompressing means that the archive is damaged.
fn damaged(error: DataError) -> DataError {
    match error {
        DataError::Io { origin, source, .. } => DataError::Archive { origin, problem: source.to_string() },
        other => other,
    }
}
