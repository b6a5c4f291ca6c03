//! How the ensemble moves: all of it, or a mini-batch.

use super::{Arrived, Ensemble, places};
use crate::burn::data::Rows;
use crate::burn::energy::{DeviceEnergy, Pass, add, take, take1};
use crate::burn::moves::{Block, Moved, Mover};
use crate::burn::network::Theta;
use crate::burn::transfer::{Trouble, indices};
use burn_tensor::{Int, Tensor};
use jarz::{KernelKind, Purpose, WalkerIds};

/// One advance of an ensemble.
pub(crate) struct Step<'a> {
    pub iteration: u64,
    pub h: f64,
    pub weighted: bool,
    /// Data points to restart from before moving (contrastive divergence).
    pub restart: Option<&'a Rows>,
}

impl Ensemble {
    /// Moves walkers and updates weights as the parameters go from `from` to `to`; gives the mean acceptance.
    pub fn advance(
        &mut self,
        energy: &DeviceEnergy,
        from: &Theta,
        to: &Theta,
        step: Step<'_>,
    ) -> Result<f64, Trouble> {
        let noise = self.noise.clone();
        let mover = Mover {
            energy,
            to,
            kernel: self.kernel,
            noise: &noise,
            iteration: step.iteration,
            h: step.h,
            weighted: step.weighted,
        };
        let arrived = match self.batch {
            None => self.move_all(&mover, step.restart),
            Some(count) => self.move_some(&mover, from, count, step.restart),
        };
        self.settle(arrived, step.weighted)
    }

    /// Algorithm 1: every walker moves.
    fn move_all(&mut self, mover: &Mover<'_>, restart: Option<&Rows>) -> Arrived {
        let (energy, n) = (mover.energy, self.book.len());
        let (mut parts, mut gradient) = (Parts::default(), None);
        let mut accepted = Tensor::zeros([1], &energy.device);
        for rows in energy.blocks(n) {
            let ids = WalkerIds::From(rows.start as u64);
            let x = take(&self.x, &rows);
            let g = self.g.as_ref().map_or_else(|| x.clone(), |g| take(g, &rows));
            let block = Block { f: take1(&self.f, &rows), a: take1(&self.a, &rows), x, g };
            let block = mover.restarted(block, ids, restart);
            let Moved { block, accepted: more, deltas } = mover.step(block, ids);
            accepted = accepted + more;
            if self.drives {
                let weights = block.a.clone().exp();
                let sum = match deltas {
                    Some(deltas) => energy.network.weighted_gradient(mover.to, deltas, weights),
                    None => energy.param_pass(mover.to, block.x.clone(), weights).1,
                };
                gradient = add(gradient, sum);
            }
            parts.push(block);
        }
        let keeps = self.g.is_some();
        let whole = parts.together();
        self.g = keeps.then_some(whole.g);
        (self.x, self.f, self.a) = (whole.x, whole.f, whole.a);
        Arrived { accepted, tried: n * self.kernel.steps as usize, gradient }
    }

    /// Algorithm 2: a subset moves, all are weighted.
    fn move_some(
        &mut self,
        mover: &Mover<'_>,
        from: &Theta,
        count: usize,
        restart: Option<&Rows>,
    ) -> Arrived {
        let (energy, n) = (mover.energy, self.book.len());
        self.noise.random.subset(mover.iteration, Purpose::WalkerBatch, count, n, &mut self.subset);
        let members = self.subset.members().to_vec();
        let mut accepted = Tensor::zeros([1], &energy.device);
        let mut parts = Parts::default();
        for rows in energy.blocks(count) {
            let ids = &members[rows];
            let at = indices(ids.iter().copied(), &energy.device);
            let x = self.x.clone().select(0, at.clone());
            let (f, a) = (self.f.clone().select(0, at.clone()), self.a.clone().select(0, at));
            let cached = match self.kernel.kind {
                KernelKind::Ula if restart.is_none() => energy.pass(from, x.clone()),
                _ => Pass { f, g: x.clone(), deltas: Default::default() },
            };
            let ids = WalkerIds::List(ids);
            let block = mover.restarted(Block { x, f: cached.f, g: cached.g, a }, ids, restart);
            let Moved { block, accepted: more, .. } = mover.step(block, ids);
            accepted = accepted + more;
            parts.push(block);
        }
        let moved = parts.together();
        let places = places(n, &members, &energy.device);
        self.x = Tensor::cat(vec![self.x.clone(), moved.x], 0).select(0, places.clone());
        let gradient = self.weigh_all(mover, moved.a, places);
        Arrived { accepted, tried: count * self.kernel.steps as usize, gradient }
    }

    /// Energies of all under the new parameters; those that did not move gain the difference.
    fn weigh_all(
        &mut self,
        mover: &Mover<'_>,
        moved: Tensor<1>,
        places: Tensor<1, Int>,
    ) -> Option<Tensor<1>> {
        let energy = mover.energy;
        let new = energy.values(mover.to, &self.x);
        if mover.weighted {
            let stayed = self.a.clone() + self.f.clone() - new.clone();
            self.a = Tensor::cat(vec![stayed, moved], 0).select(0, places);
        }
        self.f = new;
        if !self.drives {
            return None;
        }
        let mut gradient = None;
        for rows in energy.blocks(self.book.len()) {
            let (x, weights) = (take(&self.x, &rows), take1(&self.a, &rows).exp());
            gradient = add(gradient, energy.param_pass(mover.to, x, weights).1);
        }
        gradient
    }
}

/// Blocks that become one.
#[derive(Default)]
struct Parts {
    x: Vec<Tensor<2>>,
    f: Vec<Tensor<1>>,
    g: Vec<Tensor<2>>,
    a: Vec<Tensor<1>>,
}

impl Parts {
    fn push(&mut self, block: Block) {
        self.x.push(block.x);
        self.f.push(block.f);
        self.g.push(block.g);
        self.a.push(block.a);
    }

    fn together(self) -> Block {
        let Parts { x, f, g, a } = self;
        Block { x: Tensor::cat(x, 0), f: Tensor::cat(f, 0), g: Tensor::cat(g, 0), a: Tensor::cat(a, 0) }
    }
}
