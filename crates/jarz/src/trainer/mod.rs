//! The trainer: Algorithms 1 to 4 of the paper in one step.

mod average;
mod data_gradient;
mod delay;
mod estimates;
mod relay;
mod settle;
mod setup;
mod trust;

pub use relay::Relay;
pub use settle::Settle;
pub use setup::{Setup, Witnesses};
pub use trust::within_trust_region;

use crate::algorithm::{Algorithm, SelfInteractionRule};
use crate::data::Dataset;
use crate::energy::Energy;
use crate::error::Error;
use crate::kernel::{Kernel, StepSize};
use crate::leave_one_out::Memory;
use crate::optimizer::Optimizer;
use crate::parallel::Layout;
use crate::ranks::Ranks;
use crate::real::Real;
use crate::resampling::{Scheme, Trigger};
use crate::sampler::{Advance, Disturbance, Sampler, SelfInteraction};
use crate::walkers::Walkers;
use crate::weights::WeightSums;
use average::Average;
use data_gradient::DataGradient;
use delay::Delay;
use estimates::DataTerm;
use relay::{Course, Keepers};
use std::sync::Arc;

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepInfo {
    /// The iteration that was done, counted from 1.
    pub iteration: u64,
    /// Mean acceptance of the kernel.
    pub acceptance: f64,
    /// ESS before resampling.
    pub ess: f64,
    /// Whether the walkers were resampled.
    pub resampled: bool,
    /// Norm of the direction over the parameters that learn.
    pub gradient_norm: f64,
    /// Factor by which the trust region shortened the parameter step.
    pub step_scale: f64,
}

/// The complete state of a run: restoring it gives bit for bit what going on would have given.
#[derive(Clone, Debug, PartialEq)]
pub struct State<T> {
    /// Iterations done.
    pub iteration: u64,
    /// Parameters.
    pub theta: Vec<f64>,
    /// Running mean of the parameters; empty if there is none.
    pub average: Vec<f64>,
    /// The optimizer's running moments.
    pub moments: [Vec<f64>; 2],
    /// The ensemble.
    pub walkers: Walkers<T>,
    /// Its sums.
    pub sums: WeightSums,
    /// The witnesses and their sums, if there are any.
    pub witnesses: Option<(Walkers<T>, WeightSums)>,
    /// The walkers that a relay copies and their sums, if there are any.
    pub keepers: Option<(Walkers<T>, WeightSums)>,
    /// Time step of the kernel.
    pub step_size: f64,
    /// Variance and covariance of the walkers' gradients, for the leave-one-out correction.
    pub memory: [Vec<f64>; 2],
    /// How many directions have been followed and those that wait, the oldest first; empty without delay.
    pub waiting: Vec<f64>,
    /// Acceptance, gradient norm and step scale of the last iteration.
    pub last: [f64; 3],
}

/// A run in progress.
pub struct Trainer<T: Real, E: Energy<T>> {
    energy: E,
    next: E,
    data: Dataset<T>,
    data_layout: Layout,
    data_gradient: DataGradient<T, E>,
    sampler: Sampler<T, E>,
    witnesses: Option<Sampler<T, E>>,
    average: Option<Average<E>>,
    algorithm: Algorithm,
    disturbance: Option<Arc<dyn Disturbance<T>>>,
    memory: Option<Memory>,
    delay: Option<(f64, Delay)>,
    /// When copies of other walkers take over from the driving ones, and these other walkers.
    relay: Option<Keepers<T, E>>,
    settle: Option<Settle>,
    kernel: Kernel,
    optimizer: Optimizer,
    trained: Vec<bool>,
    trust_region: Option<f64>,
    steps: StepSize,
    step_size: f64,
    scheme: Scheme,
    trigger: Trigger,
    truth: Option<f64>,
    iteration: u64,
    last: [f64; 3],
    full_term: Option<DataTerm>,
    buffers: Buffers,
}

/// Vectors of one number per parameter, kept from step to step.
#[derive(Default)]
struct Buffers {
    /// Weighted mean of `dU/dtheta` over the walkers.
    model: Vec<f64>,
    direction: Vec<f64>,
    theta: Vec<f64>,
    response: Vec<f64>,
}

impl<T: Real, E: Energy<T>> Trainer<T, E> {
    /// Checks that the parts fit, draws the initial walkers and evaluates them.
    pub fn new(setup: Setup<T, E>) -> Result<Self, Error> {
        setup.check()?;
        let (witnesses, relay) = (setup.witnesses()?, setup.keepers()?);
        let (average, count) = (setup.average()?, setup.count());
        let walkers = setup.initial_walkers()?;
        let Setup { energy, data, algorithm, optimizer, ranks, .. } = setup;
        let leave_one_out = algorithm == Algorithm::Jarzynski
            && energy.per_walker().is_some()
            && setup.delay.is_none()
            && setup.self_interaction != Some(SelfInteractionRule::None);
        let trained: Vec<bool> = optimizer.rates().iter().map(|r| *r != 0.0).collect();
        let (kernel, scheme) = (setup.kernel, setup.scheme);
        let (batch, seed, threads) = (setup.batch, setup.seed, setup.threads);
        let data_gradient = DataGradient::new(&energy, &data, setup.data_batch, &ranks);
        let data_layout = Layout::of_points(&energy, data.len());
        // Walkers that restart may want any point.
        let data = match ranks.is_alone() || algorithm.restarts() {
            true => data,
            false => {
                let rows = Dataset::shard(&energy, data.len(), &ranks).rows();
                data.keep(rows)
            }
        };
        let sampler = Sampler::among(ranks, count, walkers, &energy, kernel, scheme, batch, seed, threads)?;
        let mut trainer = Trainer {
            next: energy.clone(),
            data_layout,
            energy,
            data_gradient,
            data,
            sampler,
            witnesses,
            average,
            algorithm,
            disturbance: setup.disturbance,
            memory: leave_one_out.then(Memory::default),
            delay: setup.delay.map(|time| (time, Delay::default())),
            relay,
            settle: setup.settle,
            kernel,
            optimizer,
            trained,
            trust_region: setup.trust_region,
            step_size: setup.step_size.initial(),
            steps: setup.step_size,
            scheme,
            trigger: setup.trigger,
            truth: setup.truth,
            iteration: 0,
            last: [f64::NAN, f64::NAN, 1.0],
            full_term: None,
            buffers: Buffers::default(),
        };
        trainer.sampler.begin(&trainer.energy)?;
        for sampler in bystanders(&mut trainer.witnesses, &mut trainer.relay) {
            sampler.workers.share_threads(&trainer.sampler.workers);
            sampler.begin(&trainer.energy)?;
        }
        if trainer.algorithm.restarts() {
            // The first direction of CD already belongs to walkers that have left the data points.
            let advance = spec(1 << 40, trainer.step_size, algorithm, None, &trainer.data);
            trainer.sampler.advance(&trainer.energy, &trainer.energy, advance)?;
        }
        Ok(trainer)
    }

    /// One iteration: direction, parameter step, moves and weights, resampling.
    pub fn step(&mut self) -> Result<StepInfo, Error> {
        let k = self.iteration;
        let params = self.trained.len();
        let Buffers { mut model, mut direction, mut theta, mut response } = std::mem::take(&mut self.buffers);
        if let Some(by) = &self.disturbance {
            self.sampler.disturb(by.as_ref(), &self.energy, k);
        }
        for buffer in [&mut model, &mut direction, &mut theta, &mut response] {
            buffer.resize(params, 0.0);
        }

        // D_k = sum_i p_i dU(X_i) - mean over data of dU
        self.sampler.sums().mean_gradient(&mut model);
        self.data_gradient.update(&self.energy, &self.data, &self.sampler, k);
        for j in 0..params {
            direction[j] = model[j] - self.data_gradient.mean[j];
        }
        let settled = self.settle.as_ref().filter(|s| s.is_on(k));
        if let Some(settle) = settled {
            settle.leave_only_learning(&mut direction);
        }
        let gradient_norm = self.norm(&direction);
        if !gradient_norm.is_finite() {
            return Err(Error::DivergedDirection { iteration: k, what: "direction of descent" });
        }

        // theta_{k+1} = opt(theta_k, D_k)
        theta.copy_from_slice(self.energy.params());
        response.fill(0.0);
        let follows = match (settled, &mut self.delay) {
            (Some(settle), _) => {
                let fisher = |of: &[usize]| self.sampler.fisher(&self.energy, of, &self.data);
                settle.step(fisher, &direction, &mut theta);
                true
            }
            (None, Some((time, delay))) => {
                let wait = delay::iterations(*time, &self.kernel, self.step_size);
                let follows = delay.pass(&mut direction, wait);
                if follows {
                    self.optimizer.step(delay.followed(), &direction, &mut theta, &mut response);
                }
                follows
            }
            (None, None) => {
                self.optimizer.step(k, &direction, &mut theta, &mut response);
                true
            }
        };
        if theta.iter().any(|t| !t.is_finite()) {
            return Err(Error::DivergedDirection { iteration: k, what: "new parameter vector" });
        }
        self.next.set_params(&theta);
        let step_scale = if follows { self.keep_within_trust_region(&mut theta) } else { self.last[2] };
        response.iter_mut().for_each(|r| *r *= step_scale);
        let looking = self.look(k, &mut response);

        // X_{k+1}, A_{k+1}
        let own = SelfInteraction { response: &response, mean: &model };
        let own = self.memory.is_some().then_some(own);
        let advance = spec(k, self.step_size, self.algorithm, own, &self.data);
        let moved = self.sampler.advance(&self.energy, &self.next, advance)?;
        let (from, to) = match &mut self.average {
            Some(average) => average.follow(self.next.params()),
            None => (&self.energy, &self.next),
        };
        for sampler in bystanders(&mut self.witnesses, &mut self.relay) {
            let advance = spec(k, self.step_size, self.algorithm, None, &self.data);
            sampler.advance(from, to, advance)?;
        }
        if let Some(average) = &mut self.average {
            average.arrive();
        }
        std::mem::swap(&mut self.energy, &mut self.next);
        self.buffers = Buffers { model, direction, theta, response };
        if looking && let (Some(memory), Some(gradients)) = (&mut self.memory, self.energy.per_walker()) {
            memory.compare(&self.sampler, gradients, params);
        }
        self.full_term = None;
        self.iteration += 1;

        // Resample if ESS_{k+1} < c_{k+1}
        let ess = self.sampler.sums().ess();
        let resampled =
            self.algorithm.is_weighted() && self.trigger.fires(self.iteration, self.sampler.sums());
        if resampled {
            self.sampler.resample(&self.energy, self.iteration)?;
        }
        for sampler in bystanders(&mut self.witnesses, &mut self.relay) {
            if self.trigger.fires(self.iteration, sampler.sums()) {
                let model = self.average.as_ref().map_or(&self.energy, |a| a.model());
                sampler.resample(model, self.iteration)?;
            }
        }
        self.hand_over()?;
        self.step_size = self.steps.next(k, self.step_size, moved.acceptance);
        self.last = [moved.acceptance, gradient_norm, step_scale];
        let (iteration, acceptance) = (self.iteration, moved.acceptance);
        Ok(StepInfo { iteration, acceptance, ess, resampled, gradient_norm, step_scale })
    }

    /// Lets copies of the keepers, or in the end of the witnesses, drive from now on, if it is time.
    fn hand_over(&mut self) -> Result<(), Error> {
        let Some((relay, keepers)) = &self.relay else { return Ok(()) };
        let begins = self.settle.as_ref().is_some_and(|s| s.after == self.iteration);
        if !begins && !relay.is_due(self.iteration) {
            return Ok(());
        }
        let settled = self.settle.as_ref().is_some_and(|s| s.is_on(self.iteration));
        let copied = self.witnesses.as_ref().filter(|_| settled).unwrap_or(keepers);
        let course = Course {
            kernel: &self.kernel,
            scheme: self.scheme,
            h: self.step_size,
            iteration: self.iteration,
            data: &self.data,
            energy: &self.energy,
            average: self.average.as_ref(),
        };
        relay.hand_over(&mut self.sampler, copied, &course)
    }

    /// Prepares the leave-one-out correction of this step; true if the walkers' memory is being measured.
    fn look(&mut self, k: u64, response: &mut [f64]) -> bool {
        let (Some(memory), Some(gradients)) = (&mut self.memory, self.energy.per_walker()) else {
            return false;
        };
        memory.soften(response, self.optimizer.persistence());
        let due = memory.is_due(k);
        if due {
            memory.look(&self.sampler, gradients, response.len());
        }
        due
    }

    /// Shortens the parameter step until the log-weights it causes spread by no more than the trust region allows.
    fn keep_within_trust_region(&mut self, theta: &mut [f64]) -> f64 {
        let Some(limit) = self.trust_region else { return 1.0 };
        let old = self.energy.params();
        let full: Vec<f64> = theta.iter().zip(old).map(|(t, o)| t - o).collect();
        let (next, sampler) = (&mut self.next, &self.sampler);
        within_trust_region(limit, self.last[2], |scale| {
            for (theta, (old, full)) in theta.iter_mut().zip(old.iter().zip(&full)) {
                *theta = old + scale * full;
            }
            next.set_params(theta);
            sampler.spread(next)
        })
    }

    /// Of the direction, over the parameters that learn.
    fn norm(&self, direction: &[f64]) -> f64 {
        let settled = self.settle.as_ref().filter(|s| s.is_on(self.iteration));
        let learning = settled.map_or(&self.trained, |settle| &settle.learning);
        let learnt = direction.iter().zip(learning).filter(|(_, learning)| **learning);
        learnt.map(|(d, _)| d * d).sum::<f64>().sqrt()
    }

    /// The model at its present parameters, or at their running mean if there is one: what estimates are about.
    pub fn energy(&self) -> &E {
        self.average.as_ref().map_or(&self.energy, |a| a.model())
    }

    /// The data.
    pub fn data(&self) -> &Dataset<T> {
        &self.data
    }

    /// The walkers that estimates and samples come from: the witnesses if there are any.
    pub fn walkers(&self) -> &Walkers<T> {
        self.judges().walkers()
    }

    /// The walkers that drive the parameters.
    pub fn driving_walkers(&self) -> &Walkers<T> {
        self.sampler.walkers()
    }

    fn judges(&self) -> &Sampler<T, E> {
        self.witnesses.as_ref().unwrap_or(&self.sampler)
    }

    /// The algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Time step of the kernel.
    pub fn step_size(&self) -> f64 {
        self.step_size
    }

    /// Iterations done.
    pub fn iteration(&self) -> u64 {
        self.iteration
    }

    /// Whether the leave-one-out correction is at work.
    pub fn leaves_one_out(&self) -> bool {
        self.memory.is_some()
    }

    /// Who shares the walkers and the data.
    pub fn ranks(&self) -> &Ranks {
        self.sampler.ranks()
    }

    /// A copy of the complete state; among several ranks, which must all ask, the first gets all walkers and the others their own.
    pub fn state(&self) -> State<T> {
        State {
            iteration: self.iteration,
            theta: self.energy.params().to_vec(),
            average: self.average.as_ref().map_or_else(Vec::new, |a| a.params().to_vec()),
            moments: [self.optimizer.first.clone(), self.optimizer.second.clone()],
            walkers: self.sampler.all_walkers(),
            sums: self.sampler.sums().clone(),
            witnesses: self.witnesses.as_ref().map(|w| (w.all_walkers(), w.sums().clone())),
            keepers: self.relay.as_ref().map(|(_, k)| (k.all_walkers(), k.sums().clone())),
            step_size: self.step_size,
            memory: self.memory.as_ref().map_or_else(Default::default, |m| m.as_arrays()),
            waiting: self.delay.as_ref().map_or_else(Vec::new, |(_, d)| d.to_list()),
            last: self.last,
        }
    }

    /// Goes back to a state of a run with the same setup, on any number of ranks.
    pub fn restore(&mut self, state: State<T>) -> Result<(), Error> {
        let params = self.trained.len();
        let moments = [&self.optimizer.first, &self.optimizer.second].map(|m| m.len());
        let [variance, covariance] = &state.memory;
        let memory_fits = variance.len() == covariance.len() && [0, params].contains(&variance.len());
        let keepers = self.relay.as_ref().map(|(_, k)| k);
        let bystanders_fit = [(self.witnesses.as_ref(), &state.witnesses), (keepers, &state.keepers)]
            .iter()
            .all(|pair| match pair {
                (None, None) => true,
                (Some(sampler), Some((walkers, sums))) => sampler.fits(walkers, sums),
                _ => false,
            });
        let fits = memory_fits
            && match &mut self.delay {
                Some((_, delay)) => delay.restore(&state.waiting, params),
                None => state.waiting.is_empty(),
            }
            && bystanders_fit
            && state.theta.len() == params
            && state.average.len() == self.average.as_ref().map_or(0, |a| a.params().len())
            && state.moments.each_ref().map(|m| m.len()) == moments
            && self.sampler.fits(&state.walkers, &state.sums);
        if !fits {
            return Err(Error::Setup("the saved state belongs to a run with another setup".into()));
        }
        let bits = |a: &[f64]| a.iter().fold(0u64, |h, v| h.rotate_left(5) ^ v.to_bits());
        if !self.ranks().agree(&[state.iteration, bits(&state.theta), bits(&state.walkers.log_weights)]) {
            return Err(Error::Setup("the ranks were given different states to go on from".into()));
        }
        self.iteration = state.iteration;
        self.energy.set_params(&state.theta);
        self.next.set_params(&state.theta);
        if let Some(average) = &mut self.average {
            average.restore(&state.average);
        }
        self.optimizer.restore(state.moments);
        self.sampler.restore(state.walkers, state.sums);
        // They fit: where there is one there is the other.
        let states = state.witnesses.into_iter().chain(state.keepers);
        for (sampler, (walkers, sums)) in bystanders(&mut self.witnesses, &mut self.relay).zip(states) {
            sampler.restore(walkers, sums);
        }
        self.step_size = state.step_size;
        if let Some(memory) = &mut self.memory {
            *memory = Memory::from_arrays(state.memory);
        }
        self.last = state.last;
        self.full_term = None;
        Ok(())
    }
}

/// The walkers that follow the model without driving it: witnesses, then keepers.
fn bystanders<'a, T: Real, E: Energy<T>>(
    witnesses: &'a mut Option<Sampler<T, E>>,
    relay: &'a mut Option<Keepers<T, E>>,
) -> impl Iterator<Item = &'a mut Sampler<T, E>> {
    witnesses.iter_mut().chain(relay.iter_mut().map(|(_, keepers)| keepers))
}

fn spec<'a, T>(
    iteration: u64,
    h: f64,
    algorithm: Algorithm,
    correction: Option<SelfInteraction<'a>>,
    data: &'a Dataset<T>,
) -> Advance<'a, T> {
    let restart = algorithm.restarts().then_some(data);
    Advance { iteration, h, weighting: algorithm.weighting(), correction, restart }
}
