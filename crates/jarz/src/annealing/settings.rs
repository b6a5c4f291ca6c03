//! How an annealing is done.

use super::{AnnealingError, BaseMeasure};
use crate::real::Real;
use crate::resampling::Scheme;

/// How to anneal. Start from [`Settings::default`] and change what you like.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Number of walkers.
    pub walkers: usize,
    /// To what the ESS of one rung's increments may fall, as a fraction: closer to one means more rungs.
    pub step_ess: f64,
    /// Shortest step of `t`, taken even where the ESS asks for a shorter one: there are at most `1 / min_step` rungs.
    pub min_step: f64,
    /// Longest step of `t`.
    pub max_step: f64,
    /// Moves at each `t`.
    pub moves: u32,
    /// Acceptance aimed at.
    pub acceptance: f64,
    /// Friction of moves with momentum (see [`crate::Kernel::friction`]); MALA without.
    pub friction: Option<f64>,
    /// Resample when the ESS is below this fraction.
    pub threshold: f64,
    /// How ancestors are drawn.
    pub scheme: Scheme,
    /// `(t, h)` of every rung, ascending to `t = 1`, instead of adapting both.
    pub ladder: Option<Vec<(f64, f64)>>,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Threads; 0 means one per core. Results do not depend on it.
    pub threads: usize,
    #[cfg(test)]
    pub(crate) faults: super::moves::Faults,
}

impl Default for Settings {
    /// 4096 walkers, an ESS of 0.9 per rung and one move at each, acceptance 0.65, systematic resampling below half the ESS.
    fn default() -> Self {
        Settings {
            walkers: 4096,
            step_ess: 0.9,
            min_step: 1e-4,
            max_step: 1.0,
            moves: 1,
            acceptance: 0.65,
            friction: None,
            threshold: 0.5,
            scheme: Scheme::Systematic,
            ladder: None,
            seed: 1,
            threads: 0,
            #[cfg(test)]
            faults: Default::default(),
        }
    }
}

impl Settings {
    /// Whether they can work for a model of this dimension and this base.
    pub(super) fn check<T: Real>(&self, dim: usize, base: &dyn BaseMeasure<T>) -> Result<(), AnnealingError> {
        let refuse = |text: String| Err(AnnealingError::Settings(text));
        if base.dim() != dim {
            return refuse(format!("the base has {} dimensions but the model has {dim}", base.dim()));
        }
        if !base.log_z().is_finite() {
            return refuse("log Z of the base is not finite: it cannot be annealed from".into());
        }
        if self.walkers < 2 {
            return refuse(format!("annealing needs at least 2 walkers, not {}", self.walkers));
        }
        if self.moves == 0 {
            return refuse("annealing needs at least one move at each t".into());
        }
        for (name, value) in [("ESS of a step", self.step_ess), ("acceptance aimed at", self.acceptance)] {
            if !(value > 0.0 && value < 1.0) {
                return refuse(format!("the {name} must be between 0 and 1, not {value}"));
            }
        }
        if let Some(friction) = self.friction
            && !(friction > 0.0 && friction.is_finite())
        {
            return refuse(format!("the friction must be a positive number, not {friction}"));
        }
        if !(0.0..=1.0).contains(&self.threshold) {
            return refuse(format!("the resampling threshold must be from 0 to 1, not {}", self.threshold));
        }
        if !(self.min_step > 0.0 && self.min_step <= self.max_step && self.max_step <= 1.0) {
            return refuse(format!(
                "the steps of t must obey 0 < min_step <= max_step <= 1, not min_step = {} and max_step = {}",
                self.min_step, self.max_step
            ));
        }
        match &self.ladder {
            Some(ladder) => check_ladder(ladder),
            None => Ok(()),
        }
    }
}

fn check_ladder(ladder: &[(f64, f64)]) -> Result<(), AnnealingError> {
    let ascending = ladder.windows(2).all(|pair| pair[0].0 < pair[1].0);
    let from_above_zero = ladder.first().is_some_and(|(t, _)| *t > 0.0);
    if !ascending || !from_above_zero || ladder.last().is_none_or(|(t, _)| *t != 1.0) {
        return Err(AnnealingError::Settings("a ladder must ascend from above t = 0 to t = 1".into()));
    }
    match ladder.iter().find(|(_, h)| !(*h > 0.0 && h.is_finite())) {
        Some((t, h)) => {
            Err(AnnealingError::Settings(format!("the time step at t = {t} must be positive, not {h}")))
        }
        None => Ok(()),
    }
}
