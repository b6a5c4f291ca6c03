//! Gaussian mixture with any number of modes: the paper's test bed, with everything known exactly.
//!
//! `U(x) = -log sum_k exp(l_k - |x - m_k|^2 / (2 sigma^2))`, so that mode `k` has mass `softmax(l)_k` and
//! `Z = (2 pi sigma^2)^(d/2) sum_k exp(l_k)`. The paper's `z` is `-l` of the second mode, its first mode having `l = 0`.

use super::{Energy, Exact, Modes, ParamGroup, PerWalker, Stratification};
use crate::random::math::{exp_f64, ln_f64};
use crate::random::{Purpose, Random};
use crate::real::{Real, sum_lanes, sum_pairs};
use crate::simd::{Isa, LANES, Simd, Vector, dispatch, multiversion};
use std::ops::Range;

/// Gaussian mixture with trained means and log-masses and a common, fixed width `sigma`.
/// Parameters: the means one after the other (`mean.0`, `mean.1`, ...), then the log-masses (`log_mass.0`, ...).
#[derive(Clone, Debug)]
pub struct Mixture {
    dim: usize,
    modes: usize,
    sigma: f64,
    theta: Vec<f64>,
}

/// A share of a walker or of a weight that does not count.
const NEGLIGIBLE: f64 = 1e-18;

/// Distances to the modes and responsibilities of one block of walkers.
#[derive(Default)]
pub struct MixtureWorkspace<T> {
    means: Vec<T>,
    /// `log-mass - |x - m|^2 / 2 sigma^2`, then the responsibilities; mode by mode, walkers contiguous and padded to whole groups of lanes.
    parts: Vec<f64>,
    sums: Vec<T>,
    top: Vec<f64>,
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
            Mixture { dim, modes, sigma, theta }
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

    /// Energies and responsibilities of the block; the latter stay in the workspace.
    fn respond<T: Real>(&self, x: &[T], energy: &mut [f64], ws: &mut MixtureWorkspace<T>) {
        let (d, walkers) = (self.dim, energy.len());
        let padded = walkers.next_multiple_of(LANES);
        ws.means.clear();
        ws.means.extend(self.theta[..self.modes * d].iter().map(|&m| T::from_f64(m)));
        ws.parts.resize(self.modes * padded, 0.0);
        ws.top.resize(padded, 0.0);
        let isa = Isa::best();
        let half_precision = 0.5 * self.precision();
        for k in 0..self.modes {
            let part = &mut ws.parts[k * padded..(k + 1) * padded];
            log_densities(isa, x, &ws.means[k * d..(k + 1) * d], self.log_masses()[k], half_precision, part);
            part[walkers..].fill(0.0);
        }
        soft_max(isa, self.modes, &mut ws.parts, &mut ws.top);
        energy.copy_from_slice(&ws.top[..walkers]);
    }

    /// Responsibilities of a block, `out[i * modes + k]`.
    fn responsibilities<T: Real>(&self, x: &[T], out: &mut [f64]) {
        let walkers = x.len() / self.dim;
        let mut ws = MixtureWorkspace::default();
        self.respond(x, &mut vec![0.0; walkers], &mut ws);
        let padded = walkers.next_multiple_of(LANES);
        for i in 0..walkers {
            for k in 0..self.modes {
                out[i * self.modes + k] = ws.parts[k * padded + i];
            }
        }
    }
}

multiversion! {
    /// `out_i = log_mass - half_precision |x_i - mean|^2`.
    fn log_densities[T: Real](x: &[T], mean: &[T], log_mass: f64, half_precision: f64, out: &mut [f64]) {
        for (row, value) in x.chunks_exact(mean.len()).zip(out) {
            let square = sum_pairs(row, mean, |x, m, sum| {
                let diff = x - m;
                diff.mul_add(diff, sum)
            });
            *value = (-half_precision).mul_add(square.to_f64(), log_mass);
        }
    }
}

/// Turns `parts` (mode by mode) into responsibilities; `energy = -log sum_k exp(parts_k)`.
#[inline(always)]
fn soft_max_panels<S: Simd>(modes: usize, parts: &mut [f64], energy: &mut [f64]) {
    let padded = energy.len();
    let (energy, _) = energy.as_chunks_mut::<LANES>();
    let at = |k: usize, panel: usize| k * padded / LANES + panel;
    let (parts, _) = parts.as_chunks_mut::<LANES>();
    for (panel, energy) in energy.iter_mut().enumerate() {
        let mut top = S::D::splat(f64::NEG_INFINITY);
        for k in 0..modes {
            let part = S::D::load(&parts[at(k, panel)]);
            top = part.if_greater(top, part, top);
        }
        let mut sum = S::D::splat(0.0);
        for k in 0..modes {
            let e = exp_f64::<S>(S::D::load(&parts[at(k, panel)]) - top);
            // What is lost in rounding anyway is zero, so that nothing below has to handle denormal numbers.
            let e = e.if_greater(S::D::splat(NEGLIGIBLE), e, S::D::splat(0.0));
            e.store(&mut parts[at(k, panel)]);
            sum = sum + e;
        }
        (S::D::splat(0.0) - (top + ln_f64::<S>(sum))).store(energy);
        for k in 0..modes {
            let part = &mut parts[at(k, panel)];
            S::D::load(part).div(sum).store(part);
        }
    }
}

dispatch! {
    fn soft_max{}{}(modes: usize, parts: &mut [f64], energy: &mut [f64]) = soft_max_panels
}

multiversion! {
    /// `gradient_i = precision (x_i - sum_k r_ik m_k)`.
    fn gradients[T: Real](x: &[T], means: &[T], parts: &[f64], padded: usize, precision: f64, dim: usize, gradient: &mut [T]) {
        let modes = means.len() / dim;
        let precision = T::from_f64(precision);
        for (i, (row, g)) in x.chunks_exact(dim).zip(gradient.chunks_exact_mut(dim)).enumerate() {
            g.copy_from_slice(row);
            for k in 0..modes {
                let r = T::from_f64(-parts[k * padded + i]);
                if r == T::ZERO { continue; }
                let mean = &means[k * dim..(k + 1) * dim];
                for (g, m) in g.iter_mut().zip(mean) {
                    *g = r.mul_add(*m, *g);
                }
            }
            for g in g.iter_mut() {
                *g = *g * precision;
            }
        }
    }
}

multiversion! {
    /// `sums_j += sum_i weights_i r_i (x_ij - mean_j)`.
    fn mean_sums[T: Real](x: &[T], mean: &[T], weights: &[f64], part: &[f64], sums: &mut [T]) {
        let dim = mean.len();
        for (i, row) in x.chunks_exact(dim).enumerate() {
            let c = weights[i] * part[i];
            if c.abs() < NEGLIGIBLE { continue; }
            let c = T::from_f64(c);
            for ((s, x), m) in sums.iter_mut().zip(row).zip(mean) {
                *s = c.mul_add(*x - *m, *s);
            }
        }
    }
}

multiversion! {
    /// One mode's share of [`PerWalker::self_products`]: with `v = -r precision (x - m)`, adds
    /// `sum_j response_j v_j (v_j - mean_j)` to `out`.
    fn self_sums[T: Real](x: &[T], mean: &[T], part: &[f64], precision: f64, response: &[T], average: &[T], out: &mut [f64]) {
        let dim = mean.len();
        let (mean_groups, mean_rest) = mean.as_chunks::<LANES>();
        let (response_groups, response_rest) = response.as_chunks::<LANES>();
        let (average_groups, average_rest) = average.as_chunks::<LANES>();
        for (i, row) in x.chunks_exact(dim).enumerate() {
            let c = T::from_f64(-part[i] * precision);
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
    }

    fn energy(&self, x: &[T], energy: &mut [f64], ws: &mut Self::Workspace) {
        self.respond(x, energy, ws);
    }

    fn energy_and_gradient(&self, x: &[T], energy: &mut [f64], gradient: &mut [T], ws: &mut Self::Workspace) {
        self.respond(x, energy, ws);
        let padded = energy.len().next_multiple_of(LANES);
        gradients(Isa::best(), x, &ws.means, &ws.parts, padded, self.precision(), self.dim, gradient);
    }

    fn add_param_gradient(&self, x: &[T], weights: &[f64], out: &mut [f64], ws: &mut Self::Workspace) {
        let (d, padded) = (self.dim, weights.len().next_multiple_of(LANES));
        for k in 0..self.modes {
            let part = &ws.parts[k * padded..(k + 1) * padded];
            ws.sums.clear();
            ws.sums.resize(d, T::ZERO);
            mean_sums(Isa::best(), x, &ws.means[k * d..(k + 1) * d], weights, part, &mut ws.sums);
            for (o, s) in out[k * d..(k + 1) * d].iter_mut().zip(&ws.sums) {
                *o -= self.precision() * s.to_f64();
            }
            let mass: f64 = weights.iter().zip(part).map(|(w, r)| w * r).sum();
            out[self.modes * d + k] -= mass;
        }
    }

    fn exact(&self) -> Option<&dyn Exact<T>> {
        Some(self)
    }

    fn per_walker(&self) -> Option<&dyn PerWalker<T>> {
        Some(self)
    }

    fn modes(&self) -> Option<&dyn Modes<T>> {
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
        let (d, walkers) = (self.dim, out.len());
        let padded = walkers.next_multiple_of(LANES);
        let mut ws = MixtureWorkspace::default();
        self.respond(x, out, &mut ws);
        out.fill(0.0);
        let cast = |v: &[f64]| v.iter().map(|&v| T::from_f64(v)).collect::<Vec<T>>();
        for k in 0..self.modes {
            let range = k * d..(k + 1) * d;
            let part = &ws.parts[k * padded..(k + 1) * padded];
            let (s, a) = (cast(&response[range.clone()]), cast(&mean[range.clone()]));
            self_sums(Isa::best(), x, &ws.means[range], part, self.precision(), &s, &a, out);
            let at = self.modes * d + k;
            for (o, r) in out.iter_mut().zip(part) {
                *o += response[at] * r * (r + mean[at]);
            }
        }
    }
}

impl<T: Real> Modes<T> for Mixture {
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
