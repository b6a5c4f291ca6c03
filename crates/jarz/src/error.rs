//! What can go wrong, said so that the reader knows what to do.

/// Errors of the library.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// A walker's energy or weight is not a number any more.
    #[error(
        "the run diverged at iteration {iteration}: {what} of walker {walker} is not finite. \
         Take a smaller kernel step or learning rate, clip the drift, or set a trust region"
    )]
    Diverged {
        /// The iteration.
        iteration: u64,
        /// What is not finite.
        what: &'static str,
        /// Which walker.
        walker: u64,
    },
    /// The direction of descent is not a number any more.
    #[error(
        "the run diverged at iteration {iteration}: the {what} is not finite. \
         Take a smaller learning rate or set a trust region"
    )]
    DivergedDirection {
        /// The iteration.
        iteration: u64,
        /// What is not finite.
        what: &'static str,
    },
    /// Parts that do not fit together.
    #[error("{0}")]
    Setup(String),
    /// The threads could not be started.
    #[error("cannot start {threads} threads: {reason}; ask for fewer")]
    Threads {
        /// How many.
        threads: usize,
        /// Why not.
        reason: String,
    },
    /// An observer or checkpoint failed.
    #[error("{0}")]
    Part(String),
}
