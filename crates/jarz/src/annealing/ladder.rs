//! Which `t` comes next, and with what time step.

use super::Settings;
use super::ensemble::Ensemble;
use crate::energy::Energy;
use crate::kernel::StepSize;
use crate::real::Real;
use crate::weights::WeightSums;

/// Tries of the first time step, and how fast they adapt.
const TRIES: u64 = 40;
const TRY_GAIN: f64 = 2.0;
/// How fast the time step follows the acceptance from rung to rung.
const GAIN: f64 = 1.0;
/// Accuracy of a step of `t`, relative.
const ACCURACY: f64 = 1e-3;

/// Chooses rungs, or hands out those that were given.
pub(super) struct Ladder<'a> {
    settings: &'a Settings,
    given: std::slice::Iter<'a, (f64, f64)>,
    h: f64,
}

impl<'a> Ladder<'a> {
    /// Begins with the time step that suits the base: proposals are tried from the walkers' first places, none is carried out.
    pub fn new<T: Real, E: Energy<T>>(settings: &'a Settings, ensemble: &Ensemble<'_, T, E>) -> Self {
        let given = settings.ladder.as_deref().unwrap_or_default();
        let mut h = 1.0;
        if given.is_empty() {
            let rule = adaptive(settings.acceptance, TRY_GAIN);
            for k in 0..TRIES {
                h = rule.next(k, h, ensemble.try_base(h, k));
            }
        }
        Ladder { settings, given: given.iter(), h }
    }

    /// The next `t` and the time step there.
    pub fn next<T: Real, E: Energy<T>>(&mut self, t: f64, ensemble: &Ensemble<'_, T, E>) -> (f64, f64) {
        match self.given.next() {
            Some(rung) => *rung,
            None => (next_t(t, ensemble.log_weights(), &ensemble.f(), self.settings), self.h),
        }
    }

    /// The time step of the next rung follows the acceptance of this one.
    pub fn learn(&mut self, acceptance: f64) {
        self.h = adaptive(self.settings.acceptance, GAIN).next(0, self.h, acceptance);
    }
}

fn adaptive(target: f64, gain: f64) -> StepSize {
    StepSize::Adaptive { initial: 1.0, target, gain, bounds: (1e-30, 1e30) }
}

/// ESS of the increments `exp(-delta f)` of walkers with log-weights `a`: `(sum_i p_i w_i)^2 / sum_i p_i w_i^2`. Falls with `delta`.
fn conditional_ess(a: &[f64], f: &[f64], delta: f64) -> f64 {
    let log_sum = |delta: f64| {
        let moved: Vec<f64> = a.iter().zip(f).map(|(a, f)| a - delta * f).collect();
        WeightSums::of(&moved).log_sum()
    };
    (2.0 * log_sum(delta) - log_sum(2.0 * delta) - log_sum(0.0)).exp()
}

/// The next `t`: as far as the ESS of the step allows, by bisection, within the bounds of a step.
fn next_t(t: f64, a: &[f64], f: &[f64], settings: &Settings) -> f64 {
    let allowed = |delta: f64| conditional_ess(a, f, delta) >= settings.step_ess;
    let rest = 1.0 - t;
    let (mut low, mut high) = (settings.min_step.min(rest), settings.max_step.min(rest));
    let delta = if allowed(high) {
        high
    } else {
        while high - low > ACCURACY * high {
            let middle = 0.5 * (low + high);
            if allowed(middle) {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    };
    // The last step ends at the model exactly, and is not followed by one of next to nothing.
    if rest - delta < 0.5 * settings.min_step { 1.0 } else { t + delta }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditional_ess_by_hand() {
        // p = (1/4, 3/4), w = (1, 1/2): (5/8)^2 / (7/16).
        let (a, f) = ([0.0, 3f64.ln()], [0.0, 2f64.ln()]);
        assert!((conditional_ess(&a, &f, 1.0) - 25.0 / 28.0).abs() < 1e-14);
        assert!((conditional_ess(&a, &f, 0.0) - 1.0).abs() < 1e-14);
    }

    #[test]
    fn steps_obey_the_ess_and_their_bounds() {
        let f: Vec<f64> = (0..1000).map(|i| 20.0 * ((i as f64 + 0.5) / 1000.0 - 0.5)).collect();
        let a = vec![0.0; 1000];
        let settings = Settings::default();
        let t = next_t(0.2, &a, &f, &settings);
        let reached = conditional_ess(&a, &f, t - 0.2);
        assert!((reached - 0.9).abs() < 1e-3, "{reached}");
        assert_eq!(next_t(0.2, &a, &vec![3.0; 1000], &settings), 1.0, "a constant f costs nothing");
        let bounded = Settings { min_step: 0.3, max_step: 0.4, ..settings.clone() };
        assert_eq!(next_t(0.2, &a, &f, &bounded), 0.5, "the shortest step is taken in spite of the ESS");
        assert_eq!(next_t(0.2, &a, &vec![3.0; 1000], &bounded), 0.6000000000000001);
        assert_eq!(next_t(0.99999, &a, &f, &settings), 1.0);
        let enormous: Vec<f64> = f.iter().map(|f| f * 1e307).collect();
        assert_eq!(next_t(0.0, &a, &enormous, &settings), 1e-4);
    }
}
