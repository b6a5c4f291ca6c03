//! A general Gaussian, `U(x) = (x - mean)' P (x - mean) / 2`: everything about it is known in closed form.

use super::{Energy, Exact, ParamGroup, PerWalker, Stratification};
use crate::random::{Purpose, Random};
use crate::real::Real;
use std::ops::Range;

/// Gaussian with trained mean and precision matrix. The parameters are the mean and the full precision
/// matrix row by row; `U` sees only its symmetric part.
#[derive(Clone, Debug, PartialEq)]
pub struct Gaussian {
    dim: usize,
    theta: Vec<f64>,
}

impl Gaussian {
    /// From a mean and a precision matrix (row-major, `dim * dim`). `None` if the lengths do not fit.
    pub fn new(mean: &[f64], precision: &[f64]) -> Option<Self> {
        let dim = mean.len();
        (dim > 0 && precision.len() == dim * dim).then(|| Gaussian { dim, theta: [mean, precision].concat() })
    }

    /// The mean.
    pub fn mean(&self) -> &[f64] {
        &self.theta[..self.dim]
    }

    fn precision(&self, i: usize, j: usize) -> f64 {
        let at = |i: usize, j: usize| self.theta[self.dim + i * self.dim + j];
        0.5 * (at(i, j) + at(j, i))
    }

    /// Lower Cholesky factor of the precision; `None` if it is not positive definite.
    fn cholesky(&self) -> Option<Vec<f64>> {
        let d = self.dim;
        let mut l = vec![0.0; d * d];
        for i in 0..d {
            for j in 0..=i {
                let dot: f64 = (0..j).map(|k| l[i * d + k] * l[j * d + k]).sum();
                let rest = self.precision(i, j) - dot;
                if i == j {
                    if rest.is_nan() || rest <= 0.0 {
                        return None;
                    }
                    l[i * d + i] = rest.sqrt();
                } else {
                    l[i * d + j] = rest / l[j * d + j];
                }
            }
        }
        Some(l)
    }

    /// Covariance matrix, row-major; `None` if the precision is not positive definite.
    pub fn covariance(&self) -> Option<Vec<f64>> {
        let d = self.dim;
        let l = self.cholesky()?;
        let mut out = vec![0.0; d * d];
        for c in 0..d {
            let mut e = vec![0.0; d];
            e[c] = 1.0;
            for i in 0..d {
                let dot: f64 = (0..i).map(|k| l[i * d + k] * e[k]).sum();
                e[i] = (e[i] - dot) / l[i * d + i];
            }
            back_substitute(&l, d, &mut e);
            for i in 0..d {
                out[i * d + c] = e[i];
            }
        }
        Some(out)
    }
}

/// Solves `L' y = v` in place.
fn back_substitute(l: &[f64], d: usize, v: &mut [f64]) {
    for i in (0..d).rev() {
        let dot: f64 = (i + 1..d).map(|k| l[k * d + i] * v[k]).sum();
        v[i] = (v[i] - dot) / l[i * d + i];
    }
}

impl<T: Real> Energy<T> for Gaussian {
    type Workspace = ();

    fn dim(&self) -> usize {
        self.dim
    }

    fn groups(&self) -> Vec<ParamGroup> {
        let d = self.dim;
        vec![ParamGroup::new("mean", 0..d), ParamGroup::new("precision", d..d + d * d)]
    }

    fn params(&self) -> &[f64] {
        &self.theta
    }

    fn set_params(&mut self, theta: &[f64]) {
        self.theta.copy_from_slice(theta);
    }

    fn energy_and_gradient(&self, x: &[T], u: &mut [f64], g: &mut [T], _: &mut ()) {
        let d = self.dim;
        for (n, row) in x.chunks_exact(d).enumerate() {
            u[n] = 0.0;
            for i in 0..d {
                let pull: f64 =
                    (0..d).map(|j| self.precision(i, j) * (row[j].to_f64() - self.theta[j])).sum();
                u[n] += 0.5 * pull * (row[i].to_f64() - self.theta[i]);
                g[n * d + i] = T::from_f64(pull);
            }
        }
    }

    fn add_param_gradient(&self, x: &[T], weights: &[f64], out: &mut [f64], _: &mut ()) {
        let p = self.theta.len();
        let mut rows = vec![0.0; weights.len() * p];
        self.param_gradients(x, &mut rows);
        for (w, g) in weights.iter().zip(rows.chunks_exact(p)) {
            for j in 0..p {
                out[j] += w * g[j];
            }
        }
    }

    fn exact(&self) -> Option<&dyn Exact<T>> {
        self.cholesky().map(|_| self as &dyn Exact<T>)
    }

    fn per_walker(&self) -> Option<&dyn PerWalker<T>> {
        Some(self)
    }
}

impl<T: Real> Exact<T> for Gaussian {
    fn log_z(&self) -> f64 {
        let d = self.dim;
        let Some(l) = self.cholesky() else { return f64::NAN };
        let half_log_det: f64 = (0..d).map(|i| l[i * d + i].ln()).sum();
        0.5 * d as f64 * std::f64::consts::TAU.ln() - half_log_det
    }

    fn sample(&self, ids: Range<u64>, _: u64, _: Stratification, random: &Random, out: &mut [T]) {
        let d = self.dim;
        let Some(l) = self.cholesky() else { return out.fill(T::from_f64(f64::NAN)) };
        let mut xi = vec![0.0f64; d];
        for (id, row) in ids.zip(out.chunks_exact_mut(d)) {
            random.normals(0, id, Purpose::Start, &mut xi);
            back_substitute(&l, d, &mut xi);
            for j in 0..d {
                row[j] = T::from_f64(self.theta[j] + xi[j]);
            }
        }
    }
}

impl<T: Real> PerWalker<T> for Gaussian {
    fn param_gradients(&self, x: &[T], out: &mut [f64]) {
        let d = self.dim;
        for (row, g) in x.chunks_exact(d).zip(out.chunks_exact_mut(d + d * d)) {
            for i in 0..d {
                let di = row[i].to_f64() - self.theta[i];
                g[i] = 0.0;
                for j in 0..d {
                    let dj = row[j].to_f64() - self.theta[j];
                    g[i] -= self.precision(i, j) * dj;
                    g[d + i * d + j] = 0.5 * di * dj;
                }
            }
        }
    }
}
