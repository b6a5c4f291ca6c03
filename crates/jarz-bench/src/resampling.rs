//! Resampling of a million walkers against `particles`.

use jarz::resampling::Draws;
use jarz::{Purpose, Random, Scheme};
use jarz_data::{ReadOptions, read_table, write_npy_f64};
use serde_json::json;
use std::path::Path;

use crate::error::BenchError;
use crate::measure::{Comparison, median, time_calls};
use crate::peer::Peer;
use crate::rows::Row;
use crate::steps::{Effort, Failures, Idleness};
use crate::work::random;

/// Walkers that are resampled.
const WALKERS: usize = 1_000_000;
/// Of a million ancestors, those that may differ because cumulative sums round differently: a point falls within 1e-14
/// of one of a million boundaries once in a hundred resamplings.
const TIES: usize = 10;

/// Normalised weights with the ESS at which the paper's experiment resamples (1 / 1.8): log-normal of variance ln 1.8.
fn weights() -> Vec<f64> {
    let mut logs = vec![0.0f64; WALKERS];
    random().normals(0, 0, Purpose::User, &mut logs);
    let scale = 1.8f64.ln().sqrt();
    let raw: Vec<f64> = logs.iter().map(|z| (scale * z).exp()).collect();
    let total: f64 = raw.iter().sum();
    raw.iter().map(|w| w / total).collect()
}

/// As the sampler draws them: with memory that is reused.
fn ancestors<'a>(
    scheme: Scheme,
    weights: &[f64],
    random: &Random,
    step: u64,
    draws: &'a mut Draws,
) -> &'a [u64] {
    scheme.ancestors_in(weights, weights.len(), random, step, Purpose::User, draws)
}

/// All schemes, against a peer if there is one.
pub fn compare(
    mut peer: Option<&mut Peer>,
    effort: Effort,
    failures: &mut Failures,
) -> Result<Vec<Row>, BenchError> {
    let (weights, random) = (weights(), random());
    let folder = tempfile::tempdir().map_err(BenchError::io("cannot make a temporary folder"))?;
    if peer.is_some() {
        write_npy_f64(folder.path().join("weights.npy"), &[WALKERS], &weights)?;
        // As many as any scheme draws.
        let uniforms: Vec<f64> = (0..=WALKERS as u64).map(|i| random.uniform(0, i, Purpose::User)).collect();
        write_npy_f64(folder.path().join("uniforms.npy"), &[WALKERS + 1], &uniforms)?;
    }
    let mut rows = Vec::new();
    for scheme in Scheme::ALL {
        let work = format!("d:{}", scheme.name());
        eprintln!("{work}, resampling of {WALKERS} walkers");
        let (mut step, mut draws) = (0, Draws::default());
        let mut ours = || {
            time_calls(effort.least, || {
                step += 1;
                std::hint::black_box(ancestors(scheme, &weights, &random, step, &mut draws));
            })
        };
        let admitted = match peer.as_deref_mut() {
            Some(peer) => match check(peer, folder.path(), scheme, &weights) {
                Ok(text) => {
                    eprintln!("  {:20} {text}", peer.name);
                    true
                }
                Err(error) => {
                    eprintln!("  {error}");
                    failures.push(error);
                    false
                }
            },
            None => false,
        };
        if let Some(peer) = peer.as_deref_mut().filter(|_| admitted) {
            let mut idle = Idleness::default();
            let mut pairs = Vec::new();
            for _ in 0..effort.repeats {
                let own = idle.watch(&[peer], &mut ours);
                pairs.push((own, peer.time(effort.least)?));
            }
            idle.complain();
            rows.push(Row::compared(&work, "f64", &peer.name, Comparison::of(&pairs)));
        } else {
            rows.push(Row::alone(&work, "f64", median((0..effort.repeats).map(|_| ours()).collect())));
        }
    }
    Ok(rows)
}

/// From the same weights and uniforms the peer must draw the same ancestors.
fn check(peer: &mut Peer, folder: &Path, scheme: Scheme, weights: &[f64]) -> Result<String, BenchError> {
    peer.ask(&json!({"do": "setup", "folder": folder, "scheme": scheme.name()}))?;
    peer.ask(&json!({"do": "check", "steps": 1}))?;
    let theirs = read_table(folder.join("answer.npy"), &ReadOptions::default())?.values;
    let mut draws = Draws::default();
    let ours = ancestors(scheme, weights, &random(), 0, &mut draws);
    let differ = |what: String| Err(BenchError::Differs { peer: peer.name.clone(), what });
    if ours.len() != theirs.len() {
        return differ(format!("{} ancestors instead of {}", theirs.len(), ours.len()));
    }
    let different = ours.iter().zip(&theirs).filter(|(a, b)| **a as f64 != **b).count();
    match different {
        0..=TIES => Ok(format!("{different} of {} ancestors differ (allowed {TIES})", ours.len())),
        _ => differ(format!("{different} of {} ancestors of scheme {} differ", ours.len(), scheme.name())),
    }
}
