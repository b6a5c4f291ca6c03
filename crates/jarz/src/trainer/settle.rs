//! A last phase in which few parameters learn, driven by the witnesses.
//!
//! What keepers never forget in a run, such as the mode they are in, the parameters follow: in the end the masses of the model are the data's as the keepers see it, and their chance is the model's
//! error. Witnesses know better, but whoever drives is weighted by it, by about `P / N` nats with `P` parameters that learn and `N` walkers. So in a last phase only a few parameters learn, those of the last layer for
//! instance, in which the model is linear, and the walkers that drive them are copies of the witnesses: with 65 parameters and 16 384 witnesses the self-interaction is a few thousandths of a nat.

use crate::error::Error;

/// When only some parameters go on learning, and which.
#[derive(Clone, Debug, PartialEq)]
pub struct Settle {
    /// Iterations before.
    pub after: u64,
    /// For every parameter whether it goes on learning.
    pub learning: Vec<bool>,
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

    /// Puts `kept` in the places of the parameters that do not learn any more.
    pub(super) fn keep(&self, values: &mut [f64], kept: impl Fn(usize) -> f64) {
        for (j, value) in values.iter_mut().enumerate().filter(|(j, _)| !self.learning[*j]) {
            *value = kept(j);
        }
    }
}
