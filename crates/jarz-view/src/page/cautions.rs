//! Signs in a run that its numbers are not to be trusted.

use crate::Run;
use jarz::StopReason;
use jarz_run::Row;

/// Fewer surviving ancestors make the error bars unreliable.
const FEW_ANCESTORS: u64 = 100;
/// An ESS below this leaves estimates to a few walkers.
const LOW_ESS: f64 = 0.1;
/// A lower acceptance means that the step size is too large for the weights to stay even.
const LOW_ACCEPTANCE: f64 = 0.5;

/// Everything a reader of a run should know.
pub(super) fn all(run: &Run) -> Vec<String> {
    let mut notes = Vec::new();
    let of = run.config().run.iterations;
    match run.summary() {
        None => notes.push(format!(
            "The run has not written its results yet: it is still going on, or was killed. Shown are the first {} of {of} \
             iterations.",
            run.iterations()
        )),
        Some(s) if s.stop_reason != StopReason::Finished.name() => {
            notes.push(format!("The run was stopped after {} of {of} iterations.", s.iterations));
        }
        Some(_) => {}
    }
    notes.extend(run.damages());
    notes.extend(numeric(run));
    notes
}

/// What the rows tell.
pub(super) fn numeric(run: &Run) -> Vec<String> {
    let rows = run.rows();
    let mut notes = Vec::new();
    let lowest = |f: &dyn Fn(&Row) -> Option<f64>| {
        let values = rows.iter().filter_map(|r| Some((r.iteration, f(r)?)));
        values.min_by(|a, b| a.1.total_cmp(&b.1))
    };
    if run.is_weighted() {
        if let Some(left) = rows.last().map(|r| r.distinct_ancestors).filter(|n| *n < FEW_ANCESTORS) {
            notes.push(format!(
                "The walkers descend from {left} of the {} initial ones. The error bars are made from the scatter between \
                 these families, so with fewer than {FEW_ANCESTORS} they are unreliable; compare several runs with different \
                 seeds instead.",
                match run.config().walkers.witnesses {
                    0 => run.config().walkers.count,
                    witnesses => witnesses,
                }
            ));
        }
        if let Some((k, ess)) = lowest(&|r| r.ess).filter(|(_, ess)| *ess < LOW_ESS) {
            notes.push(format!(
                "The effective sample size fell to {ess:.3} at iteration {k}: a few walkers carried the estimates. Smaller \
                 learning rates, more walkers or a higher resampling threshold help."
            ));
        }
    }
    if let Some((k, a)) = lowest(&|r| r.acceptance).filter(|(_, a)| *a < LOW_ACCEPTANCE) {
        notes.push(format!(
            "The acceptance fell to {a:.2} at iteration {k}: the step size is large for this energy. A smaller \
             kernel.step_size, or kernel.adapt, helps."
        ));
    }
    notes
}
