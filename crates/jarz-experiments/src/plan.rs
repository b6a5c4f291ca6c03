//! From an experiment file to the configurations of its runs, with nothing left to choose.

use crate::error::ExperimentError;
use crate::file::{Axis, Experiment, Grid, Scale, ScaleChanges, Variant, check_folder_name};
use jarz_run::Config;
use jarz_run::config::{DataConfig, ModelConfig};
use std::collections::BTreeMap;

/// Most runs of one experiment.
const MAX_RUNS: usize = 10_000;
/// Most variants of one experiment.
const MAX_VARIANTS: usize = 10_000;

/// An experiment with nothing left to choose.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Short name.
    pub name: String,
    /// The experiment with one scale, its number of runs and its seed filled in; running it again gives this plan.
    pub resolved: Experiment,
    /// The scale.
    pub scale: Scale,
    /// Runs of every variant.
    pub runs: usize,
    /// Seed of the first run; the next ones count up.
    pub seed: u64,
    /// Configurations of the variants, in the order of the file.
    pub variants: Vec<PlannedVariant>,
}

/// A variant with its configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedVariant {
    /// Name of its folder and in the results.
    pub name: String,
    /// Name in figures.
    pub label: String,
    /// What was chosen on each axis of its grid, by the axis' name.
    pub choices: BTreeMap<String, Choice>,
    /// Configuration of the first run; the others differ in the seed.
    pub config: Config,
}

/// What was chosen on an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Name of the axis in figures.
    pub axis: String,
    /// Short name, part of the variant's name.
    pub name: String,
    /// Name in figures.
    pub label: String,
    /// Where it stands on the axis, if it is a number.
    pub value: Option<f64>,
    /// The changes it makes.
    set: Vec<String>,
}

/// A variant with what was chosen for it on the axes of its grid.
type Member = (Variant, BTreeMap<String, Choice>);

impl Experiment {
    /// Chooses scale, runs and seed, and builds all configurations.
    pub fn plan(
        mut self,
        scale: Scale,
        runs: Option<usize>,
        seed: Option<u64>,
    ) -> Result<Plan, ExperimentError> {
        let name = self.name.clone().unwrap_or_default();
        let origin = format!("experiment '{name}'");
        let of_scale = match (self.scales.remove(&scale), scale) {
            (Some(changes), _) => changes,
            (None, Scale::Quick) => ScaleChanges::default(),
            (None, _) => {
                return Err(ExperimentError::Option(format!(
                    "{origin} has no [scale.{}]; leave out --scale",
                    scale.name()
                )));
            }
        };
        self.change_images(&of_scale.images, &format!("{origin}: [scale.{}]", scale.name()))?;
        let runs = runs.or(of_scale.runs).unwrap_or(1);
        if runs == 0 || runs > MAX_RUNS {
            return Err(ExperimentError::Option(format!("--runs {runs}: must be 1 to {MAX_RUNS}")));
        }
        let seed = self.choose_seed(&origin, &of_scale.set, runs, seed)?;
        self.choose_scale(scale);
        let text = self.base_text(&origin)?;
        let mut variants = Vec::new();
        for (variant, choices) in self.expand(&origin)? {
            let origin = format!("variant '{}' of {origin}", variant.name);
            let changes = [of_scale.set.clone(), variant.set].concat();
            let config = Config::parse(&text, &origin, &changes)?;
            match &self.images {
                Some(_) => drop(jarz_run::images_of(&config)?),
                None => check_mixtures(&config, &origin)?,
            }
            if config.run.runs != 1 {
                let text = "leave out run.runs: the number of runs is 'runs' in [scale.quick] or [scale.paper], or --runs";
                return Err(ExperimentError::Option(format!("{origin}: {text}")));
            }
            variants.push(PlannedVariant { name: variant.name, label: variant.label, choices, config });
        }
        self.scales = BTreeMap::from([(scale, ScaleChanges { runs: Some(runs), ..of_scale })]);
        let plan = Plan { name, resolved: self, scale, runs, seed, variants };
        plan.check_references(&origin)?;
        Ok(plan)
    }

    /// Puts other values of a scale into `[images]`.
    fn change_images(&mut self, changes: &toml::Table, origin: &str) -> Result<(), ExperimentError> {
        if changes.is_empty() {
            return Ok(());
        }
        let wrong = |e: &dyn std::fmt::Display| ExperimentError::Option(format!("{origin}: images: {e}"));
        let Some(images) = &self.images else {
            return Err(wrong(&"the experiment has no section [images] that could be changed"));
        };
        let mut table = toml::Table::try_from(images).map_err(|e| wrong(&e))?;
        table.extend(changes.clone());
        self.images = Some(table.try_into().map_err(|e: toml::de::Error| wrong(&e.message()))?);
        Ok(())
    }

    fn base_text(&self, origin: &str) -> Result<String, ExperimentError> {
        toml::to_string(&self.base).map_err(|e| ExperimentError::Option(format!("{origin}: [base]: {e}")))
    }

    /// Fills in the seed of the first run.
    fn choose_seed(
        &mut self,
        origin: &str,
        changes: &[String],
        runs: usize,
        seed: Option<u64>,
    ) -> Result<u64, ExperimentError> {
        let seed = match seed {
            Some(seed) => seed,
            None => Config::parse(&self.base_text(origin)?, &format!("[base] of {origin}"), changes)?.seed,
        };
        let last = seed.checked_add(runs as u64).and_then(|last| i64::try_from(last).ok());
        if last.is_none() {
            let text = format!(
                "--seed {seed}: too large, it must stay below 2^63 with {runs} runs counting up from it"
            );
            return Err(ExperimentError::Option(text));
        }
        self.base.insert("seed".into(), toml::Value::Integer(seed as i64));
        Ok(seed)
    }

    /// Merges what belongs to the scale into the rest, and drops the other scales.
    fn choose_scale(&mut self, scale: Scale) {
        let merge = |set: &mut Vec<String>, scales: &mut BTreeMap<Scale, Vec<String>>| {
            set.extend(std::mem::take(scales).remove(&scale).unwrap_or_default());
        };
        for variant in &mut self.variants {
            merge(&mut variant.set, &mut variant.scales);
        }
        for grid in &mut self.grids {
            merge(&mut grid.set, &mut grid.scales);
            for axis in &mut grid.axes {
                if let Some(values) = std::mem::take(&mut axis.scales).remove(&scale) {
                    axis.values = values;
                }
                for option in &mut axis.options {
                    merge(&mut option.set, &mut option.scales);
                }
            }
        }
        self.criteria.retain(|c| c.scale.is_none_or(|only| only == scale));
    }

    /// Names of all variants.
    pub(crate) fn variant_names(&self) -> Result<Vec<String>, ExperimentError> {
        Ok(self.expand("the experiment")?.into_iter().map(|(v, _)| v.name).collect())
    }

    /// All variants, those of the grids included, with their choices.
    fn expand(&self, origin: &str) -> Result<Vec<Member>, ExperimentError> {
        let bad = |reason: String| ExperimentError::Invalid { origin: origin.into(), reason };
        let mut all: Vec<_> = self.variants.iter().map(|v| (v.clone(), BTreeMap::new())).collect();
        for grid in &self.grids {
            all.extend(combinations(grid));
        }
        if all.len() > MAX_VARIANTS {
            return Err(bad(format!("its grids have {} variants; {MAX_VARIANTS} is the most", all.len())));
        }
        let mut names: Vec<String> = Vec::new();
        for (variant, _) in &all {
            check_folder_name(&variant.name).map_err(bad)?;
            let lower = variant.name.to_lowercase();
            if names.contains(&lower) {
                return Err(bad(format!("two variants have the name '{}'", variant.name)));
            }
            names.push(lower);
        }
        Ok(all)
    }
}

/// The variants of a grid; the last axis varies fastest.
fn combinations(grid: &Grid) -> Vec<Member> {
    let mut paths: Vec<Vec<(String, Choice)>> = vec![Vec::new()];
    for axis in &grid.axes {
        let choices = choices(axis);
        let extend = |path: &Vec<(String, Choice)>| {
            let longer = |c: &Choice| [path.clone(), vec![(axis.name.clone(), c.clone())]].concat();
            choices.iter().map(longer).collect::<Vec<_>>()
        };
        paths = paths.iter().flat_map(extend).collect();
    }
    let variant = |path: Vec<(String, Choice)>| {
        let names = path.iter().map(|(_, c)| c.name.as_str());
        let name = Some(grid.name.as_str()).filter(|n| !n.is_empty()).into_iter().chain(names);
        let labels: Vec<&str> = path.iter().map(|(_, c)| c.label.as_str()).collect();
        let mut set = grid.set.clone();
        set.extend(path.iter().flat_map(|(_, c)| c.set.clone()));
        let variant = Variant {
            name: name.collect::<Vec<_>>().join("-"),
            label: labels.join(", "),
            set,
            scales: BTreeMap::new(),
        };
        (variant, path.into_iter().collect())
    };
    paths.into_iter().map(variant).collect()
}

fn choices(axis: &Axis) -> Vec<Choice> {
    let label = if axis.label.is_empty() { &axis.name } else { &axis.label };
    let number = |value: &f64| Choice {
        axis: label.clone(),
        name: format!("{}{value}", axis.name),
        label: format!("{} = {value}", axis.name),
        value: Some(*value),
        set: axis.set.iter().map(|s| s.replace("{}", &value.to_string())).collect(),
    };
    let named = |option: &crate::file::AxisOption| Choice {
        axis: label.clone(),
        name: option.name.clone(),
        label: if option.label.is_empty() { option.name.clone() } else { option.label.clone() },
        value: option.value,
        set: option.set.clone(),
    };
    axis.values.iter().map(number).chain(axis.options.iter().map(named)).collect()
}

/// Results are masses, means and KL divergences: data and model must have them.
fn check_mixtures(config: &Config, origin: &str) -> Result<(), ExperimentError> {
    let reason = match (&config.data, &config.model) {
        (DataConfig::File { .. } | DataConfig::Images(_), _) => {
            "an experiment needs data.kind = \"mixture\", whose truth is known"
        }
        (_, ModelConfig::Gaussian { .. } | ModelConfig::Network(_)) => {
            "an experiment needs model.kind = \"mixture\""
        }
        (DataConfig::Mixture { means, .. }, ModelConfig::Mixture { modes, .. }) if *modes < means.len() => {
            "the model needs at least as many modes as the data"
        }
        _ => return Ok(()),
    };
    Err(ExperimentError::Option(format!("{origin}: {reason}")))
}

impl PlannedVariant {
    /// Configuration of run `r`, counted from zero.
    pub fn config_of(&self, r: usize, threads: usize) -> Config {
        let mut config = self.config.clone();
        config.seed += r as u64;
        config.run.threads = threads;
        config
    }
}

impl Plan {
    /// Whether figures and criteria speak of variants and axes that exist.
    fn check_references(&self, origin: &str) -> Result<(), ExperimentError> {
        let bad = |reason: String| ExperimentError::Invalid { origin: origin.into(), reason };
        for (i, criterion) in self.resolved.criteria.iter().enumerate() {
            let place = format!("criterion {} (\"{}\")", i + 1, criterion.claim);
            for (key, patterns) in [("variants", &criterion.variants), ("versus", &criterion.versus)] {
                self.check_patterns(patterns).map_err(|e| bad(format!("{place}: {key}: {e}")))?;
            }
        }
        for figure in &self.resolved.figures {
            for panel in &figure.panels {
                let place = format!("figure \"{}\", panel \"{}\"", figure.name, panel.title);
                for (key, patterns) in [("variants", &panel.variants), ("companions", &panel.companions)] {
                    self.check_patterns(patterns).map_err(|e| bad(format!("{place}: {key}: {e}")))?;
                }
                for (key, axis) in [("x", panel.axis()), ("split", panel.split_axis())] {
                    let known = |v: &PlannedVariant| axis.is_none_or(|a| v.choices.contains_key(a));
                    if !self.variants.iter().any(known) {
                        let axis = axis.unwrap_or_default();
                        return Err(bad(format!(
                            "{place}: {key} = \"{axis}\": no [[grid.axis]] has this name"
                        )));
                    }
                }
            }
        }
        Ok(())
    }

    fn check_patterns(&self, patterns: &[String]) -> Result<(), String> {
        let lost = |p: &&String| !self.variants.iter().any(|v| matches(p, &v.name));
        match patterns.iter().find(lost) {
            None => Ok(()),
            Some(pattern) => {
                let names: Vec<&str> = self.variants.iter().map(|v| v.name.as_str()).take(12).collect();
                Err(format!("no variant is called \"{pattern}\"; there are {}", names.join(", ")))
            }
        }
    }
}

/// Whether a name fits a pattern, in which `*` stands for anything.
pub fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, rest)) => name.strip_prefix(head).is_some_and(|tail| {
            (0..=tail.len()).filter(|&i| tail.is_char_boundary(i)).any(|i| matches(rest, &tail[i..]))
        }),
    }
}

/// Whether a name fits one of the patterns; all do if there are none.
pub fn selects(patterns: &[String], name: &str) -> bool {
    patterns.is_empty() || patterns.iter().any(|p| matches(p, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_match_anything() {
        assert!(matches("jar*-h0.1", "jarzynski-h0.1") && matches("*", "") && matches("a*b*c", "a-b-b-c"));
        assert!(!matches("jar", "jarzynski") && !matches("*x", "y") && !matches("a*b", "ac"));
        assert!(selects(&[], "anything") && !selects(&["a".into()], "b"));
    }
}
