//! Convolutions as products: tables of offsets, made once per architecture. A linear layer is a convolution of a single place.

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
    /// Positions of the output per image.
    positions: usize,
    /// Where the patch of each position begins in the input.
    patches: Vec<u32>,
    /// Where the numbers of a patch lie, from there.
    taps: Vec<u32>,
    /// Where each position lies in the output, and in its gradient.
    to: Vec<u32>,
    to_gradient: Vec<u32>,
    /// Rows of the weight gradient.
    rows: Vec<u32>,
    back: Back,
}

/// How the gradient in the input is found: products over the outputs that a position reaches.
#[derive(Clone, Debug)]
enum Back {
    /// Many channels: one per vector lane. Positions are grouped by the kernel places that reach them, one product each.
    Phases(Vec<Phase>),
    /// Few channels: a tile of positions and channels takes the lanes.
    Tiles(Tiles),
}

/// Input positions with the same remainder modulo the stride.
#[derive(Clone, Debug)]
struct Phase {
    /// Kernel places that reach them: row and column.
    places: Vec<[usize; 2]>,
    /// Where each position's outputs begin in the gradient of the output, and the numbers from there.
    rows: Vec<u32>,
    terms: Vec<u32>,
    /// Where each position lies in the gradient of the input.
    to: Vec<u32>,
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

/// Zeros needed around the outputs, in one direction, so that every input finds one at every kernel place.
fn reaches(inputs: usize, outputs: usize, kernel: usize, stride: usize, padding: usize) -> usize {
    let (mut low, mut high) = (0, 0);
    for at in padding..inputs + padding {
        for place in (0..kernel).filter(|k| (at + kernel * stride - k).is_multiple_of(stride)) {
            let out = (at as isize - place as isize) / stride as isize;
            low = low.max(-out);
            high = high.max(out - (outputs as isize - 1));
        }
    }
    low.max(high) as usize
}

impl Conv {
    /// Zeros needed around the gradient of the output.
    pub fn gradient_margin(
        kernel: usize,
        src: [usize; 3],
        dst: [usize; 3],
        stride: usize,
        padding: usize,
    ) -> usize {
        if src[2] < LANE_CHANNELS {
            return Tiles::margin(kernel, src, dst, stride, padding);
        }
        let along = |d: usize| reaches(src[d], dst[d], kernel, stride, padding);
        along(0).max(along(1))
    }

    pub fn new(
        weights: Weights,
        (src, from): (usize, &Tensor),
        (dst, to): (usize, &Tensor),
        stride: usize,
        padding: usize,
        block: usize,
    ) -> Self {
        let (kernel, spare) = (weights.kernel, from.margin - padding);
        let mut patches = Vec::new();
        for n in 0..block {
            for y in 0..to.height {
                for x in 0..to.width {
                    let corner = from.width_all() * (y * stride + spare) + x * stride + spare;
                    patches.push((n * from.len() + corner * from.channels) as u32);
                }
            }
        }
        let row = from.width_all() * from.channels;
        let run = kernel * from.channels;
        let taps = (0..kernel * run).map(|k| (k / run * row + k % run) as u32).collect();
        let back = match from.channels < LANE_CHANNELS {
            true => Back::Tiles(Tiles::new(kernel, from, to, stride, padding, block)),
            false => Back::Phases(phases(kernel, from, to, stride, padding, block)),
        };
        let wide = padded(to.channels);
        let rows = (0..kernel * run).map(|k| (k * wide) as u32).collect();
        let (positions, to_gradient) = (to.places(), to.table(block, true));
        let to = to.table(block, false);
        Conv { src, dst, weights, positions, patches, taps, to, to_gradient, rows, back }
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
        pack(self.taps.len(), w.outputs, &mut packed.forward, |k| {
            &weights[k * w.outputs..(k + 1) * w.outputs]
        });
        // Transposed: a row for every kernel place and output, a column for every input.
        let mut turned = vec![T::ZERO; w.count()];
        let size = w.inputs * w.outputs;
        for (from, to) in weights.chunks_exact(size).zip(turned.chunks_exact_mut(size)) {
            for (i, row) in from.chunks_exact(w.outputs).enumerate() {
                row.iter().enumerate().for_each(|(o, &v)| to[o * w.inputs + i] = v);
            }
        }
        match &self.back {
            Back::Phases(phases) => {
                packed.back.resize_with(phases.len(), Vec::new);
                for (phase, out) in phases.iter().zip(&mut packed.back) {
                    let row = |k: usize| {
                        let [y, x] = phase.places[k / w.outputs];
                        let at = ((y * w.kernel + x) * w.outputs + k % w.outputs) * w.inputs;
                        &turned[at..at + w.inputs]
                    };
                    pack(phase.terms.len(), w.inputs, out, row);
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
        let positions = count * self.positions;
        let product = Product {
            a: src,
            rows: &self.patches[..positions],
            terms: &self.taps,
            b: &packed.forward,
            columns: self.weights.outputs,
            to: &self.to[..positions],
            start: Start::Row(&packed.bias),
        };
        multiply(isa, product, dst);
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
            Back::Phases(phases) => {
                for (phase, b) in phases.iter().zip(&packed.back) {
                    let rows = phase.rows.len() / (self.patches.len() / self.positions) * count;
                    let product = Product {
                        a: gradient,
                        rows: &phase.rows[..rows],
                        terms: &phase.terms,
                        b,
                        columns: self.weights.inputs,
                        to: &phase.to[..rows],
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
        fit(weights, self.taps.len() * wide);
        let weights = &mut weights[..self.taps.len() * wide];
        bias.clear();
        bias.resize(wide, T::ZERO);
        let images = POSITIONS.div_ceil(self.positions);
        for first in (0..p.len()).step_by(images) {
            let p = &p[first..p.len().min(first + images)];
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
            let product = Product {
                a: src,
                rows: &self.taps,
                terms: &self.patches[terms.clone()],
                b: &patches[..terms.len() * wide],
                columns: wide,
                to: &self.rows,
                start: if first == 0 { Start::Zero } else { Start::Present },
            };
            multiply(isa, product, weights);
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

/// Groups the input positions by the kernel places that reach them.
fn phases(
    kernel: usize,
    from: &Tensor,
    to: &Tensor,
    stride: usize,
    padding: usize,
    block: usize,
) -> Vec<Phase> {
    let mut all = Vec::new();
    let (margin, row) = (to.gradient_margin, to.gradient_width_all());
    let steps = |a: usize| (a..kernel).step_by(stride).count();
    for (a, b) in (0..stride * stride).map(|i| (i / stride, i % stride)) {
        let (down, across) = (steps(a), steps(b));
        // Outputs in ascending order are kernel places in descending order.
        let place = |j: usize, i: usize| [a + (down - 1 - j) * stride, b + (across - 1 - i) * stride];
        let places: Vec<_> = (0..down * across).map(|k| place(k / across, k % across)).collect();
        let terms = (0..down * across * to.channels).map(|k| {
            let (j, rest) = (k / (across * to.channels), k % (across * to.channels));
            (j * row * to.channels + rest) as u32
        });
        let mut phase = Phase { places, rows: Vec::new(), terms: terms.collect(), to: Vec::new() };
        for n in 0..block {
            for y in (0..from.height).filter(|y| (y + padding) % stride == a) {
                for x in (0..from.width).filter(|x| (x + padding) % stride == b) {
                    let first = |at: usize, steps: usize| (at + padding) / stride + margin + 1 - steps.max(1);
                    let corner = first(y, down) * row + first(x, across);
                    phase.rows.push((n * to.gradient_len() + corner * to.channels) as u32);
                    phase.to.push((from.row(n, y, true) + x * from.channels) as u32);
                }
            }
        }
        if !phase.rows.is_empty() {
            all.push(phase);
        }
    }
    all
}
