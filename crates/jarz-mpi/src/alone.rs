//! What is left of it without MPI.

use crate::{MpiError, launched};
use jarz::Ranks;

/// The ranks that were started together: this one.
pub struct Job;

impl Job {
    /// Makes sure that there are no others.
    pub fn connect() -> Result<Self, MpiError> {
        match launched() {
            Some(size) if size > 1 => Err(MpiError::NotBuilt(size)),
            _ => Ok(Job),
        }
    }

    /// The ranks.
    pub fn ranks(&self) -> Ranks {
        Ranks::alone()
    }

    /// How many threads this rank should have, if it should not have all.
    pub fn threads(&self) -> Option<usize> {
        None
    }

    /// Ends all ranks at once.
    pub fn abort(&self, _code: i32) {}
}
