//! Mixture and Gaussian against scalar twins written from the formulas, finite differences, quadrature and known moments.
//!
//! Twins work in `f64` on the parameters as given; the tolerances are worst-case rounding bounds of the blocks' arithmetic:
//! sums over components pass to `f64` after 64 terms, so that no term is rounded more than `min(dim, 64) + 8` times.

use super::*;
use crate::random::Purpose;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Shares of a walker (or of a walker's weight) below 1e-18 are dropped by design; twice that bounds what is missing.
const DROPPED: f64 = 2e-18;

fn epsilon<T: Real>() -> f64 {
    if T::NAME == "f32" { f32::EPSILON as f64 } else { f64::EPSILON }
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(11),
        ..ProptestConfig::default()
    }
}

/// `count` normals of width `width`.
fn normals(seed: u64, stream: u64, count: usize, width: f64) -> Vec<f64> {
    let mut out = vec![0.0; count];
    Random::new(seed).normals(stream, 0, Purpose::User, &mut out);
    out.iter().map(|v| v * width).collect()
}

fn cast<T: Real>(values: &[f64]) -> Vec<T> {
    values.iter().map(|&v| T::from_f64(v)).collect()
}

fn random_mixture(dim: usize, modes: usize, seed: u64) -> Mixture {
    let means: Vec<Vec<f64>> = (0..modes).map(|k| normals(seed, k as u64, dim, 0.7)).collect();
    let sigma = 0.6 + Random::new(seed).uniform(0, 7, Purpose::User);
    Mixture::new(&means, &normals(seed, 100, modes, 1.5), sigma).unwrap()
}

/// The mixture's formulas for one point, with the error that the block arithmetic in `T` may make.
struct Twin {
    u: f64,
    u_error: f64,
    responsibilities: Vec<f64>,
    /// Bound on the relative error of a responsibility.
    relative: f64,
}

fn twin<T: Real>(m: &Mixture, x: &[f64]) -> Twin {
    let (e, p) = (epsilon::<T>(), 1.0 / m.sigma().powi(2));
    let mut parts = Vec::new();
    let mut worst = 0.0f64;
    for (k, &l) in m.log_masses().iter().enumerate() {
        let (mut square, mut slip) = (0.0, 0.0);
        for (x, mean) in x.iter().zip(m.mean(k)) {
            let diff = x - mean;
            square += diff * diff;
            slip += 2.0 * diff.abs() * e * (mean.abs() + diff.abs());
        }
        let rounding = (x.len().min(64) as f64 + 8.0) * e * square + slip;
        let part = l - 0.5 * p * square;
        worst = worst.max(0.5 * p * rounding + 4.0 * f64::EPSILON * (part.abs() + l.abs()));
        parts.push(part);
    }
    let top = parts.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = parts.iter().map(|p| (p - top).exp()).sum();
    // The logarithm of a sum of exponentials changes no more than the largest change of an exponent.
    let u_error = worst + 1e-14 * (1.0 + top.abs());
    let responsibilities = parts.iter().map(|p| (p - top).exp() / sum).collect();
    Twin {
        u: -(top + sum.ln()),
        u_error,
        responsibilities,
        relative: (2.0 * worst).min(700.0).exp_m1() + 1e-14,
    }
}

fn close(value: f64, expected: f64, tolerance: f64, what: &str) {
    let off = (value - expected).abs();
    assert!(off <= tolerance, "{what}: {value} instead of {expected}, off by {off}, allowed {tolerance}");
}

/// Everything the block functions of a mixture return, against the twin.
fn check_mixture<T: Real>(m: &Mixture, x: &[T], weights: &[f64]) {
    let (dim, rows, modes) = (Energy::<T>::dim(m), weights.len(), m.log_masses().len());
    let (e, p) = (epsilon::<T>(), 1.0 / m.sigma().powi(2));
    let (mut u, mut g, mut ws) = (vec![0.0; rows], vec![T::ZERO; x.len()], Default::default());
    m.energy_and_gradient(x, &mut u, &mut g, &mut ws);
    let mut total = vec![0.0; Energy::<T>::params(m).len()];
    m.add_param_gradient(x, weights, &mut total, &mut ws);
    let mut alone = vec![0.0; rows];
    Energy::<T>::energy(m, x, &mut alone, &mut ws);
    assert_eq!(u, alone, "energy with and without gradient");

    let (mut expected, mut allowed) = (vec![0.0; total.len()], vec![0.0; total.len()]);
    for i in 0..rows {
        let row: Vec<f64> = x[i * dim..(i + 1) * dim].iter().map(|x| x.to_f64()).collect();
        let t = twin::<T>(m, &row);
        close(u[i], t.u, t.u_error, "U");
        for j in 0..dim {
            let pull: f64 = (0..modes).map(|k| t.responsibilities[k] * m.mean(k)[j]).sum();
            let size: f64 = (0..modes).map(|k| t.responsibilities[k] * m.mean(k)[j].abs()).sum();
            let tolerance = p * ((modes as f64 + 4.0) * e * (row[j].abs() + size) + t.relative * size);
            close(g[i * dim + j].to_f64(), p * (row[j] - pull), tolerance, "dU/dx");
        }
        for k in 0..modes {
            let r = t.responsibilities[k];
            expected[modes * dim + k] -= weights[i] * r;
            allowed[modes * dim + k] += weights[i].abs() * (r * (t.relative + rows as f64 * e) + DROPPED);
            for j in 0..dim {
                let diff = row[j] - m.mean(k)[j];
                expected[k * dim + j] -= weights[i] * r * p * diff;
                let slip = (t.relative + (rows as f64 + 6.0) * e) * diff.abs() + e * m.mean(k)[j].abs();
                allowed[k * dim + j] +=
                    p * (weights[i].abs() * r * slip + DROPPED * (1.0 + weights[i].abs()) * diff.abs());
            }
        }
    }
    for j in 0..total.len() {
        close(total[j], expected[j], allowed[j] + 1e-300, "dU/dtheta");
    }
}

fn mixture_case<T: Real>(dim: usize, modes: usize, rows: usize, seed: u64) {
    let m = random_mixture(dim, modes, seed);
    let x = cast::<T>(&normals(seed, 200, rows * dim, 1.3));
    check_mixture(&m, &x, &normals(seed, 300, rows, 1.0));
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn mixture_equals_its_scalar_twin(dim in 1usize..70, modes in 1usize..6, rows in 1usize..70, seed: u64) {
        mixture_case::<f64>(dim, modes, rows, seed);
        mixture_case::<f32>(dim, modes, rows, seed);
    }

    #[test]
    fn mixture_equals_central_differences(dim in 1usize..70, modes in 1usize..6, seed: u64, pick: u64) {
        let m = random_mixture(dim, modes, seed);
        let x = normals(seed, 200, dim, 1.3);
        let (h, p) = (1e-4, 1.0 / m.sigma().powi(2));
        let t = twin::<f64>(&m, &x);
        let value = |m: &Mixture, x: &[f64]| { let mut u = [0.0]; m.energy(x, &mut u, &mut Default::default()); u[0] };
        let (mut u, mut g, mut ws) = ([0.0], vec![0.0; dim], Default::default());
        m.energy_and_gradient(&x, &mut u, &mut g, &mut ws);
        let params = Energy::<f64>::params(&m).to_vec();
        let mut by_theta = vec![0.0; params.len()];
        m.add_param_gradient(&x, &[1.0], &mut by_theta, &mut ws);

        // The third derivative in x is a third cumulant of `p mean_j`: at most 0.1 of its range cubed.
        let j = pick as usize % dim;
        let (mut up, mut down) = (x.clone(), x.clone());
        (up[j], down[j]) = (x[j] + h, x[j] - h);
        let means = (0..modes).map(|k| m.mean(k)[j]);
        let range = means.clone().fold(f64::MIN, f64::max) - means.fold(f64::MAX, f64::min);
        let third = 0.1 * (p * range).powi(3);
        let slip = 2.0 * t.u_error / h + f64::EPSILON * 10.0 / h;
        close(g[j], (value(&m, &up) - value(&m, &down)) / (2.0 * h), third * h * h + slip, "dU/dx");

        // In a mean: 3 r (1-r) p |f'| + r (1-r) |1-2r| |f'|^3 with f' = p (x - mean); in a log-mass at most 0.1.
        let q = (pick >> 20) as usize % params.len();
        let (mut up, mut down) = (m.clone(), m.clone());
        let shifted = |by: f64| { let mut theta = params.clone(); theta[q] += by; theta };
        Energy::<f64>::set_params(&mut up, &shifted(h));
        Energy::<f64>::set_params(&mut down, &shifted(-h));
        let third = if q < modes * dim {
            let slope = p * ((x[q % dim] - params[q]).abs() + h);
            0.75 * p * slope + 0.1 * slope.powi(3)
        } else { 0.1 };
        close(by_theta[q], (value(&up, &x) - value(&down, &x)) / (2.0 * h), third * h * h + slip, "dU/dtheta");
    }

    #[test]
    fn products_follow_their_definition(dim in 1usize..70, modes in 1usize..6, rows in 1usize..70, seed: u64) {
        products::<f64>(dim, modes, rows, seed);
        products::<f32>(dim, modes, rows, seed);
    }

    #[test]
    fn a_walker_does_not_see_its_block(dim in 1usize..70, modes in 1usize..6, rows in 2usize..70, seed: u64) {
        let m = random_mixture(dim, modes, seed);
        let x = normals(seed, 200, rows * dim, 1.3);
        one_by_one::<f64, _>(&m, &x, seed);
        one_by_one::<f32, _>(&m, &cast(&x), seed);
        let small = dim.min(9);
        let gauss = random_gaussian(small, seed);
        let x = &x[..rows * small];
        one_by_one::<f64, _>(&gauss, x, seed);
        one_by_one::<f32, _>(&gauss, &cast(x), seed);
    }
}

/// `sum_j s_j g_j (g_j - a_j)` and `sum_j g_j d_j` from the gradients of single walkers, and these from `add_param_gradient`.
fn products<T: Real>(dim: usize, modes: usize, rows: usize, seed: u64) {
    let m = random_mixture(dim, modes, seed);
    let x = cast::<T>(&normals(seed, 200, rows * dim, 1.3));
    let params = (dim + 1) * modes;
    let (e, p) = (epsilon::<T>(), 1.0 / m.sigma().powi(2));
    let per_walker = Energy::<T>::per_walker(&m).unwrap();
    let mut g = vec![0.0; rows * params];
    per_walker.param_gradients(&x, &mut g);
    let response: Vec<f64> = normals(seed, 400, params, 1.0).iter().map(|v| v.abs()).collect();
    let average = normals(seed, 500, params, 0.3);
    let (mut own, mut along) = (vec![0.0; rows], vec![0.0; rows]);
    per_walker.self_products(&x, &response, &average, &mut own);
    per_walker.directional(&x, &average, &mut along);
    let depth = dim as f64 / 16.0 + 14.0;
    for i in 0..rows {
        let row: Vec<f64> = x[i * dim..(i + 1) * dim].iter().map(|x| x.to_f64()).collect();
        let t = twin::<T>(&m, &row);
        let (mut expected, mut allowed, mut direction, mut size) = (0.0, 0.0, 0.0, 0.0);
        for j in 0..params {
            let (v, s, a) = (g[i * params + j], response[j], average[j]);
            let (formula, slip, dropped) = if j < modes * dim {
                let r = t.responsibilities[j / dim];
                let push = p * (row[j % dim] - m.mean(j / dim)[j % dim]);
                let v = -r * push;
                (v, 4.0 * e * v.abs() + r * p * e * m.mean(j / dim)[j % dim].abs(), DROPPED * push.abs())
            } else {
                (-t.responsibilities[j - modes * dim], 0.0, DROPPED)
            };
            close(v, formula, formula.abs() * (t.relative + 1e-14) + dropped, "gradient of one walker");
            expected += s * v * (v - a);
            allowed += s * (slip * (2.0 * v.abs() + a.abs()) + depth * e * v.abs() * (v.abs() + a.abs()));
            direction += v * a;
            size += (v * a).abs();
        }
        close(own[i], expected, allowed + 1e-300, "self product");
        close(along[i], direction, params as f64 * f64::EPSILON * size, "directional derivative");
    }
}

/// Rows evaluated together and one by one must agree to the last bit.
fn one_by_one<T: Real, E: Energy<T>>(energy: &E, x: &[T], seed: u64) {
    let (dim, params) = (energy.dim(), energy.params().len());
    let response = normals(seed, 600, params, 1.0);
    let all = |x: &[T]| {
        let rows = x.len() / dim;
        let (mut u, mut g, mut ws) = (vec![0.0; rows], vec![T::ZERO; x.len()], E::Workspace::default());
        energy.energy_and_gradient(x, &mut u, &mut g, &mut ws);
        let (mut single, mut own) = (vec![0.0; rows * params], vec![0.0; rows]);
        let per_walker = energy.per_walker().unwrap();
        per_walker.param_gradients(x, &mut single);
        per_walker.self_products(x, &response, &response, &mut own);
        let mut members = Vec::new();
        if let Some(modes) = energy.modes() {
            members.resize(rows * modes.count(), 0.0);
            modes.memberships(x, &mut members);
        }
        (u, g.iter().map(|g| g.to_f64()).collect::<Vec<_>>(), single, own, members)
    };
    let together = all(x);
    for (i, row) in x.chunks(dim).enumerate() {
        let alone = all(row);
        let same = |whole: &[f64], part: &[f64], what: &str| {
            let there = &whole[i * part.len()..(i + 1) * part.len()];
            let bits = |v: &[f64]| v.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(there), bits(part), "{what} of row {i}");
        };
        same(&together.0, &alone.0, "energy");
        same(&together.1, &alone.1, "gradient");
        same(&together.2, &alone.2, "parameter gradient");
        same(&together.3, &alone.3, "self product");
        same(&together.4, &alone.4, "membership");
    }
}

/// Far from all modes, out to 1000 in every component.
#[test]
fn far_points_neither_overflow_nor_lose_the_formula() {
    for dim in [1, 2, 17, 50] {
        let m = random_mixture(dim, 3, 5);
        let rows = [1e3, -1e3, 300.0].map(|v| vec![v; dim]).concat();
        check_mixture(&m, &cast::<f64>(&rows), &[1.0, 0.5, 2.0]);
        check_mixture(&m, &cast::<f32>(&rows), &[1.0, 0.5, 2.0]);
    }
}

/// A mode with log-mass -1000 vanishes at the other mode and rules at its own centre, 100 away.
#[test]
fn a_mode_of_hardly_any_mass() {
    let m = Mixture::new(&[vec![0.0, 0.0], vec![60.0, 80.0]], &[0.0, -1000.0], 1.0).unwrap();
    let x = [0.5, -0.5, 60.0, 80.0, 59.0, 80.5, 30.0, 40.0];
    check_mixture(&m, &cast::<f64>(&x), &[1.0; 4]);
    check_mixture(&m, &cast::<f32>(&x), &[1.0; 4]);
    let mut r = [0.0; 4];
    Modes::<f64>::memberships(&m, &x[..4], &mut r);
    assert_eq!(r, [1.0, 0.0, 0.0, 1.0]);
    let total = Exact::<f64>::log_z(&m);
    close(total, std::f64::consts::TAU.ln(), 1e-14, "log Z");
    assert_eq!(Modes::<f64>::masses(&m), [1.0, 0.0]);
}

fn random_gaussian(dim: usize, seed: u64) -> Gaussian {
    let root = normals(seed, 700, dim * dim, 1.0);
    let mut precision = vec![0.0; dim * dim];
    for i in 0..dim {
        for j in 0..dim {
            precision[i * dim + j] =
                (0..dim).map(|k| root[i * dim + k] * root[j * dim + k]).sum::<f64>() / dim as f64;
        }
        precision[i * dim + i] += 0.3;
        // An antisymmetric part, which U must not see.
        for j in 0..i {
            precision[i * dim + j] += 0.1;
            precision[j * dim + i] -= 0.1;
        }
    }
    Gaussian::new(&normals(seed, 800, dim, 1.0), &precision).unwrap()
}

fn gaussian_case<T: Real>(dim: usize, rows: usize, seed: u64) {
    let gauss = random_gaussian(dim, seed);
    let theta = Energy::<T>::params(&gauss).to_vec();
    let x = cast::<T>(&normals(seed, 200, rows * dim, 1.5));
    let weights = normals(seed, 300, rows, 1.0);
    let (mut u, mut g, mut total) = (vec![0.0; rows], vec![T::ZERO; x.len()], vec![0.0; theta.len()]);
    gauss.energy_and_gradient(&x, &mut u, &mut g, &mut ());
    gauss.add_param_gradient(&x, &weights, &mut total, &mut ());
    let (mut expected, mut size) = (vec![0.0; theta.len()], vec![0.0; theta.len()]);
    let rounding = (2 * dim + rows + 10) as f64 * f64::EPSILON;
    for i in 0..rows {
        let d: Vec<f64> = (0..dim).map(|j| x[i * dim + j].to_f64() - theta[j]).collect();
        let (mut energy, mut sum) = (0.0, 0.0);
        for a in 0..dim {
            let (mut pull, mut pull_size) = (0.0, 0.0);
            for b in 0..dim {
                let (ab, ba) = (theta[dim + a * dim + b], theta[dim + b * dim + a]);
                energy += 0.5 * d[a] * ab * d[b];
                sum += 0.5 * (d[a] * d[b]).abs() * ab.abs().max(ba.abs());
                pull += 0.5 * (ab + ba) * d[b];
                pull_size += ab.abs().max(ba.abs()) * d[b].abs();
                expected[dim + a * dim + b] += weights[i] * 0.5 * d[a] * d[b];
                size[dim + a * dim + b] += (weights[i] * 0.5 * d[a] * d[b]).abs();
            }
            close(g[i * dim + a].to_f64(), pull, epsilon::<T>() * pull.abs() + rounding * pull_size, "dU/dx");
            expected[a] -= weights[i] * pull;
            size[a] += weights[i].abs() * pull_size;
        }
        close(u[i], energy, rounding * sum * 2.0, "U");
    }
    for j in 0..theta.len() {
        close(total[j], expected[j], rounding * size[j], "dU/dtheta");
    }
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn gaussian_equals_its_scalar_twin(dim in 1usize..20, rows in 1usize..70, seed: u64) {
        gaussian_case::<f64>(dim, rows, seed);
        gaussian_case::<f32>(dim, rows, seed);
    }

    /// `U` is quadratic in x and in the mean and linear in the precision: central differences err by rounding only.
    #[test]
    fn gaussian_equals_central_differences(dim in 1usize..12, seed: u64, pick: u64) {
        let gauss = random_gaussian(dim, seed);
        let x = normals(seed, 200, dim, 1.5);
        let value = |gauss: &Gaussian, x: &[f64]| { let mut u = [0.0]; gauss.energy(x, &mut u, &mut ()); u[0] };
        let (mut u, mut g) = ([0.0], vec![0.0; dim]);
        gauss.energy_and_gradient(&x, &mut u, &mut g, &mut ());
        let theta = Energy::<f64>::params(&gauss).to_vec();
        let mut by_theta = vec![0.0; theta.len()];
        gauss.add_param_gradient(&x, &[1.0], &mut by_theta, &mut ());
        let h = 1e-3;
        let size: f64 = (0..dim * dim).map(|ab| theta[dim + ab].abs() * (1.0 + (x[ab / dim] - theta[ab / dim]).abs()) * (1.0 + (x[ab % dim] - theta[ab % dim]).abs())).sum();
        let slip = (4 * dim + 10) as f64 * f64::EPSILON * size / h;
        let j = pick as usize % dim;
        let (mut up, mut down) = (x.clone(), x.clone());
        (up[j], down[j]) = (x[j] + h, x[j] - h);
        close(g[j], (value(&gauss, &up) - value(&gauss, &down)) / (2.0 * h), slip, "dU/dx");
        let q = (pick >> 20) as usize % theta.len();
        let moved = |by: f64| { let mut t = theta.clone(); t[q] += by; let mut m = gauss.clone(); Energy::<f64>::set_params(&mut m, &t); m };
        close(by_theta[q], (value(&moved(h), &x) - value(&moved(-h), &x)) / (2.0 * h), slip, "dU/dtheta");
    }
}
