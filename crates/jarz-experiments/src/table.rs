//! The final values of an experiment as a table.

use crate::quantity::Quantity;
use crate::results::VariantResult;
use crate::statistics::{mean, spread};

/// Most modes whose means get a column.
const MAX_MEANS: usize = 4;

/// What stands where there is no number.
const NONE: &str = "—";

/// Names of the columns and rows.
pub struct Table {
    /// Names of the columns.
    pub headers: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// Final values of some quantities; without any, masses, means, KL divergences and the ESS.
    pub fn new(results: &[VariantResult], quantities: &[Quantity]) -> Self {
        let quantities = match quantities.is_empty() {
            true => usual(results),
            false => quantities.to_vec(),
        };
        let mut headers = vec!["variant".to_string()];
        headers.extend(quantities.iter().map(|q| q.label()));
        headers.push("seconds".into());
        let row = |v: &VariantResult| {
            let mut row = vec![v.name.clone()];
            row.extend(quantities.iter().map(|q| cell(v, *q)));
            row.push(format!("{:.1}", v.seconds()));
            row
        };
        Table { headers, rows: results.iter().map(row).collect() }
    }

    /// For a terminal: names to the left, numbers to the right.
    pub fn to_text(&self) -> String {
        let lines: Vec<&Vec<String>> = [&self.headers].into_iter().chain(&self.rows).collect();
        let width =
            |c: usize| lines.iter().filter_map(|l| l.get(c)).map(|s| s.chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.headers.len()).map(width).collect();
        let mut text = String::new();
        for (i, line) in lines.iter().enumerate() {
            let mut cells: Vec<String> = Vec::new();
            for (c, cell) in line.iter().enumerate() {
                let w = widths[c];
                cells.push(if c == 0 { format!("{cell:<w$}") } else { format!("{cell:>w$}") });
            }
            text += cells.join("  ").trim_end();
            text.push('\n');
            if i == 0 {
                text += &"-".repeat(widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1));
                text.push('\n');
            }
        }
        text
    }
}

fn usual(results: &[VariantResult]) -> Vec<Quantity> {
    use Quantity::*;
    let modes = results.iter().flat_map(|v| &v.runs).map(|r| r.modes.len()).max().unwrap_or(0);
    let means = (0..modes.min(MAX_MEANS)).map(Mean);
    [Mass, DataMass].into_iter().chain(means).chain([KlExact, Kl, Ess, Resamplings]).collect()
}

/// Mean over the runs, with its standard error where it means something.
fn cell(v: &VariantResult, quantity: Quantity) -> String {
    let Some(values) = v.last(quantity).filter(|v| !v.is_empty()) else { return NONE.into() };
    let counted = matches!(quantity, Quantity::Resamplings | Quantity::Ancestors);
    let digits = if counted && values.len() == 1 { 0 } else { quantity.digits() };
    match values.len() > 1 && !counted && quantity != Quantity::DataMass {
        false => fixed(mean(&values), digits),
        true => {
            let error = spread(&values) / (values.len() as f64).sqrt();
            format!("{} ± {}", fixed(mean(&values), digits), fixed(error, digits))
        }
    }
}

/// Fixed digits, without a minus sign before zero.
fn fixed(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    match text.strip_prefix('-') {
        Some(rest) if rest.chars().all(|c| c == '0' || c == '.') => rest.to_string(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(fixed(0.25, 3), "0.250");
        assert_eq!(fixed(-0.00001, 3), "0.000");
        assert_eq!(fixed(-9.5, 2), "-9.50");
    }

    #[test]
    fn columns_are_aligned() {
        let rows = vec![vec!["a".to_string(), "—".into()], vec!["long".into(), "-1.25 ± 0.10".into()]];
        let text = Table { headers: vec!["name".into(), "x".into()], rows }.to_text();
        let widths: Vec<usize> = text.lines().map(|l| l.chars().count()).collect();
        assert_eq!(widths, [18; 5][..widths.len()]);
    }
}
