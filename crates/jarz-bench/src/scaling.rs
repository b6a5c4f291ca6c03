//! How the step scales: threads, walkers, dimensions. Every size is measured in a process of its own, so that its memory can be told.

use jarz::SelfInteractionRule;
use serde::{Deserialize, Serialize};
use std::process::Command;
use std::time::Duration;

use crate::error::BenchError;
use crate::measure::{Comparison, median};
use crate::rows::Row;
use crate::steps::Effort;
use crate::work::{Ours, STEPS, Shape};

/// Data points in the tables over walkers: few, so that time and memory are the walkers'.
const FEW_POINTS: usize = 100;
/// Dimension in the table over walkers.
const WALKER_TABLE_DIM: usize = 10;
/// Walkers times dimensions in the table over dimensions.
const PRODUCT: usize = 5_000_000;

/// What a process of one size reports.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Point {
    /// Milliseconds a step.
    pub ms: f64,
    /// Growth of the resident memory by trainer and steps, in bytes; where the system tells.
    pub bytes: Option<f64>,
}

/// One and two threads on work (a), in turns.
pub fn threads(effort: Effort) -> Result<Vec<Row>, BenchError> {
    eprintln!("scaling over threads, {}", STEPS[0].title);
    let mut one = Ours::<f32>::new(&STEPS[0], SelfInteractionRule::None, 1)?;
    let mut two = Ours::<f32>::new(&STEPS[0], SelfInteractionRule::None, 2)?;
    let mut pairs = Vec::new();
    for _ in 0..effort.repeats {
        pairs.push((two.time(effort.least)?, one.time(effort.least)?));
    }
    Ok(vec![Row::compared("scaling:2-threads", "f32", "ours:1-thread", Comparison::of(&pairs))])
}

/// Walkers from 10^3 to 10^7, few data points.
pub fn walkers() -> Result<Vec<Row>, BenchError> {
    eprintln!("scaling over walkers, d = {WALKER_TABLE_DIM}, {FEW_POINTS} data points");
    let mut rows = Vec::new();
    for exponent in 3..=7 {
        let walkers = 10usize.pow(exponent);
        let point = in_own_process(walkers, WALKER_TABLE_DIM, FEW_POINTS)?;
        let mut row =
            row(&format!("scaling:N=1e{exponent},d={WALKER_TABLE_DIM}"), walkers, WALKER_TABLE_DIM, point);
        row.bytes_per_walker = point.bytes.map(|b| b / walkers as f64);
        rows.push(row);
    }
    Ok(rows)
}

/// Dimensions from 1 to 10^4, as many walkers as data points, walkers times dimensions fixed.
pub fn dimensions() -> Result<Vec<Row>, BenchError> {
    eprintln!("scaling over dimensions, N d = {PRODUCT}, n = N");
    let mut rows = Vec::new();
    for dim in [1, 2, 3, 5, 10, 20, 50, 100, 1_000, 10_000] {
        let walkers = PRODUCT / dim;
        let point = in_own_process(walkers, dim, walkers)?;
        rows.push(row(&format!("scaling:d={dim},N={walkers}"), walkers, dim, point));
    }
    Ok(rows)
}

fn row(work: &str, walkers: usize, dim: usize, point: Point) -> Row {
    let ns = point.ms * 1e6 / (walkers * dim) as f64;
    Row { ns_per_walker_dimension: Some(ns), ..Row::alone(work, "f32", point.ms) }
}

fn in_own_process(walkers: usize, dim: usize, points: usize) -> Result<Point, BenchError> {
    let program = std::env::current_exe().map_err(BenchError::io("cannot find this program"))?;
    let size = format!("{walkers},{dim},{points}");
    let output = Command::new(program)
        .args(["--point", &size])
        .output()
        .map_err(BenchError::io("cannot start this program again"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).map_err(|_| BenchError::Peer {
        peer: format!("ours with size {size}"),
        reason: String::from_utf8_lossy(&output.stderr).trim().to_string(),
    })
}

/// Measures one size in this process; `size` is "walkers,dimensions,data points".
pub fn point(size: &str) -> Result<Point, BenchError> {
    let numbers: Vec<usize> = size.split(',').filter_map(|n| n.trim().parse().ok()).collect();
    let &[walkers, dim, points] = numbers.as_slice() else {
        return Err(BenchError::Usage(format!("'{size}' is not walkers,dimensions,data points")));
    };
    let shape = Shape { work: "point", title: "", dim, walkers, points, batch: None };
    let before = resident_bytes();
    let setup = crate::work::setup::<f32>(&shape, SelfInteractionRule::None, 0)?;
    let mut trainer = jarz::Trainer::new(setup)?;
    for _ in 0..3 {
        trainer.step()?;
    }
    let bytes = resident_bytes().zip(before).map(|(after, before)| after - before);
    drop(trainer);
    let mut ours = Ours::<f32>::new(&shape, SelfInteractionRule::None, 0)?;
    let times: Result<Vec<f64>, BenchError> = (0..3).map(|_| ours.time(Duration::from_millis(100))).collect();
    Ok(Point { ms: median(times?), bytes })
}

/// Resident memory of this process (Linux).
fn resident_bytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmRSS:"))?;
    let kibibytes: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kibibytes * 1024.0)
}
