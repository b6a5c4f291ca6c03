//! The loop around the trainer: logging, checkpoints and stopping, each a part of its own.

use crate::classes::Classes;
use crate::energy::Energy;
use crate::error::Error;
use crate::estimate::Estimates;
use crate::real::Real;
use crate::trainer::{State, StepInfo, Trainer};

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// All iterations are done.
    Finished,
    /// Asked to stop.
    Interrupted,
}

impl StopReason {
    /// Name used in results.
    pub fn name(self) -> &'static str {
        match self {
            StopReason::Finished => "finished",
            StopReason::Interrupted => "interrupted",
        }
    }
}

/// Something that wants to know how a run goes. An error ends the run.
pub trait Observer {
    /// Called at every logged iteration: the first, multiples of the interval, and the last of a run that is not interrupted.
    fn log(&mut self, estimates: &Estimates) -> Result<(), String>;
    /// Called after every iteration; cheap things only.
    fn step(&mut self, _info: &StepInfo) -> Result<(), String> {
        Ok(())
    }
}

/// Something that keeps states of a run.
pub trait Checkpoints<T> {
    /// Whether a state should be kept now.
    fn due(&mut self, iteration: u64) -> bool;
    /// Keeps a state.
    fn save(&mut self, state: &State<T>) -> Result<(), String>;
}

/// How long to run and who is told.
pub struct Loop<'a, T> {
    /// Iterations in all, those already done included.
    pub iterations: u64,
    /// Log every so many iterations; also at the beginning and the end.
    pub log_every: u64,
    /// Kinds whose masses among the walkers are logged, besides what the model itself has to say.
    pub classes: Option<Classes<'a, T>>,
    /// Who is told.
    pub observers: Vec<&'a mut dyn Observer>,
    /// Who keeps states.
    pub checkpoints: Option<&'a mut dyn Checkpoints<T>>,
    /// Asked after every iteration.
    pub stop: &'a dyn Fn() -> bool,
}

impl<T: Real> Loop<'_, T> {
    /// Estimates at the present state, with the masses of the kinds.
    pub fn estimates<E: Energy<T>>(&self, trainer: &mut Trainer<T, E>) -> Result<Estimates, Error> {
        let mut estimates = trainer.estimates()?;
        if let Some(classes) = &self.classes {
            estimates.walker_masses = Some(trainer.masses_of(classes));
        }
        Ok(estimates)
    }

    /// Runs until done or stopped; keeps a last checkpoint either way. Among several ranks, any may ask to stop or to keep a state, and the
    /// first is given the whole of it; observers and checkpoints of the others see their own part.
    pub fn run<E: Energy<T>>(&mut self, trainer: &mut Trainer<T, E>) -> Result<StopReason, Error> {
        loop {
            let k = trainer.iteration();
            let done = k >= self.iterations;
            let due = self.checkpoints.as_mut().is_some_and(|c| c.due(k));
            let [stopped, due] = trainer.ranks().any([!done && (self.stop)(), due]);
            if done || (!stopped && k.is_multiple_of(self.log_every.max(1))) {
                let estimates = self.estimates(trainer)?;
                for observer in &mut self.observers {
                    observer.log(&estimates).map_err(Error::Part)?;
                }
            }
            if (done || stopped || due) && (self.checkpoints.is_some() || !trainer.ranks().is_alone()) {
                let state = trainer.state();
                if let Some(checkpoints) = &mut self.checkpoints {
                    checkpoints.save(&state).map_err(Error::Part)?;
                }
            }
            if done {
                return Ok(StopReason::Finished);
            }
            if stopped {
                return Ok(StopReason::Interrupted);
            }
            let info = trainer.step()?;
            for observer in &mut self.observers {
                observer.step(&info).map_err(Error::Part)?;
            }
        }
    }
}
