//! The drift of the estimated `log Z` with the paper's rule, for a mixture of separate modes at rest at the truth.
//!
//! A step along the direction made of the walkers lowers the estimate by `R V / N_eff` for every parameter, `R` being its
//! learning rate and `V` the variance of `g = dU/dtheta` over the walkers: in all `gamma tr Cov(g) / N_eff`. If `g` of a walker
//! decorrelates by a factor `rho` per iteration, part of the fluctuation is already answered by the parameters, which pull back with
//! the curvature `H = V`, and `E[m (m - H delta)]` leaves the fraction `(1 - rho) / (1 - rho + rho R H)`.
//! For separate modes of mass `p_k`, a coordinate of a mean has `V = p_k / sigma^2` and `rho = 1 - h f / sigma^2` where a fraction `f` of
//! the walkers moves; a log-mass has `V = p_k (1 - p_k)` and `rho = 1`, because walkers stay in their mode, so that its part ends with
//! the first relaxation and is left out of the drift with memory.

use jarz_run::Config;
use jarz_run::config::{DataConfig, KernelName, ModelConfig, OptimizerName};

/// Drift of the estimated `log Z` per iteration, times the number of effective walkers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// `-gamma tr Cov(g)`.
    pub plain: f64,
    /// With the walkers' memory.
    pub with_memory: f64,
}

/// The drift for a configuration, if it is one that the closed form describes: plain gradient steps, ULA with one step per
/// iteration, and a model that starts at the truth.
pub fn drift(config: &Config) -> Option<Drift> {
    let DataConfig::Mixture { dim, means, masses, sigma, .. } = &config.data else { return None };
    let ModelConfig::Mixture { means: start, masses: start_masses, sigma: width, .. } = &config.model else {
        return None;
    };
    let plain_steps = config.optimizer.kind == OptimizerName::Gradient
        && config.optimizer.schedule.is_none()
        && config.optimizer.trust_region.is_none();
    let plain_moves = config.kernel.kind == KernelName::Ula && config.kernel.steps == 1;
    if !plain_steps || !plain_moves || start != means || start_masses != masses || width != sigma {
        return None;
    }
    let rate = |group: &str| {
        let rates = &config.optimizer.rates;
        rates.get(group).or(rates.get("all")).copied().unwrap_or(0.0)
    };
    let frozen = |name: String| config.optimizer.frozen.contains(&name);
    let moving = config.walkers.batch.map_or(1.0, |b| b as f64 / config.walkers.count as f64);
    let rho = (1.0 - config.kernel.step_size * moving / (sigma * sigma)).max(0.0);
    let total: f64 = masses.iter().sum();
    let mut drift = Drift { plain: 0.0, with_memory: 0.0 };
    for (k, mass) in masses.iter().map(|m| m / total).enumerate() {
        let (r, v) = (rate("mean"), mass / (sigma * sigma));
        let part = r * v * *dim as f64;
        drift.plain -= part;
        drift.with_memory -= part * (1.0 - rho) / (1.0 - rho + rho * r * v);
        if !frozen(format!("log_mass.{k}")) {
            drift.plain -= rate("log_mass") * mass * (1.0 - mass);
        }
    }
    Some(drift)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jarz::{Purpose, Random};

    const CONFIG: &str = "[data]\nkind = \"mixture\"\npoints = 100\ndim = 50\nmeans = [[-10.0], [6.0]]\nmasses = [0.25, 0.75]\n\
        [model]\nkind = \"mixture\"\nmodes = 2\nmeans = [[-10.0], [6.0]]\nmasses = [0.25, 0.75]\n\
        [optimizer]\nrates = { mean = 0.025, log_mass = 0.125 }\nfrozen = [\"log_mass.0\"]\n";

    fn of(changes: &[&str]) -> Option<Drift> {
        let changes: Vec<String> = changes.iter().map(|c| c.to_string()).collect();
        drift(&Config::parse(CONFIG, "test", &changes).unwrap())
    }

    #[test]
    fn the_trace_is_written_out() {
        let d = of(&[]).unwrap();
        assert!((d.plain + 0.025 * 50.0 + 0.125 * 0.25 * 0.75).abs() < 1e-12, "{d:?}");
        let f = |p: f64| 0.1 / (0.1 + 0.9 * 0.025 * p);
        assert!((d.with_memory + 1.25 * (0.25 * f(0.25) + 0.75 * f(0.75))).abs() < 1e-12, "{d:?}");
        // Small steps forget before they are answered; few moving walkers remember.
        let slow = of(&["optimizer.rates.mean=0.00025"]).unwrap();
        assert!((slow.with_memory / -0.0125 - 1.0).abs() < 0.005, "{slow:?}");
        assert!(of(&["walkers.batch=1000"]).unwrap().with_memory > 0.6 * d.plain);
        assert_eq!(of(&["model.means=[[0.0], [1.0]]"]), None);
    }

    /// One Gaussian coordinate with plain arithmetic: `U = (x - m)^2 / 2`, walkers that relax exactly, data mean zero. The drift of the
    /// first-order estimate, `-m_fluctuation * step`, averaged over a long run, is the closed form.
    #[test]
    fn memory_takes_its_share_of_the_drift() {
        let (walkers, rate, rho, steps) = (50usize, 0.1f64, 0.8f64, 200_000u64);
        let random = Random::new(11);
        let mut noise = vec![0.0f64; walkers];
        let mut y = vec![0.0f64; walkers];
        random.normals(0, 0, Purpose::User, &mut y);
        let (mut theta, mut total) = (0.0, 0.0);
        for k in 1..=steps {
            // y = x - E_theta[x]: fluctuation of the walkers about the model. g = theta - x, so mean g - E_theta[g] = -mean y.
            let m = -y.iter().sum::<f64>() / walkers as f64;
            let direction = m + (0.0 - theta);
            total -= m * rate * direction;
            theta += rate * direction;
            random.normals(k, 0, Purpose::User, &mut noise);
            y.iter_mut().zip(&noise).for_each(|(y, n)| *y = rho * *y + (1.0 - rho * rho).sqrt() * n);
        }
        let measured = total / steps as f64 * walkers as f64;
        let predicted = -rate * (1.0 - rho) / (1.0 - rho + rho * rate);
        // Standard error of a mean square over 200 000 steps with a memory of some 10: about sqrt(2 * 10 / 2e5) = 1 %.
        assert!((measured / predicted - 1.0).abs() < 0.04, "{measured} and {predicted}");
    }
}
