//! The leave-one-out correction, with memory.
//!
//! A walker pushes the parameters along its own share `c = p / (1 - p) (g - mean g)` of the direction, `g = dU/dtheta`, and is then
//! weighted by the step it caused. To first order the cure is to add `g . R c` to its log-weight, `R` being the response of the
//! parameters to the direction. But what a walker did earlier is still there: its accumulated push `s` makes the others pull back
//! with the curvature `H` of the cross-entropy, and an optimizer with momentum goes on pushing. The walker's own part of a step is
//! `R v'`, with `v' = beta v + c - H s` and `s' = s + R v'` (`beta = 0` for a plain gradient step). If the walker's gradient
//! decorrelates by a factor `rho` per iteration, `E[c v']` in the stationary state follows from `E[c v] = rho E[c v']` and
//! `E[c s] = rho (E[c s] + R E[c v'])`, and the correction is the first-order one times
//!
//! `(1 - rho) / ((1 - rho) (1 - beta rho) + rho R H)`,
//!
//! parameter by parameter. `H` near the optimum is the variance of `g` over the walkers, and `rho` is measured on a few of them.
//! Without this factor the correction overshoots, by `R H / (1 - rho)` for short memories and beyond all bounds for walkers that
//! hardly move.

use crate::energy::{Energy, PerWalker};
use crate::ranks::Topic;
use crate::real::Real;
use crate::sampler::Sampler;

/// Walkers that are watched.
const WATCHED: usize = 512;
/// Iterations between two looks.
const EVERY: u64 = 20;
/// Weight of a new look in the running means.
const GAIN: f64 = 0.1;

/// Running variance and lag-one covariance of the walkers' parameter gradients.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Memory {
    /// Per parameter; empty before the first look.
    variance: Vec<f64>,
    covariance: Vec<f64>,
    before: Vec<f64>,
}

impl Memory {
    /// For a checkpoint.
    pub(crate) fn as_arrays(&self) -> [Vec<f64>; 2] {
        [self.variance.clone(), self.covariance.clone()]
    }

    /// From a checkpoint.
    pub(crate) fn from_arrays([variance, covariance]: [Vec<f64>; 2]) -> Self {
        Memory { variance, covariance, before: Vec::new() }
    }

    /// Whether to look at this iteration.
    pub(crate) fn is_due(&self, iteration: u64) -> bool {
        iteration.is_multiple_of(EVERY)
    }

    /// Notes the gradients before an iteration.
    pub(crate) fn look<T: Real, E: Energy<T>>(
        &mut self,
        sampler: &Sampler<T, E>,
        gradients: &dyn PerWalker<T>,
        params: usize,
    ) {
        self.before = rows(sampler, gradients, params).0;
    }

    /// Compares them with those after it.
    pub(crate) fn compare<T: Real, E: Energy<T>>(
        &mut self,
        sampler: &Sampler<T, E>,
        gradients: &dyn PerWalker<T>,
        params: usize,
    ) {
        let (after, log_weights) = rows(sampler, gradients, params);
        let top = log_weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = log_weights.iter().map(|a| (a - top).exp()).collect();
        let total: f64 = weights.iter().sum();
        let first = self.variance.is_empty();
        self.variance.resize(params, 0.0);
        self.covariance.resize(params, 0.0);
        for j in 0..params {
            let mean = |rows: &[f64]| {
                weights.iter().enumerate().map(|(i, w)| w * rows[i * params + j]).sum::<f64>() / total
            };
            let (m0, m1) = (mean(&self.before), mean(&after));
            let (mut variance, mut covariance) = (0.0, 0.0);
            for (i, w) in weights.iter().enumerate() {
                let (a, b) = (self.before[i * params + j] - m0, after[i * params + j] - m1);
                variance += w * 0.5 * (a * a + b * b) / total;
                covariance += w * a * b / total;
            }
            let gain = if first { 1.0 } else { GAIN };
            self.variance[j] += gain * (variance - self.variance[j]);
            self.covariance[j] += gain * (covariance - self.covariance[j]);
        }
        self.before.clear();
    }

    /// Turns the response to a single push into that to a walker's own history of pushes.
    pub(crate) fn soften(&self, response: &mut [f64], persistence: f64) {
        for j in 0..self.variance.len() {
            let rho = (self.covariance[j] / self.variance[j]).clamp(0.0, 1.0);
            let pull = response[j] * self.variance[j];
            let rest = (1.0 - rho) * (1.0 - persistence * rho) + rho * pull;
            // A parameter whose gradient does not vary, or never changes and is not pulled back, has nothing to correct.
            response[j] *= if rho.is_finite() && rest > 0.0 { (1.0 - rho) / rest } else { 0.0 };
        }
    }
}

/// Parameter gradients and log-weights of walkers all over the ensemble, whichever rank has them.
fn rows<T: Real, E: Energy<T>>(
    sampler: &Sampler<T, E>,
    gradients: &dyn PerWalker<T>,
    params: usize,
) -> (Vec<f64>, Vec<f64>) {
    let (walkers, shard, ranks) = (sampler.walkers(), sampler.place(), sampler.ranks());
    let (n, d) = (sampler.count(), walkers.dim);
    let count = n.min(WATCHED);
    let of_rank = |rank: usize| {
        let rows = shard.rows_of(rank);
        (0..count).map(move |i| i * n / count).filter(move |i| rows.contains(i))
    };
    let first = shard.rows().start;
    let here: Vec<usize> = of_rank(ranks.rank()).map(|i| i - first).collect();
    let x: Vec<T> =
        here.iter().flat_map(|&i| walkers.positions[i * d..(i + 1) * d].iter().copied()).collect();
    let mut out = vec![0.0; here.len() * params];
    gradients.param_gradients(&x, &mut out);
    let log_weights: Vec<f64> = here.iter().map(|&i| walkers.log_weights[i]).collect();
    let counts: Vec<usize> = (0..ranks.size()).map(|r| of_rank(r).count()).collect();
    let wide: Vec<usize> = counts.iter().map(|c| c * params).collect();
    (ranks.gather(Topic::Steps, &out, &wide), ranks.gather(Topic::Steps, &log_weights, &counts))
}
