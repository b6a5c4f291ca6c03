//! Walkers that are put elsewhere between iterations go on from there, as if they had always been there.

use jarz::{
    Algorithm, Dataset, Disturbance, Energy, Gaussian, Kernel, KernelKind, Mixture, Optimizer, Random, Rule,
    Setup, StepSize, Trainer,
};
use std::sync::Arc;

const DIM: usize = 3;
const N: usize = 40;

/// Puts every seventh walker somewhere else in one iteration.
#[derive(Debug)]
struct Move {
    at: u64,
}

fn elsewhere(id: u64) -> [f64; DIM] {
    [id as f64 / 10.0, -1.0, 0.5]
}

impl Disturbance<f64> for Move {
    fn chooses(&self, _: &Random, iteration: u64, id: u64) -> bool {
        iteration == self.at && id.is_multiple_of(7)
    }

    fn disturb(&self, _: &Random, _: u64, id: u64, position: &mut [f64]) {
        position.copy_from_slice(&elsewhere(id));
    }
}

fn positions() -> Vec<f64> {
    (0..N * DIM).map(|i| (i as f64 * 0.7).sin()).collect()
}

fn setup<E: Energy<f64>>(energy: E, kind: KernelKind, threads: usize) -> Setup<f64, E> {
    let data = Dataset::new(DIM, positions()).unwrap();
    let rates = vec![0.0; energy.params().len()];
    let mut setup = Setup::new(energy, data);
    setup.algorithm = Algorithm::Pcd;
    setup.optimizer = Optimizer::new(Rule::Gradient, rates);
    setup.kernel = Kernel { kind, ..Kernel::ula() };
    setup.step_size = StepSize::fixed(0.05);
    setup.walkers = N;
    setup.threads = threads;
    setup
}

fn check<E: Energy<f64>>(energy: E, kind: KernelKind, batch: Option<usize>) {
    // One of them is disturbed in iteration 0, the other begins where that puts it.
    let mut moved = setup(energy.clone(), kind, 2);
    moved.initial = Some((positions(), None));
    moved.disturbance = Some(Arc::new(Move { at: 0 }));
    moved.batch = batch;
    let mut placed = setup(energy, kind, 1);
    let mut begin = positions();
    (0..N).step_by(7).for_each(|i| begin[i * DIM..(i + 1) * DIM].copy_from_slice(&elsewhere(i as u64)));
    placed.initial = Some((begin, None));
    placed.batch = batch;
    let (mut moved, mut placed) = (Trainer::new(moved).unwrap(), Trainer::new(placed).unwrap());
    assert_ne!(moved.walkers().positions(), placed.walkers().positions());
    for _ in 0..3 {
        moved.step().unwrap();
        placed.step().unwrap();
        assert_eq!(moved.walkers().positions(), placed.walkers().positions());
        assert_eq!(moved.walkers().energies(), placed.walkers().energies());
    }
}

#[test]
fn disturbed_walkers_go_on_from_where_they_were_put() {
    let identity: Vec<f64> = (0..DIM * DIM).map(|i| if i % (DIM + 1) == 0 { 1.5 } else { 0.1 }).collect();
    let gaussian = Gaussian::new(&[0.3, 0.0, -0.2], &identity).unwrap();
    let mixture = Mixture::paper(&[-1.0, 0.0, 0.0], &[1.0, 0.5, 0.0], 0.3).unwrap();
    for kind in [KernelKind::Ula, KernelKind::Mala] {
        for batch in [None, Some(11)] {
            check(gaussian.clone(), kind, batch);
            check(mixture.clone(), kind, batch);
        }
    }
}

#[test]
fn walkers_with_weights_are_not_disturbed() {
    let mut setup =
        setup(Mixture::paper(&[-1.0, 0.0, 0.0], &[1.0, 0.5, 0.0], 0.3).unwrap(), KernelKind::Ula, 1);
    setup.disturbance = Some(Arc::new(Move { at: 0 }));
    setup.algorithm = Algorithm::Jarzynski;
    let error = Trainer::new(setup).err().unwrap().to_string();
    assert!(error.contains("weights"), "{error}");
}
