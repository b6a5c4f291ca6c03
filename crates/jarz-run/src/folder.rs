//! A run folder: what is in it, and who may write to it.

use crate::config::Config;
use crate::error::RunError;
use crate::files::{FileError, write_atomic};
use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};

/// Entries that belong to a run; nothing else is ever removed.
const ENTRIES: [&str; 9] = [
    "run.toml",
    "metrics.jsonl",
    "summary.json",
    "evaluate.json",
    "checkpoints",
    "figures",
    "report.html",
    "runs",
    "tensorboard",
];
const LOCK: &str = ".lock";

/// The folder of one run, locked against other processes while this value lives.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    _lock: File,
}

impl RunFolder {
    /// Makes a folder for a new run. An existing run is overwritten only if `force` says so, and a folder that holds anything else never.
    pub fn create(path: &Path, force: bool) -> Result<Self, RunError> {
        let run = is_run(path);
        if run && !force {
            return Err(RunError::Exists { folder: path.into() });
        }
        fs::create_dir_all(path).map_err(FileError::at("create the folder", path))?;
        let mut entries = fs::read_dir(path).map_err(FileError::at("read the folder", path))?;
        let foreign = entries.any(|e| e.is_ok_and(|e| e.file_name() != LOCK));
        if foreign && !run {
            return Err(RunError::Foreign { folder: path.into() });
        }
        let folder = RunFolder { path: path.into(), _lock: lock(path)? };
        for name in ENTRIES {
            let entry = path.join(name);
            let removed = match fs::symlink_metadata(&entry) {
                Err(_) => Ok(()),
                Ok(meta) if meta.is_dir() => fs::remove_dir_all(&entry),
                Ok(_) => fs::remove_file(&entry),
            };
            removed.map_err(FileError::at("remove", &entry))?;
        }
        Ok(folder)
    }

    /// Opens the folder of an existing run for writing.
    pub fn open(path: &Path) -> Result<Self, RunError> {
        if !is_run(path) {
            return Err(RunError::NotARun { folder: path.into(), missing: "run.toml" });
        }
        Ok(RunFolder { path: path.into(), _lock: lock(path)? })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A file or folder in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes the resolved configuration.
    pub fn write_config(&self, config: &Config) -> Result<(), RunError> {
        let head = format!(
            "# The complete configuration of this run, made by jarz {}.\n# 'jarz train run.toml --out ELSEWHERE' repeats it.\n\n",
            env!("CARGO_PKG_VERSION")
        );
        let text = head + &config.to_toml()?;
        Ok(write_atomic(self.file("run.toml"), text.as_bytes())?)
    }

    /// Writes a JSON file.
    pub fn write_json(&self, name: &str, value: &impl serde::Serialize) -> Result<(), RunError> {
        let text = serde_json::to_string_pretty(value)
            .map_err(|e| RunError::Impossible(format!("{name} cannot be written as JSON: {e}")))?;
        Ok(write_atomic(self.file(name), (text + "\n").as_bytes())?)
    }
}

/// Whether a folder holds a run.
pub fn is_run(path: &Path) -> bool {
    path.join("run.toml").is_file()
}

/// The configuration of a run folder.
pub fn read_config(path: &Path) -> Result<Config, RunError> {
    if !path.is_dir() {
        return Err(RunError::Impossible(format!("there is no folder '{}'", path.display())));
    }
    if !is_run(path) {
        return Err(RunError::NotARun { folder: path.into(), missing: "run.toml" });
    }
    Ok(Config::load(&path.join("run.toml"), &[])?)
}

fn lock(path: &Path) -> Result<File, RunError> {
    let name = path.join(LOCK);
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&name);
    let file = file.map_err(FileError::at("create", &name))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => Err(RunError::Locked { folder: path.into() }),
        // A file system without locks: better to run than not to.
        Err(fs::TryLockError::Error(_)) => Ok(file),
    }
}
