//! How ancestors are drawn, without branches that depend on the weights: on random weights a processor would guess them wrong
//! every other time.
//!
//! With `C_i` the sum of the first `i` weights, walker `i` is the ancestor of the points between `C_i` and `C_{i+1}`, so it is enough to
//! count the points below every `C_i`. Where a segment of walkers has its points follows from the sums at its ends, so that segments are
//! independent of each other and can be shared out over threads.

use crate::parallel::Pieces;
use crate::random::{Purpose, Random};
use rayon::prelude::*;

/// Walkers in a segment.
const SEGMENT: usize = 4096;

/// Addresses of a draw's random numbers.
pub(crate) struct Uniforms<'a> {
    pub random: &'a Random,
    pub step: u64,
    pub purpose: Purpose,
    /// Whether other threads may help.
    pub parallel: bool,
}

impl Uniforms<'_> {
    /// The first `n`.
    fn fill(&self, n: usize) -> Vec<f64> {
        let mut out = vec![0.0; n];
        each_piece(self.parallel, &mut out, |s, piece| {
            self.random.uniforms(self.step, (s * SEGMENT) as u64, self.purpose, piece);
        });
        out
    }
}

/// Runs `work` on every segment of a slice, on many threads if that is wanted and there are many segments.
fn each_piece<T: Send>(parallel: bool, slice: &mut [T], work: impl Fn(usize, &mut [T]) + Sync) {
    if !parallel || slice.len() <= 4 * SEGMENT {
        slice.chunks_mut(SEGMENT).enumerate().for_each(|(s, piece)| work(s, piece));
    } else {
        slice.par_chunks_mut(SEGMENT).enumerate().for_each(|(s, piece)| work(s, piece));
    }
}

/// Running sums. Within a segment they are added to `base[segment]`; the sum of all is the last of `base`.
struct Cumulative {
    local: Vec<f64>,
    base: Vec<f64>,
    parallel: bool,
}

impl Cumulative {
    fn new(values: &[f64], parallel: bool) -> Self {
        let mut local = vec![0.0; values.len()];
        each_piece(parallel, &mut local, |s, out| {
            running_sums(&values[s * SEGMENT..s * SEGMENT + out.len()], out);
        });
        let mut base = vec![0.0];
        let mut total = 0.0;
        for segment in local.chunks(SEGMENT) {
            total += segment.last().copied().unwrap_or(0.0);
            base.push(total);
        }
        Cumulative { local, base, parallel }
    }

    fn total(&self) -> f64 {
        self.base.last().copied().unwrap_or(0.0)
    }

    /// Puts the bases into the sums.
    fn flatten(mut self) -> Vec<f64> {
        let base = &self.base;
        each_piece(self.parallel, &mut self.local, |s, piece| piece.iter_mut().for_each(|v| *v += base[s]));
        self.local
    }
}

/// Running sums of a segment: four quarters at once, as one addition has to wait for the one before.
fn running_sums(values: &[f64], out: &mut [f64]) {
    let quarter = values.len() / 4;
    let (a, rest) = out.split_at_mut(quarter);
    let (b, rest) = rest.split_at_mut(quarter);
    let (c, d) = rest.split_at_mut(quarter);
    let mut sums = [0.0; 4];
    for i in 0..quarter {
        sums[0] += values[i];
        a[i] = sums[0];
        sums[1] += values[quarter + i];
        b[i] = sums[1];
        sums[2] += values[2 * quarter + i];
        c[i] = sums[2];
        sums[3] += values[3 * quarter + i];
        d[i] = sums[3];
    }
    for i in quarter..d.len() {
        sums[3] += values[3 * quarter + i];
        d[i] = sums[3];
    }
    let (second, third) = (sums[0], sums[0] + sums[1]);
    let fourth = third + sums[2];
    b.iter_mut().for_each(|v| *v += second);
    c.iter_mut().for_each(|v| *v += third);
    d.iter_mut().for_each(|v| *v += fourth);
}

/// Ancestors of `n` points, given how many points lie below a sum of weights: `below(sum)` must grow with the sum. The last walker that
/// has any weight gets what rounding may have left over.
fn by_counts(sums: &Cumulative, p: &[f64], n: usize, below: impl Fn(f64) -> usize + Sync) -> Vec<u64> {
    let last = p.iter().rposition(|&p| p > 0.0).unwrap_or(0);
    let segments = sums.base.len() - 1;
    let mut ends: Vec<usize> = sums.base[1..].iter().map(|&sum| below(sum).min(n)).collect();
    ends.iter_mut().skip(last / SEGMENT).for_each(|end| *end = n);
    let mut out = vec![0u64; n];
    let start = |s: usize| if s == 0 { 0 } else { ends[s - 1] };
    scatter(sums.parallel, &mut out, segments, start, |s, out| {
        let (from, first) = (start(s), s * SEGMENT);
        let local = &sums.local[first..(first + SEGMENT).min(p.len())];
        let mut at = from;
        for (i, &sum) in local.iter().enumerate() {
            // Walkers without points are overwritten by the next one that has some.
            if let Some(place) = out.get_mut(at - from) {
                *place = (first + i) as u64;
            }
            at = below(sums.base[s] + sum).clamp(at, from + out.len());
            if first + i == last {
                break;
            }
        }
        fill_gaps(out);
    });
    out
}

/// Runs `work` on every segment with its part of `out`, which goes from `start(s)` to `start(s + 1)`.
fn scatter(
    parallel: bool,
    out: &mut [u64],
    segments: usize,
    start: impl Fn(usize) -> usize,
    work: impl Fn(usize, &mut [u64]) + Sync,
) {
    let mut parts = Vec::with_capacity(segments);
    let mut rest = out;
    for s in 0..segments {
        let (part, after) = rest.split_at_mut((start(s + 1) - start(s)).min(rest.len()));
        parts.push((s, part));
        rest = after;
    }
    if !parallel || segments <= 4 {
        parts.into_iter().for_each(|(s, part)| work(s, part));
    } else {
        parts.into_par_iter().for_each(|(s, part)| work(s, part));
    }
}

/// Copies every number over the smaller ones that follow it.
fn fill_gaps(out: &mut [u64]) {
    let mut largest = 0;
    for v in out {
        largest = largest.max(*v);
        *v = largest;
    }
}

/// One uniform for all strata.
pub(super) fn systematic(p: &[f64], n: usize, uniforms: &Uniforms<'_>) -> Vec<u64> {
    let u = uniforms.random.uniform(uniforms.step, 0, uniforms.purpose);
    let sums = Cumulative::new(p, uniforms.parallel);
    let scale = n as f64 / sums.total();
    by_counts(&sums, p, n, |sum| (sum * scale - u).ceil().max(0.0) as usize)
}

/// One uniform per stratum.
pub(super) fn stratified(p: &[f64], n: usize, uniforms: &Uniforms<'_>) -> Vec<u64> {
    let u = uniforms.fill(n);
    let sums = Cumulative::new(p, uniforms.parallel);
    let scale = n as f64 / sums.total();
    by_counts(&sums, p, n, |sum| {
        let strata = sum * scale;
        let whole = strata as usize;
        let in_stratum = u.get(whole).is_some_and(|u| *u < strata - whole as f64);
        whole + in_stratum as usize
    })
}

/// Independent draws: sorted uniforms are running sums of exponentials, divided by the next one.
pub(super) fn multinomial(p: &[f64], n: usize, uniforms: &Uniforms<'_>) -> Vec<u64> {
    let mut spacings = uniforms.fill(n + 1);
    each_piece(uniforms.parallel, &mut spacings, |_, piece| crate::random::minus_ln(piece));
    let points = Cumulative::new(&spacings, uniforms.parallel);
    let sums = Cumulative::new(p, uniforms.parallel);
    let scale = sums.total() / points.total();
    let points = points.flatten();
    let points = &points[..n];
    let last = p.iter().rposition(|&p| p > 0.0).unwrap_or(0);
    let mut ends: Vec<usize> =
        sums.base[1..].iter().map(|&sum| points.partition_point(|point| point * scale < sum)).collect();
    ends.iter_mut().skip(last / SEGMENT).for_each(|end| *end = n);
    let mut out = vec![0u64; n];
    let start = |s: usize| if s == 0 { 0 } else { ends[s - 1] };
    scatter(uniforms.parallel, &mut out, ends.len(), start, |s, out| {
        let first = s * SEGMENT;
        let local = &sums.local[first..(last + 1).min(first + SEGMENT).max(first)];
        let (base, points) = (sums.base[s], &points[start(s)..start(s) + out.len()]);
        let (mut i, mut j) = (0, 0);
        while j < out.len() {
            // Past the last walker of the segment only rounding can lead.
            let ahead = i + 1 < local.len() && points[j] * scale >= base + local[i];
            out[j] = (first + i) as u64;
            i += ahead as usize;
            j += !ahead as usize;
        }
    });
    out
}

/// Whole copies for certain, the rest multinomially.
pub(super) fn residual(p: &[f64], n: usize, uniforms: &Uniforms<'_>) -> Vec<u64> {
    let scale = n as f64 / Cumulative::new(p, uniforms.parallel).total();
    let (mut counts, mut rest) = (vec![0u32; p.len()], vec![0.0; p.len()]);
    let pieces = Pieces::new(&mut counts, SEGMENT);
    each_piece(uniforms.parallel, &mut rest, |s, rest| {
        // SAFETY: every piece is taken once, with the segment of its number.
        let counts = unsafe { pieces.take(s) };
        let p = &p[s * SEGMENT..s * SEGMENT + rest.len()];
        for ((p, count), rest) in p.iter().zip(counts).zip(rest) {
            let expected = scale * p;
            let whole = expected.floor();
            *count = whole as u32;
            *rest = expected - whole;
        }
    });
    let certain: u64 = counts.iter().map(|&c| c as u64).sum();
    // Rounding may make the certain copies one too many only if all residuals vanish.
    let missing = (n as u64).saturating_sub(certain) as usize;
    if missing > 0 {
        for ancestor in multinomial(&rest, missing, uniforms) {
            counts[ancestor as usize] += 1;
        }
    }
    let mut out = vec![0u64; n];
    let mut at = 0;
    for (i, &count) in counts.iter().enumerate() {
        if let Some(place) = out.get_mut(at) {
            *place = i as u64;
        }
        at += count as usize;
    }
    fill_gaps(&mut out);
    out
}

/// Scalar twins: the definitions, one point after the other.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::resampling::Scheme;
    use proptest::prelude::*;

    fn plain(scheme: Scheme, p: &[f64], n: usize, random: &Random, step: u64, purpose: Purpose) -> Vec<u64> {
        let uniform = |i: u64| random.uniform(step, i, purpose);
        let strata = n as f64;
        match scheme {
            Scheme::Systematic => {
                let u = uniform(0);
                pick_sorted(p, n, |i| (i as f64 + u) / strata)
            }
            Scheme::Stratified => pick_sorted(p, n, |i| (i as f64 + uniform(i as u64)) / strata),
            Scheme::Multinomial => plain_multinomial(p, n, uniform),
            Scheme::Residual => {
                let total: f64 = p.iter().sum();
                let expected: Vec<f64> = p.iter().map(|p| strata * p / total).collect();
                let mut counts: Vec<u64> = expected.iter().map(|e| e.floor() as u64).collect();
                let rest: Vec<f64> = expected.iter().map(|e| e - e.floor()).collect();
                let missing = n - counts.iter().sum::<u64>() as usize;
                plain_multinomial(&rest, missing, uniform).iter().for_each(|a| counts[*a as usize] += 1);
                let copies = counts.iter().enumerate();
                copies.flat_map(|(i, count)| std::iter::repeat_n(i as u64, *count as usize)).collect()
            }
        }
    }

    fn plain_multinomial(p: &[f64], n: usize, uniform: impl Fn(u64) -> f64) -> Vec<u64> {
        let spacings: Vec<f64> = (0..=n as u64).map(|i| -uniform(i).ln()).collect();
        let total: f64 = spacings.iter().sum();
        let mut sum = 0.0;
        let points: Vec<f64> = spacings
            .iter()
            .map(|s| {
                sum += s;
                sum / total
            })
            .collect();
        pick_sorted(p, n, |i| points[i])
    }

    fn pick_sorted(p: &[f64], n: usize, point: impl Fn(usize) -> f64) -> Vec<u64> {
        let total: f64 = p.iter().sum();
        let last = p.iter().rposition(|&p| p > 0.0).unwrap_or(0);
        let (mut walker, mut cumulative) = (0, p[0]);
        let mut out = Vec::new();
        for i in 0..n {
            while cumulative <= point(i) * total && walker < last {
                walker += 1;
                cumulative += p[walker];
            }
            out.push(walker as u64);
        }
        out
    }

    /// Weights with ties, zeros and extremes; sums that round differently may move a point that lies on a boundary to the neighbour.
    fn check(walkers: usize, n: usize, seed: u64, kind: u64) {
        let random = Random::new(seed);
        let weight = |i: usize| {
            let u = random.uniform(1, i as u64, Purpose::User);
            match kind {
                0 => u,
                1 => {
                    if u < 0.7 {
                        0.0
                    } else {
                        u
                    }
                }
                2 => (-20.0 * u).exp(),
                _ => {
                    if i == walkers / 2 {
                        1e6
                    } else {
                        u
                    }
                }
            }
        };
        let mut p: Vec<f64> = (0..walkers).map(weight).collect();
        p[walkers / 3] += 1e-3;
        for scheme in Scheme::ALL {
            let fast = scheme.ancestors(&p, n, &random, 5, Purpose::Resample);
            let slow = plain(scheme, &p, n, &random, 5, Purpose::Resample);
            assert_eq!(fast.len(), n);
            let differ = fast.iter().zip(&slow).filter(|(a, b)| a != b).count();
            assert!(differ <= 2, "{scheme:?}: {differ} of {n} differ");
            assert!(fast.is_sorted() && fast.iter().all(|a| p[*a as usize] > 0.0), "{scheme:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn fast_draws_equal_the_definitions(walkers in 1usize..9000, n in 1usize..9000, seed: u64, kind in 0u64..4) {
            check(walkers, n, seed, kind);
        }
    }

    #[test]
    fn large_ensembles_on_one_thread_and_many() {
        check(100_000, 100_000, 3, 0);
        check(100_000, 70_000, 4, 1);
        let random = Random::new(8);
        let p: Vec<f64> = (0..100_000).map(|i| random.uniform(0, i, Purpose::User)).collect();
        for scheme in Scheme::ALL {
            let on = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| scheme.ancestors(&p, p.len(), &random, 0, Purpose::User))
            };
            assert_eq!(on(1), on(3));
        }
    }
}
