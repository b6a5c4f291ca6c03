//! The Frechet distance between the Gaussians with the moments of two sets of features.

use crate::error::MetricsError;
use crate::features::Moments;
use faer::{Mat, Side};
use serde::Serialize;

/// A Frechet distance (the squared one, as everywhere) and its parts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Frechet {
    /// `|m1 - m2|^2 + tr(C1 + C2 - 2 (C1 C2)^(1/2))`.
    pub distance: f64,
    /// `|m1 - m2|^2`.
    pub of_means: f64,
    /// The rest.
    pub of_covariances: f64,
    /// Whether a set has no more samples than features: its covariance is singular, and the distance much too large.
    pub too_few_samples: bool,
}

/// The distance. `tr (C1 C2)^(1/2)` is the sum of the roots of the eigenvalues of `C1^(1/2) C2 C1^(1/2)`, a symmetric matrix.
pub fn frechet(a: &Moments, b: &Moments) -> Result<Frechet, MetricsError> {
    let (samples, reference) = (a.mean.len(), b.mean.len());
    if samples != reference {
        return Err(MetricsError::Dimensions { samples, reference });
    }
    let of_means = a.mean.iter().zip(&b.mean).map(|(a, b)| (a - b) * (a - b)).sum();
    let root = square_root(&a.covariance)?;
    let product = &root * &b.covariance * &root;
    let product = (&product + product.transpose()) * faer::Scale(0.5);
    let values = product.self_adjoint_eigenvalues(Side::Lower).map_err(|_| MetricsError::Eigenvalues)?;
    let overlap: f64 = significant(values.iter().copied()).map(f64::sqrt).sum();
    let trace = |m: &Mat<f64>| (0..m.nrows()).map(|i| m[(i, i)]).sum::<f64>();
    let of_covariances = trace(&a.covariance) + trace(&b.covariance) - 2.0 * overlap;
    let few = |m: &Moments| m.samples.is_some_and(|n| n <= m.mean.len());
    let too_few_samples = few(a) || few(b);
    Ok(Frechet { distance: of_means + of_covariances, of_means, of_covariances, too_few_samples })
}

/// Eigenvalues of a matrix without negative ones; those that rounding cannot tell from zero are zero, so that their roots do not add up.
fn significant(values: impl Iterator<Item = f64> + Clone) -> impl Iterator<Item = f64> {
    let (count, largest) = (values.clone().count() as f64, values.clone().fold(0.0, f64::max));
    let limit = count * f64::EPSILON * largest;
    values.map(move |v| if v > limit { v } else { 0.0 })
}

fn square_root(m: &Mat<f64>) -> Result<Mat<f64>, MetricsError> {
    let eigen = m.self_adjoint_eigen(Side::Lower).map_err(|_| MetricsError::Eigenvalues)?;
    let values: Vec<f64> = eigen.S().column_vector().iter().copied().collect();
    let roots: Vec<f64> = significant(values.into_iter()).map(f64::sqrt).collect();
    let vectors = eigen.U();
    let scaled = Mat::from_fn(m.nrows(), m.ncols(), |i, j| vectors[(i, j)] * roots[j]);
    Ok(&scaled * vectors.transpose())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaussian(mean: &[f64], covariance: impl Fn(usize, usize) -> f64) -> Moments {
        let d = mean.len();
        Moments { mean: mean.to_vec(), covariance: Mat::from_fn(d, d, covariance), samples: None }
    }

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{found} against {expected}");
    }

    #[test]
    fn diagonal_covariances_have_a_closed_form() {
        let (s, t) = ([1.0, 4.0, 0.25, 9.0], [2.0, 1.0, 0.25, 16.0]);
        let a = gaussian(&[0.0, 1.0, -2.0, 0.5], |i, j| if i == j { s[i] } else { 0.0 });
        let b = gaussian(&[1.0, 1.0, 0.0, 0.0], |i, j| if i == j { t[i] } else { 0.0 });
        let found = frechet(&a, &b).unwrap();
        let roots: f64 = s.iter().zip(t).map(|(s, t)| (s.sqrt() - t.sqrt()).powi(2)).sum();
        close(found.of_means, 1.0 + 4.0 + 0.25);
        close(found.of_covariances, roots);
        close(found.distance, 5.25 + roots);
        assert!(!found.too_few_samples);
    }

    /// In two dimensions `tr (C1 C2)^(1/2) = (tr C1 C2 + 2 (det C1 C2)^(1/2))^(1/2)`.
    #[test]
    fn two_dimensions_have_a_closed_form() {
        let (a, b) = ([[2.0, 0.7], [0.7, 1.0]], [[1.5, -0.9], [-0.9, 3.0]]);
        let det = |m: [[f64; 2]; 2]| m[0][0] * m[1][1] - m[0][1] * m[1][0];
        let trace = a[0][0] * b[0][0] + 2.0 * a[0][1] * b[0][1] + a[1][1] * b[1][1];
        let expected = 3.0 + 4.5 - 2.0 * (trace + 2.0 * (det(a) * det(b)).sqrt()).sqrt();
        let found = frechet(&gaussian(&[0.0; 2], |i, j| a[i][j]), &gaussian(&[0.0; 2], |i, j| b[i][j]));
        close(found.unwrap().distance, expected);
    }

    /// Matrices that commute, in a basis that is not that of the coordinates: reflected diagonals.
    #[test]
    fn commuting_covariances_in_any_basis() {
        let d = 60;
        let v: Vec<f64> = (0..d).map(|i| 1.0 + (i as f64 * 0.7).sin()).collect();
        let norm: f64 = v.iter().map(|x| x * x).sum();
        let reflect = |i: usize, j: usize| f64::from(u8::from(i == j)) - 2.0 * v[i] * v[j] / norm;
        let (s, t) = (|k: usize| 0.1 + k as f64, |k: usize| 3.0 / (1.0 + k as f64));
        let build = |f: &dyn Fn(usize) -> f64| {
            gaussian(&vec![0.0; d], |i, j| (0..d).map(|k| reflect(i, k) * f(k) * reflect(k, j)).sum())
        };
        let expected: f64 = (0..d).map(|k| (s(k).sqrt() - t(k).sqrt()).powi(2)).sum();
        close(frechet(&build(&s), &build(&t)).unwrap().distance, expected);
    }

    #[test]
    fn a_distance_is_symmetric_and_zero_for_equals_even_where_covariances_are_singular() {
        // Rank one.
        let a = gaussian(&[1.0, 2.0, 3.0], |i, j| ((i + 1) * (j + 1)) as f64);
        let b = gaussian(&[0.0, 0.0, 0.0], |i, j| if i == j { 1.0 } else { 0.3 });
        assert!(frechet(&a, &a).unwrap().distance.abs() < 1e-7);
        close(frechet(&a, &b).unwrap().distance, frechet(&b, &a).unwrap().distance);
        let other = gaussian(&[0.0; 2], |_, _| 0.0);
        assert!(frechet(&a, &other).unwrap_err().to_string().contains("3 features"));
    }
}
