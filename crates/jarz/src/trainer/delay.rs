//! Directions that wait before they are followed.
//!
//! A direction that is followed at once raises the energy where its walkers stand, and weighs them by that: the self-interaction. With `P` parameters
//! that take part and `N` walkers it costs each of them about `P / N` nats while the parameters learn, more than anything else in a run if `P > N`, and not the
//! same in every mode. If walkers first move on for as long as they take to forget where they were, the step that they caused is one that others might have caused. What
//! they do not forget, which mode they are in, concerns few of the parameters.

use crate::kernel::{Kernel, KernelKind};
use std::collections::VecDeque;

/// Most directions that may wait.
const MOST: usize = 1000;

/// Directions that wait, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Delay {
    waiting: VecDeque<Vec<f64>>,
    /// Directions that have been followed.
    followed: u64,
}

/// Iterations in which walkers move on for `time`, if that is not too long. A step of momentum takes `sqrt(2 h)`, one of overdamped Langevin dynamics `h`.
pub(super) fn iterations(time: f64, kernel: &Kernel, h: f64) -> Option<usize> {
    let step = if kernel.kind == KernelKind::Ghmc { (2.0 * h).sqrt() } else { h };
    let wait = (time / (step * kernel.steps as f64)).ceil();
    (wait <= MOST as f64).then_some(wait as usize)
}

impl Delay {
    /// Takes the direction of this iteration and puts the one that has waited for `wait` iterations in its place; false if there is none yet. As walkers slow down, directions
    /// wait longer, and now and then none is followed; as they speed up, two are followed by their mean.
    pub fn pass(&mut self, direction: &mut Vec<f64>, wait: Option<usize>) -> bool {
        let wait = wait.unwrap_or(MOST);
        if self.waiting.len() < wait {
            self.waiting.push_back(direction.clone());
            return false;
        }
        if let Some(mut oldest) = self.waiting.pop_front() {
            std::mem::swap(direction, &mut oldest);
            self.waiting.push_back(oldest);
        }
        if self.waiting.len() > wait
            && let Some(next) = self.waiting.pop_front()
        {
            direction.iter_mut().zip(next).for_each(|(d, n)| *d = 0.5 * (*d + n));
        }
        self.followed += 1;
        true
    }

    /// How many directions have been followed before the last one.
    pub fn followed(&self) -> u64 {
        self.followed.saturating_sub(1)
    }

    /// For a checkpoint: what waits, one after the other, behind the number of directions followed.
    pub fn to_list(&self) -> Vec<f64> {
        let all = self.waiting.iter().flatten();
        [self.followed as f64].iter().chain(all).copied().collect()
    }

    /// From a checkpoint; false if it cannot be one.
    pub fn restore(&mut self, list: &[f64], params: usize) -> bool {
        let Some((followed, waiting)) = list.split_first() else { return false };
        let fits = waiting.len().is_multiple_of(params) && *followed >= 0.0 && followed.fract() == 0.0;
        if fits {
            self.followed = *followed as u64;
            self.waiting = waiting.chunks(params).map(<[f64]>::to_vec).collect();
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_take_turns_also_if_the_wait_changes() {
        let mut delay = Delay::default();
        // (direction given, wait) and what is followed, if anything.
        let turns = [
            (1.0, 2, None),
            (2.0, 2, None),
            (3.0, 2, Some(1.0)),
            (4.0, 3, None),
            (5.0, 3, Some(2.0)),
            (6.0, 2, Some(3.5)),
            (7.0, 2, Some(5.0)),
            (8.0, 0, Some(6.5)),
            (9.0, 0, Some(8.5)),
            (10.0, 0, Some(10.0)),
        ];
        for (given, wait, expected) in turns {
            let mut direction = vec![given];
            let followed = delay.pass(&mut direction, Some(wait));
            assert_eq!(followed.then_some(direction[0]), expected, "given {given}");
        }
        assert_eq!(delay.followed(), 6);
    }

    #[test]
    fn time_is_that_of_the_kernel() {
        let momentum = Kernel::ghmc(1.0);
        assert_eq!(iterations(2.0, &momentum, 0.005), Some(20));
        assert_eq!(iterations(2.0, &Kernel::mala(), 0.005), Some(400));
        assert_eq!(iterations(2.0, &Kernel { steps: 4, ..Kernel::mala() }, 0.005), Some(100));
        assert_eq!(iterations(2.0, &Kernel::mala(), 0.001), None);
    }

    #[test]
    fn what_waits_can_be_kept() {
        let mut delay = Delay::default();
        for k in 0..5 {
            delay.pass(&mut vec![k as f64, -1.0], Some(3));
        }
        let mut other = Delay::default();
        assert!(other.restore(&delay.to_list(), 2));
        assert_eq!((other.waiting, other.followed), (delay.waiting, 2));
        let mut other = Delay::default();
        for bad in [&[][..], &[1.0, 2.0], &[-1.0], &[0.5], &[f64::NAN]] {
            assert!(!other.restore(bad, 2), "{bad:?}");
        }
    }
}
