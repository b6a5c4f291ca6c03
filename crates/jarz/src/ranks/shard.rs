//! Which rows belong to which rank.

use super::Ranks;
use crate::parallel::Layout;
use std::ops::Range;

/// Rows cut into chunks, and the chunks shared out over ranks: each has whole ones, in their order, as equally many as possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    total: usize,
    chunk: usize,
    rank: usize,
    size: usize,
}

impl Shard {
    /// `total` rows in the chunks of a layout.
    pub fn new(layout: Layout, total: usize, ranks: &Ranks) -> Self {
        Shard { total, chunk: layout.chunk.max(1), rank: ranks.rank(), size: ranks.size() }
    }

    /// Rows of all ranks.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Rows in a chunk.
    pub fn chunk(&self) -> usize {
        self.chunk
    }

    /// Chunks of a rank.
    pub fn chunks_of(&self, rank: usize) -> Range<usize> {
        let chunks = self.total.div_ceil(self.chunk);
        rank * chunks / self.size..(rank + 1) * chunks / self.size
    }

    /// Rows of a rank.
    pub fn rows_of(&self, rank: usize) -> Range<usize> {
        let chunks = self.chunks_of(rank);
        (chunks.start * self.chunk).min(self.total)..(chunks.end * self.chunk).min(self.total)
    }

    /// Chunks of this rank.
    pub fn chunks(&self) -> Range<usize> {
        self.chunks_of(self.rank)
    }

    /// Rows of this rank.
    pub fn rows(&self) -> Range<usize> {
        self.rows_of(self.rank)
    }

    /// Rows of every rank.
    pub fn counts(&self) -> Vec<usize> {
        (0..self.size).map(|r| self.rows_of(r).len()).collect()
    }
}

/// What two ranges share; empty, and within the first, if nothing.
pub(crate) fn overlap(a: &Range<usize>, b: &Range<usize>) -> Range<usize> {
    let start = a.start.max(b.start).min(a.end);
    start..a.end.min(b.end).max(start)
}
