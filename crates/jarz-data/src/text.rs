//! Reads delimited text (`.csv`, `.tsv`, `.txt`) as a table.

use std::io::{BufReader, Read};

use csv::{ByteRecord, ReaderBuilder};

use crate::error::{DataError, excerpt};
use crate::lines::{ContentLines, Delimiter, is_over_limit};
use crate::options::{Header, ReadOptions};
use crate::order::reserve;
use crate::origin::Origin;
use crate::table::Table;

/// Reads delimited text from a reader.
///
/// Blank lines and lines that begin with `#` are skipped; fields may be quoted; a delimiter at
/// the end of a row is ignored. See [`ReadOptions`] for the delimiter and the header row.
pub fn read_csv<R: Read>(reader: R, options: &ReadOptions) -> Result<Table, DataError> {
    read_csv_from(reader, options, &Origin::default())
}

pub(crate) fn read_csv_from(
    reader: impl Read,
    options: &ReadOptions,
    origin: &Origin,
) -> Result<Table, DataError> {
    let limit = options.limit();
    let wanted = options.delimiter.map(|byte| check_delimiter(byte, origin)).transpose()?;
    let too_large = || DataError::TooLarge {
        origin: origin.clone(),
        needed: "reading the whole text and storing its values".to_string(),
        limit,
    };
    let io_error = |source| {
        if is_over_limit(&source) {
            return too_large();
        }
        DataError::Io { origin: origin.clone(), action: "read the text", source }
    };

    let mut reader = reader;
    let start = first_bytes(&mut reader).map_err(io_error)?;
    refuse_binary(&start, origin)?;
    let reader = BufReader::new(start.chain(reader));
    let lines = ContentLines::new(reader, wanted, limit).map_err(io_error)?;
    let delimiter = match lines.delimiter() {
        Delimiter::Byte(byte) => byte,
        Delimiter::Blanks => b' ',
    };
    let mut rows =
        ReaderBuilder::new().delimiter(delimiter).has_headers(false).flexible(true).from_reader(lines);

    let mut record = ByteRecord::new();
    let mut table = Table { rows: 0, cols: 0, values: Vec::new(), columns: None };
    loop {
        let more = rows.read_byte_record(&mut record).map_err(|e| io_error(into_io(e)))?;
        if !more {
            break;
        }
        // A field of blanks, quoted or not, in a row of its own counts as a blank line.
        if record.len() == 1 && field(&record, 0).is_empty() {
            continue;
        }
        let kept = record.position().map_or(0, csv::Position::line);
        let line = rows.get_ref().line_in_file(kept);
        if table.cols == 0 {
            table.cols = width(&record);
            if is_header(&record, table.cols, options.header) {
                let name = |at| String::from_utf8_lossy(field(&record, at)).into_owned();
                table.columns = Some((0..table.cols).map(name).collect());
                continue;
            }
        }
        append(&mut table, &record, line, origin)?;
        if (table.values.len() as u64).saturating_mul(8) > limit {
            return Err(too_large());
        }
    }
    if table.rows == 0 {
        return Err(DataError::NoRows { origin: origin.clone() });
    }
    table.checked(origin)
}

/// Adds the numbers of one row to the table.
fn append(table: &mut Table, record: &ByteRecord, line: u64, origin: &Origin) -> Result<(), DataError> {
    let cols = table.cols;
    let closed = record.len() == cols + 1 && field(record, cols).is_empty();
    if record.len() != cols && !closed {
        return Err(DataError::Ragged {
            origin: origin.clone(),
            line,
            expected: cols,
            found: record.len(),
            text: beginning(record),
        });
    }
    if table.values.capacity() - table.values.len() < cols {
        let extra = table.values.len().max(cols);
        reserve(&mut table.values, extra, origin)?;
    }
    for at in 0..cols {
        let text = field(record, at);
        let Some(value) = number(text) else {
            let names = table.columns.as_ref();
            return Err(DataError::NotANumber {
                origin: origin.clone(),
                line,
                column: at + 1,
                name: names.and_then(|names| names.get(at).cloned()),
                text: excerpt(text),
            });
        };
        table.values.push(value);
    }
    table.rows += 1;
    Ok(())
}

/// The system error inside an error of the CSV parser; on bytes it has no other kind.
fn into_io(error: csv::Error) -> std::io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(inner) => inner,
        other => std::io::Error::other(format!("{other:?}")),
    }
}

/// The first fields of a row, for an error message.
fn beginning(record: &ByteRecord) -> String {
    let mut text = Vec::new();
    for (at, field) in record.iter().enumerate() {
        if at > 0 {
            text.extend_from_slice(b" | ");
        }
        text.extend_from_slice(&field[..field.len().min(300)]);
        if text.len() > 300 {
            break;
        }
    }
    excerpt(&text)
}

/// The field without the blanks around it; empty if there is none.
fn field(record: &ByteRecord, at: usize) -> &[u8] {
    record.get(at).unwrap_or_default().trim_ascii()
}

fn number(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// The number of columns that the first row sets, without an empty field at its end.
fn width(record: &ByteRecord) -> usize {
    let last = record.len().saturating_sub(1);
    if last > 0 && field(record, last).is_empty() { last } else { record.len() }
}

fn is_header(record: &ByteRecord, cols: usize, header: Header) -> bool {
    match header {
        Header::Yes => true,
        Header::No => false,
        // A gap among numbers is a missing value and not a name.
        Header::Auto => (0..cols).any(|at| {
            let text = field(record, at);
            !text.is_empty() && number(text).is_none()
        }),
    }
}

fn check_delimiter(byte: u8, origin: &Origin) -> Result<Delimiter, DataError> {
    match byte {
        b' ' => Ok(Delimiter::Blanks),
        b'\t' => Ok(Delimiter::Byte(byte)),
        b'"' | b'#' | b'+' | b'-' | b'.' => Err(byte),
        _ if byte.is_ascii_graphic() && !byte.is_ascii_alphanumeric() => Ok(Delimiter::Byte(byte)),
        _ => Err(byte),
    }
    .map_err(|byte| DataError::BadDelimiter { origin: origin.clone(), delimiter: char::from(byte) })
}

/// The first few bytes of the data.
fn first_bytes(reader: &mut impl Read) -> std::io::Result<std::io::Cursor<Vec<u8>>> {
    let mut start = Vec::new();
    reader.take(8).read_to_end(&mut start)?;
    Ok(std::io::Cursor::new(start))
}

/// Names formats that are often mistaken for plain text.
fn refuse_binary(start: &std::io::Cursor<Vec<u8>>, origin: &Origin) -> Result<(), DataError> {
    let start = start.get_ref();
    let found = match start.as_slice() {
        [] => {
            return Err(DataError::EmptyFile { origin: origin.clone() });
        }
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "UTF-16 text (save it as UTF-8)",
        bytes if bytes.starts_with(crate::header::MAGIC) => "a NumPy .npy array",
        bytes if bytes.starts_with(b"PK\x03\x04") => "a zip archive (.npz or a spreadsheet)",
        _ => return Ok(()),
    };
    Err(DataError::WrongFormat { origin: origin.clone(), expected: "delimited text", found })
}
