//! Pictures and page of an experiment on images.

use super::{Judged, Kinds};
use crate::criterion::Verdict;
use crate::error::ExperimentError;
use crate::plan::Plan;
use crate::report::{count, verdict_table};
use crate::table::Table;
use jarz_data::Preparation;
use jarz_figures::{Figure, ImageGrid, Order, Panel, Report, Section, Series};
use jarz_run::{Row, read_metrics};
use std::path::Path;

/// Images in a row, and rows.
const GRID: (usize, usize) = (5, 12);

pub(super) fn write(
    out: &Path,
    plan: &Plan,
    kinds: &Kinds,
    judged: &[Judged],
    verdicts: &[Verdict],
    table: &Table,
) -> Result<(), ExperimentError> {
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
    report = report.heading("Masses and cross-entropies").section(Section::Table {
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
        for (stem, caption, order) in [
            ("walkers", "walkers as they come", Order::Given),
            (
                "by-weight",
                "walkers from the heaviest to the lightest, weights relative to their mean",
                Order::WeightSpread,
            ),
        ] {
            if order != Order::Given && !j.weighted {
                continue;
            }
            let mut grid =
                ImageGrid::new(kinds.train.shape(), &j.result.images)?.order(order).grid(GRID.0, GRID.1);
            if j.weighted {
                grid = grid.weights(&j.result.weights)?.weight_captions();
            }
            grid.save(&figures, &format!("{stem}-{}", i + 1))?;
            report = report.images(format!("{}: {caption}", j.label), &grid)?;
        }
    }
    let curves = curves(judged)?;
    curves.save(&figures, "training")?;
    report = report
        .heading("Training")
        .figure("Cross-entropy tracked by the weights, and effective sample size", &curves);
    let seconds: f64 =
        judged.iter().filter_map(|j| jarz_run::read_summary(&j.folder)).map(|s| s.seconds).sum();
    let pairs = [
        ("scale", plan.scale.name().to_string()),
        ("seed of the first run", plan.seed.to_string()),
        ("classifier: right on held-out images", format!("{:.1} %", 100.0 * kinds.accuracy)),
        ("training images", kinds.train.len().to_string()),
        ("held-out images", kinds.held_out.len().to_string()),
        ("computing time of the training", format!("{seconds:.0} s, added up over the runs")),
        ("version", format!("jarz {}", env!("CARGO_PKG_VERSION"))),
    ];
    let pairs = pairs.map(|(k, v)| (k.to_string(), v)).to_vec();
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

fn curves(judged: &[Judged]) -> Result<Figure, ExperimentError> {
    let mut entropy = Panel::new("Cross-entropy").x("iteration").y("nats per dimension");
    let mut ess =
        Panel::new("Effective sample size").x("iteration").y("share of the walkers").y_range(0.0, 1.0);
    for j in judged.iter().filter(|j| j.weighted) {
        let rows = read_metrics(&j.folder.join("metrics.jsonl"))?;
        let dim = j.result.dim as f64;
        let points = |f: &dyn Fn(&Row) -> Option<f64>| -> Vec<(f64, f64)> {
            rows.iter().filter_map(|r| Some((r.iteration as f64, f(r)?))).collect()
        };
        entropy = entropy.series(Series::new(j.label.clone(), points(&|r| r.cross_entropy.map(|h| h / dim))));
        ess = ess.series(Series::new(j.label.clone(), points(&|r| r.ess)));
    }
    Ok(Figure::new().panel(entropy).panel(ess))
}
