//! Gaussian mixture with any number of modes: the paper's test bed, with everything known exactly.
//!
//! `U(x) = -log sum_k exp(l_k - |x - m_k|^2 / (2 sigma^2))`, so that mode `k` has mass `softmax(l)_k` and
//! `Z = (2 pi sigma^2)^(d/2) sum_k exp(l_k)`. The paper's `z` is `-l` of the second mode, its first mode having `l = 0`.

mod fused;
pub(crate) mod panels;

use super::{Energy, Exact, Fused, ParamGroup, PerWalker, Stratification};
use crate::panels::PanelsOf;
use crate::random::{Purpose, Random};
use crate::real::{Real, sum_lanes};
use crate::simd::{Isa, LANES, multiversion};
use panels::{DataBench, Modes, Own, Workbench};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Gaussian mixture with trained means and log-masses and a common, fixed width `sigma`.
/// Parameters: the means one after the other (`mean.0`, `mean.1`, ...), then the log-masses (`log_mass.0`, ...).
#[derive(Clone, Debug)]
pub struct Mixture {
    dim: usize,
    modes: usize,
    sigma: f64,
    theta: Vec<f64>,
    /// Number of these parameters: no two sets share one.
    version: u64,
}

/// A number that no parameters have had.
fn new_version() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// A share of a walker or of a weight that does not count.
const NEGLIGIBLE: f64 = 1e-18;

/// Responsibilities of one block of walkers, and the parameters as the kernels want them.
#[derive(Default)]
pub struct MixtureWorkspace<T> {
    /// Two mixtures: of the old parameters and of the new ones.
    prepared: [Prepared<T>; 2],
    /// The one to give up for a third.
    oldest: usize,
    own: Own<T>,
    own_of: [Vec<f64>; 2],
    /// One row of modes per walker.
    responsibilities: Vec<T>,
    parts: Vec<[f64; LANES]>,
    coefficients: Vec<T>,
    masses: Vec<f64>,
    sums: Vec<T>,
    workbench: Box<Workbench<T>>,
    bench: DataBench<T>,
}

#[derive(Default)]
struct Prepared<T> {
    version: u64,
    modes: Modes<T>,
}

impl<T: Real> MixtureWorkspace<T> {
    /// Which of the prepared mixtures is `mixture`; prepared now if there was none.
    fn prepare(&mut self, mixture: &Mixture) -> usize {
        if let Some(i) = self.prepared.iter().position(|p| p.version == mixture.version) {
            self.oldest = 1 - i;
            return i;
        }
        let i = self.oldest;
        self.oldest = 1 - i;
        let Prepared { version, modes } = &mut self.prepared[i];
        *version = mixture.version;
        mixture.prepare(modes);
        i
    }
}

impl Mixture {
    /// From means (each of the same length, at least one), log-masses (one per mode) and the modes' width.
    /// `None` if lengths do not fit or the width is not positive.
    pub fn new(means: &[Vec<f64>], log_masses: &[f64], sigma: f64) -> Option<Self> {
        let (modes, dim) = (means.len(), means.first()?.len());
        let fits = dim > 0 && log_masses.len() == modes && means.iter().all(|m| m.len() == dim);
        (fits && sigma > 0.0 && sigma.is_finite()).then(|| {
            let mut theta = means.concat();
            theta.extend_from_slice(log_masses);
            Mixture { dim, modes, sigma, theta, version: new_version() }
        })
    }

    /// The two-mode mixture of the paper: unit width, means `a` and `b`, and `z`.
    pub fn paper(a: &[f64], b: &[f64], z: f64) -> Option<Self> {
        Mixture::new(&[a.to_vec(), b.to_vec()], &[0.0, -z], 1.0)
    }

    /// Mean of mode `k`.
    pub fn mean(&self, k: usize) -> &[f64] {
        &self.theta[k * self.dim..(k + 1) * self.dim]
    }

    /// The modes' log-masses, not normalised.
    pub fn log_masses(&self) -> &[f64] {
        &self.theta[self.modes * self.dim..]
    }

    /// Width of the modes.
    pub fn sigma(&self) -> f64 {
        self.sigma
    }

    fn precision(&self) -> f64 {
        1.0 / (self.sigma * self.sigma)
    }

    fn log_total_mass(&self) -> f64 {
        let top = self.log_masses().iter().copied().fold(f64::NEG_INFINITY, f64::max);
        top + self.log_masses().iter().map(|l| (l - top).exp()).sum::<f64>().ln()
    }

    fn relative_masses(&self) -> Vec<f64> {
        let total = self.log_total_mass();
        self.log_masses().iter().map(|l| (l - total).exp()).collect()
    }

    fn prepare<T: Real>(&self, modes: &mut Modes<T>) {
        let (d, stride) = (self.dim, self.dim.next_multiple_of(4));
        (modes.count, modes.dim, modes.stride) = (self.modes, d, stride);
        modes.precision = self.precision();
        modes.log_masses.clear();
        modes.log_masses.extend_from_slice(self.log_masses());
        modes.means.clear();
        modes.means.resize(self.modes * stride, T::ZERO);
        for (padded, mean) in modes.means.chunks_exact_mut(stride).zip(self.theta.chunks_exact(d)) {
            padded.iter_mut().zip(mean).for_each(|(p, m)| *p = T::from_f64(*m));
        }
        modes.offsets.clone_from(&modes.means);
        for (padded, mean) in modes.offsets.chunks_exact_mut(stride).zip(self.theta.chunks_exact(d)).skip(1) {
            for ((p, m), origin) in padded.iter_mut().zip(mean).zip(&self.theta) {
                *p = T::from_f64(m - origin);
            }
        }
        let padded = d.next_multiple_of(LANES);
        modes.tilts.clear();
        modes.tilts.resize(self.modes * padded, T::ZERO);
        for (tilt, mean) in modes.tilts.chunks_exact_mut(padded).zip(self.theta.chunks_exact(d)) {
            for ((t, m), origin) in tilt.iter_mut().zip(mean).zip(&self.theta) {
                *t = T::from_f64(self.precision() * (m - origin));
            }
        }
        let first = modes.tilts.iter_mut().zip(self.mean(0));
        first.for_each(|(t, m)| *t = T::from_f64(*m));
        modes.distances.clear();
        modes.distances.resize(self.modes * self.modes, 0.0);
        for k in 0..self.modes {
            for l in 0..k {
                let squares = self.mean(k).iter().zip(self.mean(l)).map(|(a, b)| (a - b) * (a - b));
                modes.distances[k * self.modes + l] = squares.sum();
            }
        }
    }

    /// Energies and responsibilities of the block; the latter stay in the workspace.
    fn respond<T: Real>(&self, x: &[T], energy: &mut [f64], ws: &mut MixtureWorkspace<T>) {
        let mut kept = std::mem::take(&mut ws.responsibilities);
        kept.resize(energy.len() * self.modes, T::ZERO);
        self.respond_to(x, energy, &mut kept, ws);
        ws.responsibilities = kept;
    }

    fn respond_to<T: Real>(&self, x: &[T], energy: &mut [f64], kept: &mut [T], ws: &mut MixtureWorkspace<T>) {
        let at = ws.prepare(self);
        ws.parts.resize(self.modes, [0.0; LANES]);
        T::evaluate(Isa::best(), &ws.prepared[at].modes, x, energy, kept, &mut ws.parts);
    }

    /// Adds `sum_i dU/dtheta(x_i)` to `out`.
    fn add_data_gradient<T: Real>(&self, x: PanelsOf<'_, T>, out: &mut [f64], ws: &mut MixtureWorkspace<T>) {
        self.add_data_gradient_on(Isa::best(), x, out, ws);
    }

    /// The same on a given instruction set.
    fn add_data_gradient_on<T: Real>(
        &self,
        isa: Isa,
        x: PanelsOf<'_, T>,
        out: &mut [f64],
        ws: &mut MixtureWorkspace<T>,
    ) {
        let at = ws.prepare(self);
        ws.parts.resize(self.modes, [0.0; LANES]);
        ws.sums.resize(self.modes * self.dim, T::ZERO);
        T::gather(isa, &ws.prepared[at].modes, x, &mut ws.sums, &mut ws.parts, &mut ws.bench);
        ws.masses.clear();
        ws.masses.extend(ws.parts.iter().map(|lanes| sum_lanes(*lanes)));
        self.add_sums(&ws.sums, &ws.masses, &ws.masses, out);
    }

    /// Adds the gradient that belongs to `sum_i c_ik x_i` and `sum_i c_ik`, the latter rounded like the former or not at all.
    fn add_sums<T: Real>(&self, sums: &[T], masses: &[f64], rounded: &[f64], out: &mut [f64]) {
        let (d, modes) = (self.dim, self.modes);
        let (means, log_masses) = out.split_at_mut(modes * d);
        let precision = self.precision();
        for k in 0..modes {
            let (sums, mean) = (&sums[k * d..(k + 1) * d], self.mean(k));
            add_sum(Isa::best(), sums, mean, rounded[k], precision, &mut means[k * d..(k + 1) * d]);
            log_masses[k] -= masses[k];
        }
    }

    /// Responsibilities of a block, `out[i * modes + k]`.
    fn responsibilities<T: Real>(&self, x: &[T], out: &mut [f64]) {
        let mut ws = MixtureWorkspace::default();
        self.respond(x, &mut vec![0.0; x.len() / self.dim], &mut ws);
        out.iter_mut().zip(&ws.responsibilities).for_each(|(o, r)| *o = r.to_f64());
    }

    /// Adds `sum_i weights_i dU/dtheta(x_i)` to `out`, given the responsibilities.
    fn add_gradient<T: Real>(
        &self,
        x: &[T],
        responsibilities: &[T],
        weights: &[f64],
        out: &mut [f64],
        ws: &mut MixtureWorkspace<T>,
    ) {
        let (d, modes) = (self.dim, self.modes);
        ws.coefficients.resize(responsibilities.len(), T::ZERO);
        ws.sums.resize(modes * d, T::ZERO);
        ws.masses.resize(2 * modes, 0.0);
        let (masses, rounded) = ws.masses.split_at_mut(modes);
        T::weigh(Isa::best(), responsibilities, weights, modes, &mut ws.coefficients, masses, rounded);
        T::sum_rows(Isa::best(), x, &ws.coefficients, d, modes, &mut ws.sums);
        self.add_sums(&ws.sums, masses, rounded, out);
    }
}

multiversion! {
    /// Subtracts `precision (sum - mass mean)` from `out`.
    fn add_sum[T: Real](sum: &[T], mean: &[f64], mass: f64, precision: f64, out: &mut [f64]) {
        for ((o, s), m) in out.iter_mut().zip(sum).zip(mean) {
            *o -= precision * (s.to_f64() - mass * m);
        }
    }
}

multiversion! {
    /// `gradient_i = precision (x_i - sum_k r_ik m_k)`.
    fn gradients[T: Real](x: &[T], modes: &Modes<T>, r: &[T], gradient: &mut [T]) {
        let dim = modes.dim;
        let precision = T::from_f64(modes.precision);
        for ((row, g), r) in x.chunks_exact(dim).zip(gradient.chunks_exact_mut(dim)).zip(r.chunks_exact(modes.count)) {
            g.copy_from_slice(row);
            for (k, r) in r.iter().enumerate() {
                if *r == T::ZERO { continue; }
                let mean = &modes.means[k * modes.stride..][..dim];
                for (g, m) in g.iter_mut().zip(mean) {
                    *g = (-*r).mul_add(*m, *g);
                }
            }
            for g in g.iter_mut() {
                *g = *g * precision;
            }
        }
    }
}

multiversion! {
    /// One mode's share of [`PerWalker::self_products`]: with `v = -r precision (x - m)`, adds
    /// `sum_j response_j v_j (v_j - mean_j)` to `out`.
    fn self_sums[T: Real](x: &[T], mean: &[T], part: (&[T], usize, usize), precision: f64, response: &[T], average: &[T], out: &mut [f64]) {
        let dim = mean.len();
        let (part, modes, k) = part;
        let (mean_groups, mean_rest) = mean.as_chunks::<LANES>();
        let (response_groups, response_rest) = response.as_chunks::<LANES>();
        let (average_groups, average_rest) = average.as_chunks::<LANES>();
        for (i, row) in x.chunks_exact(dim).enumerate() {
            let c = T::from_f64(-part[i * modes + k].to_f64() * precision);
            if c == T::ZERO { continue; }
            let (groups, rest) = row.as_chunks::<LANES>();
            let mut lanes = [T::ZERO; LANES];
            let along = groups.iter().zip(mean_groups).zip(response_groups).zip(average_groups);
            for (((x, m), s), a) in along {
                for l in 0..LANES {
                    let v = c * (x[l] - m[l]);
                    lanes[l] = (s[l] * v).mul_add(v - a[l], lanes[l]);
                }
            }
            let mut last = T::ZERO;
            for (((x, m), s), a) in rest.iter().zip(mean_rest).zip(response_rest).zip(average_rest) {
                let v = c * (*x - *m);
                last = (*s * v).mul_add(v - *a, last);
            }
            out[i] += (sum_lanes(lanes) + last).to_f64();
        }
    }
}

impl<T: Real> Energy<T> for Mixture {
    type Workspace = MixtureWorkspace<T>;

    fn dim(&self) -> usize {
        self.dim
    }

    fn groups(&self) -> Vec<ParamGroup> {
        let (d, k) = (self.dim, self.modes);
        let means = (0..k).map(|i| ParamGroup::new(format!("mean.{i}"), i * d..(i + 1) * d));
        let masses = (0..k).map(|i| ParamGroup::new(format!("log_mass.{i}"), k * d + i..k * d + i + 1));
        means.chain(masses).collect()
    }

    fn params(&self) -> &[f64] {
        &self.theta
    }

    fn set_params(&mut self, theta: &[f64]) {
        self.theta.copy_from_slice(theta);
        self.version = new_version();
    }

    fn energy(&self, x: &[T], energy: &mut [f64], ws: &mut Self::Workspace) {
        self.respond(x, energy, ws);
    }

    fn energy_and_gradient(&self, x: &[T], energy: &mut [f64], gradient: &mut [T], ws: &mut Self::Workspace) {
        self.respond(x, energy, ws);
        let at = ws.prepare(self);
        gradients(Isa::best(), x, &ws.prepared[at].modes, &ws.responsibilities, gradient);
    }

    fn add_param_gradient(&self, x: &[T], weights: &[f64], out: &mut [f64], ws: &mut Self::Workspace) {
        let r = std::mem::take(&mut ws.responsibilities);
        self.add_gradient(x, &r, weights, out, ws);
        ws.responsibilities = r;
    }

    fn fused(&self) -> Option<Fused<T, Self>> {
        (self.modes <= panels::MAX_MODES).then(|| fused::parts(self))
    }

    fn exact(&self) -> Option<&dyn Exact<T>> {
        Some(self)
    }

    fn per_walker(&self) -> Option<&dyn PerWalker<T>> {
        Some(self)
    }

    fn modes(&self) -> Option<&dyn super::Modes<T>> {
        Some(self)
    }
}

impl<T: Real> Exact<T> for Mixture {
    fn log_z(&self) -> f64 {
        let normal = 0.5 * self.dim as f64 * (std::f64::consts::TAU * self.sigma * self.sigma).ln();
        normal + self.log_total_mass()
    }

    fn sample(&self, ids: Range<u64>, total: u64, start: Stratification, random: &Random, out: &mut [T]) {
        let masses = self.relative_masses();
        let offset = random.uniform(0, u64::MAX >> 24, Purpose::StartMode);
        let mut xi = vec![T::ZERO; self.dim];
        let sigma = T::from_f64(self.sigma);
        for (id, row) in ids.zip(out.chunks_exact_mut(self.dim)) {
            let mut u = match start {
                Stratification::Stratified => (id as f64 + offset) / total as f64,
                Stratification::Independent => random.uniform(0, id, Purpose::StartMode),
            };
            let mut mode = 0;
            while mode + 1 < self.modes && u >= masses[mode] {
                u -= masses[mode];
                mode += 1;
            }
            random.normals(0, id, Purpose::Start, &mut xi);
            for ((x, xi), m) in row.iter_mut().zip(&xi).zip(self.mean(mode)) {
                *x = sigma.mul_add(*xi, T::from_f64(*m));
            }
        }
    }
}

impl<T: Real> PerWalker<T> for Mixture {
    fn param_gradients(&self, x: &[T], out: &mut [f64]) {
        let (d, k) = (self.dim, self.modes);
        let walkers = x.len() / d;
        let mut r = vec![0.0; walkers * k];
        self.responsibilities(x, &mut r);
        for i in 0..walkers {
            let g = &mut out[i * (k * d + k)..(i + 1) * (k * d + k)];
            for mode in 0..k {
                for j in 0..d {
                    let diff = x[i * d + j].to_f64() - self.theta[mode * d + j];
                    g[mode * d + j] = -r[i * k + mode] * self.precision() * diff;
                }
                g[k * d + mode] = -r[i * k + mode];
            }
        }
    }

    fn self_products(&self, x: &[T], response: &[f64], mean: &[f64], out: &mut [f64]) {
        let d = self.dim;
        let mut ws = MixtureWorkspace::default();
        self.respond(x, out, &mut ws);
        out.fill(0.0);
        let cast = |v: &[f64]| v.iter().map(|&v| T::from_f64(v)).collect::<Vec<T>>();
        for k in 0..self.modes {
            let range = k * d..(k + 1) * d;
            let part = (&ws.responsibilities[..], self.modes, k);
            let (s, a) = (cast(&response[range.clone()]), cast(&mean[range.clone()]));
            self_sums(Isa::best(), x, &cast(&self.theta[range]), part, self.precision(), &s, &a, out);
            let at = self.modes * d + k;
            for (o, r) in out.iter_mut().zip(ws.responsibilities.iter().skip(k).step_by(self.modes)) {
                *o += response[at] * r.to_f64() * (r.to_f64() + mean[at]);
            }
        }
    }
}

impl<T: Real> super::Modes<T> for Mixture {
    fn count(&self) -> usize {
        self.modes
    }
    fn masses(&self) -> Vec<f64> {
        self.relative_masses()
    }
    fn means(&self) -> Vec<Vec<f64>> {
        (0..self.modes).map(|k| self.mean(k).to_vec()).collect()
    }
    fn memberships(&self, x: &[T], out: &mut [f64]) {
        self.responsibilities(x, out);
    }
}

#[cfg(test)]
mod tests;
