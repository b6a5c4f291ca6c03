//! Rows in panels of 16, dimension by dimension: whole vectors in the order in which kernels read them, none across two cache lines.

use crate::real::Real;
use crate::simd::{Isa, LANES, Simd, Vector, dispatch};

/// A number of each row of a panel.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(align(64))]
pub struct Lanes<T>(pub [T; LANES]);

/// Rows that do not change, or all at once: row `16 p + l` has its number `j` in lane `l` of vector `p dim + j`. Lanes beyond the last row are zero.
#[derive(Clone, Debug)]
pub struct Panels<T> {
    dim: usize,
    rows: usize,
    vectors: Vec<Lanes<T>>,
}

/// Some whole panels, the last of which may have fewer rows.
#[derive(Clone, Copy, Debug)]
pub struct PanelsOf<'a, T> {
    /// How many rows.
    pub rows: usize,
    /// Their vectors.
    pub vectors: &'a [Lanes<T>],
}

impl<T: Real> Panels<T> {
    /// Without rows.
    pub fn new(dim: usize) -> Self {
        Panels { dim, rows: 0, vectors: Vec::new() }
    }

    /// Takes rows in place of those that were here.
    pub fn fill(&mut self, rows: &[T]) {
        self.fill_on(Isa::best(), rows);
    }

    fn fill_on(&mut self, isa: Isa, rows: &[T]) {
        self.rows = rows.len() / self.dim;
        assert_eq!(rows.len(), self.rows * self.dim, "rows of another length");
        let vectors = self.rows.div_ceil(LANES) * self.dim;
        self.vectors.resize(vectors, Lanes([T::ZERO; LANES]));
        turn(isa, rows, self.dim, &mut self.vectors);
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Up to `count` rows from `first` on, which begins a panel.
    pub fn some(&self, first: usize, count: usize) -> PanelsOf<'_, T> {
        assert!(first.is_multiple_of(LANES) && first <= self.rows, "row {first} does not begin a panel");
        let rows = count.min(self.rows - first);
        let (from, to) = (first / LANES, (first + rows).div_ceil(LANES));
        PanelsOf { rows, vectors: &self.vectors[from * self.dim..to * self.dim] }
    }
}

/// Rows into panels.
#[inline(always)]
fn turn_rows<S: Simd, T: Real>(rows: &[T], dim: usize, vectors: &mut [Lanes<T>]) {
    let panels = rows.chunks(LANES * dim).zip(vectors.chunks_exact_mut(dim));
    for (rows, panel) in panels {
        if rows.len() < LANES * dim {
            for (j, Lanes(lanes)) in panel.iter_mut().enumerate() {
                *lanes = [T::ZERO; LANES];
                rows.iter().skip(j).step_by(dim).zip(lanes).for_each(|(x, lane)| *lane = *x);
            }
            continue;
        }
        let at: [usize; LANES] = std::array::from_fn(|l| l * dim);
        for (quad, panel) in panel.chunks_mut(4).enumerate() {
            // SAFETY: there are 16 rows of `dim` numbers, and as many of them from `4 quad` on as the chunk has vectors.
            let columns = unsafe { T::V::<S>::load_columns(rows.as_ptr().add(4 * quad), &at, panel.len()) };
            for (Lanes(lanes), column) in panel.iter_mut().zip(columns) {
                column.store(lanes);
            }
        }
    }
}

dispatch! { fn turn{T: Real}{T}(rows: &[T], dim: usize, vectors: &mut [Lanes<T>]) = turn_rows }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_in_its_lane() {
        fn check<T: Real>() {
            for (dim, rows) in [(1, 1), (1, 40), (2, 16), (5, 33), (50, 64), (67, 15)] {
                let x: Vec<T> = (0..rows * dim).map(|i| T::from_f64(1.0 + i as f64)).collect();
                for isa in Isa::available() {
                    let mut panels = Panels::new(dim);
                    // What was here before leaves no traces.
                    panels.fill_on(isa, &vec![T::from_f64(-1.0); (rows + 20) * dim]);
                    panels.fill_on(isa, &x);
                    assert_eq!((panels.rows(), panels.vectors.len()), (rows, rows.div_ceil(LANES) * dim));
                    for (p, panel) in panels.vectors.chunks(dim).enumerate() {
                        for (j, Lanes(lanes)) in panel.iter().enumerate() {
                            for (l, lane) in lanes.iter().enumerate() {
                                let expected = x.get((LANES * p + l) * dim + j).copied().unwrap_or(T::ZERO);
                                assert_eq!(*lane, expected, "{isa:?}, dim {dim}, row {}", LANES * p + l);
                            }
                        }
                    }
                    let some = panels.some(0, 20);
                    assert_eq!(
                        (some.rows, some.vectors.len()),
                        (rows.min(20), rows.min(20).div_ceil(16) * dim)
                    );
                }
            }
        }
        check::<f32>();
        check::<f64>();
    }
}
