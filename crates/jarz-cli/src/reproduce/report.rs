//! Figures and report page of an experiment.

use super::experiment::Plan;
use super::results::{Curve, VariantResult};
use super::table::{Table, verdict};
use crate::error::CliError;
use jarz_figures::{Dash, Figure, Panel, Report, Scale as Axis, Section, Series};
use jarz_run::config::{DataConfig, TriggerName};
use std::path::Path;

/// Most modes whose means are drawn.
const MAX_MEANS: usize = 4;

/// Writes `figures/` and `report.html`.
pub fn write(out: &Path, plan: &Plan, results: &[VariantResult]) -> Result<(), CliError> {
    let main = training(plan, results);
    main.save(&out.join("figures"), &plan.name)?;
    let ess = ess(results);
    if let Some(ess) = &ess {
        ess.save(&out.join("figures"), "ess")?;
    }
    page(plan, results, &main, ess.as_ref())?.save(out, "report")?;
    Ok(())
}

fn series(label: &str, curve: Curve, colour: usize) -> Series {
    let series = Series::new(label, curve.points).colour(colour);
    match curve.band {
        Some(band) => series.band(band),
        None => series,
    }
}

/// Mass of the first mode, means and KL divergence against the iterations.
fn training(plan: &Plan, results: &[VariantResult]) -> Figure {
    let mut mass = Panel::new("Mass of the first mode").x("iterations").y("mass");
    let mut means = Panel::new("Means, first coordinate").x("iterations").y("coordinate");
    let mut kl = Panel::new("KL divergence").x("iterations").y("nats");
    kl = kl.y_scale(Axis::SymLog { linthresh: 0.1 }).hline(0.0, "");
    if let Some(first) = results.first() {
        if let Some(fraction) = first.over(|r| Some(r.data_mass)) {
            mass = mass.hline(fraction.value, format!("data {:.3}", fraction.value));
        }
        if let DataConfig::Mixture { means: targets, .. } = &first.config.data {
            for target in targets.iter().take(MAX_MEANS) {
                let x = target.first().copied().unwrap_or(0.0);
                means = means.hline(x, format!("data {x}").replace('-', "−"));
            }
        }
    }
    for (i, v) in results.iter().enumerate() {
        let mode = |t: usize| move |modes: &[usize]| modes.get(t).copied();
        let masses = v.curve(|run, row| row.masses.as_ref()?.get(mode(0)(&run.modes)?).copied());
        mass = mass.series(series(&v.label, masses, i));
        let modes = v.runs.first().map_or(0, |r| r.modes.len()).min(MAX_MEANS);
        for t in 0..modes {
            let curve = v.curve(|run, row| row.means.as_ref()?.get(mode(t)(&run.modes)?)?.first().copied());
            means = means.series(series(&v.label, curve, i));
        }
        kl = kl.series(series(&v.label, v.curve(|_, row| row.kl_exact), i));
    }
    for (i, v) in results.iter().enumerate().filter(|(_, v)| v.is_weighted()) {
        let curve = v.curve(|_, row| row.kl);
        if !curve.points.is_empty() {
            let label = format!("{}, from the weights", v.label);
            kl = kl.series(series(&label, curve, i).companion_of(i));
        }
    }
    let runs = if plan.runs > 1 { format!(" (mean of {} runs)", plan.runs) } else { String::new() };
    let title = format!("{}{runs}", plan.resolved.title);
    Figure::new().title(title).panel(mass.y_range(-0.02, 1.02)).panel(means).panel(kl).columns(3)
}

/// ESS against the iterations, for the weighted variants.
fn ess(results: &[VariantResult]) -> Option<Figure> {
    let weighted: Vec<_> = results.iter().enumerate().filter(|(_, v)| v.is_weighted()).collect();
    let mut figure = Figure::new().panel_size(460.0, 280.0);
    for (i, v) in &weighted {
        let mut panel = Panel::new(v.label.clone()).x("iterations").y("ESS / N").y_range(0.0, 1.02);
        let resampling = &v.config.resampling;
        if resampling.trigger == TriggerName::Ess && resampling.thresholds.is_empty() {
            let c = resampling.threshold;
            panel = panel.hline(c, format!("resampling below {c:.2}"));
        }
        let curve = v.curve(|_, row| row.ess);
        figure = figure.panel(panel.series(series("", curve, *i).dash(Dash::Solid).width(1.2)));
    }
    (!weighted.is_empty()).then(|| figure.title("Effective sample size"))
}

fn page(
    plan: &Plan,
    results: &[VariantResult],
    main: &Figure,
    ess: Option<&Figure>,
) -> Result<Report, CliError> {
    let table = Table::new(results);
    let repeated = plan.runs > 1;
    let mut report = Report::new(plan.resolved.title.clone()).subtitle(format!(
        "Experiment {}, {} scale",
        plan.name,
        plan.scale.name()
    ));
    if !plan.resolved.paper.trim().is_empty() {
        report = report.heading("What the paper says").text(plan.resolved.paper.clone());
    }
    let errors = if repeated { ", mean ± standard error over the runs" } else { "" };
    report = report.heading("What this run measured").text(verdict(results)).section(Section::Table {
        caption: format!("At the last iteration{errors}; KL divergences in nats, on the data of the run"),
        headers: table.headers,
        rows: table.rows,
    });
    let band = if repeated { " Shaded: one standard error over the runs." } else { "" };
    report = report.figure(
        format!(
            "Mass of the mode at the data's first one, first coordinates of the modes, and KL divergence: exact, and \
             estimated from the weights (short dashes) where there are weights. It is relative to the truth on the same \
             finite data, so it may end slightly below zero.{band}"
        ),
        main,
    );
    if let Some(ess) = ess {
        let caption = "Effective fraction of the walkers. It falls while the model moves and returns to one when the \
                       walkers are resampled.";
        report = report.figure(caption, ess);
    }
    let seeds = match plan.runs {
        1 => plan.seed.to_string(),
        runs => format!("{} to {}", plan.seed, plan.seed + runs as u64 - 1),
    };
    let total: f64 = results.iter().map(VariantResult::seconds).sum();
    let pair = |key: &str, value: String| (key.to_string(), value);
    let mut pairs = vec![
        pair("scale", plan.scale.name().into()),
        pair("runs of each variant", plan.runs.to_string()),
        pair("seeds", seeds),
        pair("computing time", format!("{total:.1} s")),
    ];
    for v in results {
        pairs.push(pair(&format!("computing time of {}", v.name), format!("{:.1} s", v.seconds())));
    }
    pairs.push(pair("version", format!("jarz {}", env!("CARGO_PKG_VERSION"))));
    report = report.heading("How it was run").section(Section::KeyValues { caption: String::new(), pairs });
    report = report.text(
        "Every run has a folder of its own, named after variant and run, with its metrics, figures and report. \
         The experiment is in experiment.toml; running the same command in this folder again keeps finished runs.",
    );
    report = report.heading("Configurations");
    for v in results {
        let text = v.config.to_toml().map_err(jarz_run::RunError::from)?;
        report = report.section(Section::Code { caption: format!("{} (first run)", v.name), text });
    }
    Ok(report)
}
