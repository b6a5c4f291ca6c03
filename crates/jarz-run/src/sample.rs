//! What a trained model is for: samples, and likelihoods of other data.

use crate::checkpoint::CheckpointStore;
use crate::config::Config;
use crate::error::RunError;
use crate::folder::read_config;
use crate::problem::{Job, check_unchanged, read_points, with_setup};
use crate::state::{Scalar, from_snapshot};
use jarz::estimate::add_errors;
use jarz::weights::normalise;
use jarz::{
    Advance, Dataset, Energy, Kernel, Purpose, Random, Sampler, Scheme, Setup, Trainer, Walkers, Weighting,
};
use serde::Serialize;
use std::path::Path;

/// Which samples are wanted.
#[derive(Clone, Debug)]
pub struct SampleRequest {
    /// How many; as many as there are walkers if not given.
    pub n: Option<usize>,
    /// Kernel steps after drawing them from the trained ensemble; by default none, or 100 if there are more samples
    /// than walkers, since copies of one walker must part.
    pub steps: Option<u64>,
    /// Seed of the drawing.
    pub seed: u64,
    /// Threads; 0 means one per core.
    pub threads: usize,
}

/// Samples of a trained model.
#[derive(Clone, Debug)]
pub struct Samples {
    /// Dimension.
    pub dim: usize,
    /// Weighted samples, row-major.
    pub positions: Vec<f64>,
    /// Their log-weights.
    pub log_weights: Vec<f64>,
    /// Equal-weight samples, drawn from the weighted ones.
    pub equal: Vec<f64>,
    /// Effective fraction of the weighted samples.
    pub ess: f64,
    /// Kernel steps taken.
    pub steps: u64,
    /// Whether the walkers carried weights, so that the samples are those of the model.
    pub weighted: bool,
}

/// Held-out cross-entropy of a trained model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evaluation {
    /// Number of points.
    pub points: usize,
    /// Iterations the model was trained for.
    pub iterations: u64,
    /// Mean energy of the points.
    pub mean_energy: f64,
    /// Its standard error.
    pub mean_energy_std_error: Option<f64>,
    /// `log Z` from the weights.
    pub log_z: Option<f64>,
    /// Its standard error.
    pub log_z_std_error: Option<f64>,
    /// Cross-entropy in nats per point: minus the mean log-likelihood.
    pub cross_entropy: Option<f64>,
    /// Its standard error: of `log Z` and of the finite number of points together.
    pub cross_entropy_std_error: Option<f64>,
    /// Cross-entropy with the exact `log Z`, where there is one.
    pub cross_entropy_exact: Option<f64>,
    /// The standard error of that: of the finite number of points.
    pub cross_entropy_exact_std_error: Option<f64>,
}

/// Draws samples from a trained model.
pub fn sample(folder: &Path, request: &SampleRequest, warn: &dyn Fn(&str)) -> Result<Samples, RunError> {
    trained(folder, Draw { request }, warn)
}

/// Computes the cross-entropy of a trained model on a file of points.
pub fn evaluate(
    folder: &Path,
    data: &Path,
    array: Option<&str>,
    warn: &dyn Fn(&str),
) -> Result<Evaluation, RunError> {
    trained(folder, Evaluate { data, array }, warn)
}

/// Something to be done with a trained model.
trait TrainedJob {
    type Output;
    fn run<T: Scalar, E: Energy<T>>(
        self,
        trainer: Trainer<T, E>,
        kernel: Kernel,
        scheme: Scheme,
    ) -> Result<Self::Output, RunError>;
}

/// Loads the newest checkpoint of a folder, read-only, and hands it to a job.
fn trained<J: TrainedJob>(folder: &Path, job: J, warn: &dyn Fn(&str)) -> Result<J::Output, RunError> {
    let config: Config = read_config(folder)?;
    check_unchanged(&config)?;
    if !folder.join("checkpoints").is_dir() {
        return Err(RunError::NotARun { folder: folder.into(), missing: "checkpoints" });
    }
    with_setup(&config, Load { folder, job, warn })
}

struct Load<'a, J> {
    folder: &'a Path,
    job: J,
    warn: &'a dyn Fn(&str),
}

impl<J: TrainedJob> Job for Load<'_, J> {
    type Output = J::Output;
    fn run<T: Scalar, E: Energy<T>>(self, setup: Setup<T, E>) -> Result<J::Output, RunError> {
        let (kernel, scheme) = (setup.kernel, setup.scheme);
        let loaded = CheckpointStore::open(self.folder.join("checkpoints"))?.load_latest()?;
        let Some(loaded) = loaded else {
            return Err(RunError::NotARun { folder: self.folder.into(), missing: "checkpoint yet" });
        };
        for (_, reason) in &loaded.rejected {
            (self.warn)(&format!("{reason}\nusing '{}' instead", loaded.path.display()));
        }
        let (state, _) = from_snapshot::<T>(&loaded.snapshot)?;
        let mut trainer = Trainer::new(setup)?;
        trainer.restore(state)?;
        self.job.run(trainer, kernel, scheme)
    }
}

struct Draw<'a> {
    request: &'a SampleRequest,
}

impl TrainedJob for Draw<'_> {
    type Output = Samples;
    fn run<T: Scalar, E: Energy<T>>(
        self,
        trainer: Trainer<T, E>,
        kernel: Kernel,
        scheme: Scheme,
    ) -> Result<Samples, RunError> {
        let (old, dim) = (trainer.walkers(), trainer.walkers().dim());
        let n = self.request.n.unwrap_or(old.len());
        if n < 2 {
            return Err(RunError::Impossible(format!("--n {n}: at least 2 samples, please")));
        }
        let steps = self.request.steps.unwrap_or(if n > old.len() { 100 } else { 0 });
        let random = Random::new(self.request.seed);
        let row = |i: u64| old.positions()[i as usize * dim..(i as usize + 1) * dim].iter().copied();
        let mut walkers = if n == old.len() {
            let mut same = Walkers::new(dim, old.positions().to_vec(), None);
            same.log_weights = old.log_weights().to_vec();
            same
        } else {
            let p = normalise(old.log_weights());
            let picks = scheme.ancestors(&p, n, &random, 0, Purpose::Draw);
            Walkers::new(dim, picks.iter().flat_map(|&i| row(i)).collect(), None)
        };
        let energy = trainer.energy();
        let mut ess = jarz::weights::WeightSums::of(walkers.log_weights()).ess();
        if steps > 0 {
            let kernel = Kernel { steps: 1, ..kernel };
            let (seed, threads) = (self.request.seed, self.request.threads);
            let mut sampler = Sampler::new(walkers, energy, kernel, scheme, None, seed, threads)?;
            sampler.begin(energy)?;
            for iteration in 0..steps {
                let (h, weighting) = (trainer.step_size(), Weighting::Jarzynski);
                let advance = Advance { iteration, h, weighting, correction: None, restart: None };
                sampler.advance(energy, energy, advance)?;
                if sampler.sums().ess() < 0.5 {
                    sampler.resample(energy, iteration + 1)?;
                }
            }
            ess = sampler.sums().ess();
            walkers = sampler.walkers().clone();
        }
        let p = normalise(walkers.log_weights());
        let picks = scheme.ancestors(&p, n, &random, 1, Purpose::Draw);
        let mut rows = walkers.positions().to_vec();
        if let Some(coordinates) = energy.coordinates() {
            coordinates.to_data(walkers.positions(), &mut rows);
        }
        let wide = |x: &[T]| x.iter().map(|v| v.to_f64()).collect::<Vec<f64>>();
        let at = |i: &u64| wide(&rows[*i as usize * dim..(*i as usize + 1) * dim]);
        Ok(Samples {
            dim,
            equal: picks.iter().flat_map(at).collect(),
            positions: wide(&rows),
            log_weights: walkers.log_weights().to_vec(),
            ess,
            steps,
            weighted: trainer.algorithm().is_weighted(),
        })
    }
}

struct Evaluate<'a> {
    data: &'a Path,
    array: Option<&'a str>,
}

impl TrainedJob for Evaluate<'_> {
    type Output = Evaluation;
    fn run<T: Scalar, E: Energy<T>>(
        self,
        mut trainer: Trainer<T, E>,
        _: Kernel,
        _: Scheme,
    ) -> Result<Evaluation, RunError> {
        let table = read_points(self.data, self.array, None, None)?;
        let dim = trainer.walkers().dim();
        if table.cols != dim {
            let text = format!(
                "'{}' has {} columns but the model has {dim} dimensions",
                self.data.display(),
                table.cols
            );
            return Err(RunError::Impossible(text));
        }
        let data = Dataset::from_f64(table.cols, &table.values).ok_or_else(|| {
            RunError::Impossible(format!(
                "'{}' has values too large for precision {}",
                self.data.display(),
                T::NAME
            ))
        })?;
        let (data, volume) = match trainer.energy().coordinates() {
            Some(coordinates) => {
                let mut z = data.values().to_vec();
                coordinates.to_walkers(data.values(), &mut z);
                let far = || RunError::Impossible("the points are too far from the model's data".into());
                (Dataset::new(dim, z).ok_or_else(far)?, coordinates.log_det())
            }
            None => (data, 0.0),
        };
        let energy = trainer.mean_energy(&data)?;
        let estimates = trainer.estimates()?;
        let (log_z, error) = (estimates.log_z.map(|z| z.value), estimates.log_z.and_then(|z| z.std_error));
        Ok(Evaluation {
            points: table.rows,
            iterations: trainer.iteration(),
            mean_energy: energy.value,
            mean_energy_std_error: energy.std_error,
            log_z,
            log_z_std_error: error,
            cross_entropy: log_z.map(|z| z + energy.value + volume),
            cross_entropy_std_error: add_errors(error, energy.std_error),
            cross_entropy_exact: estimates.log_z_exact.map(|z| z + energy.value + volume),
            cross_entropy_exact_std_error: estimates.log_z_exact.and(energy.std_error),
        })
    }
}
