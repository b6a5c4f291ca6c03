//! The trainer of [`jarz::Trainer`] with everything that has a number per walker, data point or parameter on the device.

use crate::burn::data::Rows;
use crate::burn::device::Opened;
use crate::burn::energy::{DeviceEnergy, add, take};
use crate::burn::ensemble::{Ensemble, Settings, Step};
use crate::burn::estimates::DataTerm;
use crate::burn::network::Theta;
use crate::burn::noise::Source;
use crate::burn::optimizer::DeviceOptimizer;
use crate::burn::transfer::{Trouble, careful, numbers};
use crate::names::{Name, Noise};
use burn_tensor::Tensor;
use jarz::random::Subset;
use jarz::trainer::within_trust_region;
use jarz::{
    Algorithm, Classes, Disturbance, Energy, Error, Estimates, Measured, Purpose, Random, Ranks, Scheme,
    Setup, State, StepInfo, StepSize, Training, Trigger, Witnesses,
};
use jarz_net::NetEnergy;
use std::sync::Arc;

/// Walkers that suffice to say how far a parameter step spreads the weights.
const SPREAD_OVER: usize = 512;

/// A run in progress on a device.
pub struct DeviceTrainer {
    device: Name,
    ranks: Ranks,
    pub(crate) energy: DeviceEnergy,
    pub(crate) theta: Theta,
    /// The running mean of the parameters, and the share of new ones in it.
    pub(crate) average: Option<(Theta, f64)>,
    pub(crate) data: Rows,
    data_batch: Option<usize>,
    subset: Subset,
    random: Random,
    pub(crate) driving: Ensemble,
    pub(crate) witnesses: Option<Ensemble>,
    pub(crate) algorithm: Algorithm,
    disturbance: Option<Arc<dyn Disturbance<f32>>>,
    pub(crate) optimizer: DeviceOptimizer,
    trust_region: Option<f64>,
    /// Walkers that the trust region looks at.
    probes: Vec<u64>,
    steps: StepSize,
    pub(crate) step_size: f64,
    trigger: Trigger,
    pub(crate) scheme: Scheme,
    /// Volume of the whitening: what cross-entropies of the data need.
    pub(crate) log_det: f64,
    pub(crate) iteration: u64,
    pub(crate) last: [f64; 3],
    pub(crate) full_term: Option<DataTerm>,
}

/// Rows in blocks that lie evenly over the ensemble, the very ones [`jarz::Sampler::spread`] takes.
fn probes(walkers: usize, block: usize) -> Vec<u64> {
    let every = block * (walkers / SPREAD_OVER).max(1);
    (0..walkers).step_by(every).flat_map(|first| first as u64..walkers.min(first + block) as u64).collect()
}

impl DeviceTrainer {
    /// Draws the initial walkers, puts them on the device and evaluates them.
    pub(crate) fn new(
        setup: Setup<f32, NetEnergy<f32>>,
        opened: &Opened,
        noise: Noise,
    ) -> Result<Self, Error> {
        setup.check()?;
        careful(opened.name, 0, || Self::build(setup, opened, noise))
    }

    fn build(setup: Setup<f32, NetEnergy<f32>>, opened: &Opened, noise: Noise) -> Result<Self, Trouble> {
        let gain = setup.average_gain()?;
        let device = &opened.device;
        let energy = DeviceEnergy::new(setup.energy.network().architecture(), setup.energy.base(), device)?;
        let theta = energy.network.load(setup.energy.params(), device);
        let settings = |batch, seed, drives| Settings {
            kernel: setup.kernel,
            scheme: setup.scheme,
            batch,
            noise: Source { random: Random::new(seed), kind: noise, device: device.clone() },
            drives,
        };
        let walkers = setup.initial_walkers()?;
        let driving = Ensemble::new(walkers, &energy, &theta, settings(setup.batch, setup.seed, true))?;
        let witnesses = match setup.initial_witnesses()? {
            Some(Witnesses { walkers, batch, seed }) => {
                Some(Ensemble::new(walkers, &energy, &theta, settings(batch, seed, false))?)
            }
            None => None,
        };
        let block = setup.energy.rows_per_block().unwrap_or(1);
        let mut trainer = DeviceTrainer {
            device: opened.name,
            ranks: Ranks::alone(),
            average: gain.map(|gain| (theta.clone(), gain)),
            data: Rows::new(&setup.data, device),
            data_batch: setup.data_batch,
            subset: Subset::default(),
            random: Random::new(setup.seed),
            driving,
            witnesses,
            algorithm: setup.algorithm,
            disturbance: setup.disturbance,
            optimizer: DeviceOptimizer::new(&setup.optimizer, device),
            trust_region: setup.trust_region,
            probes: probes(setup.walkers, block.max(1)),
            step_size: setup.step_size.initial(),
            steps: setup.step_size,
            trigger: setup.trigger,
            scheme: setup.scheme,
            log_det: setup.energy.base().log_det(),
            iteration: 0,
            last: [f64::NAN, f64::NAN, 1.0],
            full_term: None,
            theta,
            energy,
        };
        if trainer.algorithm.restarts() {
            // The first direction of CD already belongs to walkers that have left the data points.
            let step = advance(1 << 40, trainer.step_size, trainer.algorithm, &trainer.data);
            trainer.driving.advance(&trainer.energy, &trainer.theta, &trainer.theta, step)?;
        }
        Ok(trainer)
    }

    /// The model at its present parameters, or at their running mean if there is one: what estimates are about.
    pub(crate) fn model(&self) -> &Theta {
        self.average.as_ref().map_or(&self.theta, |(mean, _)| mean)
    }

    /// The walkers that estimates come from.
    pub(crate) fn judges(&self) -> &Ensemble {
        self.witnesses.as_ref().unwrap_or(&self.driving)
    }

    /// `D_k = sum_i p_i dU(X_i) - mean over data of dU`.
    fn direction(&mut self) -> Tensor<1> {
        let data = match self.data_batch {
            None => self.data_gradient(&self.theta, self.data.pieces()).1,
            Some(m) => {
                self.random.subset(self.iteration, Purpose::DataBatch, m, self.data.len(), &mut self.subset);
                let rows = self.data.select(self.subset.members());
                self.data_gradient(&self.theta, &[rows]).1
            }
        };
        match &self.driving.gradient {
            Some(model) => model.clone() - data,
            None => -data,
        }
    }

    /// `f` of rows of data, and their mean of `dU/dtheta`.
    pub(crate) fn data_gradient(&self, theta: &Theta, pieces: &[Tensor<2>]) -> (Vec<Tensor<1>>, Tensor<1>) {
        let (mut values, mut sum, mut count) = (Vec::new(), None, 0);
        for piece in pieces {
            for rows in self.energy.blocks(piece.dims()[0]) {
                let ones = Tensor::ones([rows.len()], &self.energy.device);
                let (f, gradient) = self.energy.param_pass(theta, take(piece, &rows), ones);
                sum = add(sum, gradient);
                count += rows.len();
                values.push(f);
            }
        }
        let sum = sum.unwrap_or_else(|| theta.flat.zeros_like());
        (values, sum / count as f64)
    }

    /// `theta + scale * step`, shortened until the log-weights spread by no more than the trust region allows.
    fn within_trust_region(&self, step: Tensor<1>) -> Result<(Theta, f64), Trouble> {
        let to = |scale: f64| self.energy.network.theta(self.theta.flat.clone() + step.clone() * scale);
        let Some(limit) = self.trust_region else { return Ok((to(1.0), 1.0)) };
        let (mut reached, mut trouble) = (None, None);
        let scale = within_trust_region(limit, self.last[2], |scale| {
            let next = to(scale);
            let spread = self.driving.spread(&self.energy, &next, &self.probes);
            reached = Some(next);
            spread.unwrap_or_else(|e| {
                trouble = Some(e);
                0.0
            })
        });
        match (reached, trouble) {
            (_, Some(trouble)) => Err(trouble),
            (reached, None) => Ok((reached.unwrap_or_else(|| to(scale)), scale)),
        }
    }

    fn iterate(&mut self) -> Result<StepInfo, Trouble> {
        let k = self.iteration;
        if let Some(by) = &self.disturbance {
            self.driving.disturb(by.as_ref(), &self.energy, &self.theta, k)?;
        }
        let direction = self.direction();
        let norm = self.optimizer.norm(&direction);
        let step = self.optimizer.step(k, direction, &norm);
        let (next, step_scale) = self.within_trust_region(step)?;

        // X_{k+1}, A_{k+1}
        let spec = || advance(k, self.step_size, self.algorithm, &self.data);
        let moved = self.driving.advance(&self.energy, &self.theta, &next, spec());
        // What makes walkers diverge may be the direction.
        let gradient_norm = numbers(norm)?[0];
        if !gradient_norm.is_finite() {
            return Err(Error::DivergedDirection { iteration: k, what: "direction of descent" }.into());
        }
        let acceptance = moved?;
        let mean = self.average.as_ref().map(|(mean, gain)| {
            let change = (next.flat.clone() - mean.flat.clone()) * *gain;
            self.energy.network.theta(mean.flat.clone() + change)
        });
        if let Some(witnesses) = &mut self.witnesses {
            let from = self.average.as_ref().map_or(&self.theta, |(mean, _)| mean);
            witnesses.advance(&self.energy, from, mean.as_ref().unwrap_or(&next), spec())?;
        }
        if let (Some(average), Some(mean)) = (&mut self.average, mean) {
            average.0 = mean;
        }
        self.theta = next;
        self.full_term = None;
        self.iteration += 1;

        // Resample if ESS_{k+1} < c_{k+1}
        let ess = self.driving.sums.ess();
        let resampled =
            self.algorithm.is_weighted() && self.trigger.fires(self.iteration, &self.driving.sums);
        if resampled {
            self.driving.resample(&self.energy, &self.theta, self.iteration)?;
        }
        if let Some(witnesses) = &mut self.witnesses
            && self.trigger.fires(self.iteration, &witnesses.sums)
        {
            let model = self.average.as_ref().map_or(&self.theta, |(mean, _)| mean);
            witnesses.resample(&self.energy, model, self.iteration)?;
        }
        self.step_size = self.steps.next(k, self.step_size, acceptance);
        self.last = [acceptance, gradient_norm, step_scale];
        Ok(StepInfo { iteration: self.iteration, acceptance, ess, resampled, gradient_norm, step_scale })
    }
}

fn advance(iteration: u64, h: f64, algorithm: Algorithm, data: &Rows) -> Step<'_> {
    Step { iteration, h, weighted: algorithm.is_weighted(), restart: algorithm.restarts().then_some(data) }
}

impl Training<f32> for DeviceTrainer {
    fn iteration(&self) -> u64 {
        self.iteration
    }
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
    fn leaves_one_out(&self) -> bool {
        false
    }
    fn step(&mut self) -> Result<StepInfo, Error> {
        careful(self.device, self.iteration, || self.iterate())
    }
    fn estimates(&mut self) -> Result<Estimates, Error> {
        careful(self.device, self.iteration, || self.estimate())
    }
    fn ranks(&self) -> &Ranks {
        &self.ranks
    }
    fn masses_of(&self, classes: &Classes<'_, f32>) -> Result<Vec<Measured>, Error> {
        let walkers = careful(self.device, self.iteration, || self.judges().download())?;
        let weighted = self.algorithm.is_weighted();
        let known = |m: Measured| Measured { std_error: m.std_error.filter(|_| weighted), ..m };
        Ok(classes.masses(&walkers).into_iter().map(known).collect())
    }
    fn state(&self) -> Result<State<f32>, Error> {
        careful(self.device, self.iteration, || self.download())
    }
    fn restore(&mut self, state: State<f32>) -> Result<(), Error> {
        careful(self.device, state.iteration, || self.upload(state))
    }
}
