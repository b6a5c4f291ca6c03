//! Estimates at the present state, as [`jarz::Trainer::estimates`] makes them.

use crate::burn::trainer::DeviceTrainer;
use crate::burn::transfer::{Trouble, numbers};
use burn_tensor::Tensor;
use jarz::estimate::add_errors;
use jarz::weights::{WeightSums, normalise};
use jarz::{Error, Estimates, Families, Measured};

/// What the data says to the model.
#[derive(Clone, Copy)]
pub(crate) struct DataTerm {
    energy: Measured,
    gradient_norm: f64,
}

impl DeviceTrainer {
    /// Mean energy of all data, and the norm of the direction it makes.
    fn data_term(&self) -> Result<DataTerm, Trouble> {
        let model = self.model();
        let (f, gradient_norm) = match &self.average {
            // The data's term is not that of the parameters that move.
            Some(_) => {
                let f = self.data.pieces().iter().map(|piece| self.energy.values(model, piece));
                (f.collect::<Vec<_>>(), self.last[1])
            }
            None => {
                let (f, of_data) = self.data_gradient(model, self.data.pieces());
                let of_walkers = self.driving.gradient.clone().unwrap_or_else(|| of_data.zeros_like());
                (f, numbers(self.optimizer.norm(&(of_walkers - of_data)))?[0])
            }
        };
        let f = numbers(Tensor::cat(f, 0))?;
        let n = f.len() as f64;
        let energies = || f.iter().zip(&self.data.half_squares).map(|(f, base)| f + base);
        let mean = energies().sum::<f64>() / n;
        let variance = energies().map(|u| (u - mean).powi(2)).sum::<f64>() / n;
        if !mean.is_finite() {
            let what = "mean energy of the data";
            return Err(Error::DivergedDirection { iteration: self.iteration, what }.into());
        }
        Ok(DataTerm {
            energy: Measured { value: mean, std_error: Some((variance / n).sqrt()) },
            gradient_norm,
        })
    }

    pub(crate) fn estimate(&mut self) -> Result<Estimates, Trouble> {
        let data = match self.full_term {
            Some(term) => term,
            None => *self.full_term.insert(self.data_term()?),
        };
        let (judges, weighted) = (self.judges(), self.algorithm.is_weighted());
        let book = &judges.book;
        let log_weights = judges.log_weights()?;
        let sums = WeightSums::of(&log_weights);
        let p = normalise(&log_weights);
        let families = Families::new(&book.ancestors, &p);
        let log_z = book.log_z.filter(|_| weighted).map(|z| Measured {
            value: z + sums.log_mean(),
            std_error: Some(families.log_z_std_error(self.scheme, book.resamplings)),
        });
        let log_z_exact = self.log_z_exact()?;
        let beyond = data.energy.value + self.log_det;
        Ok(Estimates {
            iteration: self.iteration,
            log_z,
            driving_log_z: match (&self.witnesses, self.driving.book.log_z) {
                (Some(_), Some(z)) => Some(z + WeightSums::of(&self.driving.log_weights()?).log_mean()),
                _ => None,
            },
            driving_ess: self.witnesses.as_ref().map(|_| self.driving.sums.ess()),
            log_z_exact,
            data_energy: data.energy,
            cross_entropy: log_z.map(|z| Measured {
                value: z.value + beyond,
                std_error: add_errors(z.std_error, data.energy.std_error),
            }),
            cross_entropy_exact: log_z_exact.map(|z| z + beyond),
            kl: None,
            kl_exact: None,
            ess: sums.ess(),
            weight_entropy: sums.entropy(),
            acceptance: Some(self.last[0]).filter(|a| a.is_finite()),
            step_size: self.step_size,
            gradient_norm: data.gradient_norm,
            step_scale: self.last[2],
            resamplings: book.resamplings,
            distinct_ancestors: families.count(),
            masses: None,
            means: None,
            walker_masses: None,
        })
    }

    /// That of the base, as long as the network vanishes.
    fn log_z_exact(&self) -> Result<Option<f64>, Trouble> {
        let last = numbers(self.energy.network.last_layer(self.model()))?;
        Ok(last
            .iter()
            .all(|v| *v == 0.0)
            .then_some(0.5 * self.data.dim() as f64 * std::f64::consts::TAU.ln()))
    }
}
