//! The walker step against the peers and the limits, in turns.

use jarz::{Real, SelfInteractionRule};
use std::time::{Duration, Instant};

use crate::check::{check, prepare};
use crate::error::BenchError;
use crate::limits::Limits;
use crate::measure::{Comparison, Pair, median};
use crate::peer::Peer;
use crate::rows::Row;
use crate::work::{Ours, Shape};

/// How long and how often.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Repeats of every pair.
    pub repeats: usize,
    /// Timed steps of one repeat last at least this.
    pub least: Duration,
}

/// Peers that could not be compared, with the reason; the run then fails, after everything else was measured.
pub type Failures = Vec<BenchError>;

/// One shape in one precision.
pub fn compare<T: Real>(
    shape: &Shape,
    peers: &mut [&mut Peer],
    effort: Effort,
    failures: &mut Failures,
) -> Result<Vec<Row>, BenchError> {
    eprintln!("{} ({}), {}", shape.work, T::NAME, shape.title);
    let checked = admit::<T>(shape, peers, failures)?;
    let mut ours = Ours::<T>::new(shape, SelfInteractionRule::None, 0)?;
    let mut limits = Limits::<T>::new(shape, 0)?;
    let mut pairs: Vec<Vec<Pair>> = vec![Vec::new(); peers.len()];
    let mut normals = Vec::new();
    let mut memory = Vec::new();
    let mut sum = Vec::new();
    let mut idle = Idleness::default();
    for _ in 0..effort.repeats {
        for i in (0..peers.len()).filter(|&i| checked[i]) {
            let own = idle.watch(peers, || ours.time(effort.least))?;
            pairs[i].push((own, peers[i].time(effort.least)?));
        }
        let own = idle.watch(peers, || ours.time(effort.least))?;
        let (n, m) = (limits.normals_ms(effort.least / 2), limits.memory_ms(effort.least / 4));
        normals.push((own, n));
        memory.push((own, m));
        sum.push((own, n + m));
    }
    idle.complain();
    drop(ours);
    let row = |peer: &str, pairs: &[Pair]| Row::compared(shape.work, T::NAME, peer, Comparison::of(pairs));
    let of_peers = peers.iter().zip(&pairs).filter(|(_, pairs)| !pairs.is_empty());
    let mut rows: Vec<Row> = of_peers.map(|(peer, pairs)| row(&peer.name, pairs)).collect();
    rows.push(row("limit:normals", &normals));
    rows.push(row("limit:memory", &memory));
    rows.push(row("limit:sum", &sum));
    rows.push(leave_one_out::<T>(shape, effort)?);
    Ok(rows)
}

/// Hands the work to every peer and checks what it computes.
fn admit<T: Real>(
    shape: &Shape,
    peers: &mut [&mut Peer],
    failures: &mut Failures,
) -> Result<Vec<bool>, BenchError> {
    if peers.is_empty() {
        return Ok(Vec::new());
    }
    let folder = tempfile::tempdir().map_err(BenchError::io("cannot make a temporary folder"))?;
    let expected = prepare::<T>(folder.path(), shape)?;
    Ok(admit_each(peers, failures, |peer| check(peer, folder.path(), shape, &expected)))
}

/// Checks one peer after the other, and says which may be timed.
pub fn admit_each(
    peers: &mut [&mut Peer],
    failures: &mut Failures,
    mut check: impl FnMut(&mut Peer) -> Result<String, BenchError>,
) -> Vec<bool> {
    let mut admit = |peer: &mut &mut Peer| {
        let start = Instant::now();
        match check(peer) {
            Ok(text) => {
                eprintln!("  {:20} {text}, {:.0} s", peer.name, start.elapsed().as_secs_f64());
                true
            }
            Err(error) => {
                eprintln!("  {error}");
                failures.push(error);
                false
            }
        }
    };
    peers.iter_mut().map(&mut admit).collect()
}

/// The library's default rule, which the peers do not have: our time alone.
fn leave_one_out<T: Real>(shape: &Shape, effort: Effort) -> Result<Row, BenchError> {
    let mut ours = Ours::<T>::new(shape, SelfInteractionRule::LeaveOneOut, 0)?;
    let times: Result<Vec<f64>, BenchError> =
        (0..effort.repeats.min(5)).map(|_| ours.time(effort.least)).collect();
    Ok(Row::alone(&format!("{}+leave-one-out", shape.work), T::NAME, median(times?)))
}

/// Processor time that the peers used while we were timed. They should use none.
#[derive(Default)]
pub struct Idleness {
    used: f64,
    elapsed: f64,
}

impl Idleness {
    /// Does something during which the peers have nothing to do.
    pub fn watch<R>(&mut self, peers: &[&mut Peer], work: impl FnOnce() -> R) -> R {
        let used = || peers.iter().filter_map(|p| p.cpu_seconds()).sum::<f64>();
        let (before, start) = (used(), Instant::now());
        let result = work();
        self.elapsed += start.elapsed().as_secs_f64();
        self.used += used() - before;
        result
    }

    /// Warns if they were busy.
    pub fn complain(&self) {
        // Their threads spin for a moment after their own work, and the clock ticks in hundredths of a second.
        if self.used > 0.05 * self.elapsed {
            let share = 100.0 * self.used / self.elapsed;
            eprintln!(
                "  warning: the peers used {share:.0} % of a processor while they should have been idle"
            );
        }
    }
}
