//! Sharing work over threads so that the result does not depend on how many there are.
//!
//! Work is cut into chunks whose size depends on the problem alone; each chunk has its own sums, merged in
//! the order of the chunks. Ranks of a cluster own whole chunks: same sums, same order.

mod team;

use crate::energy::Energy;
use crate::error::Error;
use crate::real::Real;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, OnceLock};
use team::Team;

/// Chunks an ensemble is cut into at most; large ones are cut into chunks of [`LARGE_CHUNK`] rows.
const MAX_CHUNKS: usize = 128;
/// Rows in the chunks of large ensembles.
const LARGE_CHUNK: usize = 8 * 1024;
/// Chunks it may always be cut into, however many parameters there are; more if they have more than [`SMALL_CHUNK`] rows.
const MIN_CHUNKS: usize = 16;
/// Rows in a chunk for which sums of many parameters are worth their memory, as long as all of them have no more than [`MOST_NUMBERS`].
const SMALL_CHUNK: usize = 256;
/// Numbers in the sums of all chunks that memory is spent on (half a gigabyte).
const MOST_NUMBERS: usize = 1 << 26;
/// Numbers in the sums of all chunks, one per parameter and chunk: they are merged one after the other.
const CHUNK_NUMBERS: usize = 1 << 20;
/// Data points in a chunk at least, for models that sum them up in a microsecond or two.
const FUSED_POINTS: usize = 512;
/// Bytes of one array of a block: small enough for a few arrays to stay in cache.
const BLOCK_BYTES: usize = 32 * 1024;

/// How rows are cut: blocks stay in cache, chunks are the units of parallel work and of summation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Rows in a block.
    pub block: usize,
    /// Rows in a chunk, a multiple of `block`.
    pub chunk: usize,
}

impl Layout {
    /// For `rows` walkers or data points of a model.
    pub fn new<T: Real>(energy: &impl Energy<T>, rows: usize) -> Self {
        let row_bytes = energy.dim() * size_of::<T>();
        let by_size = || (BLOCK_BYTES / row_bytes.max(1)).clamp(16, 256) / 16 * 16;
        let block = energy.rows_per_block().map_or_else(by_size, |rows| rows.max(1));
        let most = MAX_CHUNKS.max(rows / LARGE_CHUNK);
        let params = energy.params().len().max(1);
        let least = MIN_CHUNKS.max((rows / SMALL_CHUNK).min(MOST_NUMBERS / params)).min(most);
        let chunks = (CHUNK_NUMBERS / params).clamp(least, most);
        Layout { block, chunk: rows.div_ceil(chunks).next_multiple_of(block) }
    }

    /// For `rows` data points of a model: what is done with one of them may be so little that small chunks are not worth their sums.
    pub fn of_points<T: Real>(energy: &impl Energy<T>, rows: usize) -> Self {
        let Layout { block, chunk } = Layout::new(energy, rows);
        let least = if energy.fused().is_some() { FUSED_POINTS } else { 0 };
        Layout { block, chunk: chunk.max(least.next_multiple_of(block)) }
    }

    /// Number of chunks for `rows` rows.
    pub fn chunks(&self, rows: usize) -> usize {
        rows.div_ceil(self.chunk)
    }
}

/// Threads, each with scratch memory of its own.
pub struct Workers<S> {
    team: Option<Arc<Team>>,
    /// For work that shares itself out; its threads sleep otherwise. Made when it is first needed.
    pool: OnceLock<Option<rayon::ThreadPool>>,
    scratch: Vec<Mutex<S>>,
}

impl<S: Default + Send> Workers<S> {
    /// `threads` of them; 0 means as many as the machine has cores.
    pub fn new(threads: usize) -> Result<Self, Error> {
        let threads = match threads {
            0 => std::thread::available_parallelism().map_or(1, |n| n.get()),
            n => n,
        };
        let failed = |e: std::io::Error| Error::Threads { threads, reason: e.to_string() };
        let team = if threads > 1 { Some(Arc::new(Team::new(threads).map_err(failed)?)) } else { None };
        let scratch = (0..threads).map(|_| Mutex::new(S::default())).collect();
        Ok(Workers { team, pool: OnceLock::new(), scratch })
    }

    /// Takes the threads of others, who work in turns with these and are as many: threads that wait awake would be in each other's way.
    pub fn share_threads<O>(&mut self, others: &Workers<O>) {
        if self.scratch.len() == others.scratch.len() {
            self.team = others.team.clone();
        }
    }

    /// Runs `work` such that what it shares out goes to as many threads; it is told whether there are several.
    pub fn install<R: Send>(&self, work: impl FnOnce(bool) -> R + Send) -> R {
        let threads = self.scratch.len();
        // Without more threads the same comes out, only later.
        let make = || rayon::ThreadPoolBuilder::new().num_threads(threads).build().ok();
        match &self.team {
            Some(_) => match self.pool.get_or_init(make) {
                Some(pool) => pool.install(|| work(true)),
                None => work(false),
            },
            None => work(false),
        }
    }

    /// Runs `work` for every task number below `tasks`.
    pub fn run(&self, tasks: usize, work: impl Fn(usize, &mut S) + Sync) {
        let locked = |task: usize, me: usize| {
            // A poisoned lock means that another task panicked; its scratch is overwritten anyway.
            let mut scratch = self.scratch[me].lock().unwrap_or_else(|e| e.into_inner());
            work(task, &mut scratch)
        };
        match &self.team {
            Some(team) if tasks > 1 => team.run(tasks, &locked),
            _ => (0..tasks).for_each(|task| locked(task, 0)),
        }
    }
}

/// A slice cut into pieces of equal length (the last may be shorter), to be taken by tasks on any thread.
pub struct Pieces<'a, T> {
    start: *mut T,
    len: usize,
    piece: usize,
    slice: PhantomData<&'a mut [T]>,
}

// SAFETY: only disjoint pieces of the slice are handed out, each to one task.
unsafe impl<T: Send> Sync for Pieces<'_, T> {}

impl<'a, T> Pieces<'a, T> {
    /// Pieces of length `piece`.
    pub fn new(slice: &'a mut [T], piece: usize) -> Self {
        Pieces { start: slice.as_mut_ptr(), len: slice.len(), piece, slice: PhantomData }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.len.div_ceil(self.piece.max(1))
    }

    /// Piece `i`; empty beyond the last.
    ///
    /// # Safety
    /// No piece may be taken twice.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn take(&self, i: usize) -> &mut [T] {
        let from = (i * self.piece).min(self.len);
        let to = (from + self.piece).min(self.len);
        // SAFETY: within the slice, which is borrowed for as long as `self` lives; disjoint by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(from), to - from) }
    }
}
