//! Reads a table from a file, choosing the reader by extension or by the first bytes.

use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::Path;

use crate::error::DataError;
use crate::header::MAGIC;
use crate::npy::{Length, read_npy_from};
use crate::npz::read_npz_from;
use crate::open::open_file;
use crate::options::ReadOptions;
use crate::origin::Origin;
use crate::table::Table;
use crate::text::read_csv_from;

/// The formats of data files.
enum Format {
    Npy,
    Npz,
    Text { tabs: bool },
}

/// Reads the data file at `path` as a table of points.
///
/// The extension (in any case) tells the format: `.npy`, `.npz`, `.csv`, `.tsv` or `.txt`. A file
/// with another extension is read if its first bytes show it to be `.npy` or `.npz`.
pub fn read_table(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Table, DataError> {
    let path = path.as_ref();
    let origin = Origin::file(path);
    let (mut file, length) = open_file(path)?;
    if length == 0 {
        return Err(DataError::EmptyFile { origin });
    }
    let format = match by_extension(path) {
        Some(format) => format,
        None => by_content(&mut file)
            .map_err(|e| DataError::from_io(path, "read", e))?
            .ok_or_else(|| DataError::UnknownFormat { origin: origin.clone() })?,
    };
    match format {
        Format::Npy => {
            read_npy_from(BufReader::new(file), Length::Measured(length), options.limit(), &origin)
        }
        Format::Npz => read_npz_from(file, options, &origin),
        Format::Text { tabs } => {
            let mut options = options.clone();
            if tabs && options.delimiter.is_none() {
                options.delimiter = Some(b'\t');
            }
            read_csv_from(file, &options, &origin)
        }
    }
}

fn by_extension(path: &Path) -> Option<Format> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    match extension.as_str() {
        "npy" => Some(Format::Npy),
        "npz" => Some(Format::Npz),
        "csv" | "txt" => Some(Format::Text { tabs: false }),
        "tsv" => Some(Format::Text { tabs: true }),
        _ => None,
    }
}

fn by_content(file: &mut File) -> std::io::Result<Option<Format>> {
    let mut start = Vec::new();
    file.take(MAGIC.len() as u64).read_to_end(&mut start)?;
    file.rewind()?;
    Ok(if start == MAGIC {
        Some(Format::Npy)
    } else if start.starts_with(b"PK\x03\x04") {
        Some(Format::Npz)
    } else {
        None
    })
}
