//! The last step of every way: check the content, then give it its name.

use crate::FetchError;
use flate2::read::MultiGzDecoder;
use jarz_data::{KnownFile, KnownSet, write_atomically};
use sha2::{Digest, Sha256};
use std::io::{self, Read, Write};
use std::path::Path;

/// Writes `content`, uncompressed, as `file` of `set` into `folder` if it is the official one; leaves nothing behind if not.
pub(crate) fn install(
    set: &KnownSet,
    file: &KnownFile,
    content: impl Read,
    from: &str,
    folder: &Path,
) -> Result<(), FetchError> {
    let path = folder.join(file.name);
    // The first reason is the true one: the writer only hears that it must not go on.
    let mut reason = None;
    let stop = || io::Error::other("the content is wrong");
    let outcome = write_atomically(&path, |out| {
        // One byte more than there should be is enough to know.
        let mut content = content.take(file.bytes + 1);
        let (mut hasher, mut length, mut buffer) = (Sha256::new(), 0, vec![0; 1 << 16]);
        loop {
            let count = match content.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => {
                    reason = Some(FetchError::Damaged { from: from.into(), problem: e.to_string() });
                    return Err(stop());
                }
            };
            hasher.update(&buffer[..count]);
            out.write_all(&buffer[..count])?;
            length += count as u64;
        }
        let found: String = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        if found == file.sha256 {
            return Ok(());
        }
        reason = Some(FetchError::Content {
            from: from.into(),
            set: set.name,
            file: file.name,
            found,
            expected: file.sha256,
            extra: length > file.bytes,
        });
        Err(stop())
    });
    match reason {
        Some(reason) => Err(reason),
        None => outcome.map_err(FetchError::file("write", &path)),
    }
}

/// The same for gzipped content.
pub(crate) fn install_gzipped(
    set: &KnownSet,
    file: &KnownFile,
    content: impl Read,
    from: &str,
    folder: &Path,
) -> Result<(), FetchError> {
    install(set, file, MultiGzDecoder::new(content), from, folder)
}

/// Installs all of `wanted` from a gzipped tar archive, whatever folders they are in there.
pub(crate) fn install_archive(
    set: &KnownSet,
    wanted: &[KnownFile],
    archive: impl Read,
    from: &str,
    folder: &Path,
) -> Result<(), FetchError> {
    let damaged = |e: io::Error| FetchError::Damaged { from: from.into(), problem: e.to_string() };
    let mut left = wanted.to_vec();
    for entry in tar::Archive::new(MultiGzDecoder::new(archive)).entries().map_err(damaged)? {
        let entry = entry.map_err(damaged)?;
        let path = entry.path().map_err(damaged)?.into_owned();
        if let Some(i) = left.iter().position(|file| path.file_name() == Some(file.name.as_ref())) {
            let file = left.swap_remove(i);
            install(set, &file, entry, &format!("'{}' in {from}", path.display()), folder)?;
        }
    }
    match left.first() {
        None => Ok(()),
        Some(file) => Err(FetchError::Absent {
            from: from.into(),
            set: set.name,
            file: file.name,
            advice: String::new(),
        }),
    }
}
