//! The page of one run.

use super::{Page, cautions, version, with_configuration, with_notes};
use crate::text::{plus_minus, some_of};
use crate::{Run, training};
use jarz_figures::{Provenance, Report, Section, duration};
use jarz_run::Row;

pub(super) fn page(run: &Run) -> Page {
    let figure = training::figure(run.config(), run.rows());
    let mut report = Report::new(format!("Run {}", run.name())).subtitle(subtitle(run));
    report = with_notes(report, &cautions::all(run));
    if let Some(row) = run.rows().last() {
        let pairs = results(run, row);
        let caption = match run.is_finished() {
            true => String::new(),
            false => format!("At iteration {}, the last that was logged.", row.iteration),
        };
        report = report.heading("Results").section(Section::KeyValues { caption, pairs });
    }
    report = report.heading("Training").figure(
        "Values at the logged iterations. Shaded: two standard errors, estimated within the run from the \
         walkers' ancestry. A KL divergence is relative to the truth on the same finite data, so it may end \
         slightly below zero.",
        &figure,
    );
    report = report.heading("How it was run").provenance(&provenance(run));
    report = with_configuration(report, "run.toml, with all defaults filled in", run.config());
    Page { folder: run.folder().into(), report, figure, stem: "training" }
}

fn subtitle(run: &Run) -> String {
    let all = run.config().run.iterations;
    let state = match run.summary() {
        Some(s) if run.is_finished() => format!("{} iterations, {}", s.iterations, s.stop_reason),
        Some(s) => format!("{} of {all} iterations, {}", s.iterations, s.stop_reason),
        None => format!("{} of {all} iterations so far", run.iterations()),
    };
    let time = run.seconds().map_or(String::new(), |s| format!(", {}", duration(s)));
    format!("{}, {state}{time}, seed {}", algorithm(run), run.config().seed)
}

/// Its name in results.
fn algorithm(run: &Run) -> String {
    let kind = run.config().algorithm.kind;
    match run.summary() {
        Some(s) => s.algorithm.clone(),
        // The name in the configuration is the same.
        None => {
            toml::Value::try_from(kind).ok().and_then(|v| v.as_str().map(String::from)).unwrap_or_default()
        }
    }
}

/// The last figures, with their errors and units.
fn results(run: &Run, row: &Row) -> Vec<(String, String)> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    let mut add = |key: &str, value: String| pairs.push((key.to_string(), value));
    for (key, value, error) in [
        ("cross-entropy", row.cross_entropy, row.cross_entropy_std_error),
        ("cross-entropy, exact", row.cross_entropy_exact, None),
        ("KL divergence from the weights", row.kl, row.log_z_std_error),
        ("KL divergence, exact", row.kl_exact, None),
        ("log Z", row.log_z, row.log_z_std_error),
        ("log Z, by the walkers that drive the parameters (biased)", row.driving_log_z, None),
        ("log Z, exact", row.log_z_exact, None),
    ] {
        if let Some(value) = value {
            add(key, format!("{} nats", plus_minus(value, error)));
        }
    }
    if let Some(masses) = &row.masses {
        add("masses", some_of(masses.iter().map(|m| format!("{m:.4}"))));
    }
    if let Some(masses) = &row.walker_masses {
        let error = |k: usize| row.walker_masses_std_error.as_ref()?.get(k).copied().flatten();
        let texts = masses.iter().enumerate().map(|(k, m)| plus_minus(*m, error(k)));
        add("masses among the walkers", some_of(texts));
    }
    if let Some(means) = run.summary().and_then(|s| s.means.as_ref()).or(row.means.as_ref()) {
        let first = |m: &Vec<f64>| m.first().map_or(String::new(), |x| format!("{x:.4}"));
        add("means, first coordinate", some_of(means.iter().map(first)));
    }
    if run.is_weighted() {
        if let Some(ess) = row.ess {
            add("effective sample size", format!("{ess:.3} of the walkers"));
        }
        add("resamplings", row.resamplings.to_string());
        add("distinct ancestors", row.distinct_ancestors.to_string());
    }
    if let Some(acceptance) = row.acceptance {
        add("acceptance", format!("{acceptance:.3}"));
    }
    pairs
}

fn provenance(run: &Run) -> Provenance {
    let mut more = vec![("algorithm".to_string(), algorithm(run))];
    if let Some(rule) = run.summary().and_then(|s| s.self_interaction.clone()) {
        more.push(("self-interaction".into(), rule));
    }
    more.push(("walkers".into(), run.config().walkers.count.to_string()));
    more.push(("iterations".into(), format!("{} of {}", run.iterations(), run.config().run.iterations)));
    let made = run.summary().map_or_else(version, |s| format!("jarz {}", s.version));
    Provenance { version: made, seeds: vec![run.config().seed], seconds: run.seconds(), more }
}
