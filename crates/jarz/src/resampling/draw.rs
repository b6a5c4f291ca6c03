//! How ancestors are drawn, without branches that depend on the weights: on random weights a processor would guess them wrong
//! every other time.
//!
//! With `C_i` the sum of the first `i` weights, walker `i` is the ancestor of the points between `C_i` and `C_{i+1}`, so it is enough to
//! count the points below every `C_i`. Where a segment of walkers has its points follows from the sums at its ends, so that segments are
//! independent of each other and can be shared out over threads. What a segment needs stays in cache.

use super::share::Share;
use crate::random::{Purpose, Random};
use crate::real::sum_lanes;
use crate::simd::{Isa, multiversion};
use rayon::prelude::*;

/// Walkers in a segment.
pub(super) const SEGMENT: usize = 4096;
/// Stretches of a segment that are summed at the same time, as every addition has to wait for the one before.
const STRETCHES: usize = 8;
/// Walkers in a stretch.
const STRETCH: usize = SEGMENT / STRETCHES;

/// Addresses of a draw's random numbers.
pub(crate) struct Uniforms<'a> {
    pub random: &'a Random,
    pub step: u64,
    pub purpose: Purpose,
    /// Whether other threads may help.
    pub parallel: bool,
}

impl Uniforms<'_> {
    /// Those from `first` on, `n` of them.
    fn fill(&self, first: usize, n: usize, out: &mut Vec<f64>) {
        out.resize(n, 0.0);
        each_piece(self.parallel, out, |s, piece| {
            self.random.uniforms(self.step, (first + s * SEGMENT) as u64, self.purpose, piece);
        });
    }
}

/// Memory of resampling, reused from one to the next.
#[derive(Clone, Debug, Default)]
pub struct Draws {
    /// The result; among several ranks, the descendants of the segments that this one has walkers of.
    pub(super) ancestors: Vec<u64>,
    /// Sums of the weights before each stretch or segment, and of all.
    pub(super) base: Vec<f64>,
    /// Where each segment's part of the ancestors begins, and where the last ends.
    pub(super) starts: Vec<usize>,
    /// Uniforms, or sorted points; where each segment's part of these begins.
    pub(super) points: Vec<f64>,
    pub(super) point_starts: Vec<usize>,
    /// Copies of each walker, and what else is known of segments and groups of walkers.
    pub(super) copies: Vec<u32>,
    pub(super) segments: Vec<super::poisson::Segment>,
    pub(super) groups: Vec<f64>,
}

impl Draws {
    /// Room for the descendants of the segments that are here.
    pub(super) fn make_room(&mut self, share: &Share<'_>) {
        let here = share.here();
        self.ancestors.resize(self.starts[here.end] - self.starts[here.start], 0);
    }

    /// The drawn ancestors and the place of the first descendant.
    pub(crate) fn drawn(&self, share: &Share<'_>) -> (&[u64], usize) {
        (&self.ancestors, self.starts[share.first])
    }
}

/// Runs `work` on every segment of a slice, on many threads if that is wanted and there are many segments.
pub(super) fn each_piece<T: Send>(parallel: bool, slice: &mut [T], work: impl Fn(usize, &mut [T]) + Sync) {
    each_piece_of(parallel, SEGMENT, slice, work);
}

/// The same for an array that has another number of entries for each segment.
fn each_piece_of<T: Send>(
    parallel: bool,
    len: usize,
    slice: &mut [T],
    work: impl Fn(usize, &mut [T]) + Sync,
) {
    if !parallel || slice.len() <= 4 * len {
        slice.chunks_mut(len).enumerate().for_each(|(s, piece)| work(s, piece));
    } else {
        slice.par_chunks_mut(len).enumerate().for_each(|(s, piece)| work(s, piece));
    }
}

/// Walkers of segment `s`.
pub(super) fn segment<T>(of: &[T], s: usize) -> &[T] {
    &of[s * SEGMENT..((s + 1) * SEGMENT).min(of.len())]
}

/// Sums of the weights before each stretch, for whole segments, and of all.
fn bases(share: &Share<'_>, parallel: bool, base: &mut Vec<f64>) {
    base.resize(share.segments * STRETCHES, 0.0);
    let here = share.here();
    each_piece_of(parallel, STRETCHES, &mut base[here.start * STRETCHES..here.end * STRETCHES], |s, sums| {
        let mut stretches = segment(share.p, s).chunks(STRETCH);
        sums.fill_with(|| stretches.next().map_or(0.0, sum));
    });
    share.tell(base, STRETCHES);
    let mut below = 0.0;
    for sum in base.iter_mut() {
        below += std::mem::replace(sum, below);
    }
    base.push(below);
}

/// Sum of a few hundred numbers.
fn sum(values: &[f64]) -> f64 {
    let (whole, rest) = values.as_chunks::<16>();
    let mut sums = [0.0; 16];
    for v in whole {
        for l in 0..16 {
            sums[l] += v[l];
        }
    }
    sum_lanes(sums) + rest.iter().sum::<f64>()
}

/// Running sums of a segment, whose stretches begin at the sums `base`.
fn running_sums(base: &[f64], values: &[f64], out: &mut [f64]) {
    let Some(base) = base.first_chunk::<STRETCHES>() else { return };
    let mut sums = *base;
    if let (Some(values), Some(out)) = (values.first_chunk::<SEGMENT>(), out.first_chunk_mut::<SEGMENT>()) {
        for i in 0..STRETCH {
            for l in 0..STRETCHES {
                sums[l] += values[l * STRETCH + i];
                out[l * STRETCH + i] = sums[l];
            }
        }
        return;
    }
    let stretches = values.chunks(STRETCH).zip(out.chunks_mut(STRETCH));
    for ((values, out), mut sum) in stretches.zip(sums) {
        for (v, out) in values.iter().zip(out) {
            sum += v;
            *out = sum;
        }
    }
}

/// Whole and fractional part of a number that is not negative, without a call to the floor function that old processors need.
#[inline(always)]
fn split(value: f64) -> (i64, f64) {
    debug_assert!((0.0..9e18).contains(&value), "{value}");
    // SAFETY: a share of `n` points, of which there are fewer than 2^63; `bounded` sees to it for any weights.
    let whole = unsafe { value.to_int_unchecked::<i64>() };
    (whole, value - whole as f64)
}

/// Keeps what cannot be a number of points, because the weights are not weights, away from [`split`].
#[inline(always)]
fn bounded(value: f64) -> f64 {
    // In this order a NaN becomes zero.
    if value > 0.0 { value.min(9e15) } else { 0.0 }
}

/// Points of all strata below a sum of weights, in units of a stratum: one uniform for all.
#[inline(always)]
fn systematic_below(sum: f64, u: f64) -> i64 {
    let (whole, rest) = split(bounded(sum - u));
    whole + (rest > 0.0) as i64
}

/// The same with a uniform for each of `n`, those from `first` on being known.
#[inline(always)]
fn stratified_below(sum: f64, u: &[f64], first: i64, n: i64) -> i64 {
    assert!(!u.is_empty());
    let (whole, rest) = split(bounded(sum));
    // SAFETY: bounded by the length, and `u` is not empty.
    let point = unsafe { *u.get_unchecked((whole - first).clamp(0, u.len() as i64 - 1) as usize) };
    whole + ((point < rest) & (whole < n)) as i64
}

multiversion! {
    /// Where the walkers' parts of a segment's ancestors end; `from` points lie before the segment and `len` in it.
    fn systematic_ends(sums: &[f64], scale: f64, u: f64, from: i64, len: i64, ends: &mut [u32]) {
        for (sum, end) in sums.iter().zip(ends) {
            *end = (systematic_below(sum * scale, u) - from).clamp(0, len) as u32;
        }
    }
}
multiversion! {
    /// The same with a uniform for each stratum.
    fn stratified_ends(sums: &[f64], scale: f64, u: (&[f64], i64, i64), from: i64, len: i64, ends: &mut [u32]) {
        for (sum, end) in sums.iter().zip(ends) {
            *end = (stratified_below(sum * scale, u.0, u.1, u.2) - from).clamp(0, len) as u32;
        }
    }
}

/// Written for every walker, as most have fewer: the next one overwrites what is too much.
pub(super) const FEW: usize = 4;

/// Writes the ancestors of a segment, given where each walker's part ends.
fn spread(first: usize, ends: &[u32], out: &mut [u64]) {
    let mut from = 0;
    for (i, &end) in ends.iter().enumerate() {
        // Rounding may let a stretch end above the beginning of the next.
        let (walker, end) = ((first + i) as u64, (end as usize).max(from));
        match out.get_mut(from..from + FEW) {
            Some(few) => {
                few.fill(walker);
                if end > from + FEW {
                    out[from + FEW..end].fill(walker);
                }
            }
            None => out[from..end].fill(walker),
        }
        from = end;
    }
}

/// Cuts the ancestors into the segments' parts: segment `s` gets what lies between `below(sum)` at its ends, and all that rounding may have
/// left over goes to that of the last walker with any weight.
fn starts_of(draws: &mut Draws, n: usize, last: usize, below: impl Fn(f64) -> usize) {
    draws.starts.clear();
    draws.starts.push(0);
    let mut start = 0;
    for (s, &sum) in draws.base[STRETCHES..].iter().step_by(STRETCHES).enumerate() {
        start = if s < last / SEGMENT { below(sum).clamp(start, n) } else { n };
        draws.starts.push(start);
    }
}

/// The last walker that has any weight.
pub(super) fn last_of(p: &[f64]) -> usize {
    p.iter().rposition(|&p| p > 0.0).unwrap_or(0)
}

/// Ancestors by counting points: `ends(sums, from, len, ends)` says where the walkers' parts end.
fn by_counts(
    share: &Share<'_>,
    last: usize,
    draws: &mut Draws,
    parallel: bool,
    ends: impl Fn(&[f64], i64, i64, &mut [u32]) + Sync,
) {
    draws.make_room(share);
    let (base, here) = (&draws.base, share.here());
    scatter(parallel, &mut draws.ancestors, &draws.starts[here.start..=here.end], |s, from, out| {
        let (mut sums, mut buffer) = ([0.0; SEGMENT], [0u32; SEGMENT]);
        let (at, p) = (here.start + s, segment(share.p, s));
        let (sums, buffer) = (&mut sums[..p.len()], &mut buffer[..p.len()]);
        running_sums(&base[at * STRETCHES..], p, sums);
        ends(sums, from as i64, out.len() as i64, buffer);
        // Only rounding can leave points over.
        let heir = if at == last / SEGMENT { last - at * SEGMENT } else { last_of(p) };
        buffer[heir..].fill(out.len() as u32);
        spread(at * SEGMENT, buffer, out);
    });
}

/// Runs `work` on every segment that has any, with the place and the slice of its part of `out`.
pub(super) fn scatter(
    parallel: bool,
    out: &mut [u64],
    starts: &[usize],
    work: impl Fn(usize, usize, &mut [u64]) + Sync,
) {
    let mut parts = Vec::with_capacity(starts.len());
    let mut rest = out;
    for (s, pair) in starts.windows(2).enumerate() {
        let (part, after) = rest.split_at_mut(pair[1] - pair[0]);
        if !part.is_empty() {
            parts.push((s, pair[0], part));
        }
        rest = after;
    }
    if !parallel || starts.len() <= 5 {
        parts.into_iter().for_each(|(s, from, part)| work(s, from, part));
    } else {
        parts.into_par_iter().for_each(|(s, from, part)| work(s, from, part));
    }
}

/// One uniform for all strata.
pub(super) fn systematic(share: &Share<'_>, n: usize, uniforms: &Uniforms<'_>, draws: &mut Draws) {
    let u = uniforms.random.uniform(uniforms.step, 0, uniforms.purpose);
    bases(share, uniforms.parallel, &mut draws.base);
    let (last, scale) = (share.last(), n as f64 / total(&draws.base));
    starts_of(draws, n, last, |sum| systematic_below(sum * scale, u) as usize);
    by_counts(share, last, draws, uniforms.parallel, |sums, from, len, ends| {
        systematic_ends(Isa::best(), sums, scale, u, from, len, ends);
    });
}

/// One uniform per stratum.
pub(super) fn stratified(share: &Share<'_>, n: usize, uniforms: &Uniforms<'_>, draws: &mut Draws) {
    bases(share, uniforms.parallel, &mut draws.base);
    let (last, scale) = (share.last(), n as f64 / total(&draws.base));
    let stratum = |sum: f64| split(bounded(sum * scale)).0 as usize;
    starts_of(draws, n, last, |sum| {
        let at = stratum(sum);
        let u = uniforms.random.uniform(uniforms.step, at as u64, uniforms.purpose);
        stratified_below(sum * scale, &[u], at as i64, n as i64) as usize
    });
    // The strata that the segments' sums lie in, and one more for what rounding may do.
    let here = share.here();
    let first = stratum(draws.base[here.start * STRETCHES]).saturating_sub(1).min(n.saturating_sub(1));
    let end = stratum(draws.base[here.end * STRETCHES]).saturating_add(2).clamp(first + 1, n.max(first + 1));
    let mut u = std::mem::take(&mut draws.points);
    uniforms.fill(first, end - first, &mut u);
    by_counts(share, last, draws, uniforms.parallel, |sums, from, len, ends| {
        stratified_ends(Isa::best(), sums, scale, (&u, first as i64, n as i64), from, len, ends);
    });
    draws.points = u;
}

fn total(base: &[f64]) -> f64 {
    base.last().copied().unwrap_or(0.0)
}

#[cfg(test)]
#[path = "draw_tests.rs"]
mod tests;
