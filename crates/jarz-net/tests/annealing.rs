//! A network's `log Z` and masses by annealing from its base, against quadrature in two dimensions.

mod common;

use common::params;
use jarz::Energy;
use jarz::annealing::{Settings, anneal};
use jarz_net::{Architecture, Base, BaseKind, Layer, NetEnergy, NetWorkspace};
use std::ops::ControlFlow;

fn network(kind: BaseKind) -> NetEnergy<f32> {
    let linear = |features| Layer::Linear { features };
    let layers = vec![linear(24), Layer::Tanh, linear(24), Layer::Tanh, linear(1)];
    let architecture = Architecture { input: [1, 1, 2], layers };
    let mut theta = params(&architecture, 4);
    // A last layer that makes the model differ from its base by several nats; bounded units keep it in reach of the quadrature.
    let last = architecture.weights().unwrap().last().unwrap().first;
    theta[last..].iter_mut().for_each(|w| *w *= 30.0);
    let data: Vec<f64> = common::numbers(6, 80).iter().map(|v| 2.0 * v).collect();
    let base = Base::fit(&data, 2, 0.3, kind).unwrap();
    NetEnergy::with_params(&architecture, base, &theta).unwrap()
}

/// `log Z` and the mass of the half plane `z_0 > 0` by the midpoint rule, whose cells end at 0.
fn quadrature(energy: &NetEnergy<f32>) -> (f64, f64) {
    let (side, cells) = (0.04, 500);
    let at = |i: usize| ((i as f64 + 0.5) - cells as f64 / 2.0) * side;
    let (mut total, mut right) = (0.0, 0.0);
    let mut workspace = NetWorkspace::default();
    for i in 0..cells {
        let row: Vec<f32> = (0..cells).flat_map(|j| [at(i) as f32, at(j) as f32]).collect();
        let mut u = vec![0.0; cells];
        for (x, u) in row.chunks(2 * energy.network().block()).zip(u.chunks_mut(energy.network().block())) {
            energy.energy(x, u, &mut workspace);
        }
        let sum: f64 = u.iter().map(|u| (-u).exp()).sum::<f64>() * side * side;
        total += sum;
        if at(i) > 0.0 {
            right += sum;
        }
    }
    (total.ln(), right / total)
}

/// Within 4 standard errors: false alarm 3e-4 for all four together.
#[test]
fn log_z_and_masses_equal_quadrature() {
    for kind in [BaseKind::Full, BaseKind::Mixture(3)] {
        let energy = network(kind);
        let base = energy.base_measure().unwrap();
        let (log_z, mass) = quadrature(&energy);
        let settings = Settings { walkers: 4000, moves: 2, seed: 21, threads: 1, ..Settings::default() };
        let found = anneal(&energy, &*base, &settings, &mut |_| ControlFlow::Continue(())).unwrap();
        assert!(found.trace.len() > 3 && found.walkers.resamplings() > 0, "too easy: {:?}", found.trace);
        let error = found.log_z.std_error.unwrap();
        let right = |x: &[f32]| if x[0] > 0.0 { [0.0, 1.0] } else { [1.0, 0.0] };
        let classes: Vec<f64> = found.walkers.positions().chunks(2).flat_map(right).collect();
        let masses = found.masses(&classes, 2).unwrap();
        println!("log Z {:?}, quadrature {log_z:.4}; mass {:?}, {mass:.4}", found.log_z, masses[1]);
        assert!((found.log_z.value - log_z).abs() < 4.0 * error && error < 0.1);
        assert!((masses[1].value - mass).abs() < 4.0 * masses[1].std_error.unwrap());
    }
}
