//! Optimizers on the device: the rules of [`jarz::Optimizer`], on vectors of all parameters.

use crate::burn::energy::total;
use crate::burn::transfer::vector;
use burn_tensor::{Device, Tensor};
use jarz::{Optimizer, Rule, Schedule};

/// An optimizer with its state.
pub(crate) struct DeviceOptimizer {
    rule: Rule,
    schedule: Schedule,
    clip: Option<f64>,
    /// Learning rate of every parameter.
    rates: Tensor<1>,
    /// One for parameters that are trained, zero for the others.
    trained: Tensor<1>,
    /// Velocity or first moment, and second moment or accumulated squares; none where the rule has none.
    pub moments: [Option<Tensor<1>>; 2],
}

impl DeviceOptimizer {
    pub fn new(optimizer: &Optimizer, device: &Device) -> Self {
        let rates = optimizer.rates();
        let zeros = || Some(Tensor::zeros([rates.len()], device));
        DeviceOptimizer {
            rule: optimizer.rule(),
            schedule: optimizer.schedule(),
            clip: optimizer.clip(),
            rates: vector(rates.iter().map(|r| *r as f32), device),
            trained: vector(rates.iter().map(|r| if *r == 0.0 { 0.0 } else { 1.0 }), device),
            moments: match optimizer.rule() {
                Rule::Gradient | Rule::Natural { .. } => [None, None],
                Rule::Momentum { .. } => [zeros(), None],
                Rule::Adam { .. } => [zeros(), zeros()],
                Rule::AdaGrad { .. } => [None, zeros()],
            },
        }
    }

    /// Norm over the trained parameters.
    pub fn norm(&self, direction: &Tensor<1>) -> Tensor<1> {
        total((direction.clone() * self.trained.clone()).square()).sqrt()
    }

    /// What is to be added to the parameters.
    pub fn step(&mut self, iteration: u64, direction: Tensor<1>, norm: &Tensor<1>) -> Tensor<1> {
        let d = match self.clip {
            Some(limit) => direction * (norm.clone().recip() * limit).clamp_max(1.0),
            None => direction,
        };
        let t = (iteration + 1) as i32;
        let [first, second] = &mut self.moments;
        let step = match (self.rule, first, second) {
            (Rule::Momentum { beta }, Some(velocity), _) => {
                *velocity = velocity.clone() * beta + d;
                velocity.clone()
            }
            (Rule::Adam { beta1, beta2, epsilon }, Some(first), Some(second)) => {
                *first = first.clone() * beta1 + d.clone() * (1.0 - beta1);
                *second = second.clone() * beta2 + d.square() * (1.0 - beta2);
                let root = (second.clone() / (1.0 - beta2.powi(t))).sqrt() + epsilon;
                first.clone() / (1.0 - beta1.powi(t)) / root
            }
            (Rule::AdaGrad { epsilon }, _, Some(squares)) => {
                *squares = squares.clone() + d.clone().square();
                d / (squares.clone().sqrt() + epsilon)
            }
            _ => d,
        };
        step * (self.rates.clone() * self.schedule.at(iteration))
    }
}
