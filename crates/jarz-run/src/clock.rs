//! Computing time over all sessions of a run.

use std::time::Instant;

/// Time of earlier sessions plus time since this one began.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    earlier: f64,
    start: Instant,
}

impl Clock {
    /// Starts now, with what earlier sessions took.
    pub fn new(earlier: f64) -> Self {
        Clock { earlier, start: Instant::now() }
    }

    /// Seconds in all.
    pub fn seconds(&self) -> f64 {
        self.earlier + self.start.elapsed().as_secs_f64()
    }
}
