//! From a checked configuration to the parts of a run: data, model, setup.

use crate::augment::AugmentWalkers;
use crate::config::*;
use crate::error::RunError;
use crate::network::{load_images, network_and_data, noisy_copies};
use crate::state::Scalar;
use jarz::optimizer::learning_rates;
use jarz::{
    Clip, Dataset, Disturbance, Energy, Gaussian, Kernel, KernelKind, Mixture, Optimizer, ParamGroup,
    Purpose, Random, Real, Relay, Rule, Schedule, Scheme, SelfInteractionRule, Settle, Setup, Shape,
    StepSize, Stratification, Thresholds, Trigger,
};
use jarz_data::{Header, Part, ReadOptions, Table, file_sha256, read_table};
use jarz_net::NetEnergy;
use std::sync::Arc;

/// Something to be done with a run's setup, whatever its scalar type and model are.
pub trait Job {
    /// What comes out.
    type Output;
    /// Does it.
    fn run<T: Scalar, E: Energy<T>>(self, setup: Setup<T, E>) -> Result<Self::Output, RunError>;
}

/// Builds the setup of a configuration and hands it to a job.
pub fn with_setup<J: Job>(config: &Config, job: J) -> Result<J::Output, RunError> {
    match config.precision {
        Precision::F32 => with_scalar::<f32, J>(config, job),
        Precision::F64 => with_scalar::<f64, J>(config, job),
    }
}

fn with_scalar<T: Scalar, J: Job>(config: &Config, job: J) -> Result<J::Output, RunError> {
    match &config.model {
        ModelConfig::Mixture { .. } => {
            let (data, truth) = data_and_truth::<T>(config)?;
            let energy = mixture(config, &data)?;
            job.run(setup(config, energy, data, truth)?)
        }
        ModelConfig::Gaussian { mean, precision } => {
            let (data, truth) = data_and_truth::<T>(config)?;
            let energy = gaussian(mean, *precision, data.dim())?;
            job.run(setup(config, energy, data, truth)?)
        }
        ModelConfig::Network(network) => job.run(setup_of_network::<T>(config, network)?),
    }
}

fn setup_of_network<T: Scalar>(
    config: &Config,
    network: &NetworkConfig,
) -> Result<Setup<T, NetEnergy<T>>, RunError> {
    let (energy, data, shape) = network_and_data::<T>(config, network)?;
    let how = config.walkers.augment.as_ref().map(|a| a.augmentation());
    let augment = how.map(|how| AugmentWalkers { energy: energy.clone(), shape, how });
    let mut setup = setup(config, energy, data, None)?;
    setup.disturbance = augment.map(|a| Arc::new(a) as Arc<dyn Disturbance<T>>);
    Ok(setup)
}

/// The setup of a configuration whose model is a network, in single precision.
pub fn network_setup(config: &Config) -> Result<Setup<f32, NetEnergy<f32>>, RunError> {
    let (ModelConfig::Network(network), Precision::F32) = (&config.model, config.precision) else {
        return Err(RunError::Impossible("this takes a network in single precision".into()));
    };
    setup_of_network(config, network)
}

/// The data, and its entropy where the truth is known.
fn data_and_truth<T: Scalar>(config: &Config) -> Result<(Dataset<T>, Option<f64>), RunError> {
    let (data, teacher) = load_data::<T>(config)?;
    let truth = teacher.map(|t| cross_entropy(&t, &data));
    Ok((data, truth))
}

/// Fills in what a run folder records beyond what the user wrote: the data file's fingerprint, and the
/// length of schedules, which must not change when a run is extended.
pub fn resolve(config: &mut Config) -> Result<(), RunError> {
    for schedule in [&mut config.kernel.schedule, &mut config.optimizer.schedule].into_iter().flatten() {
        schedule.over.get_or_insert(config.run.iterations);
    }
    if let DataConfig::File { path, sha256, .. } = &mut config.data {
        *path = std::path::absolute(&*path).unwrap_or_else(|_| path.clone());
        *sha256 = Some(file_sha256(&*path)?);
    }
    Ok(())
}

/// Checks that a data file is still the one the run began with.
pub fn check_unchanged(config: &Config) -> Result<(), RunError> {
    if let DataConfig::File { path, sha256: Some(expected), .. } = &config.data
        && file_sha256(path)? != *expected
    {
        return Err(RunError::DataChanged { path: path.clone() });
    }
    Ok(())
}

/// Reads points for evaluation or training.
pub fn read_points(
    path: &std::path::Path,
    array: Option<&str>,
    delimiter: Option<char>,
    header: Option<bool>,
) -> Result<Table, RunError> {
    let options = ReadOptions {
        array: array.map(str::to_string),
        delimiter: delimiter.and_then(|c| u8::try_from(c).ok()),
        header: match header {
            None => Header::Auto,
            Some(true) => Header::Yes,
            Some(false) => Header::No,
        },
        max_bytes: None,
    };
    Ok(read_table(path, &options)?)
}

pub(crate) fn load_data<T: Real>(config: &Config) -> Result<(Dataset<T>, Option<Mixture>), RunError> {
    match &config.data {
        DataConfig::File { path, array, delimiter, header, batch, .. } => {
            let table = read_points(path, array.as_deref(), *delimiter, *header)?;
            if let Some(batch) = batch
                && *batch > table.rows
            {
                let text =
                    format!("data.batch = {batch}: '{}' has only {} points", path.display(), table.rows);
                return Err(RunError::Impossible(text));
            }
            let data = Dataset::from_f64(table.cols, &table.values).ok_or_else(|| {
                let text =
                    format!("'{}' has values too large for precision = \"{}\"", path.display(), T::NAME);
                RunError::Impossible(text)
            })?;
            Ok((data, None))
        }
        DataConfig::Images(images) => {
            let set = load_images(images, Part::Train)?;
            let data = Dataset::new(set.dim(), noisy_copies(&set, images, config.seed)?);
            Ok((data.ok_or_else(|| RunError::Impossible("the set has no images".into()))?, None))
        }
        DataConfig::Mixture { points, dim, means, masses, sigma, seed, .. } => {
            let means: Vec<Vec<f64>> = means.iter().map(|m| pad(m, *dim)).collect();
            let logs: Vec<f64> = masses.iter().map(|m| m.ln()).collect();
            let impossible = || RunError::Impossible("the data's mixture cannot be built".into());
            let teacher = Mixture::new(&means, &logs, *sigma).ok_or_else(impossible)?;
            let seed = seed.unwrap_or(config.seed);
            let data = Dataset::sample(&teacher, *points, seed).ok_or_else(impossible)?;
            Ok((data, Some(teacher)))
        }
    }
}

fn pad(values: &[f64], dim: usize) -> Vec<f64> {
    let mut out = values.to_vec();
    out.resize(dim, 0.0);
    out
}

/// Exact cross-entropy of a mixture on data: with the truth, the entropy of the data.
fn cross_entropy<T: Real>(model: &Mixture, data: &Dataset<T>) -> f64 {
    let mut workspace = Default::default();
    let mut total = 0.0;
    let mut u = vec![0.0; 256];
    for rows in data.values().chunks(256 * data.dim()) {
        let u = &mut u[..rows.len() / data.dim()];
        model.energy(rows, u, &mut workspace);
        total += u.iter().sum::<f64>();
    }
    let log_z = Energy::<T>::exact(model).map_or(f64::NAN, |e| e.log_z());
    log_z + total / data.len() as f64
}

fn mixture<T: Real>(config: &Config, data: &Dataset<T>) -> Result<Mixture, RunError> {
    let ModelConfig::Mixture { modes, sigma, start, epsilon, means, masses } = &config.model else {
        return Err(RunError::Impossible("not a mixture".into()));
    };
    let dim = data.dim();
    if let Some(long) = means.iter().find(|m| m.len() > dim) {
        let text = format!("model.means: a mean has {} coordinates but the data has {dim}", long.len());
        return Err(RunError::Impossible(text));
    }
    let random = Random::new(config.seed);
    let mut centre = vec![0.0; dim];
    if *start == MeansStart::DataMean {
        for row in data.values().chunks(dim) {
            centre.iter_mut().zip(row).for_each(|(c, x)| *c += x.to_f64());
        }
        centre.iter_mut().for_each(|c| *c /= data.len() as f64);
    }
    let all: Vec<Vec<f64>> = (0..*modes)
        .map(|k| {
            let mut mean = vec![0.0f64; dim];
            random.normals(0, k as u64, Purpose::Parameters, &mut mean);
            if *start == MeansStart::DataPoints {
                let pick = random.below(1, k as u64, Purpose::Parameters, data.len() as u64);
                centre = data.row(pick as usize).iter().map(|x| x.to_f64()).collect();
            }
            mean.iter_mut().zip(&centre).for_each(|(m, c)| *m = c + epsilon * *m);
            let given = means.get(k).map_or(&[][..], |m| m);
            mean[..given.len()].copy_from_slice(given);
            mean
        })
        .collect();
    let logs = if masses.is_empty() { vec![0.0; *modes] } else { masses.iter().map(|m| m.ln()).collect() };
    let impossible = || RunError::Impossible("the model's mixture cannot be built".into());
    Mixture::new(&all, &logs, *sigma).ok_or_else(impossible)
}

fn gaussian(mean: &[f64], precision: f64, dim: usize) -> Result<Gaussian, RunError> {
    if mean.len() > dim {
        let text = format!("model.mean has {} coordinates but the data has {dim}", mean.len());
        return Err(RunError::Impossible(text));
    }
    let mut matrix = vec![0.0; dim * dim];
    (0..dim).for_each(|i| matrix[i * dim + i] = precision);
    let impossible = || RunError::Impossible("the model's Gaussian cannot be built".into());
    Gaussian::new(&pad(mean, dim), &matrix).ok_or_else(impossible)
}

/// Compares what the walkers will need with what the machine has, where it says so.
fn check_memory(config: &Config, dim: usize, scalar: usize) -> Result<(), RunError> {
    let modes = match &config.model {
        ModelConfig::Mixture { modes, .. } => *modes,
        ModelConfig::Gaussian { .. } | ModelConfig::Network(_) => dim,
    };
    let per_walker = 2 * dim as u128 * scalar as u128 + 64;
    let keepers = config.walkers.relay.as_ref().map_or(0, |r| r.keepers);
    let walkers =
        [config.walkers.count, config.walkers.witnesses, keepers].iter().map(|n| *n as u128).sum::<u128>();
    let needed = walkers * per_walker + 200 * modes as u128 * dim as u128 * 8;
    let available = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find(|l| l.starts_with("MemAvailable:"))?.to_string();
        line.split_whitespace().nth(1)?.parse::<u128>().ok()
    });
    let limit = available.map_or(1 << 46, |kib| kib * 1024);
    if needed > limit {
        let gib = |bytes: u128| bytes as f64 / (1u64 << 30) as f64;
        return Err(RunError::Impossible(format!(
            "{} walkers (walkers.count, walkers.witnesses and walkers.relay.keepers): in {dim} dimensions this takes about {:.1} GiB of memory and {:.1} GiB are free; take fewer walkers or precision = \"f32\"",
            walkers,
            gib(needed),
            gib(limit)
        )));
    }
    Ok(())
}

fn schedule(config: &ScheduleConfig, start: f64, iterations: u64) -> Schedule {
    let shape = match config.shape {
        ShapeName::Constant => Shape::Constant,
        ShapeName::Linear => Shape::Linear,
        ShapeName::Cosine => Shape::Cosine,
    };
    Schedule { shape, start, end: start * config.end, over: config.over.unwrap_or(iterations) }
}

fn setup<T: Real, E: Energy<T>>(
    config: &Config,
    energy: E,
    data: Dataset<T>,
    truth: Option<f64>,
) -> Result<Setup<T, E>, RunError> {
    check_memory(config, data.dim(), size_of::<T>())?;
    let (kernel, optimizer, iterations) = (&config.kernel, &config.optimizer, config.run.iterations);
    let rates: Vec<(String, f64)> = optimizer.rates.iter().map(|(k, v)| (k.clone(), *v)).collect();
    let rates = learning_rates(&energy.groups(), &rates, &optimizer.frozen)
        .map_err(|e| RunError::Impossible(format!("optimizer.rates: {e}")))?;
    let settle = match &optimizer.settle {
        Some(settle) => Some(last_phase(settle, &energy.groups(), &rates)?),
        None => None,
    };
    let natural = optimizer.kind == OptimizerName::Natural;
    let beta1 = optimizer.beta1.unwrap_or(0.9);
    let beta2 = optimizer.beta2.unwrap_or(if natural { 0.95 } else { 0.999 });
    let epsilon = optimizer.epsilon.unwrap_or(1e-8);
    let rule = match optimizer.kind {
        OptimizerName::Gradient => Rule::Gradient,
        OptimizerName::Momentum => Rule::Momentum { beta: beta1 },
        OptimizerName::Adam => Rule::Adam { beta1, beta2, epsilon },
        OptimizerName::AdaGrad => Rule::AdaGrad { epsilon },
        OptimizerName::Natural => {
            let (damping, prior) = (optimizer.damping.unwrap_or(0.01), optimizer.prior.unwrap_or(0.0));
            Rule::Natural { beta1, beta2, damping, prior }
        }
    };
    let matrices = energy.matrices();
    let mut opt = Optimizer::new(rule, rates).with_clip(optimizer.clip_norm).with_matrices(matrices);
    if let Some(s) = &optimizer.schedule {
        opt = opt.with_schedule(schedule(s, 1.0, iterations));
    }
    let thresholds = match config.resampling.thresholds.is_empty() {
        true => Thresholds::constant(config.resampling.threshold),
        false => Thresholds::steps(config.resampling.thresholds.clone()),
    };
    let clip = kernel.clip_norm.map(Clip::Norm).or(kernel.clip_component.map(Clip::Component));
    Ok(Setup {
        algorithm: config.algorithm.kind.algorithm(),
        self_interaction: config.algorithm.self_interaction.map(|s| match s {
            SelfInteractionKind::None => SelfInteractionRule::None,
            SelfInteractionKind::LeaveOneOut => SelfInteractionRule::LeaveOneOut,
        }),
        kernel: Kernel {
            kind: match kernel.kind {
                KernelName::Ula => KernelKind::Ula,
                KernelName::Mala => KernelKind::Mala,
                KernelName::Ghmc => KernelKind::Ghmc,
            },
            clip,
            steps: kernel.steps,
            friction: kernel.friction.unwrap_or(Kernel::default().friction),
        },
        step_size: match (&kernel.adapt, &kernel.schedule) {
            (Some(a), _) => StepSize::Adaptive {
                initial: kernel.step_size,
                target: a.target,
                gain: a.gain,
                bounds: (a.min, a.max),
            },
            (None, Some(s)) => StepSize::Scheduled(schedule(s, kernel.step_size, iterations)),
            (None, None) => StepSize::fixed(kernel.step_size),
        },
        optimizer: opt,
        trust_region: optimizer.trust_region,
        delay: optimizer.delay,
        scheme: match config.resampling.scheme {
            SchemeName::Multinomial => Scheme::Multinomial,
            SchemeName::Stratified => Scheme::Stratified,
            SchemeName::Systematic => Scheme::Systematic,
            SchemeName::Residual => Scheme::Residual,
        },
        trigger: match config.resampling.trigger {
            TriggerName::Never => Trigger::Never,
            TriggerName::Ess => Trigger::EssBelow(thresholds),
            TriggerName::Entropy => Trigger::EntropyBelow(thresholds),
            TriggerName::Every => Trigger::Every(config.resampling.every.unwrap_or(1)),
        },
        walkers: config.walkers.count,
        witnesses: config.walkers.witnesses,
        relay: config.walkers.relay.as_ref().map(|r| Relay {
            keepers: r.keepers,
            every: r.every,
            rest: r.rest,
        }),
        settle,
        average: optimizer.average,
        batch: config.walkers.batch,
        data_batch: config.data.batch(),
        start: match config.walkers.start {
            WalkersStart::Stratified => Stratification::Stratified,
            WalkersStart::Independent => Stratification::Independent,
        },
        truth,
        seed: config.seed,
        threads: config.run.threads,
        ..Setup::new(energy, data)
    })
}

fn last_phase(config: &SettleConfig, groups: &[ParamGroup], rates: &[f64]) -> Result<Settle, RunError> {
    let matched = |pattern: &String| groups.iter().any(|g| g.matches(pattern));
    if let Some(unknown) = config.only.iter().find(|pattern| !matched(pattern)) {
        let names: Vec<&str> = groups.iter().map(|g| g.name.as_str()).collect();
        let text = format!(
            "optimizer.settle.only: there is no parameter group '{unknown}' (the model has: {})",
            names.join(", ")
        );
        return Err(RunError::Impossible(text));
    }
    let mut learning = vec![false; groups.iter().map(|g| g.range.end).max().unwrap_or(0)];
    for group in groups {
        // Frozen groups stay frozen, unless they are meant by their own name.
        let named = config.only.contains(&group.name);
        let meant = config.only.iter().any(|pattern| group.matches(pattern));
        for j in group.range.clone() {
            learning[j] = named || (meant && rates[j] != 0.0);
        }
    }
    Ok(Settle { after: config.after, learning, rate: config.rate })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frozen_groups_learn_in_the_last_phase_if_they_are_named() {
        let groups = [("11.weight", 0..2), ("11.bias", 2..3), ("base.weights", 3..5)];
        let groups = groups.map(|(name, range)| ParamGroup::new(name, range));
        let rates = [1.0, 1.0, 0.0, 0.0, 0.0];
        let learning = |only: &[&str]| {
            let only = only.iter().map(|name| name.to_string()).collect();
            last_phase(&SettleConfig { after: 3, only, rate: 0.1 }, &groups, &rates).unwrap().learning
        };
        assert_eq!(learning(&["11"]), [true, true, false, false, false]);
        assert_eq!(learning(&["base.weights"]), [false, false, false, true, true]);
        assert_eq!(learning(&["11.bias", "base"]), [false, false, true, false, false]);
    }
}
