//! A network on the device: forward, and the gradients in its input and its parameters from one backward pass.
//!
//! Between layers everything is an image `[walkers, channels, height, width]`, a vector one of a single place. Parameters are one
//! vector in the order of [`jarz_net`], so that optimizers need not know about layers.

use crate::burn::transfer::vector;
use burn_tensor::activation::sigmoid;
use burn_tensor::module::{avg_pool2d, conv_transpose2d, conv2d, conv2d_weight_backward};
use burn_tensor::ops::{AvgPoolOptions, ConvOptions, ConvTransposeOptions};
use burn_tensor::{Device, Tensor};
use jarz_net::{Architecture, Layer, Weights};

/// A network without its parameters.
pub(crate) struct Network {
    architecture: Architecture,
    weights: Vec<Weights>,
    options: Vec<ConvOptions<2>>,
}

/// Parameters, whole and cut into layers.
#[derive(Clone)]
pub(crate) struct Theta {
    pub flat: Tensor<1>,
    layers: Vec<Affine>,
}

/// Parameters of one layer: kernels `[outputs, inputs, row, column]`, or a matrix `[1, 1, inputs, outputs]`.
#[derive(Clone)]
struct Affine {
    weight: Tensor<4>,
    bias: Tensor<1>,
}

/// What a layer keeps of the forward pass.
enum Kept {
    /// Its input.
    Input(Tensor<4>),
    /// Its derivative.
    Slope(Tensor<4>),
    /// The shape of its input.
    Shape([usize; 4]),
    /// What the layers of a residual block keep.
    Inner(Vec<Kept>),
}

/// A forward pass on the way to a backward one.
pub(crate) struct Tape {
    kept: Vec<Kept>,
    output: [usize; 4],
}

/// Input of a layer with parameters, and the derivative of the network in its output.
struct Delta {
    layer: usize,
    input: Tensor<4>,
    delta: Tensor<4>,
}

/// Derivatives in the outputs of all layers with parameters, walker by walker: weights may follow later.
#[derive(Default)]
pub(crate) struct Deltas(Vec<Delta>);

impl Network {
    pub fn new(architecture: &Architecture) -> Result<Self, jarz_net::Error> {
        let mut options = Vec::new();
        convolutions(&architecture.layers, &mut options);
        Ok(Network { architecture: architecture.clone(), weights: architecture.weights()?, options })
    }

    /// Parameters in the order of [`jarz_net`], put on a device.
    pub fn load(&self, params: &[f64], device: &Device) -> Theta {
        self.theta(vector(params.iter().map(|v| *v as f32), device))
    }

    /// Cuts a vector of parameters into layers.
    pub fn theta(&self, flat: Tensor<1>) -> Theta {
        let layers = self.weights.iter().map(|w| {
            let (k, weight) = (w.kernel, flat.clone().narrow(0, w.first, w.count()));
            let bias = flat.clone().narrow(0, w.first + w.count(), w.outputs);
            let weight = match w.conv {
                true => weight.reshape([k, k, w.inputs, w.outputs]).permute([3, 2, 0, 1]),
                false => weight.reshape([1, 1, w.inputs, w.outputs]),
            };
            Affine { weight, bias }
        });
        Theta { layers: layers.collect(), flat }
    }

    /// The parameters whose vanishing makes the network vanish.
    pub fn last_layer(&self, theta: &Theta) -> Tensor<1> {
        let first = self.weights.last().map_or(0, |w| w.first);
        let count = theta.flat.dims()[0] - first;
        theta.flat.clone().narrow(0, first, count)
    }

    /// The network's value of every row.
    pub fn forward(&self, theta: &Theta, x: Tensor<2>) -> Tensor<1> {
        self.run(theta, x, false).0
    }

    /// The same, remembered for a backward pass.
    pub fn record(&self, theta: &Theta, x: Tensor<2>) -> (Tensor<1>, Tape) {
        self.run(theta, x, true)
    }

    fn run(&self, theta: &Theta, x: Tensor<2>, keep: bool) -> (Tensor<1>, Tape) {
        let ([rows, _], [h, w, c]) = (x.dims(), self.architecture.input);
        let image = x.reshape([rows, h, w, c]).permute([0, 3, 1, 2]);
        let (out, kept) = forward(&self.architecture.layers, image, &mut theta.layers.iter(), keep);
        let tape = Tape { kept, output: out.dims() };
        (out.reshape([rows]), tape)
    }

    /// Derivatives in all layers, and in the input if wanted.
    pub fn backward(&self, theta: &Theta, tape: Tape, input: bool) -> (Option<Tensor<2>>, Deltas) {
        let device = theta.flat.device();
        let ones = Tensor::ones(tape.output, &device);
        let mut pass = Backward { theta, next: theta.layers.len(), deltas: Vec::new() };
        let dx = pass.layers(&self.architecture.layers, tape.kept, ones, input);
        let flat = dx.map(|dx| {
            let [rows, c, h, w] = dx.dims();
            dx.permute([0, 2, 3, 1]).reshape([rows, h * w * c])
        });
        pass.deltas.reverse();
        (flat, Deltas(pass.deltas))
    }

    /// Sum over the rows of their parameter gradients, weighted.
    pub fn weighted_gradient(&self, theta: &Theta, deltas: Deltas, weights: Tensor<1>) -> Tensor<1> {
        let [rows] = weights.dims();
        let weights = weights.reshape([rows, 1, 1, 1]);
        let parts = deltas.0.into_iter().flat_map(|Delta { layer, input, delta }| {
            let w = &self.weights[layer];
            let delta = delta * weights.clone();
            let bias = delta.clone().sum_dims_squeeze::<1, _>(&[0, 2, 3]);
            let weight = if w.conv {
                let options = self.options[layer].clone();
                let kernel = theta.layers[layer].weight.clone();
                let gradient = conv2d_weight_backward(input, kernel, delta, options);
                gradient.permute([2, 3, 1, 0]).reshape([w.count()])
            } else {
                let (x, d) = (input.reshape([rows, w.inputs]), delta.reshape([rows, w.outputs]));
                x.transpose().matmul(d).reshape([w.count()])
            };
            [weight, bias]
        });
        Tensor::cat(parts.collect(), 0)
    }
}

/// How the layers with parameters convolve, inner ones included.
fn convolutions(layers: &[Layer], out: &mut Vec<ConvOptions<2>>) {
    for layer in layers {
        match layer {
            Layer::Residual { layers } => convolutions(layers, out),
            Layer::Conv2d { .. } | Layer::Linear { .. } => out.push(options(layer)),
            _ => {}
        }
    }
}

fn options(layer: &Layer) -> ConvOptions<2> {
    match layer {
        Layer::Conv2d { stride, padding, .. } => ConvOptions::new([*stride; 2], [*padding; 2], [1; 2], 1),
        _ => ConvOptions::new([1; 2], [0; 2], [1; 2], 1),
    }
}

/// Value and derivative of an activation.
fn activate(layer: &Layer, x: Tensor<4>) -> (Tensor<4>, Tensor<4>) {
    match layer {
        Layer::LeakyRelu { slope } => {
            let slopes = x.clone().greater_scalar(0.0).float() * (1.0 - slope) + *slope;
            (x * slopes.clone(), slopes)
        }
        Layer::Softplus => {
            let tail = (-x.clone().abs()).exp().log1p();
            (x.clone().clamp_min(0.0) + tail, sigmoid(x))
        }
        Layer::Tanh => {
            let y = x.tanh();
            (y.clone(), -y.square() + 1.0)
        }
        _ => {
            let s = sigmoid(x.clone());
            let y = x * s.clone();
            (y.clone(), y * (-s.clone() + 1.0) + s)
        }
    }
}

fn forward<'a>(
    layers: &[Layer],
    mut x: Tensor<4>,
    params: &mut impl Iterator<Item = &'a Affine>,
    keep: bool,
) -> (Tensor<4>, Vec<Kept>) {
    let mut tape = Vec::new();
    for layer in layers {
        let dims = x.dims();
        let [rows, c, h, w] = dims;
        let (y, kept) = match layer {
            Layer::Conv2d { .. } | Layer::Linear { .. } => {
                let Some(Affine { weight, bias }) = params.next() else { break };
                let y = match layer {
                    Layer::Conv2d { .. } => {
                        conv2d(x.clone(), weight.clone(), Some(bias.clone()), options(layer))
                    }
                    _ => {
                        let [_, _, inputs, outputs] = weight.dims();
                        let y = x
                            .clone()
                            .reshape([rows, inputs])
                            .matmul(weight.clone().reshape([inputs, outputs]));
                        (y + bias.clone().reshape([1, outputs])).reshape([rows, outputs, 1, 1])
                    }
                };
                (y, Kept::Input(x))
            }
            Layer::Silu | Layer::LeakyRelu { .. } | Layer::Softplus | Layer::Tanh => {
                let (y, slope) = activate(layer, x);
                (y, Kept::Slope(slope))
            }
            // Vectors are in the order of jarz-net: channels last.
            Layer::Flatten => (x.permute([0, 2, 3, 1]).reshape([rows, c * h * w, 1, 1]), Kept::Shape(dims)),
            Layer::Residual { layers } => {
                let (y, inner) = forward(layers, x.clone(), params, keep);
                (y + x, Kept::Inner(inner))
            }
            Layer::AvgPool { kernel } => {
                (avg_pool2d(x, AvgPoolOptions::new([*kernel; 2])), Kept::Shape(dims))
            }
            Layer::Sum => {
                (x.reshape([rows, c * h * w]).sum_dim(1).reshape([rows, 1, 1, 1]), Kept::Shape(dims))
            }
        };
        x = y;
        if keep {
            tape.push(kept);
        }
    }
    (x, tape)
}

/// A backward pass under way.
struct Backward<'a> {
    theta: &'a Theta,
    /// One more than the layer with parameters that comes next.
    next: usize,
    deltas: Vec<Delta>,
}

impl Backward<'_> {
    /// Goes through layers from last to first; the derivative in their input comes out if it is wanted.
    fn layers(
        &mut self,
        layers: &[Layer],
        tape: Vec<Kept>,
        delta: Tensor<4>,
        wanted: bool,
    ) -> Option<Tensor<4>> {
        let mut delta = delta;
        for (i, (layer, kept)) in layers.iter().zip(tape).enumerate().rev() {
            let wanted = wanted || i > 0;
            delta = match kept {
                Kept::Input(input) => self.affine(layer, input, delta, wanted)?,
                Kept::Slope(slope) => delta * slope,
                Kept::Shape(shape) => reshape_back(layer, shape, delta),
                Kept::Inner(inner) => {
                    let Layer::Residual { layers } = layer else { return None };
                    let through = self.layers(layers, inner, delta.clone(), wanted)?;
                    through + delta
                }
            };
        }
        Some(delta)
    }

    fn affine(
        &mut self,
        layer: &Layer,
        input: Tensor<4>,
        delta: Tensor<4>,
        wanted: bool,
    ) -> Option<Tensor<4>> {
        self.next -= 1;
        let (index, weight) = (self.next, self.theta.layers[self.next].weight.clone());
        let dims @ [rows, _, height, width] = input.dims();
        self.deltas.push(Delta { layer: index, input, delta: delta.clone() });
        wanted.then(|| match layer {
            Layer::Conv2d { kernel, stride, padding, .. } => {
                let [_, _, h, w] = delta.dims();
                // Rows and columns at the end that no kernel reached.
                let rest = |whole: usize, out: usize| whole + 2 * padding - (out - 1) * stride - kernel;
                let rest = [rest(height, h), rest(width, w)];
                let options = ConvTransposeOptions::new([*stride; 2], [*padding; 2], rest, [1; 2], 1);
                conv_transpose2d(delta, weight, None, options)
            }
            _ => {
                let [_, _, inputs, outputs] = weight.dims();
                let back = weight.reshape([inputs, outputs]).transpose();
                delta.reshape([rows, outputs]).matmul(back).reshape(dims)
            }
        })
    }
}

/// The derivative in the input of a layer that only moves or adds numbers.
fn reshape_back(layer: &Layer, shape: [usize; 4], delta: Tensor<4>) -> Tensor<4> {
    let [rows, c, h, w] = shape;
    match layer {
        Layer::Flatten => delta.reshape([rows, h, w, c]).permute([0, 3, 1, 2]),
        Layer::AvgPool { kernel: k } => {
            let share = delta / (k * k) as f64;
            let wide = share.reshape([rows, c, h / k, 1, w / k, 1]).expand([rows, c, h / k, *k, w / k, *k]);
            wide.reshape(shape)
        }
        _ => delta.expand(shape),
    }
}
