//! Runs on images judged: masses of kinds by a classifier, and cross-entropies of training and held-out images.

use crate::config::{Config, DataConfig, ImagesConfig};
use crate::error::RunError;
use crate::evaluate::{Judgement, Progress, in_walkers_coordinates, judge};
use crate::network::preparation;
use crate::sample::{TrainedJob, pixels, trained};
use crate::state::Scalar;
use jarz::annealing::Settings;
use jarz::estimate::add_errors;
use jarz::weights::normalise;
use jarz::{Classes, Dataset, Energy, Kernel, Measured, Purpose, Random, Scheme, Trainer};
use jarz_data::Images;
use jarz_net::Classifier;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Number of the noise that held-out images get: no copy of the training images has it.
const HELD_OUT: u64 = 1 << 40;

/// How a run on images is to be judged.
pub struct ImageRequest<'a> {
    /// How to anneal.
    pub annealing: &'a Settings,
    /// Tells the kinds of images apart, if that is wanted.
    pub classifier: Option<&'a Classifier<f32>>,
    /// Images that the run did not see.
    pub held_out: &'a Images,
}

/// What a run on images is worth. Cross-entropies are in nats per image, in the coordinates of the pixels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct ImageEvaluation {
    #[serde(flatten)]
    pub judgement: Judgement,
    pub dim: usize,
    pub cross_entropy: Option<f64>,
    pub cross_entropy_std_error: Option<f64>,
    pub cross_entropy_annealed: f64,
    pub cross_entropy_annealed_std_error: Option<f64>,
    pub held_out: Option<f64>,
    pub held_out_annealed: f64,
    pub held_out_annealed_std_error: Option<f64>,
    /// Share of the weighted walkers that the classifier assigns with a probability above 0.9, if there is one.
    pub assigned: Option<f64>,
    pub ess: f64,
}

/// The walkers at the end of a run, as images.
#[derive(Clone, Debug, PartialEq)]
pub struct ImageWalkers {
    /// Pixels, one image after the other.
    pub images: Vec<f32>,
    /// Their normalised weights.
    pub weights: Vec<f64>,
    /// The walkers that the run's resampling scheme would draw from them: for each new walker the old one it is a copy of.
    pub ancestors: Vec<u64>,
    /// Walkers of the start that they descend from.
    pub lineages: usize,
}

/// The images of a configuration.
pub fn images_of(config: &Config) -> Result<&ImagesConfig, RunError> {
    match &config.data {
        DataConfig::Images(images) => Ok(images),
        _ => Err(RunError::Impossible("data.kind must be \"images\"".into())),
    }
}

/// Judges the trained model of a run folder.
pub fn evaluate_images(
    folder: &Path,
    request: &ImageRequest<'_>,
    progress: Progress<'_>,
    warn: &dyn Fn(&str),
) -> Result<ImageEvaluation, RunError> {
    let config = crate::folder::read_config(folder)?;
    trained(folder, Evaluate { request, config: &config, progress }, warn)
}

/// The walkers at the end of a run, before and after resampling.
pub fn image_walkers(folder: &Path, warn: &dyn Fn(&str)) -> Result<ImageWalkers, RunError> {
    let config = crate::folder::read_config(folder)?;
    trained(folder, Show { seed: config.seed }, warn)
}

struct Show {
    seed: u64,
}

impl TrainedJob for Show {
    type Output = ImageWalkers;
    fn run<T: Scalar, E: Energy<T>>(
        self,
        trainer: Trainer<T, E>,
        _: Kernel,
        scheme: Scheme,
    ) -> Result<ImageWalkers, RunError> {
        let walkers = trainer.walkers();
        let (weights, random) = (normalise(walkers.log_weights()), Random::new(self.seed));
        let ancestors =
            scheme.ancestors(&weights, walkers.len(), &random, trainer.iteration(), Purpose::Draw);
        let (images, lineages) =
            (pixels(trainer.energy(), walkers.positions()), walkers.distinct_ancestors());
        Ok(ImageWalkers { images, weights, ancestors, lineages })
    }
}

struct Evaluate<'a, 'p> {
    request: &'a ImageRequest<'a>,
    config: &'a Config,
    progress: Progress<'p>,
}

impl TrainedJob for Evaluate<'_, '_> {
    type Output = ImageEvaluation;
    fn run<T: Scalar, E: Energy<T>>(
        self,
        mut trainer: Trainer<T, E>,
        _: Kernel,
        _: Scheme,
    ) -> Result<ImageEvaluation, RunError> {
        let (request, energy) = (self.request, trainer.energy().clone());
        let how = preparation(images_of(self.config)?, self.config.seed, HELD_OUT);
        let held_out = request.held_out.dataset::<T>(&how)?;
        if held_out.dim() != energy.dim() {
            return Err(RunError::Impossible("the held-out images have another size".into()));
        }
        let held_out = trainer.mean_energy(&in_walkers_coordinates(&energy, held_out)?)?;
        let trained_on: &Dataset<T> = trainer.data();
        let own = trainer.mean_energy(trained_on)?;
        let kinds =
            |z: &[T]| request.classifier.map_or_else(Vec::new, |c| c.probabilities(&pixels(&energy, z)));
        let classes = request.classifier.map(|c| Classes { count: c.classes(), probabilities: &kinds });
        let judgement = judge(&mut trainer, request.annealing, classes, self.progress)?;
        let walkers = trainer.walkers();
        let weights = normalise(walkers.log_weights());
        let sure = |row: &[f64]| row.iter().any(|p| *p > 0.9);
        let assigned = request.classifier.map(|classifier| {
            let probabilities = kinds(walkers.positions());
            let rows = probabilities.chunks_exact(classifier.classes());
            rows.zip(&weights).map(|(row, w)| if sure(row) { *w } else { 0.0 }).sum()
        });
        let volume = energy.coordinates().map_or(0.0, |c| c.log_det());
        let annealed = |energy: Measured| {
            let error = add_errors(judgement.log_z_annealed_std_error, energy.std_error);
            (judgement.log_z_annealed + energy.value + volume, error)
        };
        let (own_annealed, held_annealed) = (annealed(own), annealed(held_out));
        let ess = 1.0 / (weights.len() as f64 * weights.iter().map(|w| w * w).sum::<f64>());
        Ok(ImageEvaluation {
            dim: energy.dim(),
            cross_entropy: judgement.log_z.map(|z| z + own.value + volume),
            cross_entropy_std_error: add_errors(judgement.log_z_std_error, own.std_error),
            cross_entropy_annealed: own_annealed.0,
            cross_entropy_annealed_std_error: own_annealed.1,
            held_out: judgement.log_z.map(|z| z + held_out.value + volume),
            held_out_annealed: held_annealed.0,
            held_out_annealed_std_error: held_annealed.1,
            assigned,
            ess,
            judgement,
        })
    }
}
