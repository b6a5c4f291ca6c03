//! What happened during the training: cross-entropy, effective sample size, masses.

use super::{Judged, Kinds};
use crate::error::ExperimentError;
use jarz_figures::{Figure, Panel, Series};
use jarz_run::{Row, read_metrics};

/// The logged rows of a run.
fn rows(judged: &Judged) -> Result<Vec<Row>, ExperimentError> {
    Ok(read_metrics(&judged.folder.join("metrics.jsonl"))?)
}

/// Cross-entropy, effective sample size and resamplings of the weighted runs.
pub(super) fn training(judged: &[Judged]) -> Result<Figure, ExperimentError> {
    let mut entropy = Panel::new("Cross-entropy").x("iteration").y("nats per dimension");
    let mut ess =
        Panel::new("Effective sample size").x("iteration").y("share of the walkers").y_range(0.0, 1.0);
    let mut resamplings = Panel::new("Resamplings").x("iteration").y("so far");
    for j in judged.iter().filter(|j| j.weighted) {
        let (rows, dim) = (rows(j)?, j.result.dim as f64);
        let points = |f: &dyn Fn(&Row) -> Option<f64>| -> Vec<(f64, f64)> {
            rows.iter().filter_map(|r| Some((r.iteration as f64, f(r)?))).collect()
        };
        entropy = entropy.series(Series::new(j.label.clone(), points(&|r| r.cross_entropy.map(|h| h / dim))));
        ess = ess.series(Series::new(j.label.clone(), points(&|r| r.ess)));
        let so_far = points(&|r| Some(r.resamplings as f64));
        resamplings = resamplings.series(Series::new(j.label.clone(), so_far));
    }
    Ok(Figure::new().columns(3).panel(entropy).panel(ess).panel(resamplings))
}

/// Relative error of each kind's mass among the walkers, with bands of one standard error where there is one. None if no run has logged masses.
pub(super) fn mass_errors(judged: &[Judged], kinds: &Kinds) -> Result<Option<Figure>, ExperimentError> {
    let all = judged.iter().map(|j| Ok((j, rows(j)?))).collect::<Result<Vec<_>, ExperimentError>>()?;
    if all.iter().all(|(_, rows)| rows.iter().all(|r| r.walker_masses.is_none())) {
        return Ok(None);
    }
    let mut figure = Figure::new().columns(kinds.names.len().min(3));
    for (k, (name, share)) in kinds.names.iter().zip(&kinds.shares).enumerate() {
        let title = format!("Mass of {name} (data {share:.3})");
        let mut panel = Panel::new(title).x("iteration").y("relative error").hline(0.0, "data");
        for (i, (j, rows)) in all.iter().enumerate() {
            let error = |r: &Row| Some(r.walker_masses.as_ref()?.get(k)? / share - 1.0);
            let bar = |r: &Row| Some(r.walker_masses_std_error.as_ref()?.get(k).copied().flatten()? / share);
            let at = |r: &Row| r.iteration as f64;
            let points: Vec<_> = rows.iter().filter_map(|r| Some((at(r), error(r)?))).collect();
            let band = rows.iter().filter_map(|r| {
                let (error, bar) = (error(r)?, bar(r)?);
                Some((at(r), error - bar, error + bar))
            });
            let band: Vec<_> = band.collect();
            let series = Series::new(j.label.clone(), points).colour(i);
            panel = panel.series(if band.is_empty() { series } else { series.band(band) });
        }
        figure = figure.panel(panel);
    }
    Ok(Some(figure))
}
