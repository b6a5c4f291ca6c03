//! The move of a panel: whole vectors of a walker's dimensions, one walker after the other, and tiles of what is left of the dimensions.

use super::step::Step;
use super::weights::{Sums, add_to};
use super::{MAX_MODES, QUADS, count};
use crate::real::Real;
use crate::simd::tile::tile_of;
use crate::simd::{LANES, Simd, Tile, Vector, prefetch};
use std::ops::Range;

/// Where the rows of a panel are.
#[derive(Clone, Copy)]
pub(super) struct Place<T> {
    pub(super) x: *mut T,
    /// Where each begins.
    pub(super) at: [usize; LANES],
}

/// [`Sums`] of a row or a tile in the walkers' precision, lane by lane.
struct Part<S: Simd, T: Real> {
    forward: T::V<S>,
    squares: [T::V<S>; MAX_MODES],
    along: [T::V<S>; MAX_MODES],
    own_squares: [T::V<S>; MAX_MODES],
    own_along: [T::V<S>; MAX_MODES],
}

impl<S: Simd, T: Real> Part<S, T> {
    #[inline(always)]
    fn new() -> Self {
        let zeros = [T::splat::<S>(T::ZERO); MAX_MODES];
        Part { forward: zeros[0], squares: zeros, along: zeros, own_squares: zeros, own_along: zeros }
    }
}

/// The shares of a panel's walkers, by modes, those of the first not being needed: a number for each row, and as tiles in which they stand for all
/// dimensions; and what of the last four dimensions there is, one or zero. In memory, as arrays for so many modes cannot be in registers anyway.
#[repr(align(64))]
pub(super) struct Shares<T> {
    rows: [[T; LANES]; MAX_MODES],
    tiles: [[[T; LANES]; 4]; MAX_MODES],
    here: [T; LANES],
}

impl<T: Default> Default for Shares<T> {
    fn default() -> Self {
        use std::array::from_fn;
        let numbers = || from_fn(|_| T::default());
        Shares { rows: from_fn(|_| numbers()), tiles: from_fn(|_| from_fn(|_| numbers())), here: numbers() }
    }
}

impl<T: Real> Shares<T> {
    /// For rows of `dim` numbers.
    pub(super) fn expect(&mut self, dim: usize) {
        for (l, here) in self.here.iter_mut().enumerate() {
            *here = if l % 4 < dim % 4 { T::ONE } else { T::ZERO };
        }
    }

    /// Keeps those of the next panel, for rows and perhaps for tiles.
    #[inline(always)]
    pub(super) fn keep<S: Simd>(&mut self, n: usize, r: &[T::V<S>; MAX_MODES], tiles: bool) {
        for k in 1..n {
            r[k].store(&mut self.rows[k]);
            if !tiles {
                continue;
            }
            for (tile, to) in r[k].spread().into_iter().zip(&mut self.tiles[k]) {
                tile.store(to);
            }
        }
    }
}

/// The same of a panel's `N` rows or tiles.
#[repr(align(64))]
pub(super) struct Parts<T, const N: usize> {
    forward: [[T; LANES]; N],
    squares: [[[T; LANES]; N]; MAX_MODES],
    along: [[[T; LANES]; N]; MAX_MODES],
    own_squares: [[[T; LANES]; N]; MAX_MODES],
    own_along: [[[T; LANES]; N]; MAX_MODES],
}

impl<T: Default, const N: usize> Default for Parts<T, N> {
    fn default() -> Self {
        use std::array::from_fn;
        let of_all = || from_fn(|_| from_fn(|_| T::default()));
        let of_modes = || from_fn(|_| of_all());
        Parts {
            forward: of_all(),
            squares: of_modes(),
            along: of_modes(),
            own_squares: of_modes(),
            own_along: of_modes(),
        }
    }
}

impl<T: Real, const N: usize> Parts<T, N> {
    /// Keeps what was found of row or tile `i`.
    #[inline(always)]
    fn keep<S: Simd, const OWN: bool>(&mut self, n: usize, i: usize, part: &Part<S, T>) {
        part.forward.store(&mut self.forward[i]);
        for k in 0..n {
            part.squares[k].store(&mut self.squares[k][i]);
            part.along[k].store(&mut self.along[k][i]);
            if OWN {
                part.own_squares[k].store(&mut self.own_squares[k][i]);
                part.own_along[k].store(&mut self.own_along[k][i]);
            }
        }
    }

    /// What was kept of row or tile `i`.
    #[inline(always)]
    fn kept<S: Simd, const OWN: bool>(&self, n: usize, i: usize) -> Part<S, T> {
        let load = T::V::<S>::load;
        let mut part = Part::<S, T>::new();
        part.forward = load(&self.forward[i]);
        for k in 0..n {
            part.squares[k] = load(&self.squares[k][i]);
            part.along[k] = load(&self.along[k][i]);
            if OWN {
                part.own_squares[k] = load(&self.own_squares[k][i]);
                part.own_along[k] = load(&self.own_along[k][i]);
            }
        }
        part
    }
}

/// What moves have in common: in one place, since the compiler cannot know that stores to positions change none of it.
struct Pull<S: Simd, T: Real> {
    whole: T::V<S>,
    half: T::V<S>,
}

impl<S: Simd, T: Real> Pull<S, T> {
    #[inline(always)]
    fn of(step: &Step<'_, T>) -> Self {
        let pull = step.h * step.from.precision;
        Pull { whole: T::splat::<S>(T::from_f64(pull)), half: T::splat::<S>(T::from_f64(0.5 * pull)) }
    }
}

/// What belongs to the dimensions of a vector.
#[derive(Clone, Copy)]
struct Around<S: Simd, T: Real> {
    offsets: [T::V<S>; MAX_MODES],
    new_means: [T::V<S>; MAX_MODES],
    means: [T::V<S>; MAX_MODES],
    response: [T::V<S>; MAX_MODES],
    product: [T::V<S>; MAX_MODES],
}

impl<S: Simd, T: Real> Around<S, T> {
    /// Of the dimensions from `column` on: 16 of a [`ROW`], four of a [`TILE`], or one of a [`COLUMN`].
    ///
    /// # Safety
    /// All arrays must have as many, for `n` modes.
    #[inline(always)]
    unsafe fn new<const OWN: bool, const OF: u8>(step: &Step<'_, T>, n: usize, column: usize) -> Self {
        let zeros = [T::splat::<S>(T::ZERO); MAX_MODES];
        let mut around =
            Around { offsets: zeros, new_means: zeros, means: zeros, response: zeros, product: zeros };
        for k in 0..n {
            let at = step.from.stride * k + column;
            // SAFETY: the caller's promise.
            unsafe {
                around.offsets[k] = numbers::<S, T, OF>(&step.from.offsets, at);
                around.new_means[k] = numbers::<S, T, OF>(&step.to.means, at);
                if OWN {
                    around.means[k] = numbers::<S, T, OF>(&step.from.means, at);
                    around.response[k] = numbers::<S, T, OF>(&step.own.response, at);
                    around.product[k] = numbers::<S, T, OF>(&step.own.product, at);
                }
            }
        }
        around
    }
}

/// Vectors are 16 dimensions of a walker.
const ROW: u8 = 0;
/// Vectors are four dimensions of four walkers.
const TILE: u8 = 1;
/// Vectors are one dimension of all walkers of a panel.
const COLUMN: u8 = 2;

/// The 16 numbers of a row, the four of all walkers of a tile, or the one of a column.
///
/// # Safety
/// There must be that many.
#[inline(always)]
unsafe fn numbers<S: Simd, T: Real, const OF: u8>(from: &[T], at: usize) -> T::V<S> {
    let from = from.as_ptr().wrapping_add(at);
    // SAFETY: the caller's promise.
    unsafe {
        match OF {
            ROW => T::V::<S>::load(&*from.cast()),
            TILE => T::V::<S>::repeat(&*from.cast()),
            _ => T::splat::<S>(*from),
        }
    }
}

/// Moves the numbers of a vector, given the shares of all modes but the first.
#[inline(always)]
fn moved<S: Simd, T: Real, const OWN: bool>(
    n: usize,
    x: T::V<S>,
    noise: T::V<S>,
    r: &[T::V<S>; MAX_MODES],
    pull: &Pull<S, T>,
    around: &Around<S, T>,
    part: &mut Part<S, T>,
) -> T::V<S> {
    // The mean of the means is the first one and the shares of the others' offsets.
    let mut drift = x - around.offsets[0];
    for k in 1..n {
        drift = r[k].neg_mul_add(around.offsets[k], drift);
    }
    if OWN {
        for k in 0..n {
            let apart = x - around.means[k];
            part.own_squares[k] = (apart * around.response[k]).mul_add(apart, part.own_squares[k]);
            part.own_along[k] = apart.mul_add(around.product[k], part.own_along[k]);
        }
    }
    let by = drift.neg_mul_add(pull.whole, noise);
    part.forward = drift.mul_add(drift.neg_mul_add(pull.half, noise), part.forward);
    let y = x + by;
    for k in 0..n {
        let apart = y - around.new_means[k];
        part.squares[k] = apart.mul_add(apart, part.squares[k]);
        part.along[k] = apart.mul_add(by, part.along[k]);
    }
    y
}

/// Moves a panel in the `V` vectors of dimensions from `column` on, one walker after the other. `noise` has a
/// vector for each walker in the first 16 dimensions, then in the next. What is found is added to `parts`, or begins them.
///
/// # Safety
/// The rows must have as many numbers, as all that belongs to the `n` modes must.
#[inline(always)]
pub(super) unsafe fn move_rows<S: Simd, T: Real, const K: usize, const OWN: bool, const V: usize>(
    step: &Step<'_, T>,
    place: &Place<T>,
    column: usize,
    shares: &Shares<T>,
    noise: &[[T; LANES]],
    first: bool,
    parts: &mut Parts<T, LANES>,
) {
    let (n, dim) = (count::<T, K>(step.from), step.from.dim);
    let noise = &noise[..V * LANES];
    let pull = Pull::<S, T>::of(step);
    let zeros = [T::splat::<S>(T::ZERO); MAX_MODES];
    let empty =
        Around::<S, T> { offsets: zeros, new_means: zeros, means: zeros, response: zeros, product: zeros };
    let mut around = [empty; V];
    for v in 0..V {
        // SAFETY: the caller's promise.
        around[v] = unsafe { Around::new::<OWN, ROW>(step, n, column + LANES * v) };
    }
    for l in 0..LANES {
        let mut part = if K > 0 || first { Part::new() } else { parts.kept::<S, OWN>(n, l) };
        let mut r = zeros;
        for k in 1..n {
            r[k] = T::splat::<S>(shares.rows[k][l]);
        }
        let row = place.x.wrapping_add(place.at[l] + column);
        for v in 0..V {
            let at = row.wrapping_add(LANES * v).cast::<[T; LANES]>();
            ask_for(row.wrapping_add(LANES * dim + LANES * v));
            // SAFETY: the caller's promise.
            let x = T::V::<S>::load(unsafe { &*at });
            let noise = T::V::<S>::load(&noise[LANES * v + l]);
            let y = moved::<S, T, OWN>(n, x, noise, &r, &pull, &around[v], &mut part);
            // SAFETY: as above.
            y.store(unsafe { &mut *at });
        }
        parts.keep::<S, OWN>(n, l, &part);
    }
}

/// Moves a panel in some groups of four dimensions, tile by tile.
///
/// # Safety
/// The rows must have as many numbers, as all that belongs to the `n` modes must.
#[inline(always)]
pub(super) unsafe fn move_tiles<S: Simd, T: Real, const K: usize, const OWN: bool>(
    step: &Step<'_, T>,
    place: &Place<T>,
    quads: Range<usize>,
    shares: &Shares<T>,
    noise: &[[T; LANES]],
    parts: &mut Parts<T, 4>,
) {
    let (n, dim) = (count::<T, K>(step.from), step.from.dim);
    let pull = Pull::<S, T>::of(step);
    for g in 0..4 {
        let mut part = Part::new();
        let mut r = [T::splat::<S>(T::ZERO); MAX_MODES];
        for k in 1..n {
            r[k] = T::V::<S>::load(&shares.tiles[k][g]);
        }
        let rows = tile_of(&place.at, g);
        for (quad, noise) in quads.clone().zip(noise.as_chunks::<4>().0) {
            let at = place.x.wrapping_add(4 * quad);
            let mut noise = T::V::<S>::load(&noise[g]);
            // SAFETY: the caller's promise.
            unsafe {
                let around = Around::new::<OWN, TILE>(step, n, 4 * quad);
                if 4 * quad + 4 <= dim {
                    let x = T::V::<S>::load_tile(at, &rows, 4);
                    let y = moved::<S, T, OWN>(n, x, noise, &r, &pull, &around, &mut part);
                    y.store_tile(at, &rows, 4);
                } else {
                    // Dimensions beyond the last stay where they are.
                    noise = noise * T::V::<S>::load(&shares.here);
                    let x = T::V::<S>::load_tile(at, &rows, dim % 4);
                    let y = moved::<S, T, OWN>(n, x, noise, &r, &pull, &around, &mut part);
                    y.store_tile(at, &rows, dim % 4);
                }
            }
        }
        parts.keep::<S, OWN>(n, g, &part);
    }
}

/// Moves a panel in its last one or two dimensions from `column` on, all walkers at once.
///
/// # Safety
/// The rows must have as many numbers, as all that belongs to the `n` modes must.
#[inline(always)]
pub(super) unsafe fn move_columns<S: Simd, T: Real, const K: usize, const OWN: bool>(
    step: &Step<'_, T>,
    place: &Place<T>,
    column: usize,
    r: &[T::V<S>; MAX_MODES],
    noise: &[[T; LANES]],
    parts: &mut Parts<T, 1>,
) {
    let (n, columns) = (count::<T, K>(step.from), step.from.dim - column);
    let pull = Pull::<S, T>::of(step);
    let mut part = Part::new();
    let at = place.x.wrapping_add(column);
    // SAFETY: the caller's promise.
    unsafe {
        let mut x = if columns == 1 {
            T::V::<S>::load_columns(at, &place.at, 1)
        } else {
            T::V::<S>::load_columns(at, &place.at, 2)
        };
        for c in 0..columns.min(2) {
            let around = Around::new::<OWN, COLUMN>(step, n, column + c);
            x[c] = moved::<S, T, OWN>(n, x[c], T::V::<S>::load(&noise[c]), r, &pull, &around, &mut part);
        }
        if columns == 1 {
            T::V::<S>::store_columns(x, at, &place.at, 1);
        } else {
            T::V::<S>::store_columns(x, at, &place.at, 2);
        }
    }
    parts.keep::<S, OWN>(n, 0, &part);
}

/// Asks for a vector of the next panel, to which panels do not come in regular steps.
#[inline(always)]
fn ask_for<T>(at: *const T) {
    for line in 0..size_of::<T>() / 4 {
        prefetch(at.wrapping_add(line * 64 / size_of::<T>()));
    }
}

/// Adds the parts of rows, of tiles and of columns, where there are any, to the sums of their walkers, or begins these.
#[inline(always)]
pub(super) fn add_parts<S: Simd, T: Real, const K: usize, const OWN: bool>(
    n: usize,
    first: bool,
    rows: Option<&Parts<T, LANES>>,
    tiles: Option<&Parts<T, 4>>,
    columns: Option<&Parts<T, 1>>,
    sums: &mut Sums,
) {
    macro_rules! add {
        ($($name:ident $([$k:ident])?),*) => {$({
            let (rows, tiles) = (rows.map(|r| &r.$name$([$k])?), tiles.map(|t| &t.$name$([$k])?));
            let columns = columns.map(|c| &c.$name$([$k])?);
            add_to::<S>(first, T::widen::<S>(sum_of::<S, T>(rows, tiles, columns)), &mut sums.$name$([$k])?);
        })*};
    }
    add!(forward);
    for k in 0..n {
        add!(squares[k], along[k]);
        if OWN {
            add!(own_squares[k], own_along[k]);
        }
    }
}

/// The sum over the lanes of each walker's row, of what is its own of the tiles, and of its lane of the columns.
#[inline(always)]
fn sum_of<S: Simd, T: Real>(
    rows: Option<&[[T; LANES]; LANES]>,
    tiles: Option<&[[T; LANES]; 4]>,
    columns: Option<&[[T; LANES]; 1]>,
) -> T::V<S> {
    let load = T::V::<S>::load;
    let mut sum = T::splat::<S>(T::ZERO);
    if let Some(rows) = rows {
        let mut vectors = [sum; LANES];
        for l in 0..LANES {
            vectors[l] = load(&rows[l]);
        }
        sum = T::V::<S>::sums(&vectors);
    }
    if let Some([a, b, c, d]) = tiles {
        sum = sum + T::V::<S>::fold([load(a), load(b), load(c), load(d)]);
    }
    if let Some([column]) = columns {
        sum = sum + load(column);
    }
    sum
}

const _: () = assert!(QUADS * 4 == 4 * LANES);
