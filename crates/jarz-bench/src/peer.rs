//! Peers: other programs that do the same work, as processes that answer one JSON line with another.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use crate::error::BenchError;
use crate::work::{TIMED, WARM_UP};

/// Where the peers' programs and their Python environments are.
#[derive(Clone, Debug)]
pub struct PeerHome {
    /// Folder of the Python files.
    pub scripts: PathBuf,
    /// Python with PyTorch and JAX.
    pub python: PathBuf,
    /// Python with `particles`.
    pub particles: Option<PathBuf>,
}

/// A peer that can be started.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Name in the results.
    pub name: &'static str,
    /// Python file and its arguments.
    pub command: &'static [&'static str],
    /// Whether it also works in double precision.
    pub doubles: bool,
    /// Whether it compiles C++ on the fly.
    pub needs_compiler: bool,
}

/// The peers of a walker step.
pub const STEP_PEERS: [Program; 4] = [
    Program { name: "torch-eager", command: &["torch_eager.py"], doubles: true, needs_compiler: false },
    Program { name: "torch-compile", command: &["torch_compile.py"], doubles: true, needs_compiler: true },
    Program {
        name: "torch-compile-split",
        command: &["torch_compile.py", "split"],
        doubles: true,
        needs_compiler: true,
    },
    Program { name: "jax", command: &["jax_jit.py"], doubles: false, needs_compiler: false },
];

/// The peers of the networks, in single precision.
pub const NETWORK_PEERS: [Program; 5] = [
    network("torch", &["network_torch.py", "nchw"], false),
    network("torch-channels-last", &["network_torch.py", "channels-last"], false),
    network("torch-compile", &["network_torch.py", "compile"], true),
    network("torch-by-hand", &["network_torch.py", "explicit"], false),
    network("jax", &["network_jax.py", "nhwc"], false),
];

/// The peers of the whole iteration with a network.
pub const ITERATION_PEERS: [Program; 2] = [
    network("torch-autograd", &["iteration_torch.py", "autograd"], false),
    network("torch-by-hand", &["iteration_torch.py", "by-hand"], false),
];

const fn network(name: &'static str, command: &'static [&'static str], needs_compiler: bool) -> Program {
    Program { name, command, doubles: false, needs_compiler }
}

/// The peer of the resampling schemes.
pub const PARTICLES: Program = Program {
    name: "particles",
    command: &["particles_resampling.py"],
    doubles: true,
    needs_compiler: false,
};

/// A peer that runs. It does nothing between requests.
pub struct Peer {
    /// Name in the results.
    pub name: String,
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts a peer's program with a Python.
    pub fn start(program: &Program, python: &Path, scripts: &Path) -> Result<Self, BenchError> {
        let mut command = Command::new(python);
        command.args(program.command).current_dir(scripts);
        // Large arrays come from memory the process already has, instead of fresh pages in every step.
        command.envs([
            ("MALLOC_MMAP_MAX_", "0"),
            ("MALLOC_TRIM_THRESHOLD_", "100000000000"),
            ("MALLOC_TOP_PAD_", "100000000"),
            ("PYTHONDONTWRITEBYTECODE", "1"),
        ]);
        Self::spawn(program.name, command)
    }

    /// Starts any program that speaks the peers' protocol.
    pub fn spawn(name: &str, mut command: Command) -> Result<Self, BenchError> {
        let io = |e| BenchError::io(format!("cannot start peer {name}"))(e);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(io)?;
        let (requests, answers) = (child.stdin.take(), child.stdout.take());
        let Some(answers) = answers else {
            return Err(BenchError::Peer { peer: name.into(), reason: "it has no output".into() });
        };
        Ok(Peer { name: name.into(), child, requests, answers: BufReader::new(answers) })
    }

    /// Sends a request and waits for the answer.
    pub fn ask(&mut self, request: &Value) -> Result<Value, BenchError> {
        let fail = |reason: String| BenchError::Peer { peer: self.name.clone(), reason };
        let Some(requests) = &mut self.requests else { return Err(fail("it was stopped".into())) };
        let mut answer = String::new();
        let sent = writeln!(requests, "{request}").and_then(|()| requests.flush());
        sent.and_then(|()| self.answers.read_line(&mut answer)).map_err(|e| fail(e.to_string()))?;
        if answer.is_empty() {
            return Err(fail(format!("it ended without an answer to {request}")));
        }
        let value: Value =
            serde_json::from_str(&answer).map_err(|e| fail(format!("{e}: {}", answer.trim())))?;
        match value.get("error") {
            Some(error) => Err(fail(error.as_str().unwrap_or("unknown error").to_string())),
            None => Ok(value),
        }
    }

    /// A number in an answer.
    pub fn number(&self, answer: &Value, field: &str) -> Result<f64, BenchError> {
        answer[field].as_f64().ok_or_else(|| BenchError::Peer {
            peer: self.name.clone(),
            reason: format!("no number '{field}' in its answer {answer}"),
        })
    }

    /// Milliseconds a step, from at least `least` of timed steps.
    pub fn time(&mut self, least: Duration) -> Result<f64, BenchError> {
        let seconds = least.as_secs_f64();
        let answer =
            self.ask(&json!({"do": "time", "warmup": WARM_UP, "steps": TIMED, "seconds": seconds}))?;
        self.number(&answer, "ms")
    }

    /// Processor time used so far, where the system tells (Linux).
    pub fn cpu_seconds(&self) -> Option<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).ok()?;
        // After the name in parentheses: user and system time are the 12th and 13th field, in hundredths of a second.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
        let mut ticks = || fields.next()?.parse::<f64>().ok();
        Some((ticks()? + ticks()?) / 100.0)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // The end of its input is the peer's sign to stop.
        self.requests = None;
        let _ = self.child.wait();
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn fake(script: &str) -> Peer {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Peer::spawn("fake", command).unwrap()
    }

    #[test]
    fn answers_are_read_line_by_line() {
        let mut peer = fake("read a; echo '{\"ms\": 1.5}'; read b; echo '{\"ms\": 2}'");
        assert_eq!(peer.time(Duration::ZERO).unwrap(), 1.5);
        assert_eq!(peer.time(Duration::ZERO).unwrap(), 2.0);
        let gone = peer.time(Duration::ZERO).unwrap_err().to_string();
        assert!(gone.contains("fake"), "{gone}");
    }

    #[test]
    fn errors_name_the_peer_and_what_it_said() {
        let mut peer =
            fake("read a; echo '{\"error\": \"out of luck\"}'; read b; echo nonsense; read c; echo '{}'");
        for expected in ["out of luck", "nonsense", "no number 'ms'"] {
            let error = peer.time(Duration::ZERO).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("fake"), "{error}");
        }
    }
}
