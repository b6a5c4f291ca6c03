//! Values of a panel: over the rows of the runs, or against an axis of a grid.

use super::{PanelSpec, Shown};
use crate::quantity::Quantity;
use crate::reduce::Window;
use crate::results::VariantResult;
use crate::statistics::{mean, rms, spread};
use std::collections::BTreeMap;

/// A curve with its band.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// The points.
    pub points: Vec<(f64, f64)>,
    /// x, low and high.
    pub band: Vec<(f64, f64, f64)>,
}

/// One number out of the runs' values, and its band.
fn over_runs(values: &[f64], shown: Shown) -> (f64, Option<(f64, f64)>) {
    let n = values.len() as f64;
    let std_error = spread(values) / n.sqrt();
    match shown {
        Shown::Mean if values.len() > 1 => {
            let m = mean(values);
            (m, Some((m - std_error, m + std_error)))
        }
        Shown::Mean => (mean(values), None),
        Shown::First => (values[0], None),
        Shown::Median => {
            let mut sorted = values.to_vec();
            sorted.sort_by(f64::total_cmp);
            let at = |share: f64| {
                let place = share * (n - 1.0);
                let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
                low + (high - low) * place.fract()
            };
            (at(0.5), (values.len() > 2).then(|| (at(0.1), at(0.9))))
        }
        Shown::StdError => (std_error, None),
        Shown::Rms => (rms(values), None),
    }
}

/// A quantity against iterations or time, where all runs have it.
pub fn over_rows(v: &VariantResult, quantity: Quantity, panel: &PanelSpec) -> Curve {
    let mut values: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for run in &v.runs {
        for (i, row) in run.rows.iter().enumerate() {
            if let Some(value) = quantity.at(run, i) {
                values.entry(row.iteration).or_default().push(value);
            }
        }
    }
    let unit = if panel.x == "time" { v.config.kernel.step_size } else { 1.0 };
    let mut curve = Curve::default();
    for (k, values) in values.into_iter().filter(|(_, values)| values.len() == v.runs.len()) {
        curve.add(k as f64 * unit, over_runs(&values, panel.runs));
    }
    curve
}

/// A quantity of several variants against their places on an axis.
pub fn over_axis(variants: &[&VariantResult], axis: &str, quantity: Quantity, panel: &PanelSpec) -> Curve {
    let mut places: Vec<(f64, Vec<f64>)> = Vec::new();
    for v in variants {
        let reduce = |r| panel.over.reduce(r, quantity, Window::default());
        let values: Option<Vec<f64>> = v.runs.iter().map(reduce).collect();
        if let (Some(x), Some(values)) = (v.choices.get(axis).and_then(|c| c.value), values) {
            places.push((x, values));
        }
    }
    places.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut curve = Curve::default();
    for (x, values) in places {
        curve.add(x, over_runs(&values, panel.runs));
    }
    curve
}

impl Curve {
    fn add(&mut self, x: f64, (value, band): (f64, Option<(f64, f64)>)) {
        self.points.push((x, value));
        if let Some((low, high)) = band {
            self.band.push((x, low, high));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_become_a_value_and_a_band() {
        let values = [1.0, 2.0, 3.0, 4.0, 10.0];
        assert_eq!(over_runs(&values, Shown::First), (1.0, None));
        let (m, band) = over_runs(&values, Shown::Mean);
        // Standard deviation sqrt(50 / 4), standard error sqrt(2.5).
        assert!((m - 4.0).abs() < 1e-15 && (band.unwrap().1 - 4.0 - 2.5f64.sqrt()).abs() < 1e-12);
        let (median, band) = over_runs(&values, Shown::Median);
        let (low, high) = band.unwrap();
        assert!(median == 3.0 && (low - 1.4).abs() < 1e-12 && (high - 7.6).abs() < 1e-12);
        assert!((over_runs(&values, Shown::StdError).0 - 2.5f64.sqrt()).abs() < 1e-12);
        assert!((over_runs(&[3.0, -3.0], Shown::Rms).0 - 3.0).abs() < 1e-15);
        assert_eq!(over_runs(&[7.0], Shown::Mean), (7.0, None));
    }
}
