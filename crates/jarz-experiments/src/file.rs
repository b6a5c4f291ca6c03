//! Experiment files: a base configuration, variants of it, scales to run them at, figures to draw and criteria to check.

use crate::criterion::CriterionSpec;
use crate::error::ExperimentError;
use crate::figure::FigureSpec;
use crate::images::ImagesSpec;
use crate::quantity::Quantity;
use jarz_run::files::FileError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

macro_rules! built_in {
    ($($name:literal),*) => {
        /// Experiments that come with the program: name and file.
        const BUILT_IN: &[(&str, &str)] = &[$(($name, include_str!(concat!("../../../experiments/", $name, ".toml")))),*];
    };
}
built_in!(
    "gmm",
    "gmm-thresholds",
    "pcd-oscillations",
    "no-resampling",
    "resampling-routines",
    "mode-collapse-1d",
    "self-interaction",
    "kernels"
);

/// Experiments on images that come with the program; they take longer and are not part of "all".
const IMAGES: &[(&str, &str)] = &[
    ("digits", include_str!("../../../experiments/digits.toml")),
    ("mnist", include_str!("../../../experiments/mnist.toml")),
    ("cifar10", include_str!("../../../experiments/cifar10.toml")),
];

/// How large an experiment is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// A minute or so on a laptop; also `smoke`.
    #[default]
    #[serde(alias = "smoke")]
    Quick,
    /// About an hour; also `laptop`.
    #[serde(alias = "laptop")]
    Default,
    /// The numbers of the paper: hours or days.
    Paper,
}

impl Scale {
    /// Name in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Scale::Quick => "quick",
            Scale::Default => "default",
            Scale::Paper => "paper",
        }
    }
}

/// An experiment file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Short name, for files; without it, that of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// One line for people.
    pub title: String,
    /// What the paper says, and how this experiment follows it.
    #[serde(default)]
    pub paper: String,
    /// Quantities in the table of final values; without them, masses, means and KL divergences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub table: Vec<Quantity>,
    /// How images are judged, if that is what the experiment is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<ImagesSpec>,
    /// Changes and number of runs of each scale.
    #[serde(default, rename = "scale")]
    pub scales: BTreeMap<Scale, ScaleChanges>,
    /// Configuration that all variants share.
    pub base: toml::Table,
    /// What is compared.
    #[serde(default, rename = "variant", skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<Variant>,
    /// Families of variants: every combination of some settings.
    #[serde(default, rename = "grid", skip_serializing_if = "Vec::is_empty")]
    pub grids: Vec<Grid>,
    /// What is drawn; without it, masses, means, KL divergences and the ESS.
    #[serde(default, rename = "figure", skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<FigureSpec>,
    /// What is expected of the results.
    #[serde(default, rename = "criterion", skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<CriterionSpec>,
}

/// What a scale changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScaleChanges {
    /// Runs of every variant, with different seeds.
    pub runs: Option<usize>,
    /// Changes of the configuration, `key=value`.
    pub set: Vec<String>,
    /// Other values for keys of `[images]`.
    #[serde(skip_serializing_if = "toml::Table::is_empty")]
    pub images: toml::Table,
}

/// One of the things compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Name of its folder and in the results.
    pub name: String,
    /// Name in figures; without it, the name.
    #[serde(default)]
    pub label: String,
    /// Changes of the configuration, `key=value`.
    #[serde(default)]
    pub set: Vec<String>,
    /// Further changes at some scales.
    #[serde(default, rename = "scale", skip_serializing_if = "BTreeMap::is_empty")]
    pub scales: BTreeMap<Scale, Vec<String>>,
}

/// A family of variants: every combination of a choice on each axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grid {
    /// Begins the names of its variants; may be left out.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Changes of the configuration for all its variants.
    #[serde(default)]
    pub set: Vec<String>,
    /// Further changes at some scales.
    #[serde(default, rename = "scale", skip_serializing_if = "BTreeMap::is_empty")]
    pub scales: BTreeMap<Scale, Vec<String>>,
    /// What is varied.
    #[serde(rename = "axis")]
    pub axes: Vec<Axis>,
}

/// One thing that is varied: either numbers put into `set`, or named options with changes of their own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// Name, which figures refer to.
    pub name: String,
    /// Name on the axis of a figure; without it, the name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// The numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<f64>,
    /// Changes for each number, with `{}` in its place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<String>,
    /// Other numbers at some scales.
    #[serde(default, rename = "scale", skip_serializing_if = "BTreeMap::is_empty")]
    pub scales: BTreeMap<Scale, Vec<f64>>,
    /// The named options.
    #[serde(default, rename = "option", skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<AxisOption>,
}

/// A named choice on an axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AxisOption {
    /// Name, part of the variant's.
    pub name: String,
    /// Name in figures; without it, the name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// Where it stands on the axis of a figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// Changes of the configuration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<String>,
    /// Further changes at some scales.
    #[serde(default, rename = "scale", skip_serializing_if = "BTreeMap::is_empty")]
    pub scales: BTreeMap<Scale, Vec<String>>,
}

/// Names and titles of the synthetic experiments that come with the program.
pub fn built_in() -> Vec<(String, String)> {
    titles(BUILT_IN)
}

/// Names and titles of the experiments on images.
pub fn image_experiments() -> Vec<(String, String)> {
    titles(IMAGES)
}

fn titles(of: &[(&str, &str)]) -> Vec<(String, String)> {
    let title = |text: &str| toml::from_str::<Experiment>(text).map(|e| e.title).unwrap_or_default();
    of.iter().map(|(name, text)| (name.to_string(), title(text))).collect()
}

/// Reads an experiment by built-in name or path.
pub fn load(name: &str) -> Result<Experiment, ExperimentError> {
    if let Some((name, text)) = BUILT_IN.iter().chain(IMAGES).find(|(n, _)| *n == name) {
        return parse(text, name, &format!("experiment '{name}'"));
    }
    let path = Path::new(name);
    if !path.is_file() {
        let known: Vec<_> = BUILT_IN.iter().chain(IMAGES).map(|(n, _)| *n).collect();
        return Err(ExperimentError::Unknown { name: name.into(), known: known.join(", ") });
    }
    let text = std::fs::read_to_string(path).map_err(FileError::at("read", path))?;
    let stem = path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
    parse(&text, &stem, &format!("'{name}'"))
}

/// Parses an experiment; `stem` names it if it does not do so itself. What can be checked without choosing a scale is checked.
pub fn parse(text: &str, stem: &str, origin: &str) -> Result<Experiment, ExperimentError> {
    let bad = |reason: String| ExperimentError::Invalid { origin: origin.into(), reason };
    let mut experiment: Experiment = toml::from_str(text).map_err(|e| bad(e.to_string()))?;
    experiment.name.get_or_insert_with(|| stem.to_string());
    experiment.check().map_err(bad)?;
    Ok(experiment)
}

impl Experiment {
    /// Everything that can be wrong with names, axes and seeds.
    fn check(&mut self) -> Result<(), String> {
        let name = self.name.as_deref().unwrap_or_default();
        if !is_plain(name) {
            let reason = "must be letters, digits, '-', '_' or '.', because it names files";
            return Err(format!("name = \"{name}\": {reason}"));
        }
        if self.variants.is_empty() && self.grids.is_empty() {
            return Err("it has no [[variant]] and no [[grid]]".into());
        }
        for (i, variant) in self.variants.iter_mut().enumerate() {
            check_folder_name(&variant.name).map_err(|e| format!("{e} (variant {})", i + 1))?;
            if variant.label.is_empty() {
                variant.label = variant.name.clone();
            }
        }
        for (i, grid) in self.grids.iter_mut().enumerate() {
            check_grid(grid).map_err(|e| format!("grid {}: {e}", i + 1))?;
        }
        for (i, criterion) in self.criteria.iter().enumerate() {
            criterion.check().map_err(|e| format!("criterion {} (\"{}\"): {e}", i + 1, criterion.claim))?;
        }
        for (i, figure) in self.figures.iter().enumerate() {
            figure.check().map_err(|e| format!("figure {}: {e}", i + 1))?;
        }
        let mut changes = self.changes();
        if changes.any(|c| c.split('=').next().is_some_and(|key| key.trim() == "seed")) {
            return Err("the seed is the same for all variants: give it as 'seed' in [base]".into());
        }
        Ok(())
    }

    /// All `key=value` changes in the file.
    fn changes(&self) -> impl Iterator<Item = &String> {
        let variants = self.variants.iter().flat_map(|v| v.set.iter().chain(v.scales.values().flatten()));
        let grids = self.grids.iter().flat_map(|g| {
            let options = g.axes.iter().flat_map(|a| &a.options);
            let of_options = options.flat_map(|o| o.set.iter().chain(o.scales.values().flatten()));
            g.set
                .iter()
                .chain(g.scales.values().flatten())
                .chain(g.axes.iter().flat_map(|a| &a.set))
                .chain(of_options)
        });
        variants.chain(grids).chain(self.scales.values().flat_map(|s| &s.set))
    }

    /// As an experiment file.
    pub fn to_toml(&self) -> Result<String, ExperimentError> {
        toml::to_string(self)
            .map_err(|e| ExperimentError::Option(format!("the experiment cannot be written: {e}")))
    }
}

fn check_grid(grid: &Grid) -> Result<(), String> {
    if grid.axes.is_empty() {
        return Err("it has no [[grid.axis]]".into());
    }
    for axis in &grid.axes {
        let name = &axis.name;
        if !is_plain(name) {
            return Err(format!("axis name = \"{name}\": must be letters, digits, '-', '_' or '.'"));
        }
        match (axis.values.is_empty(), axis.options.is_empty()) {
            (true, true) => {
                return Err(format!("axis \"{name}\" has neither values nor [[grid.axis.option]]"));
            }
            (false, false) => {
                return Err(format!("axis \"{name}\": give either values or [[grid.axis.option]]"));
            }
            (false, true) if !axis.set.iter().any(|s| s.contains("{}")) => {
                return Err(format!(
                    "axis \"{name}\": set needs a change with {{}} in the place of the value"
                ));
            }
            (true, false) if !axis.set.is_empty() || !axis.scales.is_empty() => {
                return Err(format!("axis \"{name}\": set and scale belong to its options"));
            }
            _ => {}
        }
        if let Some(option) = axis.options.iter().find(|o| !is_plain(&o.name)) {
            return Err(format!(
                "axis \"{name}\": option name = \"{}\": must be letters, digits, '-', '_' or '.'",
                option.name
            ));
        }
    }
    Ok(())
}

/// Whether a name can name a folder of results.
pub(crate) fn check_folder_name(name: &str) -> Result<(), String> {
    match is_plain(name) && name != "figures" {
        true => Ok(()),
        false => Err(format!(
            "name = \"{name}\": must be letters, digits, '-', '_' or '.' and not 'figures', because it names a folder"
        )),
    }
}

fn is_plain(name: &str) -> bool {
    let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
    name.len() <= 100
        && ends(name.chars().next())
        && ends(name.chars().last())
        && !name.contains("..")
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}
