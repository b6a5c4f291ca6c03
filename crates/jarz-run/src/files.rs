//! Writing files so that a reader only ever sees the old content or the whole new content.
//!
//! The bytes go to a temporary file in the same folder, which is forced to the disk and then
//! renamed over the target; the folder is forced to the disk last, so that the new name survives
//! a power cut. Whatever goes wrong before the rename, the target is untouched and the temporary
//! file is removed. Only a killed process leaves one behind; [`remove_stale`] clears those.

use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// End of the name of every temporary file made here.
const SUFFIX: &str = ".jarz-tmp";

/// How many names are tried before giving up on finding one that is free.
const NAME_ATTEMPTS: usize = 1000;

/// A failed operation on a file or folder.
#[derive(Debug)]
pub struct FileError {
    /// What was being done, as a verb: `write`, `rename`, ...
    pub operation: &'static str,
    /// The file or folder it was done to.
    pub path: PathBuf,
    /// What the operating system answered.
    pub error: io::Error,
}

impl FileError {
    /// Ties an error to the operation and the path it came from; made for `map_err`.
    pub fn at(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |error| Self { operation, path, error }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        write!(f, "could not {} {path}: {}", self.operation, self.error)?;
        f.write_str(match self.error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "; free some disk space",
            ErrorKind::PermissionDenied => "; check who may read and write there",
            ErrorKind::ReadOnlyFilesystem => "; choose a folder that can be written to",
            ErrorKind::NotFound => "; check that the folder still exists",
            ErrorKind::NotADirectory => "; a file stands where a folder is needed",
            _ => "",
        })
    }
}

impl std::error::Error for FileError {}

/// Replaces the content of `path` by `bytes`, all or nothing.
///
/// # Errors
/// See [`write_atomic_with`].
pub fn write_atomic(path: impl AsRef<Path>, bytes: &[u8]) -> Result<(), FileError> {
    write_atomic_with(path, |writer| writer.write_all(bytes))
}

/// Replaces the content of `path` by what `write` sends to its (buffered) writer, all or nothing.
///
/// A symbolic link at `path` is itself replaced, not the file it points to.
///
/// # Errors
/// The first step that failed. The target then holds what it held before, unless the step is
/// `force to disk the folder`, which comes after the rename: the new content is then in place but
/// might not survive a power cut.
pub fn write_atomic_with(
    path: impl AsRef<Path>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), FileError> {
    let path = path.as_ref();
    let (mut temporary, file) = Temporary::create(path)?;
    let mut writer = BufWriter::with_capacity(1 << 18, file);
    write(&mut writer).and_then(|()| writer.flush()).map_err(FileError::at("write", path))?;
    let file = writer.get_ref();
    file.sync_all().map_err(FileError::at("force to disk", path))?;
    // The file stays open, thus locked, until it has its final name: see `remove_stale`.
    fs::rename(&temporary.path, path).map_err(FileError::at("rename a finished file to", path))?;
    temporary.renamed = true;
    sync_folder(folder_of(path))
}

/// Removes from `folder` the temporary files of killed processes whose target is `wanted`.
///
/// A temporary file that a living process still writes to is left alone: its writer holds a lock
/// on it, which the operating system drops when the process ends, however it ends. So are files
/// that do not bear the naming pattern of this module, folders and symbolic links.
///
/// # Errors
/// The folder cannot be listed, or a stale file cannot be removed.
pub fn remove_stale(folder: &Path, wanted: impl Fn(&str) -> bool) -> Result<(), FileError> {
    let listing = "list the folder";
    for entry in fs::read_dir(folder).map_err(FileError::at(listing, folder))? {
        let entry = entry.map_err(FileError::at(listing, folder))?;
        let name = entry.file_name();
        let is_ours = name.to_str().and_then(target_of).is_some_and(&wanted);
        if !is_ours || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        let path = entry.path();
        if is_being_written(&path) {
            continue;
        }
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(FileError::at("remove the stale file", &path)(error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether another holder has the lock that a writer keeps on its temporary file.
fn is_being_written(path: &Path) -> bool {
    let Ok(file) = OpenOptions::new().read(true).write(true).open(path) else {
        return false;
    };
    matches!(file.try_lock(), Err(TryLockError::WouldBlock))
}

/// The name a temporary file was meant to get: `.<target>.<process>-<number>.jarz-tmp`.
fn target_of(name: &str) -> Option<&str> {
    let inner = name.strip_prefix('.')?.strip_suffix(SUFFIX)?;
    let (target, origin) = inner.rsplit_once('.')?;
    let (process, number) = origin.split_once('-')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    (!target.is_empty() && digits(process) && digits(number)).then_some(target)
}

/// The folder a path lies in; `.` for a bare name.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// A temporary file, removed when dropped unless it has been renamed.
struct Temporary {
    path: PathBuf,
    renamed: bool,
}

impl Temporary {
    /// Creates a new file next to `target`, under a name no other file has.
    fn create(target: &Path) -> Result<(Self, File), FileError> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let Some(name) = target.file_name() else {
            let error = io::Error::new(ErrorKind::InvalidInput, "the path names no file");
            return Err(FileError::at("write", target)(error));
        };
        let mut last = io::Error::from(ErrorKind::AlreadyExists);
        for _ in 0..NAME_ATTEMPTS {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let mut own = std::ffi::OsString::from(".");
            own.push(name);
            own.push(format!(".{}-{number}{SUFFIX}", std::process::id()));
            let path = folder_of(target).join(own);
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => {
                    // Where locks do not exist, `remove_stale` only knows the name.
                    let _ = file.try_lock();
                    let renamed = false;
                    return Ok((Self { path, renamed }, file));
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => last = error,
                Err(error) => {
                    return Err(FileError::at("create a temporary file for", target)(error));
                }
            }
        }
        Err(FileError::at("create a temporary file for", target)(last))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.renamed {
            // The error that led here is the one worth reporting.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Forces the list of names in a folder to the disk.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> Result<(), FileError> {
    match File::open(folder).and_then(|handle| handle.sync_all()) {
        // Some file systems have no such operation for folders.
        Err(error) if !matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => {
            Err(FileError::at("force to disk the folder", folder)(error))
        }
        _ => Ok(()),
    }
}

/// Folders cannot be opened as files here; the file system orders the rename by itself.
#[cfg(not(unix))]
fn sync_folder(_folder: &Path) -> Result<(), FileError> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn writes_then_replaces() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        write_atomic(&path, b"first").unwrap();
        write_atomic(&path, b"2nd").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"2nd");
        assert_eq!(names(folder.path()), ["result.json"]);
    }

    #[test]
    fn a_failed_writer_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        write_atomic(&path, b"old").unwrap();
        let error = write_atomic_with(&path, |writer| {
            writer.write_all(&vec![7; 1 << 20])?;
            Err(ErrorKind::StorageFull.into())
        })
        .unwrap_err();
        let message = error.to_string();
        assert!(message.contains("write") && message.contains("result.json"));
        assert!(message.contains("free some disk space"), "{message}");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["result.json"]);
    }

    #[test]
    fn a_panicking_writer_leaves_no_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        let outcome = std::panic::catch_unwind(|| {
            write_atomic_with(&path, |_| panic!("on purpose")).unwrap();
        });
        assert!(outcome.is_err());
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn bad_targets_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let lost = folder.path().join("missing").join("x");
        let message = write_atomic(&lost, b"").unwrap_err().to_string();
        assert!(message.contains("missing") && message.contains("folder still exists"));
        let busy = folder.path().join("busy");
        fs::create_dir(&busy).unwrap();
        let message = write_atomic(&busy, b"").unwrap_err().to_string();
        assert!(message.contains("rename") && message.contains("busy"), "{message}");
        assert_eq!(names(folder.path()), ["busy"]);
        assert!(write_atomic("..", b"").is_err());
        assert!(write_atomic("", b"").is_err());
    }

    #[test]
    fn stale_files_go_and_living_ones_stay() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in
            [".a.12-3.jarz-tmp", ".b.12-3.jarz-tmp", ".a.x-3.jarz-tmp", "a.12-3.jarz-tmp", ".a.jarz-tmp"]
        {
            fs::write(at(name), b"x").unwrap();
        }
        write_atomic_with(at("a"), |_| {
            remove_stale(folder.path(), |target| target == "a").unwrap();
            Ok(())
        })
        .unwrap();
        let kept = [".a.jarz-tmp", ".a.x-3.jarz-tmp", ".b.12-3.jarz-tmp", "a", "a.12-3.jarz-tmp"];
        assert_eq!(names(folder.path()), kept);
    }
}
