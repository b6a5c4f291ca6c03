//! The table of points that every reader produces.

use crate::error::DataError;
use crate::origin::Origin;

/// `rows` points in `cols` dimensions, row-major, `f64`.
///
/// The readers only return tables with at least one row and one column, whose values are all
/// finite. Integers beyond 2^53 are rounded to the nearest `f64`.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Number of points.
    pub rows: usize,
    /// Number of dimensions of each point.
    pub cols: usize,
    /// The values, one point after the other: `rows * cols` of them.
    pub values: Vec<f64>,
    /// Column names, if the file was text with a header row.
    pub columns: Option<Vec<String>>,
}

impl Table {
    /// The coordinates of point `row`, counted from 0.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, row: usize) -> &[f64] {
        &self.values[row * self.cols..(row + 1) * self.cols]
    }

    /// Passes the table on if all its values are finite.
    pub(crate) fn checked(self, origin: &Origin) -> Result<Self, DataError> {
        let Some(first) = self.values.iter().position(|value| !value.is_finite()) else {
            return Ok(self);
        };
        let count = self.values[first..].iter().filter(|value| !value.is_finite()).count();
        let column = first % self.cols;
        Err(DataError::NonFinite {
            origin: origin.clone(),
            row: first / self.cols + 1,
            column: column + 1,
            name: self.columns.as_ref().and_then(|names| names.get(column).cloned()),
            value: self.values[first],
            count,
        })
    }
}
