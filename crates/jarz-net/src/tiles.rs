//! Gradients in inputs of few channels: the lanes of a vector hold a tile of neighbouring positions with their channels.

use crate::architecture::Weights;
use crate::conv::fit;
use crate::product::{Product, Run, Start, multiply, pack, padded};
use crate::tensor::Tensor;
use jarz::Real;
use jarz::simd::Isa;

/// Tiles with more lanes than this are not tried.
const MOST_LANES: usize = 64;

/// The way one direction is cut: positions per tile, and outputs that reach them.
#[derive(Clone, Copy, Debug)]
struct Cut {
    /// Positions of a tile, a multiple of the stride.
    tile: usize,
    tiles: usize,
    /// First output that reaches the first tile (may lie before the first there is), and how many do.
    first: isize,
    reach: usize,
    /// Outputs between the first of a tile and that of the next.
    step: usize,
    /// Zeros needed around the outputs.
    margin: usize,
}

impl Cut {
    fn new(tile: usize, inputs: usize, outputs: usize, kernel: usize, stride: usize, padding: usize) -> Self {
        let (s, p, k) = (stride as isize, padding as isize, kernel as isize);
        let first = (p - (k - 1)).div_euclid(s) + isize::from((p - (k - 1)).rem_euclid(s) != 0);
        let last = (tile as isize - 1 + p).div_euclid(s);
        let (tiles, step) = (inputs.div_ceil(tile), tile / stride);
        let end = last + ((tiles - 1) * step) as isize;
        let margin = (-first).max(end - (outputs as isize - 1)).max(0) as usize;
        Cut { tile, tiles, first, reach: (last - first + 1).max(0) as usize, step, margin }
    }

    /// Kernel place between position `at` of a tile and output `out` of those that reach it.
    fn place(&self, at: usize, out: usize, kernel: usize, stride: usize, padding: usize) -> Option<usize> {
        let place = (at + padding) as isize - stride as isize * (self.first + out as isize);
        usize::try_from(place).ok().filter(|p| *p < kernel)
    }
}

/// The two directions, cut so that the product is smallest.
fn cuts(kernel: usize, src: [usize; 3], dst: [usize; 3], stride: usize, padding: usize) -> [Cut; 2] {
    let sizes = || (1..=8).map(|n| n * stride);
    let pairs = sizes().flat_map(|h| sizes().map(move |w| [h, w]));
    let fits = |[h, w]: &[usize; 2]| h * w * src[2] <= MOST_LANES || [*h, *w] == [stride; 2];
    let cut = |[h, w]: [usize; 2]| {
        [
            Cut::new(h, src[0], dst[0], kernel, stride, padding),
            Cut::new(w, src[1], dst[1], kernel, stride, padding),
        ]
    };
    let cost = |[y, x]: &[Cut; 2]| y.tiles * x.tiles * y.reach * x.reach * padded(y.tile * x.tile * src[2]);
    let best = pairs.filter(fits).map(cut).min_by_key(cost);
    best.unwrap_or_else(|| cut([stride; 2]))
}

/// Tables for one convolution.
#[derive(Clone, Debug)]
pub(crate) struct Tiles {
    cuts: [Cut; 2],
    kernel: usize,
    stride: usize,
    padding: usize,
    lanes: usize,
    /// Where the outputs that reach each tile begin, and the numbers from there.
    rows: Vec<u32>,
    runs: Vec<Run>,
    terms: usize,
    /// Where each tile goes.
    to: Vec<u32>,
}

impl Tiles {
    /// Zeros needed around the gradient of the output.
    pub fn margin(kernel: usize, src: [usize; 3], dst: [usize; 3], stride: usize, padding: usize) -> usize {
        cuts(kernel, src, dst, stride, padding).iter().map(|c| c.margin).fold(0, usize::max)
    }

    pub fn new(
        kernel: usize,
        from: &Tensor,
        to: &Tensor,
        stride: usize,
        padding: usize,
        block: usize,
    ) -> Self {
        let cuts = cuts(kernel, from.sides(), to.sides(), stride, padding);
        let [y, x] = cuts;
        let (row, c, margin) = (to.gradient_width_all(), to.channels, to.gradient_margin as isize);
        let lanes = y.tile * x.tile * from.channels;
        let corner = |n: usize, t: usize, u: usize| {
            let at = |cut: Cut, t: usize| (cut.first + margin) as usize + t * cut.step;
            (n * to.gradient_len() + (at(y, t) * row + at(x, u)) * c) as u32
        };
        let tiles = (0..block * y.tiles * x.tiles)
            .map(|i| corner(i / (y.tiles * x.tiles), i / x.tiles % y.tiles, i % x.tiles));
        let mut runs = Vec::new();
        (0..y.reach).for_each(|j| Run::new(j * row * c, j * x.reach * c, x.reach * c).join(&mut runs));
        let rows: Vec<u32> = tiles.collect();
        let to = (0..rows.len()).map(|i| (i * padded(lanes)) as u32).collect();
        Tiles { cuts, kernel, stride, padding, lanes, terms: y.reach * x.reach * c, rows, runs, to }
    }

    /// `turned` has the weights by kernel place, output, input.
    pub fn pack<T: Real>(&self, w: &Weights, turned: &[T], out: &mut Vec<T>) {
        let [y, x] = self.cuts;
        let wide = padded(self.lanes);
        let mut rows = vec![T::ZERO; self.terms * wide];
        for (k, row) in rows.chunks_exact_mut(wide).enumerate() {
            let (j, i, o) = (k / (x.reach * w.outputs), k / w.outputs % x.reach, k % w.outputs);
            for (at, lane) in row[..self.lanes].chunks_exact_mut(w.inputs).enumerate() {
                let across = x.place(at % x.tile, i, self.kernel, self.stride, self.padding);
                let down = y.place(at / x.tile, j, self.kernel, self.stride, self.padding);
                if let (Some(down), Some(across)) = (down, across) {
                    let first = ((down * self.kernel + across) * w.outputs + o) * w.inputs;
                    lane.copy_from_slice(&turned[first..first + w.inputs]);
                }
            }
        }
        pack(self.terms, wide, out, |k| &rows[k * wide..(k + 1) * wide]);
    }

    pub fn backward<T: Real>(
        &self,
        isa: Isa,
        b: &[T],
        count: usize,
        from: &Tensor,
        add: bool,
        gradient: &[T],
        out: &mut [T],
        scratch: &mut Vec<T>,
    ) {
        let [y, x] = self.cuts;
        let tiles = count * y.tiles * x.tiles;
        let wide = padded(self.lanes);
        fit(scratch, tiles * wide);
        let product = Product {
            a: gradient,
            rows: &self.rows[..tiles],
            runs: &self.runs,
            b,
            depth: self.terms,
            columns: wide,
            to: &self.to[..tiles],
            start: Start::Zero,
        };
        multiply(isa, product, scratch);
        let run = x.tile * from.channels;
        for (i, to) in from.rows(count, true).enumerate() {
            let (n, row) = (i / from.height, i % from.height);
            let tiles = (n * y.tiles + row / y.tile) * x.tiles;
            let out = &mut out[to..to + from.row_len()];
            for (u, out) in out.chunks_mut(run).enumerate() {
                let lanes = &scratch[(tiles + u) * wide + row % y.tile * run..][..out.len()];
                match add {
                    true => out.iter_mut().zip(lanes).for_each(|(o, l)| *o += *l),
                    false => out.copy_from_slice(lanes),
                }
            }
        }
    }
}
