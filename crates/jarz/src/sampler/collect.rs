//! What the chunks' sums add up to, over all ranks.

use super::{Advanced, ChunkSums, Sampler};
use crate::energy::Energy;
use crate::error::Error;
use crate::ranks::Topic;
use crate::real::Real;
use crate::weights::WeightSums;

/// What of a walker may not be finite.
const WHAT: [&str; 2] = ["the weight", "the energy"];
/// Numbers that say all of a chunk but its gradient.
const NUMBERS: usize = 9;

impl ChunkSums {
    fn numbers(&self) -> [f64; NUMBERS] {
        let w = &self.weights;
        let (walker, what) = self.bad.unwrap_or((0, ""));
        let what = WHAT.iter().position(|w| *w == what).map_or(-1.0, |i| i as f64);
        let (count, tried) = (w.count as f64, self.tried as f64);
        [w.top, w.sum, w.sum_squares, w.sum_log, count, self.accepted, tried, walker as f64, what]
    }

    fn from_numbers(n: &[f64; NUMBERS]) -> Self {
        let [top, sum, sum_squares, sum_log, count, accepted, tried, walker, what] = *n;
        let weights =
            WeightSums { top, sum, sum_squares, sum_log, count: count as u64, gradient: Vec::new() };
        let bad = if what < 0.0 { None } else { Some((walker as u64, WHAT[what as usize])) };
        ChunkSums { weights, accepted, tried: tried as u64, bad }
    }
}

impl<T: Real, E: Energy<T>> Sampler<T, E> {
    /// Merges the chunks' sums in their order.
    pub(super) fn collect(&mut self, iteration: u64) -> Result<Advanced, Error> {
        self.sums.clear();
        let (advanced, bad) = match self.ranks.is_alone() {
            true => merge(&self.chunk_sums, &mut self.sums),
            false => self.collect_from_ranks(),
        };
        match bad {
            Some((walker, what)) => Err(Error::Diverged { iteration, what, walker }),
            None => Ok(advanced),
        }
    }

    fn collect_from_ranks(&mut self) -> (Advanced, Option<(u64, &'static str)>) {
        let mine: Vec<f64> = self.chunk_sums.iter().flat_map(|c| c.numbers()).collect();
        let all = self.ranks.of_chunks(Topic::Sums, &self.shard, NUMBERS, &mine);
        let heads: Vec<ChunkSums> = all.as_chunks().0.iter().map(ChunkSums::from_numbers).collect();
        let width = self.sums.gradient.len();
        if width > 0 {
            let row = |c: usize| &self.chunk_sums[c].weights.gradient[..];
            // Which largest weight the sums refer to changes on the way, the same way for all columns.
            let fold = |rows: &mut dyn Iterator<Item = &[f64]>, width: usize| {
                let mut sums = WeightSums::new(width);
                heads.iter().zip(rows).for_each(|(head, row)| sums.merge_with(&head.weights, row));
                sums.gradient
            };
            self.sums.gradient = self.ranks.fold_chunks(Topic::Sums, &self.shard, width, row, fold);
        }
        let mut sums = WeightSums::new(0);
        let result = merge(&heads, &mut sums);
        sums.gradient = std::mem::take(&mut self.sums.gradient);
        self.sums = sums;
        result
    }
}

fn merge(chunks: &[ChunkSums], sums: &mut WeightSums) -> (Advanced, Option<(u64, &'static str)>) {
    let (mut accepted, mut tried, mut bad) = (0.0, 0, None);
    for chunk in chunks {
        sums.merge(&chunk.weights);
        accepted += chunk.accepted;
        tried += chunk.tried;
        bad = bad.or(chunk.bad);
    }
    (Advanced { acceptance: accepted / tried as f64, kernel_steps: tried }, bad)
}
