//! What the processor learns of the ensemble, and how it comes back.

use super::{Ensemble, Settings};
use crate::burn::energy::{DeviceEnergy, total};
use crate::burn::network::Theta;
use crate::burn::transfer::{Trouble, indices, numbers, singles, vector};
use burn_tensor::Tensor;
use jarz::Walkers;
use jarz::weights::WeightSums;

impl Ensemble {
    /// Weighted variance of `U_to - U` over some walkers: how far one parameter step spreads the log-weights.
    pub fn spread(&self, energy: &DeviceEnergy, to: &Theta, rows: &[u64]) -> Result<f64, Trouble> {
        let at = indices(rows.iter().copied(), &energy.device);
        let change =
            energy.values(to, &self.x.clone().select(0, at.clone())) - self.f.clone().select(0, at.clone());
        let w = self.a.clone().select(0, at).exp();
        let sums = [w.clone(), w.clone() * change.clone(), w * change.square()].map(total).to_vec();
        let sums = numbers(Tensor::cat(sums, 0))?;
        let [w, m, s] = sums[..] else { return Ok(f64::NAN) };
        Ok((s / w - (m / w) * (m / w)).max(0.0))
    }

    /// The walkers as the processor knows them.
    pub fn download(&self) -> Result<Walkers<f32>, Trouble> {
        let [n, dim] = self.x.dims();
        let positions = singles(self.x.clone())?;
        let f = numbers(self.f.clone())?;
        let half_squares =
            positions.chunks_exact(dim).map(|z| z.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() / 2.0);
        let gradients = match &self.g {
            Some(g) => singles(g.clone() + self.x.clone())?,
            None => Vec::new(),
        };
        debug_assert_eq!(f.len(), n);
        Ok(Walkers {
            dim,
            energies: half_squares.zip(f).map(|(base, f)| base + f).collect(),
            positions,
            gradients,
            log_weights: self.log_weights()?,
            ancestors: self.book.ancestors.clone(),
            log_z: self.book.log_z,
            resamplings: self.book.resamplings,
        })
    }

    /// The log-weights.
    pub fn log_weights(&self) -> Result<Vec<f64>, Trouble> {
        numbers(self.a.clone())
    }

    /// Whether walkers and sums are of an ensemble like this one.
    pub fn fits(&self, w: &Walkers<f32>, sums: &WeightSums) -> bool {
        let [n, dim] = self.x.dims();
        let kept = if self.g.is_some() { dim } else { 0 };
        [w.dim, w.positions.len(), w.gradients.len()] == [dim, n * dim, n * kept]
            && [w.energies.len(), w.log_weights.len(), w.ancestors.len()] == [n; 3]
            && sums.gradient.len() == self.gradient.as_ref().map_or(0, |g| g.dims()[0])
            && w.ancestors.is_sorted()
            && w.ancestors.last().is_some_and(|a| *a < n as u64)
    }

    /// The sums as a checkpoint has them.
    pub fn all_sums(&self) -> Result<WeightSums, Trouble> {
        let mean = match &self.gradient {
            Some(gradient) => numbers(gradient.clone())?,
            None => Vec::new(),
        };
        let gradient = mean.iter().map(|g| g * self.sums.sum).collect();
        Ok(WeightSums { gradient, ..self.sums.clone() })
    }

    /// The walkers and sums of a checkpoint in place of the present ones.
    pub fn restore(
        &mut self,
        energy: &DeviceEnergy,
        theta: &Theta,
        walkers: Walkers<f32>,
        sums: WeightSums,
    ) -> Result<(), Trouble> {
        let settings = Settings {
            kernel: self.kernel,
            scheme: self.scheme,
            batch: self.batch,
            noise: self.noise.clone(),
            drives: self.drives,
        };
        let gradient = sums.gradient.iter().map(|g| (g / sums.sum) as f32);
        let gradient = self.drives.then(|| vector(gradient, &energy.device));
        *self = Ensemble::new(walkers, energy, theta, settings)?;
        (self.gradient, self.sums) = (gradient, WeightSums { gradient: Vec::new(), ..sums });
        Ok(())
    }
}
