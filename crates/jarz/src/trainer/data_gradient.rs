//! The data's part of the direction: the mean of `dU/dtheta` over data points.

use crate::data::Dataset;
use crate::energy::{Energy, Fused};
use crate::parallel::{Layout, Pieces};
use crate::random::{Purpose, Subset};
use crate::real::Real;
use crate::sampler::Sampler;

/// Memory for the mean, kept from step to step.
pub(super) struct DataGradient<T: Real, E: Energy<T>> {
    batch: Option<usize>,
    layout: Layout,
    fused: Option<Fused<T, E>>,
    subset: Subset,
    /// The points of a batch.
    rows: Vec<T>,
    /// Sums of each chunk, one after the other.
    parts: Vec<f64>,
    /// The mean.
    pub mean: Vec<f64>,
}

impl<T: Real, E: Energy<T>> DataGradient<T, E> {
    pub fn new(energy: &E, data: &Dataset<T>, batch: Option<usize>) -> Self {
        let layout = Layout::new(energy, batch.unwrap_or(data.len()));
        let params = energy.params().len();
        let chunks = layout.chunks(batch.unwrap_or(data.len()));
        DataGradient {
            batch,
            layout,
            fused: energy.fused(),
            subset: Subset::default(),
            rows: Vec::new(),
            parts: vec![0.0; chunks * params],
            mean: vec![0.0; params],
        }
    }

    /// Computes the mean over the data, or over this iteration's batch of it.
    pub fn update(&mut self, energy: &E, data: &Dataset<T>, sampler: &Sampler<T, E>, iteration: u64) {
        let (dim, params, layout) = (data.dim(), self.mean.len(), self.layout);
        let rows = match self.batch {
            None => data.values(),
            Some(m) => {
                let random = sampler.random();
                random.subset(iteration, Purpose::DataBatch, m, data.len(), &mut self.subset);
                self.rows.clear();
                let members = self.subset.members().iter();
                members.for_each(|&i| self.rows.extend_from_slice(data.row(i as usize)));
                &self.rows
            }
        };
        let pieces = Pieces::new(&mut self.parts, params);
        let fused = self.fused.as_ref();
        sampler.workers.run(pieces.count(), |c, scratch| {
            // SAFETY: every piece is taken once, by the task of its number.
            let part = unsafe { pieces.take(c) };
            part.fill(0.0);
            let from = c * layout.chunk * dim;
            let rows = &rows[from..(from + layout.chunk * dim).min(rows.len())];
            for x in rows.chunks(layout.block * dim) {
                if let Some(fused) = fused {
                    (fused.add_data_gradient)(energy, x, part, &mut scratch.energy);
                    continue;
                }
                let count = x.len() / dim;
                scratch.fit(count, dim);
                energy.energy(x, &mut scratch.u[..count], &mut scratch.energy);
                scratch.weights[..count].fill(1.0);
                energy.add_param_gradient(x, &scratch.weights[..count], part, &mut scratch.energy);
            }
        });
        self.mean.fill(0.0);
        for part in self.parts.chunks_exact(params) {
            self.mean.iter_mut().zip(part).for_each(|(m, p)| *m += p);
        }
        let n = (rows.len() / dim) as f64;
        self.mean.iter_mut().for_each(|m| *m /= n);
    }
}
