//! What an annealing found.

use super::AnnealingError;
use crate::estimate::{Families, Measured};
use crate::walkers::Walkers;

/// One `t` of an annealing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rung {
    /// Share of `f` in the energy.
    pub t: f64,
    /// Time step of the moves.
    pub h: f64,
    /// ESS after reweighting, before resampling.
    pub ess: f64,
    /// Mean acceptance of the moves.
    pub acceptance: f64,
    /// Whether the walkers were resampled.
    pub resampled: bool,
}

/// The model as annealing found it.
#[derive(Clone, Debug, PartialEq)]
pub struct Annealed<T> {
    /// `log Z` of the model.
    pub log_z: Measured,
    /// Effective fraction of the walkers at the end.
    pub ess: f64,
    /// Walkers at the model, with log-weights, ancestors and the model's energies and gradients.
    pub walkers: Walkers<T>,
    /// Their normalised weights.
    pub weights: Vec<f64>,
    /// How it went.
    pub trace: Vec<Rung>,
}

impl<T> Annealed<T> {
    /// The model's mean of something that is known for every walker, with its error by ancestry.
    pub fn mean(&self, f: impl Fn(usize) -> f64) -> Measured {
        Families::new(&self.walkers.ancestors, &self.weights).mean(f)
    }

    /// Masses of classes: `probabilities` has a row of `classes` numbers per walker, how likely it belongs to each.
    pub fn masses(&self, probabilities: &[f64], classes: usize) -> Result<Vec<Measured>, AnnealingError> {
        let n = self.weights.len();
        if classes == 0 || probabilities.len() != n * classes {
            return Err(AnnealingError::Settings(format!(
                "{} probabilities do not fit {n} walkers and {classes} classes",
                probabilities.len()
            )));
        }
        if let Some(at) = probabilities.iter().position(|p| !p.is_finite()) {
            let (t, walker, what) = (1.0, (at / classes) as u64, "a class probability");
            return Err(AnnealingError::Diverged { t, walker, what });
        }
        Ok((0..classes).map(|k| self.mean(|i| probabilities[i * classes + k])).collect())
    }

    /// The ladder that was climbed, for [`super::Settings::ladder`].
    pub fn ladder(&self) -> Vec<(f64, f64)> {
        self.trace.iter().map(|r| (r.t, r.h)).collect()
    }
}
