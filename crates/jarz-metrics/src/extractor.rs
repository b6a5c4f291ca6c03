//! A network in ONNX format that turns images into features.

use crate::error::MetricsError;
use rten::{Dimension, Model, NodeId};
use rten_tensor::prelude::*;
use rten_tensor::{NdTensor, Tensor};
use std::path::{Path, PathBuf};

/// Images handed to the network at a time, if it lets one choose.
const BATCH: usize = 32;

/// The values that a network wants its pixels in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Range {
    /// From -1 to 1.
    #[default]
    Symmetric,
    /// From 0 to 1.
    Unit,
    /// From 0 to 255.
    Bytes,
}

impl Range {
    fn of(self, value: f32) -> f32 {
        match self {
            Range::Symmetric => value,
            Range::Unit => (value + 1.0) / 2.0,
            Range::Bytes => (value + 1.0) * 127.5,
        }
    }
}

/// What a network makes of images.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extracted {
    /// Features of all images, one after the other.
    pub features: Vec<f64>,
    /// Features per image.
    pub dim: usize,
    /// Logits of all images, if the network has an output `logits`.
    pub logits: Option<(usize, Vec<f64>)>,
}

/// A network with an image as its input and features as its output: the one called `features`, or the first. An output called `logits` serves for a
/// classifier's score.
pub struct Extractor {
    path: PathBuf,
    model: Model,
    input: NodeId,
    features: NodeId,
    logits: Option<NodeId>,
    /// Batch, and the other axes; none where any length will do.
    batch: Option<usize>,
    axes: [Option<usize>; 3],
    channels_first: bool,
    range: Range,
}

impl Extractor {
    /// Reads a network; `range` says what values it wants.
    pub fn load(path: &Path, range: Range) -> Result<Self, MetricsError> {
        let fail = |reason: String| MetricsError::Extractor { path: path.into(), reason };
        let bytes = std::fs::read(path).map_err(|e| fail(e.to_string()))?;
        let model =
            Model::load(bytes).map_err(|e| fail(format!("it is no ONNX model that can be read ({e})")))?;
        let &[input] = model.input_ids() else {
            return Err(fail(format!(
                "it has {} inputs, but must have one: images",
                model.input_ids().len()
            )));
        };
        let named = |name: &str| {
            let is_named = |id: &&NodeId| model.node_info(**id).and_then(|n| n.name()) == Some(name);
            model.output_ids().iter().find(is_named).copied()
        };
        let first = model.output_ids().first().copied();
        let features = named("features").or(first).ok_or_else(|| fail("it has no output".into()))?;
        let logits = named("logits");
        let shape = model.input_shape(0).unwrap_or_default();
        let length = |d: &Dimension| match d {
            Dimension::Fixed(n) => Some(*n),
            Dimension::Symbolic(_) => None,
        };
        let [batch, axes @ ..] = &shape.iter().map(length).collect::<Vec<_>>()[..] else {
            return Err(fail("its input says nothing of its shape".into()));
        };
        let &[a, b, c] = axes else {
            return Err(fail(format!("its input has {} axes, but images need 4", shape.len())));
        };
        let colours = |n: Option<usize>| matches!(n, Some(1 | 3));
        let channels_first = match (colours(a), colours(c)) {
            (true, _) => true,
            (false, true) => false,
            _ => return Err(fail("no axis of its input has 1 or 3 channels".into())),
        };
        let (batch, axes) = (*batch, if channels_first { [b, c, a] } else { [a, b, c] });
        Ok(Extractor {
            path: path.into(),
            input,
            features,
            logits,
            batch,
            axes,
            channels_first,
            range,
            model,
        })
    }

    /// What it makes of images of shape (height, width, channels), pixels channels-last in `[-1, 1]`. Grey images are given to a network for
    /// colours in three equal channels; images of another size than the network's are scaled (bilinear, pixel centres aligned). `progress` hears how many are done, and says
    /// whether to go on.
    pub fn extract(
        &self,
        images: &[f32],
        shape: [usize; 3],
        progress: &mut dyn FnMut(usize) -> bool,
    ) -> Result<Extracted, MetricsError> {
        let fail = |reason: String| MetricsError::Extractor { path: self.path.clone(), reason };
        let each: usize = shape.iter().product();
        if each == 0 || images.is_empty() || !images.len().is_multiple_of(each) {
            return Err(fail(format!("{} numbers are not whole images of {shape:?}", images.len())));
        }
        let channels = self.axes[2].unwrap_or(shape[2]);
        if shape[2] != channels && shape[2] != 1 {
            return Err(fail(format!("it takes {channels} channel(s), but the images have {}", shape[2])));
        }
        let size = [self.axes[0].unwrap_or(shape[0]), self.axes[1].unwrap_or(shape[1]), channels];
        let batch = self.batch.unwrap_or(BATCH);
        let mut out = Extracted::default();
        let mut logits = Vec::new();
        let (total, mut done) = (images.len() / each, 0);
        for some in images.chunks(batch * each) {
            let count = some.len() / each;
            let rows = if self.batch.is_some() { batch } else { count };
            let input = self.input_of(some, shape, size, rows);
            let wanted: Vec<NodeId> = std::iter::once(self.features).chain(self.logits).collect();
            let outputs = self.model.run(vec![(self.input, input.into())], &wanted, None);
            let outputs = outputs.map_err(|e| fail(format!("it could not be run ({e})")))?;
            for (i, value) in outputs.into_iter().enumerate() {
                let tensor: Tensor<f32> = value.try_into().map_err(|e| fail(format!("its output: {e}")))?;
                let numbers: Vec<f64> = tensor.iter().map(|v| f64::from(*v)).collect();
                if !numbers.len().is_multiple_of(rows) || numbers.is_empty() {
                    return Err(fail(format!("its output has the shape {:?}", tensor.shape())));
                }
                let used = &numbers[..numbers.len() / rows * count];
                if i == 0 { out.features.extend(used) } else { logits.extend(used) }
            }
            done += count;
            if !progress(done) {
                return Err(MetricsError::Stopped { done, total });
            }
        }
        out.dim = out.features.len() / total;
        out.logits = self.logits.map(|_| (logits.len() / total, logits));
        Ok(out)
    }

    /// The input for some images, `rows` of them; those beyond the last repeat the first.
    fn input_of(&self, images: &[f32], shape: [usize; 3], size: [usize; 3], rows: usize) -> NdTensor<f32, 4> {
        let (each, [h, w, c]) = (shape.iter().product::<usize>(), size);
        let count = images.len() / each;
        let mut data = Vec::with_capacity(rows * h * w * c);
        for i in 0..rows {
            let image = &images[(i % count) * each..(i % count + 1) * each];
            let scaled = scale(image, shape, [h, w]);
            let pixel = |y: usize, x: usize, k: usize| {
                self.range.of(scaled[(y * w + x) * shape[2] + k.min(shape[2] - 1)])
            };
            if self.channels_first {
                (0..c).for_each(|k| (0..h * w).for_each(|p| data.push(pixel(p / w, p % w, k))));
            } else {
                (0..h * w).for_each(|p| (0..c).for_each(|k| data.push(pixel(p / w, p % w, k))));
            }
        }
        let axes = if self.channels_first { [rows, c, h, w] } else { [rows, h, w, c] };
        NdTensor::from_data(axes, data)
    }
}

/// An image of another size: bilinear between pixel centres, the border going on beyond itself.
fn scale(image: &[f32], [h, w, c]: [usize; 3], [to_h, to_w]: [usize; 2]) -> Vec<f32> {
    if [h, w] == [to_h, to_w] {
        return image.to_vec();
    }
    let place = |i: usize, to: usize, n: usize| {
        let at = ((i as f32 + 0.5) * n as f32 / to as f32 - 0.5).clamp(0.0, (n - 1) as f32);
        (at as usize, (at as usize + 1).min(n - 1), at.fract())
    };
    let mut out = Vec::with_capacity(to_h * to_w * c);
    for i in 0..to_h {
        let (y0, y1, fy) = place(i, to_h, h);
        for j in 0..to_w {
            let (x0, x1, fx) = place(j, to_w, w);
            for k in 0..c {
                let at = |y: usize, x: usize| image[(y * w + x) * c + k];
                let row = |y: usize| at(y, x0) + fx * (at(y, x1) - at(y, x0));
                out.push(row(y0) + fy * (row(y1) - row(y0)));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scaling_keeps_ramps_and_sizes_that_fit() {
        let ramp: Vec<f32> = (0..8 * 8).map(|i| (i % 8) as f32).collect();
        assert_eq!(scale(&ramp, [8, 8, 1], [8, 8]), ramp);
        let twice = scale(&ramp, [8, 8, 1], [16, 16]);
        // Centres of the new pixels, on the old scale: -0.25, 0.25, 0.75, ...
        for j in 1..15 {
            assert!((twice[16 * 5 + j] - (j as f32 * 0.5 - 0.25)).abs() < 1e-6);
        }
        assert_eq!((twice[0], twice[15]), (0.0, 7.0));
    }

    #[test]
    fn what_is_no_network_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.onnx");
        let text = |range| Extractor::load(&path, range).err().unwrap().to_string();
        assert!(text(Range::Unit).contains("model.onnx"));
        std::fs::write(&path, b"not a model").unwrap();
        assert!(text(Range::Unit).contains("no ONNX model"), "{}", text(Range::Unit));
    }
}
