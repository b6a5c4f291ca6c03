//! The part of the weights that a rank draws from.
//!
//! Draws go by segments of walkers: each says what its weights add up to, everybody is told, and then each can write its own ancestors. A rank does
//! this for all segments that it has walkers of, with the weights of the others in the segments at its edges.

use super::draw::SEGMENT;
use crate::ranks::{Plain, Ranks, Shard, Topic, overlap};
use std::ops::Range;

/// Weights of whole segments of walkers, and how to tell others about them.
pub(crate) struct Share<'a> {
    /// Weights of the walkers of the segments.
    pub p: &'a [f64],
    /// The first segment.
    pub first: usize,
    /// Segments in all.
    pub segments: usize,
    others: Option<(&'a Ranks, &'a Shard)>,
}

impl<'a> Share<'a> {
    /// All weights.
    pub fn all(p: &'a [f64]) -> Self {
        Share { p, first: 0, segments: p.len().div_ceil(SEGMENT), others: None }
    }

    /// Weights of the segments that a rank has walkers of (see [`with_edges`]).
    pub fn of_rank(p: &'a [f64], ranks: &'a Ranks, shard: &'a Shard) -> Self {
        if ranks.is_alone() {
            return Share::all(p);
        }
        let segments = shard.total().div_ceil(SEGMENT);
        Share { p, first: touched(&shard.rows()).start, segments, others: Some((ranks, shard)) }
    }

    /// The segments.
    pub fn here(&self) -> Range<usize> {
        self.first..self.first + self.p.len().div_ceil(SEGMENT)
    }

    /// Completes numbers about all segments, `per` of each, of which the present segments' are known.
    pub fn tell<V: Plain>(&self, numbers: &mut Vec<V>, per: usize) {
        if let Some((ranks, shard)) = self.others {
            // Each segment is the business of the rank that has its first walker.
            let told = |rank: usize| {
                let rows = shard.rows_of(rank);
                rows.start.div_ceil(SEGMENT)..rows.end.div_ceil(SEGMENT)
            };
            let mine = told(ranks.rank());
            let counts: Vec<usize> = (0..ranks.size()).map(|r| told(r).len() * per).collect();
            *numbers = ranks.gather(Topic::Draws, &numbers[mine.start * per..mine.end * per], &counts);
        }
    }

    /// The last walker that has any weight.
    pub fn last(&self) -> usize {
        let here = self.p.iter().rposition(|&p| p > 0.0).map(|i| self.first * SEGMENT + i);
        let all = match self.others {
            Some((ranks, _)) => ranks.gather_equal(Topic::Draws, &[here.map_or(0, |i| i as u64 + 1)]),
            None => vec![here.map_or(0, |i| i as u64 + 1)],
        };
        all.into_iter().max().unwrap_or(0).saturating_sub(1) as usize
    }
}

/// The segments that some rows are in.
fn touched(rows: &Range<usize>) -> Range<usize> {
    match rows.is_empty() {
        true => rows.start.div_ceil(SEGMENT)..rows.start.div_ceil(SEGMENT),
        false => rows.start / SEGMENT..rows.end.div_ceil(SEGMENT),
    }
}

/// This rank's weights, completed to whole segments with those of its neighbours.
pub(crate) fn with_edges(p: Vec<f64>, ranks: &Ranks, shard: &Shard) -> Vec<f64> {
    if ranks.is_alone() {
        return p;
    }
    let wanted = |rank: usize| {
        let segments = touched(&shard.rows_of(rank));
        (segments.start * SEGMENT).min(shard.total())..(segments.end * SEGMENT).min(shard.total())
    };
    let (me, rows) = (ranks.rank(), shard.rows());
    let others = || (0..ranks.size()).filter(|r| *r != me);
    let to: Vec<(usize, Vec<f64>)> = others()
        .map(|r| {
            let part = overlap(&rows, &wanted(r));
            (r, p[part.start - rows.start..part.end - rows.start].to_vec())
        })
        .collect();
    let from: Vec<(usize, usize)> =
        others().map(|r| (r, overlap(&wanted(me), &shard.rows_of(r)).len())).collect();
    let mut parts = ranks.exchange(Topic::Draws, &to, &from);
    parts.push((me, p));
    parts.sort_by_key(|(rank, _)| *rank);
    parts.into_iter().flat_map(|(_, values)| values).collect()
}
