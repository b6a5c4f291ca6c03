//! How walkers and parameters move: kernel, optimizer, resampling.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How walkers move.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KernelConfig {
    /// ULA, MALA, or MALA with momentum (GHMC).
    pub kind: KernelName,
    /// Time step `h` at the start.
    pub step_size: f64,
    /// Kernel steps per parameter step (for CD: steps between restarts).
    pub steps: u32,
    /// Friction of a kernel with momentum: walkers forget their velocity over some `1 / friction` of a unit width; 1 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub friction: Option<f64>,
    /// Longest drift, if limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip_norm: Option<f64>,
    /// Largest component of the drift, if limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip_component: Option<f64>,
    /// Adaptation of the step to a target acceptance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adapt: Option<AdaptConfig>,
    /// Change of the step over the iterations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleConfig>,
}

impl Default for KernelConfig {
    fn default() -> Self {
        KernelConfig {
            kind: KernelName::Ula,
            step_size: 0.1,
            steps: 1,
            friction: None,
            clip_norm: None,
            clip_component: None,
            adapt: None,
            schedule: None,
        }
    }
}

/// Names of the kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum KernelName {
    #[default]
    Ula,
    Mala,
    Ghmc,
}

/// Adaptation of the time step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdaptConfig {
    /// Acceptance aimed at.
    pub target: f64,
    /// Speed: `log h` moves by `gain (acceptance - target)` per iteration.
    #[serde(default = "gain")]
    pub gain: f64,
    /// Smallest step.
    #[serde(default = "smallest")]
    pub min: f64,
    /// Largest step.
    #[serde(default = "largest")]
    pub max: f64,
}

fn gain() -> f64 {
    0.05
}
fn smallest() -> f64 {
    1e-8
}
fn largest() -> f64 {
    1e3
}

/// Change of a value over the iterations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleConfig {
    /// Shape.
    pub shape: ShapeName,
    /// Last value as a fraction of the first.
    pub end: f64,
    /// Iterations it takes; all if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<u64>,
}

/// Names of the schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum ShapeName {
    Constant,
    Linear,
    Cosine,
}

/// How parameters move.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OptimizerConfig {
    /// Which one.
    pub kind: OptimizerName,
    /// Learning rate per iteration, by parameter group; `all` for the rest. A name also covers its parts (`mean`: `mean.0`, ...).
    pub rates: BTreeMap<String, f64>,
    /// Groups that stay as they are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub frozen: Vec<String>,
    /// Decay of the velocity (momentum) or of the first moment (Adam, natural gradient).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beta1: Option<f64>,
    /// Decay of the second moments (Adam, every iteration; natural gradient, every tenth).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beta2: Option<f64>,
    /// Added to the root of the second moment (Adam, AdaGrad).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<f64>,
    /// What second moments get in addition, in units of their mean (natural gradient).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damping: Option<f64>,
    /// Looks at the second moments that their mean counts for, beside those that were taken (natural gradient): in the beginning, few looks know few directions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prior: Option<f64>,
    /// Limit on the norm of the direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip_norm: Option<f64>,
    /// Largest variance of `U_{k+1} - U_k` over the walkers in one parameter step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust_region: Option<f64>,
    /// How long a direction waits before it is followed, in the kernel's time (`sqrt(2 h)` a step with momentum, `h` without): walkers forget where
    /// they were meanwhile, and are not weighted by steps they caused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<f64>,
    /// Memory in iterations of a running mean of the parameters: the model that is judged, and that witnesses follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average: Option<f64>,
    /// A last phase in which only some groups learn, driven by copies of the witnesses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settle: Option<SettleConfig>,
    /// Change of all rates over the iterations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleConfig>,
}

/// A last phase in which few parameters learn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SettleConfig {
    /// Iterations before.
    pub after: u64,
    /// Groups of parameters that go on learning. Frozen ones do if they are named in full, others stay frozen.
    pub only: Vec<String>,
    /// Share of the way to the end that a step goes, at most 1.
    #[serde(default = "settling")]
    pub rate: f64,
}

fn settling() -> f64 {
    0.05
}

impl Default for OptimizerConfig {
    fn default() -> Self {
        OptimizerConfig {
            kind: OptimizerName::Gradient,
            rates: BTreeMap::from([("all".to_string(), 0.01)]),
            frozen: Vec::new(),
            beta1: None,
            beta2: None,
            epsilon: None,
            damping: None,
            prior: None,
            clip_norm: None,
            trust_region: None,
            delay: None,
            average: None,
            settle: None,
            schedule: None,
        }
    }
}

/// Names of the optimizers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum OptimizerName {
    #[default]
    Gradient,
    Momentum,
    Adam,
    AdaGrad,
    Natural,
}

/// When and how walkers are resampled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ResamplingConfig {
    /// How ancestors are drawn.
    pub scheme: SchemeName,
    /// What triggers it.
    pub trigger: TriggerName,
    /// Threshold of the ESS or of `exp(entropy) / N`, as a fraction of the walkers.
    pub threshold: f64,
    /// Thresholds by iteration, `[[k, c], ...]`: from iteration `k` on it is `c`, and zero before the first. Replaces `threshold`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<(u64, f64)>,
    /// Lag, for the trigger `every`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<u64>,
}

impl Default for ResamplingConfig {
    fn default() -> Self {
        ResamplingConfig {
            scheme: SchemeName::Systematic,
            trigger: TriggerName::Ess,
            threshold: 0.5,
            thresholds: Vec::new(),
            every: None,
        }
    }
}

/// Names of the resampling schemes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum SchemeName {
    Multinomial,
    Stratified,
    #[default]
    Systematic,
    Residual,
}

/// Names of the triggers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum TriggerName {
    #[default]
    Ess,
    Entropy,
    Every,
    Never,
}
