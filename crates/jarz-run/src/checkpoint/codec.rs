//! Snapshots to bytes and back. The format is described at the top of the module `checkpoint`.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use safetensors::Dtype;
use safetensors::tensor::Metadata;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::{Array, CheckpointError, Snapshot};

/// Value of the metadata entry `format`.
pub const FORMAT: &str = "jarz-checkpoint";

/// The version of the format this program writes, and the latest it reads.
pub const VERSION: u64 = 1;

/// Key under which safetensors keeps its metadata, and which no array may thus have.
const METADATA: &str = "__metadata__";
const FORMAT_KEY: &str = "format";
const VERSION_KEY: &str = "version";
const DIGEST_KEY: &str = "sha256";

/// Size of the number in front of the header, and the alignment of what follows it.
const WORD: usize = 8;

/// The largest header that safetensors accepts.
const MAX_HEADER: usize = 100_000_000;

/// The bytes of a checkpoint file holding the snapshot; the same snapshot gives the same bytes.
///
/// # Errors
/// A name is reserved, a shape does not fit its array, or the header would be too large.
pub fn encode(snapshot: &Snapshot) -> Result<Vec<u8>, CheckpointError> {
    let encoded = Encoded::new(snapshot)?;
    let mut bytes = Vec::with_capacity(encoded.len());
    encoded.write_to(&mut bytes).map_err(CheckpointError::damaged)?;
    Ok(bytes)
}

/// The snapshot in the bytes of a checkpoint file.
///
/// Succeeds only on what [`encode`] returns: any change to any byte is an error. Memory use is
/// proportional to the number of bytes given, whatever sizes they declare.
///
/// # Errors
/// The bytes are not those of a checkpoint, are damaged, or come from a newer version.
pub fn decode(bytes: &[u8]) -> Result<Snapshot, CheckpointError> {
    let (header, data) = split(bytes)?;
    let mut metadata = read_metadata(header)?;
    if metadata.remove(FORMAT_KEY).as_deref() != Some(FORMAT) {
        return Err(CheckpointError::NotACheckpoint);
    }
    let version = take(&mut metadata, VERSION_KEY)?;
    let digest = take(&mut metadata, DIGEST_KEY);
    let arrays = read_arrays(header, data);

    if version.parse::<u64>().is_ok_and(|found| found > VERSION) {
        if let (Ok(digest), Ok(arrays)) = (digest, arrays) {
            let texts = metadata;
            if digest_of(&Snapshot { texts, arrays }) == digest {
                // All is as in a file of our version, but for the number: that is the damage.
                return Err(CheckpointError::Checksum);
            }
        }
        let (found, known) = (version, VERSION);
        return Err(CheckpointError::Newer { found, known });
    }

    let (texts, digest, arrays) = (metadata, digest?, arrays?);
    let snapshot = Snapshot { texts, arrays };
    if digest_of(&snapshot) != digest {
        return Err(CheckpointError::Checksum);
    }
    // The digest covers the content; this covers how it is spelled. An equal header also gives
    // every array the same place, so that encoding the snapshot again would give these bytes.
    let expected = Encoded::with_digest(&snapshot, &digest)?.header;
    if expected != bytes[..bytes.len() - data.len()] {
        return Err(CheckpointError::damaged("the header is not as it was saved"));
    }
    Ok(snapshot)
}

/// A snapshot ready to be written: the start of the file, then the arrays in their order.
pub(super) struct Encoded<'a> {
    header: Vec<u8>,
    arrays: Vec<&'a Array>,
}

impl<'a> Encoded<'a> {
    pub(super) fn new(snapshot: &'a Snapshot) -> Result<Self, CheckpointError> {
        let reserved = [FORMAT_KEY, VERSION_KEY, DIGEST_KEY];
        let texts = reserved.iter().filter(|&&k| snapshot.texts.contains_key(k));
        let arrays = [METADATA].iter().filter(|&&k| snapshot.arrays.contains_key(k));
        if let Some(&name) = texts.chain(arrays).next() {
            let name = name.to_owned();
            return Err(CheckpointError::Reserved { name });
        }
        for (name, (shape, array)) in &snapshot.arrays {
            if element_count(shape) != Some(array.len()) {
                return Err(CheckpointError::ShapeMismatch {
                    name: name.clone(),
                    shape: shape.clone(),
                    len: array.len(),
                });
            }
        }
        Self::with_digest(snapshot, &digest_of(snapshot))
    }

    fn with_digest(snapshot: &'a Snapshot, digest: &str) -> Result<Self, CheckpointError> {
        let mut pairs = metadata_of(snapshot);
        let version = VERSION.to_string();
        pairs.insert(VERSION_KEY, &version);
        pairs.insert(DIGEST_KEY, digest);

        let mut json = String::from("{\"__metadata__\":{");
        for (index, (key, value)) in pairs.iter().enumerate() {
            json.push_str(if index == 0 { "" } else { "," });
            let _ = write!(json, "{}:{}", quoted(key)?, quoted(value)?);
        }
        json.push('}');

        // The order safetensors itself writes in: it keeps every array aligned to its elements.
        let mut entries: Vec<_> = snapshot.arrays.iter().collect();
        entries.sort_by_key(|(name, (_, array))| (Reverse(rank(array)), *name));
        let mut start = 0;
        for (name, (shape, array)) in &entries {
            let end = start + array.byte_len();
            let (name, kind) = (quoted(name)?, array.type_name());
            let _ = write!(json, ",{name}:{{\"dtype\":\"{kind}\",\"shape\":[");
            for (index, size) in shape.iter().enumerate() {
                let comma = if index == 0 { "" } else { "," };
                let _ = write!(json, "{comma}{size}");
            }
            let _ = write!(json, "],\"data_offsets\":[{start},{end}]}}");
            start = end;
        }
        json.push('}');

        let size = json.len().next_multiple_of(WORD);
        if size > MAX_HEADER {
            let limit = MAX_HEADER;
            return Err(CheckpointError::HeaderTooLarge { size, limit });
        }
        let mut header = Vec::with_capacity(WORD + size);
        header.extend((size as u64).to_le_bytes());
        header.extend(json.into_bytes());
        header.resize(WORD + size, b' ');
        let arrays = entries.iter().map(|(_, (_, array))| array).collect();
        Ok(Self { header, arrays })
    }

    fn len(&self) -> usize {
        let data: usize = self.arrays.iter().map(|array| array.byte_len()).sum();
        self.header.len() + data
    }

    pub(super) fn write_to(&self, writer: &mut dyn Write) -> io::Result<()> {
        writer.write_all(&self.header)?;
        for array in &self.arrays {
            array.for_each_block(&mut |block| writer.write_all(block))?;
        }
        Ok(())
    }
}

/// The metadata common to the header and the digest, without the version and the digest.
fn metadata_of(snapshot: &Snapshot) -> BTreeMap<&str, &str> {
    let texts = snapshot.texts.iter();
    let mut pairs: BTreeMap<&str, &str> = texts.map(|(k, v)| (k.as_str(), v.as_str())).collect();
    pairs.insert(FORMAT_KEY, FORMAT);
    pairs
}

/// Place of a type in the order of the data: the highest comes first.
fn rank(array: &Array) -> u8 {
    match array {
        Array::U64(_) => 4,
        Array::F64(_) => 3,
        Array::F32(_) => 2,
        Array::U32(_) => 1,
        Array::U8(_) => 0,
    }
}

/// Number of elements of a shape, multiplied in the order in which safetensors checks it.
fn element_count(shape: &[usize]) -> Option<usize> {
    let mut sizes = shape.iter().copied();
    sizes.try_fold(1, usize::checked_mul)
}

fn quoted(text: &str) -> Result<String, CheckpointError> {
    serde_json::to_string(text).map_err(CheckpointError::damaged)
}

/// The digest of a snapshot saved by this version, in hexadecimal.
fn digest_of(snapshot: &Snapshot) -> String {
    let mut hash = Sha256::new();
    let number = |hash: &mut Sha256, value: usize| hash.update((value as u64).to_le_bytes());
    let field = |hash: &mut Sha256, bytes: &[u8]| {
        number(hash, bytes.len());
        hash.update(bytes);
    };

    let mut pairs = metadata_of(snapshot);
    let version = VERSION.to_string();
    pairs.insert(VERSION_KEY, &version);
    number(&mut hash, pairs.len());
    for (key, value) in pairs {
        field(&mut hash, key.as_bytes());
        field(&mut hash, value.as_bytes());
    }

    number(&mut hash, snapshot.arrays.len());
    for (name, (shape, array)) in &snapshot.arrays {
        field(&mut hash, name.as_bytes());
        field(&mut hash, array.type_name().as_bytes());
        number(&mut hash, WORD * shape.len());
        for &size in shape {
            number(&mut hash, size);
        }
        number(&mut hash, array.byte_len());
        let hashed = array.for_each_block(&mut |block| {
            hash.update(block);
            Ok(())
        });
        debug_assert!(hashed.is_ok(), "hashing cannot fail");
    }

    let mut text = String::with_capacity(64);
    for byte in hash.finalize() {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The JSON header and the data after it.
fn split(bytes: &[u8]) -> Result<(&[u8], &[u8]), CheckpointError> {
    let found = bytes.len() as u64;
    let truncated = |needed| CheckpointError::Truncated { needed, found };
    let (word, rest) = bytes.split_first_chunk::<WORD>().ok_or_else(|| truncated(WORD as u64))?;
    let size = u64::from_le_bytes(*word);
    if size > MAX_HEADER as u64 {
        let reason = format!("it declares a header of {size} bytes");
        return Err(CheckpointError::damaged(reason));
    }
    rest.split_at_checked(size as usize).ok_or_else(|| truncated(size + WORD as u64))
}

/// The metadata map alone. It is read before the rest, which a later version may change.
fn read_metadata(header: &[u8]) -> Result<BTreeMap<String, String>, CheckpointError> {
    #[derive(Deserialize)]
    struct Header {
        #[serde(rename = "__metadata__")]
        metadata: Option<BTreeMap<String, String>>,
    }
    let header: Header = serde_json::from_slice(header).map_err(CheckpointError::damaged)?;
    header.metadata.ok_or(CheckpointError::NotACheckpoint)
}

fn take(metadata: &mut BTreeMap<String, String>, key: &str) -> Result<String, CheckpointError> {
    let missing = || CheckpointError::damaged(format!("the metadata has no `{key}`"));
    metadata.remove(key).ok_or_else(missing)
}

/// The arrays, each with its shape.
///
/// Reads the header through `Metadata` and not `SafeTensors::deserialize`, because the latter adds
/// declared sizes without checking for overflow (safetensors 0.8), and so panics on some headers
/// in builds that check it.
/// `Metadata` itself makes sure that the arrays follow each other without gaps and that each shape
/// fits its place.
fn read_arrays(header: &[u8], data: &[u8]) -> Result<BTreeMap<String, (Vec<usize>, Array)>, CheckpointError> {
    let metadata: Metadata = serde_json::from_slice(header).map_err(CheckpointError::damaged)?;
    let (declared, found) = (metadata.data_len(), data.len());
    if declared > found {
        let before = (WORD + header.len()) as u64;
        return Err(CheckpointError::Truncated {
            needed: before.saturating_add(declared as u64),
            found: before + found as u64,
        });
    }
    if declared < found {
        let reason = format!("{} bytes follow the last array", found - declared);
        return Err(CheckpointError::damaged(reason));
    }

    let mut arrays = BTreeMap::new();
    for (name, info) in metadata.tensors() {
        let (start, end) = info.data_offsets;
        let Some(bytes) = data.get(start..end) else {
            let reason = format!("array `{name}` lies outside of the file");
            return Err(CheckpointError::damaged(reason));
        };
        let array = match info.dtype {
            Dtype::F64 => Array::F64(elements(bytes, f64::from_le_bytes)),
            Dtype::F32 => Array::F32(elements(bytes, f32::from_le_bytes)),
            Dtype::U64 => Array::U64(elements(bytes, u64::from_le_bytes)),
            Dtype::U32 => Array::U32(elements(bytes, u32::from_le_bytes)),
            Dtype::U8 => Array::U8(bytes.to_vec()),
            other => {
                let reason = format!("array `{name}` has elements of type {other}");
                return Err(CheckpointError::damaged(reason));
            }
        };
        arrays.insert(name, (info.shape.clone(), array));
    }
    Ok(arrays)
}

fn elements<T, const SIZE: usize>(bytes: &[u8], read: impl Fn([u8; SIZE]) -> T) -> Vec<T> {
    let (chunks, _) = bytes.as_chunks::<SIZE>();
    chunks.iter().map(|chunk| read(*chunk)).collect()
}
