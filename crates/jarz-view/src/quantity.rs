//! Quantities of logged iterations as curves, over one run or several.

use crate::folder::Group;
use jarz::Measured;
use jarz::estimate::over_runs;
use jarz_figures::Series;
use jarz_run::Row;
use std::collections::BTreeMap;

/// Something that a row may hold, and its standard error within the run if it has one.
pub(crate) struct Quantity<'a> {
    pub value: &'a dyn Fn(&Row) -> Option<f64>,
    pub error: &'a dyn Fn(&Row) -> Option<f64>,
}

/// Iteration, low and high.
type Band = Vec<(f64, f64, f64)>;

/// For quantities without an error.
pub(crate) fn exact(_: &Row) -> Option<f64> {
    None
}

/// A quantity against the iterations; gaps where it is missing.
pub(crate) fn points(rows: &[Row], f: impl Fn(&Row) -> Option<f64>) -> Vec<(f64, f64)> {
    rows.iter().map(|row| (row.iteration as f64, f(row).unwrap_or(f64::NAN))).collect()
}

pub(crate) fn has_values(points: &[(f64, f64)]) -> bool {
    points.iter().any(|p| p.1.is_finite())
}

/// Two standard errors around a quantity.
pub(crate) fn band(
    rows: &[Row],
    f: impl Fn(&Row) -> Option<f64>,
    error: impl Fn(&Row) -> Option<f64>,
) -> Band {
    let at = |row: &Row| {
        let (value, error) = (f(row)?, error(row)?);
        Some((row.iteration as f64, value - 2.0 * error, value + 2.0 * error))
    };
    rows.iter().filter_map(at).collect()
}

impl Group {
    /// The curve of a quantity, if there is one: of one run, with two standard errors from its ancestry; of several, their
    /// mean with one standard error from their scatter, where all of them have it.
    pub(crate) fn series(&self, label: &str, q: &Quantity<'_>) -> Option<Series> {
        let runs = self.counted();
        let (points, band) = match &runs[..] {
            [run] => (points(run.rows(), q.value), band(run.rows(), q.value, q.error)),
            _ => self.mean(q),
        };
        let series = Series::new(label, points);
        has_values(&series.points).then(|| if band.is_empty() { series } else { series.band(band) })
    }

    fn mean(&self, q: &Quantity<'_>) -> (Vec<(f64, f64)>, Band) {
        let runs = self.counted();
        let mut values: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for row in runs.iter().flat_map(|run| run.rows()) {
            if let Some(value) = (q.value)(row) {
                values.entry(row.iteration).or_default().push(value);
            }
        }
        let of_all = values.into_iter().filter(|(_, v)| v.len() == runs.len());
        let means: Vec<(f64, Measured)> = of_all.map(|(k, v)| (k as f64, over_runs(&v))).collect();
        let edges = |(k, m): &(f64, Measured)| m.std_error.map(|e| (*k, m.value - e, m.value + e));
        (means.iter().map(|(k, m)| (*k, m.value)).collect(), means.iter().filter_map(edges).collect())
    }

    /// The quantity at the last logged iteration, with its error from the scatter of the runs or, of a single run, from its
    /// ancestry; none if a run lacks it.
    pub(crate) fn last(&self, q: &Quantity<'_>) -> Option<Measured> {
        let rows: Option<Vec<&Row>> = self.counted().iter().map(|run| run.rows().last()).collect();
        match &rows?[..] {
            [] => None,
            [row] => Some(Measured { value: (q.value)(row)?, std_error: (q.error)(row) }),
            rows => Some(over_runs(&rows.iter().map(|r| (q.value)(r)).collect::<Option<Vec<f64>>>()?)),
        }
    }

    /// How many modes the model has, as far as its rows tell.
    pub(crate) fn modes(&self) -> usize {
        let rows = self.runs.iter().flat_map(|run| run.rows());
        rows.filter_map(|r| r.masses.as_ref()).map(Vec::len).next().unwrap_or(0)
    }
}
