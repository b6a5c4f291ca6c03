//! Optimizers: `theta' = opt(theta, D)`, moving *along* `D`, the descent direction of the cross-entropy.

mod natural;

pub(crate) use natural::exact_step;

use crate::energy::ParamGroup;
use crate::schedule::Schedule;

/// Update rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// `theta + gamma D`.
    Gradient,
    /// `v = beta v + D`, `theta + gamma v`.
    Momentum {
        /// Decay of the velocity.
        beta: f64,
    },
    /// Adam with bias correction.
    Adam {
        /// Decay of the first moment.
        beta1: f64,
        /// Decay of the second moment.
        beta2: f64,
        /// Added to the root of the second moment.
        epsilon: f64,
    },
    /// AdaGrad.
    AdaGrad {
        /// Added to the root of the accumulated squares.
        epsilon: f64,
    },
    /// Natural gradient of models whose parameters are matrices, with the Fisher information of each approximated by a Kronecker product that is
    /// learnt from the scatter of the direction; `theta + gamma F^-1 m` with the first moment `m`.
    Natural {
        /// Decay of the first moment.
        beta1: f64,
        /// Decay of the second moments, which are looked at every tenth iteration.
        beta2: f64,
        /// What every second moment gets in addition, in units of their mean.
        damping: f64,
        /// Looks that the mean counts for beside those that were taken: the moments of few looks know few directions.
        prior: f64,
    },
}

/// Parameters that are a matrix, row by row: one layer of a network, say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
}

impl Rule {
    /// Adam with the usual constants.
    pub const ADAM: Rule = Rule::Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-8 };
}

/// An optimizer with its state.
#[derive(Clone, Debug, PartialEq)]
pub struct Optimizer {
    rule: Rule,
    rates: Vec<f64>,
    schedule: Schedule,
    clip: Option<f64>,
    /// The parameters in their order, as matrices; for [`Rule::Natural`].
    matrices: Vec<Matrix>,
    /// Made from the second moments; none if they have to be made anew.
    factors: Vec<natural::Factors>,
    /// Velocity or first moment.
    pub(crate) first: Vec<f64>,
    /// Second moment or accumulated squares.
    pub(crate) second: Vec<f64>,
}

impl Optimizer {
    /// `rates` has one learning rate per parameter (see [`learning_rates`]); zero freezes it.
    pub fn new(rule: Rule, rates: Vec<f64>) -> Self {
        let n = rates.len();
        let (first, second) = match rule {
            Rule::Gradient => (0, 0),
            Rule::Momentum { .. } => (n, 0),
            Rule::Adam { .. } => (n, n),
            Rule::AdaGrad { .. } => (0, n),
            Rule::Natural { .. } => (n, 0),
        };
        Optimizer {
            rule,
            rates,
            schedule: Schedule::constant(1.0),
            clip: None,
            matrices: Vec::new(),
            factors: Vec::new(),
            first: vec![0.0; first],
            second: vec![0.0; second],
        }
    }

    /// Learning rate of each parameter.
    pub fn rates(&self) -> &[f64] {
        &self.rates
    }

    /// The update rule.
    pub fn rule(&self) -> Rule {
        self.rule
    }

    /// The factor on all rates.
    pub fn schedule(&self) -> Schedule {
        self.schedule
    }

    /// The limit on the norm of the direction.
    pub fn clip(&self) -> Option<f64> {
        self.clip
    }

    /// Factor on all rates over the iterations.
    pub fn with_schedule(mut self, schedule: Schedule) -> Self {
        self.schedule = schedule;
        self
    }

    /// Limit on the norm of the direction (of the trained parameters).
    pub fn with_clip(mut self, clip: Option<f64>) -> Self {
        self.clip = clip;
        self
    }

    /// The parameters as matrices, one after the other, which [`Rule::Natural`] needs.
    pub fn with_matrices(mut self, matrices: Vec<Matrix>) -> Self {
        if matches!(self.rule, Rule::Natural { .. }) {
            self.second = vec![0.0; natural::moments(&matrices)];
            self.matrices = matrices;
        }
        self
    }

    /// Whether the rule has the matrices it needs.
    pub(crate) fn is_complete(&self) -> bool {
        let covered: usize = self.matrices.iter().map(|m| m.rows * m.columns).sum();
        !matches!(self.rule, Rule::Natural { .. }) || covered == self.rates.len()
    }

    /// Moments of another time take the place of the present ones.
    pub(crate) fn restore(&mut self, [first, second]: [Vec<f64>; 2]) {
        (self.first, self.second) = (first, second);
        self.factors.clear();
    }

    /// Decay per iteration of a direction's influence on later steps.
    pub fn persistence(&self) -> f64 {
        match self.rule {
            Rule::Momentum { beta } | Rule::Adam { beta1: beta, .. } | Rule::Natural { beta1: beta, .. } => {
                beta
            }
            Rule::Gradient | Rule::AdaGrad { .. } => 0.0,
        }
    }

    /// Moves `theta` along `direction`. `response` receives the derivative of the new parameters in the
    /// direction (diagonal, second moments held fixed), which the leave-one-out correction needs.
    pub fn step(&mut self, iteration: u64, direction: &[f64], theta: &mut [f64], response: &mut [f64]) {
        let factor = self.schedule.at(iteration);
        let scale = match self.clip {
            Some(limit) => {
                let norm = direction
                    .iter()
                    .zip(&self.rates)
                    .filter(|(_, rate)| **rate != 0.0)
                    .map(|(d, _)| d * d)
                    .sum::<f64>()
                    .sqrt();
                if norm > limit { limit / norm } else { 1.0 }
            }
            None => 1.0,
        };
        let t = (iteration + 1) as i32;
        if let Rule::Natural { beta1, beta2, damping, prior } = self.rule {
            let rate = factor / (1.0 - beta1.powi(t));
            self.collect(iteration, direction, scale, [beta1, beta2, damping, prior]);
            return self.natural_step(rate, theta, response);
        }
        for j in 0..theta.len() {
            let rate = self.rates[j] * factor;
            let d = direction[j] * scale;
            let (step, answer) = match self.rule {
                Rule::Gradient => (d, 1.0),
                Rule::Momentum { beta } => {
                    self.first[j] = beta * self.first[j] + d;
                    (self.first[j], 1.0)
                }
                Rule::Adam { beta1, beta2, epsilon } => {
                    self.first[j] = beta1 * self.first[j] + (1.0 - beta1) * d;
                    self.second[j] = beta2 * self.second[j] + (1.0 - beta2) * d * d;
                    let mean = self.first[j] / (1.0 - beta1.powi(t));
                    let root = (self.second[j] / (1.0 - beta2.powi(t))).sqrt() + epsilon;
                    (mean / root, (1.0 - beta1) / (1.0 - beta1.powi(t)) / root)
                }
                Rule::AdaGrad { epsilon } => {
                    self.second[j] += d * d;
                    let root = self.second[j].sqrt() + epsilon;
                    (d / root, 1.0 / root)
                }
                // Above.
                Rule::Natural { .. } => (0.0, 0.0),
            };
            theta[j] += rate * step;
            response[j] = if rate == 0.0 { 0.0 } else { rate * answer * scale };
        }
    }

    /// Moments of [`Rule::Natural`].
    fn collect(&mut self, k: u64, direction: &[f64], scale: f64, [beta1, beta2, damping, prior]: [f64; 4]) {
        let moments = self.first.iter_mut().zip(direction);
        moments.for_each(|(m, d)| *m = beta1 * *m + (1.0 - beta1) * d * scale);
        let due = k.is_multiple_of(natural::EVERY);
        let looks = (k / natural::EVERY + 1) as f64;
        // In the beginning the mean over all looks so far.
        let beta = beta2.min(1.0 - 1.0 / looks);
        if due {
            natural::collect(&self.matrices, direction, scale, beta, &mut self.second);
        }
        if due || self.factors.is_empty() {
            self.factors = natural::factorise(&self.matrices, &self.second, damping + prior * (1.0 - beta));
        }
    }

    /// The response is not that of each parameter for itself, so that there is no leave-one-out correction with this rule.
    fn natural_step(&mut self, rate: f64, theta: &mut [f64], response: &mut [f64]) {
        let mut steps = self.first.clone();
        let mut rest = &mut steps[..];
        for (matrix, factors) in self.matrices.iter().zip(&self.factors) {
            let (values, others) = rest.split_at_mut(matrix.rows * matrix.columns);
            factors.solve(matrix, values);
            rest = others;
        }
        for ((theta, step), own) in theta.iter_mut().zip(&steps).zip(&self.rates) {
            *theta += own * rate * step;
        }
        response.fill(0.0);
    }
}

/// Spreads named learning rates over the parameters: for each group the longest name that matches counts,
/// frozen groups get zero. An error names a pattern that matches nothing or a group that got no rate.
pub fn learning_rates(
    groups: &[ParamGroup],
    rates: &[(String, f64)],
    frozen: &[String],
) -> Result<Vec<f64>, RateError> {
    let params = groups.iter().map(|g| g.range.end).max().unwrap_or(0);
    let names = || groups.iter().map(|g| g.name.as_str()).collect::<Vec<_>>().join(", ");
    let patterns = rates.iter().map(|(name, _)| name).chain(frozen).filter(|name| *name != "all");
    for pattern in patterns {
        if !groups.iter().any(|g| g.matches(pattern)) {
            return Err(RateError::Unknown { pattern: pattern.clone(), groups: names() });
        }
    }
    let mut out = vec![0.0; params];
    for group in groups {
        if frozen.iter().any(|f| group.matches(f)) {
            continue;
        }
        let best = rates
            .iter()
            .filter(|(name, _)| name == "all" || group.matches(name))
            .max_by_key(|(name, _)| if name == "all" { 0 } else { name.len() });
        let Some((_, rate)) = best else {
            return Err(RateError::Missing { group: group.name.clone(), groups: names() });
        };
        out[group.range.clone()].fill(*rate);
    }
    Ok(out)
}

/// A learning rate that fits no group, or the other way round.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RateError {
    /// A name that matches no group.
    #[error("there is no parameter group '{pattern}' (the model has: {groups})")]
    Unknown {
        /// The name.
        pattern: String,
        /// What there is.
        groups: String,
    },
    /// A group without a rate.
    #[error(
        "parameter group '{group}' has no learning rate: give one for it, for a prefix of its name or for 'all', or freeze it (the model has: {groups})"
    )]
    Missing {
        /// The group.
        group: String,
        /// What there is.
        groups: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups() -> Vec<ParamGroup> {
        vec![
            ParamGroup::new("mean.0", 0..2),
            ParamGroup::new("mean.1", 2..4),
            ParamGroup::new("log_mass.0", 4..5),
            ParamGroup::new("log_mass.1", 5..6),
        ]
    }

    #[test]
    fn rates_are_spread_by_the_longest_matching_name() {
        let rates = [("all".into(), 1.0), ("mean".into(), 2.0), ("mean.1".into(), 3.0)];
        let out = learning_rates(&groups(), &rates, &["log_mass.0".into()]).unwrap();
        assert_eq!(out, [2.0, 2.0, 3.0, 3.0, 0.0, 1.0]);
        let err = learning_rates(&groups(), &[("mea".into(), 1.0)], &[]).unwrap_err();
        assert!(err.to_string().contains("'mea'") && err.to_string().contains("log_mass.1"));
        let err = learning_rates(&groups(), &[("mean".into(), 1.0)], &[]).unwrap_err();
        assert!(err.to_string().contains("'log_mass.0' has no learning rate"));
    }

    /// Two steps of each rule, worked out by hand.
    #[test]
    fn rules_follow_their_definitions() {
        let run = |rule| {
            let mut opt = Optimizer::new(rule, vec![0.1, 0.0]);
            let (mut theta, mut response) = ([1.0, 1.0], [0.0; 2]);
            opt.step(0, &[2.0, 5.0], &mut theta, &mut response);
            opt.step(1, &[-1.0, 5.0], &mut theta, &mut response);
            assert_eq!(theta[1], 1.0, "a zero rate freezes");
            assert_eq!(response[1], 0.0);
            theta[0]
        };
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        close(run(Rule::Gradient), 1.0 + 0.2 - 0.1);
        close(run(Rule::Momentum { beta: 0.5 }), 1.0 + 0.1 * 2.0 + 0.1 * (0.5 * 2.0 - 1.0));
        let epsilon = 1e-8;
        close(
            run(Rule::AdaGrad { epsilon }),
            1.0 + 0.1 * 2.0 / (2.0 + epsilon) - 0.1 / (5.0f64.sqrt() + epsilon),
        );
        let (b1, b2) = (0.9, 0.999);
        let m = (b1 * (1.0 - b1) * 2.0 - (1.0 - b1)) / (1.0 - b1 * b1);
        let v: f64 = (b2 * (1.0 - b2) * 4.0 + (1.0 - b2)) / (1.0 - b2 * b2);
        close(run(Rule::ADAM), 1.0 + 0.1 * 2.0 / (2.0 + 1e-8) + 0.1 * m / (v.sqrt() + 1e-8));
    }

    /// A prior of one look is damping by one while there is one look, and by `1 - beta2` after many.
    #[test]
    fn the_prior_of_the_natural_gradient_fades_with_looks() {
        let run = |damping: f64, prior: f64, steps: u64| {
            let rule = Rule::Natural { beta1: 0.0, beta2: 0.75, damping, prior };
            let matrices = vec![Matrix { rows: 2, columns: 2 }];
            let mut opt = Optimizer::new(rule, vec![1.0; 4]).with_matrices(matrices);
            let mut theta = [0.0; 4];
            for k in 0..steps {
                theta.fill(0.0);
                let d = [1.0, (k as f64).sin(), -0.5, (2.0 * k as f64).cos()];
                opt.step(k, &d, &mut theta, &mut [0.0; 4]);
            }
            theta
        };
        assert_eq!(run(0.25, 1.0, 1), run(1.25, 0.0, 1));
        assert_ne!(run(0.25, 1.0, 1), run(0.25, 0.0, 1));
        // The second look is at the eleventh step, the fourth and later ones weigh a quarter.
        assert_eq!(run(0.25, 1.0, 11), run(0.75, 0.0, 11));
        assert_eq!(run(0.25, 1.0, 81), run(0.5, 0.0, 81));
    }

    #[test]
    fn clip_limits_the_trained_part_of_the_direction() {
        let mut opt = Optimizer::new(Rule::Gradient, vec![1.0, 1.0, 0.0]).with_clip(Some(1.0));
        let (mut theta, mut response) = ([0.0; 3], [0.0; 3]);
        opt.step(0, &[3.0, 4.0, 100.0], &mut theta, &mut response);
        assert!((theta[0] - 0.6).abs() < 1e-15 && (theta[1] - 0.8).abs() < 1e-15);
    }
}
