//! Langevin steps of a block of walkers, with the terms of their transition density that enter the weights (see [`jarz::kernel`]).
//!
//! With `U = |z|^2 / 2 + f`, drifts `c` and `c'` at the ends of a step `d` from `x` to `y`, a walker gains
//! `U(x) + d.c / 2 + h |c|^2 / 4 - U'(y) + d.c' / 2 - h |c'|^2 / 4 = f(x) - f'(y) + sum [d (c - x + c' - y) / 2 + h (c - c')(c + c') / 4]`:
//! the same with all terms small, as single precision wants it.

use crate::burn::data::Rows;
use crate::burn::energy::{DeviceEnergy, Pass, total};
use crate::burn::network::{Deltas, Theta};
use crate::burn::noise::Source;
use burn_tensor::Tensor;
use jarz::{Clip, Kernel, KernelKind, Purpose, WalkerIds};

/// A block of walkers on its way. `f` and `g` are the network's parts of energy and gradient.
pub(crate) struct Block {
    pub x: Tensor<2>,
    pub f: Tensor<1>,
    pub g: Tensor<2>,
    pub a: Tensor<1>,
}

/// Kernel steps of one advance.
pub(crate) struct Mover<'a> {
    pub energy: &'a DeviceEnergy,
    /// The new parameters.
    pub to: &'a Theta,
    pub kernel: Kernel,
    pub noise: &'a Source,
    pub iteration: u64,
    pub h: f64,
    /// Whether walkers gain weight.
    pub weighted: bool,
}

/// What became of a block.
pub(crate) struct Moved {
    pub block: Block,
    /// Sum of the acceptances of all steps.
    pub accepted: Tensor<1>,
    /// Of the pass at the final positions, where one was made.
    pub deltas: Option<Deltas>,
}

impl Mover<'_> {
    /// All kernel steps of a block.
    pub fn step(&self, block: Block, ids: WalkerIds<'_>) -> Moved {
        match self.kernel.kind {
            KernelKind::Ula => self.ula(block, ids),
            // Momentum is refused when a run is set up.
            KernelKind::Mala | KernelKind::Ghmc => self.mala(block, ids),
        }
    }

    /// The cached `f` and `g` are those of the old parameters, the new ones come from `to`.
    fn ula(&self, mut block: Block, ids: WalkerIds<'_>) -> Moved {
        let mut accepted = Tensor::zeros([1], &self.energy.device);
        let mut deltas = None;
        for s in 0..self.kernel.steps {
            let (proposal, gain, last) = self.propose(&block, s, ids);
            accepted = accepted + total(gain.clone().exp().clamp_max(1.0));
            let a = if self.weighted { block.a + gain } else { block.a };
            block = Block { a, ..proposal };
            deltas = Some(last);
        }
        Moved { block, accepted, deltas }
    }

    /// Reweights where the walkers stand, then steps that leave the new density invariant.
    fn mala(&self, mut block: Block, ids: WalkerIds<'_>) -> Moved {
        let rows = block.f.dims()[0];
        let Pass { f, g, .. } = self.energy.pass(self.to, block.x.clone());
        if self.weighted {
            block.a = block.a + block.f - f.clone();
        }
        (block.f, block.g) = (f, g);
        let mut accepted = Tensor::zeros([1], &self.energy.device);
        for s in 0..self.kernel.steps {
            let (proposal, log_ratio, _) = self.propose(&block, s, ids);
            // A proposal where the energy is not a number is refused.
            let nan = log_ratio.clone().is_nan();
            let chance = log_ratio.clone().exp().clamp_max(1.0).mask_fill(nan.clone(), 0.0);
            accepted = accepted + total(chance);
            let uniforms = self.noise.log_uniforms(self.noise_step(s), ids, rows);
            let taken = uniforms.lower(log_ratio).bool_and(nan.bool_not());
            let rows_taken = taken.clone().unsqueeze_dim::<2>(1);
            block.x = block.x.mask_where(rows_taken.clone(), proposal.x);
            block.g = block.g.mask_where(rows_taken, proposal.g);
            block.f = block.f.mask_where(taken, proposal.f);
        }
        Moved { block, accepted, deltas: None }
    }

    /// Puts walkers on data points of their own choice, if they are to restart.
    pub fn restarted(&self, block: Block, ids: WalkerIds<'_>, restart: Option<&Rows>) -> Block {
        let Some(data) = restart else { return block };
        let pick =
            |i| self.noise.random.below(self.iteration, ids.get(i), Purpose::Restart, data.len() as u64);
        let picks: Vec<u64> = (0..block.f.dims()[0]).map(pick).collect();
        let x = data.select(&picks);
        let Pass { f, g, .. } = self.energy.pass(self.to, x.clone());
        Block { x, f, g, a: block.a }
    }

    fn noise_step(&self, s: u32) -> u64 {
        self.iteration * u64::from(self.kernel.steps) + u64::from(s)
    }

    /// One step from a block: where it leads, and what the walkers gain, or the logarithm of the Metropolis ratio.
    fn propose(&self, from: &Block, s: u32, ids: WalkerIds<'_>) -> (Block, Tensor<1>, Deltas) {
        let ([rows, dim], h) = (from.x.dims(), self.h);
        let x = from.x.clone();
        let c = self.clip(x.clone() + from.g.clone());
        let noise = self.noise.normals(self.noise_step(s), ids, rows, dim);
        let d = noise * (2.0 * h).sqrt() - c.clone() * h;
        let y = x.clone() + d.clone();
        let Pass { f, g, deltas } = self.energy.pass(self.to, y.clone());
        let c_new = self.clip(y.clone() + g.clone());
        let bends = (c.clone() - x) + (c_new.clone() - y.clone());
        let terms = d * bends * 0.5 + (c.clone() - c_new.clone()) * (c + c_new) * (0.25 * h);
        let gain = (from.f.clone() - f.clone()) + terms.sum_dim(1).reshape([rows]);
        (Block { x: y, f, g, a: from.a.clone() }, gain, deltas)
    }

    /// The drift within its limit.
    fn clip(&self, gradient: Tensor<2>) -> Tensor<2> {
        match self.kernel.clip {
            None => gradient,
            Some(Clip::Component(limit)) => gradient.clamp(-limit, limit),
            Some(Clip::Norm(limit)) => {
                let norm = gradient.clone().square().sum_dim(1).sqrt();
                gradient * (norm.recip() * limit).clamp_max(1.0)
            }
        }
    }
}
