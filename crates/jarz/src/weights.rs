//! Log-weights of an ensemble: everything about them is done in log space, in `f64`.

use crate::random::math::{exp_f64, exps_f64};
use crate::real::sum_lanes;
use crate::simd::{Isa, LANES, Simd, Vector, dispatch};

/// Streaming sums over weighted walkers: `sum exp(A - top)` and its relatives, rescaled whenever a larger
/// log-weight turns up. Merging in a fixed order gives the same bits however the work was shared out.
#[derive(Clone, Debug, PartialEq)]
pub struct WeightSums {
    /// Largest log-weight seen.
    pub top: f64,
    /// `sum exp(A - top)`.
    pub sum: f64,
    /// `sum exp(2 (A - top))`.
    pub sum_squares: f64,
    /// `sum exp(A - top) (A - top)`.
    pub sum_log: f64,
    /// Number of walkers.
    pub count: u64,
    /// `sum exp(A - top) dU/dtheta`.
    pub gradient: Vec<f64>,
}

impl WeightSums {
    /// Nothing added yet; `params` parameters.
    pub fn new(params: usize) -> Self {
        WeightSums {
            top: f64::NEG_INFINITY,
            sum: 0.0,
            sum_squares: 0.0,
            sum_log: 0.0,
            count: 0,
            gradient: vec![0.0; params],
        }
    }

    /// Of log-weights alone.
    pub fn of(log_weights: &[f64]) -> Self {
        let mut sums = WeightSums::new(0);
        let mut weights = vec![0.0; log_weights.len().min(256)];
        for block in log_weights.chunks(256) {
            sums.add(block, &mut weights[..block.len()]);
        }
        sums
    }

    pub(crate) fn clear(&mut self) {
        (self.top, self.sum, self.sum_squares, self.sum_log) = (f64::NEG_INFINITY, 0.0, 0.0, 0.0);
        self.count = 0;
        self.gradient.fill(0.0);
    }

    /// Expresses the sums relative to a larger `top`.
    fn raise(&mut self, top: f64) {
        if self.sum > 0.0 {
            let shift = self.top - top;
            let scale = shift.exp();
            self.sum_log = if scale > 0.0 { scale * (self.sum_log + shift * self.sum) } else { 0.0 };
            self.sum *= scale;
            self.sum_squares *= scale * scale;
            for g in &mut self.gradient {
                *g *= scale;
            }
        }
        self.top = top;
    }

    /// Adds a block of walkers; `weights` receives `exp(A - top)` for the gradient sum that follows.
    pub fn add(&mut self, log_weights: &[f64], weights: &mut [f64]) {
        self.count += log_weights.len() as u64;
        let isa = Isa::best();
        let top = largest(isa, log_weights);
        if top > self.top {
            self.raise(top);
        }
        if self.top == f64::NEG_INFINITY {
            return weights.fill(0.0);
        }
        let [sum, sum_squares, sum_log] = exp_sums(isa, log_weights, self.top, weights);
        self.sum += sum;
        self.sum_squares += sum_squares;
        self.sum_log += sum_log;
    }

    /// Adds another part of the ensemble.
    pub fn merge(&mut self, other: &WeightSums) {
        self.merge_with(other, &other.gradient);
    }

    /// The same with another gradient, or some of its columns, than that of the other part.
    pub(crate) fn merge_with(&mut self, other: &WeightSums, gradient: &[f64]) {
        self.count += other.count;
        if other.top == f64::NEG_INFINITY {
            return;
        }
        if other.top > self.top {
            self.raise(other.top);
        }
        let shift = other.top - self.top;
        let scale = shift.exp();
        if scale > 0.0 {
            self.sum += scale * other.sum;
            self.sum_squares += scale * scale * other.sum_squares;
            self.sum_log += scale * (other.sum_log + shift * other.sum);
            for (g, o) in self.gradient.iter_mut().zip(gradient) {
                *g += scale * o;
            }
        }
    }

    /// `log sum exp A`.
    pub fn log_sum(&self) -> f64 {
        self.top + self.sum.ln()
    }

    /// `log (1/N) sum exp A`: what `log Z` gained since the last resampling (eq. `estim:Z:H`).
    pub fn log_mean(&self) -> f64 {
        self.log_sum() - (self.count as f64).ln()
    }

    /// Effective sample size as a fraction of the walkers, in (0, 1] (eq. `resampling`).
    pub fn ess(&self) -> f64 {
        (self.sum * self.sum / (self.count as f64 * self.sum_squares)).min(1.0)
    }

    /// Entropy of the normalised weights, `-sum p log p`, in nats; at most `log N`.
    pub fn entropy(&self) -> f64 {
        (self.sum.ln() - self.sum_log / self.sum).clamp(0.0, (self.count as f64).ln())
    }

    /// `exp(entropy) / N`: another effective fraction of the walkers.
    pub fn perplexity(&self) -> f64 {
        self.entropy().exp() / self.count as f64
    }

    /// Normalised weights of some of the walkers that were added.
    pub fn normalise(&self, log_weights: &[f64]) -> Vec<f64> {
        let mut p = vec![0.0; log_weights.len()];
        exp_sums(Isa::best(), log_weights, self.top, &mut p);
        p.iter_mut().for_each(|p| *p /= self.sum);
        p
    }

    /// `sum_i p_i dU/dtheta(X_i)` with normalised weights `p`.
    pub fn mean_gradient(&self, out: &mut [f64]) {
        for (o, g) in out.iter_mut().zip(&self.gradient) {
            *o = g / self.sum;
        }
    }
}

/// Numbers, 16 at a time; where they run out, `fill`.
#[inline(always)]
fn panel(values: &[f64], fill: f64) -> [f64; LANES] {
    match values.first_chunk() {
        Some(whole) => *whole,
        None => {
            let mut padded = [fill; LANES];
            padded[..values.len()].copy_from_slice(values);
            padded
        }
    }
}

/// The largest of the values that are numbers.
#[inline(always)]
fn largest_of<S: Simd>(values: &[f64]) -> f64 {
    let mut top = S::D::splat(f64::NEG_INFINITY);
    let (panels, rest) = values.as_chunks();
    for v in panels {
        let v = S::D::load(v);
        top = v.if_greater(top, v, top);
    }
    let v = S::D::load(&panel(rest, f64::NEG_INFINITY));
    top = v.if_greater(top, v, top);
    let mut lanes = [0.0; LANES];
    top.store(&mut lanes);
    lanes.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

/// `weights = exp(values - top)`, and the sums of `w`, `w^2` and `w log w`.
#[inline(always)]
fn exp_and_sums<S: Simd>(values: &[f64], top: f64, weights: &mut [f64]) -> [f64; 3] {
    /// Panels in lockstep: an exponential alone is waited for.
    const M: usize = 2;
    let zero = S::D::splat(0.0);
    let mut sums = [zero; 3];
    let (groups, rest) = values.as_chunks::<{ M * LANES }>();
    let (outs, out_rest) = weights.as_chunks_mut::<{ M * LANES }>();
    for (v, out) in groups.iter().zip(outs) {
        let mut logs = [zero; M];
        for (log, v) in logs.iter_mut().zip(v.as_chunks().0) {
            *log = S::D::load(v) - S::D::splat(top);
        }
        let w = exps_f64::<S, M>(&logs);
        for (m, out) in out.as_chunks_mut().0.iter_mut().enumerate() {
            add_weights::<S>(w[m], logs[m], &mut sums);
            w[m].store(out);
        }
    }
    for (v, out) in rest.chunks(LANES).zip(out_rest.chunks_mut(LANES)) {
        let log = S::D::load(&panel(v, f64::NEG_INFINITY)) - S::D::splat(top);
        let w = exp_f64::<S>(log);
        add_weights::<S>(w, log, &mut sums);
        let mut lanes = [0.0; LANES];
        w.store(&mut lanes);
        out.copy_from_slice(&lanes[..out.len()]);
    }
    let mut out = [0.0; 3];
    for j in 0..3 {
        let mut lanes = [0.0; LANES];
        sums[j].store(&mut lanes);
        out[j] = sum_lanes(lanes);
    }
    out
}

/// Adds `w`, `w^2` and `w log w`.
#[inline(always)]
fn add_weights<S: Simd>(w: S::D, log: S::D, sums: &mut [S::D; 3]) {
    let zero = S::D::splat(0.0);
    sums[0] = sums[0] + w;
    sums[1] = w.mul_add(w, sums[1]);
    // Where the weight is zero its logarithm may be infinite.
    sums[2] = sums[2] + w.if_greater(zero, w * log, zero);
}

dispatch! { fn largest{}{}(values: &[f64]) -> f64 = largest_of }
dispatch! { fn exp_sums{}{}(values: &[f64], top: f64, weights: &mut [f64]) -> [f64; 3] = exp_and_sums }

/// Normalised weights `p_i = exp(A_i) / sum_j exp(A_j)`.
pub fn normalise(log_weights: &[f64]) -> Vec<f64> {
    WeightSums::of(log_weights).normalise(log_weights)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        let a = [0.0, 0.0, (3.0f64).ln()];
        let sums = WeightSums::of(&a);
        assert!((sums.log_mean() - (5.0f64 / 3.0).ln()).abs() < 1e-15);
        assert!((sums.ess() - 25.0 / (3.0 * 11.0)).abs() < 1e-15);
        let entropy = -(0.4 * 0.2f64.ln() + 0.6 * 0.6f64.ln());
        assert!((sums.entropy() - entropy).abs() < 1e-14);
        let p = normalise(&a);
        assert!((p[2] - 0.6).abs() < 1e-15 && (p.iter().sum::<f64>() - 1.0).abs() < 1e-15);
    }

    #[test]
    fn survives_enormous_weights() {
        let a = [1e5, 1e5 - 2.0f64.ln(), -1e5, f64::NEG_INFINITY];
        let sums = WeightSums::of(&a);
        assert!((sums.log_sum() - (1e5 + 1.5f64.ln())).abs() < 1e-9);
        assert!((normalise(&a)[0] - 2.0 / 3.0).abs() < 1e-12);
        assert!(sums.entropy() > 0.0 && sums.ess().is_finite());
    }

    #[test]
    fn merging_equals_adding_together() {
        let a: Vec<f64> = (0..100).map(|i| ((i * 37) % 101) as f64 * 0.3 - 12.0).collect();
        let whole = WeightSums::of(&a);
        let mut merged = WeightSums::of(&a[..33]);
        merged.merge(&WeightSums::of(&a[33..90]));
        merged.merge(&WeightSums::of(&a[90..]));
        for (x, y) in [
            (whole.log_mean(), merged.log_mean()),
            (whole.ess(), merged.ess()),
            (whole.entropy(), merged.entropy()),
        ] {
            assert!((x - y).abs() < 1e-12 * x.abs().max(1.0), "{x} {y}");
        }
    }
}
