//! What the runs of an experiment say.

use crate::error::ExperimentError;
use crate::folder::run_folder;
use crate::plan::{Choice, Plan, PlannedVariant};
use crate::quantity::Quantity;
use crate::theory::mode_collapse::{LARGEST_Z, Problem, SMALLEST_SEPARATION};
use crate::theory::self_interaction::{Drift, drift};
use jarz::{Dataset, Mixture, Real};
use jarz_run::config::{AlgorithmKind, DataConfig, Precision};
use jarz_run::{Config, Row, RunError, Summary, read_metrics, read_summary};
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::Path;

/// One finished run.
pub struct RunResult {
    /// Its configuration.
    pub config: Config,
    /// Final figures.
    pub summary: Summary,
    /// Logged iterations.
    pub rows: Vec<Row>,
    /// For each mode of the data, the model's mode that ended nearest to it.
    pub modes: Vec<usize>,
    /// Fraction of the data points that are nearest to the first mode of the data.
    pub data_mass: f64,
    prediction: OnceCell<Option<Prediction>>,
    drifts: OnceCell<Option<Vec<Drift>>>,
}

/// What the theory of mode collapse predicts for a run, row by row.
pub struct Prediction {
    /// Solution of the differential equation.
    pub z: Vec<f64>,
    /// Distance of the run from it over the width of the band; none where the theory does not hold.
    pub band_use: Vec<Option<f64>>,
    /// Where the equation comes to rest.
    pub fixed_point: Option<f64>,
    /// Standard error of `z` there, at the end of the run.
    pub fixed_point_error: Option<f64>,
}

/// The runs of one variant.
pub struct VariantResult {
    /// Name in the results.
    pub name: String,
    /// Name in figures.
    pub label: String,
    /// What was chosen on each axis of its grid.
    pub choices: BTreeMap<String, Choice>,
    /// Configuration of the first run.
    pub config: Config,
    /// The runs, at least one.
    pub runs: Vec<RunResult>,
}

/// Reads the runs of a plan, all of them finished.
pub fn collect(out: &Path, plan: &Plan) -> Result<Vec<VariantResult>, ExperimentError> {
    let of_variant = |variant: &PlannedVariant| {
        let runs =
            (0..plan.runs).map(|r| read_run(&run_folder(out, &variant.name, r), variant.config_of(r, 0)));
        Ok(VariantResult {
            name: variant.name.clone(),
            label: variant.label.clone(),
            choices: variant.choices.clone(),
            config: variant.config.clone(),
            runs: runs.collect::<Result<_, ExperimentError>>()?,
        })
    };
    plan.variants.iter().map(of_variant).collect()
}

fn read_run(folder: &Path, config: Config) -> Result<RunResult, ExperimentError> {
    let missing = || RunError::NotARun { folder: folder.into(), missing: "readable summary.json" };
    let summary = read_summary(folder).ok_or_else(missing)?;
    let rows = read_metrics(&folder.join("metrics.jsonl"))?;
    RunResult::new(config, summary, rows)
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

impl RunResult {
    /// From what a run left behind; the data is drawn again to count its modes.
    pub fn new(config: Config, summary: Summary, rows: Vec<Row>) -> Result<Self, ExperimentError> {
        let DataConfig::Mixture { dim, means, .. } = &config.data else {
            return Err(RunError::Impossible("the data of an experiment is a mixture".into()).into());
        };
        let targets: Vec<Vec<f64>> = means.iter().map(|m| padded(m, *dim)).collect();
        let modes = match_modes(&targets, summary.means.as_deref().unwrap_or_default());
        let data_mass = match config.precision {
            Precision::F32 => data_mass::<f32>(&config),
            Precision::F64 => data_mass::<f64>(&config),
        };
        let data_mass =
            data_mass.ok_or_else(|| RunError::Impossible("the data's mixture cannot be built".into()))?;
        let (prediction, drifts) = (OnceCell::new(), OnceCell::new());
        Ok(RunResult { config, summary, rows, modes, data_mass, prediction, drifts })
    }

    /// Whether the walkers carry weights.
    pub fn is_weighted(&self) -> bool {
        let kind = self.config.algorithm.kind;
        matches!(kind, AlgorithmKind::Jarzynski | AlgorithmKind::JarzynskiContinuous)
    }

    /// Dimension of the data.
    pub fn dim(&self) -> Option<usize> {
        match &self.config.data {
            DataConfig::Mixture { dim, .. } => Some(*dim),
            DataConfig::File { .. } | DataConfig::Images(_) => None,
        }
    }

    /// Mass of the mode at the data's first one.
    pub(crate) fn mass(&self, i: usize) -> Option<f64> {
        self.rows[i].masses.as_ref()?.get(*self.modes.first()?).copied()
    }

    /// First coordinate of the mode at the data's mode `t`. Rows do not carry long means; the summary does.
    pub(crate) fn mean(&self, i: usize, t: usize) -> Option<f64> {
        let last = i + 1 == self.rows.len();
        let means = self.rows[i].means.as_ref().or(self.summary.means.as_ref().filter(|_| last))?;
        means.get(*self.modes.get(t)?)?.first().copied()
    }

    pub(crate) fn mean_distance(&self, i: usize) -> Option<f64> {
        let DataConfig::Mixture { means, .. } = &self.config.data else { return None };
        let error = |(t, target): (usize, &Vec<f64>)| {
            Some((self.mean(i, t)? - target.first().copied().unwrap_or(0.0)).abs())
        };
        means.iter().enumerate().map(error).try_fold(0.0, |worst: f64, e| Some(worst.max(e?)))
    }

    /// Log of the ratio of the first two modes' masses. The smaller mass keeps its digits, so this is good far into a collapse.
    pub(crate) fn z(&self, i: usize) -> Option<f64> {
        let masses = self.rows[i].masses.as_ref()?;
        let log = |t: usize| Some(masses.get(*self.modes.get(t)?)?.ln());
        Some(log(0)? - log(1)?).filter(|z| z.is_finite())
    }

    /// The theory of mode collapse for this run, if it applies.
    pub fn prediction(&self) -> Option<&Prediction> {
        self.prediction.get_or_init(|| self.predict()).as_ref()
    }

    fn predict(&self) -> Option<Prediction> {
        let DataConfig::Mixture { dim: 1, means, .. } = &self.config.data else { return None };
        let [a, b] = &means[..] else { return None };
        let separation = (b.first()? - a.first()?).abs();
        let rates = &self.config.optimizer.rates;
        let rate = |group: &str| rates.get(group).or(rates.get("all")).copied().unwrap_or(0.0);
        if separation < SMALLEST_SEPARATION || rate("mean") != 0.0 || self.rows.is_empty() {
            return None;
        }
        let h = self.config.kernel.step_size;
        let problem = Problem {
            separation,
            walkers: self.config.walkers.count as f64,
            q_data: 1.0 - self.data_mass,
            q_walkers: *self.rows[0].walker_masses.as_ref()?.get(*self.modes.get(1)?)?,
            z0: self.z(0)?,
            h,
            speed: rate("log_mass") / h,
            weighted: self.is_weighted(),
        };
        let times: Vec<f64> = self.rows.iter().map(|r| r.iteration as f64 * h).collect();
        let z = problem.solve(&times);
        // Where the theory ends, so does the integration of the crossings.
        let holds = z.iter().position(|z| z.abs() > LARGEST_Z).unwrap_or(z.len());
        let band = problem.band(&times[..holds], &z[..holds]);
        let share = |i: usize| Some((self.z(i)? - z[i]).abs() / band.get(i).filter(|b| **b > 0.0)?);
        Some(Prediction {
            band_use: (0..z.len()).map(share).collect(),
            fixed_point: problem.fixed_point(),
            fixed_point_error: problem.fixed_point_error(*times.last()?),
            z,
        })
    }

    /// Predicted error of the estimated `log Z` up to row `i`, if the theory of self-interaction applies.
    pub(crate) fn drift(&self, i: usize) -> Option<Drift> {
        let all = self.drifts.get_or_init(|| {
            let rate = drift(&self.config)?;
            let n = self.config.walkers.count as f64;
            let mut total = Drift { plain: 0.0, with_memory: 0.0 };
            let mut out = vec![total; 1];
            for pair in self.rows.windows(2) {
                let steps = (pair[1].iteration - pair[0].iteration) as f64;
                // Mean of 1 / N_eff over the interval.
                let inverse = 0.5 * (1.0 / pair[0].ess? + 1.0 / pair[1].ess?) / n;
                total.plain += steps * rate.plain * inverse;
                total.with_memory += steps * rate.with_memory * inverse;
                out.push(total);
            }
            Some(out)
        });
        all.as_ref()?.get(i).copied()
    }
}

impl VariantResult {
    /// Whether its walkers carry weights.
    pub fn is_weighted(&self) -> bool {
        self.runs.first().is_some_and(RunResult::is_weighted)
    }

    /// Final values of a quantity, one per run, if all runs have it.
    pub fn last(&self, quantity: Quantity) -> Option<Vec<f64>> {
        self.runs.iter().map(|r| quantity.at(r, r.rows.len().checked_sub(1)?)).collect()
    }

    /// Computing time of all runs.
    pub fn seconds(&self) -> f64 {
        self.runs.iter().map(|r| r.summary.seconds).sum()
    }
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
