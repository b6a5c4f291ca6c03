//! Independent draws, without sorting or searching.
//!
//! If walker `i` gets a Poisson number of copies with mean `c p_i`, for all `i` independently, then, given how many copies there are in all, these
//! are so many independent draws. With `c` a little below the number that is wanted there are rarely too many (then all is drawn anew, which
//! leaves the copies of the attempt that succeeds independent draws), and the few that are missing are drawn one by one.

use super::draw::{Draws, SEGMENT, Uniforms, each_piece, last_of, scatter, segment, spread};
use crate::parallel::Pieces;
use crate::random::math::exp_within_f64;
use crate::random::philox::{Panel, philox_panels};
use crate::random::{Key, minus_ln};
use crate::simd::{Isa, LANES, Simd, Vector, Words, dispatch};

/// Walkers whose weights are summed together.
pub(super) const GROUP: usize = 2 * LANES;
/// Walkers of a call of the kernel: as many groups as there are lanes.
const BLOCK: usize = GROUP * LANES;
/// Standard deviations by which copies are expected to fall short.
const MARGIN: f64 = 3.0;
/// How far the sum of the weights may be from one.
pub(super) const NORMALISED: f64 = 1e-9;
/// Attempts before all are drawn one by one.
pub(super) const ATTEMPTS: u32 = 5;
/// The largest mean of a Poisson number; larger ones are sums.
pub(super) const MOST: f64 = 16.0;
/// Blocks of random numbers for draws one by one, and for walkers of many copies. Attempts have the blocks from zero on.
pub(super) const ONE_BY_ONE: u32 = 1 << 30;
const MANY: u32 = 1 << 31;

/// `1 / k` from `k = 1` on, for more copies than a mean of [`MOST`] can lead to.
const INVERSES: [f64; 96] = {
    let mut inverses = [1.0; 96];
    let mut k = 0;
    while k < 96 {
        inverses[k] = 1.0 / (k as f64 + 1.0);
        k += 1;
    }
    inverses
};

/// First block of the random numbers of a walker of many copies.
pub(super) fn block_of_many(attempt: u32) -> u32 {
    MANY | attempt << 28
}

/// The factor by which the means of the Poisson numbers fall short where `missing` copies are expected of them.
pub(super) fn shortened(missing: f64) -> f64 {
    (1.0 - MARGIN / missing.sqrt()).max(0.0)
}

/// The same before anything was drawn: after certain copies, some quarter of the draws is left.
pub(super) fn first_shortened(n: usize, certain: bool) -> f64 {
    shortened(if certain { 0.25 * n as f64 } else { n as f64 })
}

/// One attempt.
struct Attempt {
    key: Key,
    number: u32,
    /// Expected copies per weight.
    scale: f64,
    /// What no walker's copies can exceed, whatever the weights are.
    most: f64,
    shortened: f64,
}

impl Attempt {
    /// Expected copies that are not certain.
    fn rest<const CERTAIN: bool>(&self, p: f64) -> f64 {
        let expected = if p * self.scale > 0.0 { p * self.scale } else { 0.0 };
        if CERTAIN { expected.min(self.most) - expected.min(self.most).floor() } else { expected }
    }
}

/// 1.5 * 2^52: a number added to it is rounded to an integer, which the low bits hold.
const INTEGER: f64 = 6_755_399_441_055_744.0;

/// What an attempt says of a segment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Segment {
    copies: usize,
    /// Sum of the expected copies, and of those that are not certain.
    expected: f64,
    rest: f64,
}

/// Terms that are added for all walkers alike.
const FIRST: usize = 3;
/// The bits of a uniform. The sum of all terms, as rounded, exceeds the largest one, so that rounding never decides how many copies a walker gets.
pub(super) const BITS: u32 = 46;

/// Two uniforms of each of 16 counters.
#[inline(always)]
fn two_uniforms<S: Simd>(words: [S::W; 4]) -> [S::D; 2] {
    let (low, cells) = (S::W::splat(0xffff_ffff), S::W::splat(((1 << BITS) - 1) << (52 - BITS)));
    let centre = 1.0 - 0.5 / (1u64 << BITS) as f64;
    let mut u = [S::D::splat(centre); 2];
    for m in 0..2 {
        // Words 1 and 3 are products: were they the high words, the compiler would merge shift and product to something slower.
        let bits = ((words[2 * m + 1] & low) | words[2 * m].shl(32)).shr(12);
        // In [1, 2), shifted to (0, 1).
        u[m] = S::from_wide_bits((bits & cells) | S::W::splat(1f64.to_bits())) - u[m];
    }
    u
}

/// Poisson numbers by inversion, on their way: the sum of the terms so far, the last of them, and how many of the sums were too low.
#[derive(Clone, Copy)]
struct Inversion<S: Simd> {
    u: S::D,
    mean: S::D,
    term: S::D,
    below: S::D,
    number: S::D,
}

impl<S: Simd> Inversion<S> {
    #[inline(always)]
    fn new(u: S::D, mean: S::D, first_term: S::D) -> Self {
        Inversion { u, mean, term: first_term, below: first_term, number: S::D::splat(0.0) }
    }
    #[inline(always)]
    fn add(&mut self, term: usize) {
        self.number = self.number + self.u.if_greater(self.below, S::D::splat(1.0), S::D::splat(0.0));
        self.term = self.term * (self.mean * S::D::splat(INVERSES[term]));
        self.below = self.below + self.term;
    }
    /// Adds terms from `from` on until all sums are large enough.
    #[inline(always)]
    fn finish(mut self, from: usize) -> S::D {
        for term in from..INVERSES.len() {
            if self.u.greater(self.below) == 0 {
                break;
            }
            self.add(term);
        }
        self.number
    }
}

/// `exp(-mean)`.
#[inline(always)]
fn first_term<S: Simd>(mean: S::D) -> S::D {
    exp_within_f64::<S>(S::D::splat(0.0) - mean)
}

/// The same for one large mean, as a sum over equal parts of it, 32 at a time.
#[inline(always)]
fn poisson_of_many<S: Simd>(attempt: &Attempt, walker: u64, mean: f64) -> f64 {
    let parts = (mean / MOST).ceil();
    let [_, w, low, high] = attempt.key.counter(walker, 0).map(|word| S::W::splat(word as u64));
    let lanes = S::W::load(&std::array::from_fn(|l| l as u64));
    let (mut number, mut done) = (S::D::splat(0.0), 0usize);
    while (done as f64) < parts {
        let block = S::W::splat((block_of_many(attempt.number) as usize + done / 2) as u64) + lanes;
        let [words] = philox_panels::<S, 1>([[block, w, low, high]], attempt.key.seed);
        let mut means = [[0.0; LANES]; 2];
        for (l, part) in means.as_flattened_mut().iter_mut().enumerate() {
            *part = if ((done + l) as f64) < parts { mean / parts } else { 0.0 };
        }
        let u = two_uniforms::<S>(words);
        for m in 0..2 {
            let mean = S::D::load(&means[m]);
            number = number + Inversion::<S>::new(u[m], mean, first_term::<S>(mean)).finish(0);
        }
        done += 2 * LANES;
    }
    sum::<S>(number)
}

#[inline(always)]
fn sum<S: Simd>(v: S::D) -> f64 {
    let mut lanes = [0.0; LANES];
    v.store(&mut lanes);
    lanes.iter().sum()
}

/// Numbers of a block.
type Numbers = [[f64; LANES]; BLOCK / LANES];

/// What the Poisson numbers of a block are made of.
struct Prepared {
    u: Numbers,
    /// Means; zero where they are more than [`MOST`].
    means: Numbers,
    /// Their first terms, later their last ones.
    terms: Numbers,
    /// Sums of the terms.
    below: Numbers,
    /// Copies so far.
    copies: Numbers,
    /// Walkers whose numbers are not known yet.
    left: [u16; BLOCK],
    /// Whether any mean is more than [`MOST`].
    many: bool,
}

/// Prepares the walkers from `first` on; the sums over [`GROUP`]s of the expected copies that are not certain, and lane by lane of all that are expected.
#[inline(always)]
fn prepare<S: Simd, const CERTAIN: bool>(
    attempt: &Attempt,
    first: usize,
    p: &Numbers,
    to: &mut Prepared,
) -> [S::D; 2] {
    let d = S::D::splat;
    let [_, _, low, high] = attempt.key.counter((first / 2) as u64, 0);
    let lanes = S::W::load(&std::array::from_fn(|l| l as u64));
    let (mut groups, mut all) = ([d(0.0); LANES], d(0.0));
    let mut many = 0;
    for (g, group) in groups.iter_mut().enumerate() {
        let ids = S::W::splat((first / 2 + g * LANES) as u64) + lanes;
        let [words] = Panel::<S>::new(attempt.key.seed, ids, low, high).words::<1>(attempt.number);
        let u = two_uniforms::<S>(words);
        for m in 0..2 {
            let at = 2 * g + m;
            let expected = S::D::load(&p[at]) * d(attempt.scale);
            let mut rest = expected.if_greater(d(0.0), expected, d(0.0));
            if CERTAIN {
                rest = d(attempt.most).if_greater(rest, rest, d(attempt.most));
                all = all + rest;
                let near = (rest + d(INTEGER)) - d(INTEGER);
                let certain = near.if_greater(rest, near - d(1.0), near);
                rest = rest - certain;
                certain.store(&mut to.copies[at]);
            }
            *group = *group + rest;
            let mut mean = rest * d(attempt.shortened);
            if !CERTAIN {
                many |= mean.greater(d(MOST));
                mean = d(MOST).if_greater(mean, mean, d(0.0));
            }
            u[m].store(&mut to.u[at]);
            mean.store(&mut to.means[at]);
            first_term::<S>(mean).store(&mut to.terms[at]);
        }
    }
    to.many = many != 0;
    [S::D::sums(&groups), all]
}

/// Draws the copies of walkers that are prepared.
#[inline(always)]
fn invert<S: Simd, const CERTAIN: bool>(block: &mut Prepared) {
    // Few walkers need more than the first terms: they are collected and done together.
    let mut count = 0;
    for at in 0..BLOCK / LANES {
        let (u, mean) = (S::D::load(&block.u[at]), S::D::load(&block.means[at]));
        let mut inversion = Inversion::<S>::new(u, mean, S::D::load(&block.terms[at]));
        if CERTAIN {
            inversion.number = S::D::load(&block.copies[at]);
        }
        for term in 0..FIRST {
            inversion.add(term);
        }
        inversion.term.store(&mut block.terms[at]);
        inversion.below.store(&mut block.below[at]);
        inversion.number.store(&mut block.copies[at]);
        let mut mask = u.greater(inversion.below);
        while mask != 0 {
            block.left[count % BLOCK] = (at * LANES) as u16 + mask.trailing_zeros() as u16;
            count += 1;
            mask &= mask - 1;
        }
    }
    for left in block.left[..count].chunks(LANES) {
        let mut gathered = [[0.0; LANES]; 4];
        let from = [&block.u, &block.means, &block.terms, &block.below];
        for (to, from) in gathered.iter_mut().zip(from) {
            for (to, &i) in to.iter_mut().zip(left) {
                *to = from.as_flattened()[i as usize];
            }
        }
        let mut inversion =
            Inversion::<S>::new(S::D::load(&gathered[0]), S::D::load(&gathered[1]), S::D::load(&gathered[2]));
        inversion.below = S::D::load(&gathered[3]);
        let mut more = [0.0; LANES];
        inversion.finish(FIRST).store(&mut more);
        for (more, &i) in more.iter().zip(left) {
            block.copies.as_flattened_mut()[i as usize] += more;
        }
    }
}

/// Copies of the walkers from `first` on, and the sums over [`GROUP`]s of the expected ones that are not certain.
#[inline(always)]
fn copies_of<S: Simd, const CERTAIN: bool>(
    attempt: &Attempt,
    first: usize,
    p: &[f64],
    copies: &mut [u32],
    sums: &mut [f64],
) -> Segment {
    let d = S::D::splat;
    let empty = [[0.0; LANES]; BLOCK / LANES];
    let mut block = Prepared {
        u: empty,
        means: empty,
        terms: empty,
        below: empty,
        copies: empty,
        left: [0; BLOCK],
        many: false,
    };
    let (mut padded, mut drawn) = (empty, [[0; LANES]; BLOCK / LANES]);
    let (mut all, mut expected) = (d(0.0), d(0.0));
    let blocks = p.chunks(BLOCK).zip(copies.chunks_mut(BLOCK)).zip(sums.as_chunks_mut().0);
    for (b, ((p, copies), sums)) in blocks.enumerate() {
        let first = first + b * BLOCK;
        let p: &Numbers = match p.as_chunks().0.first_chunk() {
            Some(p) => p,
            None => {
                padded.as_flattened_mut()[..p.len()].copy_from_slice(p);
                &padded
            }
        };
        let [groups, more] = prepare::<S, CERTAIN>(attempt, first, p, &mut block);
        groups.store(sums);
        expected = expected + if CERTAIN { more } else { groups };
        invert::<S, CERTAIN>(&mut block);
        if block.many {
            for (i, p) in p.as_flattened().iter().enumerate() {
                let mean = attempt.rest::<CERTAIN>(*p) * attempt.shortened;
                if mean > MOST {
                    let copies = &mut block.copies.as_flattened_mut()[i];
                    *copies += poisson_of_many::<S>(attempt, (first + i) as u64, mean.min(attempt.most));
                }
            }
        }
        for (drawn, copies) in drawn.iter_mut().zip(&block.copies) {
            let copies = S::D::load(copies);
            all = all + copies;
            S::low(S::wide_bits(copies + d(INTEGER))).store(drawn);
        }
        copies.copy_from_slice(&drawn.as_flattened()[..copies.len()]);
    }
    Segment { copies: sum::<S>(all) as usize, expected: sum::<S>(expected), rest: sums.iter().sum() }
}

dispatch! {
    fn copies_of_segment{const CERTAIN: bool}{CERTAIN}(
        attempt: &Attempt, first: usize, p: &[f64], copies: &mut [u32], sums: &mut [f64],
    ) -> Segment = copies_of
}

/// Draws `n` ancestors; with `CERTAIN`, only what is left of the expected copies after whole ones.
pub(super) fn independent<const CERTAIN: bool>(
    p: &[f64],
    n: usize,
    uniforms: &Uniforms<'_>,
    draws: &mut Draws,
) {
    let mut attempt = Attempt {
        key: uniforms.random.key(uniforms.step, uniforms.purpose),
        number: 0,
        scale: n as f64,
        most: n as f64,
        shortened: first_shortened(n, CERTAIN),
    };
    let drawn = loop {
        draw_copies::<CERTAIN>(&attempt, p, uniforms.parallel, draws);
        let sum = |f: fn(&Segment) -> f64| draws.segments.iter().map(f).sum::<f64>();
        let expected = sum(|s| s.expected);
        attempt.number += 1;
        if attempt.number == 1 && (expected - n as f64).abs() > NORMALISED * n as f64 {
            attempt.scale = n as f64 / p.iter().sum::<f64>();
            continue;
        }
        let drawn = draws.segments.iter().map(|s| s.copies).sum();
        // If not even the last attempt draws few enough, rounding has made the certain copies one too many.
        if drawn <= n || attempt.shortened == 0.0 {
            break drawn;
        }
        attempt.shortened = if attempt.number < ATTEMPTS { shortened(sum(|s| s.rest)) } else { 0.0 };
    };
    let last = last_of(p);
    one_by_one(n.saturating_sub(drawn), uniforms, last / SEGMENT, draws);
    spread_copies::<CERTAIN>(&attempt, p, n, last, uniforms.parallel, draws);
}

fn draw_copies<const CERTAIN: bool>(attempt: &Attempt, p: &[f64], parallel: bool, draws: &mut Draws) {
    let segments = p.len().div_ceil(SEGMENT);
    draws.segments.resize(segments, Segment::default());
    draws.copies.resize(p.len(), 0);
    draws.groups.resize(segments * (SEGMENT / GROUP), 0.0);
    let (said, groups) =
        (Pieces::new(&mut draws.segments, 1), Pieces::new(&mut draws.groups, SEGMENT / GROUP));
    each_piece(parallel, &mut draws.copies, |s, copies| {
        // SAFETY: every piece is taken once, with the segment of its number.
        let (said, groups) = unsafe { (said.take(s), groups.take(s)) };
        let p = segment(p, s);
        said.fill(copies_of_segment::<CERTAIN>(Isa::best(), attempt, s * SEGMENT, p, copies, groups));
    });
}

/// Sorted points for the `missing` copies, in units of expected copies, and which of them belong to which segment; what rounding may leave over
/// goes to segment `heir`.
fn one_by_one(missing: usize, uniforms: &Uniforms<'_>, heir: usize, draws: &mut Draws) {
    let points = &mut draws.points;
    points.resize(missing + 1, 0.0);
    let Uniforms { random, step, purpose, .. } = *uniforms;
    random.uniforms_of_block(step, 0, purpose, ONE_BY_ONE, points);
    minus_ln(points);
    let mut sum = 0.0;
    for point in &mut *points {
        sum += *point;
        *point = sum;
    }
    points.pop();
    let rest: f64 = draws.segments.iter().map(|s| s.rest).sum();
    points.iter_mut().for_each(|point| *point *= rest / sum);
    draws.point_starts.clear();
    draws.point_starts.push(0);
    let (mut below, mut end) = (0.0, 0);
    for (s, segment) in draws.segments.iter().enumerate() {
        below += segment.rest;
        end = if s < heir { end + points[end..].partition_point(|&point| point < below) } else { missing };
        draws.point_starts.push(end);
    }
}

/// Writes the ancestors, after adding the copies that are drawn one by one.
fn spread_copies<const CERTAIN: bool>(
    attempt: &Attempt,
    p: &[f64],
    n: usize,
    last: usize,
    parallel: bool,
    draws: &mut Draws,
) {
    draws.starts.clear();
    draws.starts.push(0);
    draws.base.clear();
    let (mut start, mut below) = (0, 0.0);
    for (segment, points) in draws.segments.iter().zip(draws.point_starts.windows(2)) {
        start += segment.copies + points[1] - points[0];
        draws.starts.push(start.min(n));
        draws.base.push(below);
        below += segment.rest;
    }
    draws.ancestors.resize(n, 0);
    let (points, point_starts) = (&draws.points, &draws.point_starts);
    let (groups, base) = (&draws.groups, &draws.base);
    let pieces = Pieces::new(&mut draws.copies, SEGMENT);
    scatter(parallel, &mut draws.ancestors, &draws.starts, |s, _, out| {
        // SAFETY: every piece is taken once, with the segment of its number.
        let copies = unsafe { pieces.take(s) };
        let (first, p) = (s * SEGMENT, segment(p, s));
        let points = &points[point_starts[s]..point_starts[s + 1]];
        let groups = &groups[s * (SEGMENT / GROUP)..(s + 1) * (SEGMENT / GROUP)];
        let heir = last.clamp(first, first + p.len() - 1) - first;
        let rest = |i: usize| attempt.rest::<CERTAIN>(p[i]);
        place(points, base[s], groups, p.len(), heir, rest, |walker| copies[walker] += 1);
        trim(copies, out.len());
        spread(Isa::best(), first, copies, false, out);
    });
}

/// Takes away what rounding of certain copies may have made too many.
fn trim(copies: &mut [u32], most: usize) {
    let mut excess = copies.iter().sum::<u32>().saturating_sub(most as u32);
    if excess > 0 {
        for copies in copies.iter_mut().rev() {
            let less = excess.min(*copies);
            (*copies, excess) = (*copies - less, excess - less);
        }
    }
}

/// The walkers of sorted points, given the sum below the segment and those of its groups. Only rounding, or weights that are none, can lead to the `heir`.
fn place(
    points: &[f64],
    mut below: f64,
    groups: &[f64],
    walkers: usize,
    heir: usize,
    rest: impl Fn(usize) -> f64,
    mut found: impl FnMut(usize),
) {
    let last = groups.iter().rposition(|&sum| sum > 0.0).unwrap_or(0);
    let mut group = 0;
    for &point in points {
        while group < last && below + groups[group] <= point {
            below += groups[group];
            group += 1;
        }
        let (mut sum, mut walker) = (below, heir);
        for i in group * GROUP..((group + 1) * GROUP).min(walkers) {
            let rest = rest(i);
            sum += rest;
            if rest > 0.0 {
                walker = i;
                if sum > point {
                    break;
                }
            }
        }
        found(walker);
    }
}
