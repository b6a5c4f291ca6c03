//! Data augmentation of walkers: what `walkers.augment` asks for, in the walkers' coordinates.

use crate::state::Scalar;
use jarz::{Disturbance, Energy, Random};
use jarz_data::Augmentation;

/// Augments walkers that are images.
pub(crate) struct AugmentWalkers<E> {
    /// Knows the coordinates; its parameters do not matter.
    pub energy: E,
    /// Height, width and channels.
    pub shape: [usize; 3],
    pub how: Augmentation,
}

impl<E> std::fmt::Debug for AugmentWalkers<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AugmentWalkers").field("shape", &self.shape).field("how", &self.how).finish()
    }
}

impl<T: Scalar, E: Energy<T>> Disturbance<T> for AugmentWalkers<E> {
    fn chooses(&self, random: &Random, iteration: u64, id: u64) -> bool {
        self.how.chooses(random, iteration, id)
    }

    fn disturb(&self, random: &Random, iteration: u64, id: u64, position: &mut [T]) {
        let Some(coordinates) = self.energy.coordinates() else {
            self.how.apply(random, iteration, id, self.shape, position);
            return;
        };
        let mut x = vec![T::ZERO; position.len()];
        coordinates.to_data(position, &mut x);
        self.how.apply(random, iteration, id, self.shape, &mut x);
        coordinates.to_walkers(&x, position);
    }
}
