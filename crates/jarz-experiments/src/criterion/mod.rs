//! Criteria: what is expected of an experiment, and whether it came out.

mod evaluate;

pub(crate) use evaluate::short;
pub use evaluate::{Outcome, Verdict, evaluate};

use crate::file::Scale;
use crate::quantity::Quantity;
use crate::reduce::{Over, Window};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A criterion of an experiment file: a quantity, reduced over the rows and the runs, and what it must be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CriterionSpec {
    /// What the paper says, or what is required.
    pub claim: String,
    /// The quantity.
    pub quantity: Quantity,
    /// The variants it must hold for, by name, with `*` for anything; all if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<String>,
    /// Take the difference to the same run of each of these variants (the ratio, for the spread over runs).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versus: Vec<String>,
    /// Take the difference between the largest and the smallest mean among the variants.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub across: bool,
    /// Take the ratio to this quantity of the same runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relative_to: Option<Quantity>,
    /// How rows become one number.
    #[serde(default)]
    pub over: Over,
    /// Rows from this fraction of the run on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<f64>,
    /// Rows up to this iteration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
    /// How runs become one number.
    #[serde(default)]
    pub runs: OverRuns,
    /// Must be below this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below: Option<f64>,
    /// Must be above this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above: Option<f64>,
    /// The mean must be within so many standard errors of zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub std_errors: Option<f64>,
    /// With `std_errors`: a quantity that is the standard error of one run; used where it exceeds the scatter over the runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Quantity>,
    /// Holds for this scale only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<Scale>,
    /// Scales that cannot decide it, and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub undecided: BTreeMap<Scale, String>,
}

/// How runs become one number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OverRuns {
    /// The mean, with its interval.
    #[default]
    Mean,
    /// Every run must comply.
    Each,
    /// The mean of every row over the runs, then the one farthest from zero.
    Curve,
    /// The standard deviation over the runs, with its interval.
    Spread,
}

impl CriterionSpec {
    /// Whether its keys go together.
    pub(crate) fn check(&self) -> Result<(), String> {
        let limits = [self.below, self.above, self.std_errors, self.after];
        if limits.iter().flatten().any(|v| !v.is_finite()) {
            return Err("below, above, std_errors and after must be finite numbers".into());
        }
        match (self.below.or(self.above), self.std_errors) {
            (None, None) => return Err("needs below, above or std_errors".into()),
            (Some(_), Some(_)) => return Err("std_errors does not go with below and above".into()),
            _ => {}
        }
        if let (Some(below), Some(above)) = (self.below, self.above)
            && below <= above
        {
            return Err(format!("nothing is above {above} and below {below}"));
        }
        if self.after.is_some_and(|a| !(0.0..1.0).contains(&a)) {
            return Err("after is a fraction of the run, at least 0 and below 1".into());
        }
        let ways = [!self.versus.is_empty(), self.across, self.relative_to.is_some()];
        if ways.iter().filter(|w| **w).count() > 1 {
            return Err("give only one of versus, across and relative_to".into());
        }
        if self.runs != OverRuns::Mean
            && (self.across || self.relative_to.is_some() || self.std_errors.is_some())
        {
            return Err("across, relative_to and std_errors go with runs = \"mean\"".into());
        }
        if self.runs == OverRuns::Curve && (self.over != Over::Largest || !self.versus.is_empty()) {
            return Err("runs = \"curve\" goes with over = \"largest\" and without versus".into());
        }
        if self.error.is_some() && self.std_errors.is_none() {
            return Err("error goes with std_errors".into());
        }
        Ok(())
    }

    pub(crate) fn window(&self) -> Window {
        Window { after: self.after.unwrap_or(0.0), until: self.until }
    }

    /// What is asked, in words.
    pub fn words(&self) -> String {
        let mut text = format!("{} {}", self.quantity.label(), self.over.words());
        if let Some(until) = self.until {
            text += &format!(" up to iteration {until}");
        }
        if let Some(after) = self.after {
            text += &format!(" from {after} of the run on");
        }
        match self.runs {
            OverRuns::Mean if !self.across => {}
            OverRuns::Mean => text += ", range over the variants",
            OverRuns::Curve => text += ", of the mean over the runs",
            OverRuns::Each => text += ", in every run",
            OverRuns::Spread => text += ", standard deviation over the runs",
        }
        if !self.versus.is_empty() {
            let how = if self.runs == OverRuns::Spread { "relative to" } else { "less that of" };
            text += &format!(", {how} {}", self.versus.join(" and "));
        }
        if let Some(reference) = self.relative_to {
            text += &format!(", relative to {}", String::from(reference));
        }
        match (self.above, self.below, self.std_errors) {
            (Some(a), Some(b), _) => text += &format!(": {a} to {b}"),
            (Some(a), None, _) => text += &format!(": above {a}"),
            (None, Some(b), _) => text += &format!(": below {b}"),
            (None, None, Some(k)) => text += &format!(": within {k} standard errors of zero"),
            (None, None, None) => {}
        }
        text
    }
}

#[cfg(test)]
mod tests;
