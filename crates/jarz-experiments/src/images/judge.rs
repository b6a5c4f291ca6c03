//! Runs judged by annealing. It takes long, so what came of it is kept in the run's folder.

use super::{ImagesSpec, Kinds};
use crate::engine::Watch;
use crate::error::ExperimentError;
use jarz::annealing::{AnnealingError, Rung, Settings};
use jarz_run::files::write_atomic;
use jarz_run::{ImageEvaluation, ImageRequest, RunError, checkpoint_sha256, evaluate_images};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::path::Path;

/// Where it is kept.
const FILE: &str = "evaluate.json";

/// What a judgement depends on, besides the images, which belong to the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct MadeFrom {
    version: String,
    /// SHA-256 of the checkpoint.
    checkpoint: String,
    seed: u64,
    images: ImagesSpec,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    made_from: MadeFrom,
    #[serde(flatten)]
    result: ImageEvaluation,
}

fn read(folder: &Path, made_from: &MadeFrom) -> Option<ImageEvaluation> {
    let kept: Kept = serde_json::from_slice(&std::fs::read(folder.join(FILE)).ok()?).ok()?;
    (kept.made_from == *made_from).then_some(kept.result)
}

/// Judges the run in a folder, unless that was done before with the same checkpoint and settings; `anew` judges in any case. If it is stopped, the
/// folder stays as it is.
pub(super) fn judge(
    folder: &Path,
    spec: &ImagesSpec,
    kinds: &Kinds,
    seed: u64,
    anew: bool,
    watch: Option<&dyn Watch>,
) -> Result<ImageEvaluation, ExperimentError> {
    let version = env!("CARGO_PKG_VERSION").to_string();
    let made_from = MadeFrom { version, checkpoint: checkpoint_sha256(folder)?, seed, images: spec.clone() };
    let kept = if anew { None } else { read(folder, &made_from) };
    if let Some(result) = kept {
        return Ok(result);
    }
    let annealing = Settings {
        walkers: spec.walkers,
        step_ess: spec.step_ess,
        moves: spec.moves,
        friction: spec.friction,
        acceptance: spec.acceptance,
        seed,
        ..Settings::default()
    };
    let request = ImageRequest {
        annealing: &annealing,
        classifier: kinds.classifier.as_ref(),
        held_out: &kinds.held_out,
    };
    let result = anneal(folder, &request, watch)?;
    let kept = Kept { made_from, result };
    let text = serde_json::to_string_pretty(&kept).unwrap_or_default() + "\n";
    write_atomic(folder.join(FILE), text.as_bytes())?;
    // Numbers may lose their last bit on the way through the file: so that pages do not depend on who wrote it, they are those of the file.
    Ok(read(folder, &kept.made_from).unwrap_or(kept.result))
}

/// Anneals; may be stopped.
fn anneal(
    folder: &Path,
    request: &ImageRequest<'_>,
    watch: Option<&dyn Watch>,
) -> Result<ImageEvaluation, ExperimentError> {
    if let Some(watch) = watch {
        if watch.stopped() {
            return Err(ExperimentError::Interrupted);
        }
        watch.say(&format!("judging '{}' by annealing", folder.display()));
    }
    let go_on = &mut |rung: &Rung| {
        let Some(watch) = watch else { return ControlFlow::Continue(()) };
        watch.annealing(folder, rung);
        if watch.stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let warn = |text: &str| watch.into_iter().for_each(|w| w.warn(text));
    evaluate_images(folder, request, go_on, &warn).map_err(|e| match e {
        RunError::Annealing(AnnealingError::Stopped { .. }) => ExperimentError::Interrupted,
        e => e.into(),
    })
}
