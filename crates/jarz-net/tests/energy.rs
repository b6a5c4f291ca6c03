//! The network as an energy: coordinates, exact start, one pass for both gradients, same bits on any number of threads, and `log Z` through
//! a whole training run.

mod common;

use common::{numbers, params};
use jarz::{
    Dataset, Energy, Kernel, Optimizer, Random, Real, Rule, Setup, StepSize, Stratification, Thresholds,
    Trainer, Trigger,
};
use jarz_net::{Architecture, Base, BaseKind, Layer, NetEnergy, NetWorkspace};

fn small_image() -> Architecture {
    let conv = |channels, stride| Layer::Conv2d { channels, kernel: 3, stride, padding: 1 };
    let layers = vec![
        conv(9, 1),
        Layer::Silu,
        conv(17, 2),
        Layer::Softplus,
        Layer::Flatten,
        Layer::Linear { features: 1 },
    ];
    Architecture { input: [4, 5, 2], layers }
}

fn mlp(hidden: usize) -> Architecture {
    let linear = |features| Layer::Linear { features };
    let layers = vec![linear(hidden), Layer::Silu, linear(hidden), Layer::Silu, linear(1)];
    Architecture { input: [1, 1, 2], layers }
}

fn bases(dim: usize) -> Vec<Base> {
    let data = numbers(5, 60 * dim);
    let fit = |kind| Base::fit(&data, dim, 0.1, kind).unwrap();
    let kinds = [BaseKind::Isotropic, BaseKind::Diagonal, BaseKind::Full, BaseKind::Mixture(3)];
    [Base::standard(dim)].into_iter().chain(kinds.map(fit)).collect()
}

/// `U(z)` by central differences of itself.
#[test]
fn gradients_in_whitened_coordinates_equal_differences() {
    let architecture = small_image();
    let theta = params(&architecture, 3);
    for base in bases(40) {
        let energy = NetEnergy::<f64>::with_params(&architecture, base, &theta).unwrap();
        let z = numbers(8, 3 * 40);
        let mut workspace = NetWorkspace::default();
        let (mut u, mut g) = (vec![0.0; 3], vec![0.0; z.len()]);
        energy.energy_and_gradient(&z, &mut u, &mut g, &mut workspace);
        for at in (0..z.len()).step_by(7) {
            let h = 1e-5;
            let mut along = |h: f64| {
                let mut moved = z.clone();
                moved[at] += h;
                let mut u = vec![0.0; 3];
                energy.energy(&moved, &mut u, &mut workspace);
                u[at / 40]
            };
            let difference = (along(h) - along(-h)) / (2.0 * h);
            assert!((g[at] - difference).abs() < 1e-7, "{} instead of {difference}", g[at]);
        }
    }
}

/// Moments of fitted bases are the data's, the maps undo each other, and `log det` is that of the covariance.
#[test]
fn bases_have_the_moments_of_the_noised_data() {
    let (dim, n, noise) = (5, 400, 0.3);
    let mut data = numbers(2, dim * n);
    // Correlated coordinates.
    data.chunks_exact_mut(dim).for_each(|row| row[1] = 0.8 * row[0] + 0.2 * row[1] + 3.0);
    let mean: Vec<f64> = (0..dim).map(|j| data.iter().skip(j).step_by(dim).sum::<f64>() / n as f64).collect();
    let covariance = |i: usize, j: usize| {
        let sum: f64 = data.chunks_exact(dim).map(|r| (r[i] - mean[i]) * (r[j] - mean[j])).sum();
        sum / n as f64 + if i == j { noise * noise } else { 0.0 }
    };
    for kind in [BaseKind::Isotropic, BaseKind::Diagonal, BaseKind::Full] {
        let base = Base::fit(&data, dim, noise, kind).unwrap();
        let maps = base.maps::<f64>();
        // Columns of L from unit vectors.
        let mut columns = vec![0.0; dim * dim];
        let units: Vec<f64> = (0..dim * dim).map(|i| if i % (dim + 1) == 0 { 1.0 } else { 0.0 }).collect();
        maps.to_data(&units, &mut columns);
        let l = |i: usize, j: usize| columns[j * dim + i] - mean[i];
        for i in 0..dim {
            for j in 0..dim {
                let found: f64 = (0..dim).map(|k| l(i, k) * l(j, k)).sum();
                let expected = match kind {
                    BaseKind::Full => covariance(i, j),
                    BaseKind::Diagonal if i == j => covariance(i, i),
                    BaseKind::Isotropic if i == j => {
                        (0..dim).map(|k| covariance(k, k)).sum::<f64>() / dim as f64
                    }
                    _ => 0.0,
                };
                assert!((found - expected).abs() < 1e-12, "{kind:?} {i} {j}: {found} {expected}");
            }
        }
        let log_det: f64 = (0..dim).map(|i| l(i, i).ln()).sum();
        assert!((base.log_det() - log_det).abs() < 1e-12);
        let (mut z, mut x) = (vec![0.0; data.len()], vec![0.0; data.len()]);
        maps.to_base(&data, &mut z);
        maps.to_data(&z, &mut x);
        assert!(x.iter().zip(&data).all(|(a, b)| (a - b).abs() < 1e-12));
        // <L v, g> = <v, L' g>
        let (v, g) = (numbers(3, dim), numbers(4, dim));
        let (mut lv, mut lg) = (vec![0.0; dim], vec![0.0; dim]);
        maps.to_data(&v, &mut lv);
        maps.gradient_to_base(&g, &mut lg);
        let left: f64 = (0..dim).map(|i| (lv[i] - mean[i]) * g[i]).sum();
        let right: f64 = (0..dim).map(|i| v[i] * lg[i]).sum();
        assert!((left - right).abs() < 1e-12);
        assert_eq!(Base::from_parts(base.mean().to_vec(), base.factor().to_vec()).unwrap(), base);
    }
}

#[test]
fn bases_and_energies_that_cannot_work_say_why() {
    let says = |error: jarz_net::Error, words: &str| {
        let text = error.to_string();
        assert!(text.contains(words), "'{text}' does not say '{words}'");
    };
    let constant = [1.0, 2.0, 1.0, 3.0];
    says(Base::fit(&constant, 2, 0.0, BaseKind::Full).unwrap_err(), "singular");
    says(Base::fit(&constant, 2, 0.0, BaseKind::Diagonal).unwrap_err(), "does not vary");
    says(Base::fit(&constant, 3, 0.1, BaseKind::Full).unwrap_err(), "whole rows of 3");
    says(Base::fit(&[1.0, f64::NAN], 2, 0.1, BaseKind::Full).unwrap_err(), "finite");
    says(Base::fit(&constant, 2, -1.0, BaseKind::Full).unwrap_err(), "noise");
    says(
        Base::fit(&constant, 2, 0.1, BaseKind::Mixture(2)).unwrap_err(),
        "2 Gaussians cannot be fitted to 2 points",
    );
    says(Base::from_parts(vec![0.0; 2], vec![1.0, 1.0, 0.0, 1.0]).unwrap_err(), "triangular");
    let energy =
        |architecture: &Architecture, dim| NetEnergy::<f64>::new(architecture, Base::standard(dim), 1);
    says(energy(&small_image(), 41).unwrap_err(), "4 x 5 with 2 channels, 40 numbers");
    let mut two = mlp(4);
    two.layers[4] = Layer::Linear { features: 2 };
    says(energy(&two, 2).unwrap_err(), "one number");
    let mut soft = mlp(4);
    soft.layers.push(Layer::Softplus);
    says(energy(&soft, 2).unwrap_err(), "layers.5 (softplus)");
    says(
        energy(&Architecture { input: [1, 1, 1], layers: vec![Layer::Silu] }, 1).unwrap_err(),
        "at least one conv2d or linear",
    );
}

/// Zero last layer: standard Gaussian, whatever the other weights. Any other: nothing exact.
#[test]
fn the_start_is_the_base() {
    let mut energy = NetEnergy::<f64>::new(&small_image(), Base::standard(40), 9).unwrap();
    let exact = energy.exact().unwrap();
    assert!((exact.log_z() - 20.0 * std::f64::consts::TAU.ln()).abs() < 1e-12);
    let mut z = vec![0.0; 2000 * 40];
    exact.sample(0..2000, 2000, Stratification::Independent, &Random::new(4), &mut z);
    let (mut part, ids) = (vec![0.0; 40], 77..78);
    exact.sample(ids, 2000, Stratification::Independent, &Random::new(4), &mut part);
    assert_eq!(part, z[77 * 40..78 * 40], "a walker does not depend on the others");
    // Mean and variance of 80 000 normals within 5 standard errors (false alarm 1e-6).
    let n = z.len() as f64;
    let (mean, square) = (z.iter().sum::<f64>() / n, z.iter().map(|v| v * v).sum::<f64>() / n);
    assert!(mean.abs() < 5.0 / n.sqrt() && (square - 1.0).abs() < 5.0 * (2.0 / n).sqrt(), "{mean} {square}");
    let mut u = [0.0];
    energy.energy(&part, &mut u, &mut NetWorkspace::default());
    let half = 0.5 * part.iter().map(|v| v * v).sum::<f64>();
    assert!((u[0] - half).abs() < 1e-12 * half);
    let mut theta = energy.params().to_vec();
    assert!(theta.iter().filter(|v| **v != 0.0).count() > 100);
    *theta.last_mut().unwrap() = 1e-3;
    energy.set_params(&theta);
    assert!(energy.exact().is_none());
}

/// Weighted parameter gradients are sums of single ones, and what a walker gets does not depend on its block.
#[test]
fn walkers_do_not_notice_each_other() {
    let architecture = Architecture::mnist();
    let theta = params(&architecture, 4);
    let energy = NetEnergy::<f64>::with_params(&architecture, Base::standard(784), &theta).unwrap();
    let n = 2 * energy.network().block() + 3;
    let z = numbers(6, n * 784);
    let weights = numbers(7, n);
    let mut workspace = NetWorkspace::default();
    let (mut u, mut g, mut all) = (vec![0.0; n], vec![0.0; z.len()], vec![0.0; theta.len()]);
    energy.energy_and_gradient(&z, &mut u, &mut g, &mut workspace);
    energy.add_param_gradient(&z, &weights, &mut all, &mut workspace);
    let mut sum = vec![0.0; theta.len()];
    for i in 0..n {
        let row = i * 784..(i + 1) * 784;
        let (mut one, mut slope) = ([0.0], vec![0.0; 784]);
        energy.energy_and_gradient(&z[row.clone()], &mut one, &mut slope, &mut workspace);
        assert_eq!((one[0], &slope[..]), (u[i], &g[row.clone()]), "walker {i}");
        energy.add_param_gradient(&z[row], &weights[i..i + 1], &mut sum, &mut workspace);
    }
    // Sums of n terms in another order.
    let scale = all.iter().fold(0.0f64, |top, v| top.max(v.abs()));
    let off = all.iter().zip(&sum).fold(0.0f64, |top, (a, b)| top.max((a - b).abs()));
    assert!(off <= 1e-13 * n as f64 * scale, "{off} of {scale}");
}

/// `f32` differs from `f64` by rounding: a chain of some thousand operations on numbers of order one.
#[test]
fn single_precision_agrees_with_double() {
    for architecture in [Architecture::mnist(), Architecture::cifar(8)] {
        let theta: Vec<f64> = params(&architecture, 4).iter().map(|v| *v as f32 as f64).collect();
        let dim: usize = architecture.input.iter().product();
        let z: Vec<f64> = numbers(6, 5 * dim).iter().map(|v| *v as f32 as f64).collect();
        let weights = [0.25, 1.0, 2.0, 0.5, 1.5];
        let run = |single: bool| {
            if single {
                evaluate::<f32>(&architecture, &theta, &z, &weights)
            } else {
                evaluate::<f64>(&architecture, &theta, &z, &weights)
            }
        };
        for (what, (a, b)) in ["U", "dU/dx", "dU/dtheta"].iter().zip(run(true).into_iter().zip(run(false))) {
            let norm = |v: &mut dyn Iterator<Item = f64>| v.map(|v| v * v).sum::<f64>().sqrt();
            let (off, size) = (norm(&mut a.iter().zip(&b).map(|(a, b)| a - b)), norm(&mut b.iter().copied()));
            assert!(off > 0.0 && off < 1e-5 * size, "{what}: {off} of {size}");
        }
    }
}

fn evaluate<T: Real>(
    architecture: &Architecture,
    theta: &[f64],
    z: &[f64],
    weights: &[f64],
) -> [Vec<f64>; 3] {
    let dim = z.len() / weights.len();
    let energy = NetEnergy::<T>::with_params(architecture, Base::standard(dim), theta).unwrap();
    let z: Vec<T> = z.iter().map(|&v| T::from_f64(v)).collect();
    let (mut u, mut g, mut out) = (vec![0.0; weights.len()], vec![T::ZERO; z.len()], vec![0.0; theta.len()]);
    let mut workspace = NetWorkspace::default();
    energy.energy_and_gradient(&z, &mut u, &mut g, &mut workspace);
    energy.add_param_gradient(&z, weights, &mut out, &mut workspace);
    [u, g.iter().map(|v| v.to_f64()).collect(), out]
}

/// Points on a ring of two densities: nothing a Gaussian could fit.
fn ring(n: usize) -> Vec<f64> {
    let u = numbers(12, 3 * n);
    let point = |i: usize| {
        let angle = std::f64::consts::PI * u[3 * i].abs().sqrt() * u[3 * i].signum();
        let radius = 1.5 + 0.2 * u[3 * i + 1];
        [radius * angle.cos(), radius * angle.sin()]
    };
    (0..n).flat_map(point).collect()
}

fn ring_setup<T: Real>(walkers: usize, kind: BaseKind) -> Setup<T, NetEnergy<T>> {
    let data = ring(4000);
    let base = Base::fit(&data, 2, 0.05, kind).unwrap();
    let energy = NetEnergy::<T>::new(&mlp(16), base, 3).unwrap();
    let x: Vec<T> = data.iter().map(|&v| T::from_f64(v)).collect();
    let mut z = vec![T::ZERO; x.len()];
    energy.maps().to_base(&x, &mut z);
    let params = energy.params().len();
    let mut setup = Setup::new(energy, Dataset::new(2, z).unwrap());
    setup.walkers = walkers;
    setup.optimizer =
        Optimizer::new(Rule::Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-8 }, vec![2e-3; params]);
    setup.trust_region = Some(0.02);
    setup.step_size = StepSize::fixed(0.05);
    setup.trigger = Trigger::EssBelow(Thresholds::constant(0.5));
    setup
}

/// `log Z` of `U` by the trapezoidal rule, which converges exponentially for functions that decay like a Gaussian.
fn quadrature(energy: &NetEnergy<f64>) -> f64 {
    let (side, half) = (801, 10.0);
    let step = 2.0 * half / (side - 1) as f64;
    let at = |i: usize| -half + step * i as f64;
    let mut total = 0.0;
    let mut workspace = NetWorkspace::default();
    for i in 0..side {
        let row: Vec<f64> = (0..side).flat_map(|j| [at(i), at(j)]).collect();
        let mut u = vec![0.0; side];
        energy.energy(&row, &mut u, &mut workspace);
        total += u.iter().map(|u| (-u).exp()).sum::<f64>();
    }
    (total * step * step).ln()
}

/// The estimated `log Z` within 4 of its standard errors of quadrature (false alarm 6e-5 per kernel and look), at three moments of a training in
/// which it changes by much more. Self-interaction is of order `steps * rate * tr Cov / N`, hidden in the error bar at this number of walkers.
#[test]
fn log_z_is_right_through_a_whole_training_run() {
    let cases = [
        (Kernel::ula(), BaseKind::Full),
        (Kernel::mala(), BaseKind::Full),
        (Kernel::mala(), BaseKind::Mixture(2)),
    ];
    for (kernel, kind) in cases {
        let mut setup = ring_setup::<f64>(40_000, kind);
        setup.kernel = kernel;
        let mut trainer = Trainer::new(setup).unwrap();
        let start = trainer.estimates().unwrap();
        let start_entropy = start.cross_entropy.unwrap().value;
        assert!((start.log_z.unwrap().value - std::f64::consts::TAU.ln()).abs() < 1e-12);
        for _ in 0..3 {
            for _ in 0..50 {
                trainer.step().unwrap();
            }
            let found = trainer.estimates().unwrap().log_z.unwrap();
            let (exact, error) = (quadrature(trainer.energy()), found.std_error.unwrap());
            assert!(error > 0.0 && error < 0.05, "standard error {error}");
            assert!(
                (found.value - exact).abs() < 4.0 * error,
                "{kernel:?}, {kind:?}: {} instead of {exact} +- {error}",
                found.value
            );
        }
        let end = trainer.estimates().unwrap();
        let moved = (end.log_z.unwrap().value - std::f64::consts::TAU.ln()).abs();
        assert!(moved > 8.0 * end.log_z.unwrap().std_error.unwrap(), "log Z has moved by {moved} only");
        let fell = start_entropy - end.cross_entropy.unwrap().value;
        assert!(fell > 0.1, "the cross-entropy fell by {fell} nats");
    }
}

#[test]
fn threads_do_not_matter() {
    fn run<T: Real>(threads: usize) -> String {
        let mut setup = ring_setup::<T>(1000, BaseKind::Mixture(2));
        (setup.threads, setup.data_batch) = (threads, Some(500));
        setup.kernel = Kernel::mala();
        let mut trainer = Trainer::new(setup).unwrap();
        for _ in 0..10 {
            trainer.step().unwrap();
        }
        format!("{:?}", trainer.state())
    }
    assert_eq!(run::<f32>(1), run::<f32>(2));
    assert_eq!(run::<f64>(1), run::<f64>(3));
}
