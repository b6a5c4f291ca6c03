//! The engine: blocks of images through all layers and back.
//!
//! One backward pass serves both gradients. Gradients in the layers' outputs do not know of the walkers' weights; these come in only when the
//! products that make weight gradients are done, later, from what the block has kept.

use crate::architecture::Architecture;
use crate::conv::{Packed, Scratch};
use crate::copies::{Rows, enter, leave, pool, reshape, runs, unpool};
use crate::error::Error;
use crate::functions::{activate, scale};
use crate::plan::{Op, Plan};
use crate::tensor::Tensor;
use jarz::Real;
use jarz::simd::Isa;
use std::sync::Arc;

/// A network with its parameters.
#[derive(Clone, Debug)]
pub struct Network<T> {
    architecture: Arc<Architecture>,
    plan: Arc<Plan>,
    params: Vec<f64>,
    /// One per convolution or linear layer.
    packed: Vec<Packed<T>>,
    isa: Isa,
}

/// What a network keeps of the images it has seen last; reused from call to call.
#[derive(Clone, Debug, Default)]
pub struct Workspace<T> {
    blocks: Vec<Block<T>>,
    scratch: Scratch<T>,
    images: usize,
}

/// A block of images on its way.
#[derive(Clone, Debug, Default)]
struct Block<T> {
    count: usize,
    /// Per tensor.
    values: Vec<Vec<T>>,
    gradients: Vec<Vec<T>>,
    /// Derivatives of activations, per operation.
    slopes: Vec<Vec<T>>,
    /// Whether the gradients belong to the values.
    went_back: bool,
}

impl<T: Real> Block<T> {
    /// Memory for one block of a plan. What lies around images is zero and stays so.
    fn new(plan: &Plan) -> Self {
        let zeros = |n: usize| vec![T::ZERO; n * plan.block];
        Block {
            count: 0,
            values: plan.tensors.iter().map(|t| zeros(t.len())).collect(),
            gradients: plan.tensors.iter().map(|t| zeros(t.gradient_len())).collect(),
            slopes: plan
                .ops
                .iter()
                .map(|op| match op {
                    Op::Activate { at, .. } => zeros(plan.tensors[*at].places() * plan.tensors[*at].channels),
                    _ => Vec::new(),
                })
                .collect(),
            went_back: false,
        }
    }
}

impl<T: Real> Network<T> {
    /// A network with all parameters zero.
    pub fn new(architecture: &Architecture) -> Result<Self, Error> {
        let plan = Plan::new(architecture, size_of::<T>())?;
        let convolutions = plan.ops.iter().filter(|op| matches!(op, Op::Conv(_))).count();
        let mut network = Network {
            architecture: Arc::new(architecture.clone()),
            params: vec![0.0; plan.params],
            packed: vec![Packed::default(); convolutions],
            plan: Arc::new(plan),
            isa: Isa::best(),
        };
        network.arrange();
        Ok(network)
    }

    /// Its architecture.
    pub fn architecture(&self) -> &Architecture {
        &self.architecture
    }

    /// Its parameters.
    pub fn params(&self) -> &[f64] {
        &self.params
    }

    /// Replaces the parameters; there must be as many.
    pub fn set_params(&mut self, params: &[f64]) {
        self.params.copy_from_slice(params);
        self.arrange();
    }

    fn arrange(&mut self) {
        for (conv, packed) in convolutions(&self.plan).zip(&mut self.packed) {
            conv.pack(&self.params, packed);
        }
    }

    /// Numbers of an input.
    pub fn inputs(&self) -> usize {
        self.plan.inputs()
    }

    /// Numbers of an output.
    pub fn outputs(&self) -> usize {
        self.plan.outputs()
    }

    /// Images that go through the layers together.
    pub fn block(&self) -> usize {
        self.plan.block
    }

    /// The outputs of all images of `x`, row after row.
    pub fn forward(&self, x: &[T], out: &mut [T], workspace: &mut Workspace<T>) {
        self.each_block(x, out, workspace, |_, _, _| {});
    }

    /// As [`Network::forward`] and then [`Network::backward`], but block after block, each while it is in cache. All images have the same gradient
    /// `outputs` in their outputs.
    pub fn forward_and_backward(
        &self,
        x: &[T],
        out: &mut [T],
        outputs: &[T],
        gradient: &mut [T],
        workspace: &mut Workspace<T>,
    ) {
        let (inputs, all) =
            (self.inputs(), outputs.repeat(self.plan.block.min(x.len() / self.inputs().max(1))));
        self.each_block(x, out, workspace, |i, block, scratch| {
            self.backward_block(&all[..block.count * outputs.len()], true, block, scratch);
            let gradient = &mut gradient[i * self.plan.block * inputs..][..block.count * inputs];
            leave(&self.plan.tensors[0], true, &block.gradients[0], gradient);
        });
    }

    /// Blocks of images through all layers, and what is to follow for each.
    fn each_block(
        &self,
        x: &[T],
        out: &mut [T],
        workspace: &mut Workspace<T>,
        mut then: impl FnMut(usize, &mut Block<T>, &mut Scratch<T>),
    ) {
        let (inputs, outputs) = (self.inputs(), self.outputs());
        workspace.images = x.len() / inputs;
        let rows = x.chunks(self.plan.block * inputs).zip(out.chunks_mut(self.plan.block * outputs));
        for (i, (x, out)) in rows.enumerate() {
            if workspace.blocks.len() == i {
                workspace.blocks.push(Block::new(&self.plan));
            }
            let block = &mut workspace.blocks[i];
            block.count = x.len() / inputs;
            block.went_back = false;
            enter(&self.plan.tensors[0], x, &mut block.values[0]);
            self.forward_block(block);
            let last = self.plan.tensors.len() - 1;
            leave(&self.plan.tensors[last], false, &block.values[last], out);
            then(i, block, &mut workspace.scratch);
        }
    }

    fn forward_block(&self, block: &mut Block<T>) {
        let (tensors, count) = (&self.plan.tensors, block.count);
        let mut packed = self.packed.iter();
        for (op, slopes) in self.plan.ops.iter().zip(&mut block.slopes) {
            let mut out = std::mem::take(&mut block.values[op.dst()]);
            let values = &block.values;
            match op {
                Op::Conv(conv) => {
                    if let Some(packed) = packed.next() {
                        conv.forward(self.isa, packed, count, &values[conv.src], &mut out);
                    }
                }
                Op::Activate { at, f } => {
                    let (starts, n) = runs(&tensors[*at], false, count);
                    for (from, slopes) in starts.zip(slopes.chunks_exact_mut(n)) {
                        activate(self.isa, *f, &mut out[from..from + n], slopes);
                    }
                }
                Op::Reshape { src, dst } => reshape(
                    &tensors[*src],
                    false,
                    &values[*src],
                    &tensors[*dst],
                    false,
                    &mut out,
                    count,
                    false,
                ),
                Op::Pool { src, dst, side } => {
                    pool(&tensors[*src], &values[*src], &tensors[*dst], &mut out, *side, count)
                }
                Op::Add { src, other, dst } => {
                    for from in [(*src, false), (*other, true)] {
                        let rows = Rows::of(&tensors[from.0], false, &tensors[*dst], false, count);
                        rows.copy(&values[from.0], &mut out, from.1);
                    }
                }
                Op::Sum { src, dst } => {
                    let t = &tensors[*src];
                    for n in 0..count {
                        let rows = (0..t.height).map(|y| &values[*src][t.row(n, y, false)..][..t.row_len()]);
                        let sum = rows.flatten().fold(0.0, |sum, v| sum + v.to_f64());
                        out[tensors[*dst].row(n, 0, false)] = T::from_f64(sum);
                    }
                }
            }
            block.values[op.dst()] = out;
        }
    }

    /// The gradients in the inputs of all images, given those in the outputs (as many numbers as [`Network::forward`] gave). Must follow
    /// `forward` with the same workspace.
    pub fn backward(&self, outputs: &[T], gradient: &mut [T], workspace: &mut Workspace<T>) {
        let (inputs, outs) = (self.inputs(), self.outputs());
        let rows = outputs.chunks(self.plan.block * outs).zip(gradient.chunks_mut(self.plan.block * inputs));
        for ((outputs, gradient), block) in rows.zip(&mut workspace.blocks) {
            self.backward_block(outputs, true, block, &mut workspace.scratch);
            leave(&self.plan.tensors[0], true, &block.gradients[0], gradient);
        }
    }

    /// As [`Network::backward`], where only the parameters' gradient is wanted.
    pub fn backward_to_params(&self, outputs: &[T], workspace: &mut Workspace<T>) {
        let rows = outputs.chunks(self.plan.block * self.outputs());
        for (outputs, block) in rows.zip(&mut workspace.blocks) {
            self.backward_block(outputs, false, block, &mut workspace.scratch);
        }
    }

    fn backward_block(&self, outputs: &[T], to_input: bool, block: &mut Block<T>, scratch: &mut Scratch<T>) {
        let (tensors, count) = (&self.plan.tensors, block.count);
        let last = tensors.len() - 1;
        reshape(
            &Tensor::new([1, 1, self.outputs()]),
            true,
            outputs,
            &tensors[last],
            true,
            &mut block.gradients[last],
            count,
            false,
        );
        let mut packed = self.packed.iter().rev();
        let ops = self.plan.ops.iter().zip(&self.plan.adds).zip(&block.slopes).rev();
        for ((op, &add), slopes) in ops {
            let mut src = |src: usize| (src, std::mem::take(&mut block.gradients[src]));
            let (at, mut out) = match op {
                Op::Conv(conv) => src(conv.src),
                Op::Activate { at: s, .. }
                | Op::Reshape { src: s, .. }
                | Op::Pool { src: s, .. }
                | Op::Add { src: s, .. }
                | Op::Sum { src: s, .. } => src(*s),
            };
            let gradient = &block.gradients[op.dst()];
            match op {
                Op::Conv(conv) => {
                    if let Some(packed) = packed.next()
                        && (to_input || conv.src > 0)
                    {
                        conv.backward(
                            self.isa,
                            packed,
                            count,
                            &tensors[at],
                            add,
                            gradient,
                            &mut out,
                            scratch,
                        );
                    }
                }
                Op::Activate { .. } => {
                    let (starts, n) = runs(&tensors[at], true, count);
                    for (from, slopes) in starts.zip(slopes.chunks_exact(n)) {
                        scale(self.isa, &mut out[from..from + n], slopes);
                    }
                }
                Op::Reshape { dst, .. } => {
                    reshape(&tensors[*dst], true, gradient, &tensors[at], true, &mut out, count, add)
                }
                Op::Pool { dst, side, .. } => {
                    unpool(&tensors[*dst], gradient, &tensors[at], &mut out, *side, count, add)
                }
                Op::Add { other, dst, .. } => {
                    Rows::of(&tensors[*dst], true, &tensors[at], true, count).copy(gradient, &mut out, add);
                    let mut inner = std::mem::take(&mut block.gradients[*other]);
                    let gradient = &block.gradients[*dst];
                    Rows::of(&tensors[*dst], true, &tensors[*other], true, count)
                        .copy(gradient, &mut inner, false);
                    block.gradients[*other] = inner;
                }
                Op::Sum { dst, .. } => {
                    let t = &tensors[at];
                    for (i, row) in t.rows(count, true).enumerate() {
                        let g = gradient[tensors[*dst].row(i / t.height, 0, true)];
                        out[row..row + t.row_len()]
                            .iter_mut()
                            .for_each(|o| *o = if add { *o + g } else { g });
                    }
                }
            }
            block.gradients[at] = out;
        }
        block.went_back = true;
    }

    /// Makes `images` of `into` those of `from`, as far as [`Network::add_param_gradient`] needs them. Both must come from [`Network::backward`] of as many
    /// images.
    pub fn take_images(&self, images: &[usize], from: &Workspace<T>, into: &mut Workspace<T>) {
        for &image in images {
            let (block, i) = (image / self.plan.block, image % self.plan.block);
            let (from, into) = (&from.blocks[block], &mut into.blocks[block]);
            let copy = |len: usize, from: &[T], into: &mut [T]| {
                into[i * len..(i + 1) * len].copy_from_slice(&from[i * len..(i + 1) * len]);
            };
            for conv in convolutions(&self.plan) {
                let (src, dst) = (conv.src, conv.dst);
                copy(self.plan.tensors[src].len(), &from.values[src], &mut into.values[src]);
                let len = self.plan.tensors[dst].gradient_len();
                copy(len, &from.gradients[dst], &mut into.gradients[dst]);
            }
        }
    }

    /// Adds `sum_i weights_i dU_i/dparams` to `out`, where `U_i` is the output of image `i` and its gradient in the outputs is that of the last
    /// [`Network::backward`], or one where only [`Network::forward`] went before.
    pub fn add_param_gradient(&self, weights: &[f64], out: &mut [f64], workspace: &mut Workspace<T>) {
        let Workspace { blocks, scratch, images } = workspace;
        debug_assert_eq!(weights.len(), *images, "one weight for every image");
        for (weights, block) in weights.chunks(self.plan.block).zip(blocks) {
            if !block.went_back {
                self.backward_block(&vec![T::ONE; block.count * self.outputs()], false, block, scratch);
            }
            let p: Vec<T> = weights.iter().map(|&w| T::from_f64(w)).collect();
            for conv in convolutions(&self.plan) {
                let (src, gradient) = (&block.values[conv.src], &block.gradients[conv.dst]);
                conv.add_weight_gradient(self.isa, &p, src, gradient, scratch, out);
            }
        }
    }
}

fn convolutions(plan: &Plan) -> impl Iterator<Item = &crate::conv::Conv> {
    plan.ops.iter().filter_map(|op| match op {
        Op::Conv(conv) => Some(conv.as_ref()),
        _ => None,
    })
}
