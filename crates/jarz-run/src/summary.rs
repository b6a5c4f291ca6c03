//! `summary.json`: the final figures of a run.

use jarz::estimate::over_runs;
use jarz::{Algorithm, Estimates, Measured, Ranks, StopReason};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The final figures of a run. Numbers that an algorithm does not have are null.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Summary {
    pub version: String,
    pub algorithm: String,
    pub self_interaction: Option<String>,
    pub seed: u64,
    pub iterations: u64,
    pub stop_reason: String,
    pub log_z: Option<f64>,
    pub log_z_std_error: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driving_log_z: Option<f64>,
    pub log_z_exact: Option<f64>,
    pub cross_entropy: Option<f64>,
    pub cross_entropy_std_error: Option<f64>,
    pub cross_entropy_exact: Option<f64>,
    pub kl: Option<f64>,
    pub kl_exact: Option<f64>,
    pub ess: Option<f64>,
    pub acceptance: Option<f64>,
    pub resamplings: u64,
    pub distinct_ancestors: u64,
    pub seconds: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub masses: Option<Vec<f64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub walker_masses: Option<Vec<f64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub walker_masses_std_error: Option<Vec<Option<f64>>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub means: Option<Vec<Vec<f64>>>,
    /// Ranks, if there were several, and what went between them since this process began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranks: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<BTreeMap<String, Carried>>,
}

/// Bytes and messages that all ranks received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Carried {
    pub bytes: u64,
    pub messages: u64,
}

impl Summary {
    /// What went between ranks, if there are several; all of them ask.
    pub(crate) fn add_traffic(&mut self, ranks: &Ranks) {
        if !ranks.is_alone() {
            let carried = ranks.traffic_of_all().into_iter();
            let carried =
                carried.map(|(t, bytes, messages)| (t.name().to_string(), Carried { bytes, messages }));
            (self.ranks, self.traffic) = (Some(ranks.size()), Some(carried.collect()));
        }
    }

    pub(crate) fn new(
        seed: u64,
        algorithm: Algorithm,
        leave_one_out: bool,
        stopped: StopReason,
        e: &Estimates,
        seconds: f64,
    ) -> Self {
        let row = crate::metrics::Row::new(e, seconds);
        let rule = if leave_one_out { "leave-one-out" } else { "none" };
        Summary {
            version: env!("CARGO_PKG_VERSION").into(),
            algorithm: algorithm.name().into(),
            self_interaction: algorithm.is_weighted().then(|| rule.to_string()),
            seed,
            iterations: e.iteration,
            stop_reason: stopped.name().into(),
            log_z: row.log_z,
            log_z_std_error: row.log_z_std_error,
            driving_log_z: row.driving_log_z,
            log_z_exact: row.log_z_exact,
            cross_entropy: row.cross_entropy,
            cross_entropy_std_error: row.cross_entropy_std_error,
            cross_entropy_exact: row.cross_entropy_exact,
            kl: row.kl,
            kl_exact: row.kl_exact,
            ess: row.ess,
            acceptance: row.acceptance,
            resamplings: row.resamplings,
            distinct_ancestors: row.distinct_ancestors,
            seconds,
            masses: row.masses,
            walker_masses: row.walker_masses,
            walker_masses_std_error: row.walker_masses_std_error,
            means: e.means.clone(),
            ranks: None,
            traffic: None,
        }
    }
}

/// Means over repeated runs, with standard errors from their scatter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct RunsSummary {
    pub version: String,
    pub algorithm: String,
    pub runs: usize,
    pub iterations: u64,
    pub stop_reason: String,
    pub log_z: Option<f64>,
    pub log_z_std_error: Option<f64>,
    pub cross_entropy: Option<f64>,
    pub cross_entropy_std_error: Option<f64>,
    pub kl: Option<f64>,
    pub kl_std_error: Option<f64>,
    pub kl_exact: Option<f64>,
    pub kl_exact_std_error: Option<f64>,
    pub ess: Option<f64>,
    pub resamplings: f64,
    pub seconds: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub masses: Option<Vec<f64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub masses_std_error: Option<Vec<Option<f64>>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub means: Option<Vec<Vec<f64>>>,
}

impl RunsSummary {
    /// Of at least one run.
    pub fn new(runs: &[Summary]) -> Option<Self> {
        let first = runs.first()?;
        let over = |f: &dyn Fn(&Summary) -> Option<f64>| -> Option<Measured> {
            runs.iter().map(f).collect::<Option<Vec<f64>>>().map(|v| over_runs(&v))
        };
        let value = |m: Option<Measured>| m.map(|m| m.value);
        let error = |m: Option<Measured>| m.and_then(|m| m.std_error);
        let log_z = over(&|s| s.log_z);
        let cross_entropy = over(&|s| s.cross_entropy);
        let (kl, kl_exact) = (over(&|s| s.kl), over(&|s| s.kl_exact));
        let modes = first.masses.as_ref().map_or(0, Vec::len);
        let masses: Vec<_> =
            (0..modes).filter_map(|k| over(&|s| s.masses.as_ref()?.get(k).copied())).collect();
        let means = first.means.as_ref().map(|means| {
            let at = |k: usize, j: usize| value(over(&|s| s.means.as_ref()?.get(k)?.get(j).copied()));
            (0..means.len())
                .map(|k| (0..means[k].len()).map(|j| at(k, j).unwrap_or(f64::NAN)).collect())
                .collect()
        });
        let finished = runs.iter().all(|r| r.stop_reason == StopReason::Finished.name());
        Some(RunsSummary {
            version: first.version.clone(),
            algorithm: first.algorithm.clone(),
            runs: runs.len(),
            iterations: first.iterations,
            stop_reason: if finished { StopReason::Finished } else { StopReason::Interrupted }.name().into(),
            log_z: value(log_z),
            log_z_std_error: error(log_z),
            cross_entropy: value(cross_entropy),
            cross_entropy_std_error: error(cross_entropy),
            kl: value(kl),
            kl_std_error: error(kl),
            kl_exact: value(kl_exact),
            kl_exact_std_error: error(kl_exact),
            ess: value(over(&|s| s.ess)),
            resamplings: runs.iter().map(|r| r.resamplings as f64).sum::<f64>() / runs.len() as f64,
            seconds: runs.iter().map(|r| r.seconds).sum(),
            masses: (modes > 0).then(|| masses.iter().map(|m| m.value).collect()),
            masses_std_error: (modes > 0).then(|| masses.iter().map(|m| m.std_error).collect()),
            means,
        })
    }
}

/// The summary of a run folder; none if it has not been written or makes no sense.
pub fn read_summary(folder: &Path) -> Option<Summary> {
    serde_json::from_slice(&std::fs::read(folder.join("summary.json")).ok()?).ok()
}
