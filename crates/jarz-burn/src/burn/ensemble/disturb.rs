//! Walkers put elsewhere between iterations: the few whose turn it is come to the processor and go back.

use super::{Ensemble, places};
use crate::burn::energy::{DeviceEnergy, take};
use crate::burn::network::Theta;
use crate::burn::transfer::{Trouble, indices, rows, singles};
use burn_tensor::Tensor;
use jarz::Disturbance;

impl Ensemble {
    /// Lets every walker be disturbed. Energies, and gradients where they are kept, are those of the new positions; the sums stay those of the
    /// walkers as the kernel left them.
    pub fn disturb(
        &mut self,
        by: &dyn Disturbance<f32>,
        energy: &DeviceEnergy,
        theta: &Theta,
        iteration: u64,
    ) -> Result<(), Trouble> {
        let (random, n, dim) = (self.noise.random, self.book.len(), self.x.dims()[1]);
        let chosen: Vec<u64> = (0..n as u64).filter(|id| by.chooses(&random, iteration, *id)).collect();
        if chosen.is_empty() {
            return Ok(());
        }
        let there = indices(chosen.iter().copied(), &energy.device);
        let mut positions = singles(self.x.clone().select(0, there))?;
        for (id, position) in chosen.iter().zip(positions.chunks_exact_mut(dim)) {
            by.disturb(&random, iteration, *id, position);
        }
        let x = rows(positions, dim, &energy.device);
        let places = places(n, &chosen, &energy.device);
        if let Some(g) = self.g.take() {
            let passes = energy.blocks(chosen.len()).map(|rows| energy.pass(theta, take(&x, &rows)).g);
            let together = std::iter::once(g).chain(passes).collect();
            self.g = Some(Tensor::cat(together, 0).select(0, places.clone()));
        }
        let f = energy.values(theta, &x);
        self.f = Tensor::cat(vec![self.f.clone(), f], 0).select(0, places.clone());
        self.x = Tensor::cat(vec![self.x.clone(), x], 0).select(0, places);
        Ok(())
    }
}
