//! The trainer: Algorithms 1 to 4 of the paper in one step.

use crate::algorithm::{Algorithm, SelfInteractionRule};
use crate::data::Dataset;
use crate::energy::{Energy, Stratification};
use crate::error::Error;
use crate::estimate::{Estimates, Families, Measured, add_errors};
use crate::kernel::{Kernel, StepSize};
use crate::leave_one_out::Memory;
use crate::optimizer::{Optimizer, Rule};
use crate::parallel::Layout;
use crate::random::{Purpose, Random, Subset};
use crate::real::Real;
use crate::resampling::{Scheme, Thresholds, Trigger};
use crate::sampler::{Advance, Sampler, SelfInteraction};
use crate::walkers::Walkers;
use crate::weights::{WeightSums, normalise};

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
    /// Limit on the variance of `U_{k+1} - U_k` over the walkers: longer parameter steps are shortened.
    pub trust_region: Option<f64>,
    /// How ancestors are drawn.
    pub scheme: Scheme,
    /// When to resample.
    pub trigger: Trigger,
    /// Number of walkers.
    pub walkers: usize,
    /// Walkers that move per iteration (Algorithm 2); all if `None`.
    pub batch: Option<usize>,
    /// Data points used per iteration; all if `None`.
    pub data_batch: Option<usize>,
    /// How initial walkers are spread over the modes.
    pub start: Stratification,
    /// Initial walkers and their `log Z`, for models that cannot be sampled exactly.
    pub initial: Option<(Vec<T>, Option<f64>)>,
    /// Cross-entropy of the truth on the same data, where known: gives KL divergences.
    pub truth: Option<f64>,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Threads; 0 means one per core. Results do not depend on it.
    pub threads: usize,
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
            trust_region: None,
            scheme: Scheme::Systematic,
            trigger: Trigger::EssBelow(Thresholds::constant(0.5)),
            walkers: 10_000,
            batch: None,
            data_batch: None,
            start: Stratification::Stratified,
            initial: None,
            truth: None,
            seed: 1,
            threads: 0,
        }
    }
}

/// Means over data points.
#[derive(Clone, Debug, Default)]
struct DataTerm {
    gradient: Vec<f64>,
    energy: f64,
    variance: f64,
}

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
    /// Norm of the direction over the trained parameters.
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
    /// The optimizer's running moments.
    pub moments: [Vec<f64>; 2],
    /// The ensemble.
    pub walkers: Walkers<T>,
    /// Its sums.
    pub sums: WeightSums,
    /// Time step of the kernel.
    pub step_size: f64,
    /// Variance and covariance of the walkers' gradients, for the leave-one-out correction.
    pub memory: [Vec<f64>; 2],
    /// Acceptance, gradient norm and step scale of the last iteration.
    pub last: [f64; 3],
}

/// A run in progress.
pub struct Trainer<T: Real, E: Energy<T>> {
    energy: E,
    next: E,
    data: Dataset<T>,
    data_layout: Layout,
    data_batch: Option<usize>,
    sampler: Sampler<T, E>,
    algorithm: Algorithm,
    memory: Option<Memory>,
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
    subset: Subset,
}

impl<T: Real, E: Energy<T>> Trainer<T, E> {
    /// Checks that the parts fit, draws the initial walkers and evaluates them.
    pub fn new(setup: Setup<T, E>) -> Result<Self, Error> {
        let Setup { energy, data, algorithm, optimizer, .. } = setup;
        let (dim, params) = (energy.dim(), energy.params().len());
        let complain = |text: String| Err(Error::Setup(text));
        if data.dim() != dim {
            return complain(format!("the data has {} dimensions but the model has {dim}", data.dim()));
        }
        let rates = optimizer.rates();
        if rates.len() != params {
            return complain(format!("{} learning rates for {params} parameters", rates.len()));
        }
        if let Some(m) = setup.data_batch
            && (m == 0 || m > data.len())
        {
            return complain(format!("a data batch of {m} does not fit {} data points", data.len()));
        }
        let h = setup.step_size.initial();
        if !(h >= 0.0 && h.is_finite()) {
            return complain(format!("the kernel's time step must be a positive number, not {h}"));
        }
        if let Some(limit) = setup.trust_region
            && !(limit > 0.0 && limit.is_finite())
        {
            return complain(format!("the trust region must be positive, not {limit}"));
        }
        let weights_need_gradients = algorithm == Algorithm::JarzynskiContinuous;
        let asked = setup.self_interaction == Some(SelfInteractionRule::LeaveOneOut);
        if energy.per_walker().is_none() && (weights_need_gradients || asked) {
            let what = if asked { "leave-one-out" } else { "continuous-time weights" };
            return complain(format!(
                "{what} needs parameter gradients of single walkers, which this energy does not offer"
            ));
        }
        let leave_one_out = algorithm == Algorithm::Jarzynski
            && energy.per_walker().is_some()
            && setup.self_interaction != Some(SelfInteractionRule::None);
        let trained: Vec<bool> = rates.iter().map(|r| *r != 0.0).collect();
        let random = Random::new(setup.seed);
        let walkers = match setup.initial {
            Some((positions, log_z)) => Walkers::new(dim, positions, log_z),
            None => start(&energy, &data, algorithm, setup.walkers, setup.start, &random)?,
        };
        let (kernel, scheme) = (setup.kernel, setup.scheme);
        let sampler = Sampler::new(walkers, &energy, kernel, scheme, setup.batch, setup.seed, setup.threads)?;
        let mut trainer = Trainer {
            next: energy.clone(),
            energy,
            data_layout: Layout::new(data.len(), dim * size_of::<T>()),
            data,
            data_batch: setup.data_batch,
            sampler,
            algorithm,
            memory: leave_one_out.then(Memory::default),
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
            subset: Subset::default(),
        };
        trainer.sampler.begin(&trainer.energy)?;
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

        // D_k = sum_i p_i dU(X_i) - mean over data of dU
        let mut model = vec![0.0; params];
        self.sampler.sums().mean_gradient(&mut model);
        let data = self.data_term()?;
        let direction: Vec<f64> = model.iter().zip(&data.gradient).map(|(m, d)| m - d).collect();
        let gradient_norm = self.norm(&direction);
        if !gradient_norm.is_finite() {
            return Err(Error::DivergedDirection { iteration: k, what: "direction of descent" });
        }

        // theta_{k+1} = opt(theta_k, D_k)
        let mut theta = self.energy.params().to_vec();
        let mut response = vec![0.0; params];
        self.optimizer.step(k, &direction, &mut theta, &mut response);
        if theta.iter().any(|t| !t.is_finite()) {
            return Err(Error::DivergedDirection { iteration: k, what: "new parameter vector" });
        }
        self.next.set_params(&theta);
        let step_scale = self.keep_within_trust_region(&mut theta);
        response.iter_mut().for_each(|r| *r *= step_scale);
        let looking = self.look(k, &mut response);

        // X_{k+1}, A_{k+1}
        let own = SelfInteraction { response: &response, mean: &model };
        let own = self.memory.is_some().then_some(own);
        let advance = spec(k, self.step_size, self.algorithm, own, &self.data);
        let moved = self.sampler.advance(&self.energy, &self.next, advance)?;
        std::mem::swap(&mut self.energy, &mut self.next);
        if looking && let (Some(memory), Some(gradients)) = (&mut self.memory, self.energy.per_walker()) {
            memory.compare(self.sampler.walkers(), gradients, params);
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
        self.step_size = self.steps.next(k, self.step_size, moved.acceptance);
        self.last = [moved.acceptance, gradient_norm, step_scale];
        let (iteration, acceptance) = (self.iteration, moved.acceptance);
        Ok(StepInfo { iteration, acceptance, ess, resampled, gradient_norm, step_scale })
    }

    /// Prepares the leave-one-out correction of this step; true if the walkers' memory is being measured.
    fn look(&mut self, k: u64, response: &mut [f64]) -> bool {
        let (Some(memory), Some(gradients)) = (&mut self.memory, self.energy.per_walker()) else {
            return false;
        };
        memory.soften(response, self.optimizer.persistence());
        let due = memory.is_due(k);
        if due {
            memory.look(self.sampler.walkers(), gradients, response.len());
        }
        due
    }

    /// Shortens the parameter step until the log-weights it causes spread by no more than the trust region allows.
    /// The spread is nearly quadratic in the length of the step, so one or two corrections do.
    fn keep_within_trust_region(&mut self, theta: &mut [f64]) -> f64 {
        let Some(limit) = self.trust_region else { return 1.0 };
        let old = self.energy.params().to_vec();
        let full: Vec<f64> = theta.iter().zip(&old).map(|(t, o)| t - o).collect();
        let mut scale = 1.0;
        for _ in 0..20 {
            let spread = self.sampler.spread(&self.next);
            if spread <= limit {
                break;
            }
            // Also where the spread is infinite or not a number.
            let factor = (limit / spread).sqrt() * 0.95;
            scale *= if factor > 0.1 { factor } else { 0.1 };
            for j in 0..theta.len() {
                theta[j] = old[j] + scale * full[j];
            }
            self.next.set_params(theta);
        }
        scale
    }

    fn norm(&self, direction: &[f64]) -> f64 {
        let trained = direction.iter().zip(&self.trained).filter(|(_, t)| **t);
        trained.map(|(d, _)| d * d).sum::<f64>().sqrt()
    }

    /// Mean of `dU/dtheta` over the data, or over this iteration's batch of it.
    fn data_term(&mut self) -> Result<DataTerm, Error> {
        match self.data_batch {
            None => self.full_data_term(),
            Some(m) => {
                let (k, n) = (self.iteration, self.data.len());
                let mut subset = std::mem::take(&mut self.subset);
                self.sampler.random().subset(k, Purpose::DataBatch, m, n, &mut subset);
                let mut rows = Vec::with_capacity(m * self.data.dim());
                subset.members().iter().for_each(|&i| rows.extend_from_slice(self.data.row(i as usize)));
                self.subset = subset;
                self.mean_over(&rows)
            }
        }
    }

    fn full_data_term(&mut self) -> Result<DataTerm, Error> {
        if self.full_term.is_none() {
            self.full_term = Some(self.mean_over(self.data.values())?);
        }
        Ok(self.full_term.clone().unwrap_or_default())
    }

    /// Means of `U` and `dU/dtheta` over rows of data.
    fn mean_over(&self, rows: &[T]) -> Result<DataTerm, Error> {
        let (dim, params, layout) = (self.data.dim(), self.trained.len(), self.data_layout);
        let n = rows.len() / dim;
        let mut parts =
            vec![DataTerm { gradient: vec![0.0; params], energy: 0.0, variance: 0.0 }; layout.chunks(n)];
        let tasks: Vec<_> = rows.chunks(layout.chunk * dim).zip(&mut parts).collect();
        let energy = &self.energy;
        self.sampler.workers.run(tasks, |(rows, part), scratch| {
            for x in rows.chunks(layout.block * dim) {
                let count = x.len() / dim;
                scratch.fit(count, dim);
                energy.energy(x, &mut scratch.u[..count], &mut scratch.energy);
                for u in &scratch.u[..count] {
                    part.energy += u;
                    part.variance += u * u;
                }
                scratch.weights[..count].fill(1.0);
                energy.add_param_gradient(
                    x,
                    &scratch.weights[..count],
                    &mut part.gradient,
                    &mut scratch.energy,
                );
            }
        });
        let mut total = DataTerm { gradient: vec![0.0; params], energy: 0.0, variance: 0.0 };
        for part in &parts {
            total.energy += part.energy;
            total.variance += part.variance;
            total.gradient.iter_mut().zip(&part.gradient).for_each(|(t, g)| *t += g);
        }
        let count = n as f64;
        total.energy /= count;
        total.variance = (total.variance / count - total.energy * total.energy).max(0.0);
        total.gradient.iter_mut().for_each(|g| *g /= count);
        if !total.energy.is_finite() {
            return Err(Error::DivergedDirection {
                iteration: self.iteration,
                what: "mean energy of the data",
            });
        }
        Ok(total)
    }

    /// Mean of the present `U` over other data, with the error of a finite sample: the model-dependent part of a
    /// held-out cross-entropy.
    pub fn mean_energy(&self, data: &Dataset<T>) -> Result<Measured, Error> {
        if data.dim() != self.data.dim() {
            let text =
                format!("the data has {} dimensions but the model has {}", data.dim(), self.data.dim());
            return Err(Error::Setup(text));
        }
        let term = self.mean_over(data.values())?;
        Ok(Measured { value: term.energy, std_error: Some((term.variance / data.len() as f64).sqrt()) })
    }

    /// Estimates at the present state.
    pub fn estimates(&mut self) -> Result<Estimates, Error> {
        let data = self.full_data_term()?;
        let n = self.data.len() as f64;
        let data_energy = Measured { value: data.energy, std_error: Some((data.variance / n).sqrt()) };
        let (walkers, sums) = (self.sampler.walkers(), self.sampler.sums());
        let p = normalise(walkers.log_weights());
        let families = Families::new(walkers.ancestors(), &p);
        let weighted = self.algorithm.is_weighted();
        let log_z = self.sampler.log_z().filter(|_| weighted).map(|value| {
            let std_error = families.log_z_std_error(self.scheme, walkers.resamplings());
            Measured { value, std_error: Some(std_error) }
        });
        let log_z_exact = self.energy.exact().map(|e| e.log_z());
        let cross_entropy = log_z.map(|z| Measured {
            value: z.value + data.energy,
            std_error: add_errors(z.std_error, data_energy.std_error),
        });
        let cross_entropy_exact = log_z_exact.map(|z| z + data.energy);
        let modes = self.energy.modes();
        let walker_masses = modes.map(|modes| {
            let count = modes.count();
            let mut r = vec![0.0; walkers.len() * count];
            let rows = 1024;
            for (x, r) in walkers.positions().chunks(rows * walkers.dim()).zip(r.chunks_mut(rows * count)) {
                modes.memberships(x, r);
            }
            (0..count)
                .map(|k| {
                    let mass = families.mean(|i| r[i * count + k]);
                    Measured { std_error: mass.std_error.filter(|_| weighted), ..mass }
                })
                .collect()
        });
        let mut model = vec![0.0; self.trained.len()];
        sums.mean_gradient(&mut model);
        let direction: Vec<f64> = model.iter().zip(&data.gradient).map(|(m, d)| m - d).collect();
        let truth = self.truth;
        Ok(Estimates {
            iteration: self.iteration,
            log_z,
            log_z_exact,
            data_energy,
            cross_entropy,
            cross_entropy_exact,
            kl: truth.and_then(|t| cross_entropy.map(|h| h.value - t)),
            kl_exact: truth.and_then(|t| cross_entropy_exact.map(|h| h - t)),
            ess: sums.ess(),
            weight_entropy: sums.entropy(),
            acceptance: Some(self.last[0]).filter(|a| a.is_finite()),
            step_size: self.step_size,
            gradient_norm: self.norm(&direction),
            step_scale: self.last[2],
            resamplings: walkers.resamplings(),
            distinct_ancestors: walkers.distinct_ancestors() as u64,
            masses: modes.map(|m| m.masses()),
            means: modes.map(|m| m.means()),
            walker_masses,
        })
    }

    /// The model at its present parameters.
    pub fn energy(&self) -> &E {
        &self.energy
    }

    /// The walkers.
    pub fn walkers(&self) -> &Walkers<T> {
        self.sampler.walkers()
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

    /// `n` equal-weight samples of the present model, drawn from the weighted walkers.
    pub fn equal_weight_samples(&self, n: usize) -> Vec<T> {
        let (walkers, random) = (self.sampler.walkers(), self.sampler.random());
        let p = normalise(walkers.log_weights());
        let picks = self.scheme.ancestors(&p, n, &random, self.iteration, Purpose::Draw);
        let d = walkers.dim();
        let row = |i: &u64| walkers.positions()[*i as usize * d..(*i as usize + 1) * d].to_vec();
        picks.iter().flat_map(row).collect()
    }

    /// A copy of the complete state.
    pub fn state(&self) -> State<T> {
        State {
            iteration: self.iteration,
            theta: self.energy.params().to_vec(),
            moments: [self.optimizer.first.clone(), self.optimizer.second.clone()],
            walkers: self.sampler.walkers().clone(),
            sums: self.sampler.sums().clone(),
            step_size: self.step_size,
            memory: self.memory.as_ref().map_or_else(Default::default, |m| m.as_arrays()),
            last: self.last,
        }
    }

    /// Goes back to a state of a run with the same setup.
    pub fn restore(&mut self, state: State<T>) -> Result<(), Error> {
        let here = self.state();
        let lengths = |s: &State<T>| {
            let w = &s.walkers;
            let walkers =
                [w.dim, w.positions.len(), w.gradients.len(), w.energies.len(), w.log_weights.len()];
            let rest = [
                w.ancestors.len(),
                s.theta.len(),
                s.moments[0].len(),
                s.moments[1].len(),
                s.sums.gradient.len(),
            ];
            (walkers, rest)
        };
        let n = here.walkers.len() as u64;
        let [variance, covariance] = &state.memory;
        let memory_fits =
            variance.len() == covariance.len() && [0, state.theta.len()].contains(&variance.len());
        if !memory_fits
            || lengths(&here) != lengths(&state)
            || state.walkers.ancestors.iter().any(|a| *a >= n)
        {
            return Err(Error::Setup("the saved state belongs to a run with another setup".into()));
        }
        self.iteration = state.iteration;
        self.energy.set_params(&state.theta);
        self.next.set_params(&state.theta);
        [self.optimizer.first, self.optimizer.second] = state.moments;
        self.sampler.restore(state.walkers, state.sums);
        self.step_size = state.step_size;
        if let Some(memory) = &mut self.memory {
            *memory = Memory::from_arrays(state.memory);
        }
        self.last = state.last;
        self.full_term = None;
        Ok(())
    }
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

/// Initial walkers of an algorithm: exact samples of the model, or data points (all of them if the numbers
/// agree, random ones otherwise).
fn start<T: Real, E: Energy<T>>(
    energy: &E,
    data: &Dataset<T>,
    algorithm: Algorithm,
    walkers: usize,
    stratification: Stratification,
    random: &Random,
) -> Result<Walkers<T>, Error> {
    let dim = energy.dim();
    if algorithm.starts_at_data() {
        let pick = |i: usize| match data.len() == walkers {
            true => i,
            false => random.below(0, i as u64, Purpose::Start, data.len() as u64) as usize,
        };
        let positions = (0..walkers).flat_map(|i| data.row(pick(i)).iter().copied()).collect();
        return Ok(Walkers::new(dim, positions, None));
    }
    let Some(exact) = energy.exact() else {
        let text = "the model cannot be sampled exactly at its initial parameters: give initial walkers and their log Z";
        return Err(Error::Setup(text.into()));
    };
    let mut positions = vec![T::ZERO; walkers * dim];
    exact.sample(0..walkers as u64, walkers as u64, stratification, random, &mut positions);
    Ok(Walkers::new(dim, positions, Some(exact.log_z())))
}
