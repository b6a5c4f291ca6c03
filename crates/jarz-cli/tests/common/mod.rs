//! Running the real program in a temporary folder.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

pub struct Jarz {
    pub dir: tempfile::TempDir,
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Jarz {
    pub fn new() -> Self {
        Jarz { dir: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jarz"));
        command.args(args).current_dir(self.dir.path()).stdin(Stdio::null());
        command
    }

    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Must succeed; gives standard output.
    pub fn ok(&self, args: &[&str]) -> String {
        let out = self.run(args);
        assert!(out.status.success(), "{args:?} failed: {}", text(&out.stderr));
        text(&out.stdout)
    }

    /// Must fail with exit code 1 and one clear error that mentions all of `words`; gives standard error.
    pub fn fails(&self, args: &[&str], words: &[&str]) -> String {
        let out = self.run(args);
        let err = text(&out.stderr);
        assert_eq!(out.status.code(), Some(1), "{args:?}: {err}");
        assert!(err.contains("error: ") && !err.contains("panicked"), "{args:?}: {err}");
        for word in words {
            assert!(err.contains(word), "{args:?}: no '{word}' in: {err}");
        }
        err
    }

    pub fn json(&self, name: &str) -> serde_json::Value {
        serde_json::from_str(&std::fs::read_to_string(self.path(name)).unwrap()).unwrap()
    }
}

/// A small mixture run that takes a second or so.
pub const SMALL: &str = r#"
seed = 3
[data]
kind = "mixture"
points = 1000
dim = 6
means = [[-3.0], [3.0]]
masses = [0.3, 0.7]
[model]
kind = "mixture"
modes = 2
start = "origin"
means = [[-0.2], [0.2]]
[walkers]
count = 1000
[optimizer]
rates = { mean = 0.05, log_mass = 0.1 }
frozen = ["log_mass.0"]
[resampling]
threshold = 0.8
[run]
iterations = 300
log_every = 10
checkpoint_every = 25
"#;

/// Rows of a metrics file without the only thing that may differ between equal runs: the time they took.
pub fn rows(path: &Path) -> Vec<serde_json::Value> {
    std::fs::read_to_string(path)
        .unwrap()
        .lines()
        .map(|line| {
            let mut row: serde_json::Value = serde_json::from_str(line).unwrap();
            row.as_object_mut().unwrap().remove("seconds");
            row
        })
        .collect()
}

/// The final checkpoint's arrays, but for the time it took.
pub fn final_state(folder: &Path, iteration: u64) -> jarz_run::checkpoint::Snapshot {
    let bytes = std::fs::read(folder.join(format!("checkpoints/{iteration:012}.safetensors"))).unwrap();
    let mut snapshot = jarz_run::checkpoint::decode(&bytes).unwrap();
    snapshot.arrays.remove("seconds");
    snapshot
}
