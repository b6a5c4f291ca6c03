//! The data's part of the direction: the mean of `dU/dtheta` over data points.

use crate::data::Dataset;
use crate::energy::{Energy, Fused};
use crate::panels::Panels;
use crate::parallel::{Layout, Pieces};
use crate::random::{Purpose, Subset};
use crate::ranks::{Ranks, Shard, Topic, overlap};
use crate::real::Real;
use crate::sampler::Sampler;
use crate::simd::LANES;

/// Points that a fused gradient sums up in their own precision, 64 to a lane, before these sums are added in `f64`.
const FUSED_BLOCK: usize = 64 * LANES;

/// Memory for the mean, kept from step to step.
pub(super) struct DataGradient<T: Real, E: Energy<T>> {
    batch: Option<usize>,
    layout: Layout,
    /// Which points, or places in the batch, are this rank's work; and which points it has.
    work: Shard,
    points: Shard,
    fused: Option<Fused<T, E>>,
    subset: Subset,
    /// The points of a batch.
    rows: Vec<T>,
    /// This rank's points, or those of the batch, as a fused gradient reads them.
    panels: Panels<T>,
    /// Sums of each chunk, one after the other.
    parts: Vec<f64>,
    /// The mean.
    pub mean: Vec<f64>,
}

impl<T: Real, E: Energy<T>> DataGradient<T, E> {
    pub fn new(energy: &E, data: &Dataset<T>, batch: Option<usize>, ranks: &Ranks) -> Self {
        let count = batch.unwrap_or(data.len());
        let layout = Layout::of_points(energy, count);
        let work = Shard::new(layout, count, ranks);
        let params = energy.params().len();
        // Chunks must begin with a panel.
        let fused = energy.fused().filter(|_| layout.chunk.is_multiple_of(LANES));
        let mut panels = Panels::new(data.dim());
        if fused.is_some() && batch.is_none() {
            panels.fill(data.rows(work.rows()));
        }
        DataGradient {
            batch,
            layout,
            work,
            points: Dataset::shard(energy, data.len(), ranks),
            fused,
            subset: Subset::default(),
            rows: Vec::new(),
            panels,
            parts: vec![0.0; work.chunks().len() * params],
            mean: vec![0.0; params],
        }
    }

    /// Collects this rank's part of the batch, some of which others may have.
    fn collect(&mut self, data: &Dataset<T>, ranks: &Ranks) {
        let members = self.subset.members();
        let places = self.work.rows();
        self.rows.clear();
        if data.is_whole() {
            let members = members[places].iter();
            return members.for_each(|&i| self.rows.extend_from_slice(data.row(i as usize)));
        }
        // The members ascend, so those that a rank has are a stretch of the batch.
        let held = |rank: usize| {
            let rows = self.points.rows_of(rank);
            let at = |row: usize| members.partition_point(|&m| (m as usize) < row);
            at(rows.start)..at(rows.end)
        };
        let (me, dim) = (ranks.rank(), data.dim());
        let rows_of = |places: std::ops::Range<usize>| -> Vec<T> {
            members[places].iter().flat_map(|&i| data.row(i as usize)).copied().collect()
        };
        let others = || (0..ranks.size()).filter(|r| *r != me);
        let to: Vec<_> = others().map(|r| (r, rows_of(overlap(&held(me), &self.work.rows_of(r))))).collect();
        let from: Vec<_> = others().map(|r| (r, overlap(&places, &held(r)).len() * dim)).collect();
        let mut parts = ranks.exchange(Topic::Data, &to, &from);
        parts.push((me, rows_of(overlap(&held(me), &places))));
        parts.sort_by_key(|(rank, _)| *rank);
        parts.iter().for_each(|(_, rows)| self.rows.extend_from_slice(rows));
    }

    /// Computes the mean over the data, or over this iteration's batch of it.
    pub fn update(&mut self, energy: &E, data: &Dataset<T>, sampler: &Sampler<T, E>, iteration: u64) {
        let (dim, params, layout) = (data.dim(), self.mean.len(), self.layout);
        if let Some(m) = self.batch {
            let random = sampler.random();
            random.subset(iteration, Purpose::DataBatch, m, data.len(), &mut self.subset);
            self.collect(data, sampler.ranks());
            if self.fused.is_some() {
                self.panels.fill(&self.rows);
            }
        }
        let rows = match self.batch {
            None => data.rows(self.work.rows()),
            Some(_) => &self.rows,
        };
        let pieces = Pieces::new(&mut self.parts, params);
        let fused = self.fused.as_ref().map(|fused| (fused, &self.panels));
        sampler.workers.run(pieces.count(), |c, scratch| {
            // SAFETY: every piece is taken once, by the task of its number.
            let part = unsafe { pieces.take(c) };
            part.fill(0.0);
            let (first, last) = (c * layout.chunk, ((c + 1) * layout.chunk).min(rows.len() / dim));
            if let Some((fused, panels)) = fused {
                for at in (first..last).step_by(FUSED_BLOCK) {
                    let points = panels.some(at, FUSED_BLOCK.min(last - at));
                    (fused.add_data_gradient)(energy, points, part, &mut scratch.energy);
                }
                return;
            }
            for x in rows[first * dim..last * dim].chunks(layout.block * dim) {
                let count = x.len() / dim;
                scratch.fit(count, dim);
                energy.energy(x, &mut scratch.u[..count], &mut scratch.energy);
                scratch.weights[..count].fill(1.0);
                energy.add_param_gradient(x, &scratch.weights[..count], part, &mut scratch.energy);
            }
        });
        sampler.ranks().sum_chunks(Topic::Data, &self.work, &self.parts, &mut self.mean);
        let n = self.work.total() as f64;
        self.mean.iter_mut().for_each(|m| *m /= n);
    }
}
