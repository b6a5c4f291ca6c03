//! Reads users' data files (`.npy`, `.npz`, delimited text) into memory and writes sample files; reads [`Images`] (IDX,
//! CIFAR-10, folders of PNG, the embedded [`digits()`]) and brings them to `[-1, 1]`.
//!
//! Every reader treats its input as untrusted: sizes written in a file are checked against the
//! bytes that are really there before memory is set aside for them, and whatever is wrong comes
//! back as a [`DataError`] that names the file, the fault and the remedy.
//!
//! ```
//! use jarz_data::{ReadOptions, read_csv};
//!
//! let table = read_csv(&b"x,y\n1,2\n3,4\n"[..], &ReadOptions::default())?;
//! assert_eq!((table.rows, table.cols), (2, 2));
//! assert_eq!(table.row(1), &[3.0, 4.0]);
//! # Ok::<(), jarz_data::DataError>(())
//! ```

mod dtype;
mod error;
mod hash;
mod header;
mod images;
mod lines;
mod npy;
mod npz;
mod open;
mod options;
mod order;
mod origin;
mod read;
mod table;
mod text;
mod write;

pub use error::DataError;
pub use hash::file_sha256;
pub use images::{
    Augmentation, CIFAR_ROW, CIFAR10, CIFAR10_NAMES, FASHION_MNIST, ImageError, Images, KNOWN_SETS,
    KnownFile, KnownSet, Layout, MNIST, Part, Preparation, cache_folder, cifar10_rows, digits, read_cifar10,
    read_idx, read_idx_images, read_png, read_png_folder,
};
pub use npy::read_npy;
pub use npz::read_npz;
pub use options::{DEFAULT_MAX_BYTES, Header, ReadOptions};
pub use origin::Origin;
pub use read::read_table;
pub use table::Table;
pub use text::read_csv;
pub use write::{write_atomically, write_npy_f32, write_npy_f64};
