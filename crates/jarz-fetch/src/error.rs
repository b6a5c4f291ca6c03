//! Everything that can go wrong on the way.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why a data set could not be had.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FetchError {
    /// A file or folder of the cache could not be used.
    #[error("cannot {action} '{}': {source}", .path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another process downloads the same file.
    #[error("'{}' is being written by another process: wait for it, or choose another --cache", .path.display())]
    Busy {
        /// The partial file.
        path: PathBuf,
    },
    /// The server answered, but not with the file.
    #[error("{url}: the server answered with status {status}")]
    Status {
        /// The address.
        url: String,
        /// The HTTP status.
        status: u16,
    },
    /// The server could not be reached.
    #[error("{url}: {problem}")]
    Connection {
        /// The address.
        url: String,
        /// What went wrong.
        problem: String,
    },
    /// The connection ended early; what came is kept.
    #[error("{url}: the connection ended after {got} of {} bytes; the same command goes on from there", .total.map_or("?".into(), |t| t.to_string()))]
    Short {
        /// The address.
        url: String,
        /// Bytes that are there.
        got: u64,
        /// Bytes of the whole file, if the server said so.
        total: Option<u64>,
    },
    /// What came is not the official file.
    #[error(
        "{from} is not the official file '{file}' of {set}: its SHA-256 is {found}, expected {expected}{}: use a copy of the official file",
        if *.extra { " (it is longer, too)" } else { "" }
    )]
    Content {
        /// Where it came from.
        from: String,
        /// The data set.
        set: &'static str,
        /// The official name.
        file: &'static str,
        /// SHA-256 of what came.
        found: String,
        /// SHA-256 of the official file.
        expected: &'static str,
        /// Whether more came than the official file has.
        extra: bool,
    },
    /// A compressed file or an archive could not be unpacked.
    #[error("{from} cannot be unpacked: {problem}")]
    Damaged {
        /// Where it came from.
        from: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A file is not where it should be.
    #[error("{from} holds no '{file}' of {set}{advice}")]
    Absent {
        /// Where it was looked for.
        from: String,
        /// The data set.
        set: &'static str,
        /// The official name.
        file: &'static str,
        /// What to do.
        advice: String,
    },
    /// A package manager did not deliver.
    #[error("'{command}' did not work: {problem}")]
    Client {
        /// What was run.
        command: String,
        /// What came of it.
        problem: String,
    },
    /// No way led to the data set.
    #[error(
        "cannot get {set}:{}\ncheck the network, or take files that you have with: jarz data get {set} --from DIR",
        listed(.attempts)
    )]
    AllFailed {
        /// The data set.
        set: &'static str,
        /// What was tried, in order.
        attempts: Vec<FetchError>,
    },
    /// The user stopped it.
    #[error("stopped; what was downloaded is kept: go on with jarz data get {set}")]
    Stopped {
        /// The data set.
        set: &'static str,
    },
}

impl FetchError {
    /// Ties a system error to a path; made for `map_err`.
    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| FetchError::File { action, path, source }
    }

    /// Whether the bytes themselves were wrong.
    pub(crate) fn is_content(&self) -> bool {
        matches!(self, FetchError::Content { .. } | FetchError::Damaged { .. } | FetchError::Absent { .. })
    }
}

fn listed(attempts: &[FetchError]) -> String {
    attempts.iter().map(|attempt| format!("\n  {attempt}")).collect()
}
