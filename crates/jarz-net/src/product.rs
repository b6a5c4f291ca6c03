//! The one product behind every layer: a matrix product whose left factor is read through two tables of offsets.
//!
//! `C[i, j] = start + sum_k A[rows[i] + a_k] B[b_k, j]`. With positions of an image as rows and the places of a kernel as terms this is a
//! convolution, without copying patches; with the two exchanged it is the gradient in its weights; with taps on the gradient of
//! the output it is the gradient in its input. Every number of the result is one chain of fused multiply-adds in the order of the
//! terms, so it depends neither on how the result is cut into tiles nor on the instruction set.
//!
//! Terms come in runs. A table with an entry per term would be one more load per term, and loads are what limits narrow products; and runs can
//! leave out rows of the right factor that meet nothing but the zeros around an image.

use jarz::Real;
use jarz::simd::{Isa, LANES, Simd, Vector, dispatch};

/// Widest panel of the right factor, in vectors.
const PANEL: usize = 4;
/// Most runs that are used for all rows before going on.
const RUNS: usize = 64;
/// Bytes of a panel that are used for all rows before going on: most of the fastest cache.
const SHARE: usize = 32 * 1024;

/// What the sums start from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Start<'a, T> {
    /// Nothing.
    Zero,
    /// A row, padded to whole vectors.
    Row(&'a [T]),
    /// What is there already.
    Present,
}

/// Terms at equal distances in the left factor that belong to rows of the right factor one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Run {
    /// Where the first one lies in the left factor, from the beginning of a row.
    pub a: u32,
    /// From one to the next.
    pub step: u32,
    /// The first one's row of the right factor.
    pub b: u32,
    pub len: u32,
}

impl Run {
    /// Neighbouring terms.
    pub fn new(a: usize, b: usize, len: usize) -> Self {
        Run { a: a as u32, step: 1, b: b as u32, len: len as u32 }
    }

    /// Appends a run to others, as part of the last one if it goes on at the same distance.
    pub fn join(self, runs: &mut Vec<Run>) {
        if self.len == 0 {
            return;
        }
        if let Some(last) = runs.last_mut() {
            let end = last.a + (last.len - 1) * last.step;
            let (apart, goes_on) = (self.a.wrapping_sub(end), self.b == last.b + last.len && self.a > end);
            let fits = |run: &Run| run.len == 1 || run.step == apart;
            if goes_on && fits(last) && fits(&self) {
                (last.step, last.len) = (apart, last.len + self.len);
                return;
            }
        }
        runs.push(self);
    }

    /// What is left of it after `count` terms.
    fn after(self, count: u32) -> Self {
        Run { a: self.a + count * self.step, b: self.b + count, len: self.len - count, ..self }
    }
}

/// A product to be done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Product<'a, T> {
    /// The left factor.
    pub a: &'a [T],
    /// Where each row of it begins.
    pub rows: &'a [u32],
    /// The terms.
    pub runs: &'a [Run],
    /// The right factor in panels, see [`pack`], and its rows.
    pub b: &'a [T],
    pub depth: usize,
    /// Columns of the result.
    pub columns: usize,
    /// Where each row of the result begins.
    pub to: &'a [u32],
    /// What the sums start from.
    pub start: Start<'a, T>,
}

/// First column and width of each panel, in vectors: as few panels as possible, none of a single vector beside wide ones.
pub(crate) fn panels(columns: usize) -> impl Iterator<Item = (usize, usize)> {
    let vectors = columns.div_ceil(LANES);
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = vectors - at;
        let width = if rest == PANEL + 1 { PANEL - 1 } else { rest.min(PANEL) };
        at += width;
        (width > 0).then_some((at - width, width))
    })
}

/// Columns, with the padding of the last vector.
pub(crate) fn padded(columns: usize) -> usize {
    columns.next_multiple_of(LANES)
}

/// Arranges a right factor: panel after panel, in each the rows one after the other. `row(k)` is row `k`.
pub(crate) fn pack<'r, T: Real>(
    terms: usize,
    columns: usize,
    out: &mut Vec<T>,
    row: impl Fn(usize) -> &'r [T],
) {
    out.clear();
    out.resize(terms * padded(columns), T::ZERO);
    for (first, width) in panels(columns) {
        let (from, wide) = (first * LANES, width * LANES);
        let part = from..columns.min(from + wide);
        for k in 0..terms {
            let at = terms * from + k * wide;
            out[at..at + part.len()].copy_from_slice(&row(k)[part.clone()]);
        }
    }
}

/// Computes a product.
pub(crate) fn multiply<T: Real>(isa: Isa, product: Product<'_, T>, c: &mut [T]) {
    let Product { a, rows, runs, b, depth, columns, to, start } = product;
    let top = |offsets: &[u32]| offsets.iter().fold(0, |top, &o| top.max(o)) as usize;
    if rows.is_empty() || columns == 0 {
        return;
    }
    let last = |run: &Run| run.a as usize + (run.len.max(1) - 1) as usize * run.step as usize;
    let furthest = runs.iter().map(last).max();
    assert!(furthest.is_none_or(|f| top(rows) + f < a.len()), "a factor is read beyond its end");
    assert!(
        runs.iter().all(|r| r.len == 0 || (r.b + r.len) as usize <= depth),
        "a run is longer than its factor"
    );
    assert!(rows.len() == to.len() && top(to) + columns <= c.len(), "a product does not fit its place");
    assert!(b.len() >= depth * padded(columns), "a factor is too short");
    if let Start::Row(row) = start {
        assert!(row.len() >= padded(columns), "a first row is too short");
    }
    // SAFETY: all that is read and written was just checked to be there.
    multiply_on(isa, product, isa, c)
}

dispatch! { fn multiply_on{T: Real}{T}(product: Product<'_, T>, on: Isa, c: &mut [T]) = all_panels }

#[inline(always)]
fn all_panels<S: Simd, T: Real>(p: Product<'_, T>, on: Isa, c: &mut [T]) {
    // Sums that the registers hold: rows x vectors; with fewer rows where fewer are left.
    for (first, width) in panels(p.columns) {
        match (on, size_of::<T>()) {
            (Isa::Avx512, 4) => match width {
                4 => panel::<S, T, 6, 4, 2, 4>(&p, first, 4, c),
                3 => panel::<S, T, 8, 4, 2, 3>(&p, first, 3, c),
                2 => panel::<S, T, 8, 4, 2, 2>(&p, first, 2, c),
                _ => panel::<S, T, 10, 6, 2, 1>(&p, first, 1, c),
            },
            (Isa::Avx512, _) => match width {
                2 | 4 => panel::<S, T, 6, 4, 2, 2>(&p, first, width, c),
                _ => panel::<S, T, 12, 6, 2, 1>(&p, first, width, c),
            },
            (_, 4) => panel::<S, T, 6, 3, 1, 1>(&p, first, width, c),
            _ => panel::<S, T, 3, 2, 1, 1>(&p, first, width, c),
        }
    }
}

/// One panel, in tiles of `N` rows and `V` vectors; `H` or `Q` rows where fewer are left.
#[inline(always)]
fn panel<S: Simd, T: Real, const N: usize, const H: usize, const Q: usize, const V: usize>(
    p: &Product<'_, T>,
    first: usize,
    width: usize,
    c: &mut [T],
) {
    let share = (SHARE / (width * LANES * size_of::<T>())).max(1) as u32;
    let (mut runs, mut rest, mut begun) = (p.runs.iter(), Run::default(), false);
    loop {
        // The next runs whose part of the panel stays in cache.
        let (mut part, mut count, mut left) = ([Run::default(); RUNS], 0, share);
        while left > 0 && count < RUNS {
            if rest.len == 0 {
                match runs.next() {
                    Some(run) => rest = *run,
                    None => break,
                }
            }
            let len = rest.len.min(left);
            part[count] = Run { len, ..rest };
            (rest, left, count) = (rest.after(len), left - len, count + 1);
        }
        if begun && count == 0 {
            return;
        }
        let (part, start) = (&part[..count], if begun { Start::Present } else { p.start });
        for vectors in (0..width).step_by(V) {
            let mut at = 0;
            while at < p.rows.len() {
                let rows = p.rows.len() - at;
                at += if rows > H {
                    tile::<S, T, N, V>(p, first, width, vectors, at, part, start, c)
                } else if rows > Q {
                    tile::<S, T, H, V>(p, first, width, vectors, at, part, start, c)
                } else {
                    tile::<S, T, Q, V>(p, first, width, vectors, at, part, start, c)
                };
            }
        }
        begun = true;
    }
}

/// Rows `at .. at + N` (or what there is of them) in vectors `first + part ..` of the result. Gives `N`.
#[inline(always)]
fn tile<S: Simd, T: Real, const N: usize, const V: usize>(
    p: &Product<'_, T>,
    first: usize,
    width: usize,
    part: usize,
    at: usize,
    runs: &[Run],
    start: Start<'_, T>,
    c: &mut [T],
) -> usize {
    let count = N.min(p.rows.len() - at);
    let from = (first + part) * LANES;
    let lanes = (p.columns - from).min(V * LANES);
    let whole = count == N && lanes == V * LANES;
    let mut edge = [[[T::ZERO; LANES]; V]; N];
    let mut sums = [[T::splat::<S>(T::ZERO); V]; N];
    // Sums stay in registers only if every index into them is known when compiling: tiles at an edge go through memory.
    // SAFETY (of all that follows): `multiply` checked the lengths; rows beyond the last repeat it and are not stored.
    unsafe {
        match start {
            Start::Zero => {}
            Start::Row(row) => {
                for i in 0..N {
                    for v in 0..V {
                        sums[i][v] = T::V::<S>::load(&*row.as_ptr().add(from + v * LANES).cast());
                    }
                }
            }
            Start::Present if whole => {
                for i in 0..N {
                    let there = c.as_ptr().add(p.to[at + i] as usize + from);
                    for v in 0..V {
                        sums[i][v] = T::V::<S>::load(&*there.add(v * LANES).cast());
                    }
                }
            }
            Start::Present => {
                for i in 0..count {
                    let there = p.to[at + i] as usize + from;
                    edge[i].as_flattened_mut()[..lanes].copy_from_slice(&c[there..there + lanes]);
                }
                for i in 0..N {
                    for v in 0..V {
                        sums[i][v] = T::V::<S>::load(&edge[i][v]);
                    }
                }
            }
        }
        let mut a = [p.a.as_ptr(); N];
        for i in 0..N {
            a[i] = a[i].add(p.rows[at + i.min(count - 1)] as usize);
        }
        let stride = width * LANES;
        let panel = p.b.as_ptr().add(p.depth * first * LANES + part * LANES);
        for run in runs {
            let (mut k, step) = (run.a as usize, run.step as usize);
            let mut b = panel.add(run.b as usize * stride);
            for _ in 0..run.len {
                let mut row = [sums[0][0]; V];
                for v in 0..V {
                    row[v] = T::V::<S>::load(&*b.add(v * LANES).cast());
                }
                for i in 0..N {
                    let x = T::splat::<S>(*a[i].add(k));
                    for v in 0..V {
                        sums[i][v] = x.mul_add(row[v], sums[i][v]);
                    }
                }
                k += step;
                b = b.add(stride);
            }
        }
        if whole {
            for i in 0..N {
                let there = c.as_mut_ptr().add(p.to[at + i] as usize + from);
                for v in 0..V {
                    sums[i][v].store(&mut *there.add(v * LANES).cast());
                }
            }
        } else {
            for i in 0..N {
                for v in 0..V {
                    sums[i][v].store(&mut edge[i][v]);
                }
            }
            for i in 0..count {
                let there = p.to[at + i] as usize + from;
                c[there..there + lanes].copy_from_slice(&edge[i].as_flattened()[..lanes]);
            }
        }
    }
    N
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers with no pattern that a mistake could hide in.
    fn numbers<T: Real>(count: usize, salt: u64) -> Vec<T> {
        let random = jarz::Random::new(salt);
        (0..count as u64)
            .map(|i| T::from_f64(random.uniform(0, i, jarz::Purpose::User) * 2.0 - 1.0))
            .collect()
    }

    /// The definition, term after term.
    fn plain<T: Real>(p: &Product<'_, T>, b: &[T], c: &mut [T]) {
        for i in 0..p.rows.len() {
            for j in 0..p.columns {
                let to = p.to[i] as usize + j;
                let mut sum = match p.start {
                    Start::Zero => T::ZERO,
                    Start::Row(row) => row[j],
                    Start::Present => c[to],
                };
                for run in p.runs {
                    for k in 0..run.len {
                        let a = p.a[(p.rows[i] + run.a + k * run.step) as usize];
                        sum = a.mul_add(b[(run.b + k) as usize * p.columns + j], sum);
                    }
                }
                c[to] = sum;
            }
        }
    }

    fn agrees<T: Real>() {
        for columns in [1, 3, 16, 17, 32, 48, 64, 70, 80, 130] {
            for (rows, terms) in [(1, 1), (2, 9), (5, 0), (7, 25), (13, 40), (16, 3), (31, 7), (6, 700)] {
                let a = numbers::<T>(3 * rows + 4 * terms + 8, 1);
                let b = numbers::<T>(terms * columns, 2);
                let bias = numbers::<T>(padded(columns), 3);
                let row_at: Vec<u32> = (0..rows as u32).map(|i| 3 * i).collect();
                // Neighbours, then one row left out and the rest two apart.
                let half = terms / 2;
                let mut runs = vec![Run::new(1, 0, half)];
                let rest = terms.saturating_sub(half + 1) as u32;
                runs.push(Run { a: half as u32 + 3, step: 2, b: half as u32 + 1, len: rest });
                let to: Vec<u32> = (0..rows as u32).rev().map(|i| i * (columns as u32 + 5)).collect();
                let mut panels = Vec::new();
                pack(terms, columns, &mut panels, |k| &b[k * columns..(k + 1) * columns]);
                for start in [Start::Zero, Start::Row(&bias), Start::Present] {
                    let p = Product {
                        a: &a,
                        rows: &row_at,
                        runs: &runs,
                        b: &panels,
                        depth: terms,
                        columns,
                        to: &to,
                        start,
                    };
                    let before = numbers::<T>(rows * (columns + 5), 4);
                    let mut expected = before.clone();
                    plain(&p, &b, &mut expected);
                    for isa in Isa::available() {
                        let mut c = before.clone();
                        multiply(isa, p, &mut c);
                        assert_eq!(c, expected, "{isa:?} {rows} x {terms} x {columns}");
                    }
                }
            }
        }
    }

    #[test]
    fn every_instruction_set_gives_the_bits_of_the_definition() {
        agrees::<f32>();
        agrees::<f64>();
    }

    #[test]
    #[should_panic(expected = "beyond its end")]
    fn a_factor_that_is_too_short_is_noticed() {
        let (a, b, mut c) = ([1.0f32; 4], [1.0; 16], [0.0; 1]);
        let (runs, start) = ([Run::new(1, 0, 1)], Start::Zero);
        let p = Product { a: &a, rows: &[3], runs: &runs, b: &b, depth: 1, columns: 1, to: &[0], start };
        multiply(Isa::best(), p, &mut c);
    }

    #[test]
    fn runs_at_the_same_distance_become_one() {
        let mut runs = Vec::new();
        for run in
            [Run::new(0, 0, 3), Run::new(3, 3, 2), Run::new(9, 5, 0), Run::new(9, 5, 1), Run::new(14, 6, 1)]
        {
            run.join(&mut runs);
        }
        assert_eq!(runs, [Run::new(0, 0, 5), Run { a: 9, step: 5, b: 5, len: 2 }]);
        Run::new(19, 8, 1).join(&mut runs);
        assert_eq!(runs.len(), 3, "a row of the right factor lies between");
    }
}
