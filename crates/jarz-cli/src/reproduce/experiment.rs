//! Experiment files: a base configuration, variants of it, and scales to run them at.

use crate::error::CliError;
use jarz_run::Config;
use jarz_run::config::{DataConfig, ModelConfig};
use jarz_run::files::FileError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Experiments that come with the program: name and file.
const BUILT_IN: [(&str, &str); 1] = [("gmm", include_str!("../../../../experiments/gmm.toml"))];

/// Most runs of one experiment.
const MAX_RUNS: usize = 10_000;

/// How large an experiment is run.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// A few minutes on a laptop
    #[default]
    Quick,
    /// The numbers of the paper: hours
    Paper,
}

impl Scale {
    /// Name in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Scale::Quick => "quick",
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
    /// What the paper says.
    #[serde(default)]
    pub paper: String,
    /// Changes and number of runs of each scale.
    #[serde(default, rename = "scale")]
    pub scales: BTreeMap<Scale, ScaleChanges>,
    /// Configuration that all variants share.
    pub base: toml::Table,
    /// What is compared.
    #[serde(rename = "variant")]
    pub variants: Vec<Variant>,
}

/// What a scale changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScaleChanges {
    /// Runs of every variant, with different seeds.
    pub runs: Option<usize>,
    /// Changes of the configuration, `key=value`.
    pub set: Vec<String>,
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
#[derive(Clone, Debug)]
pub struct PlannedVariant {
    /// Name of its folder and in the results.
    pub name: String,
    /// Name in figures.
    pub label: String,
    /// Configuration of the first run; the others differ in the seed.
    pub config: Config,
}

/// Names and titles of the experiments that come with the program.
pub fn built_in() -> Vec<(String, String)> {
    let title = |text: &str| toml::from_str::<Experiment>(text).map(|e| e.title).unwrap_or_default();
    BUILT_IN.iter().map(|(name, text)| (name.to_string(), title(text))).collect()
}

/// Reads an experiment by built-in name or path.
pub fn load(name: &str) -> Result<Experiment, CliError> {
    if let Some((name, text)) = BUILT_IN.iter().find(|(n, _)| *n == name) {
        return parse(text, name, &format!("experiment '{name}'"));
    }
    let path = Path::new(name);
    if !path.is_file() {
        let names: Vec<_> = BUILT_IN.iter().map(|(n, _)| *n).collect();
        return Err(CliError::Message(format!(
            "there is no experiment '{name}': give {} or the path of an experiment file",
            names.join(", ")
        )));
    }
    let text = std::fs::read_to_string(path).map_err(FileError::at("read", path))?;
    let stem = path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
    parse(&text, &stem, &format!("'{name}'"))
}

/// Parses and checks an experiment; `stem` names it if it does not do so itself.
pub fn parse(text: &str, stem: &str, origin: &str) -> Result<Experiment, CliError> {
    let bad = |reason: String| CliError::Message(format!("{origin} is not a valid experiment:\n{reason}"));
    let mut experiment: Experiment = toml::from_str(text).map_err(|e| bad(e.to_string()))?;
    let name = experiment.name.get_or_insert_with(|| stem.to_string()).clone();
    if !is_plain(&name) {
        let reason = "must be letters, digits, '-' or '_', because it names files";
        return Err(bad(format!("name = \"{name}\": {reason}")));
    }
    if experiment.variants.is_empty() {
        return Err(bad("it has no [[variant]]".into()));
    }
    for (i, variant) in experiment.variants.iter_mut().enumerate() {
        if !is_plain(&variant.name) || variant.name == "figures" {
            let reason = "must be letters, digits, '-' or '_' and not 'figures', because it names a folder";
            return Err(bad(format!("name = \"{}\" of variant {}: {reason}", variant.name, i + 1)));
        }
        if variant.label.is_empty() {
            variant.label = variant.name.clone();
        }
    }
    let names: Vec<String> = experiment.variants.iter().map(|v| v.name.to_lowercase()).collect();
    if let Some(twice) = (1..names.len()).find(|&i| names[..i].contains(&names[i])) {
        return Err(bad(format!("two variants have the name '{}'", names[twice])));
    }
    let of_variants =
        experiment.variants.iter().flat_map(|v| v.set.iter().chain(v.scales.values().flatten()));
    let mut changes = of_variants.chain(experiment.scales.values().flat_map(|s| &s.set));
    if changes.any(|c| c.split('=').next().is_some_and(|key| key.trim() == "seed")) {
        return Err(bad("the seed is the same for all variants: give it as 'seed' in [base]".into()));
    }
    Ok(experiment)
}

fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 100
        && !name.starts_with('-')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

impl Experiment {
    /// Chooses scale, runs and seed, and builds all configurations.
    pub fn plan(mut self, scale: Scale, runs: Option<usize>, seed: Option<u64>) -> Result<Plan, CliError> {
        let name = self.name.clone().unwrap_or_default();
        let origin = format!("experiment '{name}'");
        let of_scale = match (self.scales.remove(&scale), scale) {
            (Some(changes), _) => changes,
            (None, Scale::Quick) => ScaleChanges::default(),
            (None, Scale::Paper) => {
                return Err(CliError::Message(format!("{origin} has no [scale.paper]; leave out --scale")));
            }
        };
        let runs = runs.or(of_scale.runs).unwrap_or(1);
        if runs == 0 || runs > MAX_RUNS {
            return Err(CliError::Message(format!("--runs {runs}: must be 1 to {MAX_RUNS}")));
        }
        let text = |table: &toml::Table| {
            toml::to_string(table).map_err(|e| CliError::Message(format!("{origin}: [base]: {e}")))
        };
        if let Some(seed) = seed {
            let value = i64::try_from(seed)
                .map_err(|_| CliError::Message(format!("--seed {seed}: must be below 2^63")))?;
            self.base.insert("seed".into(), toml::Value::Integer(value));
        }
        let base = Config::parse(&text(&self.base)?, &format!("[base] of {origin}"), &of_scale.set)
            .map_err(jarz_run::RunError::from)?;
        let seed = base.seed;
        if seed.checked_add(runs as u64).is_none_or(|last| last > i64::MAX as u64) {
            return Err(CliError::Message(format!("--seed {seed}: too large for {runs} runs")));
        }
        self.base.insert("seed".into(), toml::Value::Integer(seed as i64));
        let text = text(&self.base)?;
        let mut variants = Vec::new();
        for variant in &mut self.variants {
            let further = std::mem::take(&mut variant.scales).remove(&scale).unwrap_or_default();
            variant.set.extend(further);
            let origin = format!("variant '{}' of {origin}", variant.name);
            let changes = [of_scale.set.clone(), variant.set.clone()].concat();
            let config = Config::parse(&text, &origin, &changes).map_err(jarz_run::RunError::from)?;
            check_mixtures(&config, &origin)?;
            if config.run.runs != 1 {
                let text = "leave out run.runs: the number of runs is 'runs' in [scale.quick] or [scale.paper], or --runs";
                return Err(CliError::Message(format!("{origin}: {text}")));
            }
            variants.push(PlannedVariant {
                name: variant.name.clone(),
                label: variant.label.clone(),
                config,
            });
        }
        self.scales = BTreeMap::from([(scale, ScaleChanges { runs: Some(runs), ..of_scale })]);
        Ok(Plan { name, resolved: self, scale, runs, seed, variants })
    }

    /// As an experiment file.
    pub fn to_toml(&self) -> Result<String, CliError> {
        toml::to_string(self).map_err(|e| CliError::Message(format!("the experiment cannot be written: {e}")))
    }
}

/// Results are masses, means and KL divergences: data and model must have them.
fn check_mixtures(config: &Config, origin: &str) -> Result<(), CliError> {
    let reason = match (&config.data, &config.model) {
        (DataConfig::File { .. }, _) => "an experiment needs data.kind = \"mixture\", whose truth is known",
        (_, ModelConfig::Gaussian { .. }) => "an experiment needs model.kind = \"mixture\"",
        (DataConfig::Mixture { means, .. }, ModelConfig::Mixture { modes, .. }) if *modes < means.len() => {
            "the model needs at least as many modes as the data"
        }
        _ => return Ok(()),
    };
    Err(CliError::Message(format!("{origin}: {reason}")))
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
