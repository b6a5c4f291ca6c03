//! A last phase in which few parameters learn, driven by the witnesses.
//!
//! What keepers never forget in a run, such as the mode they are in, the parameters follow: in the end the masses of the model are the data's as the keepers see it, and their chance is the model's
//! error. Witnesses know better, but whoever drives is weighted by it, by about `P / N` nats with `P` parameters that learn and `N` walkers. So in a last phase only a few parameters learn, the weights of a base's components or the last layer for
//! instance, in which the model is linear or nearly so, and the walkers that drive them are copies of the witnesses. What these lose by it in `log Z` is `rate P / N` nats a step at most: with 65 parameters, 8192 witnesses and 100 steps of rate 0.05
//! four hundredths of a nat.
//!
//! So few parameters can take Newton's steps, `rate F^-1 D`, with the Fisher information `F` of single walkers' gradients. They shorten as the end comes near and are of the same speed in every direction, the
//! masses among them; along other directions the way to the right masses is long.

use crate::error::Error;
use crate::optimizer::exact_step;

/// Parameters that can learn in the last phase: `F` is made from about twice as many walkers.
const MOST: usize = 512;
/// What the variances in `F` get in addition, as a share of themselves.
const DAMPING: f64 = 0.1;

/// When only some parameters go on learning, and which.
#[derive(Clone, Debug, PartialEq)]
pub struct Settle {
    /// Iterations before.
    pub after: u64,
    /// For every parameter whether it goes on learning.
    pub learning: Vec<bool>,
    /// Share of the way to the end that a step goes, at most 1: Newton's steps have 1, and smaller ones average over the noise of some `1 / rate` iterations.
    pub rate: f64,
}

impl Settle {
    pub(super) fn check(&self, params: usize, witnesses: usize, relay: bool) -> Result<(), Error> {
        let complain = |text: String| Err(Error::Setup(text));
        if self.learning.len() != params {
            return complain(format!(
                "{} parameters are said to learn or not, of {params}",
                self.learning.len()
            ));
        }
        if !self.learning.contains(&true) {
            return complain("no parameter is left to learn in the last phase: name some".into());
        }
        let learning = self.learning.iter().filter(|l| **l).count();
        if learning > MOST {
            return complain(format!(
                "{learning} parameters would learn in the last phase, which takes {MOST} at most: name smaller groups"
            ));
        }
        if !(self.rate > 0.0 && self.rate <= 1.0) {
            return complain(format!(
                "the rate of the last phase must be above 0 and at most 1, not {}",
                self.rate
            ));
        }
        if witnesses == 0 || !relay {
            return complain(
                "the last phase is driven by copies of the witnesses: it needs witnesses and a relay".into(),
            );
        }
        Ok(())
    }

    /// Whether the last phase has begun.
    pub(super) fn is_on(&self, iteration: u64) -> bool {
        iteration >= self.after
    }

    /// Moves `theta` along `direction`; `fisher` gives the Fisher information of the parameters it is asked for.
    pub(super) fn step(
        &self,
        fisher: impl FnOnce(&[usize]) -> Vec<f64>,
        direction: &[f64],
        theta: &mut [f64],
    ) {
        let of: Vec<usize> = (0..self.learning.len()).filter(|&j| self.learning[j]).collect();
        let mut step: Vec<f64> = of.iter().map(|&j| direction[j]).collect();
        exact_step(&fisher(&of), &mut step, DAMPING);
        of.iter().zip(&step).for_each(|(&j, s)| theta[j] += self.rate * s);
    }

    /// Sets to zero what belongs to parameters that do not learn any more.
    pub(super) fn leave_only_learning(&self, direction: &mut [f64]) {
        for (value, _) in direction.iter_mut().zip(&self.learning).filter(|(_, learning)| !**learning) {
            *value = 0.0;
        }
    }
}
