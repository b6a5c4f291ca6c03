//! The kernels on every instruction set, against a step written from the formulas and against each other.

use super::fused::advance;
use super::*;
use crate::energy::{FusedBlock, FusedRows, FusedStep};
use crate::panels::Panels;
use crate::random::Key;
use crate::real::WalkerIds;
use crate::sampler::SelfInteraction;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const SCALE: f64 = 0.3;
const LOG_SUM: f64 = 2.5;

/// A mixture, its successor, and walkers with everything that belongs to them.
struct Case<T> {
    from: Mixture,
    to: Mixture,
    x: Vec<T>,
    a: Vec<f64>,
    h: f64,
    /// Global id of the first row.
    first: u64,
    /// Ids of the rows that move; all if `None`.
    listed: Option<Vec<u64>>,
    own: Option<[Vec<f64>; 2]>,
    key: Key,
}

fn normals(seed: u64, stream: u64, count: usize, width: f64) -> Vec<f64> {
    let mut out = vec![0.0; count];
    Random::new(seed).normals(stream, 0, Purpose::User, &mut out);
    out.iter().map(|v| v * width).collect()
}

fn case<T: Real>(dim: usize, modes: usize, rows: usize, seed: u64) -> Case<T> {
    let random = Random::new(seed);
    let sigma = 0.6 + random.uniform(0, 7, Purpose::User);
    let mixture = |stream: u64, masses: &[f64], shift: f64| {
        let means: Vec<Vec<f64>> = (0..modes)
            .map(|k| {
                let (base, change) =
                    (normals(seed, k as u64, dim, 0.7), normals(seed, stream + k as u64, dim, shift));
                base.iter().zip(&change).map(|(b, c)| b + c).collect()
            })
            .collect();
        Mixture::new(&means, masses, sigma).unwrap()
    };
    let from = mixture(200, &normals(seed, 100, modes, 1.5), 0.0);
    let to = mixture(300, &normals(seed, 101, modes, 1.5), 0.05);
    let params = modes * dim + modes;
    let first = if seed.is_multiple_of(3) { (1 << 32) - 10 } else { seed % 1000 };
    let listed = seed.is_multiple_of(2).then(|| {
        let some = (0..rows as u64).filter(|r| random.uniform(1, *r, Purpose::User) < 0.4);
        some.map(|r| first + r).collect()
    });
    Case {
        x: normals(seed, 102, rows * dim, 1.3).iter().map(|v| T::from_f64(*v)).collect(),
        a: normals(seed, 103, rows, 0.5),
        h: 0.01 + 0.2 * random.uniform(2, 0, Purpose::User),
        own: (seed % 5 < 2).then(|| [normals(seed, 104, params, 0.1), normals(seed, 105, params, 1.0)]),
        key: random.key(seed % (1 << 40), Purpose::Noise),
        from,
        to,
        first,
        listed,
    }
}

/// What a step leaves behind.
#[derive(Debug, PartialEq)]
struct After<T> {
    x: Vec<T>,
    kept: Vec<T>,
    u: Vec<f64>,
    a: Vec<f64>,
    accepted: f64,
}

fn run<T: Real>(case: &Case<T>, isa: Isa) -> After<T> {
    let mut ws = MixtureWorkspace::default();
    let rows = case.a.len();
    let (mut u, mut kept) = (vec![0.0; rows], vec![T::ZERO; rows * case.from.modes]);
    let mut parts = vec![[0.0; LANES]; case.from.modes];
    let at = ws.prepare(&case.from);
    T::evaluate(isa, &ws.prepared[at].modes, &case.x, &mut u, &mut kept, &mut parts);
    let (mut x, mut a) = (case.x.clone(), case.a.clone());
    let own = case.own.as_ref().map(|[response, mean]| SelfInteraction { response, mean });
    let step = FusedStep { key: case.key, h: case.h, noise_scale: SCALE, weigh: 1.0, own, log_sum: LOG_SUM };
    let rows = match &case.listed {
        None => FusedRows::All { first: case.first },
        Some(ids) => FusedRows::Listed { ids, first: case.first },
    };
    let block = FusedBlock { rows, x: &mut x, kept: &mut kept, u: &mut u, a: &mut a };
    let done = advance(isa, &case.from, &case.to, &step, block, &mut ws);
    assert_eq!(done.bad, None);
    After { x, kept, u, a, accepted: done.accepted }
}

/// `U`, responsibilities and gradient at one point, in `f64`, from the formulas.
fn plain(m: &Mixture, x: &[f64]) -> (f64, Vec<f64>, Vec<f64>) {
    let p = m.precision();
    let square = |k: usize| x.iter().zip(m.mean(k)).map(|(x, m)| (x - m) * (x - m)).sum::<f64>();
    let parts: Vec<f64> = (0..m.modes).map(|k| m.log_masses()[k] - 0.5 * p * square(k)).collect();
    let top = parts.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = parts.iter().map(|v| (v - top).exp()).sum();
    let r: Vec<f64> = parts.iter().map(|v| (v - top).exp() / sum).collect();
    let mean = |j: usize| (0..m.modes).map(|k| r[k] * m.mean(k)[j]).sum::<f64>();
    let gradient = (0..x.len()).map(|j| p * (x[j] - mean(j))).collect();
    (-(top + sum.ln()), r, gradient)
}

fn check<T: Real>(dim: usize, modes: usize, rows: usize, seed: u64) {
    let case = case::<T>(dim, modes, rows, seed);
    let after = run(&case, Isa::Portable);
    let e = if T::NAME == "f32" { f32::EPSILON as f64 } else { f64::EPSILON };
    // Sums of up to 64 terms in the walkers' precision, of squares of distances that do not exceed `reach`; the weight is made of a
    // handful of such sums.
    let reach = |x: &[f64]| 1.0 + 4.0 * x.iter().map(|x| (x.abs() + 3.0).powi(2)).sum::<f64>();
    let mut accepted = 0.0;
    for i in 0..rows {
        let id = case.first + i as u64;
        let row: Vec<f64> = case.x[i * dim..(i + 1) * dim].iter().map(|v| v.to_f64()).collect();
        let (u, r, g) = plain(&case.from, &row);
        if case.listed.as_ref().is_some_and(|l| !l.contains(&id)) {
            assert_eq!(&after.x[i * dim..(i + 1) * dim], &case.x[i * dim..(i + 1) * dim]);
            assert_eq!(after.a[i], case.a[i]);
            continue;
        }
        let mut noise = vec![T::ZERO; dim];
        Random::new(seed).noise_rows(case.key.step, Purpose::Noise, WalkerIds::From(id), dim, &mut noise);
        let move_by: Vec<f64> = (0..dim).map(|j| SCALE * noise[j].to_f64() - case.h * g[j]).collect();
        let y: Vec<f64> = row.iter().zip(&move_by).map(|(x, m)| x + m).collect();
        let tolerance = 8.0 * (dim.min(64) as f64 + 16.0) * e * reach(&y) * case.from.precision().max(1.0);
        for j in 0..dim {
            let off = (after.x[i * dim + j].to_f64() - y[j]).abs();
            assert!(off < tolerance, "position: off by {off}, allowed {tolerance}");
        }
        let (u_new, r_new, g_new) = plain(&case.to, &y);
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        // alpha_k(x, y) - alpha_{k+1}(y, x)
        let forward = u + 0.5 * dot(&move_by, &g) + 0.25 * case.h * dot(&g, &g);
        let backward = u_new - 0.5 * dot(&move_by, &g_new) + 0.25 * case.h * dot(&g_new, &g_new);
        accepted += (forward - backward).exp().min(1.0);
        let mut expected = case.a[i] + forward - backward;
        if let Some([response, mean]) = &case.own {
            let mut product = 0.0;
            for k in 0..modes {
                for j in 0..dim {
                    let v = -r[k] * case.from.precision() * (row[j] - case.from.mean(k)[j]);
                    product += response[k * dim + j] * v * (v - mean[k * dim + j]);
                }
                let at = modes * dim + k;
                product += response[at] * -r[k] * (-r[k] - mean[at]);
            }
            let p = (case.a[i] - LOG_SUM).exp();
            expected += if p < 0.5 { p / (1.0 - p) * product } else { 0.0 };
        }
        let off = (after.a[i] - expected).abs();
        assert!(off < tolerance, "log-weight: off by {off}, allowed {tolerance}");
        assert!((after.u[i] - u_new).abs() < tolerance, "energy");
        for k in 0..modes {
            assert!((after.kept[i * modes + k].to_f64() - r_new[k]).abs() < tolerance, "responsibility");
        }
    }
    assert!((after.accepted - accepted).abs() < 1e-3 * (1.0 + rows as f64), "acceptance");
    for isa in Isa::available() {
        assert_eq!(run(&case, isa), after, "{isa:?}");
    }
    sums_agree::<T>(&case);
}

/// Shares, coefficients, sums and the correction where walkers stand: the same bits everywhere, and consistent with the kernels above.
fn sums_agree<T: Real>(case: &Case<T>) {
    let (m, rows) = (&case.from, case.a.len());
    let mut ws = MixtureWorkspace::<T>::default();
    let at = ws.prepare(m);
    let modes = &ws.prepared[at].modes;
    let mut reference = None;
    for isa in Isa::available() {
        let (mut u, mut kept) = (vec![0.0; rows], vec![T::ZERO; rows * m.modes]);
        T::evaluate(isa, modes, &case.x, &mut u, &mut kept, &mut vec![[0.0; LANES]; m.modes]);
        let gathered = data_sums_agree(isa, m, modes, &case.x);
        let (mut c, mut sums) = (kept.clone(), vec![T::ZERO; m.modes * m.dim]);
        let (mut masses, mut rounded) = (vec![0.0; m.modes], vec![0.0; m.modes]);
        T::weigh(isa, &kept, &case.a, m.modes, &mut c, &mut masses, &mut rounded);
        T::sum_rows(isa, &case.x, &c, m.dim, m.modes, &mut sums);
        for k in 0..m.modes {
            let mass: f64 = (0..rows).map(|i| case.a[i] * kept[i * m.modes + k].to_f64()).sum();
            assert!((masses[k] - mass).abs() < 1e-12 * rows as f64);
            for j in 0..m.dim {
                let (mut sum, mut size) = (0.0, 0.0);
                for i in 0..rows {
                    let term = c[i * m.modes + k].to_f64() * case.x[i * m.dim + j].to_f64();
                    sum += term;
                    size += term.abs();
                }
                let e = if T::NAME == "f32" { f32::EPSILON as f64 } else { f64::EPSILON };
                let off = (sums[k * m.dim + j].to_f64() - sum).abs();
                assert!(off <= (rows as f64 + 2.0) * e * size, "sum over rows: off by {off}");
            }
        }
        let bits = |v: &[T]| v.iter().map(|v| v.to_f64().to_bits()).collect::<Vec<u64>>();
        let all = (bits(&kept), bits(&c), bits(&sums), masses, rounded, gathered);
        match &reference {
            None => reference = Some(all),
            Some(first) => assert!(*first == all, "{isa:?} differs"),
        }
    }
}

/// The pass that makes a data gradient's sums against the formulas; returns its bits.
fn data_sums_agree<T: Real>(isa: Isa, m: &Mixture, modes: &Modes<T>, x: &[T]) -> Vec<u64> {
    let (n, dim) = (m.modes, m.dim);
    let e = if T::NAME == "f32" { f32::EPSILON as f64 } else { f64::EPSILON };
    let (mut sums, mut masses) = (vec![T::ZERO; n * dim], vec![[0.0; LANES]; n]);
    let mut panels = Panels::new(dim);
    panels.fill(x);
    T::gather(isa, modes, panels.some(0, panels.rows()), &mut sums, &mut masses, &mut DataBench::default());
    let (mut mass, mut mass_off) = (vec![0.0; n], 0.0);
    let (mut sum, mut sum_off) = (vec![0.0; n * dim], vec![0.0; n * dim]);
    let rows = x.len() / dim;
    for row in x.chunks_exact(dim) {
        let row: Vec<f64> = row.iter().map(|v| v.to_f64()).collect();
        let (_, r, _) = plain(m, &row);
        // Logarithms of ratios are sums of up to 64 terms in the points' precision; a share is off by no more than they are, and by its own rounding.
        let terms = |k: usize| -> f64 {
            let apart = |j: usize| (row[j] - m.mean(0)[j]).abs() * (m.mean(k)[j] - m.mean(0)[j]).abs();
            (0..dim).map(|j| apart(j) * m.precision()).sum()
        };
        let largest = (0..n).map(terms).fold(0.0, f64::max);
        let off = (dim.min(64) as f64 + 3.0) * e * largest + 16.0 * e;
        mass_off += off;
        for k in 0..n {
            mass[k] += r[k];
            for j in 0..dim {
                sum[k * dim + j] += r[k] * row[j];
                sum_off[k * dim + j] += off * row[j].abs() + (rows as f64 + 2.0) * e * r[k] * row[j].abs();
            }
        }
    }
    for k in 0..n {
        let off = (sum_lanes(masses[k]) - mass[k]).abs();
        assert!(off <= mass_off, "mass of the data: off by {off}, allowed {mass_off}");
        for j in k * dim..(k + 1) * dim {
            let (off, allowed) = ((sums[j].to_f64() - sum[j]).abs(), sum_off[j]);
            assert!(off <= allowed, "sum over data: off by {off}, allowed {allowed}");
        }
    }
    sums.iter().map(|v| v.to_f64().to_bits()).chain(masses.concat().iter().map(|v| v.to_bits())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 150, failure_persistence: None, rng_seed: RngSeed::Fixed(5), ..ProptestConfig::default()
    })]

    #[test]
    fn fused_steps_equal_the_formulas_on_every_path(dim in 1usize..80, modes in 1usize..9, rows in 1usize..50, seed: u64) {
        check::<f32>(dim, modes, rows, seed);
        check::<f64>(dim, modes, rows, seed);
    }
}

#[test]
fn fused_steps_in_many_dimensions() {
    for (dim, modes) in [(64, 2), (65, 2), (128, 3), (1000, 2)] {
        check::<f32>(dim, modes, 20, 4);
        check::<f64>(dim, modes, 20, 10);
    }
}

#[test]
fn sums_over_many_rows_equal_the_formulas_on_every_path() {
    for (dim, rows) in [(3, 64), (3, 150), (17, 96), (50, 100), (50, 177), (64, 129), (65, 70)] {
        check::<f32>(dim, 2, rows, 6);
        check::<f64>(dim, 2, rows, 7);
    }
}

/// Shares of modes that are far apart, whose ratio no exponential can tell from zero or infinity.
#[test]
fn shares_of_far_modes_are_zero_and_one() {
    fn far<T: Real>() {
        let m = Mixture::new(&[vec![-1e4; 20], vec![1e4; 20]], &[0.0, 1.0], 0.5).unwrap();
        let x: Vec<T> = (0..40 * 20).map(|i| T::from_f64(if i / 20 % 4 == 0 { -1e4 } else { 1e4 })).collect();
        for isa in Isa::available() {
            let (mut ws, mut out) = (MixtureWorkspace::<T>::default(), vec![0.0; 42]);
            let mut panels = Panels::new(20);
            panels.fill(&x);
            m.add_data_gradient_on(isa, panels.some(0, 40), &mut out, &mut ws);
            assert_eq!(out[40..], [-10.0, -30.0], "{isa:?}");
            assert!(out[..40].iter().all(|g| *g == 0.0), "{isa:?}: {out:?}");
        }
    }
    far::<f32>();
    far::<f64>();
}
