//! What can go wrong with a device, said with the alternatives.

/// Errors of this crate.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// A name that is no device.
    #[error("there is no device '{name}'; {known}, and 'jarz devices' lists those that are there")]
    Unknown {
        /// What was asked for.
        name: String,
        /// Names that exist.
        known: String,
    },
    /// A device this program was built without.
    #[error(
        "this program was built without '{name}': build it with 'cargo build --release --features {feature}', \
         or train without --device on the processor ('jarz devices' lists what there is)"
    )]
    NotCompiled {
        /// The device.
        name: String,
        /// The cargo feature it needs.
        feature: &'static str,
    },
    /// A device that is not there, or does not start.
    #[error(
        "the device '{name}' cannot be used: {reason}\n\
         choose one that 'jarz devices' lists, install its driver, or train without --device on the processor"
    )]
    Missing {
        /// The device.
        name: String,
        /// What its driver says.
        reason: String,
    },
    /// Something that devices do not do.
    #[error(
        "{key} = {value} is not possible on a device: {instead}, or train without --device on the processor"
    )]
    Unsupported {
        /// Dotted key of the configuration.
        key: &'static str,
        /// Its value.
        value: String,
        /// What to change.
        instead: &'static str,
    },
    /// More than the device can hold.
    #[error(
        "{what} takes {needed:.1} MiB on the device, which allows {limit:.1} MiB in one piece: {instead}"
    )]
    TooLarge {
        /// What it is.
        what: String,
        /// Its size in MiB.
        needed: f64,
        /// The limit in MiB.
        limit: f64,
        /// What to change.
        instead: &'static str,
    },
    /// The device gave up while it worked.
    #[error(
        "the device '{name}' failed: {reason}\n\
         if its memory is full, take fewer walkers (walkers.count), a smaller network or another device; \
         the run can go on from its last checkpoint with 'jarz resume', there or on the processor"
    )]
    Failed {
        /// The device.
        name: String,
        /// What its driver says.
        reason: String,
    },
}

impl From<Error> for jarz_run::RunError {
    fn from(e: Error) -> Self {
        jarz_run::RunError::Engine(Box::new(e))
    }
}
