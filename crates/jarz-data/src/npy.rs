//! Reads one NumPy `.npy` array as a table.

use std::io::{ErrorKind, Read};

use crate::error::DataError;
use crate::header::{NpyHeader, read_header};
use crate::options::ReadOptions;
use crate::order::{fortran_to_c, reserve};
use crate::origin::Origin;
use crate::table::Table;

/// What is known about the length of the input before it is read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Length {
    /// Nothing.
    Unknown,
    /// The container claims this many bytes, which may be wrong.
    Claimed(u64),
    /// The file system reports this many bytes.
    Measured(u64),
}

/// Bytes read and converted at a time; a multiple of every item size.
const CHUNK: usize = 1 << 16;

/// Reads a `.npy` array (format versions 1.0, 2.0 and 3.0) from a reader.
///
/// An array of shape `(n,)` becomes `n` points in one dimension; the axes after the first are
/// flattened into one. Integers, booleans and floats of 2, 4 or 8 bytes are accepted, in either
/// byte order and in C or Fortran order. The data must end with the last value.
pub fn read_npy<R: Read>(reader: R, options: &ReadOptions) -> Result<Table, DataError> {
    read_npy_from(reader, Length::Unknown, options.limit(), &Origin::default())
}

/// Reads an array of which `length` is known, holding its values to `limit` bytes.
pub(crate) fn read_npy_from(
    mut reader: impl Read,
    length: Length,
    limit: u64,
    origin: &Origin,
) -> Result<Table, DataError> {
    let header = read_header(&mut reader, origin)?;
    let layout = Layout::new(&header, length, limit, origin)?;
    let values = read_values(&mut reader, &header, &layout, length, origin)?;
    let values =
        if header.fortran_order { fortran_to_c(values, layout.rows, &layout.rest, origin)? } else { values };
    Table { rows: layout.rows, cols: layout.cols, values, columns: None }.checked(origin)
}

/// Sizes of an array, known to fit into memory and below the limit.
struct Layout {
    rows: usize,
    cols: usize,
    rest: Vec<usize>,
    /// Number of values.
    count: usize,
    /// Bytes they take in the file.
    bytes: u64,
}

impl Layout {
    fn new(header: &NpyHeader, length: Length, limit: u64, origin: &Origin) -> Result<Self, DataError> {
        let shape = &header.shape;
        if shape.is_empty() {
            return Err(DataError::ZeroDimensional { origin: origin.clone() });
        }
        if shape.contains(&0) {
            return Err(DataError::EmptyArray { origin: origin.clone(), shape: shape.clone() });
        }
        let too_large = || DataError::TooLarge {
            origin: origin.clone(),
            needed: format!("an array of shape {shape:?}"),
            limit,
        };
        let count =
            shape.iter().try_fold(1u64, |product, &axis| product.checked_mul(axis)).ok_or_else(too_large)?;
        // Every item takes at most the 8 bytes of an f64, so this bounds the file's bytes too.
        let memory = count.checked_mul(8).ok_or_else(too_large)?;
        let bytes = count.checked_mul(header.dtype.size() as u64).ok_or_else(too_large)?;
        if let Length::Claimed(all) | Length::Measured(all) = length {
            let found = all.saturating_sub(header.bytes);
            check_length(bytes, found, origin)?;
        }
        if memory > limit || isize::try_from(memory).is_err() {
            return Err(DataError::TooLarge {
                origin: origin.clone(),
                needed: format!("{memory} bytes for an array of shape {shape:?}"),
                limit,
            });
        }
        // The product fits, so does each factor.
        let axes: Option<Vec<usize>> = shape.iter().map(|&n| usize::try_from(n).ok()).collect();
        let (Some(axes), Ok(count)) = (axes, usize::try_from(count)) else {
            return Err(too_large());
        };
        let (rows, rest) = (axes[0], axes[1..].to_vec());
        Ok(Self { rows, cols: rest.iter().product(), rest, count, bytes })
    }
}

fn check_length(expected: u64, found: u64, origin: &Origin) -> Result<(), DataError> {
    if found < expected {
        return Err(DataError::Truncated { origin: origin.clone(), expected, found });
    }
    if found > expected {
        return Err(DataError::TrailingBytes { origin: origin.clone(), expected, found });
    }
    Ok(())
}

fn read_values(
    reader: &mut impl Read,
    header: &NpyHeader,
    layout: &Layout,
    length: Length,
    origin: &Origin,
) -> Result<Vec<f64>, DataError> {
    let mut values = Vec::new();
    if let Length::Measured(_) = length {
        reserve(&mut values, layout.count, origin)?;
    }
    let mut buffer = vec![0u8; CHUNK];
    let mut done = 0u64;
    while done < layout.bytes {
        let wanted = usize::try_from(layout.bytes - done).map_or(CHUNK, |left| left.min(CHUNK));
        let got = fill(reader, &mut buffer[..wanted], origin)?;
        if got < wanted {
            return check_length(layout.bytes, done + got as u64, origin).map(|()| values);
        }
        let more = got / header.dtype.size();
        if values.capacity() - values.len() < more {
            // Doubles, so that memory follows the bytes that have really arrived.
            let left = layout.count - values.len();
            let extra = values.len().max(more).min(left);
            reserve(&mut values, extra, origin)?;
        }
        header.dtype.decode(&buffer[..got], &mut values);
        done += got as u64;
    }
    // Also lets an archive compare its checksum, which it does at the end of the data.
    let extra = fill(reader, &mut buffer[..1], origin)? as u64;
    check_length(layout.bytes, done + extra, origin)?;
    Ok(values)
}

/// Reads until `buffer` is full or the data end; returns how many bytes there were.
fn fill(reader: &mut impl Read, buffer: &mut [u8], origin: &Origin) -> Result<usize, DataError> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(source) => {
                return Err(DataError::Io { origin: origin.clone(), action: "read the values", source });
            }
        }
    }
    Ok(filled)
}
