//! A trained model, loaded from its run folder, and samples of it.

use crate::checkpoint::CheckpointStore;
use crate::config::Config;
use crate::error::RunError;
use crate::folder::read_config;
use crate::problem::{Job, check_unchanged, with_setup};
use crate::state::{Scalar, from_snapshot};
use jarz::weights::normalise;
use jarz::{Advance, Energy, Kernel, Purpose, Random, Sampler, Scheme, Setup, Trainer, Walkers, Weighting};
use jarz_data::file_sha256;
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

/// Draws samples from a trained model.
pub fn sample(folder: &Path, request: &SampleRequest, warn: &dyn Fn(&str)) -> Result<Samples, RunError> {
    trained(folder, Draw { request }, warn)
}

/// Something to be done with a trained model.
pub(crate) trait TrainedJob {
    type Output;
    fn run<T: Scalar, E: Energy<T>>(
        self,
        trainer: Trainer<T, E>,
        kernel: Kernel,
        scheme: Scheme,
    ) -> Result<Self::Output, RunError>;
}

/// Loads the newest checkpoint of a folder, read-only, and hands it to a job.
pub(crate) fn trained<J: TrainedJob>(
    folder: &Path,
    job: J,
    warn: &dyn Fn(&str),
) -> Result<J::Output, RunError> {
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
        let rows = in_data_coordinates(energy, walkers.positions());
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

/// SHA-256 of a run's newest checkpoint: what a result that is to be kept was made from.
pub fn checkpoint_sha256(folder: &Path) -> Result<String, RunError> {
    let checkpoints = folder.join("checkpoints");
    let missing = |missing| RunError::NotARun { folder: folder.into(), missing };
    if !checkpoints.is_dir() {
        return Err(missing("checkpoints"));
    }
    let store = CheckpointStore::open(checkpoints)?;
    let newest = store.list()?.last().copied().ok_or_else(|| missing("checkpoint yet"))?;
    Ok(file_sha256(store.path(newest))?)
}

/// Walkers as images.
pub(crate) fn pixels<T: Scalar, E: Energy<T>>(energy: &E, z: &[T]) -> Vec<f32> {
    in_data_coordinates(energy, z).iter().map(|v| v.to_f64() as f32).collect()
}

/// Walkers in the coordinates of the data.
pub(crate) fn in_data_coordinates<T: Scalar, E: Energy<T>>(energy: &E, z: &[T]) -> Vec<T> {
    let mut x = z.to_vec();
    if let Some(coordinates) = energy.coordinates() {
        coordinates.to_data(z, &mut x);
    }
    x
}
