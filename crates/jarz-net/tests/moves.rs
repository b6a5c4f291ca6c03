//! MALA with a network: the parameter gradient is collected from the evaluations that were needed anyway.

mod common;

use common::{numbers, params};
use jarz::{Advance, Kernel, Sampler, Scheme, Walkers, Weighting};
use jarz_net::{Architecture, Base, BaseKind, Layer, NetEnergy};

fn architecture() -> Architecture {
    let conv = |channels, stride| Layer::Conv2d { channels, kernel: 3, stride, padding: 1 };
    let inner = vec![conv(6, 1), Layer::Silu];
    let layers = vec![
        conv(6, 1),
        Layer::Silu,
        Layer::Residual { layers: inner },
        conv(9, 2),
        Layer::Softplus,
        Layer::Flatten,
        Layer::Linear { features: 1 },
    ];
    Architecture { input: [6, 6, 2], layers }
}

/// Sums after moves in which some proposals were accepted and some refused are, to the last bit, those of an evaluation at the places where
/// walkers ended up.
#[test]
fn sums_after_a_move_are_those_of_the_new_places() {
    let (architecture, n) = (architecture(), 150);
    let dim = architecture.input.iter().product();
    let base = Base::fit(&numbers(5, 200 * dim), dim, 0.1, BaseKind::Full).unwrap();
    let model =
        |seed| NetEnergy::<f32>::with_params(&architecture, base.clone(), &params(&architecture, seed));
    let (from, to) = (model(1).unwrap(), model(2).unwrap());
    let start: Vec<f32> = numbers(3, n * dim).iter().map(|v| 1.7 * *v as f32).collect();
    for (steps, threads) in [(1, 1), (3, 2)] {
        let kernel = Kernel::mala().with_steps(steps);
        let make = |walkers, energy: &NetEnergy<f32>| {
            let mut sampler =
                Sampler::new(walkers, energy, kernel, Scheme::Systematic, None, 4, threads).unwrap();
            sampler.begin(energy).unwrap();
            sampler
        };
        let mut sampler = make(Walkers::new(dim, start.clone(), None), &from);
        let (h, weighting) = (0.15, Weighting::Jarzynski);
        let advance = Advance { iteration: 0, h, weighting, correction: None, restart: None };
        sampler.advance(&from, &to, advance).unwrap();
        let moved = sampler.walkers().positions().chunks(dim).zip(start.chunks(dim)).filter(|(a, b)| a != b);
        let moved = moved.count();
        assert!(moved > n / 10 && (steps > 1 || moved < n - n / 10), "{moved} of {n} walkers moved");
        let fresh = make(sampler.walkers().clone(), &to);
        assert_eq!(sampler.sums(), fresh.sums());
        assert!(sampler.sums().gradient.iter().any(|g| *g != 0.0));
        assert_eq!(sampler.walkers().energies(), fresh.walkers().energies());
    }
}
