//! Figures as an experiment file describes them.

mod curves;
mod draw;

pub use draw::{Drawn, draw};

use crate::quantity::Quantity;
use crate::reduce::Over;
use serde::{Deserialize, Serialize};

/// What is drawn for an experiment that says nothing about figures.
const DEFAULT: &str = include_str!("default.toml");

/// A figure of an experiment file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureSpec {
    /// Name of its files; without it, the experiment's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Title; without it, the experiment's title.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// What is to be seen.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub caption: String,
    /// Panels per row; 0 chooses.
    #[serde(default)]
    pub columns: usize,
    /// The panels.
    #[serde(rename = "panel")]
    pub panels: Vec<PanelSpec>,
}

/// A panel of a figure: quantities against the iterations, the time, or an axis of a grid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PanelSpec {
    /// Title.
    #[serde(default)]
    pub title: String,
    /// `iterations`, `time` (iterations times the step size), or the name of a grid's axis.
    #[serde(default = "iterations")]
    pub x: String,
    /// The quantities; the first is drawn with full lines, others as thin dashed companions.
    pub y: Vec<Quantity>,
    /// Name of the vertical axis; without it, that of the first quantity.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// The variants, by name, with `*` for anything; all if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<String>,
    /// The variants whose companions are drawn; all if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub companions: Vec<String>,
    /// One panel for every `variant`, or for every choice on the axis with this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<String>,
    /// Against an axis: how rows become one number.
    #[serde(default)]
    pub over: Over,
    /// What of the runs is drawn.
    #[serde(default)]
    pub runs: Shown,
    /// Scale of the horizontal axis.
    #[serde(default)]
    pub x_scale: ScaleName,
    /// Scale of the vertical axis.
    #[serde(default)]
    pub scale: ScaleName,
    /// Where a `symlog` axis becomes logarithmic.
    #[serde(default = "tenth")]
    pub linear: f64,
    /// Range of the vertical axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
    /// Range of the horizontal axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x_range: Option<[f64; 2]>,
    /// Lines across the panel.
    #[serde(default, rename = "reference", skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<ReferenceSpec>,
}

fn iterations() -> String {
    "iterations".into()
}

fn tenth() -> f64 {
    0.1
}

/// A line across a panel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ReferenceSpec {
    /// Taken from the data: `data_mass`, `data_means`, `data_z` or, for the ESS, `threshold`.
    Known(Known),
    /// At a number.
    At(f64),
}

/// Lines that the data or the configuration define.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Known {
    DataMass,
    DataMeans,
    DataZ,
    Threshold,
}

/// What of the runs is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shown {
    /// Their mean, with a band of one standard error.
    #[default]
    Mean,
    /// The first run.
    First,
    /// The median, with a band from the lowest to the highest tenth.
    Median,
    /// The standard error of their mean.
    StdError,
    /// The root of their mean square.
    Rms,
}

/// How an axis is divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum ScaleName {
    #[default]
    Linear,
    Log,
    SymLog,
}

impl FigureSpec {
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.panels.is_empty() {
            return Err("it has no [[figure.panel]]".into());
        }
        for panel in &self.panels {
            if panel.y.is_empty() {
                return Err(format!("panel \"{}\": y is empty: name a quantity", panel.title));
            }
            if !(panel.linear > 0.0 && panel.linear.is_finite()) {
                return Err(format!("panel \"{}\": linear must be a positive number", panel.title));
            }
        }
        Ok(())
    }
}

impl PanelSpec {
    /// The grid's axis it is drawn against, if it is one.
    pub fn axis(&self) -> Option<&str> {
        Some(self.x.as_str()).filter(|x| !["iterations", "time"].contains(x))
    }

    /// The grid's axis that gets a panel for every choice.
    pub fn split_axis(&self) -> Option<&str> {
        self.split.as_deref().filter(|s| *s != "variant")
    }
}

/// Figures of an experiment that describes none.
pub(crate) fn default_figures() -> Vec<FigureSpec> {
    #[derive(Deserialize)]
    struct File {
        figure: Vec<FigureSpec>,
    }
    toml::from_str::<File>(DEFAULT).map(|f| f.figure).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #[test]
    fn there_are_default_figures() {
        assert_eq!(super::default_figures().len(), 2);
    }
}
