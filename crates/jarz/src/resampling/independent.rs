//! Independent draws, without sorting or searching.
//!
//! If walker `i` gets a Poisson number of copies with mean `c p_i`, for all `i` independently, then, given how many copies there are in all, these
//! are so many independent draws. With `c` a little below the number that is wanted there are rarely too many (then all is drawn anew, which
//! leaves the copies of the attempt that succeeds independent draws), and the few that are missing are drawn one by one.

use super::draw::{Draws, FEW, SEGMENT, Uniforms, each_piece, scatter, segment};
use super::poisson::{Attempt, GROUP, Segment, draw_many, draw_segment};
use super::share::Share;
use crate::parallel::Pieces;
use crate::random::minus_ln;
use crate::simd::{Isa, multiversion};

/// Standard deviations by which copies are expected to fall short.
const MARGIN: f64 = 3.0;
/// How far the sum of the weights may be from one.
pub(super) const NORMALISED: f64 = 1e-9;
/// Attempts before all are drawn one by one.
pub(super) const ATTEMPTS: u32 = 5;
/// Block of the random numbers of draws one by one.
pub(super) const ONE_BY_ONE: u32 = 1 << 30;

/// The factor by which the means of the Poisson numbers fall short where `missing` copies are expected of them.
pub(super) fn shortened(missing: f64) -> f64 {
    (1.0 - MARGIN / missing.sqrt()).max(0.0)
}

/// The same before anything was drawn: after certain copies, some quarter of the draws is left.
pub(super) fn first_shortened(n: usize, certain: bool) -> f64 {
    shortened(if certain { 0.25 * n as f64 } else { n as f64 })
}

/// Draws `n` ancestors; with `CERTAIN`, only what is left of the expected copies after whole ones.
pub(super) fn independent<const CERTAIN: bool>(
    share: &Share<'_>,
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
        draw_copies::<CERTAIN>(&attempt, share, uniforms.parallel, draws);
        let expected: f64 = draws.segments.iter().map(|s| s.expected).sum();
        if attempt.number == 0 && (expected - n as f64).abs() > NORMALISED * n as f64 {
            let scale = n as f64 / sum_of(share);
            attempt.scale = if scale.is_finite() { scale } else { 0.0 };
            attempt.number = 1;
            continue;
        }
        if !CERTAIN {
            add_many(&attempt, share, uniforms.parallel, draws);
        }
        let drawn = draws.segments.iter().map(|s| s.copies).sum();
        // If not even the last attempt draws few enough, rounding has made the certain copies one too many.
        if drawn <= n || attempt.shortened == 0.0 {
            break drawn;
        }
        attempt.number += 1;
        let rest = draws.segments.iter().map(|s| s.rest).sum();
        attempt.shortened = if attempt.number < ATTEMPTS { shortened(rest) } else { 0.0 };
    };
    let last = share.last();
    one_by_one(n.saturating_sub(drawn), uniforms, last / SEGMENT, draws);
    spread_copies::<CERTAIN>(&attempt, share, n, last, uniforms.parallel, draws);
}

/// The sum of all weights.
fn sum_of(share: &Share<'_>) -> f64 {
    let mut sums = vec![0.0; share.segments];
    for (s, sum) in sums[share.here()].iter_mut().enumerate() {
        *sum = segment(share.p, s).iter().sum();
    }
    share.tell(&mut sums, 1);
    sums.iter().sum()
}

/// Tells everybody about the segments.
fn tell(share: &Share<'_>, segments: &mut [Segment]) {
    let mut numbers: Vec<f64> = segments.iter().flat_map(|s| s.numbers()).collect();
    share.tell(&mut numbers, 4);
    for (segment, numbers) in segments.iter_mut().zip(numbers.as_chunks().0) {
        *segment = Segment::from_numbers(numbers);
    }
}

fn draw_copies<const CERTAIN: bool>(attempt: &Attempt, share: &Share<'_>, parallel: bool, draws: &mut Draws) {
    let here = share.here();
    draws.segments.resize(share.segments, Segment::default());
    draws.copies.resize(share.p.len(), 0);
    draws.groups.resize(here.len() * (SEGMENT / GROUP), 0.0);
    let (said, groups) =
        (Pieces::new(&mut draws.segments[here.clone()], 1), Pieces::new(&mut draws.groups, SEGMENT / GROUP));
    each_piece(parallel, &mut draws.copies, |s, copies| {
        // SAFETY: every piece is taken once, with the segment of its number.
        let (said, groups) = unsafe { (said.take(s), groups.take(s)) };
        let (first, p) = ((here.start + s) * SEGMENT, segment(share.p, s));
        said.fill(draw_segment::<CERTAIN>(Isa::best(), attempt, first, p, copies, groups));
    });
    tell(share, &mut draws.segments);
}

/// Draws the copies of walkers that have many. (Not before their weights are known to be normalised: there might be no end of them.)
fn add_many(attempt: &Attempt, share: &Share<'_>, parallel: bool, draws: &mut Draws) {
    if draws.segments.iter().all(|s| !s.many) {
        return;
    }
    let here = share.here();
    let segments = Pieces::new(&mut draws.segments[here.clone()], 1);
    each_piece(parallel, &mut draws.copies, |s, copies| {
        // SAFETY: every piece is taken once, with the segment of its number.
        let said = unsafe { segments.take(s) };
        for said in said.iter_mut().filter(|said| said.many) {
            let first = (here.start + s) * SEGMENT;
            said.copies += draw_many(Isa::best(), attempt, first, segment(share.p, s), copies);
        }
    });
    tell(share, &mut draws.segments);
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
    share: &Share<'_>,
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
    draws.make_room(share);
    let (points, point_starts) = (&draws.points, &draws.point_starts);
    let (groups, base) = (&draws.groups, &draws.base);
    let pieces = Pieces::new(&mut draws.copies, SEGMENT);
    let here = share.here();
    scatter(parallel, &mut draws.ancestors, &draws.starts[here.start..=here.end], |s, _, out| {
        // SAFETY: every piece is taken once, with the segment of its number.
        let copies = unsafe { pieces.take(s) };
        let (at, p) = (here.start + s, segment(share.p, s));
        let first = at * SEGMENT;
        let points = &points[point_starts[at]..point_starts[at + 1]];
        let groups = &groups[s * (SEGMENT / GROUP)..(s + 1) * (SEGMENT / GROUP)];
        let heir = last.clamp(first, first + p.len() - 1) - first;
        let rest = |i: usize| attempt.rest::<CERTAIN>(p[i]);
        place(points, base[at], groups, p.len(), heir, rest, |walker| copies[walker] += 1);
        trim(copies, out.len());
        spread(Isa::best(), first, copies, out);
    });
}

multiversion! {
    /// Writes the ancestors of a segment. With lengths at hand instead of ends, a walker does not have to wait for the one before to be compared.
    fn spread(first: usize, copies: &[u32], out: &mut [u64]) {
        let (mut from, mut walker) = (0, first as u64);
        for &copies in copies {
            if from + FEW <= out.len() {
                // SAFETY: within the slice, as was just seen.
                unsafe { out.as_mut_ptr().add(from).cast::<[u64; FEW]>().write_unaligned([walker; FEW]) };
                if copies as usize > FEW {
                    out[from + FEW..from + copies as usize].fill(walker);
                }
            } else {
                out[from..from + copies as usize].fill(walker);
            }
            from += copies as usize;
            walker += 1;
        }
    }
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
