//! Natural gradient, layer by layer.
//!
//! A step `d` of the parameters spreads the log-weights by `d' F d` with `F = Cov(dU/dtheta)`, the Fisher information. Of all steps that spread them
//! alike, `F^-1 D` descends the most. Walkers and data points are samples, so what scatters the direction `D` from iteration to iteration is `F` over their
//! number. For a matrix of parameters, `F` is approximated by the Kronecker product of the second moments of the rows and of the columns of `D`, which are
//! collected on the way, and `F^-1 D` takes two small linear systems.

use super::Matrix;
use crate::simd::{Isa, multiversion};

/// Iterations from one look at the scatter to the next.
pub(super) const EVERY: u64 = 10;
/// Larger sides of a matrix are left as they are.
const LARGEST: usize = 2048;

/// What is kept of a side: its second moments, or nothing if it is too large.
fn kept(side: usize) -> usize {
    if side > LARGEST { 0 } else { side * side }
}

impl Matrix {
    /// Numbers kept for it: second moments of both sides, and the mean square.
    fn moments(&self) -> usize {
        kept(self.rows) + kept(self.columns) + 1
    }

    fn len(&self) -> usize {
        self.rows * self.columns
    }
}

/// Numbers kept for all of them.
pub(super) fn moments(matrices: &[Matrix]) -> usize {
    matrices.iter().map(Matrix::moments).sum()
}

/// The inverse second moments of a matrix.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Factors {
    rows: Option<Vec<f64>>,
    columns: Option<Vec<f64>>,
    scale: f64,
}

/// Lets the second moments decay by `beta` and adds those of a direction.
pub(super) fn collect(matrices: &[Matrix], direction: &[f64], scale: f64, beta: f64, moments: &mut [f64]) {
    let mut rest = moments;
    let mut first = 0;
    for matrix in matrices {
        let (own, others) = rest.split_at_mut(matrix.moments());
        rest = others;
        let values = &direction[first..first + matrix.len()];
        first += matrix.len();
        own.iter_mut().for_each(|m| *m *= beta);
        let (by_rows, own) = own.split_at_mut(kept(matrix.rows));
        let (by_columns, square) = own.split_at_mut(kept(matrix.columns));
        let gain = (1.0 - beta) * scale * scale;
        let row = |i: usize| &values[i * matrix.columns..(i + 1) * matrix.columns];
        for (i, sums) in by_rows.chunks_exact_mut(matrix.rows).enumerate() {
            for (j, sum) in sums[..=i].iter_mut().enumerate() {
                *sum += gain * dot(row(i), row(j));
            }
        }
        for i in 0..matrix.rows {
            for (j, sums) in by_columns.chunks_exact_mut(matrix.columns).enumerate() {
                let weight = gain * row(i)[j];
                sums[..=j].iter_mut().zip(row(i)).for_each(|(sum, v)| *sum += weight * v);
            }
        }
        square[0] += gain * dot(values, values) / matrix.len() as f64;
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    const LANES: usize = 8;
    let mut sums = [0.0; LANES];
    let (a, b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f64 = a.remainder().iter().zip(b.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a.zip(b) {
        for l in 0..LANES {
            sums[l] += a[l] * b[l];
        }
    }
    sums.iter().sum::<f64>() + rest
}

/// Inverts the second moments. Every side gets `damping` of its mean moment in addition, and every mean square that of all matrices together.
pub(super) fn factorise(matrices: &[Matrix], moments: &[f64], damping: f64) -> Vec<Factors> {
    let mut rest = moments;
    let parts: Vec<[&[f64]; 3]> = matrices
        .iter()
        .map(|matrix| {
            let (by_rows, others) = rest.split_at(kept(matrix.rows));
            let (by_columns, others) = others.split_at(kept(matrix.columns));
            let (square, others) = others.split_at(1);
            rest = others;
            [by_rows, by_columns, square]
        })
        .collect();
    let (sum, count) = matrices
        .iter()
        .zip(&parts)
        .fold((0.0, 0.0), |(s, n), (m, p)| (s + m.len() as f64 * p[2][0], n + m.len() as f64));
    let overall: f64 = sum / count;
    let factors = matrices.iter().zip(parts).map(|(matrix, [by_rows, by_columns, square])| Factors {
        rows: cholesky(by_rows, matrix.rows, damping).map(|l| inverse(&l, matrix.rows)),
        columns: cholesky(by_columns, matrix.columns, damping).map(|l| inverse(&l, matrix.columns)),
        // Where nothing has been seen, the direction itself.
        scale: if overall > 0.0 { overall.sqrt() / (square[0] + damping * overall) } else { 1.0 },
    });
    factors.collect()
}

/// Lower Cholesky factor of a matrix, of which the lower triangle is given, divided by its mean diagonal and damped.
fn cholesky(moments: &[f64], side: usize, damping: f64) -> Option<Vec<f64>> {
    let mean = moments.iter().step_by(side + 1).sum::<f64>() / side as f64;
    if moments.is_empty() || mean.is_nan() || mean <= 0.0 {
        return None;
    }
    let mut l: Vec<f64> = moments.iter().map(|m| m / mean).collect();
    for i in 0..side {
        let (above, row) = l.split_at_mut(i * side);
        for j in 0..i {
            row[j] = (row[j] - dot(&row[..j], &above[j * side..j * side + j])) / above[j * side + j];
        }
        // Moments are not negative but for rounding, which the damping outweighs.
        let rest = row[i] + damping - dot(&row[..i], &row[..i]);
        row[i] = rest.max(0.1 * damping).sqrt();
    }
    Some(l)
}

/// The inverse of a matrix with this lower Cholesky factor.
fn inverse(l: &[f64], side: usize) -> Vec<f64> {
    // Row `j` of `w` is column `j` of the factor's inverse, which begins at its diagonal.
    let mut w = vec![0.0; side * side];
    for j in 0..side {
        let row = &mut w[j * side..(j + 1) * side];
        row[j] = 1.0 / l[j * side + j];
        for i in j + 1..side {
            row[i] = -dot(&row[j..i], &l[i * side + j..i * side + i]) / l[i * side + i];
        }
    }
    let mut out = vec![0.0; side * side];
    for i in 0..side {
        for j in 0..=i {
            let sum = dot(&w[i * side + i..(i + 1) * side], &w[j * side + i..(j + 1) * side]);
            (out[i * side + j], out[j * side + i]) = (sum, sum);
        }
    }
    out
}

/// Step that descends the most of all that spread the log-weights alike, `F^-1 direction`, for a few parameters whose Fisher information `fisher` is known as it is. Variances get a share
/// `damping` of themselves in addition, and a tenth of that share of their mean: what hardly varies in a sample may vary very much elsewhere.
pub(crate) fn exact_step(fisher: &[f64], direction: &mut [f64], damping: f64) {
    let side = direction.len();
    let floor = 0.1 * damping * fisher.iter().step_by(side + 1).sum::<f64>() / side as f64;
    if floor.is_nan() || floor <= 0.0 {
        return direction.fill(0.0);
    }
    let widths: Vec<f64> = fisher.iter().step_by(side + 1).map(|f| (f + floor).sqrt()).collect();
    let entry = |i: usize, j: usize| fisher[i * side + j] / (widths[i] * widths[j]);
    let correlations: Vec<f64> = (0..side * side)
        .map(|at| (at / side, at % side))
        .map(|(i, j)| if i == j { 1.0 } else { entry(i, j) })
        .collect();
    let Some(factor) = cholesky(&correlations, side, damping) else { return direction.fill(0.0) };
    let per_width: Vec<f64> = direction.iter().zip(&widths).map(|(d, w)| d / w).collect();
    let rows = inverse(&factor, side);
    for ((d, row), width) in direction.iter_mut().zip(rows.chunks_exact(side)).zip(&widths) {
        *d = dot(row, &per_width) / width;
    }
}

impl Factors {
    /// `scale R^-1 values C^-1`, in place.
    pub fn solve(&self, matrix: &Matrix, values: &mut [f64]) {
        let (m, n, isa) = (matrix.rows, matrix.columns, Isa::best());
        let mut out = vec![0.0; values.len()];
        if let Some(rows) = &self.rows {
            add_product(isa, rows, values, m, n, &mut out);
            values.copy_from_slice(&out);
        }
        if let Some(columns) = &self.columns {
            out.fill(0.0);
            add_product(isa, values, columns, n, n, &mut out);
            values.copy_from_slice(&out);
        }
        values.iter_mut().for_each(|v| *v *= self.scale);
    }
}

multiversion! {
    /// `out += a b`, for `a` with `inner` columns and `b` with `n`. Rows of the result are made eight at a time, so that `b` is read only every eighth time.
    fn add_product(a: &[f64], b: &[f64], inner: usize, n: usize, out: &mut [f64]) {
        for (a, out) in a.chunks(8 * inner).zip(out.chunks_mut(8 * n)) {
            for (k, b) in b.chunks_exact(n).enumerate() {
                for (a, out) in a.chunks_exact(inner).zip(out.chunks_exact_mut(n)) {
                    let factor = a[k];
                    for (o, b) in out.iter_mut().zip(b) {
                        *o = factor.mul_add(*b, *o);
                    }
                }
            }
        }
    }
}
#[cfg(test)]
mod tests {
    use super::*;

    /// Second moments that are a Kronecker product exactly: the solution is that of the whole linear system.
    #[test]
    fn it_solves_the_linear_system_of_the_kronecker_product() {
        let matrix = Matrix { rows: 3, columns: 2 };
        let (a, c) = ([2.0, 0.0, 0.0, 0.3, 1.0, 0.0, -0.2, 0.1, 0.5], [1.0, 0.0, -0.4, 0.7]);
        let moments: Vec<f64> = a.iter().chain(&c).copied().chain([0.25]).collect();
        let damping = 0.01;
        let factors = factorise(&[matrix], &moments, damping);
        let mut values = [1.0, -2.0, 0.5, 0.0, 3.0, 1.5];
        let given = values;
        factors[0].solve(&matrix, &mut values);
        // Multiplied with the damped sides again, it is what was given.
        let full = |lower: &[f64], n: usize, i: usize, j: usize| {
            let mean = (0..n).map(|k| lower[k * n + k]).sum::<f64>() / n as f64;
            lower[i.max(j) * n + i.min(j)] / mean + if i == j { damping } else { 0.0 }
        };
        let scale = 0.25f64.sqrt() / (0.25 + damping * 0.25);
        for i in 0..3 {
            for j in 0..2 {
                let mut sum = 0.0;
                for k in 0..3 {
                    for l in 0..2 {
                        sum += full(&a, 3, i, k) * values[k * 2 + l] * full(&c, 2, l, j);
                    }
                }
                assert!((sum / scale - given[i * 2 + j]).abs() < 1e-12, "{sum} {}", given[i * 2 + j]);
            }
        }
    }

    /// Multiplied with the damped information again, the step is the direction.
    #[test]
    fn an_exact_step_solves_the_linear_system() {
        let fisher = [4.0, 0.5, 1.0, 0.5, 1.0, -1.0, 1.0, -1.0, 10.0];
        let given = [1.0, 5.0, -2.0];
        let mut step = given;
        exact_step(&fisher, &mut step, 0.25);
        for i in 0..3 {
            let sum: f64 = (0..3).map(|j| fisher[3 * i + j] * step[j]).sum();
            // The mean variance is 5, a fortieth of it 0.125.
            let damped = (fisher[4 * i] + 0.125) * 1.25 - fisher[4 * i];
            assert!((sum + damped * step[i] - given[i]).abs() < 1e-12, "{step:?}");
        }
    }

    /// A parameter on which nothing seems to depend hardly moves, and neither do any if there is no information at all.
    #[test]
    fn an_exact_step_is_careful_where_nothing_is_known() {
        let mut step = [1e-3, 1e-3];
        exact_step(&[100.0, 0.0, 0.0, 1e-30], &mut step, 0.1);
        assert!(step[1] > 0.0 && step[1] < 1e-2, "{step:?}");
        let mut step = [1.0, 2.0];
        exact_step(&[0.0; 4], &mut step, 0.1);
        assert_eq!(step, [0.0; 2]);
    }

    #[test]
    fn where_nothing_has_been_seen_the_direction_stays_as_it_is() {
        let matrix = Matrix { rows: 2, columns: 3 };
        let factors = factorise(&[matrix], &vec![0.0; moments(&[matrix])], 0.01);
        let direction = [1.0, -2.0, 3.0, 4.0, 5.0, 6.0];
        let mut step = direction;
        factors[0].solve(&matrix, &mut step);
        assert_eq!(step, direction);
    }

    #[test]
    fn moments_are_those_of_rows_and_columns() {
        let matrices = [Matrix { rows: 2, columns: 3 }, Matrix { rows: 1, columns: 1 }];
        let mut sums = vec![0.0; moments(&matrices)];
        let direction = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
        collect(&matrices, &direction, 2.0, 0.75, &mut sums);
        let lower = [14.0, 0.0, 32.0, 77.0, 17.0, 0.0, 0.0, 22.0, 29.0, 0.0, 27.0, 36.0, 45.0, 91.0 / 6.0];
        let expected: Vec<f64> = lower.iter().chain(&[49.0; 3]).copied().collect();
        assert!(sums.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12), "{sums:?}");
        collect(&matrices, &[0.0; 7], 1.0, 0.5, &mut sums);
        assert!(sums.iter().zip(&expected).all(|(a, b)| (a - 0.5 * b).abs() < 1e-12), "{sums:?}");
    }
}
