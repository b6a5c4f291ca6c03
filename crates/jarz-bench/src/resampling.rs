//! Resampling of a million walkers against `particles`.

use jarz::resampling::Draws;
use jarz::{Purpose, Random, Scheme};
use jarz_data::{ReadOptions, read_table, write_npy_f64};
use serde_json::json;
use std::borrow::Cow;
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
/// Standard errors by which Pearson's sum of independent draws may be off.
const SCATTER: f64 = 5.0;

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

/// The uniforms that we draw with, as the peer takes them. For independent draws we have none that it could use (we draw Poisson numbers), so that it
/// gets such as lead to our ancestors: spacings `-ln u` between points, one for every ancestor, within its share of the sum of `weights`.
fn uniforms(scheme: Scheme, weights: &[f64], ours: &[u64]) -> Vec<f64> {
    let independent = match scheme {
        Scheme::Systematic | Scheme::Stratified => {
            return (0..=WALKERS as u64).map(|i| random().uniform(0, i, Purpose::User)).collect();
        }
        Scheme::Multinomial => Cow::Borrowed(weights),
        Scheme::Residual => weights.iter().map(|w| (WALKERS as f64 * w).fract()).collect(),
    };
    let certain = |i: usize| match scheme {
        Scheme::Residual => (WALKERS as f64 * weights[i]).floor() as usize,
        _ => 0,
    };
    let mut copies = vec![0usize; weights.len()];
    ours.iter().for_each(|&a| copies[a as usize] += 1);
    let total: f64 = independent.iter().sum();
    let (mut below, mut before, mut uniforms) = (0.0, 0.0, Vec::with_capacity(WALKERS + 1));
    for (i, share) in independent.iter().enumerate() {
        // A copy less than is certain shows in the number of ancestors.
        let drawn = copies[i].saturating_sub(certain(i));
        for k in 0..drawn {
            let point = below + share * (k as f64 + 0.5) / drawn as f64;
            // As spread out as uniforms are, so that no precision is lost.
            uniforms.push((-(point - before) / total * ours.len() as f64).exp());
            before = point;
        }
        below += share;
    }
    uniforms.push((-(total - before) / total * ours.len() as f64).exp());
    uniforms
}

/// Pearson's sum over the counts of all walkers, which for independent draws, and much less for others, is that of a normal variable with the number of
/// walkers as its mean: the deviation, in its standard errors. What is certain is left out.
fn pearson(scheme: Scheme, weights: &[f64], ancestors: impl Iterator<Item = usize>) -> f64 {
    let certain = |expected: f64| if scheme == Scheme::Residual { expected.floor() } else { 0.0 };
    let mut counts: Vec<f64> = weights.iter().map(|w| -certain(WALKERS as f64 * w)).collect();
    ancestors.for_each(|a| counts[a] += 1.0);
    let rest = || weights.iter().map(|w| WALKERS as f64 * w - certain(WALKERS as f64 * w));
    let draws: f64 = rest().sum();
    // Variance of a term: 2 + (1 - 4 q + ...) / (draws q), with q the share.
    let (mut sum, mut variance) = (0.0, 0.0);
    for (count, expected) in counts.iter().zip(rest()).filter(|(_, expected)| *expected > 1e-3) {
        sum += (count - expected).powi(2) / expected - (1.0 - expected / draws);
        variance += 2.0 + 1.0 / expected;
    }
    sum / variance.sqrt()
}

/// Given our weights and uniforms, or points, the peer must draw our ancestors. Where draws are independent, its own and ours must also scatter as such.
fn check(peer: &mut Peer, folder: &Path, scheme: Scheme, weights: &[f64]) -> Result<String, BenchError> {
    let mut draws = Draws::default();
    let ours = ancestors(scheme, weights, &random(), 0, &mut draws);
    let given = uniforms(scheme, weights, ours);
    write_npy_f64(folder.join("uniforms.npy"), &[given.len()], &given)?;
    peer.ask(&json!({"do": "setup", "folder": folder, "scheme": scheme.name()}))?;
    let mut answer = |request: &str| -> Result<Vec<f64>, BenchError> {
        peer.ask(&json!({"do": request, "steps": 1}))?;
        Ok(read_table(folder.join("answer.npy"), &ReadOptions::default())?.values)
    };
    let (theirs, drawn) = (answer("check")?, answer("draw")?);
    let differ = |what: String| Err(BenchError::Differs { peer: peer.name.clone(), what });
    if ours.len() != theirs.len() {
        return differ(format!("{} ancestors instead of {}", theirs.len(), ours.len()));
    }
    let different = ours.iter().zip(&theirs).filter(|(a, b)| **a as f64 != **b).count();
    if different > TIES {
        return differ(format!("{different} of {} ancestors of scheme {} differ", ours.len(), scheme.name()));
    }
    let mut text = format!("{different} of {} ancestors differ (allowed {TIES})", ours.len());
    if matches!(scheme, Scheme::Multinomial | Scheme::Residual) {
        let own = pearson(scheme, weights, ours.iter().map(|a| *a as usize));
        let other = pearson(scheme, weights, drawn.iter().map(|a| *a as usize));
        text += &format!(
            "; Pearson's sums {own:.1} and {other:.1} standard errors from independent draws (allowed {SCATTER})"
        );
        if own.abs().max(other.abs()) > SCATTER {
            return differ(format!("draws of scheme {} are not independent: {text}", scheme.name()));
        }
    }
    Ok(text)
}
