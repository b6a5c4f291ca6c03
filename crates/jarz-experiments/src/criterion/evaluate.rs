//! Criteria applied to results.
//!
//! A mean over runs comes with an interval that covers the truth in 95 of 100 cases. If the whole interval complies the
//! answer is yes, if none of it does it is no, and otherwise the runs do not decide.

use super::{CriterionSpec, OverRuns};
use crate::file::Scale;
use crate::plan::selects;
use crate::results::VariantResult;
use crate::statistics::{
    Interval, mean, mean_interval, range_interval, ratio_interval, spread, spread_interval,
    spread_ratio_interval,
};

/// Most variants whose numbers are listed one by one.
const MAX_LISTED: usize = 6;

/// Whether a criterion is met.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It is.
    Yes,
    /// It is not.
    No,
    /// These runs cannot tell, for this reason.
    Undecided(String),
}

impl Outcome {
    /// In a word or a few.
    pub fn word(&self) -> &'static str {
        match self {
            Outcome::Yes => "yes",
            Outcome::No => "no",
            Outcome::Undecided(_) => "cannot be decided",
        }
    }
}

/// A criterion with what came out.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// What the paper says, or what is required.
    pub claim: String,
    /// What was asked, in words.
    pub asked: String,
    /// What was measured, in words.
    pub measured: String,
    /// Whether it agrees.
    pub outcome: Outcome,
}

/// One number that must comply.
struct Subject {
    label: String,
    value: Result<Interval, String>,
}

/// Applies a criterion.
pub fn evaluate(spec: &CriterionSpec, results: &[VariantResult], scale: Scale) -> Verdict {
    let subjects = subjects(spec, results);
    let outcomes = subjects.iter().map(|s| judge(spec, s));
    let outcome = match spec.undecided.get(&scale) {
        Some(reason) => Outcome::Undecided(reason.clone()),
        None => combine(outcomes.collect()),
    };
    Verdict { claim: spec.claim.clone(), asked: spec.words(), measured: describe(spec, &subjects), outcome }
}

/// All must comply.
fn combine(outcomes: Vec<Outcome>) -> Outcome {
    let undecided = |o: &Outcome| matches!(o, Outcome::Undecided(_));
    match outcomes.iter().find(|o| **o == Outcome::No).or(outcomes.iter().find(|o| undecided(o))) {
        Some(outcome) => outcome.clone(),
        None if outcomes.is_empty() => Outcome::Undecided("there is nothing to compare".into()),
        None => Outcome::Yes,
    }
}

fn judge(spec: &CriterionSpec, subject: &Subject) -> Outcome {
    let interval = match &subject.value {
        Ok(interval) => interval,
        Err(reason) => return Outcome::Undecided(reason.clone()),
    };
    if let Some(k) = spec.std_errors {
        let within = interval.std_error.is_some_and(|e| interval.value.abs() <= k * e);
        return if within { Outcome::Yes } else { Outcome::No };
    }
    let (above, below) = (spec.above.unwrap_or(f64::NEG_INFINITY), spec.below.unwrap_or(f64::INFINITY));
    if interval.low > above && interval.high < below {
        return Outcome::Yes;
    }
    if spec.runs == OverRuns::Each || interval.high <= above || interval.low >= below {
        return Outcome::No;
    }
    Outcome::Undecided(format!(
        "{}the runs scatter too much: the truth may lie anywhere from {} to {}; more runs or walkers decide",
        if subject.label.is_empty() { String::new() } else { format!("{}: ", subject.label) },
        short(interval.low),
        short(interval.high)
    ))
}

fn subjects(spec: &CriterionSpec, results: &[VariantResult]) -> Vec<Subject> {
    let chosen: Vec<&VariantResult> = results.iter().filter(|v| selects(&spec.variants, &v.name)).collect();
    let values = |v: &VariantResult| values(spec, v, spec.quantity);
    if spec.across {
        let all: Result<Vec<Vec<f64>>, String> = chosen.iter().map(|v| values(v)).collect();
        let value = all.and_then(|all| {
            let runs = all.first().map_or(0, Vec::len);
            let means: Option<Vec<Interval>> = all.iter().map(|v| mean_interval(v)).collect();
            means.and_then(|m| range_interval(&m, runs)).ok_or_else(one_run)
        });
        return vec![Subject { label: String::new(), value }];
    }
    if spec.versus.is_empty() {
        return chosen
            .iter()
            .map(|v| Subject { label: v.label.clone(), value: values(v).and_then(|x| one(spec, v, &x)) })
            .collect();
    }
    let others: Vec<&VariantResult> = results.iter().filter(|v| selects(&spec.versus, &v.name)).collect();
    let pairs = chosen.iter().flat_map(|v| others.iter().map(move |w| (v, w)));
    let pairs = pairs.filter(|(v, w)| v.name != w.name);
    pairs
        .map(|(v, w)| {
            let value = values(v).and_then(|a| two(spec, &a, &values(w)?));
            Subject { label: format!("{} and {}", v.label, w.label), value }
        })
        .collect()
}

/// The quantity of every run of a variant.
fn values(
    spec: &CriterionSpec,
    v: &VariantResult,
    quantity: crate::quantity::Quantity,
) -> Result<Vec<f64>, String> {
    let all: Option<Vec<f64>> = v.runs.iter().map(|r| spec.over.reduce(r, quantity, spec.window())).collect();
    let finite = all.filter(|all| all.iter().all(|v| v.is_finite()));
    finite.ok_or_else(|| format!("{} has no {}", v.label, String::from(quantity)))
}

fn one_run() -> String {
    "too few runs to know how they scatter; use --runs".into()
}

/// The number of one variant.
fn one(spec: &CriterionSpec, v: &VariantResult, x: &[f64]) -> Result<Interval, String> {
    match (spec.runs, spec.relative_to, spec.std_errors) {
        (OverRuns::Each, ..) => Ok(hull(x)),
        (OverRuns::Spread, ..) => spread_interval(x).ok_or_else(one_run),
        (OverRuns::Curve, ..) => curve(spec, v).ok_or_else(one_run),
        (OverRuns::Mean, Some(reference), _) => {
            ratio_interval(x, &values(spec, v, reference)?).ok_or_else(one_run)
        }
        (OverRuns::Mean, None, None) => mean_interval(x).ok_or_else(one_run),
        (OverRuns::Mean, None, Some(_)) => {
            let runs = x.len() as f64;
            let scatter = (x.len() > 1).then(|| spread(x) / runs.sqrt());
            let stated = match spec.error {
                Some(error) => {
                    let errors = values(spec, v, error)?;
                    Some((errors.iter().map(|e| e * e).sum::<f64>()).sqrt() / runs)
                }
                None => None,
            };
            let error = scatter
                .into_iter()
                .chain(stated)
                .fold(None, |a: Option<f64>, e| Some(a.map_or(e, |a| a.max(e))));
            let error = error.ok_or_else(one_run)?;
            Ok(Interval { std_error: Some(error), ..Interval::exact(mean(x)) })
        }
    }
}

/// The number of a pair of variants.
fn two(spec: &CriterionSpec, a: &[f64], b: &[f64]) -> Result<Interval, String> {
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    match spec.runs {
        OverRuns::Mean | OverRuns::Curve => mean_interval(&differences).ok_or_else(one_run),
        OverRuns::Each => Ok(hull(&differences)),
        OverRuns::Spread => spread_ratio_interval(a, b).ok_or_else(one_run),
    }
}

/// The largest deviation from zero of the mean over the runs.
fn curve(spec: &CriterionSpec, v: &VariantResult) -> Option<Interval> {
    let mut worst: Option<Interval> = None;
    for i in spec.window().rows(v.runs.first()?) {
        let values: Option<Vec<f64>> = v.runs.iter().map(|r| spec.quantity.at(r, i)).collect();
        let Some(Interval { value, std_error, low, high }) = values.and_then(|x| mean_interval(&x)) else {
            continue;
        };
        let row = Interval {
            value: value.abs(),
            std_error,
            // Zero is the nearest of an interval on both sides of it.
            low: if low < 0.0 && high > 0.0 { 0.0 } else { low.abs().min(high.abs()) },
            high: low.abs().max(high.abs()),
        };
        worst = Some(worst.map_or(row, |w| Interval {
            low: w.low.max(row.low),
            high: w.high.max(row.high),
            ..if row.value > w.value { row } else { w }
        }));
    }
    worst
}

/// From the smallest to the largest of all runs: every one of them must comply.
fn hull(x: &[f64]) -> Interval {
    let low = x.iter().copied().fold(f64::INFINITY, f64::min);
    let high = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Interval { value: mean(x), std_error: None, low, high }
}

fn describe(spec: &CriterionSpec, subjects: &[Subject]) -> String {
    let number = |s: &Subject| match (&s.value, spec.runs) {
        (Err(reason), _) => reason.clone(),
        (Ok(i), OverRuns::Each) if i.low == i.high => short(i.value),
        (Ok(i), OverRuns::Each) => format!("{} to {}", short(i.low), short(i.high)),
        (Ok(Interval { value, std_error: Some(e), .. }), _) => plus_minus(*value, *e),
        (Ok(i), _) => short(i.value),
    };
    if let [only] = subjects {
        return number(only);
    }
    if subjects.len() <= MAX_LISTED {
        return subjects.iter().map(|s| format!("{}: {}", s.label, number(s))).collect::<Vec<_>>().join("; ");
    }
    let by_value = |a: &&Subject, b: &&Subject| {
        let value = |s: &Subject| s.value.as_ref().map_or(f64::NAN, |i| i.value);
        value(a).total_cmp(&value(b))
    };
    let ends = [subjects.iter().min_by(by_value), subjects.iter().max_by(by_value)];
    let ends: Vec<String> =
        ends.into_iter().flatten().map(|s| format!("{} ({})", number(s), s.label)).collect();
    format!("from {} over {} variants", ends.join(" to "), subjects.len())
}

/// A value with its standard error: two digits of the error, and as many of the value.
fn plus_minus(value: f64, error: f64) -> String {
    if !(error > 0.0 && error.is_finite()) {
        return short(value);
    }
    let digits = (1 - error.log10().floor() as i32).clamp(0, 10) as usize;
    format!("{value:.digits$} ± {error:.digits$}").replace('-', "−")
}

/// Four digits that count.
pub(crate) fn short(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let digits = (3 - value.abs().log10().floor() as i32).clamp(0, 10) as usize;
    let text = format!("{value:.digits$}").replace('-', "−");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}
