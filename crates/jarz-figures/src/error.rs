use std::fmt;
use std::path::PathBuf;

/// Why a figure or a report could not be produced.
#[derive(Debug)]
#[non_exhaustive]
pub enum FigureError {
    /// A file or folder could not be written.
    Io {
        /// The file or folder in question.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The file stem is empty or holds a path separator.
    Stem(String),
    /// The image would have no pixel, or far too many.
    Size {
        /// Width asked for, in pixels.
        width: f64,
        /// Height asked for, in pixels.
        height: f64,
    },
    /// Values, weights or captions that do not make a grid of images.
    Images(String),
    /// The SVG could not be turned into an image.
    Raster(String),
}

impl fmt::Display for FigureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, source } => write!(f, "cannot write {}: {source}", path.display()),
            Self::Stem(stem) => write!(f, "{stem:?} is not a file stem: it must be a plain, non-empty name"),
            Self::Size { width, height } => {
                write!(f, "an image of {width} x {height} pixels cannot be drawn")
            }
            Self::Images(why) => write!(f, "cannot draw the images: {why}"),
            Self::Raster(why) => write!(f, "cannot rasterise the figure: {why}"),
        }
    }
}

impl std::error::Error for FigureError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
