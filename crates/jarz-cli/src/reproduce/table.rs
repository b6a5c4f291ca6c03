//! The results of an experiment as a table and in one sentence.

use super::results::{MASS_TOLERANCE, VariantResult};
use jarz::Measured;

/// Most modes whose means get a column.
const MAX_MEANS: usize = 4;

/// What stands where there is no number.
const NONE: &str = "—";

/// Names of the columns and a row per variant.
pub struct Table {
    /// Names of the columns.
    pub headers: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// Of some results.
    pub fn new(results: &[VariantResult]) -> Self {
        let modes = results.iter().flat_map(|v| &v.runs).map(|r| r.modes.len()).max().unwrap_or(0);
        let modes = modes.min(MAX_MEANS);
        let mut headers = vec!["algorithm".to_string(), "mass".into(), "data".into()];
        headers.extend((1..=modes).map(|t| format!("mean {t}")));
        headers.extend(["KL exact", "KL weights", "ESS", "resamplings", "seconds"].map(String::from));
        let row = |v: &VariantResult| {
            let weighted = v.is_weighted();
            let mut row =
                vec![v.name.clone(), cell(v.mass(), 4), cell(plain(v.over(|r| Some(r.data_mass))), 4)];
            row.extend((0..modes).map(|t| cell(v.mean(t), 3)));
            row.push(cell(v.over(|r| r.summary.kl_exact), 4));
            row.push(cell(v.over(|r| r.summary.kl), 4));
            row.push(cell(v.over(|r| r.summary.ess.filter(|_| weighted)), 2));
            let digits = usize::from(v.runs.len() > 1);
            let count = v.over(|r| weighted.then_some(r.summary.resamplings as f64));
            row.push(cell(plain(count), digits));
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

/// Drops the standard error.
fn plain(m: Option<Measured>) -> Option<Measured> {
    m.map(|m| Measured { std_error: None, ..m })
}

/// A number with its standard error, if it has one.
pub fn cell(m: Option<Measured>, digits: usize) -> String {
    match m {
        None => NONE.into(),
        Some(Measured { value, std_error: None }) => fixed(value, digits),
        Some(Measured { value, std_error: Some(e) }) => {
            format!("{} ± {}", fixed(value, digits), fixed(e, digits))
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

/// Which methods recover the mass, and which do not.
pub fn verdict(results: &[VariantResult]) -> String {
    let recovers = |v: &&VariantResult| v.mass_error().is_some_and(|e| e < MASS_TOLERANCE);
    let (yes, no): (Vec<_>, Vec<_>) = results.iter().partition(recovers);
    let names = |list: &[&VariantResult]| match list {
        [] => "none".to_string(),
        _ => list.iter().map(|v| v.name.as_str()).collect::<Vec<_>>().join(", "),
    };
    let repeated = results.iter().any(|v| v.runs.len() > 1);
    let averaged = if repeated { ", averaged over the runs" } else { "" };
    format!("Within {MASS_TOLERANCE} of the data's own mass{averaged}: {}. Not: {}.", names(&yes), names(&no))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        let m = |value, std_error| Some(Measured { value, std_error });
        assert_eq!(cell(m(0.25, None), 3), "0.250");
        assert_eq!(cell(m(-0.00001, None), 3), "0.000");
        assert_eq!(cell(m(-9.5, Some(0.125)), 2), "-9.50 ± 0.12");
        assert_eq!(cell(None, 3), "—");
    }

    #[test]
    fn columns_are_aligned() {
        let rows = vec![vec!["a".to_string(), "—".into()], vec!["long".into(), "-1.25 ± 0.10".into()]];
        let text = Table { headers: vec!["name".into(), "x".into()], rows }.to_text();
        let widths: Vec<usize> = text.lines().map(|l| l.chars().count()).collect();
        assert_eq!(widths, [18; 5][..widths.len()]);
    }
}
