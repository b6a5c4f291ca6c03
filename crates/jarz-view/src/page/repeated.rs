//! The page of repeated runs: means over the runs, with errors from their scatter.

use super::{Page, cautions, version, with_configuration, with_notes};
use crate::quantity::{Quantity, exact};
use crate::text::plus_minus;
use crate::training::MAX_MODES;
use crate::{Group, Run};
use jarz_figures::{Dash, Figure, Panel, Provenance, Report, Scale, Section, duration};
use jarz_run::Row;

pub(super) fn page(group: &Group) -> Page {
    let (all, counted) = (group.config.run.runs, group.counted().len());
    let figure = figure(group);
    let subtitle = format!("{all} runs, seeds from {}, {}", group.config.seed, duration(group.seconds()));
    let mut report = Report::new(format!("Repeated runs {}", group.name)).subtitle(subtitle);
    report = with_notes(report, &notes(group));
    report = report.heading("Results").section(Section::KeyValues {
        caption: format!(
            "At the last logged iteration: means over {counted} runs, errors from their scatter. Single runs are below."
        ),
        pairs: results(group),
    });
    report = report.section(runs(group));
    report = report.heading("Training").figure("Means over the runs; shaded: one standard error.", &figure);
    let seeds = group.runs.iter().map(|r| r.config().seed).collect();
    let made = group.runs.iter().find_map(Run::summary);
    let made = made.map_or_else(version, |s| format!("jarz {}", s.version));
    let more = vec![("runs".to_string(), format!("{} of {all} begun", group.runs.len()))];
    let provenance = Provenance { version: made, seeds, seconds: Some(group.seconds()), more };
    report = report.heading("How it was run").provenance(&provenance);
    report = with_configuration(report, "run.toml, with all defaults filled in", &group.config);
    Page { folder: group.folder.clone(), report, figure, stem: "runs" }
}

fn notes(group: &Group) -> Vec<String> {
    let (all, begun) = (group.config.run.runs, group.runs.len());
    let finished = group.runs.iter().filter(|r| r.is_finished()).count();
    let mut notes = Vec::new();
    if finished < all {
        let counted = if finished > 0 { "the finished ones" } else { "all of them, as far as they are" };
        notes.push(format!(
            "{finished} of {all} runs are finished, {begun} have begun; means are over {counted}."
        ));
    }
    for run in &group.runs {
        let own = run.damages().into_iter().chain(cautions::numeric(run));
        notes.extend(own.map(|note| format!("{}: {note}", run.name())));
    }
    notes
}

fn figure(group: &Group) -> Figure {
    let rows = || group.runs.iter().flat_map(|r| r.rows());
    let known = rows().any(|r| r.kl_exact.is_some());
    type Get = fn(&Row) -> Option<f64>;
    let (title, curves): (_, [(&str, Get); 2]) = match known {
        true => ("KL divergence", [("from the weights", |r| r.kl), ("exact", |r| r.kl_exact)]),
        false => (
            "Cross-entropy",
            [("from the weights", |r| r.cross_entropy), ("exact", |r| r.cross_entropy_exact)],
        ),
    };
    let series = |label: &str, get: &dyn Fn(&Row) -> Option<f64>| {
        group.series(label, &Quantity { value: get, error: &exact }).map(|s| s.dash(Dash::Solid))
    };
    let mut loss = Panel::new(title).x("iterations").y("nats");
    if known {
        loss = loss.y_scale(Scale::SymLog { linthresh: 0.1 });
    }
    let [estimate, known] = curves.map(|(label, get)| series(label, &get));
    // Black and thin over the estimate, so that both can be seen where they agree.
    let known = known.map(|s| if estimate.is_some() { s.companion_of(6) } else { s.colour(0) });
    loss = estimate.map(|s| s.colour(0)).into_iter().chain(known).fold(loss, Panel::series);
    let weighted = group.runs.iter().any(Run::is_weighted);
    let ess = Panel::new("Effective sample size").x("iterations").y("ESS / N").y_range(0.0, 1.02);
    let ess = series("ESS", &|r| r.ess).filter(|_| weighted).into_iter().fold(ess, Panel::series);
    let mut masses = Panel::new("Masses").x("iterations").y("mass").y_range(-0.02, 1.02);
    for k in 0..group.modes().min(MAX_MODES) {
        let mass = series(&format!("mode {k}"), &|r| r.masses.as_ref()?.get(k).copied());
        masses = mass.into_iter().fold(masses, Panel::series);
    }
    let panels: Vec<Panel> = [loss, ess, masses].into_iter().filter(|p| !p.series.is_empty()).collect();
    Figure { panels, columns: 3, ..Figure::new() }
}

fn results(group: &Group) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    let mut add = |key: String, unit: &str, get: &dyn Fn(&Row) -> Option<f64>| {
        if let Some(m) = group.last(&Quantity { value: get, error: &exact }) {
            pairs.push((key, format!("{}{unit}", plus_minus(m.value, m.std_error))));
        }
    };
    add("cross-entropy".into(), " nats", &|r| r.cross_entropy);
    add("cross-entropy, exact".into(), " nats", &|r| r.cross_entropy_exact);
    add("KL divergence from the weights".into(), " nats", &|r| r.kl);
    add("KL divergence, exact".into(), " nats", &|r| r.kl_exact);
    add("log Z".into(), " nats", &|r| r.log_z);
    add("log Z, exact".into(), " nats", &|r| r.log_z_exact);
    for k in 0..group.modes().min(10) {
        add(format!("mass of mode {k}"), "", &|r| r.masses.as_ref()?.get(k).copied());
    }
    pairs
}

/// A row for every run that has begun.
fn runs(group: &Group) -> Section {
    let number = |v: Option<f64>, digits: usize| v.map_or("—".into(), |v| format!("{v:.digits$}"));
    let row = |run: &Run| {
        let last = run.rows().last();
        vec![
            run.name(),
            run.config().seed.to_string(),
            run.iterations().to_string(),
            number(last.and_then(|r| r.cross_entropy.or(r.cross_entropy_exact)), 4),
            number(last.and_then(|r| r.log_z), 4),
            number(last.and_then(|r| r.ess).filter(|_| run.is_weighted()), 3),
            number(last.and_then(|r| r.masses.as_ref()?.first().copied()), 4),
            number(run.seconds(), 1),
        ]
    };
    let headers =
        ["run", "seed", "iterations", "cross-entropy", "log Z", "ESS / N", "mass of mode 0", "seconds"];
    Section::Table {
        caption: "The runs".into(),
        headers: headers.map(String::from).to_vec(),
        rows: group.runs.iter().map(row).collect(),
    }
}
