//! How long an experiment will take on this machine: the first steps of every variant, timed with all workers busy.

use crate::engine::Task;
use crate::error::ExperimentError;
use crate::plan::Plan;
use jarz_run::{Engine, Timing, calibrate};
use std::time::Duration;

/// Time spent on finding out, over all variants.
const BUDGET: Duration = Duration::from_secs(3);
/// What each variant gets of it.
const SHARE: (Duration, Duration) = (Duration::from_millis(30), Duration::from_millis(250));
/// Seconds for drawing the figures of a run and writing its files.
const FINISHING: f64 = 0.15;

/// What the runs of an experiment cost, and how they are shared out.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// Of the variants, in their order.
    pub timings: Vec<Timing>,
    /// Iterations and rows of the variants.
    lengths: Vec<(u64, u64)>,
    /// Runs at a time.
    pub workers: usize,
    /// Threads of each.
    pub threads: usize,
    /// Runs still to be done.
    pub runs: usize,
    /// Expected time of all of them.
    pub total: f64,
    /// Expected time of the runs of each variant, added up.
    pub of_variants: Vec<f64>,
}

impl Estimate {
    /// Times the variants that have something left to do. `cores` are shared out: one per run, or more if there are fewer runs. An engine does one
    /// run after the other.
    pub(crate) fn new(
        plan: &Plan,
        tasks: &[Task<'_>],
        cores: usize,
        engine: Option<&dyn Engine>,
    ) -> Result<Self, ExperimentError> {
        let workers = if engine.is_some() { 1 } else { cores.min(tasks.len()).max(1) };
        let threads = (cores / workers).max(1);
        let needed: Vec<bool> =
            (0..plan.variants.len()).map(|v| tasks.iter().any(|t| t.variant == v)).collect();
        let count = needed.iter().filter(|n| **n).count().max(1) as u32;
        let budget = (BUDGET / count).clamp(SHARE.0, SHARE.1);
        let mut timings = vec![Timing::default(); plan.variants.len()];
        for (v, planned) in plan.variants.iter().enumerate().filter(|(v, _)| needed[*v]) {
            let config = planned.config_of(0, threads);
            // All workers at once, as later, because they share caches and memory.
            let all: Vec<Result<Timing, jarz_run::RunError>> = std::thread::scope(|scope| {
                let jobs: Vec<_> =
                    (0..workers).map(|_| scope.spawn(|| calibrate(engine, &config, budget))).collect();
                jobs.into_iter().map(|j| j.join().unwrap_or_else(|p| std::panic::resume_unwind(p))).collect()
            });
            let all: Vec<Timing> = all.into_iter().collect::<Result<_, _>>()?;
            let mean = |f: fn(&Timing) -> f64| all.iter().map(f).sum::<f64>() / all.len() as f64;
            timings[v] = Timing { setup: mean(|t| t.setup), step: mean(|t| t.step), row: mean(|t| t.row) };
        }
        let length = |c: &jarz_run::Config| (c.run.iterations, c.run.iterations / c.run.log_every + 1);
        let lengths = plan.variants.iter().map(|v| length(&v.config)).collect();
        let mut estimate = Estimate {
            timings,
            lengths,
            workers,
            threads,
            runs: tasks.len(),
            total: 0.0,
            of_variants: Vec::new(),
        };
        estimate.of_variants = (0..plan.variants.len())
            .map(|v| tasks.iter().filter(|t| t.variant == v).map(|t| estimate.seconds(t)).sum())
            .collect();
        let seconds: Vec<f64> = tasks.iter().map(|t| estimate.seconds(t)).collect();
        estimate.total = makespan(seconds, workers);
        Ok(estimate)
    }

    /// Expected time of what is left of a run.
    pub(crate) fn seconds(&self, task: &Task<'_>) -> f64 {
        let (timing, (iterations, rows)) = (&self.timings[task.variant], self.lengths[task.variant]);
        let left = iterations.saturating_sub(task.done) as f64;
        let share = if iterations > 0 { left / iterations as f64 } else { 1.0 };
        timing.setup + timing.step * left + timing.row * rows as f64 * share + FINISHING
    }

    /// One line for people.
    pub fn words(&self) -> String {
        let threads =
            if self.threads > 1 { format!(", {} threads each", self.threads) } else { String::new() };
        let at_a_time = match self.workers {
            1 => "one at a time".to_string(),
            n => format!("{n} at a time"),
        };
        let runs = if self.runs == 1 { "1 run".to_string() } else { format!("{} runs", self.runs) };
        format!("about {} ({runs} to do, {at_a_time}{threads})", duration(self.total))
    }
}

/// Time until all are done if each worker takes the longest one left.
fn makespan(mut seconds: Vec<f64>, workers: usize) -> f64 {
    seconds.sort_by(|a, b| b.total_cmp(a));
    let mut busy = vec![0.0f64; workers.max(1)];
    for s in seconds {
        if let Some(first) = busy.iter_mut().min_by(|a, b| a.total_cmp(b)) {
            *first += s;
        }
    }
    busy.into_iter().fold(0.0, f64::max)
}

/// A duration for people.
pub fn duration(seconds: f64) -> String {
    let s = seconds.round() as u64;
    match s {
        0..=1 => "1 s".into(),
        2..=119 => format!("{s} s"),
        120..=7199 => format!("{} min", (s + 30) / 60),
        7200..=172_799 => format!("{:.1} h", seconds / 3600.0),
        _ => format!("{:.1} days", seconds / 86_400.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_go_first() {
        assert_eq!(makespan(vec![1.0, 1.0, 2.0], 2), 2.0);
        assert_eq!(makespan(vec![3.0, 1.0], 4), 3.0);
        assert_eq!(makespan(vec![], 2), 0.0);
    }

    #[test]
    fn durations_read_well() {
        let all = [0.2, 75.0, 300.0, 9000.0, 864_000.0].map(duration);
        assert_eq!(all, ["1 s", "75 s", "5 min", "2.5 h", "10.0 days"]);
    }
}
