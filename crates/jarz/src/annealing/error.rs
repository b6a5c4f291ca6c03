//! What can go wrong with an annealing.

/// Errors of an annealing.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AnnealingError {
    /// Settings that cannot work.
    #[error("{0}")]
    Settings(String),
    /// A number is not finite any more.
    #[error(
        "the annealing diverged at t = {t}: {what} of walker {walker} is not finite. \
         Check that the model's energy is finite everywhere, and that the base covers it"
    )]
    Diverged {
        /// Where on the way from base (0) to model (1).
        t: f64,
        /// Which walker.
        walker: u64,
        /// What of it.
        what: &'static str,
    },
    /// Asked to stop.
    #[error("the annealing was stopped at t = {t}, before it reached the model at t = 1")]
    Stopped {
        /// How far it had come.
        t: f64,
    },
    /// Of the machinery around it.
    #[error(transparent)]
    Core(#[from] crate::error::Error),
}
