//! An architecture as data: a list of layers, from which shapes and parameters follow.

use crate::error::Error;
use jarz::ParamGroup;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display};

/// A network from an image of `input` (height, width, channels) through its layers. A vector of `n` numbers is an
/// image of `[1, 1, n]`.
///
/// ```
/// let text = r#"
///     input = [1, 1, 2]
///     layers = [
///         { type = "linear", features = 16 },
///         { type = "silu" },
///         { type = "linear", features = 1 },
///     ]
/// "#;
/// let architecture = jarz_net::Architecture::from_toml(text).unwrap();
/// assert_eq!(architecture.params().unwrap(), 65);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Architecture {
    /// Height, width and channels of the input.
    pub input: [usize; 3],
    /// The layers, first to last.
    pub layers: Vec<Layer>,
}

/// A layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Layer {
    /// Convolution (a cross-correlation, as everywhere), with bias.
    Conv2d {
        /// Channels of its output.
        channels: usize,
        /// Height and width of the kernel.
        kernel: usize,
        /// Distance between positions.
        #[serde(default = "one")]
        stride: usize,
        /// Zeros around the image.
        #[serde(default)]
        padding: usize,
    },
    /// Affine map of a flat input.
    Linear {
        /// Numbers it gives.
        features: usize,
    },
    /// `x / (1 + exp(-x))`.
    Silu,
    /// `x` where positive, `slope x` elsewhere.
    LeakyRelu {
        /// The slope.
        #[serde(default = "leak")]
        slope: f64,
    },
    /// `log(1 + exp x)`.
    Softplus,
    /// Hyperbolic tangent.
    Tanh,
    /// Makes a vector of an image.
    Flatten,
    /// Adds to its input what the inner layers make of it.
    Residual {
        /// The inner layers; they must keep the shape.
        layers: Vec<Layer>,
    },
    /// Means over squares that do not overlap.
    AvgPool {
        /// Their side.
        kernel: usize,
    },
    /// Sum of all numbers.
    Sum,
}

fn one() -> usize {
    1
}

fn leak() -> f64 {
    0.2
}

/// What flows between layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Height, width, channels.
    Image(usize, usize, usize),
    /// A vector.
    Flat(usize),
}

impl Shape {
    /// Numbers in all.
    pub fn numbers(self) -> usize {
        let [h, w, c] = self.sides();
        h * w * c
    }

    /// As an image; a vector is one of a single place.
    pub fn sides(self) -> [usize; 3] {
        match self {
            Shape::Image(h, w, c) => [h, w, c],
            Shape::Flat(n) => [1, 1, n],
        }
    }
}

impl Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shape::Image(h, w, c) => write!(f, "{h} x {w} with {c} channels"),
            Shape::Flat(n) => write!(f, "a vector of {n}"),
        }
    }
}

impl Layer {
    /// Its name in files.
    pub fn name(&self) -> &'static str {
        match self {
            Layer::Conv2d { .. } => "conv2d",
            Layer::Linear { .. } => "linear",
            Layer::Silu => "silu",
            Layer::LeakyRelu { .. } => "leaky_relu",
            Layer::Softplus => "softplus",
            Layer::Tanh => "tanh",
            Layer::Flatten => "flatten",
            Layer::Residual { .. } => "residual",
            Layer::AvgPool { .. } => "avg_pool",
            Layer::Sum => "sum",
        }
    }

    /// Shape of what it makes of an input, or why it cannot.
    fn output(&self, input: Shape) -> Result<Shape, String> {
        const MOST: usize = 1 << 28;
        let shape = match (self, input) {
            (Layer::Conv2d { channels, kernel, stride, padding }, Shape::Image(h, w, _)) => {
                let side = |n: usize| {
                    let room = n.checked_add(padding.checked_mul(2)?)?;
                    Some((room.checked_sub(*kernel)?) / stride + 1)
                };
                if *channels == 0 || *kernel == 0 || *stride == 0 {
                    return Err("channels, kernel and stride must be at least 1".into());
                }
                if padding >= kernel {
                    return Err(format!("padding {padding} must be less than the kernel of {kernel}"));
                }
                match (side(h), side(w)) {
                    (Some(h), Some(w)) => Shape::Image(h, w, *channels),
                    _ => {
                        return Err(format!(
                            "a kernel of {kernel} with padding {padding} does not fit into {input}"
                        ));
                    }
                }
            }
            (Layer::Linear { features: 0 }, _) => return Err("features must be at least 1".into()),
            (Layer::Linear { features }, Shape::Flat(_)) => Shape::Flat(*features),
            (Layer::Linear { .. }, Shape::Image(..)) => {
                return Err(format!("its input is {input}: put a flatten layer before it"));
            }
            (Layer::AvgPool { kernel }, Shape::Image(h, w, c)) => {
                if *kernel == 0 || h % kernel != 0 || w % kernel != 0 {
                    return Err(format!("squares of {kernel} do not tile {input}"));
                }
                Shape::Image(h / kernel, w / kernel, c)
            }
            (Layer::Conv2d { .. } | Layer::AvgPool { .. }, Shape::Flat(_)) => {
                return Err(format!("it needs an image, but its input is {input}"));
            }
            (Layer::Flatten, _) => Shape::Flat(input.numbers()),
            (Layer::Sum, _) => Shape::Flat(1),
            (Layer::LeakyRelu { slope }, _) if !slope.is_finite() => {
                return Err(format!("the slope must be a number, not {slope}"));
            }
            (Layer::Silu | Layer::LeakyRelu { .. } | Layer::Softplus | Layer::Tanh, _) => input,
            (Layer::Residual { layers }, _) if layers.is_empty() => return Err("it has no layers".into()),
            (Layer::Residual { .. }, _) => input,
        };
        let [h, w, c] = shape.sides();
        match h.checked_mul(w).and_then(|n| n.checked_mul(c)) {
            Some(n) if n <= MOST => Ok(shape),
            _ => Err(format!("its output, {shape}, is too large")),
        }
    }

    /// Side of its kernel and numbers it gives, if it has parameters.
    pub(crate) fn weights(&self) -> Option<(usize, usize)> {
        match self {
            Layer::Conv2d { channels, kernel, .. } => Some((*kernel, *channels)),
            Layer::Linear { features } => Some((1, *features)),
            _ => None,
        }
    }
}

/// A layer with its place: what [`Architecture::visit`] tells of it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Visit<'a> {
    /// A layer from one shape to another; its name as in the `state_dict` of an `nn.Sequential`.
    Layer { layer: &'a Layer, name: &'a str, from: Shape, to: Shape },
    /// The layers that follow belong to a residual block.
    Enter,
    /// Its end.
    Leave,
}

/// Parameters of a convolution or linear layer, in the flat vector: weights by kernel row, kernel column, input channel,
/// output channel, then the bias.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weights {
    /// Name of the layer as in the `state_dict` of an `nn.Sequential`.
    pub name: String,
    /// Whether it is a convolution.
    pub conv: bool,
    /// Side of the kernel.
    pub kernel: usize,
    /// What goes in: channels, or numbers of a vector.
    pub inputs: usize,
    /// What comes out.
    pub outputs: usize,
    /// Where its weights begin.
    pub first: usize,
    /// Shape of the image that a flatten layer before it made a vector of.
    pub flattened: Option<[usize; 3]>,
}

impl Weights {
    /// Number of weights, without the bias.
    pub fn count(&self) -> usize {
        self.kernel * self.kernel * self.inputs * self.outputs
    }

    /// Numbers that one output is made of.
    pub fn fan_in(&self) -> usize {
        self.kernel * self.kernel * self.inputs
    }
}

impl Architecture {
    /// From TOML.
    pub fn from_toml(text: &str) -> Result<Self, Error> {
        toml::from_str(text).map_err(|e| Error::Text(e.to_string()))
    }

    /// As TOML.
    pub fn to_toml(&self) -> Result<String, Error> {
        toml::to_string(self).map_err(|e| Error::Text(e.to_string()))
    }

    /// Walks through all layers, inner ones included, and gives the shape of the output.
    pub(crate) fn visit(&self, mut look: impl FnMut(Visit<'_>)) -> Result<Shape, Error> {
        let [h, w, c] = self.input;
        let numbers = h.checked_mul(w).and_then(|n| n.checked_mul(c));
        if !numbers.is_some_and(|n| (1..1 << 24).contains(&n)) {
            return Err(Error::Architecture(format!(
                "an input of {h} x {w} with {c} channels is not possible"
            )));
        }
        let start = if h == 1 && w == 1 { Shape::Flat(c) } else { Shape::Image(h, w, c) };
        visit(&self.layers, "layers", "", start, &mut look)
    }

    /// Shape of the output.
    pub fn output(&self) -> Result<Shape, Error> {
        self.visit(|_| {})
    }

    /// Numbers that all layers together make of one input: what a pass has to keep.
    pub fn activations(&self) -> Result<usize, Error> {
        let mut numbers = 0;
        self.visit(|visit| {
            if let Visit::Layer { to, .. } = visit {
                numbers += to.numbers();
            }
        })?;
        Ok(numbers)
    }

    /// All layers with parameters.
    pub fn weights(&self) -> Result<Vec<Weights>, Error> {
        let (mut all, mut first, mut flattened) = (Vec::<Weights>::new(), 0, None);
        self.visit(|visit| {
            let Visit::Layer { layer, name, from, .. } = visit else { return };
            if *layer == Layer::Flatten {
                flattened = Some(from.sides()).filter(|_| matches!(from, Shape::Image(..)));
            }
            if let Some((kernel, outputs)) = layer.weights() {
                let conv = matches!(layer, Layer::Conv2d { .. });
                let inputs = from.sides()[2];
                let flattened = flattened.take().filter(|_| !conv);
                let name = name.to_string();
                let weights = Weights { name, conv, kernel, inputs, outputs, first, flattened };
                first += weights.count() + outputs;
                all.push(weights);
            }
        })?;
        Ok(all)
    }

    /// Number of parameters.
    pub fn params(&self) -> Result<usize, Error> {
        Ok(self.weights()?.iter().map(|w| w.count() + w.outputs).sum())
    }

    /// Names and ranges of the parameters: `0.weight`, `0.bias` and so on.
    pub fn groups(&self) -> Result<Vec<ParamGroup>, Error> {
        let groups = self.weights()?.into_iter().flat_map(|w| {
            let (from, to) = (w.first, w.first + w.count());
            [
                ParamGroup::new(format!("{}.weight", w.name), from..to),
                ParamGroup::new(format!("{}.bias", w.name), to..to + w.outputs),
            ]
        });
        Ok(groups.collect())
    }

    /// The paper's network for images of 28 x 28: 76,993 parameters.
    pub fn mnist() -> Self {
        let conv = |channels, kernel, padding| Layer::Conv2d { channels, kernel, stride: 2, padding };
        let mut layers = Vec::new();
        for layer in [conv(16, 5, 4), conv(32, 3, 1), conv(64, 3, 1), conv(64, 3, 1)] {
            layers.extend([layer, Layer::Silu]);
        }
        layers.extend([
            Layer::Flatten,
            Layer::Linear { features: 64 },
            Layer::Silu,
            Layer::Linear { features: 1 },
        ]);
        Architecture { input: [28, 28, 1], layers }
    }

    /// The paper's network for colour images of 32 x 32, with `n_f` channels after the first layer (the paper has 128).
    pub fn cifar(n_f: usize) -> Self {
        let conv = |channels, kernel, stride, padding| Layer::Conv2d { channels, kernel, stride, padding };
        let mut layers = Vec::new();
        for layer in
            [conv(n_f, 3, 1, 1), conv(2 * n_f, 4, 2, 1), conv(4 * n_f, 4, 2, 1), conv(8 * n_f, 4, 2, 1)]
        {
            layers.extend([layer, Layer::LeakyRelu { slope: 0.2 }]);
        }
        layers.push(conv(1, 4, 1, 0));
        Architecture { input: [32, 32, 3], layers }
    }
}

/// `path` names layers for people, `prefix` as PyTorch does.
fn visit(
    layers: &[Layer],
    path: &str,
    prefix: &str,
    start: Shape,
    look: &mut dyn FnMut(Visit<'_>),
) -> Result<Shape, Error> {
    let mut shape = start;
    for (i, layer) in layers.iter().enumerate() {
        let (path, name) = (format!("{path}.{i}"), format!("{prefix}{i}"));
        let fail = |reason| Error::Layer { layer: format!("{path} ({})", layer.name()), reason };
        let to = layer.output(shape).map_err(fail)?;
        if let Layer::Residual { layers } = layer {
            look(Visit::Enter);
            let inner = visit(layers, &format!("{path}.layers"), &format!("{name}."), shape, look)?;
            if inner != shape {
                return Err(fail(format!(
                    "its layers turn {shape} into {inner}; they must keep the shape, since both are added"
                )));
            }
            look(Visit::Leave);
        } else {
            look(Visit::Layer { layer, name: &name, from: shape, to });
        }
        shape = to;
    }
    Ok(shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_networks_have_their_parameters() {
        assert_eq!(Architecture::mnist().params().unwrap(), 76_993);
        assert_eq!(Architecture::mnist().output().unwrap(), Shape::Flat(1));
        let count = |n: usize| {
            let conv = |from: usize, to: usize, kernel: usize| from * to * kernel * kernel + to;
            conv(3, n, 3)
                + conv(n, 2 * n, 4)
                + conv(2 * n, 4 * n, 4)
                + conv(4 * n, 8 * n, 4)
                + conv(8 * n, 1, 4)
        };
        for n in [8, 32, 128] {
            assert_eq!(Architecture::cifar(n).params().unwrap(), count(n));
            assert_eq!(Architecture::cifar(n).output().unwrap(), Shape::Image(1, 1, 1));
        }
    }

    #[test]
    fn toml_goes_back_and_forth() {
        let mut architecture = Architecture::mnist();
        let inner = vec![Layer::Conv2d { channels: 64, kernel: 3, stride: 1, padding: 1 }, Layer::Tanh];
        architecture.layers.insert(8, Layer::Residual { layers: inner });
        let text = architecture.to_toml().unwrap();
        assert_eq!(Architecture::from_toml(&text).unwrap(), architecture);
        let names: Vec<String> = architecture.groups().unwrap().into_iter().map(|g| g.name).collect();
        assert!(names.contains(&"8.0.weight".into()) && names.contains(&"12.bias".into()), "{names:?}");
    }

    fn complaint(input: [usize; 3], layers: Vec<Layer>) -> String {
        Architecture { input, layers }.output().unwrap_err().to_string()
    }

    #[test]
    fn layers_that_do_not_fit_are_named() {
        let conv = |kernel, padding| Layer::Conv2d { channels: 4, kernel, stride: 1, padding };
        let inner = Layer::Residual { layers: vec![Layer::Silu, conv(3, 0)] };
        let cases = [
            (vec![Layer::Silu, conv(9, 1)], "layers.1 (conv2d): a kernel of 9"),
            (vec![conv(3, 3)], "padding 3 must be less"),
            (vec![conv(0, 0)], "at least 1"),
            (
                vec![Layer::Linear { features: 3 }],
                "layers.0 (linear): its input is 5 x 6 with 4 channels: put a flatten",
            ),
            (vec![Layer::Flatten, conv(1, 0)], "needs an image"),
            (vec![Layer::AvgPool { kernel: 4 }], "do not tile"),
            (vec![inner], "layers.0 (residual): its layers turn 5 x 6 with 4 channels into 3 x 4"),
            (vec![Layer::Residual { layers: vec![conv(8, 0)] }], "layers.0.layers.0 (conv2d)"),
            (vec![Layer::Residual { layers: vec![] }], "no layers"),
            (vec![Layer::LeakyRelu { slope: f64::NAN }], "slope"),
            (vec![Layer::Flatten, Layer::Linear { features: 1 << 40 }], "too large"),
        ];
        for (layers, expected) in cases {
            let text = complaint([5, 6, 4], layers);
            assert!(text.contains(expected), "'{text}' does not say '{expected}'");
        }
        assert!(complaint([0, 6, 4], vec![]).contains("0 x 6"));
        let unknown = Architecture::from_toml("input = [1, 1, 2]\nlayers = [{ type = \"linaer\" }]");
        assert!(unknown.unwrap_err().to_string().contains("linaer"));
        let key = Architecture::from_toml(
            "input = [1,1,2]\nlayers = [{ type = \"linear\", features = 1, bais = 2 }]",
        );
        assert!(key.unwrap_err().to_string().contains("bais"));
    }
}
