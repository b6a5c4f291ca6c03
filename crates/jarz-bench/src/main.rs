//! `jarz-bench`: how fast the walker step is, against other programs and against the limits of the machine.
//! Normally started by `scripts/bench` and `scripts/instructions`.

mod check;
mod error;
mod instructions;
mod iteration;
mod limits;
mod machine;
mod measure;
mod network;
mod peer;
mod resampling;
mod rows;
mod scaling;
mod steps;
mod work;

use clap::Parser;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use error::BenchError;
use machine::Machine;
use network::NETWORKS;
use peer::{ITERATION_PEERS, NETWORK_PEERS, PARTICLES, Peer, PeerHome, Program, STEP_PEERS};
use rows::{Row, table};
use steps::{Effort, Failures};
use work::STEPS;

/// Works that are no steps.
const OTHER_WORK: [&str; 3] = [iteration::WORK, "d", "scaling"];

/// Measures Jarz against its peers and against the limits of the machine.
#[derive(Debug, Parser)]
#[command(name = "jarz-bench")]
struct Args {
    /// Results as a list of JSON objects
    #[arg(long)]
    json: bool,
    /// Fewer and shorter repeats
    #[arg(long)]
    quick: bool,
    /// Only this work: a, b, c, d (resampling), e:d=2, e:d=1000, net:mnist-256, net:mnist-1024, net:cifar-64, net:mnist-step or scaling
    #[arg(long, value_name = "WORK")]
    only: Option<String>,
    /// Folder of the peers' programs; without it our side runs alone
    #[arg(long, value_name = "FOLDER", requires = "python")]
    peers: Option<PathBuf>,
    /// Python with PyTorch and JAX
    #[arg(long, value_name = "PROGRAM")]
    python: Option<PathBuf>,
    /// Python with particles
    #[arg(long, value_name = "PROGRAM")]
    particles_python: Option<PathBuf>,
    /// Count instructions of the hot kernels and compare them with this file
    #[arg(long, value_name = "FILE")]
    instructions: Option<PathBuf>,
    /// Write the counts to the file instead
    #[arg(long, requires = "instructions")]
    update: bool,
    /// Run the kernels whose instructions are counted
    #[arg(long, hide = true)]
    kernels: bool,
    /// Measure one size: walkers,dimensions,data points
    #[arg(long, hide = true)]
    point: Option<String>,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), BenchError> {
    if let Some(size) = &args.point {
        println!("{}", serde_json::json!(scaling::point(size)?));
        return Ok(());
    }
    if args.kernels {
        return instructions::run_kernels();
    }
    if let Some(reference) = &args.instructions {
        return instructions::guard(reference, args.update);
    }
    let machine = Machine::now();
    eprintln!("{}", machine::describe());
    let mut failures = Failures::new();
    let rows = measure(args, &mut failures)?;
    machine.complain();
    if args.json {
        println!("{}", serde_json::to_string_pretty(&rows).unwrap_or_default());
    } else {
        print!("{}", table(&rows));
    }
    match failures.into_iter().next() {
        Some(first) => Err(first),
        None => Ok(()),
    }
}

fn measure(args: &Args, failures: &mut Failures) -> Result<Vec<Row>, BenchError> {
    let wanted = |work: &str| args.only.as_deref().is_none_or(|only| only == work);
    if let Some(only) = &args.only
        && !STEPS.iter().any(|s| s.work == only)
        && !NETWORKS.iter().any(|n| n.work == only)
        && !OTHER_WORK.contains(&only.as_str())
    {
        let works = STEPS.iter().map(|s| s.work).chain(NETWORKS.iter().map(|n| n.work));
        let names: Vec<&str> = works.chain(OTHER_WORK).collect();
        return Err(BenchError::Usage(format!("there is no work '{only}', only {}", names.join(", "))));
    }
    let home = args.peers.clone().zip(args.python.clone()).map(|(scripts, python)| PeerHome {
        scripts,
        python,
        particles: args.particles_python.clone(),
    });
    let effort = match args.quick {
        true => Effort { repeats: 3, least: Duration::from_millis(100) },
        false => Effort { repeats: 7, least: Duration::from_millis(200) },
    };
    let mut rows = Vec::new();
    {
        let steps: Vec<_> = STEPS.iter().filter(|s| wanted(s.work)).collect();
        let mut peers = if steps.is_empty() { Vec::new() } else { start_peers(home.as_ref(), &STEP_PEERS)? };
        for shape in steps {
            let mut singles: Vec<&mut Peer> = peers.iter_mut().map(|(_, peer)| peer).collect();
            rows.extend(steps::compare::<f32>(shape, &mut singles, effort, failures)?);
            let doubles = peers.iter_mut().filter(|(program, _)| program.doubles);
            let mut doubles: Vec<&mut Peer> = doubles.map(|(_, peer)| peer).collect();
            rows.extend(steps::compare::<f64>(shape, &mut doubles, effort, failures)?);
        }
    }
    {
        let networks: Vec<_> = NETWORKS.iter().filter(|n| wanted(n.work)).collect();
        let mut peers =
            if networks.is_empty() { Vec::new() } else { start_peers(home.as_ref(), &NETWORK_PEERS)? };
        for shape in networks {
            let mut peers: Vec<&mut Peer> = peers.iter_mut().map(|(_, peer)| peer).collect();
            rows.extend(network::compare(shape, &mut peers, effort, failures)?);
        }
    }
    if wanted(iteration::WORK) {
        let mut peers = start_peers(home.as_ref(), &ITERATION_PEERS)?;
        let mut peers: Vec<&mut Peer> = peers.iter_mut().map(|(_, peer)| peer).collect();
        rows.extend(iteration::compare(&mut peers, effort, failures)?);
    }
    if wanted("d") {
        let mut particles = match home.as_ref().and_then(|h| h.particles.as_ref().map(|p| (h, p))) {
            Some((home, python)) => Some(Peer::start(&PARTICLES, python, &home.scripts)?),
            None => None,
        };
        rows.extend(resampling::compare(particles.as_mut(), effort, failures)?);
    }
    if wanted("scaling") {
        rows.extend(scaling::threads(effort)?);
        rows.extend(scaling::walkers(args.quick)?);
        rows.extend(scaling::dimensions()?);
    }
    Ok(rows)
}

/// Starts the peers that can work here.
fn start_peers(home: Option<&PeerHome>, programs: &[Program]) -> Result<Vec<(Program, Peer)>, BenchError> {
    let Some(home) = home else { return Ok(Vec::new()) };
    let compiler = has_compiler();
    let mut peers = Vec::new();
    for &program in programs {
        if program.needs_compiler && !compiler {
            eprintln!(
                "SKIPPED: {}: torch.compile needs a C++ compiler, and there is no g++ or clang++",
                program.name
            );
            continue;
        }
        peers.push((program, Peer::start(&program, &home.python, &home.scripts)?));
    }
    Ok(peers)
}

fn has_compiler() -> bool {
    let runs = |name: &Path| {
        let version =
            Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        version.is_ok_and(|s| s.success())
    };
    let named = std::env::var_os("CXX").map(PathBuf::from);
    named.iter().map(PathBuf::as_path).chain(["g++", "clang++"].map(Path::new)).any(runs)
}
