//! What the runs of an experiment say: final figures and curves, over one run or several.

use super::experiment::{Plan, PlannedVariant};
use super::folder::run_folder;
use crate::error::CliError;
use jarz::estimate::over_runs;
use jarz::{Dataset, Measured, Mixture, Real};
use jarz_run::config::{AlgorithmKind, DataConfig, Precision};
use jarz_run::{Config, Row, RunError, Summary, read_metrics, read_summary};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// A method recovers the mass if it ends this near to the data's own.
pub const MASS_TOLERANCE: f64 = 0.02;

/// One finished run.
pub struct RunResult {
    /// Final figures.
    pub summary: Summary,
    /// Logged iterations.
    pub rows: Vec<Row>,
    /// For each mode of the data, the model's mode that ended nearest to it.
    pub modes: Vec<usize>,
    /// Fraction of the data points that are nearest to the first mode of the data.
    pub data_mass: f64,
}

/// The runs of one variant.
pub struct VariantResult {
    /// Name in the results.
    pub name: String,
    /// Name in figures.
    pub label: String,
    /// Configuration of the first run.
    pub config: Config,
    /// The runs, at least one.
    pub runs: Vec<RunResult>,
}

/// A curve over the iterations: mean over the runs, and from two runs on a band of one standard error.
pub struct Curve {
    /// Iteration and mean.
    pub points: Vec<(f64, f64)>,
    /// Iteration, low and high.
    pub band: Option<Vec<(f64, f64, f64)>>,
}

/// Reads the runs of a plan, all of them finished.
pub fn collect(out: &Path, plan: &Plan) -> Result<Vec<VariantResult>, CliError> {
    let of_variant = |variant: &PlannedVariant| {
        let runs =
            (0..plan.runs).map(|r| read_run(&run_folder(out, &variant.name, r), &variant.config_of(r, 0)));
        Ok(VariantResult {
            name: variant.name.clone(),
            label: variant.label.clone(),
            config: variant.config.clone(),
            runs: runs.collect::<Result<_, CliError>>()?,
        })
    };
    plan.variants.iter().map(of_variant).collect()
}

fn read_run(folder: &Path, config: &Config) -> Result<RunResult, CliError> {
    let missing = || RunError::NotARun { folder: folder.into(), missing: "readable summary.json" };
    let summary = read_summary(folder).ok_or_else(missing)?;
    let rows = read_metrics(&folder.join("metrics.jsonl"))?;
    let DataConfig::Mixture { dim, means, .. } = &config.data else {
        return Err(RunError::Impossible("the data of an experiment is a mixture".into()).into());
    };
    let targets: Vec<Vec<f64>> = means.iter().map(|m| padded(m, *dim)).collect();
    let modes = match_modes(&targets, summary.means.as_deref().unwrap_or_default());
    let data_mass = match config.precision {
        Precision::F32 => data_mass::<f32>(config),
        Precision::F64 => data_mass::<f64>(config),
    };
    let data_mass =
        data_mass.ok_or_else(|| RunError::Impossible("the data's mixture cannot be built".into()))?;
    Ok(RunResult { summary, rows, modes, data_mass })
}

fn padded(mean: &[f64], dim: usize) -> Vec<f64> {
    let mut mean = mean.to_vec();
    mean.resize(dim, 0.0);
    mean
}

fn squared_distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum()
}

/// For each target, the model's mode that is nearest to it; a mode serves one target, nearest pairs first.
fn match_modes(targets: &[Vec<f64>], means: &[Vec<f64>]) -> Vec<usize> {
    let mut pairs: Vec<(f64, usize, usize)> = Vec::new();
    for (t, target) in targets.iter().enumerate() {
        pairs.extend(means.iter().enumerate().map(|(k, mean)| (squared_distance(target, mean), t, k)));
    }
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut found: BTreeMap<usize, usize> = BTreeMap::new();
    for (_, t, k) in pairs {
        if !found.contains_key(&t) && !found.values().any(|used| *used == k) {
            found.insert(t, k);
        }
    }
    found.into_values().collect()
}

/// Fraction of the run's own data points that are nearer to the first of the data's modes than to the others.
fn data_mass<T: Real>(config: &Config) -> Option<f64> {
    let DataConfig::Mixture { points, dim, means, masses, sigma, seed, .. } = &config.data else {
        return None;
    };
    let means: Vec<Vec<f64>> = means.iter().map(|m| padded(m, *dim)).collect();
    let logs: Vec<f64> = masses.iter().map(|m| m.ln()).collect();
    let teacher = Mixture::new(&means, &logs, *sigma)?;
    let data = Dataset::<T>::sample(&teacher, *points, seed.unwrap_or(config.seed))?;
    let is_first = |i: &usize| {
        let point: Vec<f64> = data.row(*i).iter().map(|x| x.to_f64()).collect();
        let first = squared_distance(&means[0], &point);
        means[1..].iter().all(|other| first < squared_distance(other, &point))
    };
    Some((0..data.len()).filter(is_first).count() as f64 / data.len() as f64)
}

impl VariantResult {
    /// Whether its walkers carry weights.
    pub fn is_weighted(&self) -> bool {
        let kind = self.config.algorithm.kind;
        matches!(kind, AlgorithmKind::Jarzynski | AlgorithmKind::JarzynskiContinuous)
    }

    /// Mean over the runs of a final figure, if all of them have it.
    pub fn over(&self, f: impl Fn(&RunResult) -> Option<f64>) -> Option<Measured> {
        let values: Option<Vec<f64>> = self.runs.iter().map(f).collect();
        values.filter(|v| !v.is_empty()).map(|v| over_runs(&v))
    }

    /// Final mass of the mode at the data's first one.
    pub fn mass(&self) -> Option<Measured> {
        self.over(RunResult::mass)
    }

    /// Distance of the final mass from the data's own, averaged over the runs.
    pub fn mass_error(&self) -> Option<f64> {
        self.over(|r| Some((r.mass()? - r.data_mass).abs())).map(|m| m.value)
    }

    /// Final first coordinate of the mode at the data's mode `t`.
    pub fn mean(&self, t: usize) -> Option<Measured> {
        self.over(|r| r.summary.means.as_ref()?.get(*r.modes.get(t)?)?.first().copied())
    }

    /// Computing time of all runs.
    pub fn seconds(&self) -> f64 {
        self.runs.iter().map(|r| r.summary.seconds).sum()
    }

    /// A quantity of the logged iterations against the iteration; empty if there is none.
    pub fn curve(&self, f: impl Fn(&RunResult, &Row) -> Option<f64>) -> Curve {
        let mut values: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for run in &self.runs {
            for row in &run.rows {
                if let Some(value) = f(run, row) {
                    values.entry(row.iteration).or_default().push(value);
                }
            }
        }
        let all = |v: &Vec<f64>| v.len() == self.runs.len();
        let means: Vec<(f64, Measured)> =
            values.into_iter().filter(|(_, v)| all(v)).map(|(k, v)| (k as f64, over_runs(&v))).collect();
        let points = means.iter().map(|(k, m)| (*k, m.value)).collect();
        let band = |(k, m): &(f64, Measured)| m.std_error.map(|e| (*k, m.value - e, m.value + e));
        Curve { points, band: means.iter().map(band).collect::<Option<Vec<_>>>().filter(|b| !b.is_empty()) }
    }

    /// The entry of `summary.json`.
    fn to_json(&self) -> Value {
        let value = |m: Option<Measured>| m.map(|m| m.value);
        let error = |m: Option<Measured>| m.and_then(|m| m.std_error);
        let targets = self.runs.first().map_or(0, |r| r.modes.len());
        let resamplings = match &self.runs[..] {
            [run] => json!(run.summary.resamplings),
            _ => json!(value(self.over(|r| Some(r.summary.resamplings as f64)))),
        };
        let kl = self.over(|r| r.summary.kl_exact);
        let kl_estimated = self.over(|r| r.summary.kl);
        json!({
            "algorithm": self.name,
            "mass": value(self.mass()),
            "mass_std_error": error(self.mass()),
            "data_mass": value(self.over(|r| Some(r.data_mass))),
            "recovers_mass": self.mass_error().map(|e| e < MASS_TOLERANCE),
            "means": (0..targets).map(|t| value(self.mean(t))).collect::<Vec<_>>(),
            "kl_exact": value(kl),
            "kl_exact_std_error": error(kl),
            "kl_estimated": value(kl_estimated),
            "kl_estimated_std_error": error(kl_estimated),
            "ess": value(self.over(|r| r.summary.ess)),
            "resamplings": resamplings,
            "seconds": self.seconds(),
        })
    }
}

impl RunResult {
    fn mass(&self) -> Option<f64> {
        self.summary.masses.as_ref()?.get(*self.modes.first()?).copied()
    }
}

/// `summary.json` of an experiment.
pub fn to_json(plan: &Plan, results: &[VariantResult]) -> Value {
    json!({
        "experiment": plan.name,
        "scale": plan.scale.name(),
        "runs": plan.runs,
        "seed": plan.seed,
        "version": env!("CARGO_PKG_VERSION"),
        "results": results.iter().map(VariantResult::to_json).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_matched_whatever_their_order() {
        let targets = [vec![-10.0, 0.0], vec![6.0, 0.0]];
        assert_eq!(match_modes(&targets, &[vec![5.9, 0.1], vec![-9.8, 0.0]]), [1, 0]);
        // Both near the second target: the nearer one gets it.
        assert_eq!(match_modes(&targets, &[vec![6.0, 0.0], vec![5.0, 0.0]]), [1, 0]);
        assert_eq!(match_modes(&targets, &[]), Vec::<usize>::new());
    }

    #[test]
    fn the_data_mass_is_that_of_the_points() {
        let text = "[data]\nkind = \"mixture\"\npoints = 4000\ndim = 3\nmeans = [[-10.0], [6.0]]\nmasses = [0.25, 0.75]\n\
                    [model]\nkind = \"mixture\"\nmodes = 2\n";
        let config = Config::parse(text, "test", &[]).unwrap();
        let mass = data_mass::<f64>(&config).unwrap();
        // Four standard errors of a fraction.
        assert!((mass - 0.25).abs() < 4.0 * (0.25f64 * 0.75 / 4000.0).sqrt(), "{mass}");
        assert_eq!(data_mass::<f32>(&config), Some(mass));
    }
}
