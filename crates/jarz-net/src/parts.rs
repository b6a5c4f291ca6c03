//! Which kernel places meet an image and not the zeros around it, and the tables for products over these alone.
//!
//! Places that meet zeros add nothing: in small images with padding they are up to a third of all terms. Positions with the same places share a
//! product, and no zeros need to be stored.

use crate::product::Run;
use crate::tensor::Tensor;
use std::ops::Range;

/// Positions of a block of images that use the same terms, image after image, equally many of each.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// Where each one's numbers begin, and where its result goes.
    pub rows: Vec<u32>,
    pub to: Vec<u32>,
    pub runs: Vec<Run>,
    /// Number of the right factor.
    pub factor: usize,
}

/// One direction of a convolution.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub inputs: usize,
    pub outputs: usize,
    pub kernel: usize,
    pub stride: usize,
    pub padding: usize,
}

impl Line {
    /// The input that place `k` of the kernel meets at `output`; before the first one it is negative.
    pub fn input(&self, output: usize, k: usize) -> isize {
        (output * self.stride + k) as isize - self.padding as isize
    }

    /// Whether that is an input that there is.
    fn meets(&self, output: usize, k: usize) -> bool {
        (0..self.inputs as isize).contains(&self.input(output, k))
    }

    /// Places of the kernel that meet an input at `output`.
    fn places(&self, output: usize) -> Range<usize> {
        span((0..self.kernel).filter(|&k| self.meets(output, k)))
    }

    /// Outputs at which place `k` meets an input.
    pub fn outputs(&self, k: usize) -> Range<usize> {
        span((0..self.outputs).filter(|&o| self.meets(o, k)))
    }

    /// Inputs with the same remainder `phase` modulo the stride are reached from the same places: these, so that outputs ascend.
    pub fn reaching(&self, phase: usize) -> Vec<usize> {
        (phase..self.kernel).step_by(self.stride).rev().collect()
    }

    /// The output that reaches an input of a phase at its first place; negative if there is none.
    fn first_output(&self, input: usize, places: &[usize]) -> isize {
        let first = places.first().map_or(0, |&k| k as isize);
        ((input + self.padding) as isize - first).div_euclid(self.stride as isize)
    }
}

/// From the first to the last of ascending numbers without gaps.
fn span(mut of: impl Iterator<Item = usize>) -> Range<usize> {
    let Some(first) = of.next() else { return 0..0 };
    first..first + 1 + of.count()
}

/// Members for which a range is the same.
pub(crate) type Group = (Range<usize>, Vec<usize>);

/// Groups numbers by their range, in the order of first appearance.
pub(crate) fn group(
    members: impl Iterator<Item = usize>,
    range: impl Fn(usize) -> Range<usize>,
) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for member in members {
        let range = range(member);
        match groups.iter_mut().find(|(r, _)| *r == range) {
            Some((_, members)) => members.push(member),
            None => groups.push((range, vec![member])),
        }
    }
    groups
}

/// Outputs from inputs.
pub(crate) fn forward([y, x]: [Line; 2], from: &Tensor, to: &Tensor, block: usize) -> Vec<Part> {
    let groups = |line: Line| group(0..line.outputs, |o| line.places(o));
    let (rows, columns, c) = (groups(y), groups(x), from.channels);
    let mut parts = Vec::new();
    for (down, ys) in &rows {
        for (across, xs) in &columns {
            let mut part = Part { rows: Vec::new(), to: Vec::new(), runs: Vec::new(), factor: 0 };
            for (i, dy) in down.clone().enumerate() {
                let b = (dy * x.kernel + across.start) * c;
                Run::new(i * from.width_all() * c, b, across.len() * c).join(&mut part.runs);
            }
            for (n, &oy, &ox) in places(block, ys, xs) {
                // Where nothing is met the row does not matter.
                let [at_y, at_x] =
                    [y.input(oy, down.start), x.input(ox, across.start)].map(|i| i.max(0) as usize);
                let none = part.runs.is_empty();
                part.rows.push(if none { 0 } else { from.row(n, at_y, false) + at_x * c } as u32);
                part.to.push((to.row(n, oy, false) + ox * to.channels) as u32);
            }
            parts.push(part);
        }
    }
    parts
}

/// Gradients in inputs from those in outputs: phase after phase, each with kernel places of its own. Gives these, too, as rows and columns.
pub(crate) fn backward(
    [y, x]: [Line; 2],
    from: &Tensor,
    to: &Tensor,
    block: usize,
) -> (Vec<Part>, Vec<Vec<[usize; 2]>>) {
    let (c, row) = (to.channels, to.gradient_width_all() * to.channels);
    let (mut parts, mut factors) = (Vec::new(), Vec::new());
    for phase in 0..y.stride * x.stride {
        let along = |line: Line, phase: usize| {
            let places = line.reaching(phase);
            let inputs = (0..line.inputs).filter(|i| (i + line.padding) % line.stride == phase);
            let found = |i: usize| {
                let first = line.first_output(i, &places);
                span(
                    (0..places.len()).filter(|&j| (0..line.outputs as isize).contains(&(first + j as isize))),
                )
            };
            (group(inputs, found), places)
        };
        let ((rows, down), (columns, across)) = (along(y, phase / x.stride), along(x, phase % x.stride));
        for (ry, ys) in &rows {
            for (rx, xs) in &columns {
                let mut part =
                    Part { rows: Vec::new(), to: Vec::new(), runs: Vec::new(), factor: factors.len() };
                for (i, j) in ry.clone().enumerate() {
                    let b = (j * across.len() + rx.start) * c;
                    Run::new(i * row, b, rx.len() * c).join(&mut part.runs);
                }
                for (n, &iy, &ix) in places(block, ys, xs) {
                    let first = |line: Line, input: usize, places: &[usize], from: usize| {
                        (line.first_output(input, places) + from as isize).max(0) as usize
                    };
                    let (oy, ox) = (first(y, iy, &down, ry.start), first(x, ix, &across, rx.start));
                    let none = part.runs.is_empty();
                    part.rows.push(if none { 0 } else { to.row(n, oy, true) + ox * c } as u32);
                    part.to.push((from.row(n, iy, true) + ix * from.channels) as u32);
                }
                parts.push(part);
            }
        }
        factors.push(down.iter().flat_map(|&dy| across.iter().map(move |&dx| [dy, dx])).collect());
    }
    (parts, factors)
}

/// Gradients in weights from inputs and gradients in outputs, `images` at a time: rows are kernel places with their channels, terms are positions.
/// With `padded` inputs every place meets a number at every position, be it a zero.
pub(crate) fn weights(
    [y, x]: [Line; 2],
    from: &Tensor,
    to: &Tensor,
    images: usize,
    wide: usize,
    padded: bool,
) -> Vec<Part> {
    let groups =
        |line: Line| group(0..line.kernel, |k| if padded { 0..line.outputs } else { line.outputs(k) });
    let (rows, columns, c) = (groups(y), groups(x), from.channels);
    let offset = |y: isize, x: isize| {
        ((y + from.margin as isize) * from.width_all() as isize + x + from.margin as isize) * c as isize
    };
    let mut parts = Vec::new();
    for (down, dys) in &rows {
        for (across, dxs) in &columns {
            let mut part = Part { rows: Vec::new(), to: Vec::new(), runs: Vec::new(), factor: 0 };
            for n in 0..images {
                for (i, oy) in down.clone().enumerate() {
                    let a = n * from.len() + i * y.stride * from.width_all() * c;
                    let b = (n * to.height + oy) * to.width + across.start;
                    let run = Run { step: (x.stride * c) as u32, ..Run::new(a, b, across.len()) };
                    run.join(&mut part.runs);
                }
            }
            for (_, &dy, &dx) in places(1, dys, dxs) {
                let none = part.runs.is_empty();
                let at = if none { 0 } else { offset(y.input(down.start, dy), x.input(across.start, dx)) };
                part.rows.extend((0..c).map(|i| (at as usize + i) as u32));
                part.to.extend((0..c).map(|i| (((dy * x.kernel + dx) * c + i) * wide) as u32));
            }
            parts.push(part);
        }
    }
    parts
}

/// All pairs, image after image.
fn places<'a>(
    images: usize,
    ys: &'a [usize],
    xs: &'a [usize],
) -> impl Iterator<Item = (usize, &'a usize, &'a usize)> {
    (0..images).flat_map(move |n| ys.iter().flat_map(move |y| xs.iter().map(move |x| (n, y, x))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every pair of an input and an output that a kernel place connects, once, whichever way the pass goes.
    #[test]
    fn every_connection_is_there_once() {
        for (inputs, kernel, stride, padding) in [
            (28, 5, 2, 4),
            (16, 3, 2, 1),
            (4, 3, 2, 1),
            (7, 4, 3, 2),
            (5, 2, 3, 0),
            (1, 1, 1, 0),
            (3, 3, 1, 3),
        ] {
            let outputs = (inputs + 2 * padding - kernel) / stride + 1;
            let line = Line { inputs, outputs, kernel, stride, padding };
            let met = |o: usize, k: usize| (0..inputs as isize).contains(&line.input(o, k));
            let expected = (0..outputs * kernel).filter(|i| met(i / kernel, i % kernel)).count();
            let from = Tensor::new([inputs, inputs, 2]);
            let to = Tensor::new([outputs, outputs, 3]);
            let terms = |parts: &[Part]| -> usize {
                let terms = |p: &Part| p.runs.iter().map(|r| r.len as usize).sum::<usize>() * p.rows.len();
                parts.iter().map(terms).sum()
            };
            let lines = [line, line];
            let pairs = expected * expected;
            assert_eq!(terms(&forward(lines, &from, &to, 2)), 2 * pairs * 2, "forward {line:?}");
            assert_eq!(terms(&backward(lines, &from, &to, 2).0), 2 * pairs * 3, "backward {line:?}");
            assert_eq!(terms(&weights(lines, &from, &to, 2, 16, false)), 2 * pairs * 2, "weights {line:?}");
        }
    }
}
