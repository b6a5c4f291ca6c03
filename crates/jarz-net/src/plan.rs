//! An architecture worked out: tensors, and the operations between them.

use crate::architecture::{Architecture, Layer, Shape, Visit, Weights};
use crate::conv::Conv;
use crate::error::Error;
use crate::functions::Activation;
use crate::tensor::Tensor;

/// Images that a block has at least and at most.
const BLOCK: (usize, usize) = (8, 64);
/// Bytes of a block: it should stay in the second-level cache.
const BLOCK_BYTES: usize = 2 << 20;

/// An operation. What goes in and what comes out are numbers of tensors.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Conv(Box<Conv>),
    /// In place: nobody needs what was there before, and half the memory is half the traffic.
    Activate {
        at: usize,
        f: Activation,
    },
    /// Another shape for the same numbers.
    Reshape {
        src: usize,
        dst: usize,
    },
    Pool {
        src: usize,
        dst: usize,
        side: usize,
    },
    /// `dst = src + other`.
    Add {
        src: usize,
        other: usize,
        dst: usize,
    },
    Sum {
        src: usize,
        dst: usize,
    },
}

impl Op {
    pub fn dst(&self) -> usize {
        match self {
            Op::Conv(conv) => conv.dst,
            Op::Activate { at, .. } => *at,
            Op::Reshape { dst, .. } | Op::Pool { dst, .. } | Op::Add { dst, .. } | Op::Sum { dst, .. } => {
                *dst
            }
        }
    }
}

/// Tensor 0 is the input, the last one the output.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub tensors: Vec<Tensor>,
    pub ops: Vec<Op>,
    /// Whether an operation adds to the gradient in its input, because another has been there before.
    pub adds: Vec<bool>,
    /// Most images of a block.
    pub block: usize,
    pub params: usize,
}

/// A convolution before its tables are made: weights, source, destination, stride, padding.
type Draft = (Weights, usize, usize, usize, usize);

impl Plan {
    pub fn new(architecture: &Architecture, number_bytes: usize) -> Result<Self, Error> {
        let mut weights = architecture.weights()?.into_iter();
        let mut tensors = vec![Tensor::new(architecture.input)];
        let mut drafts: Vec<Result<Draft, Op>> = Vec::new();
        // Inputs of the residual blocks we are in.
        let mut open = Vec::new();
        let mut at = 0;
        architecture.visit(|visit| {
            let Visit::Layer { layer, to, .. } = visit else {
                match visit {
                    Visit::Enter => open.push(at),
                    _ => {
                        if let Some(src) = open.pop() {
                            let dst = tensors.len();
                            tensors.push(Tensor::new(tensors[at].sides()));
                            drafts.push(Err(Op::Add { src, other: at, dst }));
                            at = dst;
                        }
                    }
                }
                return;
            };
            let (src, dst) = (at, tensors.len());
            if let Some(f) = activation(layer) {
                // The input, and what a residual block adds at its end, must stay: a copy is changed instead.
                if src == 0 || open.contains(&src) {
                    tensors.push(Tensor::new(to.sides()));
                    drafts.push(Err(Op::Reshape { src, dst }));
                    at = dst;
                }
                drafts.push(Err(Op::Activate { at, f }));
                return;
            }
            tensors.push(Tensor::new(to.sides()));
            let mut affine = |stride, padding| weights.next().map(|w| Ok((w, src, dst, stride, padding)));
            let draft = match layer {
                Layer::Conv2d { stride, padding, .. } => affine(*stride, *padding),
                Layer::Linear { .. } => affine(1, 0),
                Layer::Flatten => Some(Err(Op::Reshape { src, dst })),
                Layer::AvgPool { kernel } => Some(Err(Op::Pool { src, dst, side: *kernel })),
                Layer::Sum => Some(Err(Op::Sum { src, dst })),
                _ => None,
            };
            drafts.extend(draft);
            at = dst;
        })?;
        if tensors.len() == 1 {
            return Err(Error::Architecture("the network has no layers".into()));
        }
        for (weights, src, dst, stride, padding) in drafts.iter().flatten() {
            let margin = Conv::gradient_margin(
                weights.kernel,
                tensors[*src].sides(),
                tensors[*dst].sides(),
                *stride,
                *padding,
            );
            tensors[*dst].gradient_margin = margin;
            let src = &mut tensors[*src];
            src.margin = src.margin.max(Conv::margin(src.sides(), *padding));
        }
        // Values, gradients and derivatives.
        let numbers: usize =
            tensors.iter().map(|t| t.len() + t.gradient_len() + t.places() * t.channels).sum();
        let block = BLOCK_BYTES / (numbers * number_bytes).max(1) / BLOCK.0 * BLOCK.0;
        let block = block.clamp(BLOCK.0, BLOCK.1);
        if tensors.iter().any(|t| t.len().max(t.gradient_len()) * block > u32::MAX as usize) {
            return Err(Error::Architecture(
                "a layer is too large: a block of images must stay below 2^32 numbers".into(),
            ));
        }
        let make = |draft: Result<Draft, Op>| match draft {
            Ok((weights, src, dst, stride, padding)) => {
                let conv =
                    Conv::new(weights, (src, &tensors[src]), (dst, &tensors[dst]), stride, padding, block);
                Op::Conv(Box::new(conv))
            }
            Err(op) => op,
        };
        let ops: Vec<Op> = drafts.into_iter().map(make).collect();
        let adds = adds(&ops, tensors.len());
        let params = architecture.params()?;
        Ok(Plan { tensors, ops, adds, block, params })
    }

    /// Numbers of an input.
    pub fn inputs(&self) -> usize {
        self.tensors[0].places() * self.tensors[0].channels
    }

    /// Numbers of the output.
    pub fn outputs(&self) -> usize {
        self.tensors.last().map_or(0, |t| t.places() * t.channels)
    }
}

fn activation(layer: &Layer) -> Option<Activation> {
    match layer {
        Layer::Silu => Some(Activation::Silu),
        Layer::LeakyRelu { slope } => Some(Activation::LeakyRelu(*slope)),
        Layer::Softplus => Some(Activation::Softplus),
        Layer::Tanh => Some(Activation::Tanh),
        _ => None,
    }
}

/// Backwards through the operations: whether a gradient has been written before.
fn adds(ops: &[Op], tensors: usize) -> Vec<bool> {
    let mut written = vec![false; tensors];
    let mut adds = vec![false; ops.len()];
    for (i, op) in ops.iter().enumerate().rev() {
        let src = match op {
            Op::Conv(conv) => conv.src,
            Op::Activate { .. } => continue,
            Op::Reshape { src, .. } | Op::Pool { src, .. } | Op::Sum { src, .. } | Op::Add { src, .. } => {
                *src
            }
        };
        adds[i] = std::mem::replace(&mut written[src], true);
        if let Op::Add { other, .. } = op {
            written[*other] = true;
        }
    }
    adds
}

/// What an energy needs of its architecture: a single number, which vanishes with the weights of the last layer that has some.
pub(crate) fn check_energy(architecture: &Architecture) -> Result<(), Error> {
    let output = architecture.output()?;
    if output.numbers() != 1 {
        return Err(Error::Architecture(format!(
            "an energy is one number, but the network ends with {output}: add a layer of one output, or a sum"
        )));
    }
    for (i, layer) in architecture.layers.iter().enumerate().rev() {
        match layer {
            Layer::Conv2d { .. } | Layer::Linear { .. } => return Ok(()),
            Layer::Softplus | Layer::Residual { .. } => {
                let reason = "it must not come after the last conv2d or linear layer of an energy, whose weights are \
                              zero at the start so that the energy begins as zero";
                return Err(Error::Layer {
                    layer: format!("layers.{i} ({})", layer.name()),
                    reason: reason.into(),
                });
            }
            _ => {}
        }
    }
    Err(Error::Architecture(
        "an energy needs at least one conv2d or linear layer outside residual blocks".into(),
    ))
}

/// What a classifier needs: a vector of at least two numbers.
pub(crate) fn check_classifier(architecture: &Architecture) -> Result<usize, Error> {
    match architecture.output()? {
        Shape::Flat(classes) if classes > 1 => Ok(classes),
        other => Err(Error::Architecture(format!(
            "a classifier ends with a vector of one number per class, not with {other}"
        ))),
    }
}
