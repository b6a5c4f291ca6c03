//! Criteria on made-up runs.

use super::evaluate::*;
use super::*;
use crate::quantity::Quantity;
use crate::reduce::Over;
use crate::results::RunResult;
use crate::results::VariantResult;
use jarz_run::{Config, Row, Summary};
use serde_json::json;
use std::collections::BTreeMap;

/// A variant whose runs have the given errors of log Z, row by row.
fn variant(name: &str, runs: &[&[f64]]) -> VariantResult {
    let text = "[data]\nkind = \"mixture\"\npoints = 10\ndim = 1\nmeans = [[-5.0], [5.0]]\nmasses = [0.5, 0.5]\n\
                [model]\nkind = \"mixture\"\nmodes = 2\n";
    let config = Config::parse(text, "test", &[]).unwrap();
    let row = |(k, error): (usize, &f64)| -> Row {
        serde_json::from_value(json!({
            "iteration": k, "seconds": 0.0, "log_z": error, "log_z_exact": 0.0, "log_z_std_error": 0.5,
            "step_size": 0.1, "step_scale": 1.0, "resamplings": 0, "distinct_ancestors": 1,
        }))
        .unwrap()
    };
    let summary: Summary = serde_json::from_value(json!({
        "version": "", "algorithm": "jarzynski", "seed": 1, "iterations": 1, "stop_reason": "finished",
        "resamplings": 0, "distinct_ancestors": 1, "seconds": 0.0,
    }))
    .unwrap();
    let run = |errors: &&[f64]| {
        RunResult::new(config.clone(), summary.clone(), errors.iter().enumerate().map(row).collect()).unwrap()
    };
    VariantResult {
        name: name.into(),
        label: name.to_uppercase(),
        choices: BTreeMap::new(),
        config: config.clone(),
        runs: runs.iter().map(run).collect(),
    }
}

fn spec(keys: &str) -> CriterionSpec {
    let spec: CriterionSpec =
        toml::from_str(&format!("claim = \"c\"\nquantity = \"log_z_error\"\n{keys}")).unwrap();
    spec.check().unwrap();
    spec
}

fn outcome(keys: &str, results: &[VariantResult]) -> &'static str {
    evaluate(&spec(keys), results, Scale::Quick).outcome.word()
}

const OPEN: &str = "cannot be decided";

#[test]
fn a_mean_is_judged_by_its_whole_interval() {
    // Mean 2, standard error 1 / sqrt(3), Student's 4.303: from -0.48 to 4.48.
    let v = [variant("a", &[&[1.0], &[2.0], &[3.0]])];
    assert_eq!(outcome("below = 5.0", &v), "yes");
    assert_eq!(outcome("above = 5.0", &v), "no");
    assert_eq!(outcome("below = 4.0", &v), OPEN);
    assert_eq!(outcome("above = -1.0\nbelow = 5.0", &v), "yes");
    assert_eq!(outcome("below = -1.0", &v), "no");
    assert_eq!(outcome("runs = \"each\"\nbelow = 3.5", &v), "yes");
    assert_eq!(outcome("runs = \"each\"\nbelow = 2.5", &v), "no");
    // Standard deviation 1; its logarithm is known to 1 / 2: from 0.38 to 2.7.
    assert_eq!(outcome("runs = \"spread\"\nbelow = 3.0", &v), "yes");
    assert_eq!(outcome("runs = \"spread\"\nbelow = 2.0", &v), OPEN);
}

#[test]
fn one_run_does_not_decide_about_means() {
    let v = [variant("a", &[&[1.0]])];
    let verdict = evaluate(&spec("below = 5.0"), &v, Scale::Quick);
    assert!(matches!(&verdict.outcome, Outcome::Undecided(reason) if reason.contains("--runs")));
    assert_eq!(outcome("runs = \"each\"\nbelow = 5.0", &v), "yes");
}

#[test]
fn standard_errors_are_the_larger_of_scatter_and_statement() {
    let v = [variant("a", &[&[0.9], &[1.0], &[1.1]])];
    // Scatter: 0.058 for a mean of 1; stated: 0.5 / sqrt(3) = 0.29.
    assert_eq!(outcome("std_errors = 3.0", &v), "no");
    assert_eq!(outcome("std_errors = 3.0\nerror = \"log_z_std_error\"", &v), "no");
    assert_eq!(outcome("std_errors = 4.0\nerror = \"log_z_std_error\"", &v), "yes");
}

#[test]
fn variants_are_compared_run_by_run() {
    // Large common scatter, small differences.
    let v = [variant("a", &[&[0.0], &[10.0], &[20.0]]), variant("b", &[&[1.0], &[11.1], &[20.9]])];
    assert_eq!(outcome("variants = [\"a\"]\nversus = [\"b\"]\nbelow = 0.0", &v), "yes");
    assert_eq!(outcome("variants = [\"b\"]\nversus = [\"a\"]\nbelow = 0.0", &v), "no");
    assert_eq!(outcome("across = true\nbelow = 1.5", &v), OPEN);
    assert_eq!(outcome("variants = [\"b\"]\nrelative_to = \"log_z_std_error\"\nabove = 0.0", &v), OPEN);
    assert_eq!(outcome("variants = [\"a\"]\nversus = [\"b\"]\nruns = \"spread\"\nbelow = 9.0", &v), "yes");
}

#[test]
fn the_mean_curve_may_be_nearer_to_zero_than_the_curves() {
    let v = [variant("a", &[&[0.0, 1.0], &[0.0, -1.0], &[0.0, 0.1], &[0.0, -0.1]])];
    assert_eq!(Over::Largest.of(&[0.0, -1.0]), Some(1.0));
    // Mean 0 and standard error 0.41 at the second row.
    assert_eq!(outcome("over = \"largest\"\nruns = \"curve\"\nbelow = 1.4", &v), "yes");
    assert_eq!(outcome("over = \"largest\"\nruns = \"curve\"\nbelow = 1.2", &v), OPEN);
    assert_eq!(outcome("over = \"largest\"\nruns = \"each\"\nbelow = 0.5", &v), "no");
}

#[test]
fn scales_can_decline_and_missing_quantities_do_not_decide() {
    let v = [variant("a", &[&[1.0], &[1.0]])];
    assert_eq!(outcome("below = 5.0\nundecided.quick = \"too small\"", &v), OPEN);
    assert_eq!(outcome("below = 5.0\nundecided.paper = \"too large\"", &v), "yes");
    let missing = CriterionSpec { quantity: Quantity::Mass, ..spec("below = 5.0") };
    assert_eq!(evaluate(&missing, &v, Scale::Quick).outcome.word(), OPEN);
}

#[test]
fn keys_that_do_not_go_together_are_refused() {
    for (keys, word) in [
        ("", "below"),
        ("below = 1.0\nabove = 2.0", "nothing"),
        ("below = 1.0\nstd_errors = 3.0", "std_errors"),
        ("below = 1.0\nacross = true\nversus = [\"b\"]", "only one"),
        ("below = 1.0\nruns = \"curve\"", "largest"),
        ("below = 1.0\nafter = 1.5", "after"),
        ("below = 1.0\nerror = \"ess\"", "error"),
        ("std_errors = 3.0\nruns = \"each\"", "mean"),
    ] {
        let spec: CriterionSpec =
            toml::from_str(&format!("claim = \"c\"\nquantity = \"ess\"\n{keys}")).unwrap();
        let complaint = spec.check().unwrap_err();
        assert!(complaint.contains(word), "{keys}: {complaint}");
    }
}
