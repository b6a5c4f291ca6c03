//! The figure of one run.

use crate::quantity::{band, has_values, points};
use crate::run::is_weighted;
use jarz_figures::{Dash, Figure, Marker, Panel, Scale, Series};
use jarz_run::config::{DataConfig, TriggerName};
use jarz_run::{Config, Row};

/// Most modes that are drawn one by one.
pub(crate) const MAX_MODES: usize = 6;

/// All panels that the run has something for.
pub(crate) fn figure(config: &Config, rows: &[Row]) -> Figure {
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
            .series(Series::new("", points(rows, |r| r.gradient_norm)).width(1.3)),
    ));
    let acceptance = points(rows, |r| r.acceptance);
    if has_values(&acceptance) {
        let panel = Panel::new("Acceptance").x("iterations").y("acceptance").y_range(0.0, 1.02);
        panels.push(Some(panel.series(Series::new("", acceptance))));
    }
    let steps = points(rows, |r| Some(r.step_size));
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
    let (estimated, exactly) = (points(rows, estimate), points(rows, exact));
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
    panel = panel.series(Series::new("ESS", points(rows, |r| r.ess)).colour(0).width(1.3));
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
        let model = points(rows, |r| r.masses.as_ref()?.get(k).copied());
        panel = panel.series(Series::new(format!("mode {k}"), model).colour(k).dash(Dash::Solid));
    }
    for k in 0..drawn {
        let of_walkers = |r: &Row| r.walker_masses.as_ref()?.get(k).copied();
        let line = points(rows, of_walkers);
        if has_values(&line) {
            let error = |r: &Row| r.walker_masses_std_error.as_ref()?.get(k).copied().flatten();
            let label = format!("mode {k}, walkers");
            panel =
                panel.series(Series::new(label, line).companion_of(k).band(band(rows, of_walkers, error)));
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
        let line = points(rows, |r| r.means.as_ref()?.get(k)?.first().copied());
        panel = panel.series(Series::new(format!("mode {k}"), line).colour(k).dash(Dash::Solid));
    }
    Some(panel)
}
