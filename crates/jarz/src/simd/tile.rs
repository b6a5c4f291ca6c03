//! Tiles: four neighbouring dimensions of four of a panel's walkers in one vector, as rows hold them and as a generator of 128-bit blocks
//! makes them. A panel's 16 walkers are four tiles; lanes `4 i` to `4 i + 3` of tile `g` are those of walker `4 i + g`.

use super::LANES;
use super::portable;

/// What the rows of tile `g` have of something that each row of a panel has.
#[inline(always)]
pub(crate) fn tile_of<A: Copy>(panel: &[A; LANES], g: usize) -> [A; 4] {
    [panel[g], panel[4 + g], panel[8 + g], panel[12 + g]]
}

/// Vectors of floating-point numbers as tiles.
pub trait Tile<T>: Sized {
    /// The same four dimensions for all walkers.
    fn repeat(from: &[T; 4]) -> Self;
    /// Reads a tile: `columns` (1 to 4) neighbouring numbers of its four rows, from `base[at[i]]` on, and zeros.
    ///
    /// # Safety
    /// `base[at[i] .. at[i] + columns]` must be readable for all `i`.
    unsafe fn load_tile(base: *const T, at: &[usize; 4], columns: usize) -> Self;
    /// The reverse of [`Tile::load_tile`].
    ///
    /// # Safety
    /// `base[at[i] .. at[i] + columns]` must be writable for all `i`.
    unsafe fn store_tile(self, base: *mut T, at: &[usize; 4], columns: usize);
    /// From one number per walker to tiles in which it stands for all dimensions.
    fn spread(self) -> [Self; 4];
    /// From tiles to one number per walker: with its four numbers `a` to `d`, `(a + c) + (b + d)`.
    fn fold(tiles: [Self; 4]) -> Self;
    /// Groups of four numbers of one vector and of another in turns.
    fn in_turns(first: Self, second: Self) -> [Self; 2];
    /// Puts two vectors together again of whose words [`Unzip::unzip`] made even and odd ones.
    fn zip(evens: Self, odds: Self) -> [Self; 2];
}

/// Vectors of words as neighbouring pairs.
pub trait Unzip: Sized {
    /// Even and odd lanes of two vectors, in an order that is each instruction set's own.
    fn unzip(a: Self, b: Self) -> [Self; 2];
    /// The first two words of each of a panel's walkers, in the walkers' order, from the tiles that have four of each.
    fn first_two(tiles: [Self; 4]) -> [Self; 2];
}

macro_rules! portable {
    ($float:ident, $t:ty, $words:ident) => {
        impl Tile<$t> for portable::$float {
            #[inline(always)]
            fn repeat(from: &[$t; 4]) -> Self {
                portable::$float(std::array::from_fn(|l| from[l % 4]))
            }
            #[inline(always)]
            unsafe fn load_tile(base: *const $t, at: &[usize; 4], columns: usize) -> Self {
                let mut out = [0.0; LANES];
                for i in 0..4 {
                    for c in 0..columns {
                        // SAFETY: the caller's promise.
                        out[4 * i + c] = unsafe { *base.add(at[i] + c) };
                    }
                }
                portable::$float(out)
            }
            #[inline(always)]
            unsafe fn store_tile(self, base: *mut $t, at: &[usize; 4], columns: usize) {
                for i in 0..4 {
                    for c in 0..columns {
                        // SAFETY: the caller's promise.
                        unsafe { *base.add(at[i] + c) = self.0[4 * i + c] };
                    }
                }
            }
            #[inline(always)]
            fn spread(self) -> [Self; 4] {
                std::array::from_fn(|g| portable::$float(std::array::from_fn(|l| self.0[l / 4 * 4 + g])))
            }
            #[inline(always)]
            fn fold(tiles: [Self; 4]) -> Self {
                portable::$float(std::array::from_fn(|l| {
                    let (tile, at) = (&tiles[l % 4].0, l / 4 * 4);
                    (tile[at] + tile[at + 2]) + (tile[at + 1] + tile[at + 3])
                }))
            }
            #[inline(always)]
            fn in_turns(first: Self, second: Self) -> [Self; 2] {
                let of = |l: usize| {
                    let from = if l / 4 % 2 == 0 { &first.0 } else { &second.0 };
                    from[l / 8 * 4 + l % 4]
                };
                [
                    portable::$float(std::array::from_fn(of)),
                    portable::$float(std::array::from_fn(|l| of(LANES + l))),
                ]
            }
            #[inline(always)]
            fn zip(evens: Self, odds: Self) -> [Self; 2] {
                let of = |l: usize| if l % 2 == 0 { evens.0[l / 2] } else { odds.0[l / 2] };
                [
                    portable::$float(std::array::from_fn(of)),
                    portable::$float(std::array::from_fn(|l| of(LANES + l))),
                ]
            }
        }
        impl Unzip for portable::$words {
            #[inline(always)]
            fn unzip(a: Self, b: Self) -> [Self; 2] {
                let of = |l: usize| if l < LANES { a.0[l] } else { b.0[l - LANES] };
                [
                    portable::$words(std::array::from_fn(|l| of(2 * l))),
                    portable::$words(std::array::from_fn(|l| of(2 * l + 1))),
                ]
            }
            #[inline(always)]
            fn first_two(tiles: [Self; 4]) -> [Self; 2] {
                let of = |c: usize| portable::$words(std::array::from_fn(|l| tiles[l % 4].0[l / 4 * 4 + c]));
                [of(0), of(1)]
            }
        }
    };
}
portable!(F, f32, U);
portable!(D, f64, W);
