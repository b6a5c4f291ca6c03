//! Experiments on images: what the walkers and the model itself think of each kind, judged by a classifier and by annealing.

mod curves;
mod judge;
mod neighbours;
mod page;

use crate::criterion::{Outcome, Verdict};
use crate::engine::Watch;
use crate::error::ExperimentError;
use crate::folder::run_folder;
use crate::plan::Plan;
use crate::report::Finished;
use crate::table::Table;
use jarz::annealing::Settings;
use jarz_data::{Images, Part, Preparation};
use jarz_net::{Classifier, Training};
use jarz_run::config::ImagesConfig;
use jarz_run::files::write_atomic;
use jarz_run::{ImageEvaluation, ImageWalkers, image_walkers, images_of, load_images};
use neighbours::Neighbours;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::path::Path;

/// How images are judged: the section `[images]` of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ImagesSpec {
    /// Passes of the classifier over its training images; without any, there is no classifier and kinds are not told apart.
    pub epochs: usize,
    /// Largest noise on the images the classifier is trained with.
    pub noise: f64,
    /// Walkers of the annealing.
    pub walkers: usize,
    /// To what the ESS may fall on one rung of the annealing.
    pub step_ess: f64,
    /// Moves on each rung.
    pub moves: u32,
    /// Friction of moves with momentum; MALA without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub friction: Option<f64>,
    /// Acceptance that the moves' step is adapted to.
    pub acceptance: f64,
    /// How many of its standard errors a mass may be away from the data's, unless it is within 15 %.
    pub mass_errors: f64,
    /// Cross-entropy in nats per dimension that weighted runs are asked to reach on the training images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cross_entropy_below: Option<f64>,
}

impl Default for ImagesSpec {
    fn default() -> Self {
        ImagesSpec {
            epochs: 20,
            noise: 0.3,
            walkers: 1024,
            step_ess: 0.9,
            moves: 2,
            friction: None,
            acceptance: Settings::default().acceptance,
            mass_errors: 3.0,
            cross_entropy_below: None,
        }
    }
}

/// The images that a run is trained on and, if their kinds are to be told apart, a classifier of them and how good it is.
pub(crate) struct Kinds {
    pub classifier: Option<Classifier<f32>>,
    /// Names of the kinds; none without a classifier.
    pub names: Vec<String>,
    /// Share of each kind among the training images.
    pub shares: Vec<f64>,
    /// Share of held-out images, with the noise of the run, that it puts into the right class.
    pub accuracy: Option<f64>,
    pub train: Images,
    pub held_out: Images,
}

/// What came of one variant.
pub(crate) struct Judged {
    pub label: String,
    /// What its walkers are: those that drive the parameters, or witnesses.
    pub ensemble: &'static str,
    pub weighted: bool,
    pub folder: std::path::PathBuf,
    pub result: ImageEvaluation,
    pub walkers: ImageWalkers,
}

impl Kinds {
    /// For a plan whose runs are on images; none for others.
    pub fn of(plan: &Plan) -> Result<Option<Self>, ExperimentError> {
        let (Some(spec), Some(first)) = (&plan.resolved.images, plan.variants.first()) else {
            return Ok(None);
        };
        Kinds::new(spec, images_of(&first.config)?, plan.seed).map(Some)
    }

    fn new(spec: &ImagesSpec, images: &ImagesConfig, seed: u64) -> Result<Self, ExperimentError> {
        let run = |e: jarz_data::ImageError| ExperimentError::Run(e.into());
        let net = |e: jarz_net::Error| ExperimentError::Run(e.into());
        let train = load_images(images, Part::Train)?;
        let held_out = load_images(images, Part::Test)?;
        if spec.epochs == 0 {
            let (names, shares) = (Vec::new(), Vec::new());
            return Ok(Kinds { classifier: None, names, shares, accuracy: None, train, held_out });
        }
        let kinds: Vec<u8> = match images.labels.is_empty() {
            false => images.labels.iter().map(|(label, _)| *label).collect(),
            true => (0..train.label_names().len() as u8).collect(),
        };
        let class_of = |images: &Images| -> Result<Vec<usize>, ExperimentError> {
            let labels = images.labels().ok_or_else(|| {
                ExperimentError::Option(
                    "the images have no labels, so that their kinds cannot be told apart".into(),
                )
            })?;
            Ok(labels.iter().map(|l| kinds.iter().position(|k| k == l).unwrap_or(0)).collect())
        };
        let classes = class_of(&train)?;
        let mut classifier = Classifier::<f32>::for_images(train.shape(), kinds.len(), seed).map_err(net)?;
        let x = train.values::<f32>(&Preparation::default()).map_err(run)?;
        let how = Training { epochs: spec.epochs, batch: 64, noise: spec.noise, seed, ..Training::default() };
        classifier.train(&x, &classes, how).map_err(net)?;
        let noisy = Preparation { noise: images.noise, seed, draw: 1 << 41, ..Preparation::default() };
        let other = held_out.values::<f32>(&noisy).map_err(run)?;
        let accuracy = classifier.accuracy(&other, &class_of(&held_out)?).map_err(net)?;
        let count = |k: usize| classes.iter().filter(|c| **c == k).count() as f64 / classes.len() as f64;
        Ok(Kinds {
            classifier: Some(classifier),
            names: kinds.iter().map(|k| train.label_names()[*k as usize].clone()).collect(),
            shares: (0..kinds.len()).map(count).collect(),
            accuracy: Some(accuracy),
            train,
            held_out,
        })
    }
}

/// Writes `figures/`, `report.html` and `summary.json` of an experiment on images; all runs must be finished. Judgements that are kept in the runs'
/// folders are made again only if `anew`.
pub(crate) fn write(
    out: &Path,
    plan: &Plan,
    kinds: &Kinds,
    watch: Option<&dyn Watch>,
    anew: bool,
) -> Result<Finished, ExperimentError> {
    let spec = plan.resolved.images.clone().unwrap_or_default();
    let warn = |text: &str| watch.into_iter().for_each(|w| w.warn(text));
    let mut judged = Vec::new();
    for variant in &plan.variants {
        for run in 0..plan.runs {
            let folder = run_folder(out, &variant.name, run);
            let result = judge::judge(&folder, &spec, kinds, plan.seed, anew, watch)?;
            let label = if variant.label.is_empty() { &variant.name } else { &variant.label };
            let label = if plan.runs == 1 { label.clone() } else { format!("{label}, run {}", run + 1) };
            let (weighted, walkers) = (result.judgement.log_z.is_some(), image_walkers(&folder, &warn)?);
            let ensemble = if variant.config.walkers.witnesses > 0 { "witnesses" } else { "walkers" };
            judged.push(Judged { label, ensemble, weighted, folder, result, walkers });
        }
    }
    let verdicts: Vec<Verdict> =
        judged.iter().filter(|j| j.weighted).flat_map(|j| criteria(j, kinds, &spec)).collect();
    let table = masses(&judged, kinds);
    let near = judged.iter().map(|j| Neighbours::of_walkers(kinds, j)).collect::<Result<Vec<_>, _>>()?;
    let noise = match plan.variants.first() {
        Some(first) => images_of(&first.config)?.noise,
        None => 0.0,
    };
    let how = Preparation { noise, seed: plan.seed, draw: 1 << 41, ..Preparation::default() };
    let near_held_out = Neighbours::of_held_out(kinds, &how)?;
    let pages = page::Parts { kinds, judged: &judged, near: &near, near_held_out: &near_held_out };
    page::write(out, plan, &pages, &verdicts, &table)?;
    let summary = json!({
        "experiment": plan.name, "scale": plan.scale.name(), "version": env!("CARGO_PKG_VERSION"), "seed": plan.seed,
        "kinds": kinds.names, "data_masses": kinds.shares, "classifier_accuracy": kinds.accuracy,
        "nearest_held_out": near_held_out.summary(),
        "variants": judged.iter().zip(&near).map(|(j, n)| json!({
            "label": j.label, "result": j.result, "nearest": n.summary(),
        })).collect::<Vec<_>>(),
        "criteria": verdicts.iter().map(|v| json!({
            "claim": v.claim, "asked": v.asked, "measured": v.measured, "agrees": v.outcome.word(),
        })).collect::<Vec<_>>(),
    });
    write_atomic(out.join("summary.json"), format!("{summary:#}\n").as_bytes())?;
    Ok(Finished { name: plan.name.clone(), title: plan.resolved.title.clone(), table, verdicts, summary })
}

/// With fewer lineages than this, error bars that are made of differences between lineages mean nothing.
const FEW_LINEAGES: usize = 30;

fn yes_or_no(yes: bool) -> Outcome {
    if yes { Outcome::Yes } else { Outcome::No }
}

/// Whether a mass is that of the data, within so many of its errors or 15 %.
fn mass_agrees(mass: f64, error: f64, share: f64, errors: f64, lineages: usize) -> Outcome {
    if lineages < FEW_LINEAGES {
        let text =
            "lineages are too few to know a mass or its error; more walkers or slower steps leave more";
        return Outcome::Undecided(format!("{lineages} {text}"));
    }
    let off = (mass - share).abs();
    yes_or_no(off <= errors * error || off <= 0.15 * share)
}

/// What is asked of a weighted run.
fn criteria(judged: &Judged, kinds: &Kinds, spec: &ImagesSpec) -> Vec<Verdict> {
    let (j, r) = (&judged.result.judgement, &judged.result);
    let mut all = Vec::new();
    let empty = Vec::new();
    let (masses, errors) = (j.walker_masses.as_ref().unwrap_or(&empty), j.walker_masses_std_error.as_ref());
    for (k, share) in kinds.shares.iter().enumerate() {
        let mass = masses.get(k).copied().unwrap_or(f64::NAN);
        let error = errors.and_then(|e| e.get(k).copied().flatten()).unwrap_or(0.0);
        all.push(Verdict {
            claim: format!("{}: the mass of kind {} is that of the data", judged.label, kinds.names[k]),
            asked: format!("within {} standard errors, or 15 % of it", spec.mass_errors),
            measured: format!(
                "{mass:.3} ± {error:.3} by {} lineages, data {share:.3}",
                judged.walkers.lineages
            ),
            outcome: mass_agrees(mass, error, *share, spec.mass_errors, judged.walkers.lineages),
        });
    }
    if let Some(log_z) = j.log_z {
        let error = jarz::estimate::add_errors(j.log_z_std_error, j.log_z_annealed_std_error).unwrap_or(0.0);
        all.push(Verdict {
            claim: format!("{}: log Z tracked in training is that of the model", judged.label),
            asked: "equal to the annealed one within 3 joint standard errors".into(),
            measured: format!("{log_z:.2} tracked, {:.2} annealed, joint error {error:.2}", j.log_z_annealed),
            outcome: yes_or_no((log_z - j.log_z_annealed).abs() <= 3.0 * error),
        });
    }
    if let Some(assigned) = r.assigned {
        all.push(Verdict {
            claim: format!("{}: the samples are images of the kinds", judged.label),
            asked: "at least 80 % of their weight assigned by the classifier with probability above 0.9"
                .into(),
            measured: format!("{:.1} %", 100.0 * assigned),
            outcome: yes_or_no(assigned >= 0.8),
        });
    }
    if let (Some(limit), Some(h)) = (spec.cross_entropy_below, r.cross_entropy) {
        let per = |v: f64| v / r.dim as f64;
        let held_out = r.held_out.map_or(f64::NAN, per);
        all.push(Verdict {
            claim: format!("{}: the images are learnt", judged.label),
            asked: format!("a cross-entropy below {limit} nats per dimension on the training images"),
            measured: format!("{:.4}; held out {held_out:.4}, {:.4} more", per(h), held_out - per(h)),
            outcome: yes_or_no(per(h) < limit),
        });
    }
    all
}

/// Masses of the kinds: data, walkers, model; and cross-entropies.
fn masses(judged: &[Judged], kinds: &Kinds) -> Table {
    let mut headers = vec!["".to_string()];
    headers.extend(kinds.names.iter().map(|n| format!("mass of {n}")));
    headers.extend(["log Z", "nats per dimension", "bits", "held out"].map(String::from));
    let number = |v: f64, e: Option<f64>| match e {
        Some(e) => format!("{v:.3} ± {e:.3}"),
        None => format!("{v:.3}"),
    };
    let row =
        |label: String, masses: &Option<Vec<f64>>, errors: &Option<Vec<Option<f64>>>, rest: [String; 4]| {
            let mut row = vec![label];
            for k in 0..kinds.names.len() {
                let mass = masses.as_ref().and_then(|m| m.get(k).copied()).unwrap_or(f64::NAN);
                row.push(number(mass, errors.as_ref().and_then(|e| e.get(k).copied().flatten())));
            }
            row.extend(rest);
            row
        };
    let dash = || "-".to_string();
    let mut rows =
        vec![row("data".into(), &Some(kinds.shares.clone()), &None, [dash(), dash(), dash(), dash()])];
    for j in judged {
        let (e, r) = (&j.result.judgement, &j.result);
        let per = |v: f64| v / r.dim as f64;
        let bits = |v: f64| per(v) / std::f64::consts::LN_2;
        let tracked = [
            e.log_z.map_or_else(dash, |z| number(z, e.log_z_std_error)),
            r.cross_entropy.map_or_else(dash, |h| number(per(h), r.cross_entropy_std_error.map(per))),
            r.cross_entropy.map_or_else(dash, |h| number(bits(h), None)),
            r.held_out.map_or_else(dash, |h| number(per(h), None)),
        ];
        let errors = if j.weighted { &e.walker_masses_std_error } else { &None };
        rows.push(row(format!("{}: {}", j.label, j.ensemble), &e.walker_masses, errors, tracked));
        let annealed = [
            number(e.log_z_annealed, e.log_z_annealed_std_error),
            number(per(r.cross_entropy_annealed), r.cross_entropy_annealed_std_error.map(per)),
            number(bits(r.cross_entropy_annealed), None),
            number(per(r.held_out_annealed), r.held_out_annealed_std_error.map(per)),
        ];
        let label = format!("{}: model, by annealing", j.label);
        rows.push(row(label, &e.model_masses, &e.model_masses_std_error, annealed));
    }
    Table { headers, rows }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masses_agree_within_errors_or_a_share_if_there_are_lineages_to_tell() {
        let word = |mass, error, lineages| mass_agrees(mass, error, 0.2, 2.0, lineages).word();
        assert_eq!(word(0.229, 0.001, 30), "yes"); // 14.5 %
        assert_eq!(word(0.231, 0.001, 30), "no");
        assert_eq!(word(0.139, 0.031, 30), "yes"); // 1.97 errors
        assert_eq!(word(0.139, 0.030, 30), "no");
        assert_eq!(word(f64::NAN, 0.030, 30), "no");
        assert_eq!(word(0.2, 0.001, 29), "cannot be decided");
    }
}
