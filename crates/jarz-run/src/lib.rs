//! Placeholder.

pub mod checkpoint;
pub mod files;
