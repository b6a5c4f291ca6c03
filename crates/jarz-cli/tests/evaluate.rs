//! `jarz evaluate` with the real program: a mixture whose `log Z` and masses are known, trained and judged by annealing.

mod common;

use common::{Jarz, text};
use serde_json::Value;

const MIXTURE: &str = r#"
seed = 3
[model]
kind = "mixture"
modes = 2
[data]
kind = "mixture"
points = 1000
dim = 3
means = [[-3.0], [2.0]]
masses = [0.25, 0.75]
[optimizer]
rates = { mean = 0.02, log_mass = 0.1 }
frozen = ["log_mass.0"]
[walkers]
count = 500
[run]
iterations = 300
"#;

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

/// Annealed `log Z` and masses within 4 of their standard errors of the closed forms; the 6 comparisons raise a false alarm with probability 4e-4.
#[test]
fn a_mixture_is_judged_like_its_closed_form() {
    let j = Jarz::new();
    j.write("mixture.toml", MIXTURE);
    for (run, algorithm) in [("weighted", "jarzynski"), ("pcd", "pcd")] {
        let kind = format!("algorithm.kind=\"{algorithm}\"");
        j.ok(&["train", "mixture.toml", "--quiet", "--out", run, "--set", &kind]);
        let args = ["evaluate", run, "--json", "--walkers", "2000", "--threads", "1"];
        let printed: Value = serde_json::from_str(&j.ok(&args)).unwrap();
        let e = j.json(&format!("{run}/evaluate.json"));
        assert_eq!(printed, e);
        let error = number(&e["log_z_annealed_std_error"]);
        let off = number(&e["log_z_annealed"]) - number(&e["log_z_exact"]);
        assert!(off.abs() < 4.0 * error && error < 0.3, "{algorithm}: log Z off by {off} +- {error}");
        for k in 0..2 {
            let off = number(&e["model_masses"][k]) - number(&e["masses"][k]);
            let error = number(&e["model_masses_std_error"][k]);
            assert!(off.abs() < 4.0 * error, "{algorithm}: mass {k} off by {off} +- {error}");
        }
        let summary = j.json(&format!("{run}/summary.json"));
        assert_eq!(e["log_z"], summary["log_z"], "tracked as the run said");
        assert_eq!(e["log_z"].is_number(), algorithm == "jarzynski");
        assert_eq!((&e["algorithm"], &e["points"]), (&Value::from(algorithm), &Value::from(1000)));
        assert_eq!(e["walker_masses"].as_array().unwrap().len(), 2);
        let trace = e["annealing"]["trace"].as_array().unwrap();
        assert_eq!(trace.last().unwrap()["t"], 1.0);
        assert_eq!(e["annealing"]["own_base"], false);
        let again: Value = serde_json::from_str(&j.ok(&[&args[..6], &["3"]].concat())).unwrap();
        assert_eq!(again, e, "the same on any number of threads");
    }
    let table = j.ok(&["evaluate", "pcd", "--walkers", "300", "--out", "elsewhere.json"]);
    for word in ["log Z, annealed", "log Z, exact", "mass of the walkers", "of the model", "elsewhere.json"] {
        assert!(table.contains(word), "no '{word}' in {table}");
    }
    j.fails(&["evaluate", "pcd", "--out", "elsewhere.json"], &["elsewhere.json", "--force"]);
    j.ok(&["evaluate", "pcd", "--walkers", "300", "--out", "elsewhere.json", "--force"]);
    j.fails(&["evaluate", "pcd", "--walkers", "1"], &["walkers", "2"]);
    j.fails(&["evaluate", "pcd", "--step-ess", "1.5"], &["ESS", "1.5"]);
    j.fails(&["evaluate", "pcd", "--moves", "0"], &["move"]);
    let few = j.run(&["evaluate", "pcd", "--walkers", "20"]);
    assert!(few.status.success() && text(&few.stderr).contains("--walkers"), "{}", text(&few.stderr));
}
