//! Where data came from, so that every error can name it.

use std::fmt;
use std::path::Path;

/// The file, and for an archive the array inside it, that a piece of data was read from.
///
/// It prints as `'points.npy'`, as `array 'x' of 'points.npz'`, or as `the input` when the data
/// came from memory or from a reader without a name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    path: Option<Box<Path>>,
    array: Option<Box<str>>,
}

impl Origin {
    /// Data held in the file at `path`.
    pub fn file(path: &Path) -> Self {
        Self { path: Some(path.into()), array: None }
    }

    /// The array called `name` inside this archive.
    pub fn with_array(&self, name: &str) -> Self {
        Self { path: self.path.clone(), array: Some(name.into()) }
    }

    /// The file, if the data came from one.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The name of the array inside an archive, if the data came from one.
    pub fn array(&self) -> Option<&str> {
        self.array.as_deref()
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(array) = &self.array {
            write!(f, "array '{array}' of ")?;
        }
        match &self.path {
            Some(path) => write!(f, "'{}'", path.display()),
            None => f.write_str("the input"),
        }
    }
}
