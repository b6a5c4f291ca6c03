//! The configuration of a run: what a user writes in TOML, checked before anything starts.

mod check;
mod dynamics;

pub use dynamics::{
    AdaptConfig, KernelConfig, KernelName, OptimizerConfig, OptimizerName, ResamplingConfig, ScheduleConfig,
    SchemeName, SettleConfig, ShapeName, TriggerName,
};

use jarz_data::Augmentation;
use jarz_net::{BaseKind, Layer};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A configuration that cannot be used, with the key that is wrong.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration '{path}': {reason}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Not TOML, an unknown key, a missing key or a wrong type.
    #[error("{origin} is not a valid configuration:\n{reason}")]
    Invalid {
        /// File or option.
        origin: String,
        /// The parser's words, with line and key.
        reason: String,
    },
    /// A value out of range, or values that do not go together.
    #[error("{key} = {value}: {reason}")]
    Value {
        /// Dotted key.
        key: &'static str,
        /// What was given.
        value: String,
        /// What is wrong and what to do.
        reason: String,
    },
}

/// A complete configuration. Every section but `data` and `model` has defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Seed of all random numbers.
    #[serde(default = "one")]
    pub seed: u64,
    /// Type of the walkers' positions; weights and energies are always double precision.
    #[serde(default)]
    pub precision: Precision,
    /// Where the data comes from.
    pub data: DataConfig,
    /// The model.
    pub model: ModelConfig,
    /// The algorithm.
    #[serde(default)]
    pub algorithm: AlgorithmConfig,
    /// The walkers.
    #[serde(default)]
    pub walkers: WalkersConfig,
    /// How walkers move.
    #[serde(default)]
    pub kernel: KernelConfig,
    /// How parameters move.
    #[serde(default)]
    pub optimizer: OptimizerConfig,
    /// When and how walkers are resampled.
    #[serde(default)]
    pub resampling: ResamplingConfig,
    /// Length of the run, logging and checkpoints.
    #[serde(default)]
    pub run: RunConfig,
}

fn one() -> u64 {
    1
}

/// Type of the walkers' positions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// Single precision: twice as fast.
    F32,
    /// Double precision.
    #[default]
    F64,
}

/// Where the data comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum DataConfig {
    /// A file of points: `.npy`, `.npz` or CSV.
    File {
        /// The file; relative paths are relative to the working directory.
        path: PathBuf,
        /// Name of the array in an `.npz` that holds several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        array: Option<String>,
        /// Field delimiter of a CSV; found out if not given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delimiter: Option<char>,
        /// Whether the CSV has a header; found out if not given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        header: Option<bool>,
        /// Points used per iteration; all if not given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        batch: Option<usize>,
        /// Fingerprint of the file, filled in when a run starts, so that resuming notices another file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sha256: Option<String>,
    },
    /// Points drawn from a Gaussian mixture, the "teacher": the truth is known, so KL divergences are reported.
    Mixture {
        /// Number of points.
        points: usize,
        /// Dimension.
        dim: usize,
        /// One mean per mode; coordinates not given are zero.
        means: Vec<Vec<f64>>,
        /// Mass of each mode; normalised.
        masses: Vec<f64>,
        /// Width of the modes.
        #[serde(default = "unit")]
        sigma: f64,
        /// Points used per iteration; all if not given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        batch: Option<usize>,
        /// Seed of the points, if it is to differ from the run's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seed: Option<u64>,
    },
    /// Images, scaled to [-1, 1]; channels last.
    Images(ImagesConfig),
}

/// A set of images.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImagesConfig {
    /// `digits` (built in), `mnist`, `fashion-mnist` or `cifar10` (fetched by `jarz data get`), or a folder of PNG files.
    pub set: String,
    /// The first so many images of each label, `[[label, count], ...]`; all if not given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<(u8, usize)>,
    /// Standard deviation of Gaussian noise added to every pixel.
    #[serde(default)]
    pub noise: f64,
    /// Whether pixels are spread uniformly over their level.
    #[serde(default)]
    pub dequantise: bool,
    /// How often every image occurs, each time with noise of its own.
    #[serde(default = "once")]
    pub copies: usize,
    /// Images used per iteration; all if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<usize>,
    /// Seed of the noise, if it is to differ from the run's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

fn once() -> usize {
    1
}

impl DataConfig {
    /// Points used per iteration; all if not given.
    pub fn batch(&self) -> Option<usize> {
        match self {
            DataConfig::File { batch, .. } | DataConfig::Mixture { batch, .. } => *batch,
            DataConfig::Images(images) => images.batch,
        }
    }
}

fn unit() -> f64 {
    1.0
}

/// The model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum ModelConfig {
    /// Gaussian mixture; parameter groups `mean.0`, ..., `log_mass.0`, ...
    Mixture {
        /// Number of modes.
        modes: usize,
        /// Width of the modes, fixed.
        #[serde(default = "unit")]
        sigma: f64,
        /// Where the modes' means start, for coordinates not given in `means`.
        #[serde(default)]
        start: MeansStart,
        /// Spread of the normal noise added to coordinates not given in `means`.
        #[serde(default = "tenth")]
        epsilon: f64,
        /// Initial means, as many coordinates as you like.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        means: Vec<Vec<f64>>,
        /// Initial masses; equal if not given.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        masses: Vec<f64>,
    },
    /// One Gaussian; parameter groups `mean` and `precision`.
    Gaussian {
        /// Initial mean; zero if not given.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        mean: Vec<f64>,
        /// Initial precision, the same in all directions.
        #[serde(default = "unit")]
        precision: f64,
    },
    /// A network on top of a Gaussian fitted to the data; parameter groups by layer.
    Network(NetworkConfig),
}

/// A network on top of a Gaussian, or of a mixture of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkConfig {
    /// What the Gaussian knows of the data: `isotropic`, `diagonal` or `full` covariance; or `{ mixture = 3 }`, a mixture of as many Gaussians, whose weights the
    /// model may change (parameters `base.weights`).
    #[serde(default = "full")]
    pub base: BaseKind,
    /// A network by name: `mnist` or `cifar`, those of the paper.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// Width `n_f` of the network `cifar`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<usize>,
    /// The layers of a network of your own, first to last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<Layer>,
}

fn full() -> BaseKind {
    BaseKind::Full
}

fn tenth() -> f64 {
    0.1
}

/// Where a mixture's means start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MeansStart {
    /// At zero.
    Origin,
    /// At the mean of the data.
    #[default]
    DataMean,
    /// At data points picked at random.
    DataPoints,
}

/// The algorithm.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AlgorithmConfig {
    /// Which one.
    pub kind: AlgorithmKind,
    /// What is done about walkers weighted by a step they caused themselves; leave-one-out where the model offers it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub self_interaction: Option<SelfInteractionKind>,
}

/// Names of the algorithms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum AlgorithmKind {
    #[default]
    Jarzynski,
    JarzynskiContinuous,
    Pcd,
    Cd,
    Unweighted,
}

impl AlgorithmKind {
    /// The algorithm of that name.
    pub fn algorithm(self) -> jarz::Algorithm {
        match self {
            AlgorithmKind::Jarzynski => jarz::Algorithm::Jarzynski,
            AlgorithmKind::JarzynskiContinuous => jarz::Algorithm::JarzynskiContinuous,
            AlgorithmKind::Pcd => jarz::Algorithm::Pcd,
            AlgorithmKind::Cd => jarz::Algorithm::Cd,
            AlgorithmKind::Unweighted => jarz::Algorithm::Unweighted,
        }
    }
}

/// Names of the self-interaction rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum SelfInteractionKind {
    None,
    LeaveOneOut,
}

/// The walkers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WalkersConfig {
    /// How many.
    pub count: usize,
    /// Walkers beside these that judge the model without driving it: their `log Z` and masses are free of the self-interaction.
    #[serde(skip_serializing_if = "is_zero")]
    pub witnesses: usize,
    /// How many of them move per iteration; all if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<usize>,
    /// Spread over the modes at the start.
    pub start: WalkersStart,
    /// Data augmentation of the walkers between iterations: images, and algorithms without weights only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub augment: Option<AugmentConfig>,
    /// Copies of walkers that do not drive take over from those that do, now and then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relay: Option<RelayConfig>,
}

/// When copies of walkers that do not drive take over from those that do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RelayConfig {
    /// How many walkers there are to be copied.
    pub keepers: usize,
    /// Iterations from one time to the next.
    pub every: u64,
    /// How long copies move on before they drive, in the kernel's time (`sqrt(2 h)` a step with momentum, `h` without): they should have forgotten where the keepers stand.
    #[serde(default = "rest")]
    pub rest: f64,
}

fn rest() -> f64 {
    3.0
}

/// Data augmentation of walkers that are images.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AugmentConfig {
    /// Chance of every walker, in every iteration, to be changed.
    pub probability: f64,
    /// Strength of the colour distortion, 0 to 1.
    pub colour: f64,
    /// Chance of a horizontal flip.
    pub flip: f64,
    /// Smallest share of the area that a crop keeps before it is scaled back to size; 1 means no rescaling.
    pub smallest_crop: f64,
    /// Largest standard deviation, in pixels, of a Gaussian blur; 0 means none.
    pub blur: f64,
}

impl Default for AugmentConfig {
    fn default() -> Self {
        let Augmentation { colour, flip, smallest_crop, blur, .. } = Augmentation::default();
        AugmentConfig { probability: 0.01, colour, flip, smallest_crop, blur }
    }
}

impl AugmentConfig {
    /// As the images' own type.
    pub fn augmentation(&self) -> Augmentation {
        let AugmentConfig { probability, colour, flip, smallest_crop, blur } = *self;
        Augmentation { probability, colour, flip, smallest_crop, blur }
    }
}

impl Default for WalkersConfig {
    fn default() -> Self {
        WalkersConfig {
            count: 10_000,
            witnesses: 0,
            batch: None,
            start: WalkersStart::Stratified,
            augment: None,
            relay: None,
        }
    }
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Spread of the initial walkers over the modes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum WalkersStart {
    #[default]
    Stratified,
    Independent,
}

/// Length of the run, logging and checkpoints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunConfig {
    /// Iterations.
    pub iterations: u64,
    /// A row of metrics every so many iterations.
    pub log_every: u64,
    /// A checkpoint every so many iterations, besides those by time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint_every: Option<u64>,
    /// A checkpoint every so many seconds.
    pub checkpoint_seconds: f64,
    /// Threads; 0 means one per core. Results do not depend on it.
    pub threads: usize,
    /// Repetitions with seeds `seed`, `seed + 1`, ...; more than one gives error bars from their scatter.
    pub runs: usize,
    /// Whether to write event files for TensorBoard as well.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tensorboard: bool,
}

impl Default for RunConfig {
    fn default() -> Self {
        RunConfig {
            iterations: 8000,
            log_every: 20,
            checkpoint_every: None,
            checkpoint_seconds: 60.0,
            threads: 0,
            runs: 1,
            tensorboard: false,
        }
    }
}
