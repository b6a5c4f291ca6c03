//! Everything that can go wrong with a data file, in words a user can act on.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::origin::Origin;

/// Why a file could not be read or written; the message names the file, the fault and the remedy.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DataError {
    /// Nothing exists at the path.
    #[error("'{}' does not exist: check the spelling; a relative path starts at the current folder", .path.display())]
    NotFound {
        /// The path as given.
        path: PathBuf,
    },
    /// The operating system forbids the access.
    #[error("no permission to {action} '{}': check the owner and mode of the file and of its folders", .path.display())]
    Permission {
        /// The path as given.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
    },
    /// The path leads to a folder, a device or a pipe.
    #[error("'{}' is {what}, not a file: give the path of a data file", .path.display())]
    NotAFile {
        /// The path as given.
        path: PathBuf,
        /// What it is instead.
        what: &'static str,
    },
    /// Any other failure of the operating system.
    #[error("{origin}: cannot {action}: {source}")]
    Io {
        /// Where it happened.
        origin: Origin,
        /// What was tried.
        action: &'static str,
        /// The system's own error.
        source: io::Error,
    },
    /// The file has no bytes at all.
    #[error("{origin} is empty (0 bytes): write the data again")]
    EmptyFile {
        /// The file.
        origin: Origin,
    },
    /// Neither the extension nor the first bytes tell what the file is.
    #[error(
        "{origin}: unknown format: supported are NumPy .npy and .npz, and delimited text .csv, .tsv and .txt; convert the file or rename it with the right extension"
    )]
    UnknownFormat {
        /// The file.
        origin: Origin,
    },
    /// The content is not what the extension promises.
    #[error("{origin}: expected {expected}, found {found}: rename or convert the file")]
    WrongFormat {
        /// The file.
        origin: Origin,
        /// What the name or the called function promises.
        expected: &'static str,
        /// What the bytes look like.
        found: &'static str,
    },
    /// The header of a `.npy` array cannot be understood.
    #[error(
        "{origin}: bad .npy header: {problem}: the file is damaged or not from NumPy; save it again with numpy.save"
    )]
    NpyHeader {
        /// The file.
        origin: Origin,
        /// What is wrong in it.
        problem: String,
    },
    /// The values are of a type that is not a real number.
    #[error("{origin}: values of type {dtype} are not supported: {advice}")]
    UnsupportedType {
        /// The file.
        origin: Origin,
        /// The type as written in the file.
        dtype: String,
        /// What to do.
        advice: &'static str,
    },
    /// The array is a single number without axes.
    #[error(
        "{origin}: the array has no axes (a single number, shape ()): save an array of shape (points,) or (points, dimensions)"
    )]
    ZeroDimensional {
        /// The file.
        origin: Origin,
    },
    /// The array holds no value, because one of its axes has length 0.
    #[error(
        "{origin}: the array has shape ({}) and so holds no values: save at least one point with at least one dimension",
        list(.shape)
    )]
    EmptyArray {
        /// The file.
        origin: Origin,
        /// The shape found.
        shape: Vec<u64>,
    },
    /// The data are larger than allowed or than the machine can address.
    #[error(
        "{origin}: needs {needed}, more than the limit of {limit} bytes: use fewer values, or raise max_bytes if there is enough memory"
    )]
    TooLarge {
        /// The file.
        origin: Origin,
        /// The size asked for, in words.
        needed: String,
        /// The limit in force.
        limit: u64,
    },
    /// The system refused to hand out the memory.
    #[error(
        "{origin}: not enough memory for {bytes} bytes of values: use fewer values or a machine with more memory"
    )]
    OutOfMemory {
        /// The file.
        origin: Origin,
        /// The bytes asked for.
        bytes: u64,
    },
    /// The file ends before all announced values.
    #[error(
        "{origin} is cut short: its header announces {expected} bytes of values, only {found} are there: copy or save it again"
    )]
    Truncated {
        /// The file.
        origin: Origin,
        /// Bytes of values announced.
        expected: u64,
        /// Bytes of values found.
        found: u64,
    },
    /// The file goes on after all announced values.
    #[error(
        "{origin}: its header announces {expected} bytes of values, but at least {found} are there: the header is wrong or several arrays were saved into one file; save one array per file"
    )]
    TrailingBytes {
        /// The file.
        origin: Origin,
        /// Bytes of values announced.
        expected: u64,
        /// Bytes found, at least.
        found: u64,
    },
    /// The zip container of an `.npz` file is damaged or of an unsupported kind.
    #[error(
        "{origin}: cannot read the .npz archive: {problem}: save it again with numpy.savez or numpy.savez_compressed"
    )]
    Archive {
        /// The file.
        origin: Origin,
        /// What is wrong in it.
        problem: String,
    },
    /// The archive holds no `.npy` entry.
    #[error("{origin}: the archive holds no array (no entry ends in .npy): save it with numpy.savez")]
    NoArray {
        /// The file.
        origin: Origin,
    },
    /// The archive holds several arrays and none was asked for.
    #[error("{origin} holds several arrays: name one of them: {}", .available.join(", "))]
    SeveralArrays {
        /// The file.
        origin: Origin,
        /// Their names, each with its shape.
        available: Vec<String>,
    },
    /// The archive does not hold the array asked for.
    #[error("{origin} holds no array '{wanted}': it has {}", .available.join(", "))]
    ArrayNotFound {
        /// The file.
        origin: Origin,
        /// The name asked for.
        wanted: String,
        /// The names there are, each with its shape.
        available: Vec<String>,
    },
    /// A field of a text file is not a number.
    #[error(
        "{origin}, line {line}, column {column}{}: {} is not a number: write plain numbers such as 1.5 or -2e-3, or remove the row or column",
        named(.name),
        quoted(.text)
    )]
    NotANumber {
        /// The file.
        origin: Origin,
        /// Line in the file, counted from 1.
        line: u64,
        /// Column, counted from 1.
        column: usize,
        /// Name of the column, if there is a header.
        name: Option<String>,
        /// The text found, shortened if it is long.
        text: String,
    },
    /// A row of a text file has another number of fields than the first row.
    #[error(
        "{origin}, line {line}: {found} fields where {expected} were expected: the row reads {}; give every row the same number of fields, or set the delimiter",
        quoted(.text)
    )]
    Ragged {
        /// The file.
        origin: Origin,
        /// Line in the file, counted from 1.
        line: u64,
        /// Fields in the first row.
        expected: usize,
        /// Fields in this row.
        found: usize,
        /// The beginning of the row.
        text: String,
    },
    /// A text file without any row of values.
    #[error(
        "{origin}: no rows of values (only blank lines, comments or a header): write at least one row of numbers"
    )]
    NoRows {
        /// The file.
        origin: Origin,
    },
    /// The delimiter asked for cannot separate numbers.
    #[error("{origin}: the delimiter {delimiter:?} cannot separate numbers: use , ; a tab or a space")]
    BadDelimiter {
        /// The file.
        origin: Origin,
        /// The delimiter asked for.
        delimiter: char,
    },
    /// The values hold NaN or an infinity.
    #[error(
        "{origin}: row {row}, column {column}{} (counted from 1) is {value}; {count} such value(s) in all: remove or replace values that are not finite",
        named(.name)
    )]
    NonFinite {
        /// The file.
        origin: Origin,
        /// Row of the first such value among the points, counted from 1.
        row: usize,
        /// Its column, counted from 1.
        column: usize,
        /// Name of the column, if there is a header.
        name: Option<String>,
        /// The value itself.
        value: f64,
        /// How many values are not finite.
        count: usize,
    },
    /// The folder of a file to be written does not exist.
    #[error("cannot write '{}': its folder does not exist: create it first", .path.display())]
    NoFolder {
        /// The file that was to be written.
        path: PathBuf,
    },
    /// The shape given for writing does not fit the values.
    #[error(
        "cannot write '{}': shape {shape:?} does not fit {values} values: make the product of the shape equal the number of values, with at most 64 axes",
        .path.display()
    )]
    ShapeMismatch {
        /// The file that was to be written.
        path: PathBuf,
        /// The shape asked for.
        shape: Vec<usize>,
        /// How many values there are.
        values: usize,
    },
}

impl DataError {
    /// Sorts a system error that concerns a path into the fitting variant.
    pub(crate) fn from_io(path: &Path, action: &'static str, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::NotFound if action == "write" => Self::NoFolder { path: path.into() },
            io::ErrorKind::NotFound => Self::NotFound { path: path.into() },
            io::ErrorKind::PermissionDenied => Self::Permission { path: path.into(), action },
            io::ErrorKind::IsADirectory => Self::NotAFile { path: path.into(), what: "a folder" },
            _ => Self::Io { origin: Origin::file(path), action, source },
        }
    }
}

/// At most the first 60 characters of some bytes of a file, printable on one line.
pub(crate) fn excerpt(bytes: &[u8]) -> String {
    const LONGEST: usize = 60;
    // Four bytes are the most one character takes.
    let head = &bytes[..bytes.len().min(4 * LONGEST + 4)];
    let text = String::from_utf8_lossy(head);
    let mut short: String = text.chars().take(LONGEST).collect();
    if short.len() < text.len() || head.len() < bytes.len() {
        short.push_str("...");
    }
    short.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn list(shape: &[u64]) -> String {
    let axes: Vec<String> = shape.iter().map(u64::to_string).collect();
    axes.join(", ")
}

fn named(name: &Option<String>) -> String {
    match name {
        Some(name) => format!(" ('{name}')"),
        None => String::new(),
    }
}

fn quoted(text: &str) -> String {
    if text.is_empty() { "an empty field".to_string() } else { format!("'{text}'") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_errors_are_sorted() {
        let path = Path::new("data/x.npy");
        let say = |kind: io::ErrorKind, action| DataError::from_io(path, action, kind.into()).to_string();
        let text = say(io::ErrorKind::PermissionDenied, "read");
        assert!(text.contains("no permission to read 'data/x.npy'"), "{text}");
        assert!(say(io::ErrorKind::NotFound, "read").contains("does not exist"));
        assert!(say(io::ErrorKind::NotFound, "write").contains("folder"));
        assert!(say(io::ErrorKind::IsADirectory, "read").contains("is a folder"));
        assert!(say(io::ErrorKind::TimedOut, "read").contains("cannot read"));
    }

    #[test]
    fn excerpts_are_short_and_on_one_line() {
        assert_eq!(excerpt(b"a\nb\xff"), "a b\u{fffd}");
        let long = excerpt("\u{e9}".repeat(1000).as_bytes());
        assert_eq!(long.chars().count(), 63);
    }
}
