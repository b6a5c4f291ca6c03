//! Walkers put elsewhere between iterations by something that is no kernel (data augmentation): only for walkers without weights.

use super::Sampler;
use crate::energy::Energy;
use crate::kernel::KernelKind;
use crate::random::Random;
use crate::real::Real;

/// Something that may put walkers elsewhere between iterations. What it does to a walker must follow from the random numbers at the address of
/// iteration and walker alone, so that runs do not depend on threads and can be resumed.
pub trait Disturbance<T>: std::fmt::Debug + Send + Sync {
    /// Whether it is walker `id`'s turn.
    fn chooses(&self, random: &Random, iteration: u64, id: u64) -> bool;
    /// Changes the position of walker `id`, whose turn it is, in place.
    fn disturb(&self, random: &Random, iteration: u64, id: u64, position: &mut [T]);
}

impl<T: Real, E: Energy<T>> Sampler<T, E> {
    /// Lets every walker be disturbed. Energies, and gradients where they are kept, are those of the new positions; the sums stay those of the
    /// walkers as the kernel left them. An energy that is not finite shows in the next advance.
    pub(crate) fn disturb(&mut self, by: &dyn Disturbance<T>, energy: &E, iteration: u64) {
        let (random, dim, kept) = (self.random, self.walkers.dim, self.kept());
        let momentum = self.kernel.kind == KernelKind::Ghmc;
        self.each_chunk(|fused, chunk, scratch| {
            for i in 0..chunk.u.len() {
                let (x, id) = (&mut chunk.x[i * dim..(i + 1) * dim], (chunk.first + i) as u64);
                if !by.chooses(&random, iteration, id) {
                    continue;
                }
                by.disturb(&random, iteration, id, x);
                let (u, g) = (&mut chunk.u[i..i + 1], &mut chunk.g[i * kept..(i + 1) * kept]);
                match fused {
                    Some(fused) => (fused.evaluate)(energy, x, u, g, &mut scratch.energy),
                    None if g.is_empty() || momentum => energy.energy(x, u, &mut scratch.energy),
                    None => energy.energy_and_gradient(x, u, g, &mut scratch.energy),
                }
            }
        });
    }
}
