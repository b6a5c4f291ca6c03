//! What can go wrong with a checkpoint.

use std::path::{Path, PathBuf};

use crate::files::FileError;

/// Why a checkpoint could not be written, read or used. The messages say what to do.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The operating system refused an operation.
    #[error("{0}")]
    File(FileError),

    /// An error about one checkpoint file.
    #[error("checkpoint {}: {error}", path.display())]
    InFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: Box<CheckpointError>,
    },

    /// The file has fewer bytes than it announces.
    #[error(
        "the file is cut short: {found} bytes instead of at least {needed}; \
         it cannot be used and may be deleted"
    )]
    Truncated {
        /// Bytes needed to go on reading.
        needed: u64,
        /// Bytes present.
        found: u64,
    },

    /// The bytes do not follow the format.
    #[error("the file is damaged ({reason}); it cannot be used and may be deleted")]
    Damaged {
        /// What does not fit.
        reason: String,
    },

    /// The content is not the one that was saved.
    #[error(
        "the content does not match its checksum, so the file was changed or damaged after it \
         was saved; it cannot be used and may be deleted"
    )]
    Checksum,

    /// A safetensors file, but not one of ours.
    #[error(
        "this is a safetensors file but not a checkpoint of this program; \
         move it out of the checkpoint folder"
    )]
    NotACheckpoint,

    /// The file follows a later version of the format.
    #[error(
        "it was written by a newer version of the program (format {found}, while this one reads \
         up to format {known}); update the program, then resume"
    )]
    Newer {
        /// Version of the file.
        found: String,
        /// Latest version read by this program.
        known: u64,
    },

    /// No checkpoint of the folder can be used.
    #[error(
        "none of the checkpoints in {} can be used; move them away to start anew:{}",
        folder.display(),
        one_per_line(rejected)
    )]
    AllRejected {
        /// The folder.
        folder: PathBuf,
        /// Every checkpoint file and what is wrong with it, latest first.
        rejected: Vec<(PathBuf, CheckpointError)>,
    },

    /// An entry asked for is not there.
    #[error(
        "there is no {kind} named `{name}`; resume with the program version and the settings that \
         wrote the checkpoint, or start a new run"
    )]
    Missing {
        /// `text` or `array`.
        kind: &'static str,
        /// Name asked for.
        name: String,
    },

    /// An array has other elements than asked for.
    #[error(
        "array `{name}` holds {found} elements instead of {expected}; resume with the program \
         version and the settings that wrote the checkpoint, or start a new run"
    )]
    WrongType {
        /// Name of the array.
        name: String,
        /// Type asked for.
        expected: &'static str,
        /// Type found.
        found: &'static str,
    },

    /// An array has another shape than asked for.
    #[error(
        "array `{name}` has shape {found:?} instead of {expected:?}; resume with the settings \
         that wrote the checkpoint, or start a new run"
    )]
    WrongShape {
        /// Name of the array.
        name: String,
        /// Shape asked for.
        expected: Vec<usize>,
        /// Shape found.
        found: Vec<usize>,
    },

    /// The name of an entry to save belongs to the format.
    #[error("`{name}` cannot name an entry of a checkpoint, the format uses it; rename the entry")]
    Reserved {
        /// The name.
        name: String,
    },

    /// The shape of an array to save does not fit its number of elements.
    #[error("array `{name}` has {len} elements, which do not fill shape {shape:?}; mend the shape")]
    ShapeMismatch {
        /// Name of the array.
        name: String,
        /// Its shape.
        shape: Vec<usize>,
        /// Its number of elements.
        len: usize,
    },

    /// The names and texts to save exceed what safetensors allows.
    #[error(
        "the names and texts take {size} bytes, more than the {limit} that a safetensors header \
         may have; save large texts as arrays"
    )]
    HeaderTooLarge {
        /// Size of the header.
        size: usize,
        /// The limit.
        limit: usize,
    },
}

impl CheckpointError {
    /// The same error, with the name of the file it is about unless the message has it already.
    #[must_use]
    pub fn in_file(self, path: &Path) -> Self {
        match self {
            Self::File(_) | Self::InFile { .. } | Self::AllRejected { .. } => self,
            other => Self::InFile { path: path.to_path_buf(), error: Box::new(other) },
        }
    }

    /// Whether the cause is a file of a later version of the program.
    #[must_use]
    pub fn is_newer(&self) -> bool {
        match self {
            Self::Newer { .. } => true,
            Self::InFile { error, .. } => error.is_newer(),
            _ => false,
        }
    }

    pub(super) fn damaged(reason: impl ToString) -> Self {
        Self::Damaged { reason: reason.to_string() }
    }
}

impl From<FileError> for CheckpointError {
    fn from(error: FileError) -> Self {
        Self::File(error)
    }
}

fn one_per_line(rejected: &[(PathBuf, CheckpointError)]) -> String {
    let lines = rejected.iter().map(|(_, error)| format!("\n  {error}"));
    lines.collect()
}
