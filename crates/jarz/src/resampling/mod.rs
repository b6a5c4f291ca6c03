//! Resampling: which walkers survive, and when (section "Resampling step" and appendix "Resampling Routines").

pub(crate) mod draw;
mod independent;
mod poisson;
pub(crate) mod share;

pub use draw::Draws;

use crate::random::{Purpose, Random};
use crate::weights::WeightSums;
use share::Share;

/// How ancestors are drawn. All schemes are unbiased: walker `i` is expected `N p_i` times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Scheme {
    /// `N` independent draws.
    Multinomial,
    /// One draw in each of `N` equal strata.
    Stratified,
    /// One uniform shared by all strata: counts are `N p_i` rounded up or down.
    #[default]
    Systematic,
    /// `floor(N p_i)` copies for certain, the rest multinomially.
    Residual,
}

impl Scheme {
    /// All schemes.
    pub const ALL: [Scheme; 4] =
        [Scheme::Multinomial, Scheme::Stratified, Scheme::Systematic, Scheme::Residual];

    /// Name used in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Scheme::Multinomial => "multinomial",
            Scheme::Stratified => "stratified",
            Scheme::Systematic => "systematic",
            Scheme::Residual => "residual",
        }
    }

    /// Draws `n` ancestors, ascending, with the normalised weights `p`. The uniforms are addressed by
    /// (seed, `step`, draw, `purpose`). Large ensembles are shared out over the threads of the present rayon pool; the result does not
    /// depend on how many there are.
    pub fn ancestors(self, p: &[f64], n: usize, random: &Random, step: u64, purpose: Purpose) -> Vec<u64> {
        let mut draws = Draws::default();
        self.draw(&Share::all(p), n, &draw::Uniforms { random, step, purpose, parallel: true }, &mut draws);
        draws.ancestors
    }

    /// The same with memory that is reused: for large ensembles, asking the system for new memory takes longer than drawing.
    pub fn ancestors_in<'a>(
        self,
        p: &[f64],
        n: usize,
        random: &Random,
        step: u64,
        purpose: Purpose,
        draws: &'a mut Draws,
    ) -> &'a [u64] {
        self.draw(&Share::all(p), n, &draw::Uniforms { random, step, purpose, parallel: true }, draws);
        &draws.ancestors
    }

    /// The same from a rank's share of the weights, on other threads or only on this one.
    pub(crate) fn draw(self, share: &Share<'_>, n: usize, uniforms: &draw::Uniforms<'_>, draws: &mut Draws) {
        match self {
            Scheme::Systematic => draw::systematic(share, n, uniforms, draws),
            Scheme::Stratified => draw::stratified(share, n, uniforms, draws),
            Scheme::Multinomial => independent::independent::<false>(share, n, uniforms, draws),
            Scheme::Residual => independent::independent::<true>(share, n, uniforms, draws),
        }
    }
}

/// When to resample.
#[derive(Clone, Debug, PartialEq)]
pub enum Trigger {
    /// Never.
    Never,
    /// When the ESS (a fraction of the walkers) falls below a constant, or a schedule of them.
    EssBelow(Thresholds),
    /// When `exp(entropy of the weights) / N` falls below a threshold.
    EntropyBelow(Thresholds),
    /// Every so many iterations.
    Every(u64),
}

impl Trigger {
    /// Whether the ensemble is to be resampled at the end of `iteration` (counted from 1).
    pub fn fires(&self, iteration: u64, sums: &WeightSums) -> bool {
        match self {
            Trigger::Never => false,
            Trigger::EssBelow(c) => sums.ess() < c.at(iteration),
            Trigger::EntropyBelow(c) => sums.perplexity() < c.at(iteration),
            Trigger::Every(lag) => *lag > 0 && iteration.is_multiple_of(*lag),
        }
    }
}

/// The constants `c_k`: a threshold that may change at given iterations, zero before the first.
#[derive(Clone, Debug, PartialEq)]
pub struct Thresholds(Vec<(u64, f64)>);

impl Thresholds {
    /// The same at all times.
    pub fn constant(c: f64) -> Self {
        Thresholds(vec![(0, c)])
    }

    /// `(k, c)`: from iteration `k` on the threshold is `c`. Sorted by `k`.
    pub fn steps(mut steps: Vec<(u64, f64)>) -> Self {
        steps.sort_by_key(|s| s.0);
        Thresholds(steps)
    }

    /// Threshold at an iteration.
    pub fn at(&self, iteration: u64) -> f64 {
        self.0.iter().rev().find(|(from, _)| *from <= iteration).map_or(0.0, |(_, c)| *c)
    }

    /// The steps.
    pub fn as_slice(&self) -> &[(u64, f64)] {
        &self.0
    }
}
