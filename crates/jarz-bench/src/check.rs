//! Before a peer is timed: does it compute the same numbers?
//!
//! Peers get our walkers, data, parameters and noise, take a few steps, and hand back their log-weights and parameters. Two correct
//! programs differ by rounding only. With unit roundoff `u` and roundings that err independently of each other, a sum of `m` terms of
//! absolute sum `S` is off by no more than `lambda sqrt(m) u S`, except with probability `2 exp(-lambda^2 / 2)` (Higham and Mary, 2019);
//! `lambda = 6` here. A log-weight after `K` steps is a sum of `4 K` energy-like terms (two energies and two
//! alphas a step) of `d` components each, none larger than the largest energy; a parameter is moved `K` times by a rate times
//! the difference of two means over walkers and data, none larger than the largest coordinate. Parameters that differ by
//! `e` in turn shift a log-weight by up to `|e| |dU/dtheta|` a step, with `|dU/dtheta|^2 <= |x - m|^2 + 1`.

use jarz::random::Subset;
use jarz::{Purpose, Real, SelfInteractionRule, WalkerIds};
use jarz_data::{ReadOptions, read_table, write_npy_f32, write_npy_f64};
use serde_json::json;
use std::path::Path;

use crate::error::BenchError;
use crate::peer::Peer;
use crate::work::{MASS_RATE, MEAN_RATE, Ours, STEP_SIZE, Shape, random};

/// Steps that are compared.
const STEPS: u64 = 5;
const LAMBDA: f64 = 6.0;

/// What our side got, and how far a peer may be off.
pub struct Expected {
    log_weights: Vec<f64>,
    theta: Vec<f64>,
    log_mean: f64,
    ess: f64,
    weight_tolerance: f64,
    theta_tolerance: f64,
    /// What a unit of difference in the parameters does to a log-weight.
    sensitivity: f64,
    precision: &'static str,
}

/// Writes an array in the precision of the walkers.
fn write<T: Real>(path: &Path, shape: &[usize], values: &[T]) -> Result<(), BenchError> {
    if size_of::<T>() == 4 {
        let values: Vec<f32> = values.iter().map(|v| v.to_f64() as f32).collect();
        write_npy_f32(path, shape, &values)?;
    } else {
        let values: Vec<f64> = values.iter().map(|v| v.to_f64()).collect();
        write_npy_f64(path, shape, &values)?;
    }
    Ok(())
}

/// The noise of the first steps, and the walkers that move.
fn write_noise<T: Real>(folder: &Path, shape: &Shape) -> Result<(), BenchError> {
    let (dim, random) = (shape.dim, random());
    let (mut noise, mut chosen) = (Vec::new(), Vec::new());
    let mut rows = vec![T::ZERO; shape.moving() * dim];
    let mut subset = Subset::default();
    for step in 0..STEPS {
        let ids = match shape.batch {
            Some(batch) => {
                random.subset(step, Purpose::WalkerBatch, batch, shape.walkers, &mut subset);
                chosen.extend(subset.members().iter().map(|&i| i as f64));
                WalkerIds::List(subset.members())
            }
            None => WalkerIds::From(0),
        };
        random.noise_rows(step, Purpose::Noise, ids, dim, &mut rows);
        noise.extend_from_slice(&rows);
    }
    write(&folder.join("noise.npy"), &[STEPS as usize, shape.moving(), dim], &noise)?;
    if shape.batch.is_some() {
        write_npy_f64(folder.join("chosen.npy"), &[STEPS as usize, shape.moving()], &chosen)?;
    }
    Ok(())
}

/// Writes what the peers start from, and takes the steps ourselves.
pub fn prepare<T: Real>(folder: &Path, shape: &Shape) -> Result<Expected, BenchError> {
    let setup = crate::work::setup::<T>(shape, SelfInteractionRule::None, 0)?;
    write(&folder.join("data.npy"), &[shape.points, shape.dim], setup.data.values())?;
    let mut ours = Ours::<T>::new(shape, SelfInteractionRule::None, 0)?;
    let start = ours.trainer().state();
    write(&folder.join("walkers.npy"), &[shape.walkers, shape.dim], start.walkers.positions())?;
    write_npy_f64(folder.join("theta.npy"), &[start.theta.len()], &start.theta)?;
    write_noise::<T>(folder, shape)?;
    ours.run(STEPS)?;
    let state = ours.trainer().state();
    let largest = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, |top: f64, v| top.max(v.abs()));
    let energy = largest(&mut state.walkers.energies().iter().copied());
    let coordinates = setup.data.values().iter().chain(state.walkers.positions());
    let coordinate = largest(&mut coordinates.map(|v| v.to_f64()));
    let u = if size_of::<T>() == 4 { f64::from(f32::EPSILON) / 2.0 } else { f64::EPSILON / 2.0 };
    let (k, d) = (STEPS as f64, shape.dim as f64);
    let rows = shape.walkers.max(shape.points) as f64;
    Ok(Expected {
        weight_tolerance: LAMBDA * (4.0 * k * (d + 1.0)).sqrt() * u * energy.max(1.0),
        theta_tolerance: 2.0 * k * LAMBDA * rows.sqrt() * u * (MEAN_RATE * coordinate).max(MASS_RATE),
        sensitivity: k * (2.0 * energy + 1.0).sqrt(),
        log_mean: state.sums.log_mean(),
        ess: state.sums.ess(),
        log_weights: state.walkers.log_weights,
        theta: state.theta,
        precision: T::NAME,
    })
}

/// Gives a peer its work and has it take the same steps.
pub fn check(
    peer: &mut Peer,
    folder: &Path,
    shape: &Shape,
    expected: &Expected,
) -> Result<String, BenchError> {
    peer.ask(&json!({
        "do": "setup", "folder": folder, "precision": expected.precision, "batch": shape.batch,
        "h": STEP_SIZE, "mean_rate": MEAN_RATE, "mass_rate": MASS_RATE,
    }))?;
    let answer = peer.ask(&json!({"do": "check", "steps": STEPS}))?;
    let numbers = answer["theta"].as_array().map(Vec::as_slice).unwrap_or_default();
    let theta: Vec<f64> = numbers.iter().filter_map(|v| v.as_f64()).collect();
    let log_weights = read_table(folder.join("answer.npy"), &ReadOptions::default())?.values;
    let (log_mean, ess) = (peer.number(&answer, "log_mean")?, peer.number(&answer, "ess")?);
    expected.compare(&peer.name, &log_weights, &theta, log_mean, ess)
}

impl Expected {
    /// Says how close the numbers are, or that they are not close enough.
    fn compare(
        &self,
        peer: &str,
        log_weights: &[f64],
        theta: &[f64],
        log_mean: f64,
        ess: f64,
    ) -> Result<String, BenchError> {
        let shift = self.theta.iter().zip(theta).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt();
        let weights = self.weight_tolerance + self.sensitivity * shift;
        // Parameters first: how far they are off decides what the weights are allowed. The log-mean is off by no more than the
        // log-weights, the ESS by four times that.
        let all = [
            ("parameters", largest_difference(&self.theta, theta), self.theta_tolerance),
            ("log-weights", largest_difference(&self.log_weights, log_weights), weights),
            ("log Z", largest_difference(&[self.log_mean], &[log_mean]), weights),
            ("ESS", largest_difference(&[self.ess], &[ess]), 4.0 * weights),
        ];
        let text = |(what, off, tolerance): &(&str, f64, f64)| {
            format!("{what} differ by {off:.1e} (allowed {tolerance:.1e})")
        };
        match all.iter().find(|(_, off, tolerance)| off.is_nan() || off > tolerance) {
            Some(bad) => Err(BenchError::Differs { peer: peer.into(), what: text(bad) }),
            None => Ok(format!("{}, {}", text(&all[0]), text(&all[1]))),
        }
    }
}

/// Not a number if the lengths differ or a value is none.
fn largest_difference(a: &[f64], b: &[f64]) -> f64 {
    if a.len() != b.len() || a.is_empty() {
        return f64::NAN;
    }
    let differences = a.iter().zip(b).map(|(a, b)| (a - b).abs());
    differences.fold(0.0, |top, d| if d.is_nan() || top.is_nan() { f64::NAN } else { d.max(top) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected() -> Expected {
        Expected {
            log_weights: vec![0.5, -0.25],
            theta: vec![1.0, 2.0],
            log_mean: 0.1,
            ess: 0.9,
            weight_tolerance: 1e-4,
            theta_tolerance: 1e-6,
            sensitivity: 10.0,
            precision: "f32",
        }
    }

    #[test]
    fn rounding_passes_and_anything_else_fails() {
        let e = expected();
        let compare = |a: &[f64], t: &[f64], z: f64, ess: f64| e.compare("p", a, t, z, ess);
        assert!(compare(&[0.50005, -0.25], &[1.0, 2.0], 0.1, 0.9).is_ok());
        let (weights, theta) = ([0.5, -0.25], [1.0, 2.0]);
        let wrong = [
            (compare(&[0.5002, -0.25], &theta, 0.1, 0.9), "log-weights"),
            (compare(&[0.5], &theta, 0.1, 0.9), "log-weights"),
            (compare(&[f64::NAN, -0.25], &theta, 0.1, 0.9), "log-weights"),
            (compare(&weights, &[1.0, 2.00001], 0.1, 0.9), "parameters"),
            (compare(&weights, &[1.0], 0.1, 0.9), "parameters"),
            (compare(&weights, &theta, 0.2, 0.9), "log Z"),
            (compare(&weights, &theta, 0.1, 0.8), "ESS"),
        ];
        for (result, what) in wrong {
            let error = result.unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        }
    }
}
