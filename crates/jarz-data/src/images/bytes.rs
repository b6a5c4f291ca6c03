//! The bytes of a file, decompressed if it is gzipped.

use std::io::{BufReader, Cursor, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use super::ImageError;
use crate::error::DataError;
use crate::open::open_file;
use crate::options::DEFAULT_MAX_BYTES;
use crate::origin::Origin;

const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The whole content of the file at `path`, decompressed if it begins as gzip does.
pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>, ImageError> {
    let (file, _) = open_file(path)?;
    read_bytes(BufReader::new(file), path)
}

/// The same of a reader; `path` is for messages. Memory grows with the bytes that come, not with what a header promises.
pub(crate) fn read_bytes(mut reader: impl Read, path: &Path) -> Result<Vec<u8>, ImageError> {
    let mut start = Vec::new();
    (&mut reader).take(2).read_to_end(&mut start).map_err(|e| ImageError::read(path, e))?;
    if start.is_empty() {
        return Err(DataError::EmptyFile { origin: Origin::file(path) }.into());
    }
    let zipped = start == GZIP;
    let whole = Cursor::new(start).chain(reader);
    let mut bytes = Vec::new();
    let outcome = match zipped {
        true => {
            MultiGzDecoder::new(BufReader::new(whole)).take(DEFAULT_MAX_BYTES + 1).read_to_end(&mut bytes)
        }
        false => whole.take(DEFAULT_MAX_BYTES + 1).read_to_end(&mut bytes),
    };
    match outcome {
        Err(e) if e.kind() == std::io::ErrorKind::OutOfMemory => {
            Err(DataError::OutOfMemory { origin: Origin::file(path), bytes: bytes.len() as u64 }.into())
        }
        Err(e) if zipped => Err(ImageError::Gzip { path: path.into(), problem: e.to_string() }),
        Err(e) => Err(ImageError::read(path, e)),
        Ok(_) if bytes.len() as u64 > DEFAULT_MAX_BYTES => {
            let needed = "more bytes than fit".to_string();
            Err(DataError::TooLarge { origin: Origin::file(path), needed, limit: DEFAULT_MAX_BYTES }.into())
        }
        Ok(_) => Ok(bytes),
    }
}
