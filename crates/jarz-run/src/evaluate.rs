//! A trained model judged: cross-entropy of points, and `log Z` and masses by annealing, beside what the training itself says.

use crate::error::RunError;
use crate::folder::read_config;
use crate::problem::read_points;
use crate::sample::{TrainedJob, trained};
use crate::state::Scalar;
use crate::weights::read_weights;
use jarz::annealing::{Annealed, BaseMeasure, GaussianBase, Rung, Settings, anneal};
use jarz::estimate::add_errors;
use jarz::{Classes, Dataset, Energy, Kernel, Measured, Scheme, Trainer};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// How much wider than the data the Gaussian is that annealing begins with, if the model has no base of its own.
const WIDEN: f64 = 1.2;

/// How a model is to be judged.
#[derive(Clone, Debug, Default)]
pub struct EvaluateRequest {
    /// Points for the cross-entropy; those it was trained on if there is no file.
    pub data: Option<PathBuf>,
    /// Name of the array in an `.npz` that holds several.
    pub array: Option<String>,
    /// A file of other weights to be judged in place of those that were trained, for a network.
    pub weights: Option<PathBuf>,
    /// How to anneal.
    pub annealing: Settings,
}

/// Told about every rung of the annealing; may stop it.
pub type Progress<'a> = &'a mut dyn FnMut(&Rung) -> ControlFlow<()>;

/// `log Z` and masses: those of the training and those of the model, found by annealing. Numbers that there are none of are null.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Judgement {
    pub algorithm: String,
    pub iterations: u64,
    /// From the weights of the training.
    pub log_z: Option<f64>,
    pub log_z_std_error: Option<f64>,
    /// In closed form.
    pub log_z_exact: Option<f64>,
    /// By annealing.
    pub log_z_annealed: f64,
    pub log_z_annealed_std_error: Option<f64>,
    /// Masses by the model's parameters.
    pub masses: Option<Vec<f64>>,
    /// Masses among the walkers of the training, with their weights if they have any.
    pub walker_masses: Option<Vec<f64>>,
    pub walker_masses_std_error: Option<Vec<Option<f64>>>,
    /// Masses under the model, by annealing.
    pub model_masses: Option<Vec<f64>>,
    pub model_masses_std_error: Option<Vec<Option<f64>>>,
    pub annealing: AnnealingReport,
}

/// How the annealing went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct AnnealingReport {
    pub walkers: usize,
    pub moves: u32,
    pub seed: u64,
    /// Whether it began with the model's own base, or with a Gaussian fitted to the data.
    pub own_base: bool,
    pub rungs: usize,
    pub resamplings: u64,
    pub distinct_ancestors: usize,
    pub ess: f64,
    pub trace: Vec<TraceRow>,
}

/// One rung.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct TraceRow {
    pub t: f64,
    pub h: f64,
    pub ess: f64,
    pub acceptance: f64,
    pub resampled: bool,
}

/// A judgement, and the cross-entropy of points in nats per point with each `log Z`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Evaluation {
    #[serde(flatten)]
    pub judgement: Judgement,
    /// The file of the points; none for the data of the training.
    pub data: Option<PathBuf>,
    /// The file of the weights; none for those that were trained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weights: Option<PathBuf>,
    pub points: usize,
    pub mean_energy: f64,
    pub mean_energy_std_error: Option<f64>,
    pub cross_entropy: Option<f64>,
    pub cross_entropy_std_error: Option<f64>,
    pub cross_entropy_exact: Option<f64>,
    pub cross_entropy_exact_std_error: Option<f64>,
    pub cross_entropy_annealed: f64,
    pub cross_entropy_annealed_std_error: Option<f64>,
}

/// Judges the trained model of a run folder.
pub fn evaluate(
    folder: &Path,
    request: &EvaluateRequest,
    progress: Progress<'_>,
    warn: &dyn Fn(&str),
) -> Result<Evaluation, RunError> {
    // A file that does not fit shows before anything else is done.
    let weights = match &request.weights {
        Some(path) => Some(read_weights(&read_config(folder)?, path)?),
        None => None,
    };
    trained(folder, Evaluate { request, weights, progress }, warn)
}

/// Judges a trained model. Annealing begins with the model's own base measure or, if it has none, with a Gaussian fitted to the data. Classes are those given, or the modes of
/// a mixture.
pub fn judge<T: Scalar, E: Energy<T>>(
    trainer: &mut Trainer<T, E>,
    settings: &Settings,
    classes: Option<Classes<'_, T>>,
    progress: Progress<'_>,
) -> Result<Judgement, RunError> {
    let estimates = trainer.estimates()?;
    let (energy, walkers) = (trainer.energy(), trainer.walkers());
    let own_base = energy.base_measure();
    let has_own = own_base.is_some();
    let base: Box<dyn BaseMeasure<T>> = match own_base {
        Some(base) => base,
        None => Box::new(GaussianBase::fitted(trainer.data(), WIDEN)?),
    };
    let found = anneal(energy, &*base, settings, progress)?;
    let modes = energy.modes();
    let memberships = |x: &[T]| {
        modes.map_or_else(Vec::new, |m| {
            let mut rows = vec![0.0; x.len() / energy.dim() * m.count()];
            m.memberships(x, &mut rows);
            rows
        })
    };
    let by_mode = modes.map(|m| Classes { count: m.count(), probabilities: &memberships });
    let (mut of_walkers, mut of_model) = (None, None);
    if let Some(classes) = classes.or(by_mode) {
        of_walkers = Some(classes.masses(walkers));
        of_model = Some(found.masses(&(classes.probabilities)(found.walkers.positions()), classes.count)?);
    }
    let values = |m: &Option<Vec<Measured>>| m.as_ref().map(|m| m.iter().map(|m| m.value).collect());
    let errors = |m: &Option<Vec<Measured>>| m.as_ref().map(|m| m.iter().map(|m| m.std_error).collect());
    Ok(Judgement {
        algorithm: trainer.algorithm().name().into(),
        iterations: trainer.iteration(),
        log_z: estimates.log_z.map(|z| z.value),
        log_z_std_error: estimates.log_z.and_then(|z| z.std_error),
        log_z_exact: estimates.log_z_exact,
        log_z_annealed: found.log_z.value,
        log_z_annealed_std_error: found.log_z.std_error,
        masses: estimates.masses,
        walker_masses: values(&of_walkers),
        walker_masses_std_error: errors(&of_walkers),
        model_masses: values(&of_model),
        model_masses_std_error: errors(&of_model),
        annealing: report(&found, settings, has_own),
    })
}

fn report<T: Scalar>(found: &Annealed<T>, settings: &Settings, own_base: bool) -> AnnealingReport {
    let row =
        |r: &Rung| TraceRow { t: r.t, h: r.h, ess: r.ess, acceptance: r.acceptance, resampled: r.resampled };
    AnnealingReport {
        walkers: settings.walkers,
        moves: settings.moves,
        seed: settings.seed,
        own_base,
        rungs: found.trace.len(),
        resamplings: found.walkers.resamplings(),
        distinct_ancestors: found.walkers.distinct_ancestors(),
        ess: found.ess,
        trace: found.trace.iter().map(row).collect(),
    }
}

struct Evaluate<'a, 'p> {
    request: &'a EvaluateRequest,
    /// Parameters in place of the trained ones.
    weights: Option<Vec<f64>>,
    progress: Progress<'p>,
}

impl TrainedJob for Evaluate<'_, '_> {
    type Output = Evaluation;
    fn run<T: Scalar, E: Energy<T>>(
        self,
        mut trainer: Trainer<T, E>,
        _: Kernel,
        _: Scheme,
    ) -> Result<Evaluation, RunError> {
        let EvaluateRequest { data, array, weights, annealing } = self.request;
        let are_others = self.weights.is_some();
        if let Some(params) = self.weights {
            let mut state = trainer.state();
            if !state.average.is_empty() {
                state.average.clone_from(&params);
            }
            state.theta = params;
            trainer.restore(state)?;
        }
        // A file that cannot be read shows before the long part.
        let other = match data {
            Some(path) => {
                let data = read_data::<T>(path, array.as_deref(), trainer.walkers().dim())?;
                Some(in_walkers_coordinates(trainer.energy(), data)?)
            }
            None => None,
        };
        let volume = trainer.energy().coordinates().map_or(0.0, |c| c.log_det());
        let points = other.as_ref().unwrap_or(trainer.data());
        let (count, energy) = (points.len(), trainer.mean_energy(points)?);
        let mut judgement = judge(&mut trainer, annealing, None, self.progress)?;
        if are_others {
            // What the training's walkers say is about other weights.
            (judgement.log_z, judgement.log_z_std_error) = (None, None);
            (judgement.walker_masses, judgement.walker_masses_std_error) = (None, None);
        }
        let exact = judgement.log_z_exact;
        Ok(Evaluation {
            data: data.clone(),
            weights: weights.clone(),
            points: count,
            mean_energy: energy.value,
            mean_energy_std_error: energy.std_error,
            cross_entropy: judgement.log_z.map(|z| z + energy.value + volume),
            cross_entropy_std_error: add_errors(judgement.log_z_std_error, energy.std_error),
            cross_entropy_exact: exact.map(|z| z + energy.value + volume),
            cross_entropy_exact_std_error: exact.and(energy.std_error),
            cross_entropy_annealed: judgement.log_z_annealed + energy.value + volume,
            cross_entropy_annealed_std_error: add_errors(
                judgement.log_z_annealed_std_error,
                energy.std_error,
            ),
            judgement,
        })
    }
}

/// Points in the coordinates of the walkers.
pub(crate) fn in_walkers_coordinates<T: Scalar, E: Energy<T>>(
    energy: &E,
    data: Dataset<T>,
) -> Result<Dataset<T>, RunError> {
    let Some(coordinates) = energy.coordinates() else { return Ok(data) };
    let mut z = data.values().to_vec();
    coordinates.to_walkers(data.values(), &mut z);
    let far = || RunError::Impossible("the points are too far from the data of the training".into());
    Dataset::new(data.dim(), z).ok_or_else(far)
}

fn read_data<T: Scalar>(path: &Path, array: Option<&str>, dim: usize) -> Result<Dataset<T>, RunError> {
    let table = read_points(path, array, None, None)?;
    if table.cols != dim {
        let text =
            format!("'{}' has {} columns but the model has {dim} dimensions", path.display(), table.cols);
        return Err(RunError::Impossible(text));
    }
    Dataset::from_f64(table.cols, &table.values).ok_or_else(|| {
        RunError::Impossible(format!("'{}' has values too large for precision {}", path.display(), T::NAME))
    })
}
