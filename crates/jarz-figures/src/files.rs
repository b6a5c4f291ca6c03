//! Whole files or none: readers never see a half-written figure.

use crate::FigureError;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

static COUNTER: AtomicU64 = AtomicU64::new(0);

/// Writes `folder/name` through a temporary file in the same folder, which is created when it is missing.
pub(crate) fn write_atomically(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), FigureError> {
    let target = folder.join(name);
    let unique = COUNTER.fetch_add(1, Ordering::Relaxed);
    let temporary = folder.join(format!(".{name}.{}-{unique}.tmp", std::process::id()));
    let write = || -> std::io::Result<()> {
        fs::create_dir_all(folder)?;
        let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        drop(file);
        fs::rename(&temporary, &target)
    };
    write().map_err(|source| {
        let _ = fs::remove_file(&temporary);
        FigureError::Io { path: target.clone(), source }
    })
}

/// Refuses stems that would leave the folder.
pub(crate) fn check_stem(stem: &str) -> Result<(), FigureError> {
    if stem.is_empty() || stem == "." || stem == ".." || stem.contains(['/', '\\', '\0']) {
        return Err(FigureError::Stem(stem.to_string()));
    }
    Ok(())
}
