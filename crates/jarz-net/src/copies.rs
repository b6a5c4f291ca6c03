//! Numbers from one tensor to another: layers that compute little or nothing.

use crate::tensor::Tensor;
use jarz::Real;

/// Where the numbers of images lie in a tensor: runs of equal length, as long as can be.
pub(crate) fn runs(t: &Tensor, gradient: bool, count: usize) -> (impl Iterator<Item = usize> + '_, usize) {
    let bare = if gradient { t.gradient_margin == 0 } else { t.margin == 0 };
    let (number, len) =
        if bare { (1, count * t.height * t.row_len()) } else { (count * t.height, t.row_len()) };
    ((0..number).map(move |i| t.row(i / t.height, i % t.height, gradient)), len.max(1))
}

/// Pairs of equally long runs in two arrangements of the same images.
pub(crate) struct Rows<'a> {
    from: &'a Tensor,
    to: &'a Tensor,
    gradients: (bool, bool),
    count: usize,
    /// Numbers in a run.
    len: usize,
}

impl<'a> Rows<'a> {
    pub fn of(
        from: &'a Tensor,
        from_gradient: bool,
        to: &'a Tensor,
        to_gradient: bool,
        count: usize,
    ) -> Self {
        let bare = |t: &Tensor, gradient: bool| if gradient { t.gradient_margin == 0 } else { t.margin == 0 };
        let all = bare(from, from_gradient) && bare(to, to_gradient);
        let len = if all { count * from.places() * from.channels } else { from.row_len() };
        Rows { from, to, gradients: (from_gradient, to_gradient), count, len }
    }

    fn starts(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let runs = self.count * self.from.places() * self.from.channels / self.len.max(1);
        let height = self.from.height;
        (0..runs).map(move |i| {
            let (n, y) = (i / height, i % height);
            (self.from.row(n, y, self.gradients.0), self.to.row(n, y, self.gradients.1))
        })
    }

    pub fn copy<T: Real>(&self, from: &[T], to: &mut [T], add: bool) {
        for (a, b) in self.starts() {
            let (from, to) = (&from[a..a + self.len], &mut to[b..b + self.len]);
            match add {
                true => to.iter_mut().zip(from).for_each(|(t, f)| *t += *f),
                false => to.copy_from_slice(from),
            }
        }
    }
}

/// Rows without anything between them into a tensor.
pub(crate) fn enter<T: Real>(tensor: &Tensor, x: &[T], to: &mut [T]) {
    let n = tensor.row_len();
    for (row, x) in tensor.rows(x.len() / (n * tensor.height), false).zip(x.chunks_exact(n)) {
        to[row..row + n].copy_from_slice(x);
    }
}

/// And out of it.
pub(crate) fn leave<T: Real>(tensor: &Tensor, gradient: bool, from: &[T], x: &mut [T]) {
    let n = tensor.row_len();
    for (row, x) in tensor.rows(x.len() / (n * tensor.height), gradient).zip(x.chunks_exact_mut(n)) {
        x.copy_from_slice(&from[row..row + n]);
    }
}

/// The same numbers in the same order, between tensors of different sides.
pub(crate) fn reshape<T: Real>(
    from: &Tensor,
    from_gradient: bool,
    values: &[T],
    to: &Tensor,
    to_gradient: bool,
    out: &mut [T],
    count: usize,
    add: bool,
) {
    let run = if from.row_len() < to.row_len() { from.row_len() } else { to.row_len() };
    let place = |t: &Tensor, gradient: bool, at: usize| {
        let row = at / t.row_len();
        t.row(row / t.height, row % t.height, gradient) + at % t.row_len()
    };
    for at in (0..count * from.height * from.row_len()).step_by(run.max(1)) {
        let (a, b) = (place(from, from_gradient, at), place(to, to_gradient, at));
        for i in 0..run {
            out[b + i] = if add { out[b + i] + values[a + i] } else { values[a + i] };
        }
    }
}

pub(crate) fn pool<T: Real>(
    from: &Tensor,
    values: &[T],
    to: &Tensor,
    out: &mut [T],
    side: usize,
    count: usize,
) {
    let (c, share) = (from.channels, T::from_f64(1.0 / (side * side) as f64));
    for (i, row) in to.rows(count, false).enumerate() {
        let (n, y) = (i / to.height, i % to.height);
        for (x, out) in out[row..row + to.row_len()].chunks_exact_mut(c).enumerate() {
            out.fill(T::ZERO);
            for (j, k) in (0..side * side).map(|s| (s / side, s % side)) {
                let at = from.row(n, y * side + j, false) + (x * side + k) * c;
                out.iter_mut().zip(&values[at..at + c]).for_each(|(o, v)| *o += *v);
            }
            out.iter_mut().for_each(|o| *o = *o * share);
        }
    }
}

pub(crate) fn unpool<T: Real>(
    from: &Tensor,
    gradient: &[T],
    to: &Tensor,
    out: &mut [T],
    side: usize,
    count: usize,
    add: bool,
) {
    let (c, share) = (to.channels, T::from_f64(1.0 / (side * side) as f64));
    for (i, row) in to.rows(count, true).enumerate() {
        let (n, y) = (i / to.height, i % to.height);
        for (x, out) in out[row..row + to.row_len()].chunks_exact_mut(c).enumerate() {
            let at = from.row(n, y / side, true) + x / side * c;
            for (o, g) in out.iter_mut().zip(&gradient[at..at + c]) {
                *o = if add { *o + *g * share } else { *g * share };
            }
        }
    }
}
