//! Pictures and page of an experiment on images.

use super::neighbours::{self, Neighbours};
use super::{Judged, Kinds, curves};
use crate::criterion::Verdict;
use crate::error::ExperimentError;
use crate::plan::Plan;
use crate::report::{count, verdict_table};
use crate::table::Table;
use jarz_data::Preparation;
use jarz_figures::{ImageGrid, Order, Report, Section};
use jarz_run::ImageWalkers;
use std::path::Path;

/// Images in a row, and rows.
const GRID: (usize, usize) = (5, 12);

/// What the page is about.
pub(super) struct Parts<'a> {
    pub kinds: &'a Kinds,
    pub judged: &'a [Judged],
    /// Nearest training images of every run's walkers.
    pub near: &'a [Neighbours],
    /// Those of images that no run saw.
    pub near_held_out: &'a Neighbours,
}

pub(super) fn write(
    out: &Path,
    plan: &Plan,
    parts: &Parts<'_>,
    verdicts: &[Verdict],
    table: &Table,
) -> Result<(), ExperimentError> {
    let Parts { kinds, judged, near, near_held_out } = *parts;
    let figures = out.join("figures");
    let mut report = Report::new(plan.resolved.title.clone()).subtitle(format!(
        "Experiment {}, {} scale",
        plan.name,
        plan.scale.name()
    ));
    if !plan.resolved.paper.trim().is_empty() {
        report = report.heading("What it is about").text(plan.resolved.paper.clone());
    }
    let Table { headers, rows } = verdict_table(verdicts);
    report = report.heading("Does it agree?").text(count(verdicts) + ".").section(Section::Table {
        caption: String::new(),
        headers,
        rows,
    });
    let heading = if kinds.names.is_empty() { "Cross-entropies" } else { "Masses and cross-entropies" };
    report = report.heading(heading).section(Section::Table {
        caption: "Walkers: what the training itself says, with its weights. Model: an annealed run from the base measure to the trained \
                  model, whatever the training did; walkers that began at data points keep the data's proportions, whatever the model \
                  says. Cross-entropies are in nats per dimension, in the coordinates of the pixels."
            .into(),
        headers: table.headers.clone(),
        rows: table.rows.clone(),
    });
    report = report.heading("Samples");
    let data = data_grid(kinds)?;
    data.save(&figures, "data")?;
    report = report.images("Data, without noise", &data)?;
    for (i, j) in judged.iter().enumerate() {
        let mut grid =
            ImageGrid::new(kinds.train.shape(), &j.walkers.images)?.order(Order::Spread).grid(GRID.0, GRID.1);
        if j.weighted {
            grid = grid.weights(&j.walkers.weights)?.weight_captions();
        }
        grid.save(&figures, &format!("walkers-{}", i + 1))?;
        report = report.images(
            format!("{}: {}, in even steps from the first to the last", j.label, j.ensemble),
            &grid,
        )?;
    }
    report = resampling(report, &figures, kinds, judged)?;
    report = neighbours::section(report, &figures, kinds, judged, near, near_held_out)?;
    let curves = curves::training(judged)?;
    curves.save(&figures, "training")?;
    report = report.heading("Training").figure(
        "Cross-entropy tracked by the weights, effective sample size, and resamplings so far",
        &curves,
    );
    if let Some(errors) = curves::mass_errors(judged, kinds)? {
        errors.save(&figures, "masses")?;
        let caption = "Relative error of each kind's mass among the walkers, as the classifier sees them, with bands of one standard \
                       error where walkers have weights. Walkers without weights begin at data points, with the data's masses.";
        report = report.figure(caption, &errors);
    }
    let seconds: f64 =
        judged.iter().filter_map(|j| jarz_run::read_summary(&j.folder)).map(|s| s.seconds).sum();
    let mut pairs = vec![
        ("scale", plan.scale.name().to_string()),
        ("seed of the first run", plan.seed.to_string()),
        ("training images", kinds.train.len().to_string()),
        ("held-out images", kinds.held_out.len().to_string()),
        ("computing time of the training", format!("{seconds:.0} s, added up over the runs")),
        ("version", format!("jarz {}", env!("CARGO_PKG_VERSION"))),
    ];
    if let Some(accuracy) = kinds.accuracy {
        pairs.push(("classifier: right on held-out images", format!("{:.1} %", 100.0 * accuracy)));
    }
    let pairs = pairs.into_iter().map(|(k, v)| (k.to_string(), v)).collect();
    report = report.heading("How it was run").section(Section::KeyValues { caption: String::new(), pairs });
    let text = plan.resolved.to_toml()?;
    report =
        report.section(Section::Code { caption: "experiment.toml, with its scale filled in".into(), text });
    report.save(out, "report")?;
    Ok(())
}

/// Images of the data, evenly spread over them.
fn data_grid(kinds: &Kinds) -> Result<ImageGrid, ExperimentError> {
    let (n, places) = (kinds.train.len(), GRID.0 * GRID.1);
    let rows: Vec<usize> = (0..places.min(n)).map(|i| i * n / places.min(n)).collect();
    let run = |e: jarz_data::ImageError| ExperimentError::Run(e.into());
    let some = kinds.train.select(&rows).map_err(run)?;
    let values = some.values::<f32>(&Preparation::default()).map_err(run)?;
    Ok(ImageGrid::new(some.shape(), &values)?.grid(GRID.0, GRID.1))
}

/// The weighted walkers before and after resampling.
fn resampling(
    mut report: Report,
    figures: &Path,
    kinds: &Kinds,
    judged: &[Judged],
) -> Result<Report, ExperimentError> {
    if !judged.iter().any(|j| j.weighted) {
        return Ok(report);
    }
    report = report.heading("Before and after resampling").text(
        "The walkers at the end of the training, and what the run's resampling scheme makes of them: walkers are drawn in proportion to \
         their weights, and all weights become equal. (The training itself goes on without this last resampling.)",
    );
    for (i, j) in judged.iter().enumerate().filter(|(_, j)| j.weighted) {
        let (before, after, distinct) = before_and_after(kinds, &j.walkers)?;
        before.save(figures, &format!("by-weight-{}", i + 1))?;
        after.save(figures, &format!("resampled-{}", i + 1))?;
        let n = j.walkers.weights.len();
        let caption = format!(
            "{}, before: from the heaviest to the lightest of {n} walkers, in even steps of rank; weights relative to their mean, ESS {:.2}",
            j.label, j.result.ess
        );
        report = report.images(caption, &before)?;
        let caption = format!(
            "{}, after: {n} walkers, {distinct} of them distinct, in the same order and even steps; how many copies there are of each",
            j.label
        );
        report = report.images(caption, &after)?;
    }
    Ok(report)
}

/// Pictures of the walkers by weight and of those drawn from them, in the same order, and how many of the latter are distinct.
fn before_and_after(
    kinds: &Kinds,
    walkers: &ImageWalkers,
) -> Result<(ImageGrid, ImageGrid, usize), ExperimentError> {
    let (shape, weights) = (kinds.train.shape(), &walkers.weights);
    let before = ImageGrid::new(shape, &walkers.images)?.order(Order::WeightSpread).grid(GRID.0, GRID.1);
    let before = before.weights(weights)?.weight_captions();
    let dim: usize = shape.iter().product();
    let mut drawn: Vec<usize> = walkers.ancestors.iter().map(|&a| a as usize).collect();
    let mut copies = vec![0; weights.len()];
    drawn.iter().for_each(|&i| copies[i] += 1);
    drawn.sort_by(|&a, &b| weights[b].total_cmp(&weights[a]));
    let places = (GRID.0 * GRID.1).min(drawn.len());
    let shown: Vec<usize> = (0..places).map(|i| drawn[i * (drawn.len() - 1) / (places - 1).max(1)]).collect();
    let image = |i: &usize| walkers.images[i * dim..(i + 1) * dim].iter().copied();
    let images: Vec<f32> = shown.iter().flat_map(image).collect();
    let after = ImageGrid::new(shape, &images)?.grid(GRID.0, GRID.1);
    let after = after.captions(shown.iter().map(|&i| format!("× {}", copies[i])))?;
    Ok((before, after, copies.iter().filter(|c| **c > 0).count()))
}
