//! What goes between ranks, counted by what it is for.

use std::sync::atomic::{AtomicU64, Ordering};

/// What bytes are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// Weights and weighted parameter gradients.
    Sums,
    /// The data's parameter gradients, and points of a batch that another rank has.
    Data,
    /// Sums of weights for resampling, and weights of walkers at the edges.
    Draws,
    /// Walkers that change rank.
    Walkers,
    /// Estimates for the log.
    Estimates,
    /// The trust region and the leave-one-out correction.
    Steps,
    /// Whether to stop or to keep a state.
    Control,
    /// States to be kept.
    States,
}

impl Topic {
    /// All of them.
    pub const ALL: [Topic; 8] = [
        Topic::Sums,
        Topic::Data,
        Topic::Draws,
        Topic::Walkers,
        Topic::Estimates,
        Topic::Steps,
        Topic::Control,
        Topic::States,
    ];

    /// Name used in output.
    pub fn name(self) -> &'static str {
        match self {
            Topic::Sums => "sums",
            Topic::Data => "data",
            Topic::Draws => "draws",
            Topic::Walkers => "walkers",
            Topic::Estimates => "estimates",
            Topic::Steps => "steps",
            Topic::Control => "control",
            Topic::States => "states",
        }
    }
}

/// Bytes and messages that a rank received from others.
#[derive(Debug, Default)]
pub struct Traffic {
    counts: [[AtomicU64; 2]; 8],
}

impl Traffic {
    pub(super) fn count(&self, topic: Topic, bytes: usize, messages: usize) {
        let [b, m] = &self.counts[topic as usize];
        b.fetch_add(bytes as u64, Ordering::Relaxed);
        m.fetch_add(messages as u64, Ordering::Relaxed);
    }

    /// Bytes received so far.
    pub fn bytes(&self, topic: Topic) -> u64 {
        self.counts[topic as usize][0].load(Ordering::Relaxed)
    }

    /// Messages received so far.
    pub fn messages(&self, topic: Topic) -> u64 {
        self.counts[topic as usize][1].load(Ordering::Relaxed)
    }
}
