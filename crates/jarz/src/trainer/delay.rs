//! Directions that wait before they are followed.
//!
//! A direction that is followed at once raises the energy where its walkers stand, and weighs them by that: the self-interaction. With `P` parameters
//! that take part and `N` walkers it costs each of them about `P / N` nats while the parameters learn, more than anything else in a run if `P > N`, and not the
//! same in every mode. If walkers first move on for as long as they take to forget where they were, the step that they caused is one that others might have caused. What
//! they do not forget, which mode they are in, concerns few of the parameters.

use std::collections::VecDeque;

/// The directions of the last so many iterations, the oldest first.
#[derive(Debug)]
pub(super) struct Delay {
    iterations: usize,
    waiting: VecDeque<Vec<f64>>,
}

impl Delay {
    pub fn new(iterations: usize) -> Self {
        Delay { iterations, waiting: VecDeque::with_capacity(iterations + 1) }
    }

    /// Takes the direction of this iteration and puts the one whose turn it is in its place; false if there is none yet.
    pub fn pass(&mut self, direction: &mut Vec<f64>) -> bool {
        if self.waiting.len() < self.iterations {
            self.waiting.push_back(direction.clone());
            return false;
        }
        if let Some(mut oldest) = self.waiting.pop_front() {
            std::mem::swap(direction, &mut oldest);
            self.waiting.push_back(oldest);
        }
        true
    }

    /// How many directions have been followed before iteration `k`.
    pub fn since(&self, k: u64) -> u64 {
        k.saturating_sub(self.iterations as u64)
    }

    /// For a checkpoint: one after the other.
    pub fn to_list(&self) -> Vec<f64> {
        self.waiting.iter().flatten().copied().collect()
    }

    /// Whether a list can be what waits after some iterations.
    pub fn fits(&self, list: &[f64], params: usize, iteration: u64) -> bool {
        list.len() as u64 == params as u64 * iteration.min(self.iterations as u64)
    }

    /// From a checkpoint.
    pub fn restore(&mut self, list: &[f64], params: usize) {
        self.waiting = list.chunks(params.max(1)).map(<[f64]>::to_vec).collect();
    }
}
