//! Figures, page and numbers of an experiment, made from what its runs left behind.

use crate::criterion::{Outcome, Verdict, evaluate};
use crate::engine::Watch;
use crate::error::ExperimentError;
use crate::figure::{Drawn, draw};
use crate::folder::read_plan;
use crate::images::Kinds;
use crate::plan::Plan;
use crate::quantity::Quantity;
use crate::results::{VariantResult, collect};
use crate::statistics::{mean, spread};
use crate::table::Table;
use jarz_figures::{Report, Section};
use jarz_run::files::write_atomic;
use serde_json::{Value, json};
use std::path::Path;

/// What came out of an experiment.
pub struct Finished {
    /// Short name of the experiment.
    pub name: String,
    /// Its title.
    pub title: String,
    /// Final values.
    pub table: Table,
    /// The criteria.
    pub verdicts: Vec<Verdict>,
    /// What `summary.json` holds.
    pub summary: Value,
}

/// Makes figures, page and summary of the experiment in a folder once more, from the runs that are there.
/// Judgements of models on images, which take long, are kept in the runs' folders and made again only if their run has changed, or if `anew`; they
/// tell `watch`, and may be stopped by it.
pub fn rebuild(out: &Path, watch: Option<&dyn Watch>, anew: bool) -> Result<Finished, ExperimentError> {
    let plan = read_plan(out)?;
    write(out, &plan, Kinds::of(&plan)?.as_ref(), watch, anew)
}

/// Writes `figures/`, `report.html` and `summary.json`; all runs must be finished. What takes long tells `watch`, and may be stopped by it.
pub(crate) fn write(
    out: &Path,
    plan: &Plan,
    kinds: Option<&Kinds>,
    watch: Option<&dyn Watch>,
    anew: bool,
) -> Result<Finished, ExperimentError> {
    if let Some(kinds) = kinds {
        return crate::images::write(out, plan, kinds, watch, anew);
    }
    let results = collect(out, plan)?;
    let verdicts: Vec<Verdict> =
        plan.resolved.criteria.iter().map(|c| evaluate(c, &results, plan.scale)).collect();
    let figures = draw(plan, &results);
    for drawn in &figures {
        drawn.figure.save(&out.join("figures"), &drawn.name)?;
    }
    page(plan, &results, &verdicts, &figures)?.save(out, "report")?;
    let summary = summary(plan, &results, &verdicts);
    write_atomic(out.join("summary.json"), format!("{summary:#}\n").as_bytes())?;
    Ok(Finished {
        name: plan.name.clone(),
        title: plan.resolved.title.clone(),
        table: Table::new(&results, &plan.resolved.table),
        verdicts,
        summary,
    })
}

/// The criteria as a table.
pub fn verdict_table(verdicts: &[Verdict]) -> Table {
    let headers = ["what the paper says", "asked here", "measured", "agrees?"].map(String::from).to_vec();
    let row = |v: &Verdict| {
        let agrees = match &v.outcome {
            Outcome::Undecided(reason) => format!("{} at this scale: {reason}", v.outcome.word()),
            outcome => outcome.word().to_string(),
        };
        vec![v.claim.clone(), v.asked.clone(), v.measured.clone(), agrees]
    };
    Table { headers, rows: verdicts.iter().map(row).collect() }
}

/// How many criteria agree, in a sentence.
pub fn count(verdicts: &[Verdict]) -> String {
    let of = |word: &str| verdicts.iter().filter(|v| v.outcome.word() == word).count();
    let (yes, no) = (of("yes"), of("no"));
    let open = verdicts.len() - yes - no;
    format!("{} criteria: {yes} agree, {no} do not, {open} cannot be decided at this scale", verdicts.len())
}

fn page(
    plan: &Plan,
    results: &[VariantResult],
    verdicts: &[Verdict],
    figures: &[Drawn],
) -> Result<Report, ExperimentError> {
    let mut report = Report::new(plan.resolved.title.clone()).subtitle(format!(
        "Experiment {}, {} scale",
        plan.name,
        plan.scale.name()
    ));
    if !plan.resolved.paper.trim().is_empty() {
        report = report.heading("What the paper says").text(plan.resolved.paper.clone());
    }
    if !verdicts.is_empty() {
        let Table { headers, rows } = verdict_table(verdicts);
        report = report.heading("Does it agree?").text(count(verdicts) + ".").section(Section::Table {
            caption: "Criteria are stated in the experiment file. The answer is yes if all of a 95 % interval over the runs \
                      complies, no if none of it does."
                .into(),
            headers,
            rows,
        });
    }
    report = report.heading("What this run measured");
    for drawn in figures {
        report = report.figure(drawn.caption.clone(), &drawn.figure);
    }
    let table = Table::new(results, &plan.resolved.table);
    let errors = if plan.runs > 1 { ", mean ± standard error over the runs" } else { "" };
    report = report.section(Section::Table {
        caption: format!("At the last iteration{errors}; KL divergences in nats, on the data of the run"),
        headers: table.headers,
        rows: table.rows,
    });
    report = report
        .heading("How it was run")
        .section(Section::KeyValues { caption: String::new(), pairs: how(plan, results) })
        .text(
            "Every run has a folder of its own, named after variant and run, with its metrics, figures and report. \
             The experiment is in experiment.toml; running the same command in this folder again keeps finished runs.",
        );
    let first = results.first().map(|v| v.config.to_toml().map(|text| (v, text)));
    report = report.heading("Configuration");
    if let Some((v, text)) = first.transpose()? {
        report = report.section(Section::Code { caption: format!("{} (first run)", v.name), text });
    }
    let text = plan.resolved.to_toml()?;
    Ok(report.section(Section::Code { caption: "experiment.toml, with its scale filled in".into(), text }))
}

fn how(plan: &Plan, results: &[VariantResult]) -> Vec<(String, String)> {
    let seeds = match plan.runs {
        1 => plan.seed.to_string(),
        runs => format!("{} to {}", plan.seed, plan.seed + runs as u64 - 1),
    };
    let total: f64 = results.iter().map(VariantResult::seconds).sum();
    let pairs = [
        ("scale", plan.scale.name().into()),
        ("variants", results.len().to_string()),
        ("runs of each variant", plan.runs.to_string()),
        ("seeds", seeds),
        ("computing time", format!("{total:.1} s, added up over the runs")),
        ("version", format!("jarz {}", env!("CARGO_PKG_VERSION"))),
    ];
    pairs.map(|(key, value): (&str, String)| (key.to_string(), value)).to_vec()
}

/// `summary.json` of an experiment.
fn summary(plan: &Plan, results: &[VariantResult], verdicts: &[Verdict]) -> Value {
    let verdict = |v: &Verdict| {
        let reason = match &v.outcome {
            Outcome::Undecided(reason) => Some(reason),
            _ => None,
        };
        json!({ "claim": v.claim, "asked": v.asked, "measured": v.measured, "agrees": v.outcome.word(), "reason": reason })
    };
    json!({
        "experiment": plan.name,
        "scale": plan.scale.name(),
        "runs": plan.runs,
        "seed": plan.seed,
        "version": env!("CARGO_PKG_VERSION"),
        "criteria": verdicts.iter().map(verdict).collect::<Vec<_>>(),
        "results": results.iter().map(result).collect::<Vec<_>>(),
    })
}

/// Final values of a variant.
fn result(v: &VariantResult) -> Value {
    let value = |q: Quantity| v.last(q).map(|x| mean(&x));
    let error = |q: Quantity| v.last(q).filter(|x| x.len() > 1).map(|x| spread(&x) / (x.len() as f64).sqrt());
    let targets = v.runs.first().map_or(0, |r| r.modes.len());
    let choices: serde_json::Map<String, Value> = v
        .choices
        .iter()
        .map(|(axis, c)| (axis.clone(), c.value.map_or_else(|| json!(c.name), |x| json!(x))))
        .collect();
    json!({
        "variant": v.name,
        "choices": choices,
        "mass": value(Quantity::Mass),
        "mass_std_error": error(Quantity::Mass),
        "data_mass": value(Quantity::DataMass),
        "means": (0..targets).map(|t| value(Quantity::Mean(t))).collect::<Vec<_>>(),
        "kl_exact": value(Quantity::KlExact),
        "kl_exact_std_error": error(Quantity::KlExact),
        "kl_estimated": value(Quantity::Kl),
        "kl_estimated_std_error": error(Quantity::Kl),
        "ess": value(Quantity::Ess),
        "resamplings": value(Quantity::Resamplings),
        "seconds": v.seconds(),
    })
}
