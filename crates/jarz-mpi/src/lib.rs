//! One run on many machines: ranks of an MPI job carry its walkers.
//!
//! With the feature `mpi` this connects the processes that `mpirun` or `srun` started. Without it, it only notices that they were started
//! that way, since each of them would do the same run beside the others.

#[cfg(feature = "mpi")]
mod world;

#[cfg(feature = "mpi")]
pub use world::{Job, World};

#[cfg(not(feature = "mpi"))]
mod alone;

#[cfg(not(feature = "mpi"))]
pub use alone::Job;

/// Why there are no ranks.
#[derive(Debug, thiserror::Error)]
pub enum MpiError {
    /// Started by a launcher, but built without the feature.
    #[error(
        "this is one of {0} processes that were started together, but this program was built without MPI: each would do the whole run. \
         Build it with 'cargo build --release --features mpi', or start it once"
    )]
    NotBuilt(usize),
    /// The MPI library does not offer what is needed.
    #[error("MPI could not be started: {0}")]
    Start(&'static str),
}

/// Variables with which launchers tell a process how many there are (Open MPI; MPICH, Intel MPI and others).
const SIZES: [&str; 3] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS"];
/// Variables that say that there is a launcher, though not with how many processes.
#[cfg(feature = "mpi")]
const SIGNS: [&str; 2] = ["PMIX_RANK", "PMI_RANK"];

/// How many processes a launcher says it has started; none if there is no launcher.
fn launched() -> Option<usize> {
    let said = |name: &str| std::env::var(name).ok()?.parse::<usize>().ok();
    SIZES.iter().find_map(|name| said(name))
}

/// Threads for each of the ranks on a machine, if all of it is theirs.
pub fn threads_per_rank(cores: usize, allowed: usize, ranks_here: usize) -> usize {
    // A launcher that binds processes to cores has shared them out already.
    match allowed < cores {
        true => allowed,
        false => (cores / ranks_here.max(1)).max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::threads_per_rank;

    #[test]
    fn threads_are_shared_out_once() {
        assert_eq!(threads_per_rank(8, 8, 1), 8);
        assert_eq!(threads_per_rank(8, 8, 4), 2);
        assert_eq!(threads_per_rank(8, 8, 3), 2);
        assert_eq!(threads_per_rank(2, 2, 5), 1);
        assert_eq!(threads_per_rank(8, 2, 4), 2, "bound to two cores");
    }
}
