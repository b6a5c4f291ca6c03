//! Experiments whose runs are done by an engine.

use crate::common::Silent;
use crate::{options, without_a_classifier};
use jarz::{Algorithm, Classes, Estimates, Measured, Ranks, Setup, State, StepInfo, Trainer, Training};
use jarz_net::NetEnergy;
use jarz_run::config::AlgorithmKind;
use jarz_run::{Config, Engine, RunError, read_metrics};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// An engine that leaves the work to the processor, and counts what it does.
#[derive(Debug, Default)]
struct Counting {
    /// Runs it has begun.
    started: AtomicUsize,
    /// Iterations that were begun while another was not finished.
    overlaps: AtomicUsize,
    busy: AtomicBool,
    refuses_pcd: bool,
}

/// Hands the steps of a trainer on.
struct Watched {
    trainer: Trainer<f32, NetEnergy<f32>>,
    engine: Arc<Counting>,
}

#[derive(Debug)]
struct Handle(Arc<Counting>);

impl Engine for Handle {
    fn check(&self, config: &Config) -> Result<(), RunError> {
        let refused = self.0.refuses_pcd && config.algorithm.kind == AlgorithmKind::Pcd;
        if refused { Err(RunError::Impossible("no PCD here".into())) } else { Ok(()) }
    }
    fn start(&self, setup: Setup<f32, NetEnergy<f32>>) -> Result<Box<dyn Training<f32>>, RunError> {
        self.0.started.fetch_add(1, Ordering::SeqCst);
        Ok(Box::new(Watched { trainer: Trainer::new(setup)?, engine: self.0.clone() }))
    }
}

impl Training<f32> for Watched {
    fn iteration(&self) -> u64 {
        Training::iteration(&self.trainer)
    }
    fn algorithm(&self) -> Algorithm {
        Training::algorithm(&self.trainer)
    }
    fn leaves_one_out(&self) -> bool {
        Training::leaves_one_out(&self.trainer)
    }
    fn step(&mut self) -> Result<StepInfo, jarz::Error> {
        let overlaps = self.engine.busy.swap(true, Ordering::SeqCst);
        self.engine.overlaps.fetch_add(usize::from(overlaps), Ordering::SeqCst);
        let step = self.trainer.step();
        self.engine.busy.store(false, Ordering::SeqCst);
        step
    }
    fn estimates(&mut self) -> Result<Estimates, jarz::Error> {
        self.trainer.estimates()
    }
    fn ranks(&self) -> &Ranks {
        Training::ranks(&self.trainer)
    }
    fn masses_of(&self, classes: &Classes<'_, f32>) -> Result<Vec<Measured>, jarz::Error> {
        Training::masses_of(&self.trainer, classes)
    }
    fn state(&self) -> Result<State<f32>, jarz::Error> {
        Training::state(&self.trainer)
    }
    fn restore(&mut self, state: State<f32>) -> Result<(), jarz::Error> {
        self.trainer.restore(state)
    }
}

/// All runs of an experiment go to the engine, one after the other, and nothing but that changes; what it cannot do shows at once.
#[test]
fn an_engine_does_the_runs() {
    let folder = tempfile::tempdir().unwrap();
    let plan = without_a_classifier();
    let (here, there) = (folder.path().join("here"), folder.path().join("there"));
    let picky = Arc::new(Counting { refuses_pcd: true, ..Counting::default() });
    let refused = options(there.clone(), Some(Arc::new(Handle(picky)))).reproduce(&plan, &Silent);
    assert!(refused.err().unwrap().to_string().contains("no PCD here"));
    assert!(!there.exists(), "a refused experiment left a folder behind");

    let counting = Arc::new(Counting::default());
    let engine: Arc<dyn Engine> = Arc::new(Handle(counting.clone()));
    let with = options(there.clone(), Some(engine)).reproduce(&plan, &Silent).unwrap();
    let without = options(here.clone(), None).reproduce(&plan, &Silent).unwrap();
    assert_eq!(with.summary["variants"], without.summary["variants"]);
    let rows = |out: &Path| read_metrics(&out.join("jarzynski/run-01/metrics.jsonl")).unwrap();
    let entropies = |out: &Path| rows(out).iter().map(|row| row.cross_entropy).collect::<Vec<_>>();
    assert_eq!(entropies(&here), entropies(&there));
    // Each of the two is timed first.
    assert_eq!(counting.started.load(Ordering::SeqCst), 4);
    assert_eq!(counting.overlaps.load(Ordering::SeqCst), 0);
}
