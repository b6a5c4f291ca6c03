//! The training algorithms, as combinations of parts: where walkers start, whether they restart, how they are weighted.

use crate::sampler::Weighting;

/// A training algorithm. Mini-batches of walkers (Algorithm 2) are a property of the sampler and go with each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Algorithms 1 and 2: walkers start as samples of the model and carry exact weights.
    Jarzynski,
    /// Walkers start as samples of the model; weights follow the continuous-time rule of the appendix.
    JarzynskiContinuous,
    /// Persistent contrastive divergence (Algorithm 4): walkers start at data points, equal weights.
    Pcd,
    /// Contrastive divergence (Algorithm 3): walkers restart at data points every iteration, equal weights.
    Cd,
    /// Walkers start as samples of the model, equal weights.
    Unweighted,
}

impl Algorithm {
    /// All algorithms.
    pub const ALL: [Algorithm; 5] = [
        Algorithm::Jarzynski,
        Algorithm::JarzynskiContinuous,
        Algorithm::Pcd,
        Algorithm::Cd,
        Algorithm::Unweighted,
    ];

    /// Name used in configurations and results.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Jarzynski => "jarzynski",
            Algorithm::JarzynskiContinuous => "jarzynski-continuous",
            Algorithm::Pcd => "pcd",
            Algorithm::Cd => "cd",
            Algorithm::Unweighted => "unweighted",
        }
    }

    /// How its walkers are weighted.
    pub fn weighting(self) -> Weighting {
        match self {
            Algorithm::Jarzynski => Weighting::Jarzynski,
            Algorithm::JarzynskiContinuous => Weighting::ContinuousTime,
            Algorithm::Pcd | Algorithm::Cd | Algorithm::Unweighted => Weighting::Equal,
        }
    }

    /// Whether walkers begin at data points.
    pub fn starts_at_data(self) -> bool {
        matches!(self, Algorithm::Pcd | Algorithm::Cd)
    }

    /// Whether walkers restart at data points in every iteration.
    pub fn restarts(self) -> bool {
        self == Algorithm::Cd
    }

    /// Whether the weights estimate `log Z`.
    pub fn is_weighted(self) -> bool {
        self.weighting() != Weighting::Equal
    }
}

/// What is done about walkers being weighted by a step they caused themselves.
///
/// `theta` moves along a direction made of the very walkers it reweights; the estimate of `log Z` then errs by
/// about `-gamma tr Cov(dU) / N_eff` per step, always with the same sign. The leave-one-out correction weights
/// each walker by the step that the others alone would have made, to first order: `A_i` gains
/// `p_i / (1 - p_i) dU_i . R (dU_i - mean dU)`, with `R` the response of the parameters to the direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelfInteractionRule {
    /// The paper's rule: nothing.
    None,
    /// The first-order leave-one-out correction; needs parameter gradients of single walkers.
    LeaveOneOut,
}

impl SelfInteractionRule {
    /// Name used in configurations.
    pub fn name(self) -> &'static str {
        match self {
            SelfInteractionRule::None => "none",
            SelfInteractionRule::LeaveOneOut => "leave-one-out",
        }
    }
}
