//! Everything that can go wrong with image data.

use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::error::DataError;

/// Why images could not be read or chosen; the message names the file, the fault and the remedy.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ImageError {
    /// The file is missing, unreadable, empty, cut short or too large.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The compressed stream is damaged.
    #[error("'{}': the gzip stream is damaged ({problem}): copy or download the file again", .path.display())]
    Gzip {
        /// The file.
        path: PathBuf,
        /// What the decompressor said.
        problem: String,
    },
    /// The first bytes are not those of an IDX file of this kind.
    #[error(
        "'{}': not an IDX file of {wanted}: it begins with the bytes {found:02x?}, expected {expected:02x?}: give the right file, or download it again",
        .path.display()
    )]
    Magic {
        /// The file.
        path: PathBuf,
        /// `images` or `labels`.
        wanted: &'static str,
        /// The first four bytes.
        found: [u8; 4],
        /// What they should be.
        expected: [u8; 4],
    },
    /// An images file where labels were expected, or the other way round.
    #[error("'{}' holds {found}, not {wanted}: the two files are swapped; exchange them", .path.display())]
    Swapped {
        /// The file.
        path: PathBuf,
        /// What was expected there.
        wanted: &'static str,
        /// What it is.
        found: &'static str,
    },
    /// There is not one label for every image.
    #[error(
        "'{}' holds {labels} labels, but '{}' holds {images} images: they do not belong together; take both files from the same part of the data set",
        .labels_path.display(), .images_path.display()
    )]
    CountMismatch {
        /// The images file.
        images_path: PathBuf,
        /// Its images.
        images: usize,
        /// The labels file.
        labels_path: PathBuf,
        /// Its labels.
        labels: usize,
    },
    /// A label outside the classes of the data set.
    #[error(
        "'{}': image {row} (counted from 0) has the label {label}, but the labels are 0 to {}: the file is damaged or of another data set",
        .path.display(), .classes.saturating_sub(1)
    )]
    LabelRange {
        /// The file.
        path: PathBuf,
        /// The image, counted from 0.
        row: usize,
        /// Its label.
        label: u8,
        /// How many classes there are.
        classes: usize,
    },
    /// The length of the file is not a whole number of images.
    #[error(
        "'{}' has {bytes} bytes, which is no multiple of the {row} bytes of an image with its label: the file is cut short or not of CIFAR-10's binary version; download it again",
        .path.display()
    )]
    RowLength {
        /// The file.
        path: PathBuf,
        /// Its length.
        bytes: u64,
        /// Bytes of one image with its label.
        row: usize,
    },
    /// Nothing there.
    #[error("'{}' holds no images: {advice}", .path.display())]
    NoImages {
        /// The file or folder.
        path: PathBuf,
        /// What to do.
        advice: &'static str,
    },
    /// A PNG file that cannot be used.
    #[error("'{}': {problem}", .path.display())]
    Png {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// Images of different sizes in one folder.
    #[error(
        "'{}' is {found}, but '{}' is {expected}: bring all images to the same size and number of channels",
        .path.display(), .first.display()
    )]
    Unequal {
        /// The file that differs.
        path: PathBuf,
        /// Its size.
        found: String,
        /// The first file.
        first: PathBuf,
        /// The size of the first.
        expected: String,
    },
    /// A folder whose content says nothing about what it means.
    #[error("'{}': {problem}", .path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// Images, labels or levels that do not fit together.
    #[error("these are not images: {0}")]
    Shape(String),
    /// Labels are needed and there are none.
    #[error("the images have no labels: take a labelled set, or a folder with one sub-folder per label")]
    NoLabels,
    /// A label was asked for that does not occur.
    #[error("there is no label {label}: the labels are 0 to {}", .classes.saturating_sub(1))]
    UnknownLabel {
        /// The label.
        label: u8,
        /// How many classes there are.
        classes: usize,
    },
    /// Fewer images of a label than asked for.
    #[error("{wanted} images with label {label} ('{name}') were asked for, there are {found}: ask for fewer")]
    TooFew {
        /// The label.
        label: u8,
        /// Its name.
        name: String,
        /// How many were asked for.
        wanted: usize,
        /// How many there are.
        found: usize,
    },
    /// A number that makes no sense.
    #[error("{what} is {value}, but must be {range}")]
    Number {
        /// What the number is.
        what: &'static str,
        /// The number.
        value: f64,
        /// What is allowed.
        range: &'static str,
    },
    /// A known data set is not in the cache.
    #[error("'{}' is missing: get the data set with 'jarz data get {set}'", .path.display())]
    NotCached {
        /// The data set.
        set: &'static str,
        /// The missing file.
        path: PathBuf,
    },
    /// A file of a known data set has the wrong content.
    #[error(
        "'{}' is not the official file of {set}: its SHA-256 is {found}, expected {expected}: delete it and get it again with 'jarz data get {set}'",
        .path.display()
    )]
    Checksum {
        /// The data set.
        set: &'static str,
        /// The file.
        path: PathBuf,
        /// SHA-256 of the official file.
        expected: &'static str,
        /// SHA-256 of this one.
        found: String,
    },
    /// There is no place for a cache.
    #[error("no folder for cached data: set JARZ_CACHE to one, or name it with --cache")]
    NoCache,
}

impl ImageError {
    /// A system error that concerns `path`.
    pub(crate) fn read(path: &Path, source: std::io::Error) -> Self {
        DataError::from_io(path, "read", source).into()
    }
}
