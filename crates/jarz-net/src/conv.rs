//! Convolutions as products: tables of offsets, made once per architecture. A linear layer is a convolution of a single place.

use crate::parts::{self, Line, Part};
use crate::product::{Product, Start, multiply, pack, padded, panels};
use crate::tensor::Tensor;
use crate::tiles::Tiles;
use crate::{architecture::Weights, functions};
use jarz::Real;
use jarz::simd::{Isa, LANES};

/// Channels of the input from which on its gradient is found with one channel per vector lane; fewer would leave lanes empty.
const LANE_CHANNELS: usize = 8;
/// Positions that a weight gradient adds up at a time: their gradients stay in the fastest cache.
const POSITIONS: usize = 64;

/// A convolution between two tensors, for blocks of up to `block` images.
#[derive(Clone, Debug)]
pub(crate) struct Conv {
    pub src: usize,
    pub dst: usize,
    pub weights: Weights,
    block: usize,
    /// Positions of the output per image.
    positions: usize,
    /// Numbers of a stored input.
    stored: usize,
    /// Where each position lies in the gradient of the output.
    to_gradient: Vec<u32>,
    forward: Vec<Part>,
    /// The weight gradient, of `images` images and of one (if a block does not divide by them).
    images: usize,
    several: Vec<Part>,
    single: Vec<Part>,
    back: Back,
}

/// How the gradient in the input is found: products over the outputs that a position reaches.
#[derive(Clone, Debug)]
enum Back {
    /// Many channels: one per vector lane. Positions are grouped by the kernel places that reach them; there is a factor for every phase.
    Phases { parts: Vec<Part>, factors: Vec<Vec<[usize; 2]>> },
    /// Few channels: a tile of positions and channels takes the lanes.
    Tiles(Tiles),
}

/// A convolution's weights, arranged for its products.
#[derive(Clone, Debug, Default)]
pub(crate) struct Packed<T> {
    forward: Vec<T>,
    bias: Vec<T>,
    back: Vec<Vec<T>>,
}

/// Memory shared by all layers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch<T> {
    /// Tiles of a gradient, or scaled gradients of outputs.
    pub patches: Vec<T>,
    /// Gradient of one layer's weights and bias.
    pub weights: Vec<T>,
    pub bias: Vec<T>,
}

/// Whether an input has so few channels that its gradient is found by tiles, and zeros are stored around it: its weight gradient has too few
/// rows to be cut into groups of places.
fn is_narrow(src: [usize; 3]) -> bool {
    src[2] < LANE_CHANNELS
}

impl Conv {
    /// Zeros needed around the input.
    pub fn margin(src: [usize; 3], padding: usize) -> usize {
        if is_narrow(src) { padding } else { 0 }
    }

    /// Zeros needed around the gradient of the output.
    pub fn gradient_margin(
        kernel: usize,
        src: [usize; 3],
        dst: [usize; 3],
        stride: usize,
        padding: usize,
    ) -> usize {
        if is_narrow(src) { Tiles::margin(kernel, src, dst, stride, padding) } else { 0 }
    }

    pub fn new(
        weights: Weights,
        (src, from): (usize, &Tensor),
        (dst, to): (usize, &Tensor),
        stride: usize,
        padding: usize,
        block: usize,
    ) -> Self {
        let (kernel, narrow) = (weights.kernel, is_narrow(from.sides()));
        let line = |inputs, outputs| Line { inputs, outputs, kernel, stride, padding };
        let lines = [line(from.height, to.height), line(from.width, to.width)];
        let back = if narrow {
            Back::Tiles(Tiles::new(kernel, from, to, stride, padding, block))
        } else {
            let (parts, factors) = parts::backward(lines, from, to, block);
            Back::Phases { parts, factors }
        };
        let positions = to.places();
        let images = POSITIONS.div_ceil(positions).min(block);
        let gradient_of = |n| parts::weights(lines, from, to, n, padded(to.channels), narrow);
        Conv {
            src,
            dst,
            weights,
            block,
            positions,
            stored: from.len(),
            to_gradient: to.table(block, true),
            forward: parts::forward(lines, from, to, block),
            images,
            several: gradient_of(images),
            single: if images > 1 { gradient_of(1) } else { Vec::new() },
            back,
        }
    }

    /// Numbers of a kernel for one output.
    fn taps(&self) -> usize {
        self.weights.count() / self.weights.outputs.max(1)
    }

    /// Arranges weights (kernel row, kernel column, input, output) and bias.
    pub fn pack<T: Real>(&self, params: &[f64], packed: &mut Packed<T>) {
        let w = &self.weights;
        let params = &params[w.first..w.first + w.count() + w.outputs];
        let cast: Vec<T> = params.iter().map(|&v| T::from_f64(v)).collect();
        let (weights, bias) = cast.split_at(w.count());
        packed.bias.clear();
        packed.bias.extend_from_slice(bias);
        packed.bias.resize(padded(w.outputs), T::ZERO);
        pack(self.taps(), w.outputs, &mut packed.forward, |k| &weights[k * w.outputs..(k + 1) * w.outputs]);
        // Transposed: a row for every kernel place and output, a column for every input.
        let mut turned = vec![T::ZERO; w.count()];
        let size = w.inputs * w.outputs;
        for (from, to) in weights.chunks_exact(size).zip(turned.chunks_exact_mut(size)) {
            for (i, row) in from.chunks_exact(w.outputs).enumerate() {
                row.iter().enumerate().for_each(|(o, &v)| to[o * w.inputs + i] = v);
            }
        }
        match &self.back {
            Back::Phases { factors, .. } => {
                packed.back.resize_with(factors.len(), Vec::new);
                for (places, out) in factors.iter().zip(&mut packed.back) {
                    let row = |k: usize| {
                        let [y, x] = places[k / w.outputs];
                        let at = ((y * w.kernel + x) * w.outputs + k % w.outputs) * w.inputs;
                        &turned[at..at + w.inputs]
                    };
                    pack(places.len() * w.outputs, w.inputs, out, row);
                }
            }
            Back::Tiles(tiles) => {
                packed.back.resize_with(1, Vec::new);
                tiles.pack(w, &turned, &mut packed.back[0]);
            }
        }
    }

    /// The output of `count` images.
    pub fn forward<T: Real>(&self, isa: Isa, packed: &Packed<T>, count: usize, src: &[T], dst: &mut [T]) {
        for part in &self.forward {
            let rows = part.rows.len() / self.block * count;
            let product = Product {
                a: src,
                rows: &part.rows[..rows],
                runs: &part.runs,
                b: &packed.forward,
                depth: self.taps(),
                columns: self.weights.outputs,
                to: &part.to[..rows],
                start: Start::Row(&packed.bias),
            };
            multiply(isa, product, dst);
        }
    }

    /// The gradient in the input from that in the output, `add`ed to what is there or in its place.
    pub fn backward<T: Real>(
        &self,
        isa: Isa,
        packed: &Packed<T>,
        count: usize,
        from: &Tensor,
        add: bool,
        gradient: &[T],
        out: &mut [T],
        scratch: &mut Scratch<T>,
    ) {
        match &self.back {
            Back::Phases { parts, factors } => {
                for part in parts {
                    let rows = part.rows.len() / self.block * count;
                    let product = Product {
                        a: gradient,
                        rows: &part.rows[..rows],
                        runs: &part.runs,
                        b: &packed.back[part.factor],
                        depth: factors[part.factor].len() * self.weights.outputs,
                        columns: self.weights.inputs,
                        to: &part.to[..rows],
                        start: if add { Start::Present } else { Start::Zero },
                    };
                    multiply(isa, product, out);
                }
            }
            Back::Tiles(tiles) => {
                let b = &packed.back[0];
                tiles.backward(isa, b, count, from, add, gradient, out, &mut scratch.patches)
            }
        }
    }

    /// Adds `sum_i p_i dU_i / d(weights, bias)` to `out`, from the input and the gradient in the output.
    pub fn add_weight_gradient<T: Real>(
        &self,
        isa: Isa,
        p: &[T],
        src: &[T],
        gradient: &[T],
        scratch: &mut Scratch<T>,
        out: &mut [f64],
    ) {
        let (w, wide) = (&self.weights, padded(self.weights.outputs));
        let Scratch { patches, weights, bias, .. } = scratch;
        fit(weights, self.taps() * wide);
        let weights = &mut weights[..self.taps() * wide];
        bias.clear();
        bias.resize(wide, T::ZERO);
        let mut first = 0;
        while first < p.len() {
            let (images, parts) = match p.len() - first >= self.images {
                true => (self.images, &self.several),
                false => (1, &self.single),
            };
            let p = &p[first..first + images];
            let terms = first * self.positions..(first + p.len()) * self.positions;
            fit(patches, terms.len() * wide);
            for (from, width) in panels(w.outputs) {
                let (from, width) = (from * LANES, width * LANES);
                let columns = width.min(w.outputs - from);
                let scaled = &mut patches[terms.len() * from..][..terms.len() * width];
                let rows = &self.to_gradient[terms.clone()];
                functions::scale_rows(
                    isa,
                    &gradient[from..],
                    rows,
                    p,
                    columns,
                    width,
                    scaled,
                    &mut bias[from..from + width],
                );
            }
            for part in parts {
                let product = Product {
                    a: &src[first * self.stored..],
                    rows: &part.rows,
                    runs: &part.runs,
                    b: &patches[..terms.len() * wide],
                    depth: terms.len(),
                    columns: wide,
                    to: &part.to,
                    start: if first == 0 { Start::Zero } else { Start::Present },
                };
                multiply(isa, product, weights);
            }
            first += images;
        }
        let (for_weights, for_bias) = out[w.first..w.first + w.count() + w.outputs].split_at_mut(w.count());
        if wide == w.outputs {
            functions::accumulate(isa, weights, for_weights);
        } else {
            for (row, out) in weights.chunks_exact(wide).zip(for_weights.chunks_exact_mut(w.outputs)) {
                functions::accumulate(isa, &row[..w.outputs], out);
            }
        }
        functions::accumulate(isa, &bias[..w.outputs], for_bias);
    }
}

pub(crate) fn fit<T: Real>(buffer: &mut Vec<T>, len: usize) {
    if buffer.len() < len {
        buffer.resize(len, T::ZERO);
    }
}
