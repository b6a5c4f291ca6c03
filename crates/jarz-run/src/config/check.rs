//! Reading a configuration, changing single keys, and checking what can be checked before the data is read.

use super::{
    Config, ConfigError, DataConfig, KernelName, ModelConfig, OptimizerName, RelayConfig, TriggerName,
};
use jarz_net::BaseKind;
use std::path::Path;

fn bad(key: &'static str, value: impl ToString, reason: impl Into<String>) -> ConfigError {
    ConfigError::Value { key, value: value.to_string(), reason: reason.into() }
}

impl Config {
    /// Reads and checks a file, with `key=value` changes on top.
    pub fn load(path: &Path, changes: &[String]) -> Result<Self, ConfigError> {
        let unreadable =
            |e: std::io::Error| ConfigError::Unreadable { path: path.into(), reason: e.to_string() };
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        Config::parse(&text, &format!("'{}'", path.display()), changes)
    }

    /// Parses and checks a text; `origin` names it in errors.
    pub fn parse(text: &str, origin: &str, changes: &[String]) -> Result<Self, ConfigError> {
        let invalid = |reason: String| ConfigError::Invalid { origin: origin.into(), reason };
        let config: Config = if changes.is_empty() {
            toml::from_str(text).map_err(|e| invalid(e.to_string()))?
        } else {
            let mut table: toml::Table = text.parse().map_err(|e: toml::de::Error| invalid(e.to_string()))?;
            for change in changes {
                set(&mut table, change)?;
            }
            let origin = format!("{origin} with {}", changes.join(", "));
            table
                .try_into()
                .map_err(|e: toml::de::Error| ConfigError::Invalid { origin, reason: e.to_string() })?
        };
        config.check()?;
        Ok(config)
    }

    /// As TOML.
    pub fn to_toml(&self) -> Result<String, ConfigError> {
        toml::to_string(self).map_err(|e| ConfigError::Invalid {
            origin: "the resolved configuration".into(),
            reason: e.to_string(),
        })
    }

    /// Everything that can be checked without looking at the data.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.seed > i64::MAX as u64 {
            return Err(bad("seed", self.seed, "must be below 2^63"));
        }
        match &self.data {
            DataConfig::File { batch, delimiter, .. } => {
                if let Some(other) = delimiter.filter(|c| !c.is_ascii()) {
                    return Err(bad("data.delimiter", other, "must be an ASCII character"));
                }
                if *batch == Some(0) {
                    return Err(bad("data.batch", 0, "must be at least 1 (leave it out to use all points)"));
                }
            }
            DataConfig::Mixture { points, dim, means, masses, sigma, batch, .. } => {
                if *points == 0 || *dim == 0 {
                    return Err(bad("data.points", points, "points and dim must be at least 1"));
                }
                if points.checked_mul(*dim).is_none_or(|size| size > 1 << 40) {
                    return Err(bad("data.points", points, "points times dim is too large"));
                }
                if batch.is_some_and(|b| b == 0 || b > *points) {
                    return Err(bad("data.batch", format!("{batch:?}"), format!("must be 1 to {points}")));
                }
                positive("data.sigma", *sigma)?;
                check_modes("data.means", "data.masses", means, masses, means.len(), Some(*dim))?;
                if means.is_empty() || masses.len() != means.len() {
                    let reason = "needs one mean and one mass for every mode";
                    return Err(bad("data.masses", format!("{masses:?}"), reason));
                }
            }
            DataConfig::Images(_) => {}
        }
        if let DataConfig::Images(images) = &self.data {
            if !(images.noise >= 0.0 && images.noise.is_finite()) {
                return Err(bad("data.noise", images.noise, "must be zero or positive"));
            }
            if images.copies == 0 || images.copies > 10_000 {
                return Err(bad("data.copies", images.copies, "must be 1 to 10000"));
            }
            if images.batch == Some(0) {
                return Err(bad("data.batch", 0, "must be at least 1 (leave it out to use all images)"));
            }
        }
        match &self.model {
            ModelConfig::Network(network) => {
                if let BaseKind::Mixture(count) = network.base
                    && !(2..=64).contains(&count)
                {
                    let why = "must be 2 to 64 Gaussians (\"full\" is one)";
                    return Err(bad("model.base", format!("{{ mixture = {count} }}"), why));
                }
                match (&network.network, network.layers.is_empty()) {
                    (Some(_), false) => {
                        return Err(bad(
                            "model.layers",
                            "[...]",
                            "give either layers or the name of a network",
                        ));
                    }
                    (None, true) => {
                        let reason = "give layers, or network = \"mnist\" or \"cifar\"";
                        return Err(bad("model.layers", "[]", reason));
                    }
                    _ => {}
                }
                if let Some(name) = &network.network
                    && !["mnist", "cifar"].contains(&name.as_str())
                {
                    return Err(bad("model.network", name, "must be \"mnist\" or \"cifar\""));
                }
                if network.width.is_some_and(|w| w == 0 || w > 4096) {
                    let value = format!("{:?}", network.width);
                    return Err(bad("model.width", value, "must be 1 to 4096"));
                }
                if network.width.is_some() && network.network.as_deref() != Some("cifar") {
                    return Err(bad("model.width", "...", "only the network \"cifar\" has a width"));
                }
            }
            ModelConfig::Mixture { modes, sigma, epsilon, means, masses, .. } => {
                if *modes == 0 || *modes > 1_000_000 {
                    return Err(bad("model.modes", modes, "must be 1 to 1000000"));
                }
                positive("model.sigma", *sigma)?;
                if !(*epsilon >= 0.0 && epsilon.is_finite()) {
                    return Err(bad("model.epsilon", epsilon, "must be zero or positive"));
                }
                check_modes("model.means", "model.masses", means, masses, *modes, None)?;
            }
            ModelConfig::Gaussian { mean, precision } => {
                positive("model.precision", *precision)?;
                if mean.iter().any(|m| !m.is_finite()) {
                    return Err(bad("model.mean", format!("{mean:?}"), "must be finite numbers"));
                }
            }
        }
        let walkers = self.walkers.count;
        if !(2..1 << 40).contains(&walkers) {
            return Err(bad("walkers.count", walkers, "must be at least 2"));
        }
        let witnesses = self.walkers.witnesses;
        if witnesses == 1 || witnesses >= 1 << 40 {
            return Err(bad("walkers.witnesses", witnesses, "must be 0 or at least 2"));
        }
        if witnesses > 0 && !self.algorithm.kind.algorithm().is_weighted() {
            let why = "judge by their weights, which this algorithm does not have: take 0, or algorithm.kind = \"jarzynski\"";
            return Err(bad("walkers.witnesses", witnesses, why));
        }
        if let Some(batch) = self.walkers.batch
            && (batch == 0 || batch > walkers)
        {
            return Err(bad("walkers.batch", batch, format!("must be 1 to walkers.count = {walkers}")));
        }
        if let Some(augment) = &self.walkers.augment {
            augment.augmentation().check().map_err(|e| bad("walkers.augment", "{ ... }", e.to_string()))?;
            if self.algorithm.kind.algorithm().is_weighted() {
                let why =
                    "would make the walkers' weights wrong: leave it out, or take algorithm.kind = \"pcd\"";
                return Err(bad("walkers.augment", "{ ... }", why));
            }
            let images = matches!(self.data, DataConfig::Images(_));
            if !images || !matches!(self.model, ModelConfig::Network(_)) {
                let why = "is for networks on images: data.kind = \"images\" and model.kind = \"network\"";
                return Err(bad("walkers.augment", "{ ... }", why));
            }
        }
        if let Some(RelayConfig { keepers, every, rest }) = &self.walkers.relay {
            if !(2..1 << 40).contains(keepers) {
                return Err(bad("walkers.relay.keepers", keepers, "must be at least 2"));
            }
            if *every == 0 {
                return Err(bad("walkers.relay.every", 0, "must be at least 1"));
            }
            positive("walkers.relay.rest", *rest)?;
            if !self.algorithm.kind.algorithm().is_weighted() {
                let why = "is for walkers with weights: leave it out, or take algorithm.kind = \"jarzynski\"";
                return Err(bad("walkers.relay", "{ ... }", why));
            }
            if self.walkers.batch.is_some() {
                let why = "needs walkers that all move: leave out walkers.batch, or this";
                return Err(bad("walkers.relay", "{ ... }", why));
            }
        }
        self.check_dynamics()
    }

    fn check_dynamics(&self) -> Result<(), ConfigError> {
        let (kernel, optimizer, resampling) = (&self.kernel, &self.optimizer, &self.resampling);
        positive("kernel.step_size", kernel.step_size)?;
        if kernel.steps == 0 || kernel.steps > 100_000 {
            return Err(bad("kernel.steps", kernel.steps, "must be 1 to 100000"));
        }
        if let (Some(norm), Some(_)) = (kernel.clip_norm, kernel.clip_component) {
            return Err(bad("kernel.clip_norm", norm, "give either clip_norm or clip_component"));
        }
        for (key, value) in [
            ("kernel.friction", kernel.friction),
            ("kernel.clip_norm", kernel.clip_norm),
            ("kernel.clip_component", kernel.clip_component),
            ("optimizer.clip_norm", optimizer.clip_norm),
            ("optimizer.trust_region", optimizer.trust_region),
            ("optimizer.average", optimizer.average),
            ("optimizer.delay", optimizer.delay),
            ("optimizer.epsilon", optimizer.epsilon),
        ] {
            value.map_or(Ok(()), |v| positive(key, v))?;
        }
        if let Some(friction) = kernel.friction.filter(|_| kernel.kind != KernelName::Ghmc) {
            return Err(bad(
                "kernel.friction",
                friction,
                "is for walkers with momentum: kernel.kind = \"ghmc\"",
            ));
        }
        if let Some(adapt) = &kernel.adapt {
            if kernel.schedule.is_some() {
                return Err(bad("kernel.adapt", "...", "give either kernel.adapt or kernel.schedule"));
            }
            if !(adapt.target > 0.0 && adapt.target < 1.0) {
                return Err(bad("kernel.adapt.target", adapt.target, "must be between 0 and 1"));
            }
            positive("kernel.adapt.gain", adapt.gain)?;
            positive("kernel.adapt.min", adapt.min)?;
            if !(adapt.max >= adapt.min && adapt.max.is_finite()) {
                return Err(bad("kernel.adapt.max", adapt.max, "must not be below kernel.adapt.min"));
            }
        }
        for (key, schedule) in
            [("kernel.schedule.end", &kernel.schedule), ("optimizer.schedule.end", &optimizer.schedule)]
        {
            if let Some(s) = schedule {
                let smallest = if key.starts_with("kernel") { f64::MIN_POSITIVE } else { 0.0 };
                if !(s.end >= smallest && s.end.is_finite()) {
                    return Err(bad(key, s.end, "is the last value as a fraction of the first: positive"));
                }
            }
        }
        for (key, beta) in [("optimizer.beta1", optimizer.beta1), ("optimizer.beta2", optimizer.beta2)] {
            if let Some(beta) = beta
                && !(0.0..1.0).contains(&beta)
            {
                return Err(bad(key, beta, "must be at least 0 and below 1"));
            }
        }
        let natural = [("optimizer.damping", optimizer.damping), ("optimizer.prior", optimizer.prior)];
        for (key, value) in natural {
            if let Some(value) = value
                && optimizer.kind != OptimizerName::Natural
            {
                return Err(bad(key, value, "is for the natural gradient: optimizer.kind = \"natural\""));
            }
        }
        if let Some(damping) = optimizer.damping {
            positive("optimizer.damping", damping)?;
        }
        if let Some(prior) = optimizer.prior {
            positive("optimizer.prior", prior)?;
        }
        for (name, rate) in &optimizer.rates {
            if !(*rate >= 0.0 && rate.is_finite()) {
                return Err(bad(
                    "optimizer.rates",
                    format!("{{ {name} = {rate} }}"),
                    "rates must be zero or positive",
                ));
            }
        }
        let thresholds = resampling.thresholds.iter().map(|t| t.1).chain([resampling.threshold]);
        for c in thresholds {
            if !(0.0..=1.0).contains(&c) {
                return Err(bad("resampling.threshold", c, "is a fraction of the walkers: 0 to 1"));
            }
        }
        match (resampling.trigger, resampling.every) {
            (TriggerName::Every, None | Some(0)) => {
                return Err(bad(
                    "resampling.every",
                    "(none)",
                    "the trigger 'every' needs every = N, at least 1",
                ));
            }
            (TriggerName::Ess | TriggerName::Entropy | TriggerName::Never, Some(lag)) => {
                return Err(bad("resampling.every", lag, "goes with trigger = \"every\" only"));
            }
            _ => {}
        }
        if self.run.log_every == 0 || self.run.checkpoint_every == Some(0) {
            return Err(bad(
                "run.log_every",
                self.run.log_every,
                "log_every and checkpoint_every must be at least 1",
            ));
        }
        if self.run.iterations > 1 << 39 {
            return Err(bad("run.iterations", self.run.iterations, "is too large"));
        }
        if self.run.threads > 4096 {
            return Err(bad("run.threads", self.run.threads, "must be at most 4096"));
        }
        if self.run.runs == 0 || self.run.runs > 9999 {
            return Err(bad("run.runs", self.run.runs, "must be 1 to 9999"));
        }
        positive("run.checkpoint_seconds", self.run.checkpoint_seconds)
    }
}

fn positive(key: &'static str, value: f64) -> Result<(), ConfigError> {
    if value > 0.0 && value.is_finite() { Ok(()) } else { Err(bad(key, value, "must be a positive number")) }
}

fn check_modes(
    means_key: &'static str,
    masses_key: &'static str,
    means: &[Vec<f64>],
    masses: &[f64],
    modes: usize,
    dim: Option<usize>,
) -> Result<(), ConfigError> {
    if !means.is_empty() && means.len() != modes {
        return Err(bad(means_key, format!("{} of them", means.len()), format!("there are {modes} modes")));
    }
    if means.iter().any(|m| m.iter().any(|v| !v.is_finite()) || dim.is_some_and(|d| m.len() > d)) {
        let limit = dim.map_or(String::new(), |d| format!(", at most {d} per mean"));
        return Err(bad(means_key, format!("{means:?}"), format!("must be finite numbers{limit}")));
    }
    if !masses.is_empty() && masses.len() != modes {
        return Err(bad(masses_key, format!("{masses:?}"), format!("there are {modes} modes")));
    }
    if masses.iter().any(|m| !(*m > 0.0 && m.is_finite())) {
        return Err(bad(masses_key, format!("{masses:?}"), "masses must be positive"));
    }
    Ok(())
}

/// Applies `a.b.c=value` to a table; the value is TOML, or a plain word taken as a string.
fn set(table: &mut toml::Table, change: &str) -> Result<(), ConfigError> {
    let invalid =
        |reason: &str| ConfigError::Invalid { origin: format!("--set {change}"), reason: reason.into() };
    let (key, value) =
        change.split_once('=').ok_or_else(|| invalid("it should look like kernel.step_size=0.05"))?;
    let value = value.trim();
    let parsed = format!("v = {value}").parse::<toml::Table>().ok().and_then(|mut t| t.remove("v"));
    let value = parsed.unwrap_or_else(|| toml::Value::String(value.to_string()));
    let mut path: Vec<&str> = key.trim().split('.').collect();
    // Group names have dots of their own: `optimizer.rates.mean.0`.
    if path.len() > 3 && path[..2] == ["optimizer", "rates"] {
        let start = key.find("rates.").map_or(0, |i| i + "rates.".len());
        path = vec!["optimizer", "rates", key[start..].trim()];
    }
    let Some((last, parents)) = path.split_last() else { return Err(invalid("there is no key")) };
    if path.iter().any(|part| part.is_empty()) {
        return Err(invalid("the key has an empty part"));
    }
    let mut at = table;
    for part in parents {
        let entry = at.entry(part.to_string()).or_insert_with(|| toml::Value::Table(toml::Table::new()));
        at = entry.as_table_mut().ok_or_else(|| invalid(&format!("'{part}' is not a section")))?;
    }
    at.insert(last.to_string(), value);
    Ok(())
}
