//! Instructions that the hot kernels execute, counted by callgrind: the same on every run, whatever else the machine does, so that
//! a test can hold them. Valgrind knows no AVX-512, so the counts are of the AVX2 and of the portable path.

use jarz::simd::Isa;
use jarz::{Purpose, Random, Real, Scheme, SelfInteractionRule, WalkerIds};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::error::BenchError;
use crate::work::{Ours, SEED, Shape};

/// Names of the functions that mark what is counted, as callgrind sees them.
const BEGIN: &str = "jarz_bench::instructions::counting_begins";
const END: &str = "jarz_bench::instructions::counting_ends";
/// What a count may exceed its reference by. It covers compilers and C libraries that differ a little.
const HEADROOM: f64 = 0.10;
/// Instruction sets that are counted.
const PATHS: [(&str, Isa); 2] = [("avx2", Isa::Avx2), ("portable", Isa::Portable)];

const WALKERS: usize = 2_000;
const DIM: usize = 50;
const STEPS: u64 = 5;
const RESAMPLED: usize = 20_000;

/// Calls `work` between the two functions at which callgrind starts from zero and writes what it has counted.
fn measured(work: &mut dyn FnMut()) {
    counting_begins();
    work();
    counting_ends();
}

#[inline(never)]
fn counting_begins() {
    std::hint::black_box(0);
}

#[inline(never)]
fn counting_ends() {
    std::hint::black_box(1);
}

/// One kernel: its name, units of work (walker-dimensions, or walkers that are resampled), and the work, one call of [`measured`].
struct Kernel {
    name: String,
    units: f64,
    run: Box<dyn FnOnce() -> Result<(), BenchError>>,
}

fn kernels() -> Vec<Kernel> {
    let mut all = vec![normals::<f32>(), normals::<f64>(), noise::<f32>(), noise::<f64>()];
    let paper = SelfInteractionRule::None;
    all.push(step::<f32>("step", None, paper));
    all.push(step::<f64>("step", None, paper));
    all.push(step::<f32>("leave-one-out-step", None, SelfInteractionRule::LeaveOneOut));
    all.push(step::<f32>("mini-batch-step", Some(WALKERS / 10), paper));
    all.extend(Scheme::ALL.map(resampling));
    all
}

fn normals<T: Real>() -> Kernel {
    let run = || {
        let mut out = vec![T::ZERO; WALKERS * T::noise_stride(DIM)];
        measured(&mut || Random::new(SEED).normal_rows(0, Purpose::Noise, WalkerIds::From(0), DIM, &mut out));
        Ok(())
    };
    Kernel { name: format!("normals-{}", T::NAME), units: (WALKERS * DIM) as f64, run: Box::new(run) }
}

fn noise<T: Real>() -> Kernel {
    let run = || {
        let mut out = vec![T::ZERO; WALKERS * DIM];
        measured(&mut || Random::new(SEED).noise_rows(0, Purpose::Noise, WalkerIds::From(0), DIM, &mut out));
        Ok(())
    };
    Kernel { name: format!("noise-{}", T::NAME), units: (WALKERS * DIM) as f64, run: Box::new(run) }
}

fn step<T: Real>(name: &str, batch: Option<usize>, rule: SelfInteractionRule) -> Kernel {
    let shape = Shape { work: "", title: "", dim: DIM, walkers: WALKERS, points: WALKERS, batch };
    let run = move || {
        let mut ours = Ours::<T>::new(&shape, rule, 1)?;
        // The first step sizes the scratch memory.
        ours.run(1)?;
        let mut result = Ok(());
        measured(&mut || result = ours.run(STEPS));
        result
    };
    let units = STEPS as f64 * (WALKERS * DIM) as f64;
    Kernel { name: format!("{name}-{}", T::NAME), units, run: Box::new(run) }
}

fn resampling(scheme: Scheme) -> Kernel {
    let run = move || {
        let random = Random::new(SEED);
        let raw: Vec<f64> = (0..RESAMPLED as u64).map(|i| random.uniform(0, i, Purpose::User)).collect();
        let total: f64 = raw.iter().sum();
        let p: Vec<f64> = raw.iter().map(|w| w / total).collect();
        let mut ancestors = Vec::new();
        measured(&mut || ancestors = scheme.ancestors(&p, p.len(), &random, 1, Purpose::Resample));
        std::hint::black_box(ancestors);
        Ok(())
    };
    Kernel { name: format!("resampling-{}", scheme.name()), units: RESAMPLED as f64, run: Box::new(run) }
}

/// Runs all kernels in their order; what callgrind executes.
pub fn run_kernels() -> Result<(), BenchError> {
    kernels().into_iter().try_for_each(|kernel| (kernel.run)())
}

/// Reference counts.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Reference {
    /// What a count may exceed its reference by.
    headroom: f64,
    /// Instructions per unit of work, by path and kernel.
    #[serde(flatten)]
    paths: BTreeMap<String, BTreeMap<String, f64>>,
}

/// Compares the counts with the reference, or writes a new one.
pub fn guard(file: &Path, update: bool) -> Result<(), BenchError> {
    if !cfg!(target_arch = "x86_64") {
        println!("SKIPPED: instruction counts: the reference is of x86-64");
        return Ok(());
    }
    let mut counts = Reference { headroom: HEADROOM, ..Reference::default() };
    for (path, isa) in PATHS {
        if Isa::available().contains(&isa) {
            counts.paths.insert(path.into(), count(path)?);
        } else {
            println!("SKIPPED: instruction counts of the {path} path: this processor does not have it");
        }
    }
    if update {
        return write(file, &counts);
    }
    let bad = |reason: String| BenchError::Reference { path: file.into(), reason };
    let text = std::fs::read_to_string(file).map_err(|e| bad(e.to_string()))?;
    let reference: Reference = toml::from_str(&text).map_err(|e| bad(e.to_string()))?;
    let (lines, complaints) = compare(&counts, &reference);
    println!("instructions per walker-dimension (of resampling: per walker), against the reference");
    lines.iter().for_each(|line| println!("{line}"));
    match complaints.is_empty() {
        true => Ok(()),
        false => Err(BenchError::Instructions(format!(
            "{}\nfind out why, or accept the new counts with scripts/instructions --update",
            complaints.join("\n")
        ))),
    }
}

/// One line per kernel, and those beyond their headroom.
fn compare(counts: &Reference, reference: &Reference) -> (Vec<String>, Vec<String>) {
    let (mut lines, mut complaints) = (Vec::new(), Vec::new());
    for (path, kernels) in &counts.paths {
        for (name, count) in kernels {
            let label = format!("{path:9} {name:26}");
            let Some(expected) = reference.paths.get(path).and_then(|p| p.get(name)) else {
                complaints.push(format!("{label} has no reference count"));
                continue;
            };
            let change = 100.0 * (count / expected - 1.0);
            let line = format!("{label} {count:8.2}  reference {expected:8.2}  {change:+6.1} %");
            if *count > expected * (1.0 + reference.headroom) {
                complaints.push(format!("{line}: more than {:.0} % too many", 100.0 * reference.headroom));
            }
            lines.push(line);
        }
    }
    (lines, complaints)
}

fn write(file: &Path, counts: &Reference) -> Result<(), BenchError> {
    let bad = |reason: String| BenchError::Reference { path: file.into(), reason };
    let mut rounded = Reference { headroom: counts.headroom, ..Reference::default() };
    for (path, kernels) in &counts.paths {
        let kernels = kernels.iter().map(|(name, count)| (name.clone(), (count * 100.0).round() / 100.0));
        rounded.paths.insert(path.clone(), kernels.collect());
    }
    let body = toml::to_string(&rounded).map_err(|e| bad(e.to_string()))?;
    let head = "# Instructions per walker-dimension (of resampling: per walker) that callgrind counts on one thread.\n\
                # Checked by scripts/instructions, written by scripts/instructions --update.\n\n";
    std::fs::write(file, format!("{head}{body}")).map_err(|e| bad(e.to_string()))?;
    println!("wrote {}", file.display());
    Ok(())
}

/// Runs this program under callgrind on one path; instructions per unit of every kernel.
fn count(path: &str) -> Result<BTreeMap<String, f64>, BenchError> {
    let fail = |text: String| BenchError::Instructions(text);
    let folder = tempfile::tempdir().map_err(BenchError::io("cannot make a temporary folder"))?;
    let program = std::env::current_exe().map_err(BenchError::io("cannot find this program"))?;
    let output = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg(format!("--zero-before={BEGIN}*"))
        .arg(format!("--dump-before={END}*"))
        .arg(format!("--callgrind-out-file={}/counts", folder.path().display()))
        .arg(program)
        .arg("--kernels")
        .env("JARZ_ISA", path)
        .output()
        .map_err(BenchError::io("cannot start valgrind (install it with your system's package manager)"))?;
    if !output.status.success() {
        return Err(fail(format!(
            "valgrind failed on the {path} path: {}",
            String::from_utf8_lossy(&output.stderr)
        )));
    }
    let mut counts = BTreeMap::new();
    for (i, kernel) in kernels().into_iter().enumerate() {
        // Dumps are numbered in the order of the kernels.
        let dump = folder.path().join(format!("counts.{}", i + 1));
        let text = std::fs::read_to_string(&dump)
            .map_err(BenchError::io(format!("callgrind did not count {}", kernel.name)))?;
        let Some(total) = total(&text) else {
            return Err(fail(format!("callgrind's output for {} has no total", kernel.name)));
        };
        counts.insert(kernel.name, total / kernel.units);
    }
    Ok(counts)
}

/// Instructions of a dump.
fn total(dump: &str) -> Option<f64> {
    let line = dump.lines().find_map(|l| l.strip_prefix("totals:").or(l.strip_prefix("summary:")))?;
    line.split_whitespace().next()?.parse().ok().filter(|t| *t > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(count: f64) -> Reference {
        let kernels = BTreeMap::from([("step-f32".to_string(), count)]);
        Reference { headroom: 0.1, paths: BTreeMap::from([("avx2".to_string(), kernels)]) }
    }

    #[test]
    fn more_than_the_headroom_is_refused() {
        assert!(compare(&reference(10.9), &reference(10.0)).1.is_empty());
        assert!(compare(&reference(5.0), &reference(10.0)).1.is_empty());
        assert_eq!(compare(&reference(11.1), &reference(10.0)).1.len(), 1);
        assert_eq!(compare(&reference(1.0), &Reference::default()).1.len(), 1);
    }

    #[test]
    fn references_survive_the_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        write(file.path(), &reference(12.345)).unwrap();
        let text = std::fs::read_to_string(file.path()).unwrap();
        assert_eq!(toml::from_str::<Reference>(&text).unwrap(), reference(12.35));
    }

    #[test]
    fn totals_are_found() {
        assert_eq!(total("events: Ir\nsummary: 1234\n1 2\ntotals: 1234\n"), Some(1234.0));
        assert_eq!(total("events: Ir\n"), None);
    }

    #[test]
    fn kernels_run() {
        run_kernels().unwrap();
    }
}
