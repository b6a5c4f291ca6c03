//! The complete state of a run, brought over for a checkpoint and back.

use crate::burn::trainer::DeviceTrainer;
use crate::burn::transfer::{Trouble, numbers, vector};
use burn_tensor::Tensor;
use jarz::{Error, State};

impl DeviceTrainer {
    pub(crate) fn download(&self) -> Result<State<f32>, Trouble> {
        let list = |tensor: Option<&Tensor<1>>| tensor.map_or_else(|| Ok(Vec::new()), |t| numbers(t.clone()));
        let [first, second] = &self.optimizer.moments;
        Ok(State {
            iteration: self.iteration,
            theta: numbers(self.theta.flat.clone())?,
            average: list(self.average.as_ref().map(|(mean, _)| &mean.flat))?,
            moments: [list(first.as_ref())?, list(second.as_ref())?],
            walkers: self.driving.download()?,
            sums: self.driving.all_sums()?,
            witnesses: match &self.witnesses {
                Some(witnesses) => Some((witnesses.download()?, witnesses.all_sums()?)),
                None => None,
            },
            keepers: None,
            step_size: self.step_size,
            memory: Default::default(),
            waiting: Vec::new(),
            last: self.last,
        })
    }

    fn fits(&self, state: &State<f32>) -> bool {
        let params = self.theta.flat.dims()[0];
        let moments = self.optimizer.moments.each_ref().map(|m| m.as_ref().map_or(0, |_| params));
        state.theta.len() == params
            && state.average.len() == self.average.as_ref().map_or(0, |_| params)
            && state.moments.each_ref().map(|m| m.len()) == moments
            && self.driving.fits(&state.walkers, &state.sums)
            && state.keepers.is_none()
            && match (&self.witnesses, &state.witnesses) {
                (None, None) => true,
                (Some(witnesses), Some((walkers, sums))) => witnesses.fits(walkers, sums),
                _ => false,
            }
    }

    pub(crate) fn upload(&mut self, state: State<f32>) -> Result<(), Trouble> {
        if !self.fits(&state) {
            return Err(Error::Setup("the saved state belongs to a run with another setup".into()).into());
        }
        let device = self.energy.device.clone();
        self.theta = self.energy.network.load(&state.theta, &device);
        if let Some((mean, _)) = &mut self.average {
            *mean = self.energy.network.load(&state.average, &device);
        }
        for (moment, saved) in self.optimizer.moments.iter_mut().zip(state.moments) {
            *moment = moment.take().map(|_| vector(saved.iter().map(|m| *m as f32), &device));
        }
        self.driving.restore(&self.energy, &self.theta, state.walkers, state.sums)?;
        if let (Some(witnesses), Some((walkers, sums))) = (&mut self.witnesses, state.witnesses) {
            let model = self.average.as_ref().map_or(&self.theta, |(mean, _)| mean);
            witnesses.restore(&self.energy, model, walkers, sums)?;
        }
        (self.iteration, self.step_size, self.last) = (state.iteration, state.step_size, state.last);
        self.full_term = None;
        Ok(())
    }
}
