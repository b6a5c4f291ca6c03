//! Base measures: where an annealing begins.

use super::AnnealingError;
use crate::data::Dataset;
use crate::random::{Purpose, Random};
use crate::real::{Real, WalkerIds};
use std::ops::Range;

/// A density `exp(-base(x)) / Z_0` that is sampled exactly and whose `log Z_0` is known.
pub trait BaseMeasure<T: Real>: Send + Sync {
    /// Dimension.
    fn dim(&self) -> usize;

    /// `log Z_0`.
    fn log_z(&self) -> f64;

    /// Independent samples for the walkers with these ids; numbers addressed with [`Purpose::AnnealStart`], so that they are not those
    /// a model was trained with.
    fn sample(&self, ids: Range<u64>, random: &Random, out: &mut [T]);

    /// `base(x_i)` and its gradient for every walker of a block.
    fn energy_and_gradient(&self, x: &[T], energy: &mut [f64], gradient: &mut [T]);
}

/// A Gaussian with independent coordinates: `base(x) = sum_j (x_j - m_j)^2 / (2 s_j^2)`.
#[derive(Clone, Debug, PartialEq)]
pub struct GaussianBase {
    mean: Vec<f64>,
    sigma: Vec<f64>,
}

impl GaussianBase {
    /// From means and widths of the coordinates.
    pub fn new(mean: Vec<f64>, sigma: Vec<f64>) -> Result<Self, AnnealingError> {
        let refuse = |text: String| Err(AnnealingError::Settings(text));
        if mean.is_empty() || mean.len() != sigma.len() {
            return refuse(format!("the base has {} means and {} widths", mean.len(), sigma.len()));
        }
        if let Some(m) = mean.iter().find(|m| !m.is_finite()) {
            return refuse(format!("a mean of the base is {m}; it must be a finite number"));
        }
        if let Some(s) = sigma.iter().find(|s| !(**s > 0.0 && s.is_finite())) {
            return refuse(format!("a width of the base is {s}; it must be positive"));
        }
        Ok(GaussianBase { mean, sigma })
    }

    /// `N(mean, sigma^2)`.
    pub fn isotropic(mean: Vec<f64>, sigma: f64) -> Result<Self, AnnealingError> {
        let widths = vec![sigma; mean.len()];
        GaussianBase::new(mean, widths)
    }

    /// `N(0, 1)`: the base of a model in whitened coordinates.
    pub fn standard(dim: usize) -> Self {
        GaussianBase { mean: vec![0.0; dim], sigma: vec![1.0; dim] }
    }

    /// Mean and widths of data, the widths multiplied by `widen`: a base narrower than the model would leave its tails to few walkers.
    /// A coordinate that hardly varies gets a thousandth of the typical width.
    pub fn fitted<T: Real>(data: &Dataset<T>, widen: f64) -> Result<Self, AnnealingError> {
        let (dim, n) = (data.dim(), data.len() as f64);
        let (mut mean, mut variance) = (vec![0.0; dim], vec![0.0; dim]);
        for row in data.values().chunks_exact(dim) {
            mean.iter_mut().zip(row).for_each(|(m, x)| *m += x.to_f64() / n);
        }
        for row in data.values().chunks_exact(dim) {
            for j in 0..dim {
                variance[j] += (row[j].to_f64() - mean[j]).powi(2) / n;
            }
        }
        let typical = (variance.iter().sum::<f64>() / dim as f64).sqrt();
        let least = if typical > 0.0 { 1e-3 * typical } else { 1.0 };
        GaussianBase::new(mean, variance.iter().map(|v| widen * v.sqrt().max(least)).collect())
    }

    /// Means of the coordinates.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// Widths of the coordinates.
    pub fn sigma(&self) -> &[f64] {
        &self.sigma
    }
}

impl<T: Real> BaseMeasure<T> for GaussianBase {
    fn dim(&self) -> usize {
        self.mean.len()
    }

    fn log_z(&self) -> f64 {
        let half_log_tau = 0.5 * std::f64::consts::TAU.ln();
        self.sigma.iter().map(|s| s.ln() + half_log_tau).sum()
    }

    fn sample(&self, ids: Range<u64>, random: &Random, out: &mut [T]) {
        let (dim, stride) = (self.mean.len(), T::noise_stride(self.mean.len()));
        let mut normals = vec![T::ZERO; ids.clone().count() * stride];
        random.normal_rows(0, Purpose::AnnealStart, WalkerIds::From(ids.start), dim, &mut normals);
        for (row, out) in normals.chunks_exact(stride).zip(out.chunks_exact_mut(dim)) {
            for j in 0..dim {
                out[j] = T::from_f64(self.mean[j] + self.sigma[j] * row[j].to_f64());
            }
        }
    }

    fn energy_and_gradient(&self, x: &[T], energy: &mut [f64], gradient: &mut [T]) {
        let dim = self.mean.len();
        for ((x, g), u) in x.chunks_exact(dim).zip(gradient.chunks_exact_mut(dim)).zip(energy) {
            *u = 0.0;
            for j in 0..dim {
                let scaled = (x[j].to_f64() - self.mean[j]) / self.sigma[j];
                *u += 0.5 * scaled * scaled;
                g[j] = T::from_f64(scaled / self.sigma[j]);
            }
        }
    }
}
