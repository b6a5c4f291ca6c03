//! `jarz data`: data sets known by name.

use super::print_json;
use crate::args::{DataArgs, DataCommand, DataGetArgs};
use crate::error::CliError;
use crate::ui::{Transfer, Ui};
use jarz_data::{KNOWN_SETS, KnownSet, cache_folder};
use jarz_fetch::{FetchError, Outcome, Request, Source};
use std::path::{Path, PathBuf};

/// Runs the sub-command.
pub fn data(args: DataArgs, ui: &Ui) -> Result<(), CliError> {
    match args.command {
        DataCommand::Get(args) => get(args, ui),
        DataCommand::List { cache } => list(&folder(cache)?, ui),
    }
}

fn folder(cache: Option<PathBuf>) -> Result<PathBuf, CliError> {
    Ok(cache.map_or_else(cache_folder, Ok)?)
}

fn get(args: DataGetArgs, ui: &Ui) -> Result<(), CliError> {
    let Some(set) = KnownSet::by_name(&args.name) else {
        let names: Vec<&str> = KNOWN_SETS.iter().map(|set| set.name).collect();
        let text = format!("there is no data set '{}': choose one of {}", args.name, names.join(", "));
        return Err(CliError::Message(text));
    };
    let cache = folder(args.cache)?;
    let request = Request { cache: cache.clone(), from: args.from, mirror: args.mirror };
    let mut transfer = Transfer::new(ui);
    let outcome = jarz_fetch::get(set, &Source::of(set), &request, &mut transfer);
    drop(transfer);
    let outcome = outcome.map_err(|e| match e {
        FetchError::Stopped { .. } => CliError::Interrupted(e.to_string()),
        other => other.into(),
    })?;
    let how = match outcome {
        Outcome::Cached => "was cached already".to_string(),
        Outcome::Copied(from) => format!("copied from '{}'", from.display()),
        Outcome::Downloaded(url) => format!("downloaded from {url}"),
        Outcome::Package(name) => format!("taken from the package {name}"),
    };
    let path = set.folder(&cache);
    if ui.json {
        return print_json(&serde_json::json!({ "set": set.name, "folder": path, "how": how }));
    }
    println!("{}: {how}; all {} files verified, in '{}'", set.name, set.files.len(), path.display());
    Ok(())
}

fn list(cache: &Path, ui: &Ui) -> Result<(), CliError> {
    let rows: Vec<(&KnownSet, &str)> = KNOWN_SETS.iter().map(|set| (*set, state(set, cache))).collect();
    if ui.json {
        let row = |(set, state): &(&KnownSet, &str)| {
            serde_json::json!({
                "set": set.name, "title": set.title, "state": state, "bytes": set.bytes(), "folder": set.folder(cache),
            })
        };
        let sets: Vec<_> = rows.iter().map(row).collect();
        return print_json(&serde_json::json!({ "cache": cache, "sets": sets }));
    }
    println!("cache: {}", cache.display());
    println!("  {:<14} {:<11} {:>7}  handwritten digits, 8x8 grey, 1797 images", "digits", "embedded", "");
    for (set, state) in rows {
        let size = format!("{} MB", (set.bytes() + 500_000) / 1_000_000);
        println!("  {:<14} {state:<11} {size:>7}  {}", set.name, set.title);
    }
    Ok(())
}

/// What the cache holds of a set. The sums are checked: a file that only looks right is not called cached.
fn state(set: &KnownSet, cache: &Path) -> &'static str {
    let folder = set.folder(cache);
    let holds_something = std::fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_some());
    let damaged = |file: &&jarz_data::KnownFile| {
        let path = folder.join(file.name);
        path.exists() && set.check(file, &path).is_err()
    };
    match set.check_all(cache) {
        Ok(()) => "cached",
        Err(_) if set.files.iter().any(|file| damaged(&file)) => "damaged",
        Err(_) if holds_something => "incomplete",
        Err(_) => "not cached",
    }
}
