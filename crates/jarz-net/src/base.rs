//! The base measure: a Gaussian or a mixture of Gaussians fitted to data, and the walkers' coordinates.
//!
//! Walkers live in coordinates `z`, with `x = mean + L z`. `L L'` is the covariance of the base if that is a Gaussian, which is the standard one there; for a mixture see `mixture`. A kernel that moves `z`
//! moves `x` preconditioned by that covariance, and its weights stay exact, since nothing but the coordinates has changed.

use crate::error::Error;
use crate::mixture::{self, Component};
use crate::product::{Product, Run, Start, multiply, pack, padded};
use jarz::Real;
use jarz::simd::Isa;
use serde::{Deserialize, Serialize};

/// What a base may know of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BaseKind {
    /// Mean, and one variance for all coordinates.
    Isotropic,
    /// Mean, and the variance of each coordinate.
    Diagonal,
    /// Mean and covariance.
    Full,
    /// So many Gaussians with means and covariances of their own, in coordinates in which the mean of their precisions is one.
    Mixture(usize),
}

/// A base measure: a Gaussian, or a mixture of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Base {
    mean: Vec<f64>,
    factor: Factor,
    /// None if the base is the Gaussian itself.
    components: Vec<Component>,
}

#[derive(Clone, Debug, PartialEq)]
enum Factor {
    /// Standard deviation of each coordinate.
    Diagonal(Vec<f64>),
    /// Lower triangle of the covariance's Cholesky factor, row-major with zeros above.
    Full(Vec<f64>),
}

impl Base {
    /// The standard Gaussian: `x = z`.
    pub fn standard(dim: usize) -> Self {
        let factor = Factor::Diagonal(vec![1.0; dim]);
        Base { mean: vec![0.0; dim], factor, components: Vec::new() }
    }

    /// Fitted to rows of data with independent noise of standard deviation `noise` added to every coordinate.
    pub fn fit(data: &[f64], dim: usize, noise: f64, kind: BaseKind) -> Result<Self, Error> {
        let n = data.len().checked_div(dim).unwrap_or(0);
        if n == 0 || data.len() != n * dim || data.iter().any(|v| !v.is_finite()) {
            return Err(Error::Data(format!(
                "a base needs whole rows of {dim} finite numbers, at least one; there are {} numbers",
                data.len()
            )));
        }
        if !(noise >= 0.0 && noise.is_finite()) {
            return Err(Error::Data(format!("the noise must be a standard deviation, not {noise}")));
        }
        let mut mean = vec![0.0; dim];
        for row in data.chunks_exact(dim) {
            mean.iter_mut().zip(row).for_each(|(m, v)| *m += v / n as f64);
        }
        let centred: Vec<f64> = data.iter().enumerate().map(|(i, v)| v - mean[i % dim]).collect();
        let mut variance = vec![noise * noise; dim];
        for row in centred.chunks_exact(dim) {
            variance.iter_mut().zip(row).for_each(|(s, v)| *s += v * v / n as f64);
        }
        let components = match kind {
            BaseKind::Mixture(count) => mixture::fit(data, dim, noise, count)?,
            _ => Vec::new(),
        };
        let factor = match kind {
            BaseKind::Isotropic => {
                let all = variance.iter().sum::<f64>() / dim as f64;
                Factor::Diagonal(vec![all.sqrt(); dim])
            }
            BaseKind::Diagonal => Factor::Diagonal(variance.iter().map(|v| v.sqrt()).collect()),
            BaseKind::Full => Factor::Full(cholesky(covariance(&centred, dim, n as f64, noise), dim)?),
            BaseKind::Mixture(_) => Factor::Full(mixture::coordinates(&components, dim)?),
        };
        let base = Base { mean, factor, components };
        if base.deviations().any(|s| s.is_nan() || s <= 0.0) {
            return Err(Error::Data(
                "the data does not vary in some coordinate: add noise, or take an isotropic base".into(),
            ));
        }
        Ok(base)
    }

    /// From a mean and a factor of the covariance: standard deviations (`dim` numbers) or a lower triangular matrix (`dim * dim`, row-major).
    pub fn from_parts(mean: Vec<f64>, factor: Vec<f64>) -> Result<Self, Error> {
        let dim = mean.len();
        let factor = match factor.len() {
            n if n == dim => Factor::Diagonal(factor),
            n if n == dim * dim => Factor::Full(factor),
            n => {
                return Err(Error::Data(format!(
                    "{n} numbers are no factor of a covariance in {dim} dimensions"
                )));
            }
        };
        let base = Base { mean, factor, components: Vec::new() };
        let triangular = match &base.factor {
            Factor::Full(l) => is_triangular(l, dim),
            Factor::Diagonal(_) => true,
        };
        let numbers = base.factor().iter().chain(&base.mean).all(|v| v.is_finite());
        if dim == 0 || !triangular || !numbers || base.deviations().any(|s| s <= 0.0) {
            return Err(Error::Data(
                "a base needs a lower triangular factor with a positive diagonal".into(),
            ));
        }
        Ok(base)
    }

    /// With a mixture in place of the Gaussian, whose coordinates stay those of the walkers.
    pub fn with_components(self, components: Vec<Component>) -> Result<Self, Error> {
        let dim = self.dim();
        let refuse = |text: &str| Err(Error::Data(text.into()));
        if !matches!(self.factor, Factor::Full(_)) {
            return refuse("a mixture needs coordinates with a full covariance");
        }
        for c in &components {
            let numbers = c.factor.iter().chain(&c.mean).chain([&c.weight]).all(|v| v.is_finite());
            let sizes = c.mean.len() == dim && c.factor.len() == dim * dim;
            if !sizes
                || !numbers
                || c.weight <= 0.0
                || !is_triangular(&c.factor, dim)
                || c.factor.iter().step_by(dim + 1).any(|s| *s <= 0.0)
            {
                return refuse(
                    "a component needs a positive weight and a lower triangular factor with a positive diagonal",
                );
            }
        }
        let total: f64 = components.iter().map(|c| c.weight).sum();
        if !components.is_empty() && (total - 1.0).abs() > 1e-6 {
            return refuse(&format!("the weights of a mixture must add up to 1, not {total}"));
        }
        Ok(Base { components, ..self })
    }

    /// A Gaussian with a factor that is known to be one.
    pub(crate) fn gaussian(mean: Vec<f64>, factor: Vec<f64>) -> Self {
        Base { mean, factor: Factor::Full(factor), components: Vec::new() }
    }

    /// The Gaussians of a mixture; none if the base is a Gaussian.
    pub fn components(&self) -> &[Component] {
        &self.components
    }

    /// Dimension.
    pub fn dim(&self) -> usize {
        self.mean.len()
    }

    /// The mean.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// As [`Base::from_parts`] takes it.
    pub fn factor(&self) -> &[f64] {
        match &self.factor {
            Factor::Diagonal(s) => s,
            Factor::Full(l) => l,
        }
    }

    /// The diagonal of the factor.
    fn deviations(&self) -> impl Iterator<Item = f64> + '_ {
        let (factor, step) = match &self.factor {
            Factor::Diagonal(s) => (s, 1),
            Factor::Full(l) => (l, self.dim() + 1),
        };
        factor.iter().step_by(step).copied()
    }

    /// `log |det L|`: a density of `x` is that of `z` divided by this determinant, so a cross-entropy in the coordinates of the data is
    /// the one in `z` plus this.
    pub fn log_det(&self) -> f64 {
        self.deviations().map(f64::ln).sum()
    }

    /// The maps between coordinates, ready for blocks of rows.
    pub fn maps<T: Real>(&self) -> Maps<T> {
        let dim = self.dim();
        let cast = |v: &[f64]| v.iter().map(|&v| T::from_f64(v)).collect::<Vec<T>>();
        let back = match &self.factor {
            Factor::Full(l) => invert(l, dim),
            Factor::Diagonal(_) => Vec::new(),
        };
        let kind = match &self.factor {
            Factor::Diagonal(s)
                if s.iter()
                    .chain(&self.mean)
                    .zip([1.0, 0.0].iter().flat_map(|v| vec![v; dim]))
                    .all(|(a, b)| a == b) =>
            {
                Kind::Same
            }
            Factor::Diagonal(s) => Kind::Diagonal(cast(s), s.iter().map(|s| T::from_f64(1.0 / s)).collect()),
            Factor::Full(l) => {
                let turn =
                    |m: &[f64]| -> Vec<f64> { (0..dim * dim).map(|i| m[i % dim * dim + i / dim]).collect() };
                Kind::Full(Box::new(Matrices {
                    forward: Triangle::new(&turn(l), dim, false),
                    transposed: Triangle::new(l, dim, true),
                    inverse: Triangle::new(&turn(&back), dim, false),
                }))
            }
        };
        let mean = cast(&self.mean);
        let offset = match &self.factor {
            Factor::Full(_) => {
                (0..dim).map(|i| -(0..=i).map(|j| back[i * dim + j] * self.mean[j]).sum::<f64>()).collect()
            }
            Factor::Diagonal(s) => s.iter().zip(&self.mean).map(|(s, m)| -m / s).collect::<Vec<f64>>(),
        };
        Maps { dim, mean, offset: cast(&offset), kind }
    }
}

/// Maps between the coordinates `x` of the data and the whitened `z`, for blocks of rows.
#[derive(Clone, Debug)]
pub struct Maps<T> {
    dim: usize,
    mean: Vec<T>,
    /// `-L^-1 mean`.
    offset: Vec<T>,
    kind: Kind<T>,
}

#[derive(Clone, Debug)]
enum Kind<T> {
    /// `x = z`.
    Same,
    /// `L` and its inverse.
    Diagonal(Vec<T>, Vec<T>),
    Full(Box<Matrices<T>>),
}

#[derive(Clone, Debug)]
struct Matrices<T> {
    forward: Triangle<T>,
    transposed: Triangle<T>,
    inverse: Triangle<T>,
}

impl<T: Real> Maps<T> {
    /// Whether `x = z`.
    pub fn is_identity(&self) -> bool {
        matches!(self.kind, Kind::Same)
    }

    /// Whether the factor is a matrix.
    pub(crate) fn is_full(&self) -> bool {
        matches!(self.kind, Kind::Full(_))
    }

    /// `x = mean + L z`.
    pub fn to_data(&self, z: &[T], x: &mut [T]) {
        match &self.kind {
            Kind::Same => x.copy_from_slice(z),
            Kind::Diagonal(s, _) => self.each(z, x, s, &self.mean),
            Kind::Full(m) => m.forward.apply(z, Some(&self.mean), x),
        }
    }

    /// `z = L^-1 (x - mean)`.
    pub fn to_base(&self, x: &[T], z: &mut [T]) {
        match &self.kind {
            Kind::Same => z.copy_from_slice(x),
            Kind::Diagonal(_, s) => self.each(x, z, s, &self.offset),
            Kind::Full(m) => m.inverse.apply(x, Some(&self.offset), z),
        }
    }

    /// Gradients in `z` from gradients in `x`: `L'` times them.
    pub fn gradient_to_base(&self, of_x: &[T], of_z: &mut [T]) {
        match &self.kind {
            Kind::Same => of_z.copy_from_slice(of_x),
            Kind::Diagonal(s, _) => {
                let rows = of_x.chunks_exact(self.dim).zip(of_z.chunks_exact_mut(self.dim));
                rows.for_each(|(a, b)| (0..self.dim).for_each(|j| b[j] = s[j] * a[j]));
            }
            Kind::Full(m) => m.transposed.apply(of_x, None, of_z),
        }
    }

    fn each(&self, from: &[T], to: &mut [T], scale: &[T], shift: &[T]) {
        for (from, to) in from.chunks_exact(self.dim).zip(to.chunks_exact_mut(self.dim)) {
            for j in 0..self.dim {
                to[j] = scale[j].mul_add(from[j], shift[j]);
            }
        }
    }
}

/// A triangular matrix, to be multiplied with rows from the left; only the part that is not zero is used.
#[derive(Clone, Debug)]
pub(crate) struct Triangle<T> {
    dim: usize,
    /// Columns, the terms that reach them, and the packed numbers.
    panels: Vec<(usize, std::ops::Range<usize>, Vec<T>)>,
}

/// Columns of a panel.
const PANEL: usize = 64;
/// Rows that are handled together.
const ROWS: usize = 64;

impl<T: Real> Triangle<T> {
    /// `matrix[k * dim + j]` multiplies coordinate `k` in coordinate `j` of the result; zero for `k < j` if `lower`, for `k > j` otherwise.
    pub fn new(matrix: &[f64], dim: usize, lower: bool) -> Self {
        let cast: Vec<T> = matrix.iter().map(|&v| T::from_f64(v)).collect();
        let panels = (0..dim).step_by(PANEL).map(|first| {
            let last = dim.min(first + PANEL);
            let terms = if lower { first..dim } else { 0..last };
            let mut packed = Vec::new();
            pack(terms.len(), last - first, &mut packed, |k| {
                let row = (terms.start + k) * dim;
                &cast[row + first..row + last]
            });
            (first, terms, packed)
        });
        Triangle { dim, panels: panels.collect() }
    }

    pub fn apply(&self, x: &[T], start: Option<&[T]>, out: &mut [T]) {
        let isa = Isa::best();
        let rows: Vec<u32> = (0..ROWS as u32).map(|i| i * self.dim as u32).collect();
        let mut first_row = vec![T::ZERO; padded(PANEL)];
        for (x, out) in x.chunks(ROWS * self.dim).zip(out.chunks_mut(ROWS * self.dim)) {
            let count = x.len() / self.dim;
            for (first, terms, packed) in &self.panels {
                let columns = PANEL.min(self.dim - first);
                if let Some(start) = start {
                    first_row[..columns].copy_from_slice(&start[*first..first + columns]);
                }
                let product = Product {
                    a: x,
                    rows: &rows[..count],
                    runs: &[Run::new(terms.start, 0, terms.len())],
                    b: packed,
                    depth: terms.len(),
                    columns,
                    to: &rows[..count],
                    start: Start::Row(&first_row),
                };
                multiply(isa, product, &mut out[*first..]);
            }
        }
    }
}

fn is_triangular(l: &[f64], dim: usize) -> bool {
    (0..dim).all(|i| l[i * dim + i + 1..(i + 1) * dim].iter().all(|v| *v == 0.0))
}

/// Covariance of centred rows with noise; what is summed is divided by `total`.
pub(crate) fn covariance(centred: &[f64], dim: usize, total: f64, noise: f64) -> Vec<f64> {
    const PIECE: usize = 512;
    let columns: Vec<u32> = (0..dim as u32).collect();
    let to: Vec<u32> = columns.iter().map(|j| j * dim as u32).collect();
    let (mut sums, mut packed) = (vec![0.0; dim * dim], Vec::new());
    for rows in centred.chunks(PIECE * dim) {
        let count = rows.len() / dim;
        pack(count, dim, &mut packed, |k| &rows[k * dim..(k + 1) * dim]);
        let (start, depth) = (Start::Present, count);
        let runs = &[Run { a: 0, step: dim as u32, b: 0, len: count as u32 }];
        let product =
            Product { a: rows, rows: &columns, runs, b: &packed, depth, columns: dim, to: &to, start };
        multiply(Isa::best(), product, &mut sums);
    }
    sums.iter_mut().for_each(|s| *s /= total);
    sums.iter_mut().step_by(dim + 1).for_each(|s| *s += noise * noise);
    sums
}

/// Lower Cholesky factor, in place of the matrix.
pub(crate) fn cholesky(mut a: Vec<f64>, dim: usize) -> Result<Vec<f64>, Error> {
    for i in 0..dim {
        let (above, row) = a.split_at_mut(i * dim);
        for j in 0..i {
            let known = &above[j * dim..j * dim + j];
            let dot: f64 = row[..j].iter().zip(known).map(|(a, b)| a * b).sum();
            row[j] = (row[j] - dot) / above[j * dim + j];
        }
        let rest = row[i] - row[..i].iter().map(|v| v * v).sum::<f64>();
        if rest.is_nan() || rest <= 0.0 {
            return Err(Error::Data(format!(
                "the covariance of the data is singular (coordinate {i} follows from those before it): add noise"
            )));
        }
        row[i] = rest.sqrt();
        row[i + 1..dim].fill(0.0);
    }
    Ok(a)
}

/// Inverse of a lower triangular matrix.
pub(crate) fn invert(l: &[f64], dim: usize) -> Vec<f64> {
    let mut out = vec![0.0; dim * dim];
    for i in 0..dim {
        let (done, row) = out.split_at_mut(i * dim);
        row[i] = 1.0;
        for k in 0..i {
            let factor = l[i * dim + k];
            if factor != 0.0 {
                row[..=k].iter_mut().zip(&done[k * dim..]).for_each(|(r, d)| *r -= factor * d);
            }
        }
        row[..=i].iter_mut().for_each(|r| *r /= l[i * dim + i]);
    }
    out
}
