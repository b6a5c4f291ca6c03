//! Checkpoints: a named set of arrays and texts, stored so that it comes back bit for bit.
//!
//! A checkpoint is a `safetensors` file, little-endian like all of them, which other tools can
//! open. This module knows nothing about what the arrays mean.
//!
//! # Format, version 1
//!
//! The `__metadata__` map holds `format` (`jarz-checkpoint`), `version` (`1`), the texts of the
//! caller, and `sha256`: 64 lowercase hexadecimal digits. The digest is taken over
//!
//! 1. the number of metadata pairs other than `sha256`, then each key and value, sorted by key;
//! 2. the number of arrays, then for each, sorted by name: its name, its type (`F64`, `F32`,
//!    `U64`, `U32` or `U8`), its dimensions, its raw bytes.
//!
//! Numbers and dimensions are 8 bytes, little-endian. Every key, value, name, type, list of
//! dimensions and block of raw bytes is preceded by its length in bytes, as such a number.
//! Sorting is by the bytes of the UTF-8 text.
//!
//! The file itself has one valid spelling: the header is JSON without white space, keys in sorted
//! order within `__metadata__`, arrays in the order of their data (widest elements first, then by
//! type as `U64`, `F64`, `F32`, `U32`, then by name), padded with spaces to a multiple of 8 bytes.
//! A file spelled in any other way is taken as damaged, so that no byte escapes the check.

mod codec;
mod error;
mod snapshot;
mod store;
#[cfg(test)]
mod tests;

pub use codec::{FORMAT, VERSION, decode, encode};
pub use error::CheckpointError;
pub use snapshot::{Array, Snapshot};
pub use store::{CheckpointStore, Loaded};
