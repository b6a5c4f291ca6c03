//! What a run is made of, and where its walkers begin.

use super::average::Average;
use super::delay;
use super::relay::{Keepers, Relay};
use super::settle::Settle;
use crate::algorithm::{Algorithm, SelfInteractionRule};
use crate::data::Dataset;
use crate::energy::{Energy, Stratification};
use crate::error::Error;
use crate::kernel::{Kernel, StepSize};
use crate::optimizer::{Optimizer, Rule};
use crate::random::{Purpose, Random};
use crate::ranks::Ranks;
use crate::real::Real;
use crate::resampling::{Scheme, Thresholds, Trigger};
use crate::sampler::{Disturbance, Sampler};
use crate::walkers::Walkers;
use std::ops::Range;
use std::sync::Arc;

/// Everything a run is made of. Start from [`Setup::new`] and change what you like.
#[derive(Clone, Debug)]
pub struct Setup<T, E> {
    /// The model, at its initial parameters.
    pub energy: E,
    /// The data.
    pub data: Dataset<T>,
    /// Which algorithm.
    pub algorithm: Algorithm,
    /// Leave-one-out or the paper's rule; `None` chooses leave-one-out where the energy offers gradients of single walkers.
    pub self_interaction: Option<SelfInteractionRule>,
    /// How walkers move.
    pub kernel: Kernel,
    /// Time step of the kernel.
    pub step_size: StepSize,
    /// How parameters move.
    pub optimizer: Optimizer,
    /// How long a direction waits before it is followed, in the kernel's time (`sqrt(2 h)` a step with momentum, `h` without), so that walkers are not
    /// weighted by steps they have just caused. In whitened coordinates they forget where they were in a time of 2 or 3. For models without a leave-one-out correction.
    pub delay: Option<f64>,
    /// Limit on the variance of `U_{k+1} - U_k` over the walkers: longer parameter steps are shortened.
    pub trust_region: Option<f64>,
    /// How ancestors are drawn.
    pub scheme: Scheme,
    /// When to resample.
    pub trigger: Trigger,
    /// Number of walkers.
    pub walkers: usize,
    /// Walkers beside these that are weighted along the same path of parameters but have no part in its direction: their `log Z`
    /// and masses are free of the self-interaction, for any model and optimizer. They need no parameter gradients.
    pub witnesses: usize,
    /// Copies of walkers that do not drive may take over from those that do every few iterations, before the self-interaction shows in the weights of these.
    pub relay: Option<Relay>,
    /// In a last phase only some parameters may learn, driven by copies of the witnesses.
    pub settle: Option<Settle>,
    /// Memory in iterations of a running mean of the parameters, if one is wanted: the model is then the one at the mean, which
    /// moves smoothly, and the witnesses follow it. Walkers with weights need witnesses for it.
    pub average: Option<f64>,
    /// Walkers that move per iteration (Algorithm 2); all if `None`.
    pub batch: Option<usize>,
    /// Data points used per iteration; all if `None`.
    pub data_batch: Option<usize>,
    /// How initial walkers are spread over the modes.
    pub start: Stratification,
    /// Initial walkers and their `log Z`, for models that cannot be sampled exactly.
    pub initial: Option<(Vec<T>, Option<f64>)>,
    /// What puts walkers elsewhere between iterations, if anything does; only for walkers without weights.
    pub disturbance: Option<Arc<dyn Disturbance<T>>>,
    /// Cross-entropy of the truth on the same data, where known: gives KL divergences.
    pub truth: Option<f64>,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Threads; 0 means one per core. Results do not depend on it.
    pub threads: usize,
    /// Who shares the walkers and the data. Results do not depend on it; all ranks have the same setup.
    pub ranks: Ranks,
}

impl<T: Real, E: Energy<T>> Setup<T, E> {
    /// Jarzynski with 10 000 walkers, ULA with h = 0.1, a plain gradient step of 0.01 and systematic resampling below half the ESS.
    pub fn new(energy: E, data: Dataset<T>) -> Self {
        let params = energy.params().len();
        Setup {
            energy,
            data,
            algorithm: Algorithm::Jarzynski,
            self_interaction: None,
            kernel: Kernel::ula(),
            step_size: StepSize::fixed(0.1),
            optimizer: Optimizer::new(Rule::Gradient, vec![0.01; params]),
            delay: None,
            trust_region: None,
            scheme: Scheme::Systematic,
            trigger: Trigger::EssBelow(Thresholds::constant(0.5)),
            walkers: 10_000,
            witnesses: 0,
            relay: None,
            settle: None,
            average: None,
            batch: None,
            data_batch: None,
            start: Stratification::Stratified,
            initial: None,
            disturbance: None,
            truth: None,
            seed: 1,
            threads: 0,
            ranks: Ranks::alone(),
        }
    }
}

impl<T: Real, E: Energy<T>> Setup<T, E> {
    /// The averaged model, if there is one.
    pub(super) fn average(&self) -> Result<Option<Average<E>>, Error> {
        Ok(self.average_gain()?.map(|gain| Average::new(&self.energy, gain)))
    }

    /// Share of new parameters in their running mean, if there is to be one.
    pub fn average_gain(&self) -> Result<Option<f64>, Error> {
        let Some(iterations) = self.average else { return Ok(None) };
        let complain = |text: String| Err(Error::Setup(text));
        if !(iterations >= 1.0 && iterations.is_finite()) {
            return complain(format!(
                "a running mean needs a memory of at least one iteration, not {iterations}"
            ));
        }
        if self.algorithm.is_weighted() && self.witnesses == 0 {
            return complain(
                "walkers are weighted for the parameters they drive, not for their running mean: that needs witnesses".into(),
            );
        }
        Ok(Some(1.0 / iterations))
    }

    /// The witnesses, sampled from the initial model with random numbers of their own.
    pub(super) fn witnesses(&self) -> Result<Option<Sampler<T, E>>, Error> {
        let Some(witnesses) = self.initial_witnesses()? else { return Ok(None) };
        self.follow(witnesses, self.witnesses).map(Some)
    }

    /// The walkers that a relay copies, sampled likewise with random numbers of their own.
    pub(super) fn keepers(&self) -> Result<Option<Keepers<T, E>>, Error> {
        let Some(relay) = self.relay else { return Ok(None) };
        let keepers = self.beside(relay.keepers, Purpose::Keepers)?;
        Ok(Some((relay, self.follow(keepers, relay.keepers)?)))
    }

    /// Walkers that follow the path of the model and have no part in its direction.
    fn follow(&self, them: Witnesses<T>, count: usize) -> Result<Sampler<T, E>, Error> {
        let Witnesses { walkers, batch, seed } = them;
        let (energy, kernel, scheme) = (&self.energy, self.kernel, self.scheme);
        let (ranks, threads) = (self.ranks.clone(), self.threads);
        let mut sampler =
            Sampler::among(ranks, count, walkers, energy, kernel, scheme, batch, seed, threads)?;
        sampler.leave_out_param_gradient();
        Ok(sampler)
    }

    /// The initial walkers of this rank: those that were given, or as the algorithm wants them.
    pub fn initial_walkers(&self) -> Result<Walkers<T>, Error> {
        let (energy, dim, count) = (&self.energy, self.energy.dim(), self.count());
        let rows = Sampler::shard(energy, count, &self.ranks).rows();
        match &self.initial {
            Some((x, log_z)) => {
                Ok(Walkers::from(rows.start, dim, x[rows.start * dim..rows.end * dim].to_vec(), *log_z))
            }
            None => {
                let random = Random::new(self.seed);
                start(energy, &self.data, self.algorithm, count, rows, self.start, &random)
            }
        }
    }

    /// Walkers in all.
    pub(super) fn count(&self) -> usize {
        self.initial.as_ref().map_or(self.walkers, |(x, _)| x.len() / self.energy.dim())
    }

    /// The witnesses of this rank at the start, if there are to be any.
    pub fn initial_witnesses(&self) -> Result<Option<Witnesses<T>>, Error> {
        match self.witnesses {
            0 => Ok(None),
            count => self.beside(count, Purpose::Witnesses).map(Some),
        }
    }

    /// So many walkers beside those that drive, at the start.
    fn beside(&self, count: usize, purpose: Purpose) -> Result<Witnesses<T>, Error> {
        let complain = |text: &str| Err(Error::Setup(text.into()));
        if !self.algorithm.is_weighted() {
            return complain(
                "witnesses and keepers are for their weights, which the walkers of this algorithm do not have",
            );
        }
        if self.initial.is_some() {
            return complain(
                "witnesses and keepers must be sampled from the initial model, so initial walkers cannot be given",
            );
        }
        let (random, energy) = (Random::new(self.seed).branch(purpose), &self.energy);
        let rows = Sampler::shard(energy, count, &self.ranks).rows();
        let walkers = start(energy, &self.data, self.algorithm, count, rows, self.start, &random)?;
        // The same share of them moves as of the others.
        let batch = self.batch.map(|b| (b as f64 / self.walkers as f64 * count as f64).ceil() as usize);
        Ok(Witnesses { walkers, batch, seed: random.seed() })
    }

    /// Whether the parts fit together.
    pub fn check(&self) -> Result<(), Error> {
        let (dim, params) = (self.energy.dim(), self.energy.params().len());
        let complain = |text: String| Err(Error::Setup(text));
        if self.data.dim() != dim {
            return complain(format!("the data has {} dimensions but the model has {dim}", self.data.dim()));
        }
        let rates = self.optimizer.rates();
        if rates.len() != params {
            return complain(format!("{} learning rates for {params} parameters", rates.len()));
        }
        if let Some(m) = self.data_batch
            && (m == 0 || m > self.data.len())
        {
            return complain(format!("a data batch of {m} does not fit {} data points", self.data.len()));
        }
        let h = self.step_size.initial();
        if !(h >= 0.0 && h.is_finite()) {
            return complain(format!("the kernel's time step must be a positive number, not {h}"));
        }
        if let Some(limit) = self.trust_region
            && !(limit > 0.0 && limit.is_finite())
        {
            return complain(format!("the trust region must be positive, not {limit}"));
        }
        if let Some(time) = self.delay {
            if !(time > 0.0 && time.is_finite()) {
                return complain(format!("the delay of directions must be positive, not {time}"));
            }
            if delay::iterations(time, &self.kernel, h).is_none() {
                return complain(format!(
                    "directions would wait for more than 1000 iterations: the kernel's time step {h} is too short for a delay of {time}; momentum (ghmc) moves walkers faster"
                ));
            }
        }
        if let Some(relay) = &self.relay {
            relay.check(&self.kernel, h)?;
            if self.batch.is_some() {
                return complain(
                    "copies of keepers must all move on before they drive: take no mini-batches of walkers"
                        .into(),
                );
            }
            if !self.ranks.is_alone() {
                return complain(
                    "copies of keepers cannot take over on several ranks yet: take one rank".into(),
                );
            }
        }
        if let Some(settle) = &self.settle {
            settle.check(params, self.witnesses, self.relay.is_some())?;
        }
        if self.disturbance.is_some() && self.algorithm.is_weighted() {
            return complain(
                "disturbing walkers would make their weights wrong: take an algorithm without weights".into(),
            );
        }
        if let Some((x, _)) = &self.initial
            && !x.len().is_multiple_of(dim)
        {
            return complain(format!("{} numbers are not whole walkers in {dim} dimensions", x.len()));
        }
        if !self.optimizer.is_complete() {
            let text = "the natural gradient needs a model whose parameters are matrices, such as a network; take Adam";
            return complain(text.into());
        }
        let weights_need_gradients = self.algorithm == Algorithm::JarzynskiContinuous;
        let asked = self.self_interaction == Some(SelfInteractionRule::LeaveOneOut);
        if asked && self.delay.is_some() {
            let text = "the leave-one-out correction is for directions that are followed at once: take no delay, or no correction";
            return complain(text.into());
        }
        if asked && matches!(self.optimizer.rule(), Rule::Natural { .. }) {
            return complain("there is no leave-one-out correction with the natural gradient".into());
        }
        if self.energy.per_walker().is_none() && (weights_need_gradients || asked) {
            let what = if asked { "leave-one-out" } else { "continuous-time weights" };
            return complain(format!(
                "{what} needs parameter gradients of single walkers, which this energy does not offer"
            ));
        }
        Ok(())
    }
}

/// Walkers that judge a model without driving it, at the start of a run.
#[derive(Clone, Debug)]
pub struct Witnesses<T> {
    /// They, equally weighted.
    pub walkers: Walkers<T>,
    /// How many of them move at a time; all if `None`.
    pub batch: Option<usize>,
    /// Seed of their random numbers.
    pub seed: u64,
}

/// Some of the initial walkers of an algorithm: exact samples of the model, or data points (all of them if the numbers
/// agree, random ones otherwise).
fn start<T: Real, E: Energy<T>>(
    energy: &E,
    data: &Dataset<T>,
    algorithm: Algorithm,
    walkers: usize,
    rows: Range<usize>,
    stratification: Stratification,
    random: &Random,
) -> Result<Walkers<T>, Error> {
    let dim = energy.dim();
    if algorithm.starts_at_data() {
        let pick = |i: usize| match data.len() == walkers {
            true => i,
            false => random.below(0, i as u64, Purpose::Start, data.len() as u64) as usize,
        };
        let positions = rows.clone().flat_map(|i| data.row(pick(i)).iter().copied()).collect();
        return Ok(Walkers::from(rows.start, dim, positions, None));
    }
    let Some(exact) = energy.exact() else {
        let text = "the model cannot be sampled exactly at its initial parameters: give initial walkers and their log Z";
        return Err(Error::Setup(text.into()));
    };
    let mut positions = vec![T::ZERO; rows.len() * dim];
    let ids = rows.start as u64..rows.end as u64;
    exact.sample(ids, walkers as u64, stratification, random, &mut positions);
    Ok(Walkers::from(rows.start, dim, positions, Some(exact.log_z())))
}
