//! Turns values stored in Fortran order into the row-major order of a table.

use crate::error::DataError;
use crate::origin::Origin;

/// Sets aside room for `count` more values, or says that there is not enough memory.
pub(crate) fn reserve(values: &mut Vec<f64>, count: usize, origin: &Origin) -> Result<(), DataError> {
    values.try_reserve_exact(count).map_err(|_| DataError::OutOfMemory {
        origin: origin.clone(),
        bytes: (values.len() as u64).saturating_add(count as u64).saturating_mul(8),
    })
}

/// Reorders `values` of an array of shape `[rows, rest...]` from first-index-fastest to
/// last-index-fastest.
///
/// `values.len()` must be the product of the shape.
pub(crate) fn fortran_to_c(
    values: Vec<f64>,
    rows: usize,
    rest: &[usize],
    origin: &Origin,
) -> Result<Vec<f64>, DataError> {
    let cols: usize = rest.iter().product();
    if cols <= 1 || (rows <= 1 && rest.len() <= 1) {
        return Ok(values);
    }
    let mut out = Vec::new();
    reserve(&mut out, values.len(), origin)?;
    out.resize(values.len(), 0.0);
    // Each run of `rows` stored values is one column; `index` is its multi-index, and the last
    // axis is the fastest one in the place where it goes.
    let mut index = vec![0usize; rest.len()];
    for column in values.chunks_exact(rows) {
        let target = index.iter().zip(rest).fold(0, |place, (&i, &extent)| place * extent + i);
        for (row, &value) in column.iter().enumerate() {
            out[row * cols + target] = value;
        }
        for (i, &extent) in index.iter_mut().zip(rest) {
            *i += 1;
            if *i < extent {
                break;
            }
            *i = 0;
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_axes() {
        // a[i][j][k] = 100 i + 10 j + k with shape (2, 3, 2), listed with i fastest.
        let mut stored = Vec::new();
        let mut expected = Vec::new();
        for k in 0..2 {
            for j in 0..3 {
                for i in 0..2 {
                    stored.push((100 * i + 10 * j + k) as f64);
                }
            }
        }
        for i in 0..2 {
            for j in 0..3 {
                for k in 0..2 {
                    expected.push((100 * i + 10 * j + k) as f64);
                }
            }
        }
        let out = fortran_to_c(stored, 2, &[3, 2], &Origin::default()).unwrap();
        assert_eq!(out, expected);
    }

    #[test]
    fn one_axis_is_left_alone() {
        let out = fortran_to_c(vec![1.0, 2.0, 3.0], 3, &[], &Origin::default()).unwrap();
        assert_eq!(out, [1.0, 2.0, 3.0]);
    }
}
