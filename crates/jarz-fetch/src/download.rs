//! Downloads that go on where they stopped.

use crate::agent::agent;
use crate::install::{install_archive, install_gzipped};
use crate::{FetchError, Source, Watch};
use jarz_data::{KnownFile, KnownSet};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use ureq::http::{HeaderMap, StatusCode};

/// How often a connection may break without having brought anything new.
const PATIENCE: usize = 3;

/// Gets `wanted` from the folder at the address `mirror`.
pub(crate) fn from_mirror(
    set: &KnownSet,
    source: &Source,
    mirror: &str,
    wanted: &[KnownFile],
    folder: &Path,
    watch: &mut dyn Watch,
) -> Result<(), FetchError> {
    let address = |name: &str| format!("{}/{name}", mirror.trim_end_matches('/'));
    if let Some(name) = source.archive {
        return fetch(set, &address(name), &folder.join(format!("{name}.part")), watch, |part, url| {
            install_archive(set, wanted, part, url, folder)
        });
    }
    for file in wanted {
        let name = format!("{}.gz", file.name);
        fetch(set, &address(&name), &folder.join(format!("{name}.part")), watch, |part, url| {
            install_gzipped(set, file, part, url, folder)
        })?;
    }
    Ok(())
}

/// Downloads into the file `part` and hands it to `unpack`. Bytes of an older download that turn out not to belong to this
/// one are thrown away and got again.
fn fetch(
    set: &KnownSet,
    url: &str,
    part: &Path,
    watch: &mut dyn Watch,
    unpack: impl Fn(&File, &str) -> Result<(), FetchError>,
) -> Result<(), FetchError> {
    let mut file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(part)
        .map_err(FetchError::file("write", part))?;
    file.try_lock().map_err(|_| FetchError::Busy { path: part.into() })?;
    loop {
        let old = match download(set, url, &mut file, part, watch) {
            Ok(old) => old,
            Err(e) => {
                // An empty part is of no use to anybody.
                if file.metadata().is_ok_and(|about| about.len() == 0) {
                    let _ = fs::remove_file(part);
                }
                return Err(e);
            }
        };
        file.rewind().map_err(FetchError::file("read", part))?;
        let outcome = unpack(&file, url);
        let useless = outcome.as_ref().is_err_and(FetchError::is_content);
        if useless && old {
            file.set_len(0).map_err(FetchError::file("write", part))?;
            continue;
        }
        if useless || outcome.is_ok() {
            fs::remove_file(part).map_err(FetchError::file("remove", part))?;
        }
        return outcome;
    }
}

/// Brings `file` to its full length, and says whether some of it was there before.
fn download(
    set: &KnownSet,
    url: &str,
    file: &mut File,
    part: &Path,
    watch: &mut dyn Watch,
) -> Result<bool, FetchError> {
    let failed = |e| FetchError::file("write", part)(e);
    let before = file.metadata().map_err(failed)?.len();
    let (mut most, mut broken) = (before, 0);
    loop {
        match transfer(set, url, file, part, watch) {
            Err(FetchError::Short { got, .. }) if got > most || broken + 1 < PATIENCE => {
                broken = if got > most { 0 } else { broken + 1 };
                most = most.max(got);
            }
            outcome => return outcome.map(|()| before > 0),
        }
    }
}

/// One request, for what is not yet there.
fn transfer(
    set: &KnownSet,
    url: &str,
    file: &mut File,
    part: &Path,
    watch: &mut dyn Watch,
) -> Result<(), FetchError> {
    let failed = |e| FetchError::file("write", part)(e);
    let mut got = file.seek(SeekFrom::End(0)).map_err(failed)?;
    let mut request = agent().get(url);
    if got > 0 {
        request = request.header("Range", format!("bytes={got}-"));
    }
    let response =
        request.call().map_err(|e| FetchError::Connection { url: url.into(), problem: e.to_string() })?;
    match (response.status(), range(response.headers())) {
        (StatusCode::PARTIAL_CONTENT, (Some(start), _)) if start == got => {}
        // There is nothing after the last byte: we have them all.
        (StatusCode::RANGE_NOT_SATISFIABLE, (_, Some(total))) if got > 0 && total == got => return Ok(()),
        (StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE, _) if got > 0 => {
            file.set_len(0).map_err(failed)?;
            return Err(FetchError::Short { url: url.into(), got: 0, total: None });
        }
        (StatusCode::OK, _) => {
            got = 0;
            file.set_len(0).and_then(|()| file.rewind()).map_err(failed)?;
        }
        (status, _) => return Err(FetchError::Status { url: url.into(), status: status.as_u16() }),
    }
    let total = response.body().content_length().map(|length| got + length);
    let name = url.rsplit('/').next().unwrap_or(url);
    let mut body = response.into_body().into_reader();
    let mut buffer = vec![0; 1 << 16];
    loop {
        if watch.stopped() {
            return Err(FetchError::Stopped { set: set.name });
        }
        let count = match body.read(&mut buffer) {
            Ok(0) if total.is_none_or(|total| got == total) => return file.sync_all().map_err(failed),
            Ok(0) | Err(_) => return Err(FetchError::Short { url: url.into(), got, total }),
            Ok(count) => count,
        };
        file.write_all(&buffer[..count]).map_err(failed)?;
        got += count as u64;
        watch.progress(name, got, total);
    }
}

/// Start of the part and length of the whole, from `Content-Range: bytes 100-199/200` or `bytes */200`.
fn range(headers: &HeaderMap) -> (Option<u64>, Option<u64>) {
    let text = headers.get("content-range").and_then(|value| value.to_str().ok()).unwrap_or("");
    let Some((part, total)) = text.trim().strip_prefix("bytes").and_then(|rest| rest.trim().split_once('/'))
    else {
        return (None, None);
    };
    let start = part.split_once('-').and_then(|(start, _)| start.trim().parse().ok());
    (start, total.trim().parse().ok())
}
