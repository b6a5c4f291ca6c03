//! A running mean of the parameters, and the model it makes.
//!
//! The parameters of a noisy gradient descent wander around their mean, and every step of that dissipates: it spreads the weights of walkers that
//! follow. The running mean `theta' = theta + (theta_{k+1} - theta) / tau` moves smoothly. Witnesses may follow it as well as
//! any other path that they have no part in, and their weights then spread by little more than the learning itself.

use crate::energy::Energy;
use crate::real::Real;

/// The averaged model.
pub(super) struct Average<E> {
    now: E,
    next: E,
    gain: f64,
    theta: Vec<f64>,
}

impl<E> Average<E> {
    /// Begins at the parameters of `energy`; new ones join with a share of `gain`.
    pub(super) fn new<T: Real>(energy: &E, gain: f64) -> Self
    where
        E: Energy<T>,
    {
        Average { now: energy.clone(), next: energy.clone(), gain, theta: energy.params().to_vec() }
    }

    /// The model at the present mean.
    pub(super) fn model(&self) -> &E {
        &self.now
    }

    /// The models before and after `theta` joins the mean.
    pub(super) fn follow<T: Real>(&mut self, theta: &[f64]) -> (&E, &E)
    where
        E: Energy<T>,
    {
        for (mean, new) in self.theta.iter_mut().zip(theta) {
            *mean += self.gain * (new - *mean);
        }
        self.next.set_params(&self.theta);
        (&self.now, &self.next)
    }

    /// What was next is now.
    pub(super) fn arrive(&mut self) {
        std::mem::swap(&mut self.now, &mut self.next);
    }

    /// For a checkpoint.
    pub(super) fn params(&self) -> &[f64] {
        &self.theta
    }

    /// From a checkpoint.
    pub(super) fn restore<T: Real>(&mut self, theta: &[f64])
    where
        E: Energy<T>,
    {
        self.theta.copy_from_slice(theta);
        self.now.set_params(theta);
    }
}
