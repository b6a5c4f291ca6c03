//! Ranks: processes that share one ensemble and one data set.
//!
//! Every rank owns whole chunks of walkers and of data, in their order, knows the parameters, and does the same with them. What the parts
//! have to say of the whole is put together chunk by chunk, in the order of the chunks, so that it does not depend on how many ranks there are. A
//! [`Communicator`] carries the bytes; this module knows what they mean and counts them.

mod shard;
mod traffic;

pub use shard::Shard;
pub(crate) use shard::overlap;
pub use traffic::{Topic, Traffic};

use std::fmt;
use std::sync::Arc;

/// Carries bytes between ranks. All ranks make the same calls in the same order; a rank that cannot go on must end all of them.
pub trait Communicator: Send + Sync {
    /// This rank's number, from zero.
    fn rank(&self) -> usize;
    /// How many there are.
    fn size(&self) -> usize;
    /// Everybody's bytes in `all`, in the order of the ranks; `lengths` says how many come from each.
    fn all_gather(&self, mine: &[u8], lengths: &[usize], all: &mut [u8]);
    /// Sends messages to other ranks and receives one from each of those in `from`, whose lengths are known to both sides.
    fn exchange(&self, to: &[(usize, &[u8])], from: &mut [(usize, &mut [u8])]);
}

/// Numbers that may travel as their bytes.
///
/// # Safety
/// The type has no padding, and any bytes of its size are a value.
pub unsafe trait Plain: Copy + Default + Send + Sync + 'static {}
// SAFETY: numbers of a fixed size.
unsafe impl Plain for u8 {}
unsafe impl Plain for u64 {}
unsafe impl Plain for f32 {}
unsafe impl Plain for f64 {}

fn bytes<V: Plain>(values: &[V]) -> &[u8] {
    // SAFETY: plain numbers have no padding.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

fn bytes_mut<V: Plain>(values: &mut [V]) -> &mut [u8] {
    // SAFETY: plain numbers have no padding, and any bytes make one.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}

/// The ranks of a run: this process alone, or several that a [`Communicator`] connects.
#[derive(Clone, Default)]
pub struct Ranks {
    others: Option<Arc<dyn Communicator>>,
    traffic: Arc<Traffic>,
}

impl fmt::Debug for Ranks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} of {}", self.rank(), self.size())
    }
}

impl Ranks {
    /// This process and nobody else.
    pub fn alone() -> Self {
        Ranks::default()
    }

    /// Those that a communicator connects.
    pub fn new(communicator: Arc<dyn Communicator>) -> Self {
        let others = (communicator.size() > 1).then_some(communicator);
        Ranks { others, traffic: Arc::default() }
    }

    /// This rank's number.
    pub fn rank(&self) -> usize {
        self.others.as_ref().map_or(0, |c| c.rank())
    }

    /// How many there are.
    pub fn size(&self) -> usize {
        self.others.as_ref().map_or(1, |c| c.size())
    }

    /// Whether this is the rank that writes files and talks to the user.
    pub fn is_first(&self) -> bool {
        self.rank() == 0
    }

    /// Whether there is nobody else.
    pub fn is_alone(&self) -> bool {
        self.others.is_none()
    }

    /// What this rank has received from others so far.
    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// What all ranks have received so far, by topic: bytes and messages.
    pub fn traffic_of_all(&self) -> Vec<(Topic, u64, u64)> {
        let mine = Topic::ALL.map(|t| [self.traffic.bytes(t), self.traffic.messages(t)]);
        let all = self.gather_equal(Topic::Control, mine.as_flattened());
        let sum = |at: usize| all.iter().skip(at).step_by(2 * Topic::ALL.len()).sum();
        Topic::ALL.iter().enumerate().map(|(i, t)| (*t, sum(2 * i), sum(2 * i + 1))).collect()
    }

    /// What the first rank says, which alone may know.
    pub fn first_says(&self, mine: u64) -> u64 {
        self.gather_equal(Topic::Control, &[mine])[0]
    }

    /// Everybody's numbers, in the order of the ranks; `counts` says how many come from each.
    pub(crate) fn gather<V: Plain>(&self, topic: Topic, mine: &[V], counts: &[usize]) -> Vec<V> {
        let Some(others) = &self.others else { return mine.to_vec() };
        let lengths: Vec<usize> = counts.iter().map(|c| c * size_of::<V>()).collect();
        let mut all = vec![V::default(); counts.iter().sum()];
        others.all_gather(bytes(mine), &lengths, bytes_mut(&mut all));
        self.traffic.count(topic, lengths.iter().sum::<usize>() - size_of_val(mine), self.size() - 1);
        all
    }

    /// The same if everybody has equally many.
    pub(crate) fn gather_equal<V: Plain>(&self, topic: Topic, mine: &[V]) -> Vec<V> {
        self.gather(topic, mine, &vec![mine.len(); self.size()])
    }

    /// Messages to other ranks and from them; nothing is sent where there is nothing to say.
    pub(crate) fn exchange<V: Plain>(
        &self,
        topic: Topic,
        to: &[(usize, Vec<V>)],
        from: &[(usize, usize)],
    ) -> Vec<(usize, Vec<V>)> {
        let Some(others) = &self.others else { return Vec::new() };
        let mut received: Vec<(usize, Vec<V>)> = from
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|&(rank, count)| (rank, vec![V::default(); count]))
            .collect();
        let to: Vec<(usize, &[u8])> = to
            .iter()
            .filter(|(_, values)| !values.is_empty())
            .map(|(r, values)| (*r, bytes(values)))
            .collect();
        let mut into: Vec<(usize, &mut [u8])> =
            received.iter_mut().map(|(r, values)| (*r, bytes_mut(values))).collect();
        others.exchange(&to, &mut into);
        let length = into.iter().map(|(_, bytes)| bytes.len()).sum();
        self.traffic.count(topic, length, into.len());
        received
    }

    /// Whether any rank says so, for each of some questions.
    pub(crate) fn any<const N: usize>(&self, mine: [bool; N]) -> [bool; N] {
        if self.is_alone() {
            return mine;
        }
        let all = self.gather_equal(Topic::Control, &mine.map(u8::from));
        std::array::from_fn(|i| all.iter().skip(i).step_by(N).any(|b| *b != 0))
    }

    /// Whether all ranks have the same numbers.
    pub(crate) fn agree(&self, mine: &[u64]) -> bool {
        self.gather_equal(Topic::Control, mine).chunks(mine.len().max(1)).all(|theirs| theirs == mine)
    }

    /// Numbers of all chunks of all ranks, `per` of each, given those of this rank's chunks.
    pub(crate) fn of_chunks<V: Plain>(&self, topic: Topic, shard: &Shard, per: usize, mine: &[V]) -> Vec<V> {
        let counts: Vec<usize> = (0..self.size()).map(|r| shard.chunks_of(r).len() * per).collect();
        self.gather(topic, mine, &counts)
    }

    /// Long rows of numbers, one for each chunk, made one row by `fold` in the order of the chunks. The columns are shared out: each rank gets its
    /// columns of all chunks and folds them, and the results are put together.
    pub(crate) fn fold_chunks<'a>(
        &self,
        topic: Topic,
        shard: &Shard,
        width: usize,
        row: impl Fn(usize) -> &'a [f64],
        fold: impl FnOnce(&mut dyn Iterator<Item = &[f64]>, usize) -> Vec<f64>,
    ) -> Vec<f64> {
        let (me, size) = (self.rank(), self.size());
        let columns = |rank: usize| rank * width / size..(rank + 1) * width / size;
        let (mine, here) = (columns(me), shard.chunks_of(me).len());
        let slice = |rank: usize| -> Vec<f64> {
            let mut slice = Vec::with_capacity(here * columns(rank).len());
            (0..here).for_each(|c| slice.extend_from_slice(&row(c)[columns(rank)]));
            slice
        };
        let others = || (0..size).filter(|r| *r != me);
        let to: Vec<_> = others().map(|r| (r, slice(r))).collect();
        let from: Vec<_> = others().map(|r| (r, shard.chunks_of(r).len() * mine.len())).collect();
        let received = self.exchange(topic, &to, &from);
        let of_rank =
            |rank: usize| received.iter().find(|(r, _)| *r == rank).map_or(&[][..], |(_, rows)| rows);
        let mut rows = (0..size).flat_map(|rank| {
            let theirs = of_rank(rank);
            (0..shard.chunks_of(rank).len()).map(move |c| (rank == me, c, theirs))
        });
        let mut rows = rows.by_ref().map(|(own, c, theirs)| match own {
            true => &row(c)[mine.clone()],
            false => &theirs[c * mine.len()..(c + 1) * mine.len()],
        });
        let folded = fold(&mut rows, mine.len());
        let counts: Vec<usize> = (0..size).map(|r| columns(r).len()).collect();
        self.gather(topic, &folded, &counts)
    }

    /// Sums of long rows, one for each chunk, in the order of the chunks.
    pub(crate) fn sum_chunks(&self, topic: Topic, shard: &Shard, rows: &[f64], sums: &mut [f64]) {
        let width = sums.len();
        if width == 0 {
            return;
        }
        fn add(rows: &mut dyn Iterator<Item = &[f64]>, sums: &mut [f64]) {
            sums.fill(0.0);
            rows.for_each(|row| sums.iter_mut().zip(row).for_each(|(s, v)| *s += v));
        }
        if self.is_alone() {
            return add(&mut rows.chunks_exact(width), sums);
        }
        let row = |c: usize| &rows[c * width..(c + 1) * width];
        let fold = |rows: &mut dyn Iterator<Item = &[f64]>, width: usize| {
            let mut sums = vec![0.0; width];
            add(rows, &mut sums);
            sums
        };
        sums.copy_from_slice(&self.fold_chunks(topic, shard, width, row, fold));
    }
}
