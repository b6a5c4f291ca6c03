//! Fisher information of a few parameters, from gradients of single walkers.

use super::Sampler;
use crate::data::Dataset;
use crate::energy::Energy;
use crate::parallel::Pieces;
use crate::real::Real;

/// Walkers, and data points, that it is made from.
const OVER: usize = 1024;

impl<T: Real, E: Energy<T>> Sampler<T, E> {
    /// Covariance of `dU/dtheta_j` for the parameters `of`, row by row: the mean of that over the weighted walkers and of that over the data. At the end of a training the two are the same; before, a
    /// direction in which only one of them varies counts as well. From some thousand of each, here and there (neighbours may be relatives). For a sampler that has all walkers.
    pub(crate) fn fisher(&self, energy: &E, of: &[usize], data: &Dataset<T>) -> Vec<f64> {
        let w = &self.walkers;
        let walkers = covariance(&self.gradients(energy, of, &w.positions, |i| w.log_weights[i]), of.len());
        let data = covariance(&self.gradients(energy, of, data.values(), |_| 0.0), of.len());
        walkers.iter().zip(data).map(|(a, b)| 0.5 * (a + b)).collect()
    }

    /// For some of the rows of `x` the log-weight and the gradient.
    fn gradients(&self, energy: &E, of: &[usize], x: &[T], a: impl Fn(usize) -> f64 + Sync) -> Vec<f64> {
        let dim = self.walkers.dim;
        let every = (x.len() / dim / OVER).max(1);
        let chosen = (x.len() / dim).div_ceil(every);
        let stride = of.len() + 1;
        let mut samples = vec![0.0; chosen * stride];
        let share = chosen.div_ceil(32);
        let pieces = Pieces::new(&mut samples, share * stride);
        self.workers.run(pieces.count(), |c, scratch| {
            // SAFETY: every piece is taken once, by the task of its number.
            let piece = unsafe { pieces.take(c) };
            scratch.fit(1, dim);
            let mut gradient = vec![0.0; energy.params().len()];
            for (i, sample) in piece.chunks_exact_mut(stride).enumerate() {
                let at = (c * share + i) * every;
                let x = &x[at * dim..(at + 1) * dim];
                energy.energy(x, &mut scratch.u[..1], &mut scratch.energy);
                gradient.fill(0.0);
                energy.add_param_gradient(x, &[1.0], &mut gradient, &mut scratch.energy);
                sample[0] = a(at);
                sample[1..].iter_mut().zip(of).for_each(|(s, &j)| *s = gradient[j]);
            }
        });
        samples
    }
}

/// Of samples that are a log-weight and `side` numbers each.
fn covariance(samples: &[f64], side: usize) -> Vec<f64> {
    let samples = || samples.chunks_exact(side + 1);
    let top = samples().map(|s| s[0]).fold(f64::NEG_INFINITY, f64::max);
    let weight = |s: &[f64]| (s[0] - top).exp();
    let total: f64 = samples().map(weight).sum();
    let mut mean = vec![0.0; side];
    for s in samples() {
        let p = weight(s) / total;
        mean.iter_mut().zip(&s[1..]).for_each(|(m, v)| *m += p * v);
    }
    let mut out = vec![0.0; side * side];
    let mut apart = vec![0.0; side];
    for s in samples() {
        let p = weight(s) / total;
        apart.iter_mut().zip(&s[1..]).zip(&mean).for_each(|((d, v), m)| *d = v - m);
        for (row, d) in out.chunks_exact_mut(side).zip(&apart) {
            row.iter_mut().zip(&apart).for_each(|(sum, e)| *sum += p * d * e);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::energy::{Gaussian, Stratification};
    use crate::kernel::Kernel;
    use crate::random::Random;
    use crate::resampling::Scheme;
    use crate::walkers::Walkers;

    /// For the mean of a Gaussian it is the precision matrix: `dU/dmean = -P (x - mean)`. Every entry within 5 standard errors of a covariance from 2048 independent samples (a false alarm in some
    /// 10^6), among parameters that are not asked for.
    #[test]
    fn for_the_mean_of_a_gaussian_it_is_the_precision() {
        let precision = [9.0, 1.5, 1.5, 0.5];
        let model = Gaussian::new(&[1.0, -2.0], &precision).unwrap();
        let n = 8192;
        let exact = Energy::<f64>::exact(&model).unwrap();
        let mut x = vec![0.0; 2 * n];
        let random = Random::new(11);
        exact.sample(0..n as u64, n as u64, Stratification::Independent, &random, &mut x);
        let data = Dataset::sample(&model, n, 12).unwrap();
        let walkers = Walkers::new(2, x, None);
        let kernel = Kernel::ghmc(1.0);
        for threads in [1, 3] {
            let mut sampler =
                Sampler::new(walkers.clone(), &model, kernel, Scheme::Systematic, None, 1, threads).unwrap();
            sampler.begin(&model).unwrap();
            let fisher = sampler.fisher(&model, &[0, 1], &data);
            for i in 0..2 {
                for j in 0..2 {
                    let p = |i: usize, j: usize| precision[2 * i + j];
                    let error = ((p(i, i) * p(j, j) + p(i, j).powi(2)) / (2 * OVER) as f64).sqrt();
                    assert!((fisher[2 * i + j] - p(i, j)).abs() < 5.0 * error, "{fisher:?}");
                }
            }
        }
    }

    /// A sample of twice the weight counts like two samples.
    #[test]
    fn weights_count() {
        let two = 2f64.ln();
        let weighted = covariance(&[two, 1.0, 2.0, 0.0, -1.0, 0.5, 0.0, 3.0, 3.0], 2);
        let repeated = covariance(&[5.0, 1.0, 2.0, 5.0, 1.0, 2.0, 5.0, -1.0, 0.5, 5.0, 3.0, 3.0], 2);
        assert!(weighted.iter().zip(&repeated).all(|(a, b)| (a - b).abs() < 1e-12), "{weighted:?}");
        // Of 1, 1, -1, 3 the variance is 2.
        assert!((weighted[0] - 2.0).abs() < 1e-12);
    }
}
