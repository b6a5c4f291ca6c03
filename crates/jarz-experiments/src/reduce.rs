//! From the logged iterations of a run to one number.

use crate::quantity::Quantity;
use crate::results::RunResult;
use serde::{Deserialize, Serialize};

/// How a run's rows become one number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Over {
    /// The last value.
    #[default]
    Last,
    /// The largest.
    Max,
    /// The smallest.
    Min,
    /// The one farthest from zero, without its sign.
    Largest,
    /// The mean.
    Mean,
    /// The last less the first.
    Change,
    /// The last less the smallest.
    Rise,
    /// How often a mass went from collapsed on one side (below 0.1) to collapsed on the other (above 0.9) or back.
    Switches,
}

/// Masses beyond these count as collapsed.
const COLLAPSED: (f64, f64) = (0.1, 0.9);

/// Which rows count.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Window {
    /// From this fraction of the run on.
    pub after: f64,
    /// Up to this iteration.
    pub until: Option<u64>,
}

impl Window {
    /// Indices of the rows that count.
    pub(crate) fn rows(self, run: &RunResult) -> impl Iterator<Item = usize> {
        let first = self.after * run.config.run.iterations as f64;
        let counts = move |k: u64| k as f64 >= first && self.until.is_none_or(|end| k <= end);
        (0..run.rows.len()).filter(move |&i| counts(run.rows[i].iteration))
    }
}

impl Over {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Over::Last => "at the end",
            Over::Max => "largest",
            Over::Min => "smallest",
            Over::Largest => "largest, either sign",
            Over::Mean => "mean over the run",
            Over::Change => "change over the run",
            Over::Rise => "rise above its smallest value, at the end",
            Over::Switches => "switches between collapses",
        }
    }

    /// The number of one run; none if no row has the quantity.
    pub fn reduce(self, run: &RunResult, quantity: Quantity, window: Window) -> Option<f64> {
        let values = window.rows(run).filter_map(|i| quantity.at(run, i));
        self.of(&values.collect::<Vec<f64>>())
    }

    pub(crate) fn of(self, values: &[f64]) -> Option<f64> {
        let (first, last) = (values.first()?, values.last()?);
        Some(match self {
            Over::Last => *last,
            Over::Max => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            Over::Min => values.iter().copied().fold(f64::INFINITY, f64::min),
            Over::Largest => values.iter().map(|v| v.abs()).fold(0.0, f64::max),
            Over::Mean => crate::statistics::mean(values),
            Over::Change => last - first,
            Over::Rise => last - values.iter().copied().fold(f64::INFINITY, f64::min),
            Over::Switches => switches(values),
        })
    }
}

fn switches(values: &[f64]) -> f64 {
    let side = |v: &f64| if *v < COLLAPSED.0 { Some(false) } else { (*v > COLLAPSED.1).then_some(true) };
    let sides: Vec<bool> = values.iter().filter_map(side).collect();
    sides.windows(2).filter(|w| w[0] != w[1]).count() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reduction() {
        let values = [0.5, -2.0, 1.0, 0.75];
        let of = |over: Over| over.of(&values).unwrap();
        assert_eq!([Over::Last, Over::Max, Over::Min, Over::Largest].map(of), [0.75, 1.0, -2.0, 2.0]);
        assert_eq!([Over::Mean, Over::Change, Over::Rise].map(of), [0.0625, 0.25, 2.75]);
        assert_eq!(Over::Last.of(&[]), None);
    }

    #[test]
    fn switches_count_collapses_on_alternating_sides() {
        // Going back and forth across the middle, or collapsing twice on the same side, is no switch.
        assert_eq!(switches(&[0.5, 0.05, 0.5, 0.04, 0.8, 0.3, 0.95, 0.5, 0.99, 0.01]), 2.0);
        assert_eq!(switches(&[0.5, 0.4]), 0.0);
    }
}
