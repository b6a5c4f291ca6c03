//! Poisson numbers of copies, 16 walkers at a time.

use crate::random::Key;
use crate::random::math::exp_within_f64;
use crate::random::philox::{Panel, philox_panels};
use crate::simd::{LANES, Simd, Vector, Words, dispatch};

/// Walkers whose weights are summed together.
pub(super) const GROUP: usize = 2 * LANES;
/// Walkers of a call of the kernel: as many groups as there are lanes.
const BLOCK: usize = GROUP * LANES;
/// The largest mean of a Poisson number; larger ones are sums.
pub(super) const MOST: f64 = 16.0;
/// First block of the random numbers of walkers of many copies. Attempts have the blocks from zero on.
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

/// One attempt.
pub(super) struct Attempt {
    pub key: Key,
    pub number: u32,
    /// Expected copies per weight.
    pub scale: f64,
    /// What no walker's copies can exceed, whatever the weights are.
    pub most: f64,
    /// What the means of Poisson numbers are multiplied by, to fall short.
    pub shortened: f64,
}

impl Attempt {
    /// Expected copies that are not certain.
    pub fn rest<const CERTAIN: bool>(&self, p: f64) -> f64 {
        let expected = if p * self.scale > 0.0 { p * self.scale } else { 0.0 };
        if CERTAIN { expected.min(self.most) - expected.min(self.most).floor() } else { expected }
    }
}

/// 1.5 * 2^52: a number added to it is rounded to an integer, which the low bits hold.
const INTEGER: f64 = 6_755_399_441_055_744.0;

/// What an attempt says of a segment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Segment {
    pub copies: usize,
    /// Sum of the expected copies, and of those that are not certain.
    pub expected: f64,
    pub rest: f64,
    /// Whether some means are more than [`MOST`]: these walkers' copies are not drawn yet.
    pub many: bool,
}

impl Segment {
    /// All of it as numbers.
    pub fn numbers(&self) -> [f64; 4] {
        [self.copies as f64, self.expected, self.rest, self.many as u8 as f64]
    }

    /// From numbers.
    pub fn from_numbers(&[copies, expected, rest, many]: &[f64; 4]) -> Self {
        Segment { copies: copies as usize, expected, rest, many: many != 0.0 }
    }
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

/// A Poisson number of a large mean, as a sum over equal parts of it, 32 at a time.
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
    let (mut all, mut expected, mut many) = (d(0.0), d(0.0), false);
    sums.fill(0.0);
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
        many |= block.many;
        for (drawn, copies) in drawn.iter_mut().zip(&block.copies) {
            let copies = S::D::load(copies);
            all = all + copies;
            S::low(S::wide_bits(copies + d(INTEGER))).store(drawn);
        }
        copies.copy_from_slice(&drawn.as_flattened()[..copies.len()]);
    }
    Segment { copies: sum::<S>(all) as usize, expected: sum::<S>(expected), rest: sums.iter().sum(), many }
}

/// Draws the copies of walkers whose means are more than [`MOST`]; how many there are.
#[inline(always)]
fn copies_of_many<S: Simd>(attempt: &Attempt, first: usize, p: &[f64], copies: &mut [u32]) -> usize {
    let mut all = 0;
    for (i, (p, copies)) in p.iter().zip(copies).enumerate() {
        let mean = attempt.rest::<false>(*p) * attempt.shortened;
        if mean > MOST {
            *copies = poisson_of_many::<S>(attempt, (first + i) as u64, mean.min(attempt.most)) as u32;
            all += *copies as usize;
        }
    }
    all
}

dispatch! {
    pub(super) fn draw_segment{const CERTAIN: bool}{CERTAIN}(
        attempt: &Attempt, first: usize, p: &[f64], copies: &mut [u32], sums: &mut [f64],
    ) -> Segment = copies_of
}
dispatch! {
    pub(super) fn draw_many{}{}(attempt: &Attempt, first: usize, p: &[f64], copies: &mut [u32]) -> usize = copies_of_many
}
