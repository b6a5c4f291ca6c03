//! Weight files: safetensors with the names, shapes and order of PyTorch's `state_dict` of an equivalent `nn.Sequential`.
//!
//! PyTorch keeps channels first, so kernels are `(out, in, row, column)` and a flattened image goes channel by channel; here channels are last.
//! The architecture is in the file's metadata and, as TOML, beside it. A residual block is a subclass of `nn.Sequential` that adds
//! its input; its layers are named `5.0.weight` and so on. A base measure, if there is one, is kept as `base.mean` and `base.factor`, and the Gaussians of a mixture as
//! `base.components.weights`, `.means` and `.factors`; what a model has learnt of their weights, as `base.components.tilts`.

use crate::architecture::{Architecture, Layer, Shape, Visit, Weights};
use crate::base::Base;
use crate::error::Error;
use crate::mixture::Component;
use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo, TensorView};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const ARCHITECTURE: &str = "architecture";
const MEAN: &str = "base.mean";
const FACTOR: &str = "base.factor";
/// Weights, means and factors of a mixture.
const COMPONENTS: [&str; 3] = ["base.components.weights", "base.components.means", "base.components.factors"];

/// What the logarithms of a mixture's weights but the first have in addition, if that was learnt.
const TILTS: &str = "base.components.tilts";

/// What a weight file holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Saved {
    /// The architecture.
    pub architecture: Architecture,
    /// All parameters: the network's, and those of a mixture's weights if they were learnt.
    pub params: Vec<f64>,
    /// The base measure, if it was saved.
    pub base: Option<Base>,
}

impl Saved {
    /// Writes the weights to `path`, and the architecture beside them with the ending `.toml`.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        let toml = self.architecture.to_toml()?;
        exchangeable(&self.architecture)?;
        let tilts = self.params.get(self.architecture.params()?..);
        let components = self.base.as_ref().map_or(0, |b| b.components().len());
        let tilts = tilts.filter(|t| t.is_empty() || t.len() + 1 == components).ok_or_else(|| {
            Error::Data(format!("{} parameters do not fit the architecture", self.params.len()))
        })?;
        let mut arrays: BTreeMap<String, (Vec<usize>, Vec<u8>)> = BTreeMap::new();
        let bytes = |values: &[f64]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
        for w in self.architecture.weights()? {
            let turned: Vec<f64> = places(&w).map(|here| self.params[w.first + here]).collect();
            let bias = &self.params[w.first + w.count()..w.first + w.count() + w.outputs];
            arrays.insert(format!("{}.weight", w.name), (shape(&w), bytes(&turned)));
            arrays.insert(format!("{}.bias", w.name), (vec![w.outputs], bytes(bias)));
        }
        if !tilts.is_empty() {
            arrays.insert(TILTS.into(), (vec![tilts.len()], bytes(tilts)));
        }
        if let Some(base) = &self.base {
            let (dim, factor) = (base.dim(), base.factor());
            let sides = if factor.len() == dim { vec![dim] } else { vec![dim, dim] };
            arrays.insert(MEAN.into(), (vec![dim], bytes(base.mean())));
            arrays.insert(FACTOR.into(), (sides, bytes(factor)));
            let all = base.components();
            if !all.is_empty() {
                let weights: Vec<f64> = all.iter().map(|c| c.weight).collect();
                let means: Vec<f64> = all.iter().flat_map(|c| &c.mean).copied().collect();
                let factors: Vec<f64> = all.iter().flat_map(|c| &c.factor).copied().collect();
                let shapes = [vec![all.len()], vec![all.len(), dim], vec![all.len(), dim, dim]];
                for ((name, shape), values) in COMPONENTS.iter().zip(shapes).zip([weights, means, factors]) {
                    arrays.insert(name.to_string(), (shape, bytes(&values)));
                }
            }
        }
        let fail = |reason: String| Error::Weights { path: path.into(), reason };
        let views: Result<Vec<_>, _> = arrays
            .iter()
            .map(|(name, (shape, data))| {
                Ok((name.as_str(), TensorView::new(Dtype::F64, shape.clone(), data)?))
            })
            .collect();
        let views = views.map_err(|e: safetensors::SafeTensorError| fail(e.to_string()))?;
        let metadata = [(ARCHITECTURE.to_string(), toml.clone())].into_iter().collect();
        let file = safetensors::serialize(views, Some(metadata)).map_err(|e| fail(e.to_string()))?;
        write(path, &file)?;
        write(&path.with_extension("toml"), toml.as_bytes())
    }

    /// Reads a weight file. The architecture is the one in it, or the one in the file beside it with the ending `.toml`.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let file = Contents::read(path)?;
        let beside = path.with_extension("toml");
        let architecture = match file.metadata.metadata().as_ref().and_then(|m| m.get(ARCHITECTURE)) {
            Some(text) => Architecture::from_toml(text)?,
            None if beside.exists() => {
                let text =
                    fs::read_to_string(&beside).map_err(|source| Error::Io { path: beside, source })?;
                Architecture::from_toml(&text)?
            }
            None => {
                let reason = format!("it does not say its architecture: put that into {}", beside.display());
                return Err(file.fail(reason));
            }
        };
        let (mut params, base) = (file.params(&architecture)?, file.base()?);
        if file.metadata.info(TILTS).is_some() {
            let components = base.as_ref().map_or(0, |b| b.components().len());
            params.extend(file.tensor(TILTS, &[components.saturating_sub(1)])?);
        }
        Ok(Saved { architecture, params, base })
    }

    /// Numbers that go with the parameters (say, their gradient) in the order of the file: layer by layer, weights and then bias, as PyTorch
    /// keeps them.
    pub fn in_file_order(architecture: &Architecture, values: &[f64]) -> Result<Vec<f64>, Error> {
        exchangeable(architecture)?;
        let mut out = Vec::with_capacity(values.len());
        for w in architecture.weights()? {
            out.extend(places(&w).map(|here| values[w.first + here]));
            out.extend_from_slice(&values[w.first + w.count()..][..w.outputs]);
        }
        Ok(out)
    }

    /// Reads all parameters of a network of a known architecture on a known base. A file that has a base must have this one; one that has nothing to say of the
    /// weights of a mixture's components leaves these as they are.
    pub fn read_onto(
        path: impl AsRef<Path>,
        architecture: &Architecture,
        base: &Base,
    ) -> Result<Vec<f64>, Error> {
        let file = Contents::read(path.as_ref())?;
        if file.base()?.is_some_and(|of_file| of_file != *base) {
            let reason =
                "its base measure is another one than that of the data: evaluate it where it was trained";
            return Err(file.fail(reason.into()));
        }
        let mut params = file.params(architecture)?;
        let tilts = base.components().len().saturating_sub(1);
        match file.metadata.info(TILTS) {
            Some(_) => params.extend(file.tensor(TILTS, &[tilts])?),
            None => params.resize(params.len() + tilts, 0.0),
        }
        Ok(params)
    }

    /// Reads the weights of a known architecture, without those of a base, for instance `safetensors.torch.save_file(model.state_dict(), path)`.
    pub fn read_weights(path: impl AsRef<Path>, architecture: &Architecture) -> Result<Vec<f64>, Error> {
        Contents::read(path.as_ref())?.params(architecture)
    }
}

/// A file in memory, its header read.
struct Contents<'a> {
    path: &'a Path,
    metadata: Metadata,
    data: Vec<u8>,
}

impl<'a> Contents<'a> {
    fn read(path: &'a Path) -> Result<Self, Error> {
        let bytes = fs::read(path).map_err(|source| Error::Io { path: path.into(), source })?;
        let fail = |reason: String| Error::Weights { path: path.into(), reason };
        let short = || fail(format!("it is cut short ({} bytes)", bytes.len()));
        let (size, rest) = bytes.split_first_chunk::<8>().ok_or_else(short)?;
        let size = usize::try_from(u64::from_le_bytes(*size)).unwrap_or(usize::MAX);
        if size > 100_000_000 {
            return Err(fail("it is no safetensors file".into()));
        }
        let (header, data) = rest.split_at_checked(size).ok_or_else(short)?;
        // Through `Metadata`, because `SafeTensors::deserialize` (0.8) adds declared sizes without checking for overflow.
        let metadata: Metadata = serde_json::from_slice(header)
            .map_err(|e| fail(format!("it is no safetensors file, or its header is damaged: {e}")))?;
        match metadata.data_len() {
            n if n > data.len() => Err(short()),
            n if n < data.len() => Err(fail(format!("{} bytes follow the last tensor", data.len() - n))),
            _ => Ok(Contents { path, metadata, data: data.to_vec() }),
        }
    }

    fn fail(&self, reason: String) -> Error {
        Error::Weights { path: self.path.into(), reason }
    }

    /// A tensor of the given shape.
    fn tensor(&self, name: &str, expected: &[usize]) -> Result<Vec<f64>, Error> {
        let Some(info) = self.metadata.info(name) else {
            let mut names: Vec<String> = self.metadata.tensors().into_keys().collect();
            names.sort();
            return Err(self.fail(format!("there is no tensor '{name}', only {}", names.join(", "))));
        };
        if info.shape != expected {
            return Err(self.fail(format!(
                "tensor '{name}' has shape {:?} where the architecture has {expected:?}",
                info.shape
            )));
        }
        let values = self.numbers(name, info)?;
        match values.iter().position(|v| !v.is_finite()) {
            Some(at) => Err(self.fail(format!("number {at} of tensor '{name}' is {}", values[at]))),
            None => Ok(values),
        }
    }

    fn numbers(&self, name: &str, info: &TensorInfo) -> Result<Vec<f64>, Error> {
        let (from, to) = info.data_offsets;
        let bytes = self
            .data
            .get(from..to)
            .ok_or_else(|| self.fail(format!("tensor '{name}' lies outside of it")))?;
        match info.dtype {
            Dtype::F64 => Ok(bytes.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect()),
            Dtype::F32 => Ok(bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b).into()).collect()),
            other => {
                Err(self.fail(format!("tensor '{name}' has numbers of type {other}: save it as f32 or f64")))
            }
        }
    }

    fn params(&self, architecture: &Architecture) -> Result<Vec<f64>, Error> {
        exchangeable(architecture)?;
        let mut params = vec![0.0; architecture.params()?];
        let mut known: Vec<String> =
            [MEAN, FACTOR, TILTS].iter().chain(&COMPONENTS).map(|n| n.to_string()).collect();
        for w in architecture.weights()? {
            let names = [format!("{}.weight", w.name), format!("{}.bias", w.name)];
            let turned = self.tensor(&names[0], &shape(&w))?;
            let bias = self.tensor(&names[1], &[w.outputs])?;
            places(&w).zip(turned).for_each(|(here, value)| params[w.first + here] = value);
            params[w.first + w.count()..][..w.outputs].copy_from_slice(&bias);
            known.extend(names);
        }
        match self.metadata.tensors().into_keys().find(|name| !known.contains(name)) {
            Some(name) => Err(self.fail(format!("tensor '{name}' has no place in the architecture"))),
            None => Ok(params),
        }
    }

    fn base(&self) -> Result<Option<Base>, Error> {
        let Some(info) = self.metadata.info(FACTOR) else { return Ok(None) };
        let shape = info.shape.clone();
        let mean = self.tensor(MEAN, &shape[..shape.len().min(1)])?;
        let dim = mean.len();
        let base = Base::from_parts(mean, self.tensor(FACTOR, &shape)?);
        let components = self.components(dim)?;
        base.and_then(|b| if components.is_empty() { Ok(b) } else { b.with_components(components) })
            .map(Some)
            .map_err(|e| self.fail(e.to_string()))
    }

    fn components(&self, dim: usize) -> Result<Vec<Component>, Error> {
        let Some(info) = self.metadata.info(COMPONENTS[0]) else { return Ok(Vec::new()) };
        let shape = info.shape.clone();
        let weights = self.tensor(COMPONENTS[0], &shape[..shape.len().min(1)])?;
        let means = self.tensor(COMPONENTS[1], &[weights.len(), dim])?;
        let factors = self.tensor(COMPONENTS[2], &[weights.len(), dim, dim])?;
        let parts = weights.into_iter().zip(means.chunks(dim)).zip(factors.chunks(dim * dim));
        Ok(parts.map(|((weight, m), f)| Component { weight, mean: m.to_vec(), factor: f.to_vec() }).collect())
    }
}

/// PyTorch's shape.
fn shape(w: &Weights) -> Vec<usize> {
    match w.conv {
        true => vec![w.outputs, w.inputs, w.kernel, w.kernel],
        false => vec![w.outputs, w.inputs],
    }
}

/// In PyTorch's order: where each weight is here.
fn places(w: &Weights) -> impl Iterator<Item = usize> + '_ {
    let square = w.kernel * w.kernel;
    (0..w.count()).map(move |there| {
        let (o, rest) = (there / (w.inputs * square), there % (w.inputs * square));
        let (i, place) = (rest / square, rest % square);
        let i = match w.flattened {
            Some([height, width, channels]) => i % (height * width) * channels + i / (height * width),
            None => i,
        };
        (place * w.inputs + i) * w.outputs + o
    })
}

/// A residual block right after a flatten layer adds vectors in PyTorch's order to vectors in ours.
fn exchangeable(architecture: &Architecture) -> Result<(), Error> {
    let (mut pending, mut mixed) = (false, false);
    architecture.visit(|visit| match visit {
        Visit::Layer { layer: Layer::Flatten, from: Shape::Image(h, w, c), .. } => {
            pending = h * w > 1 && c > 1
        }
        Visit::Layer { layer, .. } if layer.weights().is_some() => pending = false,
        Visit::Enter => mixed |= pending,
        _ => {}
    })?;
    match mixed {
        true => Err(Error::Architecture(
            "weights of a residual block right after a flatten layer cannot be kept in PyTorch's order: put a linear layer between".into(),
        )),
        false => Ok(()),
    }
}

/// To a temporary file, then in its place: never half a file.
fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let done = fs::write(&temporary, bytes).and_then(|()| fs::rename(&temporary, path));
    done.map_err(|source| {
        let _ = fs::remove_file(&temporary);
        Error::Io { path: path.into(), source }
    })
}
