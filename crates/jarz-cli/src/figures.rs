//! Figures and report page of one run, drawn from what is in its folder.

use crate::error::CliError;
use jarz_figures::{Dash, Figure, Marker, Panel, Report, Scale, Section, Series};
use jarz_run::config::{AlgorithmKind, DataConfig, TriggerName};
use jarz_run::{Config, Row, Summary, read_config, read_metrics, read_summary};
use std::path::{Path, PathBuf};

/// Most modes that are drawn one by one.
const MAX_MODES: usize = 6;
/// Fewer surviving ancestors make the error bars unreliable.
const FEW_ANCESTORS: u64 = 100;
/// An ESS below this leaves estimates to a few walkers.
const LOW_ESS: f64 = 0.1;
/// A lower acceptance means that the step size is too large for the weights to stay even.
const LOW_ACCEPTANCE: f64 = 0.5;

/// Writes `figures/training.svg`, `figures/training.png` and `report.html` of a run folder; returns their paths.
pub fn draw_run(folder: &Path) -> Result<Vec<PathBuf>, CliError> {
    let config = read_config(folder)?;
    let rows = read_metrics(&folder.join("metrics.jsonl"))?;
    let summary = read_summary(folder);
    let figure = training(&config, &rows);
    let figures = folder.join("figures");
    figure.save(&figures, "training")?;
    report(folder, &config, &rows, summary.as_ref(), &figure)?.save(folder, "report")?;
    Ok(vec![figures.join("training.svg"), figures.join("training.png"), folder.join("report.html")])
}

/// What a reader of a run's numbers should know.
pub fn warnings(folder: &Path) -> Result<Vec<String>, CliError> {
    let config = read_config(folder)?;
    let rows = read_metrics(&folder.join("metrics.jsonl"))?;
    Ok(numeric_cautions(&config, &rows))
}

fn is_weighted(config: &Config) -> bool {
    matches!(config.algorithm.kind, AlgorithmKind::Jarzynski | AlgorithmKind::JarzynskiContinuous)
}

/// A quantity against the iterations; gaps where it is missing.
fn curve(rows: &[Row], f: impl Fn(&Row) -> Option<f64>) -> Vec<(f64, f64)> {
    rows.iter().map(|row| (row.iteration as f64, f(row).unwrap_or(f64::NAN))).collect()
}

fn has_values(points: &[(f64, f64)]) -> bool {
    points.iter().any(|p| p.1.is_finite())
}

/// Two standard errors around a quantity.
fn band(
    rows: &[Row],
    f: impl Fn(&Row) -> Option<f64>,
    error: impl Fn(&Row) -> Option<f64>,
) -> Vec<(f64, f64, f64)> {
    let at = |row: &Row| {
        let (value, error) = (f(row)?, error(row)?);
        Some((row.iteration as f64, value - 2.0 * error, value + 2.0 * error))
    };
    rows.iter().filter_map(at).collect()
}

/// All panels that the run has something for.
fn training(config: &Config, rows: &[Row]) -> Figure {
    let mut panels = vec![loss(rows)];
    if is_weighted(config) {
        panels.push(Some(ess(config, rows)));
    }
    panels.push(masses(config, rows));
    panels.push(means(config, rows));
    panels.push(Some(
        Panel::new("Gradient norm")
            .x("iterations")
            .y("norm")
            .y_log()
            .series(Series::new("", curve(rows, |r| r.gradient_norm)).width(1.3)),
    ));
    let acceptance = curve(rows, |r| r.acceptance);
    if has_values(&acceptance) {
        let panel = Panel::new("Acceptance").x("iterations").y("acceptance").y_range(0.0, 1.02);
        panels.push(Some(panel.series(Series::new("", acceptance))));
    }
    let steps = curve(rows, |r| Some(r.step_size));
    if steps.iter().any(|p| p.1 != steps[0].1) {
        let panel = Panel::new("Step size").x("iterations").y("h").y_log();
        panels.push(Some(panel.series(Series::new("", steps))));
    }
    let end = rows.last().map_or(0, |r| r.iteration) as f64;
    let panels: Vec<Panel> = panels.into_iter().flatten().map(|p| p.x_range(0.0, end)).collect();
    let columns = if panels.len() == 4 { 2 } else { 3 };
    Figure { panels, columns, ..Figure::new() }
}

/// KL divergence where the truth is known, cross-entropy otherwise.
fn loss(rows: &[Row]) -> Option<Panel> {
    let known = rows.iter().any(|r| r.kl_exact.is_some() || r.kl.is_some());
    type Get = fn(&Row) -> Option<f64>;
    let (title, estimate, exact, error): (_, Get, Get, Get) = match known {
        // On the same data, only the estimate of log Z is uncertain.
        true => ("KL divergence", |r| r.kl, |r| r.kl_exact, |r| r.log_z_std_error),
        false => {
            ("Cross-entropy", |r| r.cross_entropy, |r| r.cross_entropy_exact, |r| r.cross_entropy_std_error)
        }
    };
    let mut panel = Panel::new(title).x("iterations").y("nats");
    if known {
        panel = panel.y_scale(Scale::SymLog { linthresh: 0.1 }).hline(0.0, "");
    }
    let (estimated, exactly) = (curve(rows, estimate), curve(rows, exact));
    let weighted = has_values(&estimated);
    if weighted {
        let band = band(rows, estimate, error);
        panel = panel.series(Series::new("from the weights", estimated).colour(0).band(band));
    }
    if has_values(&exactly) {
        let exact = Series::new("exact", exactly);
        // Black and thin over the estimate, so that both can be seen where they agree.
        panel = panel.series(if weighted { exact.companion_of(6) } else { exact.colour(0) });
    }
    (!panel.series.is_empty()).then_some(panel)
}

/// ESS, with a mark at each logged iteration before which walkers were resampled.
fn ess(config: &Config, rows: &[Row]) -> Panel {
    let mut panel = Panel::new("Effective sample size").x("iterations").y("ESS / N").y_range(0.0, 1.02);
    let resampling = &config.resampling;
    if resampling.trigger == TriggerName::Ess && resampling.thresholds.is_empty() {
        panel = panel.hline(resampling.threshold, format!("threshold {:.2}", resampling.threshold));
    }
    let marks: Vec<(f64, f64)> = rows
        .windows(2)
        .filter(|pair| pair[1].resamplings > pair[0].resamplings)
        .map(|pair| (pair[1].iteration as f64, 0.04))
        .collect();
    panel = panel.series(Series::new("ESS", curve(rows, |r| r.ess)).colour(0).width(1.3));
    match marks.is_empty() {
        true => panel,
        false => {
            let total = rows.last().map_or(0, |r| r.resamplings);
            let marks = Series::new(format!("resampled ({total} times in all)"), marks);
            panel.series(marks.colour(1).width(0.0).marker(Marker::Triangle))
        }
    }
}

/// Number of modes drawn, out of how many.
fn modes(rows: &[Row]) -> (usize, usize) {
    let all = rows.iter().find_map(|r| r.masses.as_ref()).map_or(0, Vec::len);
    (all.min(MAX_MODES), all)
}

fn of_modes(title: &str, (drawn, all): (usize, usize)) -> String {
    if drawn < all { format!("{title} (first {drawn} of {all} modes)") } else { title.to_string() }
}

/// Masses of a mixture's modes: of the model, and among the walkers with two standard errors.
fn masses(config: &Config, rows: &[Row]) -> Option<Panel> {
    let (drawn, all) = modes(rows);
    if drawn == 0 {
        return None;
    }
    let mut panel =
        Panel::new(of_modes("Masses", (drawn, all))).x("iterations").y("mass").y_range(-0.02, 1.02);
    if let DataConfig::Mixture { masses, .. } = &config.data {
        let total: f64 = masses.iter().sum();
        for mass in masses.iter().take(MAX_MODES) {
            panel = panel.hline(mass / total, format!("data {:.3}", mass / total));
        }
    }
    for k in 0..drawn {
        let model = curve(rows, |r| r.masses.as_ref()?.get(k).copied());
        panel = panel.series(Series::new(format!("mode {k}"), model).colour(k).dash(Dash::Solid));
    }
    for k in 0..drawn {
        let of_walkers = |r: &Row| r.walker_masses.as_ref()?.get(k).copied();
        let points = curve(rows, of_walkers);
        if has_values(&points) {
            let error = |r: &Row| r.walker_masses_std_error.as_ref()?.get(k).copied().flatten();
            let label = format!("mode {k}, walkers");
            panel =
                panel.series(Series::new(label, points).companion_of(k).band(band(rows, of_walkers, error)));
        }
    }
    Some(panel)
}

/// First coordinates of a mixture's means.
fn means(config: &Config, rows: &[Row]) -> Option<Panel> {
    let counts @ (drawn, _) = modes(rows);
    if drawn == 0 || rows.iter().all(|r| r.means.is_none()) {
        return None;
    }
    let title = of_modes("Means, first coordinate", counts);
    let mut panel = Panel::new(title).x("iterations").y("coordinate");
    if let DataConfig::Mixture { means, .. } = &config.data {
        for mean in means.iter().take(MAX_MODES) {
            let x = mean.first().copied().unwrap_or(0.0);
            panel = panel.hline(x, format!("data {x}").replace('-', "−"));
        }
    }
    for k in 0..drawn {
        let points = curve(rows, |r| r.means.as_ref()?.get(k)?.first().copied());
        panel = panel.series(Series::new(format!("mode {k}"), points).colour(k).dash(Dash::Solid));
    }
    Some(panel)
}

fn report(
    folder: &Path,
    config: &Config,
    rows: &[Row],
    summary: Option<&Summary>,
    figure: &Figure,
) -> Result<Report, CliError> {
    let name = folder.file_name().map_or_else(|| "run".into(), |n| n.to_string_lossy().into_owned());
    let mut report = Report::new(format!("Run {name}"));
    if let Some(s) = summary {
        report = report.subtitle(format!(
            "{}, {} iterations, {}, seed {}, {:.1} s, jarz {}",
            s.algorithm, s.iterations, s.stop_reason, s.seed, s.seconds, s.version
        ));
        report = report
            .heading("Results")
            .section(Section::KeyValues { caption: String::new(), pairs: key_values(s) });
    }
    let notes = cautions(config, rows, summary);
    if !notes.is_empty() {
        report = report.heading("Handle with care").text(notes.join("\n\n"));
    }
    report = report.heading("Training").figure(
        "Values at the logged iterations. Shaded: two standard errors, estimated within the run from the \
         walkers' ancestry. A KL divergence is relative to the truth on the same finite data, so it may end \
         slightly below zero.",
        figure,
    );
    let text = config.to_toml().map_err(jarz_run::RunError::from)?;
    Ok(report
        .heading("Configuration")
        .section(Section::Code { caption: "run.toml, with all defaults filled in".into(), text }))
}

/// The final figures, with their errors and units.
fn key_values(s: &Summary) -> Vec<(String, String)> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    let mut add = |key: &str, value: String| pairs.push((key.to_string(), value));
    let with_error = |value: f64, error: Option<f64>| match error {
        Some(e) => format!("{value:.4} ± {e:.4}"),
        None => format!("{value:.4}"),
    };
    add("algorithm", s.algorithm.clone());
    if let Some(rule) = &s.self_interaction {
        add("self-interaction", rule.clone());
    }
    for (key, value, error) in [
        ("cross-entropy", s.cross_entropy, s.cross_entropy_std_error),
        ("cross-entropy, exact", s.cross_entropy_exact, None),
        ("KL divergence from the weights", s.kl, s.log_z_std_error),
        ("KL divergence, exact", s.kl_exact, None),
        ("log Z", s.log_z, s.log_z_std_error),
        ("log Z, exact", s.log_z_exact, None),
    ] {
        if let Some(value) = value {
            add(key, format!("{} nats", with_error(value, error)));
        }
    }
    let list = |values: Vec<String>, all: usize| match values.len() < all {
        true => format!("{}, ... ({all} in all)", values.join(", ")),
        false => values.join(", "),
    };
    if let Some(masses) = &s.masses {
        let shown = masses.iter().take(10).map(|m| format!("{m:.4}")).collect();
        add("masses", list(shown, masses.len()));
    }
    if let Some(masses) = &s.walker_masses {
        let error = |k: usize| s.walker_masses_std_error.as_ref()?.get(k).copied().flatten();
        let shown = masses.iter().take(10).enumerate().map(|(k, m)| with_error(*m, error(k))).collect();
        add("masses among the walkers", list(shown, masses.len()));
    }
    if let Some(means) = &s.means {
        let first = |m: &Vec<f64>| m.first().map_or(String::new(), |x| format!("{x:.4}"));
        add("means, first coordinate", list(means.iter().take(10).map(first).collect(), means.len()));
    }
    if s.self_interaction.is_some() {
        if let Some(ess) = s.ess {
            add("effective sample size", format!("{ess:.3} of the walkers"));
        }
        add("resamplings", s.resamplings.to_string());
        add("distinct ancestors", s.distinct_ancestors.to_string());
    }
    if let Some(acceptance) = s.acceptance {
        add("acceptance", format!("{acceptance:.3}"));
    }
    add("iterations", format!("{} ({})", s.iterations, s.stop_reason));
    add("seed", s.seed.to_string());
    add("computing time", format!("{:.1} s", s.seconds));
    add("version", format!("jarz {}", s.version));
    pairs
}

/// What a reader of the numbers should know, judged from the rows.
fn cautions(config: &Config, rows: &[Row], summary: Option<&Summary>) -> Vec<String> {
    let mut notes = Vec::new();
    match summary {
        None => {
            notes.push("The run has not written its results yet: it is still going on, or was killed.".into())
        }
        Some(s) if s.stop_reason != jarz::StopReason::Finished.name() => {
            let all = config.run.iterations;
            notes.push(format!("The run was stopped after {} of {all} iterations.", s.iterations));
        }
        Some(_) => {}
    }
    notes.extend(numeric_cautions(config, rows));
    notes
}

/// Signs in the rows that the numbers are not to be trusted.
fn numeric_cautions(config: &Config, rows: &[Row]) -> Vec<String> {
    let mut notes = Vec::new();
    let lowest = |f: &dyn Fn(&Row) -> Option<f64>| {
        let values = rows.iter().filter_map(|r| Some((r.iteration, f(r)?)));
        values.min_by(|a, b| a.1.total_cmp(&b.1))
    };
    if is_weighted(config) {
        if let Some(left) = rows.last().map(|r| r.distinct_ancestors).filter(|n| *n < FEW_ANCESTORS) {
            notes.push(format!(
                "The walkers descend from {left} of the {} initial ones. The error bars are made from the scatter between \
                 these families, so with fewer than {FEW_ANCESTORS} they are unreliable; compare several runs with different \
                 seeds instead.",
                config.walkers.count
            ));
        }
        if let Some((k, ess)) = lowest(&|r| r.ess).filter(|(_, ess)| *ess < LOW_ESS) {
            notes.push(format!(
                "The effective sample size fell to {ess:.3} at iteration {k}: a few walkers carried the estimates. Smaller \
                 learning rates, more walkers or a higher resampling threshold help."
            ));
        }
    }
    if let Some((k, a)) = lowest(&|r| r.acceptance).filter(|(_, a)| *a < LOW_ACCEPTANCE) {
        notes.push(format!(
            "The acceptance fell to {a:.2} at iteration {k}: the step size is large for this energy. A smaller \
             kernel.step_size, or kernel.adapt, helps."
        ));
    }
    notes
}
