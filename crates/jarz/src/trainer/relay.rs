//! Walkers that drive the parameters in turns, and hand over before it shows in their weights.
//!
//! A walker that drives raises its own energy, and is weighted by that: the self-interaction. So beside the driving walkers there are keepers, which follow the path of the model like
//! witnesses and do not drive. Every few iterations the driving walkers are dropped, and copies of the keepers, drawn by their weights, take their place. Copies begin where
//! keepers stand, and would push these as well as themselves: first they move on, for as long as walkers take to forget where they were, while the parameters rest. Where
//! there is a running mean, which the keepers follow, the copies are led from there to the parameters themselves meanwhile, weighted along the way by Jarzynski's equality like on any
//! other path.
//!
//! What a keeper and its copy both remember after that rest is a self-interaction at second hand. It is for this that keepers are not the witnesses: these are never copied, and their weights
//! are exact whatever the keepers have caused.

use super::average::Average;
use super::delay;
use super::spec;
use crate::algorithm::Algorithm;
use crate::data::Dataset;
use crate::energy::Energy;
use crate::error::Error;
use crate::kernel::Kernel;
use crate::random::Purpose;
use crate::real::Real;
use crate::resampling::Scheme;
use crate::sampler::Sampler;
use crate::walkers::Walkers;

/// Random numbers of moves while the parameters rest are addressed by steps from here on, beyond those of iterations.
const RESTING_FROM: u64 = 1 << 41;
/// So many of them for every iteration, which is more than there are moves at a time.
const RESTING: u64 = 1 << 10;

/// When driving walkers are dropped and copies of others take over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Relay {
    /// How many walkers there are to be copied, which do not drive themselves.
    pub keepers: usize,
    /// Iterations from one time to the next.
    pub every: u64,
    /// How long the copies move on before they drive, in the kernel's time (`sqrt(2 h)` a step with momentum, `h` without).
    pub rest: f64,
}

/// A relay and its keepers.
pub(super) type Keepers<T, E> = (Relay, Sampler<T, E>);

/// What a relay needs to know of the trainer.
pub(super) struct Course<'a, T, E> {
    pub kernel: &'a Kernel,
    pub scheme: Scheme,
    pub h: f64,
    pub iteration: u64,
    pub data: &'a Dataset<T>,
    /// The model that the walkers are to drive.
    pub energy: &'a E,
    pub average: Option<&'a Average<E>>,
}

impl Relay {
    /// Whether it can work with this kernel and its first time step.
    pub(super) fn check(&self, kernel: &Kernel, h: f64) -> Result<(), Error> {
        let Relay { keepers, every, rest } = *self;
        let complain = |text: String| Err(Error::Setup(text));
        if keepers == 0 {
            return complain("there must be walkers whose copies can take over: say how many".into());
        }
        if every == 0 {
            return complain("driving walkers must be replaced after at least one iteration".into());
        }
        if !(rest > 0.0 && rest.is_finite()) {
            return complain(format!("copies of keepers must move on for a positive time, not {rest}"));
        }
        if delay::iterations(rest, kernel, h).is_none() {
            return complain(format!(
                "copies of keepers would move on for more than 1000 steps: the kernel's time step {h} is too short for a rest of {rest}; momentum (ghmc) moves walkers faster"
            ));
        }
        Ok(())
    }

    /// Whether it is time.
    pub(super) fn is_due(&self, iteration: u64) -> bool {
        iteration.is_multiple_of(self.every)
    }

    /// Copies of the keepers take over.
    pub(super) fn hand_over<T: Real, E: Energy<T>>(
        &self,
        sampler: &mut Sampler<T, E>,
        keepers: &Sampler<T, E>,
        course: &Course<'_, T, E>,
    ) -> Result<(), Error> {
        let Course { kernel, h, iteration, data, energy, average, .. } = *course;
        let start = average.map_or(energy, |a| a.model());
        sampler.leave_out_param_gradient();
        sampler.replace(copies(keepers, sampler, course), start, iteration)?;
        let moves = delay::iterations(self.rest, kernel, h).unwrap_or(RESTING as usize - 1).max(1);
        let (mut from, mut to) = (start.clone(), energy.clone());
        for j in 1..=moves {
            let share = j as f64 / moves as f64;
            let mix = |(a, b): (&f64, &f64)| a + share * (b - a);
            let theta: Vec<f64> = match j == moves {
                true => energy.params().to_vec(),
                false => start.params().iter().zip(energy.params()).map(mix).collect(),
            };
            to.set_params(&theta);
            if j == moves {
                sampler.sum_param_gradient(energy.params().len());
            }
            let address = RESTING_FROM + iteration * RESTING + j as u64;
            sampler.advance(&from, &to, spec(address, h, Algorithm::Jarzynski, None, data))?;
            std::mem::swap(&mut from, &mut to);
        }
        Ok(())
    }
}

/// As many copies of the keepers as there are driving walkers, drawn by their weights.
fn copies<T: Real, E: Energy<T>>(
    keepers: &Sampler<T, E>,
    sampler: &Sampler<T, E>,
    course: &Course<'_, T, E>,
) -> Walkers<T> {
    let (w, count, random) = (keepers.walkers(), sampler.count(), sampler.random());
    let p = keepers.sums().normalise(w.log_weights());
    let chosen = course.scheme.ancestors(&p, count, &random, course.iteration, Purpose::Relay);
    let rows = || chosen.iter().map(|&i| i as usize);
    let positions = rows().flat_map(|i| &w.positions[i * w.dim..(i + 1) * w.dim]).copied().collect();
    // Families are those of the keepers, counted from zero.
    let mut ancestors = Vec::with_capacity(count);
    let mut last = None;
    for i in rows() {
        let number = match last {
            None => 0,
            Some((family, number)) => number + u64::from(family != w.ancestors[i]),
        };
        last = Some((w.ancestors[i], number));
        ancestors.push(number);
    }
    Walkers { ancestors, resamplings: 1, ..Walkers::new(w.dim, positions, keepers.log_z()) }
}
