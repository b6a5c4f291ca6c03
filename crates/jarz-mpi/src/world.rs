//! The ranks of an MPI job.

use crate::{MpiError, SIGNS, launched, threads_per_rank};
use jarz::{Communicator, Ranks};
use mpi::Threading;
use mpi::datatype::PartitionMut;
use mpi::environment::Universe;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator as _, CommunicatorCollectives, Destination, Source};
use std::sync::Arc;

/// Bytes of a message; MPI counts in 32 bits.
const MESSAGE: usize = 1 << 30;

/// The ranks that were started together. MPI ends when this is dropped.
pub struct Job {
    ranks: Ranks,
    ranks_here: usize,
    universe: Option<Universe>,
}

impl Job {
    /// Connects to the other ranks, if a launcher has started any.
    pub fn connect() -> Result<Self, MpiError> {
        let signs = launched().is_some() || SIGNS.iter().any(|name| std::env::var_os(name).is_some());
        if !signs {
            return Ok(Job { ranks: Ranks::alone(), ranks_here: 1, universe: None });
        }
        let (universe, world) = World::connect()?;
        let ranks_here = world.0.split_shared(0).size() as usize;
        end_all_on_panic();
        let ranks = Ranks::new(Arc::new(world));
        Ok(Job { ranks, ranks_here, universe: Some(universe) })
    }

    /// The ranks.
    pub fn ranks(&self) -> Ranks {
        self.ranks.clone()
    }

    /// How many threads this rank should have, if it should not have all.
    pub fn threads(&self) -> Option<usize> {
        self.universe.as_ref()?;
        let allowed = std::thread::available_parallelism().map_or(1, |n| n.get());
        Some(threads_per_rank(cores().unwrap_or(allowed), allowed, self.ranks_here))
    }

    /// Ends all ranks at once.
    pub fn abort(&self, code: i32) {
        if let Some(universe) = &self.universe
            && self.ranks.size() > 1
        {
            universe.world().abort(code);
        }
    }
}

/// A rank that panics takes the others with it: they would wait for it for ever.
fn end_all_on_panic() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        report(info);
        SimpleCommunicator::world().abort(101);
    }));
}

/// Cores of the machine, where it says so.
fn cores() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    Some(text.lines().filter(|line| line.starts_with("processor")).count()).filter(|n| *n > 0)
}

/// All ranks of the job, as a [`Communicator`].
pub struct World(SimpleCommunicator);

// SAFETY: a handle of MPI, which was asked to be callable from any thread, one at a time; `Ranks` is only used by the thread that
// drives a run, or by one it waits for.
unsafe impl Send for World {}
unsafe impl Sync for World {}

impl Communicator for World {
    fn rank(&self) -> usize {
        self.0.rank() as usize
    }

    fn size(&self) -> usize {
        self.0.size() as usize
    }

    fn all_gather(&self, mine: &[u8], lengths: &[usize], all: &mut [u8]) {
        if all.len() > MESSAGE {
            return self.all_gather_large(mine, lengths, all);
        }
        let counts: Vec<i32> = lengths.iter().map(|l| *l as i32).collect();
        let displacements: Vec<i32> = counts
            .iter()
            .scan(0, |sum, count| {
                *sum += count;
                Some(*sum - count)
            })
            .collect();
        self.0.all_gather_varcount_into(mine, &mut PartitionMut::new(all, counts, displacements));
    }

    fn exchange(&self, to: &[(usize, &[u8])], from: &mut [(usize, &mut [u8])]) {
        mpi::request::scope(|scope| {
            let mut requests = Vec::new();
            for (rank, bytes) in from.iter_mut() {
                let source = self.0.process_at_rank(*rank as i32);
                requests.extend(bytes.chunks_mut(MESSAGE).map(|b| source.immediate_receive_into(scope, b)));
            }
            let mut sent = Vec::new();
            for (rank, bytes) in to {
                let target = self.0.process_at_rank(*rank as i32);
                sent.extend(bytes.chunks(MESSAGE).map(|b| target.immediate_send(scope, b)));
            }
            requests.into_iter().for_each(|r| _ = r.wait());
            sent.into_iter().for_each(|r| _ = r.wait());
        });
    }
}

impl World {
    /// Starts MPI, which ends when the universe is dropped.
    pub fn connect() -> Result<(Universe, Self), MpiError> {
        // Draws are made by a thread of the pool while the main thread waits for it: one at a time, not always the same.
        let (universe, threading) = mpi::initialize_with_threading(Threading::Serialized)
            .ok_or(MpiError::Start("it was started before"))?;
        if threading < Threading::Serialized {
            return Err(MpiError::Start("it cannot be called from more than one thread"));
        }
        let world = World(universe.world());
        Ok((universe, world))
    }

    /// More than MPI can count at once goes from everybody to everybody.
    fn all_gather_large(&self, mine: &[u8], lengths: &[usize], all: &mut [u8]) {
        let (me, size) = (self.rank(), lengths.len());
        let to: Vec<_> = (0..size).filter(|r| *r != me && !mine.is_empty()).map(|r| (r, mine)).collect();
        let mut from = Vec::new();
        let mut rest = all;
        for (rank, length) in lengths.iter().enumerate() {
            let (part, after) = rest.split_at_mut(*length);
            match rank == me {
                true => part.copy_from_slice(mine),
                false if part.is_empty() => {}
                false => from.push((rank, part)),
            }
            rest = after;
        }
        self.exchange(&to, &mut from);
    }
}
