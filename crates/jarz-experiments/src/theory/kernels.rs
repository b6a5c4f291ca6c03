//! Walkers at rest: what discretisation alone does to the weights.

use jarz_run::Config;
use jarz_run::config::KernelName;

/// ESS of ULA walkers at rest in Gaussian modes of unit width, long after they began as exact samples.
///
/// For `U = |x|^2 / 2` the weights telescope: `alpha(x, y) - alpha(y, x) = h (|x|^2 - |y|^2) / 4`, so that
/// `A = h (|x_0|^2 - |x_k|^2) / 4` with `x_0 ~ N(0, 1)` and, independent of it, `x_k ~ N(0, 1 / (1 - h / 2))`. Then
/// `E[e^A] = 1`, and `ESS = 1 / E[e^{2A}] = ((1 - h) (2 + h) / (2 - h))^{d / 2}`; for `h >= 1` the second moment is infinite.
pub fn ess_at_rest(h: f64, dim: usize) -> f64 {
    ((1.0 - h) * (2.0 + h) / (2.0 - h)).max(0.0).powf(0.5 * dim as f64)
}

/// Gradient evaluations per walker and iteration: MALA, with momentum or without, evaluates where the walker stands under the new parameters and at
/// every proposal; ULA on all walkers reuses the gradient of the step before, on a mini-batch it cannot.
pub fn gradient_evaluations(config: &Config) -> f64 {
    let steps = f64::from(config.kernel.steps);
    let fraction = config.walkers.batch.map(|b| b as f64 / config.walkers.count as f64);
    match (config.kernel.kind, fraction) {
        (KernelName::Ula, None) => steps,
        (_, Some(f)) => f * (steps + 1.0),
        (KernelName::Mala | KernelName::Ghmc, None) => steps + 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jarz::{Purpose, Random};

    /// The paper's weights along real ULA paths, written out from eq. `alpha` and not from the telescoped form.
    #[test]
    fn the_ess_at_rest_is_that_of_simulated_walkers() {
        let (h, dim, walkers, steps) = (0.2f64, 4, 100_000u64, 40);
        let random = Random::new(5);
        let (mut sum, mut squares) = (0.0, 0.0);
        let mut noise = vec![0.0f64; dim];
        for walker in 0..walkers {
            let mut x = vec![0.0f64; dim];
            random.normals(0, walker, Purpose::User, &mut x);
            let mut a = 0.0;
            for k in 1..=steps {
                random.normals(k, walker, Purpose::User, &mut noise);
                for j in 0..dim {
                    let y = x[j] - h * x[j] + (2.0 * h).sqrt() * noise[j];
                    let alpha = |x: f64, y: f64| 0.5 * x * x + 0.5 * (y - x) * x + 0.25 * h * x * x;
                    a += alpha(x[j], y) - alpha(y, x[j]);
                    x[j] = y;
                }
            }
            sum += f64::exp(a);
            squares += f64::exp(2.0 * a);
        }
        let ess = sum * sum / (walkers as f64 * squares);
        // The relative error of the sum of e^{2A} is sqrt(Var e^{2A} / N) / E[e^{2A}], a few times 1 / sqrt(N) = 0.003.
        assert!((ess / ess_at_rest(h, dim) - 1.0).abs() < 0.015, "{ess} and {}", ess_at_rest(h, dim));
    }
}
