//! The device against [`jarz_net`] on the processor: energies and both gradients.

use crate::burn::device::open;
use crate::burn::energy::{DeviceEnergy, Pass};
use crate::burn::noise::Source;
use crate::burn::transfer::{numbers, rows, vector};
use crate::names::{Name, Noise};
use burn_tensor::Device;
use jarz::{Energy, Purpose, Random, WalkerIds};
use jarz_net::{Architecture, Base, BaseKind, Layer, NetEnergy};

/// The device that tests run on: that of the variable `JARZ_TEST_DEVICE`, or the software one.
pub(crate) fn name() -> Name {
    let name = std::env::var("JARZ_TEST_DEVICE").unwrap_or_else(|_| "wgpu:software".into());
    name.parse().unwrap()
}

fn device() -> Device {
    open(name()).unwrap().device
}

fn numbers_in(seed: u64, count: usize, scale: f64) -> Vec<f64> {
    let mut uniforms = vec![0.0; count];
    Random::new(seed).uniforms(0, 0, Purpose::User, &mut uniforms);
    uniforms.iter().map(|u| scale * (2.0 * u - 1.0)).collect()
}

/// Parameters of a size that keeps outputs of order one.
fn params(architecture: &Architecture) -> Vec<f64> {
    let raw = numbers_in(5, architecture.params().unwrap(), 1.5);
    let weights = architecture.weights().unwrap();
    let fan_in = weights.iter().flat_map(|w| vec![(w.fan_in() as f64).sqrt(); w.count() + w.outputs]);
    raw.iter().zip(fan_in).map(|(r, s)| r / s).collect()
}

/// Largest difference, in units of the largest number.
fn difference(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    let largest = b.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    assert!(largest > 0.0, "there is nothing to compare");
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) / largest
}

/// Differences from double precision of energies, gradients and weighted parameter gradients: on the device, and of jarz-net in single precision.
fn differences(architecture: &Architecture, base: Base, walkers: usize) -> [[f64; 3]; 2] {
    let (dim, params) = (base.dim(), params(architecture));
    let z: Vec<f32> = numbers_in(6, walkers * dim, 1.7).iter().map(|v| *v as f32).collect();
    let weights: Vec<f64> = numbers_in(7, walkers, 0.5).iter().map(|v| v + 0.5).collect();
    let exact =
        evaluate(&NetEnergy::<f64>::with_params(architecture, base.clone(), &params).unwrap(), &z, &weights);
    let single =
        evaluate(&NetEnergy::<f32>::with_params(architecture, base.clone(), &params).unwrap(), &z, &weights);

    let device = device();
    let energy = DeviceEnergy::new(architecture, &base, &device).unwrap();
    let theta = energy.network.load(&params, &device);
    let positions = rows(z, dim, &device);
    let Pass { f, g, deltas } = energy.pass(&theta, positions.clone());
    let weights = vector(weights.iter().map(|w| *w as f32), &device);
    let of_params = energy.network.weighted_gradient(&theta, deltas, weights.clone());
    let (f_again, of_params_again) = energy.param_pass(&theta, positions.clone(), weights);
    let values = energy.values(&theta, &positions);
    let [f, g, p] = [numbers(f).unwrap(), numbers(g).unwrap(), numbers(of_params).unwrap()];
    assert_eq!(f, numbers(f_again).unwrap());
    assert_eq!(f, numbers(values).unwrap());
    assert_eq!(p, numbers(of_params_again).unwrap());
    let here = [f, g, p];
    [here, single].map(|found| [0, 1, 2].map(|i| difference(&found[i], &exact[i])))
}

/// `f`, its gradient, and the weighted sum of its parameter gradients, on the processor.
fn evaluate<T: jarz::Real>(energy: &NetEnergy<T>, z: &[f32], weights: &[f64]) -> [Vec<f64>; 3] {
    let (dim, n) = (energy.dim(), weights.len());
    let z: Vec<T> = z.iter().map(|v| T::from_f64(f64::from(*v))).collect();
    let (mut u, mut g) = (vec![0.0; n], vec![T::ZERO; n * dim]);
    let mut of_params = vec![0.0; energy.params().len()];
    let mut workspace = Default::default();
    energy.energy_and_gradient(&z, &mut u, &mut g, &mut workspace);
    energy.add_param_gradient(&z, weights, &mut of_params, &mut workspace);
    let square = |row: &[T]| row.iter().map(|v| v.to_f64().powi(2)).sum::<f64>() / 2.0;
    let f = u.iter().zip(z.chunks_exact(dim)).map(|(u, z)| u - square(z)).collect();
    let g = g.iter().zip(&z).map(|(g, z)| g.to_f64() - z.to_f64()).collect();
    [f, g, of_params]
}

/// Rounding in single precision: some thousand terms of 6e-8 each, of either sign, in units of the largest.
fn agrees(architecture: &Architecture, base: Base, walkers: usize) {
    let [device, processor] = differences(architecture, base, walkers);
    println!("device {device:?}, processor in single precision {processor:?}");
    assert!(device.iter().all(|d| *d < 1e-5), "{device:?} against {processor:?}");
}

fn fitted(dim: usize, kind: BaseKind) -> Base {
    Base::fit(&numbers_in(8, 3 * dim * dim.min(60), 1.0), dim, 0.3, kind).unwrap()
}

#[test]
fn the_papers_network_for_mnist() {
    agrees(&Architecture::mnist(), fitted(784, BaseKind::Full), 24);
}

#[test]
fn the_papers_network_for_cifar() {
    agrees(&Architecture::cifar(8), fitted(3072, BaseKind::Diagonal), 5);
}

#[test]
fn every_kind_of_layer() {
    let conv = |channels, kernel, stride, padding| Layer::Conv2d { channels, kernel, stride, padding };
    let architecture = Architecture {
        input: [8, 6, 2],
        layers: vec![
            conv(4, 3, 1, 1),
            Layer::Tanh,
            Layer::Residual { layers: vec![conv(4, 3, 1, 1), Layer::Softplus, conv(4, 1, 1, 0)] },
            Layer::AvgPool { kernel: 2 },
            // Its last column is reached by no kernel.
            conv(6, 2, 2, 0),
            Layer::LeakyRelu { slope: 0.1 },
            Layer::Flatten,
            Layer::Linear { features: 9 },
            Layer::Residual { layers: vec![Layer::Linear { features: 9 }, Layer::Silu] },
            Layer::Linear { features: 3 },
            Layer::Sum,
        ],
    };
    for kind in [BaseKind::Isotropic, BaseKind::Diagonal, BaseKind::Full] {
        agrees(&architecture, fitted(96, kind), 37);
    }
    agrees(&architecture, Base::standard(96), 1);
}

#[test]
fn vectors() {
    let layers = vec![Layer::Linear { features: 16 }, Layer::Silu, Layer::Linear { features: 1 }];
    agrees(&Architecture { input: [1, 1, 2], layers }, fitted(2, BaseKind::Full), 300);
}

fn source(kind: Noise) -> Source {
    Source { random: Random::new(11), kind, device: device() }
}

/// The device makes the processor's normals, whichever walkers they are for, up to the precision that WebGPU asks of a logarithm (2^-21
/// between 1/2 and 1, which a small radius magnifies).
#[test]
fn the_devices_normals_are_the_processors() {
    let many: Vec<u64> = (0..3000).map(|i| i * i + 7).collect();
    for (ids, rows, dim) in
        [(WalkerIds::From(0), 500, 784), (WalkerIds::List(&many), 3000, 3), (WalkerIds::From(9), 1, 1)]
    {
        for step in [0, 5, (1 << 40) + 3] {
            let [there, here] = [Noise::Device, Noise::Host]
                .map(|n| numbers(source(n).normals(step, ids, rows, dim)).unwrap());
            let off: Vec<f64> = there.iter().zip(&here).map(|(a, b)| (a - b).abs()).collect();
            let worst = off.iter().copied().fold(0.0, f64::max);
            let typical = (off.iter().map(|o| o * o).sum::<f64>() / off.len() as f64).sqrt();
            println!("normals differ by {worst:.1e} at most, {typical:.1e} on average");
            assert!(worst < 2e-3 && typical < 1e-5, "by {worst} at most, {typical} on average");
        }
    }
}

/// The same for the Metropolis tests; also in relative terms, as small uniforms have large logarithms.
#[test]
fn the_devices_uniforms_are_the_processors() {
    let [there, here] = [Noise::Device, Noise::Host]
        .map(|n| numbers(source(n).log_uniforms(3, WalkerIds::From(2), 10_000)).unwrap());
    for (a, b) in there.iter().zip(&here) {
        assert!((a - b).abs() < 2e-6 * (1.0 + b.abs()), "{a} and {b}");
    }
}

/// Noise of the processor is the processor's.
#[test]
fn the_hosts_noise_is_the_hosts() {
    let ids = [5u64, 2, 9];
    let there = numbers(source(Noise::Host).normals(4, WalkerIds::List(&ids), 3, 10)).unwrap();
    for (row, id) in ids.iter().enumerate() {
        let mut here = [0.0f32; 10];
        Random::new(11).normals(4, *id, Purpose::Noise, &mut here);
        assert_eq!(there[row * 10..(row + 1) * 10], here.map(f64::from));
    }
}

/// What a thread of burn's complains of comes first, and is forgotten with the work it belongs to.
#[test]
fn complaints_of_a_devices_thread_are_part_of_the_reason() {
    use crate::burn::device::guarded;
    let thread =
        || std::thread::Builder::new().name("DSD-test".into()).spawn(|| panic!("memory is full\nand more"));
    let complain = || thread().unwrap().join().unwrap_err();
    let failed = guarded(|| {
        complain();
        panic!("no such buffer\ntrace")
    });
    assert_eq!(failed.unwrap_err(), "memory is full (no such buffer)");
    guarded(|| drop(complain())).unwrap();
    assert_eq!(guarded(|| panic!("something else")).unwrap_err(), "something else");
}
