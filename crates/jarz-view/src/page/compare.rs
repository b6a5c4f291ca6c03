//! Several runs, or groups of runs, side by side.

use super::differences::differences;
use super::{cautions, version, with_configuration, with_notes};
use crate::Group;
use crate::quantity::{Quantity, exact};
use crate::text::plus_minus;
use jarz::Measured;
use jarz_figures::{Figure, Panel, Provenance, Report, Section, Series};
use jarz_run::Row;

/// Most modes whose masses are compared.
const MAX_MODES: usize = 4;

type Get = fn(&Row) -> Option<f64>;

/// A page that compares groups of runs: curves over each other, final figures, and how their configurations differ.
pub fn compare(groups: &[Group]) -> Report {
    let names: Vec<&str> = groups.iter().map(|g| g.name.as_str()).collect();
    let title = match &names[..] {
        [one] => format!("Runs of {one}"),
        _ => format!("{} compared", names.join(", ")),
    };
    let title = if title.len() > 80 { format!("{} groups of runs compared", names.len()) } else { title };
    let mut report = with_notes(Report::new(title), &notes(groups));
    report = report.heading("Final figures").section(finals(groups)).heading("Training").figure(
        "Curves over each other; exact values, where they are known, in short dashes. Shaded: for a single run two standard \
         errors estimated from the walkers' ancestry, for repeated runs one standard error of their mean.",
        &figure(groups),
    );
    report = report.heading("How the configurations differ");
    let configs: Vec<_> = groups.iter().map(|g| &g.config).collect();
    let differing = differences(&configs);
    report = match differing.is_empty() {
        true => report.text("They are the same in all keys."),
        false => report.section(Section::Table {
            caption: "Keys of run.toml, all defaults filled in; keys that are not listed are the same".into(),
            headers: ["key"].into_iter().chain(names.iter().copied()).map(String::from).collect(),
            rows: differing.into_iter().map(|(key, values)| [vec![key], values].concat()).collect(),
        }),
    };
    report = report.heading("How it was made");
    let mut more: Vec<(String, String)> = Vec::new();
    for g in groups {
        more.push((format!("seeds of {}", g.name), seeds(g)));
    }
    let seconds = groups.iter().map(Group::seconds).sum();
    report =
        report.provenance(&Provenance { version: version(), seeds: vec![], seconds: Some(seconds), more });
    groups
        .iter()
        .fold(report, |report, g| with_configuration(report, &format!("run.toml of {}", g.name), &g.config))
}

fn seeds(group: &Group) -> String {
    let seeds = group.runs.iter().map(|r| r.config().seed).collect();
    let pairs = Provenance { seeds, ..Default::default() }.pairs();
    pairs.into_iter().next().map_or("—".into(), |p| p.1)
}

fn notes(groups: &[Group]) -> Vec<String> {
    let mut notes = Vec::new();
    for g in groups {
        let open = g.runs.iter().filter(|r| !r.is_finished()).count();
        match (open, g.runs.len()) {
            (0, _) => {}
            (1, 1) => notes.push(format!("{} is not finished.", g.name)),
            (open, all) => notes.push(format!("{}: {open} of {all} runs are not finished.", g.name)),
        }
        for run in &g.runs {
            let name = if g.runs.len() > 1 { format!("{}/{}", g.name, run.name()) } else { g.name.clone() };
            let own = run.damages().into_iter().chain(cautions::numeric(run));
            notes.extend(own.map(|note| format!("{name}: {note}")));
        }
    }
    notes
}

/// Adds a curve of each group, and its exact twin where there is one.
fn overlay(panel: Panel, groups: &[Group], estimate: &Quantity<'_>, known: Option<Get>) -> Panel {
    let mut panel = panel.x("iterations");
    let mut twins: Vec<Series> = Vec::new();
    for (i, g) in groups.iter().enumerate() {
        let estimated = g.series(&g.name, estimate);
        let exact = known.and_then(|get| {
            let label = if estimated.is_some() { format!("{}, exact", g.name) } else { g.name.clone() };
            g.series(&label, &Quantity { value: &get, error: &exact })
        });
        match (estimated, exact) {
            (Some(estimated), exact) => {
                panel = panel.series(estimated.colour(i));
                twins.extend(exact.map(|s| s.companion_of(i)));
            }
            (None, Some(exact)) => panel = panel.series(exact.colour(i)),
            (None, None) => {}
        }
    }
    twins.into_iter().fold(panel, Panel::series)
}

fn figure(groups: &[Group]) -> Figure {
    let nats = |title: &str| Panel::new(title).y("nats");
    let cross_entropy = Quantity { value: &|r| r.cross_entropy, error: &|r| r.cross_entropy_std_error };
    let log_z = Quantity { value: &|r| r.log_z, error: &|r| r.log_z_std_error };
    let ess = Quantity { value: &weighted_ess, error: &exact };
    let mut panels = vec![
        overlay(nats("Cross-entropy"), groups, &cross_entropy, Some(|r| r.cross_entropy_exact)),
        overlay(nats("log Z"), groups, &log_z, Some(|r| r.log_z_exact)),
        overlay(Panel::new("Effective sample size").y("ESS / N").y_range(0.0, 1.02), groups, &ess, None),
    ];
    for k in 0..modes(groups) {
        let mass = Quantity { value: &move |r: &Row| r.masses.as_ref()?.get(k).copied(), error: &exact };
        let panel = Panel::new(format!("Mass of mode {k}")).y("mass").y_range(-0.02, 1.02);
        panels.push(overlay(panel, groups, &mass, None));
    }
    panels.retain(|p| !p.series.is_empty());
    Figure { panels, columns: 3, ..Figure::new() }
}

/// A row for each quantity that any group has.
fn finals(groups: &[Group]) -> Section {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut plain = |name: &str, get: &dyn Fn(&Group) -> String| {
        rows.push([name.to_string()].into_iter().chain(groups.iter().map(get)).collect());
    };
    plain("runs", &|g| g.counted().len().to_string());
    plain("iterations", &|g| g.counted().iter().map(|r| r.iterations()).min().unwrap_or(0).to_string());
    let mut add = |name: &str, value: &dyn Fn(&Row) -> Option<f64>, error: &dyn Fn(&Row) -> Option<f64>| {
        let found: Vec<Option<Measured>> =
            groups.iter().map(|g| g.last(&Quantity { value, error })).collect();
        if found.iter().any(Option::is_some) {
            let text = |m: &Option<Measured>| m.map_or("—".into(), |m| plus_minus(m.value, m.std_error));
            rows.push([name.to_string()].into_iter().chain(found.iter().map(text)).collect());
        }
    };
    add("cross-entropy", &|r| r.cross_entropy, &|r| r.cross_entropy_std_error);
    add("cross-entropy, exact", &|r| r.cross_entropy_exact, &exact);
    add("log Z", &|r| r.log_z, &|r| r.log_z_std_error);
    add("log Z, exact", &|r| r.log_z_exact, &exact);
    add("KL divergence from the weights", &|r| r.kl, &|r| r.log_z_std_error);
    add("KL divergence, exact", &|r| r.kl_exact, &exact);
    add("ESS / N", &weighted_ess, &exact);
    for k in 0..modes(groups) {
        add(&format!("mass of mode {k}"), &|r| r.masses.as_ref()?.get(k).copied(), &exact);
    }
    add("acceptance", &|r| r.acceptance, &exact);
    let time = groups.iter().map(|g| format!("{:.1}", g.seconds()));
    rows.push(["computing time, s".to_string()].into_iter().chain(time).collect());
    Section::Table {
        caption: "At the last logged iteration, in nats; ± one standard error, of a single run from its ancestry, of \
                  repeated runs from their scatter"
            .into(),
        headers: [String::new()].into_iter().chain(groups.iter().map(|g| g.name.clone())).collect(),
        rows,
    }
}

fn modes(groups: &[Group]) -> usize {
    groups.iter().map(Group::modes).max().unwrap_or(0).min(MAX_MODES)
}

/// Unweighted walkers have no ESS worth the name.
fn weighted_ess(row: &Row) -> Option<f64> {
    row.ess.filter(|_| row.log_z.is_some())
}
