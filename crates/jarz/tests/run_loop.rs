//! The loop around the trainer: who is told when, which states are kept, and how a run ends.

use jarz::{
    Checkpoints, Classes, Dataset, Error, Estimates, Gaussian, Loop, Observer, Setup, State, StepInfo,
    StopReason, Trainer,
};
use std::cell::Cell;

fn trainer() -> Trainer<f64, Gaussian> {
    let truth = Gaussian::new(&[0.5], &[1.0]).unwrap();
    let mut setup =
        Setup::new(Gaussian::new(&[0.0], &[1.0]).unwrap(), Dataset::sample(&truth, 50, 1).unwrap());
    (setup.walkers, setup.threads) = (50, 1);
    Trainer::new(setup).unwrap()
}

/// Notes what it is told.
#[derive(Default)]
struct Diary {
    logs: Vec<u64>,
    steps: Vec<u64>,
    fail_at: Option<u64>,
}

impl Observer for Diary {
    fn log(&mut self, estimates: &Estimates) -> Result<(), String> {
        self.logs.push(estimates.iteration);
        Ok(())
    }
    fn step(&mut self, info: &StepInfo) -> Result<(), String> {
        self.steps.push(info.iteration);
        if self.fail_at == Some(info.iteration) { Err("the diary is full".into()) } else { Ok(()) }
    }
}

/// Keeps states, some because they are due.
struct Shelf {
    every: u64,
    full: bool,
    saved: Vec<State<f64>>,
}

impl Shelf {
    fn new(every: u64) -> Self {
        Shelf { every, full: false, saved: Vec::new() }
    }
    fn iterations(&self) -> Vec<u64> {
        self.saved.iter().map(|s| s.iteration).collect()
    }
}

impl Checkpoints<f64> for Shelf {
    fn due(&mut self, iteration: u64) -> bool {
        iteration > 0 && iteration.is_multiple_of(self.every)
    }
    fn save(&mut self, state: &State<f64>) -> Result<(), String> {
        if self.full {
            return Err("the shelf is full".into());
        }
        self.saved.push(state.clone());
        Ok(())
    }
}

fn never() -> bool {
    false
}

#[test]
fn observers_and_checkpoints_come_at_their_iterations() {
    let (mut first, mut second, mut shelf) = (Diary::default(), Diary::default(), Shelf::new(3));
    let mut trainer = trainer();
    let mut run = Loop {
        iterations: 10,
        log_every: 4,
        classes: None,
        observers: vec![&mut first, &mut second],
        checkpoints: Some(&mut shelf),
        stop: &never,
    };
    assert_eq!(run.run(&mut trainer).unwrap(), StopReason::Finished);
    for diary in [first, second] {
        assert_eq!(diary.logs, [0, 4, 8, 10]);
        assert_eq!(diary.steps, (1..=10).collect::<Vec<_>>());
    }
    assert_eq!(shelf.iterations(), [3, 6, 9, 10]);
    assert_eq!(*shelf.saved.last().unwrap(), trainer.state());
}

/// A run that is done does nothing more than log and keep its end; one half-way goes on to the total, not by the total.
#[test]
fn iterations_already_done_count() {
    let mut trainer = trainer();
    for (total, steps, logs) in
        [(5, vec![1, 2, 3, 4, 5], vec![0, 5]), (7, vec![6, 7], vec![7]), (7, vec![], vec![7])]
    {
        let (mut diary, mut shelf) = (Diary::default(), Shelf::new(1000));
        let mut run = Loop {
            iterations: total,
            log_every: 100,
            classes: None,
            observers: vec![&mut diary],
            checkpoints: Some(&mut shelf),
            stop: &never,
        };
        assert_eq!(run.run(&mut trainer).unwrap(), StopReason::Finished);
        assert_eq!((diary.steps, diary.logs, shelf.iterations()), (steps, logs, vec![total]));
    }
}

#[test]
fn a_stop_flag_interrupts_and_keeps_the_state() {
    let asked = Cell::new(0);
    let stop = || {
        asked.set(asked.get() + 1);
        asked.get() > 4
    };
    let (mut diary, mut shelf) = (Diary::default(), Shelf::new(1000));
    let mut interrupted = trainer();
    let mut run = Loop {
        iterations: 20,
        log_every: 100,
        classes: None,
        observers: vec![&mut diary],
        checkpoints: Some(&mut shelf),
        stop: &stop,
    };
    assert_eq!(run.run(&mut interrupted).unwrap(), StopReason::Interrupted);
    let at = interrupted.iteration();
    assert_eq!(diary.steps, (1..=at).collect::<Vec<_>>());
    assert!(at > 0 && at < 20, "stopped at {at}");
    assert_eq!(shelf.iterations(), [at]);
    assert_eq!(shelf.saved[0], interrupted.state());

    // What was kept goes on as if nothing had happened.
    let mut resumed = trainer();
    resumed.restore(shelf.saved.remove(0)).unwrap();
    let mut whole = trainer();
    for trainer in [&mut resumed, &mut whole] {
        let mut run = Loop {
            iterations: 20,
            log_every: 1,
            classes: None,
            observers: vec![],
            checkpoints: None,
            stop: &never,
        };
        run.run(trainer).unwrap();
    }
    assert_eq!(resumed.state(), whole.state());
}

#[test]
fn failures_of_parts_end_the_run_with_their_words() {
    let mut diary = Diary { fail_at: Some(3), ..Diary::default() };
    let mut run = Loop {
        iterations: 9,
        log_every: 1,
        classes: None,
        observers: vec![&mut diary],
        checkpoints: None,
        stop: &never,
    };
    assert_eq!(run.run(&mut trainer()).unwrap_err(), Error::Part("the diary is full".into()));
    assert_eq!(diary.steps, [1, 2, 3]);
    let mut shelf = Shelf { full: true, ..Shelf::new(2) };
    let mut run = Loop {
        iterations: 9,
        log_every: 1,
        classes: None,
        observers: vec![],
        checkpoints: Some(&mut shelf),
        stop: &never,
    };
    let mut trainer = trainer();
    assert_eq!(run.run(&mut trainer).unwrap_err(), Error::Part("the shelf is full".into()));
    assert_eq!(trainer.iteration(), 2);
}

/// Keeps the masses it is told.
struct Scales(Vec<Vec<jarz::Measured>>);

impl Observer for Scales {
    fn log(&mut self, estimates: &Estimates) -> Result<(), String> {
        self.0.push(estimates.walker_masses.clone().unwrap_or_default());
        Ok(())
    }
}

#[test]
fn masses_of_kinds_are_logged() {
    let (mut trainer, mut scales) = (trainer(), Scales(Vec::new()));
    let sides = |x: &[f64]| x.iter().flat_map(|x| if *x < 0.0 { [1.0, 0.0] } else { [0.0, 1.0] }).collect();
    let classes = Some(Classes { count: 2, probabilities: &sides });
    let expected = |t: &Trainer<f64, Gaussian>| {
        let p = jarz::weights::normalise(t.walkers().log_weights());
        t.walkers().positions().iter().zip(p).filter(|(x, _)| **x < 0.0).map(|(_, p)| p).sum::<f64>()
    };
    let before = expected(&trainer);
    let observers: Vec<&mut dyn Observer> = vec![&mut scales];
    let mut run = Loop { iterations: 6, log_every: 3, classes, observers, checkpoints: None, stop: &never };
    run.run(&mut trainer).unwrap();
    let after = expected(&trainer);
    assert_eq!(scales.0.len(), 3);
    for (masses, expected) in [(&scales.0[0], before), (&scales.0[2], after)] {
        assert!((masses[0].value - expected).abs() < 1e-12);
        assert!((masses[0].value + masses[1].value - 1.0).abs() < 1e-12);
        assert!(masses[0].std_error.is_some_and(|e| e > 0.0));
    }
    // Fifty equal weights: the standard error of a fraction.
    let error = scales.0[0][0].std_error.unwrap();
    assert!((error - (before * (1.0 - before) / 50.0).sqrt()).abs() < 1e-12, "{error}");
}
