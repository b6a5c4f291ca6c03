//! What the data says to the present model, and what is known about it.

use super::Trainer;
use crate::classes::Classes;
use crate::data::Dataset;
use crate::energy::Energy;
use crate::error::Error;
use crate::estimate::{Estimates, Families, Measured, add_errors};
use crate::parallel::Pieces;
use crate::random::Purpose;
use crate::ranks::{Shard, Topic};
use crate::real::Real;
use crate::weights::normalise;

/// Means over data points.
#[derive(Clone, Debug, Default)]
pub(super) struct DataTerm {
    pub(super) gradient: Vec<f64>,
    pub(super) energy: f64,
    pub(super) variance: f64,
}

impl<T: Real, E: Energy<T>> Trainer<T, E> {
    fn full_data_term(&mut self) -> Result<DataTerm, Error> {
        if self.full_term.is_none() {
            self.full_term = Some(self.mean_over(&self.data)?);
        }
        Ok(self.full_term.clone().unwrap_or_default())
    }

    /// Means of `U` and `dU/dtheta` over data, of which each rank sees to a part.
    fn mean_over(&self, data: &Dataset<T>) -> Result<DataTerm, Error> {
        let (dim, params, layout) = (self.data.dim(), self.trained.len(), self.data_layout);
        let (ranks, width) = (self.sampler.ranks(), params + 2);
        let shard = Shard::new(layout, data.len(), ranks);
        let rows = data.rows(shard.rows());
        // Gradient, sum and sum of squares of the energy.
        let mut parts = vec![0.0; shard.chunks().len() * width];
        let pieces = Pieces::new(&mut parts, width);
        let energy = self.energy();
        self.sampler.workers.run(pieces.count(), |c, scratch| {
            let from = c * layout.chunk * dim;
            let rows = &rows[from..(from + layout.chunk * dim).min(rows.len())];
            // SAFETY: every piece is taken once, by the task of its number.
            let (gradient, sums) = unsafe { pieces.take(c) }.split_at_mut(params);
            for x in rows.chunks(layout.block * dim) {
                let count = x.len() / dim;
                scratch.fit(count, dim);
                energy.energy(x, &mut scratch.u[..count], &mut scratch.energy);
                for u in &scratch.u[..count] {
                    sums[0] += u;
                    sums[1] += u * u;
                }
                scratch.weights[..count].fill(1.0);
                energy.add_param_gradient(x, &scratch.weights[..count], gradient, &mut scratch.energy);
            }
        });
        let mut total = vec![0.0; width];
        ranks.sum_chunks(Topic::Estimates, &shard, &parts, &mut total);
        total.iter_mut().for_each(|t| *t /= data.len() as f64);
        let (energy, squares) = (total[params], total[params + 1]);
        total.truncate(params);
        if !energy.is_finite() {
            return Err(Error::DivergedDirection {
                iteration: self.iteration,
                what: "mean energy of the data",
            });
        }
        Ok(DataTerm { gradient: total, energy, variance: (squares - energy * energy).max(0.0) })
    }

    /// Mean of the present `U` over other data, with the error of a finite sample: the model-dependent part of a
    /// held-out cross-entropy.
    pub fn mean_energy(&self, data: &Dataset<T>) -> Result<Measured, Error> {
        if data.dim() != self.data.dim() {
            let text =
                format!("the data has {} dimensions but the model has {}", data.dim(), self.data.dim());
            return Err(Error::Setup(text));
        }
        let term = self.mean_over(data)?;
        Ok(Measured { value: term.energy, std_error: Some((term.variance / data.len() as f64).sqrt()) })
    }

    /// Estimates at the present state.
    pub fn estimates(&mut self) -> Result<Estimates, Error> {
        let data = self.full_data_term()?;
        let n = self.data.len() as f64;
        let data_energy = Measured { value: data.energy, std_error: Some((data.variance / n).sqrt()) };
        let judges = self.judges();
        let (walkers, sums) = (judges.walkers(), judges.sums());
        let p = sums.normalise(walkers.log_weights());
        let families = Families::among(walkers.ancestors(), &p, judges.ranks(), judges.place());
        let weighted = self.algorithm.is_weighted();
        let log_z = judges.log_z().filter(|_| weighted).map(|value| {
            let std_error = families.log_z_std_error(self.scheme, walkers.resamplings());
            Measured { value, std_error: Some(std_error) }
        });
        let log_z_exact = self.energy().exact().map(|e| e.log_z());
        let volume = self.energy().coordinates().map_or(0.0, |c| c.log_det());
        let cross_entropy = log_z.map(|z| Measured {
            value: z.value + data.energy + volume,
            std_error: add_errors(z.std_error, data_energy.std_error),
        });
        let cross_entropy_exact = log_z_exact.map(|z| z + data.energy + volume);
        let modes = self.energy().modes();
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
        self.sampler.sums().mean_gradient(&mut model);
        let direction: Vec<f64> = model.iter().zip(&data.gradient).map(|(m, d)| m - d).collect();
        let truth = self.truth;
        Ok(Estimates {
            iteration: self.iteration,
            log_z,
            driving_log_z: self.witnesses.as_ref().and_then(|_| self.sampler.log_z()),
            driving_ess: self.witnesses.as_ref().map(|_| self.sampler.sums().ess()),
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
            // With a running mean, the data's term is not that of the parameters that move.
            gradient_norm: if self.average.is_some() { self.last[1] } else { self.norm(&direction) },
            step_scale: self.last[2],
            resamplings: walkers.resamplings(),
            distinct_ancestors: families.count(),
            masses: modes.map(|m| m.masses()),
            means: modes.map(|m| m.means()),
            walker_masses,
        })
    }

    /// Masses of kinds among the weighted walkers.
    pub(crate) fn masses_of(&self, classes: &Classes<'_, T>) -> Vec<Measured> {
        let judges = self.judges();
        let walkers = judges.walkers();
        let p = judges.sums().normalise(walkers.log_weights());
        let families = Families::among(walkers.ancestors(), &p, judges.ranks(), judges.place());
        let weighted = self.algorithm.is_weighted();
        let masses = classes.masses_in(walkers.positions(), &families);
        masses.into_iter().map(|m| Measured { std_error: m.std_error.filter(|_| weighted), ..m }).collect()
    }

    /// `n` equal-weight samples of the present model, drawn from the weighted walkers of a trainer that has all of them.
    pub fn equal_weight_samples(&self, n: usize) -> Vec<T> {
        let (walkers, random) = (self.walkers(), self.sampler.random());
        let p = normalise(walkers.log_weights());
        let picks = self.scheme.ancestors(&p, n, &random, self.iteration, Purpose::Draw);
        let d = walkers.dim();
        let row = |i: &u64| walkers.positions()[*i as usize * d..(*i as usize + 1) * d].to_vec();
        picks.iter().flat_map(row).collect()
    }
}
