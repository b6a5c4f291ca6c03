//! Files that are there already.

use crate::install::{install, install_archive, install_gzipped};
use crate::{FetchError, Source};
use jarz_data::KnownSet;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Takes all files of `set` from `from`, plain, gzipped or as the official archive.
pub(crate) fn copy(set: &KnownSet, source: &Source, from: &Path, folder: &Path) -> Result<(), FetchError> {
    let places = [from.to_path_buf(), from.join("cifar-10-batches-bin"), from.join("raw")];
    let find = |name: &str| places.iter().map(|place| place.join(name)).find(|path| path.is_file());
    let open = |path: &PathBuf| File::open(path).map_err(FetchError::file("read", path));
    let archive = source.archive.and_then(find);
    for file in set.files {
        let zipped = format!("{}.gz", file.name);
        if let Some(path) = find(file.name) {
            install(set, file, open(&path)?, &quoted(&path), folder)?;
        } else if let Some(path) = find(&zipped) {
            install_gzipped(set, file, open(&path)?, &quoted(&path), folder)?;
        } else if let Some(path) = &archive {
            return install_archive(set, set.files, open(path)?, &quoted(path), folder);
        } else {
            let or = source.archive.map(|name| format!(" or '{name}'")).unwrap_or_default();
            return Err(FetchError::Absent {
                from: quoted(from),
                set: set.name,
                file: file.name,
                advice: format!(": put it there, plain or as '{zipped}'{or}, or leave --from away"),
            });
        }
    }
    Ok(())
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.display())
}
