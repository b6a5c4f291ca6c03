//! The whole Jarzynski iteration with the paper's MNIST network, MALA and Adam, against PyTorch.
//!
//! The images are the embedded digits, drawn larger: nothing has to be downloaded, and the time does not depend on what they show. Some
//! steps are taken before anything is compared, so that the network is not zero and walkers have weights. There is no trust region
//! on either side.

use jarz::random::Subset;
use jarz::{
    Dataset, Energy, Kernel, Optimizer, Purpose, Real, Rule, Setup, StepSize, Thresholds, Trainer, Trigger,
    WalkerIds,
};
use jarz_data::{Images, Preparation, ReadOptions, digits, read_table, write_npy_f32, write_npy_f64};
use jarz_net::{Architecture, Base, BaseKind, NetEnergy, Saved};
use serde_json::json;
use std::path::Path;

use crate::error::BenchError;
use crate::measure::{Comparison, Pair, median};
use crate::network::{LAMBDA, relative, tolerances};
use crate::peer::Peer;
use crate::rows::Row;
use crate::steps::{Effort, Failures, Idleness, admit_each};
use crate::work::{Ours as Steps, SEED, random};

/// Name in the results.
pub const WORK: &str = "net:mnist-step";

const WALKERS: usize = 1024;
const BATCH: usize = 512;
const NOISE: f64 = 0.05;
const RATE: f64 = 1e-3;
const BETAS: [f64; 2] = [0.95, 0.999];
const EPSILON: f64 = 1e-8;
const CLIP: f64 = 1.0;
const TARGET: f64 = 0.7;
const GAIN: f64 = 0.05;
const THRESHOLD: f64 = 0.5;
/// Steps before the start of what is compared.
const PREPARATION: u64 = 40;
/// Steps that are compared.
const CHECKED: u64 = 3;

type Ours = Steps<f32, NetEnergy<f32>>;
type Parts = Setup<f32, NetEnergy<f32>>;

/// The embedded digits as images of 28 x 28.
fn large_digits() -> Result<Images, BenchError> {
    let small = digits()?;
    let (side, from) = (28, 8);
    let place = |i: usize| (i / side * from / side) * from + i % side * from / side;
    let pixels = (0..small.len()).flat_map(|n| (0..side * side).map(move |i| (n, place(i))));
    let pixels = pixels.map(|(n, at)| small.image(n)[at]).collect();
    Ok(Images::new([side, side, 1], pixels)?.with_levels(small.levels())?)
}

/// The experiment's setup, and the noisy images in their own coordinates.
fn setup(threads: usize) -> Result<(Parts, Vec<f32>), BenchError> {
    let images = large_digits()?;
    let values = |noise: f64| {
        let how = Preparation { dequantise: false, noise, seed: SEED, draw: 0 };
        images.values::<f64>(&how)
    };
    let base = Base::fit(&values(0.0)?, images.dim(), NOISE, BaseKind::Full)?;
    let x: Vec<f32> = values(NOISE)?.iter().map(|&v| v as f32).collect();
    let energy = NetEnergy::<f32>::new(&Architecture::mnist(), base, SEED)?;
    let mut z = vec![0.0; x.len()];
    energy.maps().to_base(&x, &mut z);
    let data = Dataset::new(images.dim(), z).ok_or_else(|| BenchError::Usage("no finite images".into()))?;
    let rule = Rule::Adam { beta1: BETAS[0], beta2: BETAS[1], epsilon: EPSILON };
    let optimizer = Optimizer::new(rule, vec![RATE; energy.params().len()]).with_clip(Some(CLIP));
    let bounds = (1e-8, 1e3);
    let setup = Setup {
        kernel: Kernel::mala(),
        step_size: StepSize::Adaptive { initial: 0.05, target: TARGET, gain: GAIN, bounds },
        optimizer,
        trigger: Trigger::EssBelow(Thresholds::constant(THRESHOLD)),
        walkers: WALKERS,
        data_batch: Some(BATCH),
        seed: SEED,
        threads,
        ..Setup::new(energy, data)
    };
    Ok((setup, x))
}

/// A trainer that has taken its first steps, carefully.
fn prepared(setup: &Parts) -> Result<Ours, BenchError> {
    let mut careful = Trainer::new(Setup { trust_region: Some(0.02), ..setup.clone() })?;
    for _ in 0..PREPARATION {
        careful.step()?;
    }
    let mut trainer = Trainer::new(setup.clone())?;
    trainer.restore(careful.state())?;
    Ok(Ours::starting(trainer))
}

/// What our side got, and how far a peer may be off.
struct Expected {
    /// Change of the log-weights over the steps.
    gain: Vec<f64>,
    /// Change of the parameters, in the order of weight files.
    change: Vec<f64>,
    /// On the norm of the difference in the parameters.
    params_tolerance: f64,
    /// On a log-weight, if the parameters are the same.
    weight_tolerance: f64,
    /// Largest `|dU/dtheta|` of a walker.
    sensitivity: f64,
    /// On a Metropolis ratio's logarithm.
    ratio_tolerance: f64,
}

/// Writes what the peers start from, and takes the steps ourselves.
fn prepare(folder: &Path, ours: &mut Ours, x: &[f32]) -> Result<Expected, BenchError> {
    let file = |name: &str| folder.join(name);
    let architecture = Architecture::mnist();
    ours.reset()?;
    let start = ours.start().clone();
    let (dim, n) = (start.walkers.dim, start.walkers.len());
    let base = ours.trainer().energy().base().clone();
    write_npy_f64(file("mean.npy"), &[dim], base.mean())?;
    write_npy_f64(file("factor.npy"), &[dim, dim], base.factor())?;
    write_npy_f32(file("data.npy"), &[x.len() / dim, dim], x)?;
    write_npy_f32(file("walkers.npy"), &[n, dim], start.walkers.positions())?;
    write_npy_f64(file("log_weights.npy"), &[n], start.walkers.log_weights())?;
    for (name, moment) in ["first.npy", "second.npy"].iter().zip(&start.moments) {
        let moment = Saved::in_file_order(&architecture, moment)?;
        write_npy_f64(file(name), &[moment.len()], &moment)?;
    }
    let saved = Saved { architecture: architecture.clone(), params: start.theta.clone(), base: None };
    saved.write(file("network.safetensors"))?;
    take_steps(folder, ours, x.len() / dim)?;
    let end = ours.trainer().state();
    let difference = |a: &[f64], b: &[f64]| -> Vec<f64> { a.iter().zip(b).map(|(a, b)| a - b).collect() };
    if end.walkers.resamplings != start.walkers.resamplings {
        return Err(BenchError::Usage("a resampling among the steps to be compared".into()));
    }
    let change = Saved::in_file_order(&architecture, &difference(&end.theta, &start.theta))?;
    let tolerances = Tolerances::new(ours, &architecture)?;
    Ok(Expected {
        gain: difference(&end.walkers.log_weights, &start.walkers.log_weights),
        change,
        params_tolerance: tolerances.params,
        weight_tolerance: tolerances.weight,
        sensitivity: tolerances.sensitivity,
        ratio_tolerance: tolerances.ratio,
    })
}

/// Takes the steps and writes their random numbers and what Metropolis decided.
fn take_steps(folder: &Path, ours: &mut Ours, points: usize) -> Result<(), BenchError> {
    let (dim, n) = (ours.start().walkers.dim, ours.start().walkers.len());
    let (stride, random, mut subset) = (f32::noise_stride(dim), random(), Subset::default());
    let (mut noise, mut chosen) = (Vec::new(), Vec::new());
    let (mut uniforms, mut accepted) = (Vec::new(), Vec::new());
    let mut rows = vec![0.0f32; n * stride];
    for _ in 0..CHECKED {
        let k = ours.trainer().iteration();
        random.normal_rows(k, Purpose::Noise, WalkerIds::From(0), dim, &mut rows);
        noise.extend(rows.chunks_exact(stride).flat_map(|row| row[..dim].iter().copied()));
        random.subset(k, Purpose::DataBatch, BATCH, points, &mut subset);
        chosen.extend(subset.members().iter().map(|&i| i as f64));
        uniforms.extend((0..n as u64).map(|id| random.uniform(k, id, Purpose::Accept)));
        let before = ours.trainer().walkers().positions().to_vec();
        ours.run(1)?;
        let after = ours.trainer().walkers().positions();
        let moved = before.chunks_exact(dim).zip(after.chunks_exact(dim));
        accepted.extend(moved.map(|(a, b)| if a == b { 0.0 } else { 1.0 }));
    }
    let steps = CHECKED as usize;
    write_npy_f32(folder.join("noise.npy"), &[steps, n, dim], &noise)?;
    write_npy_f64(folder.join("chosen.npy"), &[steps, BATCH], &chosen)?;
    write_npy_f64(folder.join("uniforms.npy"), &[steps, n], &uniforms)?;
    write_npy_f64(folder.join("accepted.npy"), &[steps, n], &accepted)?;
    Ok(())
}

/// How rounding spreads, with the relative errors of a network's energies and parameter gradients from `network.rs`.
struct Tolerances {
    params: f64,
    weight: f64,
    sensitivity: f64,
    ratio: f64,
}

impl Tolerances {
    fn new(ours: &Ours, architecture: &Architecture) -> Result<Self, BenchError> {
        let (k, u) = (CHECKED as f64, f64::from(f32::EPSILON) / 2.0);
        let [energy, _, gradient] = tolerances(architecture, WALKERS)?;
        let state = ours.trainer().state();
        // The direction is a difference of two means, each off by a small part of itself, and Adam divides by its usual size, parameter by
        // parameter. Parameters of peers are single precision.
        let mut mean = vec![0.0; state.theta.len()];
        state.sums.mean_gradient(&mut mean);
        let norm = |values: &[f64]| values.iter().map(|v| v * v).sum::<f64>().sqrt();
        let part = 2.0 * gradient * norm(&mean) / state.last[1];
        let params = k * (RATE * part * (mean.len() as f64).sqrt() + LAMBDA * u * norm(&state.theta));
        let largest =
            |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, |top: f64, v| top.max(v.abs()));
        let total = largest(&mut state.walkers.energies().iter().copied());
        let dim = state.walkers.dim;
        let model = ours.trainer().energy();
        let (mut workspace, mut sensitivity, mut f) = (Default::default(), 0.0f64, 0.0f64);
        for x in state.walkers.positions().chunks_exact(dim) {
            let (mut energy, mut of_params) = ([0.0], vec![0.0; state.theta.len()]);
            model.energy(x, &mut energy, &mut workspace);
            model.add_param_gradient(x, &[1.0], &mut of_params, &mut workspace);
            sensitivity = sensitivity.max(of_params.iter().map(|v| v * v).sum::<f64>().sqrt());
            f = f.max((energy[0] - x.iter().map(|v| f64::from(v * v)).sum::<f64>() / 2.0).abs());
        }
        Ok(Tolerances {
            params,
            weight: 2.0 * k * energy * f.max(1.0),
            sensitivity,
            // Two energies and two alphas of `dim` terms each.
            ratio: 4.0 * LAMBDA * (dim as f64).sqrt() * u * total + 2.0 * energy * f.max(1.0),
        })
    }
}

/// Gives a peer its work and has it take the same steps.
fn check(peer: &mut Peer, folder: &Path, ours: &Ours, expected: &Expected) -> Result<String, BenchError> {
    let architecture = Architecture::mnist();
    let layers = serde_json::to_value(&architecture.layers).unwrap_or_default();
    let start = ours.start();
    peer.ask(&json!({
        "do": "setup", "folder": folder, "input": architecture.input, "layers": layers,
        "iteration": start.iteration, "h": start.step_size, "batch": BATCH, "rate": RATE, "betas": BETAS,
        "epsilon": EPSILON, "clip": CLIP, "target": TARGET, "gain": GAIN, "threshold": THRESHOLD,
    }))?;
    let answer = peer.ask(&json!({"do": "check", "steps": CHECKED}))?;
    let read = |file: &str| read_table(folder.join(file), &ReadOptions::default()).map(|t| t.values);
    let (gain, change) = (read("gain.npy")?, read("change.npy")?);
    let (other, by) = (peer.number(&answer, "other")?, peer.number(&answer, "by")?);
    expected
        .compare(&gain, &change, other, by)
        .map_err(|what| BenchError::Differs { peer: peer.name.clone(), what })
}

impl Expected {
    /// Says how close the numbers are, or which are not close enough. `other` Metropolis decisions would have been others, with ratios off by up to `by`.
    fn compare(&self, gain: &[f64], change: &[f64], other: f64, by: f64) -> Result<String, String> {
        let norm = |values: &[f64]| values.iter().map(|v| v * v).sum::<f64>().sqrt();
        let off = relative(&self.change, change) * norm(&self.change);
        let weights = self.weight_tolerance + CHECKED as f64 * self.sensitivity * off;
        let same = self.gain.len() == gain.len();
        let pairs = self.gain.iter().zip(gain).map(|(a, b)| (a - b).abs());
        let furthest = pairs.fold(0.0, |top: f64, d| if d.is_nan() { f64::INFINITY } else { top.max(d) });
        let furthest = if same { furthest } else { f64::NAN };
        let all = [
            ("parameters", off, self.params_tolerance, norm(&self.change)),
            ("log-weights", furthest, weights, norm(&self.gain) / (self.gain.len() as f64).sqrt()),
            ("Metropolis ratios of other decisions", by, self.ratio_tolerance, other),
        ];
        let text = |(what, off, allowed, size): &(&str, f64, f64, f64)| {
            format!("{what} differ by {off:.1e} (allowed {allowed:.1e}; {size:.2})")
        };
        match all.iter().find(|(_, off, allowed, _)| off.is_nan() || off > allowed) {
            Some(bad) => Err(text(bad)),
            None => Ok(all.iter().map(text).collect::<Vec<_>>().join(", ")),
        }
    }
}

/// The iteration against all peers, in turns.
pub fn compare(
    peers: &mut [&mut Peer],
    effort: Effort,
    failures: &mut Failures,
) -> Result<Vec<Row>, BenchError> {
    eprintln!(
        "{WORK} (f32), Jarzynski iteration of the paper's MNIST network, {WALKERS} walkers, {BATCH} images"
    );
    let (setup, x) = setup(0)?;
    let mut ours = prepared(&setup)?;
    let checked = admit(&mut ours, &x, peers, failures)?;
    let mut pairs: Vec<Vec<Pair>> = vec![Vec::new(); peers.len()];
    let (mut alone, mut idle) = (Vec::new(), Idleness::default());
    for _ in 0..effort.repeats {
        for i in (0..peers.len()).filter(|&i| checked[i]) {
            let own = idle.watch(peers, || ours.time(effort.least))?;
            pairs[i].push((own, peers[i].time(effort.least)?));
        }
        if peers.is_empty() {
            alone.push(ours.time(effort.least)?);
        }
    }
    idle.complain();
    let of_peers = peers.iter().zip(&pairs).filter(|(_, pairs)| !pairs.is_empty());
    let mut rows: Vec<Row> =
        of_peers.map(|(peer, pairs)| Row::compared(WORK, "f32", &peer.name, Comparison::of(pairs))).collect();
    if !alone.is_empty() {
        rows.push(Row::alone(WORK, "f32", median(alone)));
    }
    Ok(rows)
}

/// Hands the work to every peer and checks what it computes.
fn admit(
    ours: &mut Ours,
    x: &[f32],
    peers: &mut [&mut Peer],
    failures: &mut Failures,
) -> Result<Vec<bool>, BenchError> {
    if peers.is_empty() {
        return Ok(Vec::new());
    }
    let folder = tempfile::tempdir().map_err(BenchError::io("cannot make a temporary folder"))?;
    let expected = prepare(folder.path(), ours, x)?;
    Ok(admit_each(peers, failures, |peer| check(peer, folder.path(), ours, &expected)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_passes_and_anything_else_fails() {
        let expected = Expected {
            gain: vec![0.1, -0.2],
            change: vec![0.3, 0.4],
            params_tolerance: 1e-3,
            weight_tolerance: 1e-4,
            sensitivity: 1.0,
            ratio_tolerance: 1e-2,
        };
        let (gain, change) = ([0.1, -0.2], [0.3, 0.4]);
        assert!(expected.compare(&[0.10005, -0.2], &[0.3, 0.4005], 1.0, 0.005).is_ok());
        for (result, what) in [
            (expected.compare(&[0.11, -0.2], &change, 0.0, 0.0), "log-weights"),
            (expected.compare(&[0.1], &change, 0.0, 0.0), "log-weights"),
            (expected.compare(&[f64::NAN, -0.2], &change, 0.0, 0.0), "log-weights"),
            (expected.compare(&gain, &[0.3, 0.41], 0.0, 0.0), "parameters"),
            (expected.compare(&gain, &[0.3], 0.0, 0.0), "parameters"),
            (expected.compare(&gain, &change, 1.0, 0.1), "Metropolis"),
        ] {
            let text = result.unwrap_err();
            assert!(text.contains(what), "{text}");
        }
    }

    #[test]
    fn digits_become_larger_and_stay_themselves() {
        let (small, large) = (digits().unwrap(), large_digits().unwrap());
        assert_eq!((large.len(), large.shape()), (small.len(), [28, 28, 1]));
        let (a, b) = (small.image(3), large.image(3));
        assert_eq!([b[0], b[27], b[27 * 28], b[27 * 28 + 27]], [a[0], a[7], a[56], a[63]]);
    }
}
