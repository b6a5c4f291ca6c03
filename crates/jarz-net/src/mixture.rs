//! A mixture of Gaussians as base measure, fitted by expectation maximisation.
//!
//! Walkers have coordinates `z` in which the mean of the components' precisions is one, `sum_k w_k (L_k L_k')^-1 = (L L')^-1`: no component is narrower there than `sqrt(w_k)` in
//! any direction, so that walkers can take long steps in all of them. There the base is `-log sum_k exp(c_k - |y_k|^2 / 2)`, with `y_k = L_k^-1 (x - m_k)` and `c_k = log w_k - log |det L_k| + log |det L|`: the mixture's density times
//! `(2 pi)^(d/2)`, so that `log Z_0` is that of the standard Gaussian, whatever the mixture is.
//!
//! A model on top of it may change the weights: `c_k + t_k` in place of `c_k`, with `t_1 = 0`, which is zero at the start.

use crate::base::{Base, Maps, Triangle, cholesky, covariance, invert};
use crate::error::Error;
use crate::functions::half_squares;
use jarz::annealing::BaseMeasure;
use jarz::simd::Isa;
use jarz::{Purpose, Random, Real, WalkerIds};
use std::ops::Range;
use std::sync::Arc;

/// Most components of a fit.
const MOST: usize = 64;
/// Rounds of k-means that the fit begins with.
const ROUNDS: usize = 20;
/// Most steps of expectation maximisation, and the gain in nats per point below which another one is not worth its time.
const STEPS: usize = 40;
const GAIN: f64 = 1e-2;
/// Components with a smaller share of a walker have no part in its gradient.
const NOTHING: f64 = 1e-30;
/// Walkers that are sampled together.
const SAMPLED: usize = 1024;

/// A Gaussian that is part of a base measure, in the coordinates of the data.
#[derive(Clone, Debug, PartialEq)]
pub struct Component {
    /// Its mass.
    pub weight: f64,
    /// Its mean.
    pub mean: Vec<f64>,
    /// Lower Cholesky factor of its covariance, row-major.
    pub factor: Vec<f64>,
}

/// Fits so many components to rows of data with independent noise of standard deviation `noise` added to every coordinate, from fixed random numbers. What is maximised is the
/// likelihood of noisy rows: with responsibilities that know the noise only by its variance, each step has a closed form.
pub(crate) fn fit(data: &[f64], dim: usize, noise: f64, count: usize) -> Result<Vec<Component>, Error> {
    let n = data.len() / dim;
    if !(2..=MOST).contains(&count) || n < 2 * count {
        return Err(Error::Data(format!(
            "a mixture of {count} Gaussians cannot be fitted to {n} points: take 2 to {}",
            MOST.min(n / 2)
        )));
    }
    let nearest = k_means(data, dim, count);
    let mut shares = vec![0.0; n * count];
    nearest.iter().enumerate().for_each(|(i, k)| shares[i * count + k] = 1.0);
    let mut components = Vec::new();
    let mut before = f64::NEG_INFINITY;
    for _ in 0..STEPS {
        components = maximise(data, dim, noise, &shares, count)?;
        let now = expect(data, dim, noise, &components, &mut shares);
        if now - before < GAIN {
            break;
        }
        before = now;
    }
    Ok(components)
}

/// Lower factor of the inverse of the mean precision.
pub(crate) fn coordinates(components: &[Component], dim: usize) -> Result<Vec<f64>, Error> {
    // Rows of L_k^-1, of all components: their products sum to the mean precision.
    let rows: Vec<f64> = components
        .iter()
        .flat_map(|c| {
            let root = c.weight.sqrt();
            invert(&c.factor, dim).into_iter().map(move |v| root * v).collect::<Vec<f64>>()
        })
        .collect();
    let precision = covariance(&rows, dim, 1.0, 0.0);
    let inverse = invert(&cholesky(precision, dim)?, dim);
    cholesky(covariance(&inverse, dim, 1.0, 0.0), dim)
}

/// Each component at the points that belong to it, all at once.
fn maximise(
    data: &[f64],
    dim: usize,
    noise: f64,
    shares: &[f64],
    count: usize,
) -> Result<Vec<Component>, Error> {
    let n = data.len() / dim;
    let one = |k: usize| -> Result<Component, Error> {
        let share = |i: usize| shares[i * count + k];
        let total: f64 = (0..n).map(share).sum();
        if total < 1e-6 {
            let text = format!(
                "one of {count} Gaussians has lost all its points while they were fitted: take fewer"
            );
            return Err(Error::Data(text));
        }
        let mut mean = vec![0.0; dim];
        for (i, row) in data.chunks_exact(dim).enumerate().filter(|(i, _)| share(*i) > 0.0) {
            mean.iter_mut().zip(row).for_each(|(m, x)| *m += share(i) / total * x);
        }
        let mut centred = Vec::new();
        for (i, row) in data.chunks_exact(dim).enumerate().filter(|(i, _)| share(*i) > 0.0) {
            let root = share(i).sqrt();
            centred.extend(row.iter().zip(&mean).map(|(x, m)| root * (x - m)));
        }
        let factor = cholesky(covariance(&centred, dim, total, noise), dim)?;
        Ok(Component { weight: total / n as f64, mean, factor })
    };
    in_parallel(count, &one).into_iter().collect()
}

/// The share of every component in every point, and the mean log-density of noisy points that it promises at least.
fn expect(data: &[f64], dim: usize, noise: f64, components: &[Component], shares: &mut [f64]) -> f64 {
    let count = components.len();
    let densities = in_parallel(count, &|k| {
        let c = &components[k];
        let part = Part::<f64>::new(c, 0.0);
        // The mean over the noise of |L^-1 noise|^2.
        let blur: f64 = noise * noise * invert(&c.factor, dim).iter().map(|v| v * v).sum::<f64>();
        let mut y = vec![0.0; data.len().min(SAMPLED * dim)];
        let mut out = vec![0.0; data.len() / dim];
        for (x, out) in data.chunks(SAMPLED * dim).zip(out.chunks_mut(SAMPLED)) {
            part.maps.to_base(x, &mut y[..x.len()]);
            half_squares(Isa::best(), &y[..x.len()], dim, out);
            out.iter_mut().for_each(|u| *u = part.constant - *u - 0.5 * blur);
        }
        out
    });
    let mut sum = 0.0;
    for (i, shares) in shares.chunks_exact_mut(count).enumerate() {
        shares.iter_mut().zip(&densities).for_each(|(s, d)| *s = d[i]);
        sum += to_shares(shares);
    }
    sum / densities[0].len() as f64 - 0.5 * dim as f64 * std::f64::consts::TAU.ln()
}

/// From logarithms to shares of their sum, whose logarithm is given back.
fn to_shares(logs: &mut [f64]) -> f64 {
    let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    logs.iter_mut().for_each(|l| *l = (*l - top).exp());
    let sum: f64 = logs.iter().sum();
    logs.iter_mut().for_each(|l| *l /= sum);
    top + sum.ln()
}

/// One result for each number below `count`, on all cores.
fn in_parallel<R: Send>(count: usize, f: &(dyn Fn(usize) -> R + Sync)) -> Vec<R> {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let mut out = Vec::with_capacity(count);
    for first in (0..count).step_by(cores) {
        std::thread::scope(|scope| {
            let jobs: Vec<_> = (first..count.min(first + cores)).map(|k| scope.spawn(move || f(k))).collect();
            out.extend(
                jobs.into_iter().map(|j| j.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))),
            );
        });
    }
    out
}

/// The nearest of `count` centres for every row (Lloyd's algorithm; Arthur and Vassilvitskii's choice of the first centres).
fn k_means(data: &[f64], dim: usize, count: usize) -> Vec<usize> {
    let random = Random::new(0);
    let row = |i: usize| &data[i * dim..(i + 1) * dim];
    let distance = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
    let n = data.len() / dim;
    let mut centres: Vec<Vec<f64>> = Vec::new();
    let mut far = vec![1.0; n];
    for k in 0..count {
        let mut u = random.uniform(k as u64, 0, Purpose::StartMode) * far.iter().sum::<f64>();
        let chosen = far.iter().position(|f| {
            u -= f;
            u < 0.0
        });
        let centre = row(chosen.unwrap_or(n - 1)).to_vec();
        for (i, far) in far.iter_mut().enumerate() {
            let d = distance(row(i), &centre);
            *far = if k == 0 { d } else { far.min(d) };
        }
        centres.push(centre);
    }
    let mut nearest = vec![0; n];
    for _ in 0..ROUNDS {
        for (i, nearest) in nearest.iter_mut().enumerate() {
            let d: Vec<f64> = centres.iter().map(|c| distance(row(i), c)).collect();
            *nearest = (0..count).min_by(|a, b| d[*a].total_cmp(&d[*b])).unwrap_or(0);
        }
        for (k, centre) in centres.iter_mut().enumerate() {
            let mine: Vec<usize> = (0..n).filter(|i| nearest[*i] == k).collect();
            if !mine.is_empty() {
                centre.fill(0.0);
                for i in &mine {
                    centre.iter_mut().zip(row(*i)).for_each(|(c, x)| *c += x / mine.len() as f64);
                }
            }
        }
    }
    // Every component begins with a point at least.
    for (k, centre) in centres.iter().enumerate() {
        if !nearest.contains(&k) {
            let closest =
                (0..n).min_by(|a, b| distance(row(*a), centre).total_cmp(&distance(row(*b), centre)));
            nearest[closest.unwrap_or(0)] = k;
        }
    }
    nearest
}

/// The mixture, ready for blocks of walkers.
#[derive(Clone, Debug)]
pub(crate) struct Parts<T> {
    dim: usize,
    parts: Vec<Part<T>>,
    /// Sums of the masses up to each component.
    masses: Vec<f64>,
}

#[derive(Clone, Debug)]
struct Part<T> {
    /// Between the data's coordinates and those in which this component is the standard Gaussian.
    maps: Maps<T>,
    /// `L_k^-1` transposed: gradients in the data's coordinates.
    pull: Triangle<T>,
    /// `c_k`.
    constant: f64,
}

impl<T: Real> Part<T> {
    fn new(component: &Component, log_det: f64) -> Self {
        let Component { weight, mean, factor } = component;
        let dim = mean.len();
        let own: f64 = factor.iter().step_by(dim + 1).map(|s| s.ln()).sum();
        Part {
            maps: Base::gaussian(mean.clone(), factor.clone()).maps(),
            pull: Triangle::new(&invert(factor, dim), dim, true),
            constant: weight.ln() - own + log_det,
        }
    }
}

/// Memory for a block of walkers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Work<T> {
    /// `y_k` of all walkers, one component after the other.
    y: Vec<T>,
    /// Shares of the components in a walker, one component after the other.
    shares: Vec<f64>,
    logs: Vec<f64>,
    pulled: Vec<T>,
}

impl<T: Real> Parts<T> {
    /// Of a base that has components.
    pub fn new(base: &Base) -> Option<Self> {
        let components = base.components();
        let mut sum = 0.0;
        let masses = components.iter().map(|c| {
            sum += c.weight;
            sum
        });
        let masses = masses.collect();
        let parts = components.iter().map(|c| Part::new(c, base.log_det())).collect();
        (!components.is_empty()).then_some(Parts { dim: base.dim(), parts, masses })
    }

    /// How many components there are.
    pub fn count(&self) -> usize {
        self.parts.len()
    }

    /// The energy of walkers at `x`, in the data's coordinates. `tilt` is what the logarithms of all weights but the first have in addition, or empty for the base itself.
    pub fn energy(&self, x: &[T], tilt: &[f64], energy: &mut [f64], work: &mut Work<T>) {
        let (rows, count) = (energy.len(), self.parts.len());
        work.y.resize(count * x.len(), T::ZERO);
        work.shares.resize(count * rows, 0.0);
        work.logs.resize(count, 0.0);
        for (k, part) in self.parts.iter().enumerate() {
            let y = &mut work.y[k * x.len()..(k + 1) * x.len()];
            part.maps.to_base(x, y);
            half_squares(Isa::best(), y, self.dim, &mut work.shares[k * rows..(k + 1) * rows]);
        }
        for (i, u) in energy.iter_mut().enumerate() {
            for (k, part) in self.parts.iter().enumerate() {
                work.logs[k] = part.constant - work.shares[k * rows + i];
            }
            work.logs[1..].iter_mut().zip(tilt).for_each(|(log, tilt)| *log += tilt);
            *u = -to_shares(&mut work.logs);
            (0..count).for_each(|k| work.shares[k * rows + i] = work.logs[k]);
        }
    }

    /// Adds `sum_i weights_i dU(x_i)/dtilt` to `out`, where the energy was asked for last: minus the shares of all components but the first.
    pub fn add_tilt_gradient(&self, weights: &[f64], out: &mut [f64], work: &Work<T>) {
        let shares = work.shares.chunks_exact(weights.len()).skip(1);
        for (out, shares) in out.iter_mut().zip(shares) {
            *out -= weights.iter().zip(shares).map(|(p, share)| p * share).sum::<f64>();
        }
    }

    /// Makes some walkers' shares in `into`, which is memory for as many walkers, those in `from`.
    pub fn take_rows(&self, rows: &[usize], from: &Work<T>, into: &mut Work<T>) {
        let count = from.shares.len() / self.parts.len();
        for (from, into) in
            from.shares.chunks_exact(count.max(1)).zip(into.shares.chunks_exact_mut(count.max(1)))
        {
            rows.iter().for_each(|&i| into[i] = from[i]);
        }
    }

    /// Adds the gradient in the data's coordinates, where the energy was asked for last.
    pub fn add_gradient(&self, gradient: &mut [T], work: &mut Work<T>) {
        let (dim, rows) = (self.dim, gradient.len() / self.dim);
        work.pulled.resize(gradient.len(), T::ZERO);
        for (k, part) in self.parts.iter().enumerate() {
            let (y, shares) =
                (&mut work.y[k * gradient.len()..][..gradient.len()], &work.shares[k * rows..][..rows]);
            let belong = || (0..rows).filter(|i| shares[*i] > NOTHING);
            // Most walkers belong to one component: only its rows are multiplied.
            let mut mine = 0;
            for i in belong() {
                y.copy_within(i * dim..(i + 1) * dim, mine * dim);
                mine += 1;
            }
            let pulled = &mut work.pulled[..mine * dim];
            part.pull.apply(&y[..mine * dim], None, pulled);
            for (i, pulled) in belong().zip(pulled.chunks_exact(dim)) {
                let share = T::from_f64(shares[i]);
                let row = &mut gradient[i * dim..(i + 1) * dim];
                row.iter_mut().zip(pulled).for_each(|(g, p)| *g = share.mul_add(*p, *g));
            }
        }
    }

    /// Samples, in the data's coordinates: from standard normal numbers in `x`, and a number in [0, 1) for each walker that tells its component.
    pub fn sample(&self, at: &[f64], x: &mut [T]) {
        let dim = self.dim;
        let component = |u: f64| self.masses.iter().take(self.masses.len() - 1).filter(|m| u >= **m).count();
        let (mut from, mut to) = (Vec::new(), Vec::new());
        for (k, part) in self.parts.iter().enumerate() {
            let mine: Vec<usize> = (0..at.len()).filter(|i| component(at[*i]) == k).collect();
            from.clear();
            mine.iter().for_each(|i| from.extend_from_slice(&x[i * dim..(i + 1) * dim]));
            to.resize(from.len(), T::ZERO);
            part.maps.to_data(&from, &mut to);
            for (i, row) in mine.iter().zip(to.chunks_exact(dim)) {
                x[i * dim..(i + 1) * dim].copy_from_slice(row);
            }
        }
    }

    /// Samples in the walkers' coordinates, normal numbers of `purpose`; `at` as above, from the walker's number.
    pub fn sample_walkers(
        &self,
        maps: &Maps<T>,
        ids: Range<u64>,
        random: &Random,
        purpose: Purpose,
        at: impl Fn(u64) -> f64,
        out: &mut [T],
    ) {
        let (dim, stride) = (self.dim, T::noise_stride(self.dim));
        let mut x = vec![T::ZERO; SAMPLED * dim];
        let mut normals = Vec::new();
        for (first, out) in ids.step_by(SAMPLED).zip(out.chunks_mut(SAMPLED * dim)) {
            let rows = out.len() / dim;
            normals.resize(rows * stride, T::ZERO);
            random.normal_rows(0, purpose, WalkerIds::From(first), dim, &mut normals);
            let x = &mut x[..out.len()];
            for (row, x) in normals.chunks_exact(stride).zip(x.chunks_exact_mut(dim)) {
                x.copy_from_slice(&row[..dim]);
            }
            let at: Vec<f64> = (first..first + rows as u64).map(&at).collect();
            self.sample(&at, x);
            maps.to_base(x, out);
        }
    }
}

/// Where an annealing begins.
pub(crate) struct MixtureMeasure<T> {
    pub maps: Arc<Maps<T>>,
    pub parts: Arc<Parts<T>>,
}

impl<T: Real> BaseMeasure<T> for MixtureMeasure<T> {
    fn dim(&self) -> usize {
        self.parts.dim
    }

    fn log_z(&self) -> f64 {
        0.5 * self.parts.dim as f64 * std::f64::consts::TAU.ln()
    }

    fn sample(&self, ids: Range<u64>, random: &Random, out: &mut [T]) {
        // Step 0 of this purpose has the normal numbers.
        let at = |id: u64| random.uniform(1, id, Purpose::AnnealStart);
        self.parts.sample_walkers(&self.maps, ids, random, Purpose::AnnealStart, at, out);
    }

    fn energy_and_gradient(&self, z: &[T], energy: &mut [f64], gradient: &mut [T]) {
        let (mut x, mut work) = (vec![T::ZERO; z.len()], Work::default());
        self.maps.to_data(z, &mut x);
        self.parts.energy(&x, &[], energy, &mut work);
        x.fill(T::ZERO);
        self.parts.add_gradient(&mut x, &mut work);
        self.maps.gradient_to_base(&x, gradient);
    }
}
