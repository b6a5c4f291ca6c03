//! In which keys configurations differ.

use jarz_run::Config;
use std::collections::{BTreeMap, BTreeSet};

/// What stands where a configuration has no such key.
const NONE: &str = "—";

/// The keys in which some configurations differ, each with the values in their order.
pub(super) fn differences(configs: &[&Config]) -> Vec<(String, Vec<String>)> {
    let flat: Vec<BTreeMap<String, String>> = configs.iter().map(|c| flattened(c)).collect();
    let keys: BTreeSet<&String> = flat.iter().flat_map(BTreeMap::keys).collect();
    let values = |key: &String| -> Vec<String> {
        flat.iter().map(|f| f.get(key).map_or(NONE.to_string(), Clone::clone)).collect()
    };
    let all = keys.into_iter().map(|key| (key.clone(), values(key)));
    all.filter(|(_, values)| values.iter().any(|v| *v != values[0])).collect()
}

/// Dotted keys with their values.
fn flattened(config: &Config) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    if let Ok(toml::Value::Table(table)) = toml::Value::try_from(config) {
        flatten("", &table, &mut out);
    }
    out
}

fn flatten(prefix: &str, table: &toml::Table, out: &mut BTreeMap<String, String>) {
    for (key, value) in table {
        let key = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value {
            toml::Value::Table(inner) => flatten(&key, inner, out),
            toml::Value::String(text) => {
                out.insert(key, text.clone());
            }
            other => {
                out.insert(key, other.to_string());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_listed() {
        let base = "[data]\nkind = \"mixture\"\npoints = 10\ndim = 2\nmeans = [[1.0], [2.0]]\nmasses = [0.5, 0.5]\n\
                    [model]\nkind = \"mixture\"\nmodes = 2\n";
        let with = |changes: &[&str]| {
            let changes: Vec<String> = changes.iter().map(|c| c.to_string()).collect();
            Config::parse(base, "test", &changes).unwrap()
        };
        let (a, b) = (with(&[]), with(&["seed=9", "kernel.clip_norm=2.5", "kernel.kind=mala"]));
        assert!(differences(&[&a, &a]).is_empty());
        let found = differences(&[&a, &b, &a]);
        let row = |key: &str, values: [&str; 3]| (key.to_string(), values.map(String::from).to_vec());
        let expected = [
            row("kernel.clip_norm", [NONE, "2.5", NONE]),
            row("kernel.kind", ["ula", "mala", "ula"]),
            row("seed", ["1", "9", "1"]),
        ];
        assert_eq!(found, expected);
    }
}
