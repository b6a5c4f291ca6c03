//! Figure and report page of repeated runs: means over the runs, with a band of one standard error.

use crate::error::CliError;
use jarz::estimate::over_runs;
use jarz_figures::{Dash, Figure, Panel, Report, Scale, Section, Series};
use jarz_run::{Row, RunsSummary, read_config, read_metrics};
use std::collections::BTreeMap;
use std::path::Path;

/// Most modes that are drawn.
const MAX_MODES: usize = 6;

/// Writes `figures/runs.svg`, `figures/runs.png` and `report.html` of a folder with repeated runs.
pub fn draw_runs(folder: &Path, summary: &RunsSummary) -> Result<(), CliError> {
    let config = read_config(folder)?;
    let place = |run: usize| folder.join("runs").join(format!("run-{run:02}")).join("metrics.jsonl");
    let runs: Vec<Vec<Row>> =
        (1..=summary.runs).map(|r| read_metrics(&place(r))).collect::<Result<_, _>>()?;
    let mut panels: Vec<Panel> = Vec::new();
    let known = runs.iter().flatten().any(|r| r.kl_exact.is_some());
    type Get = fn(&Row) -> Option<f64>;
    let (title, series): (_, [(&str, Get); 2]) = match known {
        true => ("KL divergence", [("from the weights", |r| r.kl), ("exact", |r| r.kl_exact)]),
        false => (
            "Cross-entropy",
            [("from the weights", |r| r.cross_entropy), ("exact", |r| r.cross_entropy_exact)],
        ),
    };
    let mut loss = Panel::new(title).x("iterations").y("nats");
    if known {
        loss = loss.y_scale(Scale::SymLog { linthresh: 0.1 });
    }
    for (label, get) in series {
        loss = add(loss, label, &runs, get);
    }
    panels.push(loss);
    panels
        .push(add(Panel::new("Effective sample size").x("iterations").y("ESS / N"), "ESS", &runs, |r| r.ess));
    let modes = summary.masses.as_ref().map_or(0, Vec::len).min(MAX_MODES);
    if modes > 0 {
        let mut masses = Panel::new("Masses").x("iterations").y("mass").y_range(-0.02, 1.02);
        for k in 0..modes {
            let label = format!("mode {k}");
            masses = add(masses, &label, &runs, |r| r.masses.as_ref()?.get(k).copied());
        }
        panels.push(masses);
    }
    panels.retain(|p| !p.series.is_empty());
    let figure = Figure { panels, columns: 3, ..Figure::new() };
    figure.save(&folder.join("figures"), "runs")?;
    let measured = |value: Option<f64>, error: Option<f64>| match (value, error) {
        (Some(v), Some(e)) => format!("{v:.4} ± {e:.4} nats"),
        (Some(v), None) => format!("{v:.4} nats"),
        _ => "—".to_string(),
    };
    let mut pairs = vec![
        ("algorithm".to_string(), summary.algorithm.clone()),
        ("runs".to_string(), format!("{} ({})", summary.runs, summary.stop_reason)),
        ("cross-entropy".to_string(), measured(summary.cross_entropy, summary.cross_entropy_std_error)),
        ("log Z".to_string(), measured(summary.log_z, summary.log_z_std_error)),
        ("computing time".to_string(), format!("{:.1} s", summary.seconds)),
    ];
    for (k, mass) in summary.masses.iter().flatten().take(10).enumerate() {
        let error = summary.masses_std_error.as_ref().and_then(|e| e.get(k).copied().flatten());
        let error = error.map_or(String::new(), |e| format!(" ± {e:.4}"));
        pairs.push((format!("mass of mode {k}"), format!("{mass:.4}{error}")));
    }
    let text = config.to_toml().map_err(jarz_run::RunError::from)?;
    Report::new("Repeated runs")
        .subtitle(format!("{} runs, seeds from {}, jarz {}", summary.runs, config.seed, summary.version))
        .heading("Results")
        .section(Section::KeyValues {
            caption: "Means over the runs, errors from their scatter.".into(),
            pairs,
        })
        .heading("Training")
        .figure("Means over the runs; shaded: one standard error.", &figure)
        .heading("Configuration")
        .section(Section::Code { caption: "run.toml, with all defaults filled in".into(), text })
        .save(folder, "report")?;
    Ok(())
}

/// Adds the mean over runs of a quantity, with its band, where all runs have it.
fn add(panel: Panel, label: &str, runs: &[Vec<Row>], get: impl Fn(&Row) -> Option<f64>) -> Panel {
    let mut values: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for row in runs.iter().flatten() {
        if let Some(value) = get(row) {
            values.entry(row.iteration).or_default().push(value);
        }
    }
    values.retain(|_, v| v.len() == runs.len());
    if values.is_empty() {
        return panel;
    }
    let means: Vec<_> = values.into_iter().map(|(k, v)| (k as f64, over_runs(&v))).collect();
    let band: Vec<(f64, f64, f64)> =
        means.iter().filter_map(|(k, m)| m.std_error.map(|e| (*k, m.value - e, m.value + e))).collect();
    let points: Vec<(f64, f64)> = means.iter().map(|(k, m)| (*k, m.value)).collect();
    panel.series(Series::new(label, points).band(band).dash(Dash::Solid))
}
