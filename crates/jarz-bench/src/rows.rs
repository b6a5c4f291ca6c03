//! Results: rows for people and for machines.

use serde::Serialize;

use crate::measure::Comparison;

/// One result.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Which work.
    pub work: String,
    /// `f32` or `f64`.
    pub precision: String,
    /// Whom we are compared with; none where only our own time is of interest.
    pub peer: Option<String>,
    /// Our median, in milliseconds.
    pub ours_ms: f64,
    /// The peer's median.
    pub peer_ms: Option<f64>,
    /// Peer's over ours: above 1 we are faster.
    pub ratio: Option<f64>,
    /// Lower quartile of the ratios of single repeats.
    pub ratio_low: Option<f64>,
    /// Upper quartile.
    pub ratio_high: Option<f64>,
    /// Scaling tables: our nanoseconds per walker and dimension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ns_per_walker_dimension: Option<f64>,
    /// Scaling tables: growth of the resident memory per walker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_per_walker: Option<f64>,
}

impl Row {
    /// A comparison.
    pub fn compared(work: &str, precision: &str, peer: &str, c: Comparison) -> Self {
        Row {
            peer: Some(peer.into()),
            peer_ms: Some(c.peer_ms),
            ratio: Some(c.ratio),
            ratio_low: Some(c.ratio_low),
            ratio_high: Some(c.ratio_high),
            ..Row::alone(work, precision, c.ours_ms)
        }
    }

    /// Our time alone.
    pub fn alone(work: &str, precision: &str, ours_ms: f64) -> Self {
        Row {
            work: work.into(),
            precision: precision.into(),
            peer: None,
            ours_ms,
            peer_ms: None,
            ratio: None,
            ratio_low: None,
            ratio_high: None,
            ns_per_walker_dimension: None,
            bytes_per_walker: None,
        }
    }

    fn is_limit(&self) -> bool {
        self.peer.as_deref().is_some_and(|p| p.starts_with("limit:"))
    }

    /// The comparison in words.
    fn verdict(&self) -> String {
        let mut text = match (self.ratio, self.ratio_low, self.ratio_high) {
            (Some(r), Some(low), Some(high)) if self.is_limit() => {
                format!("{:.2}x the limit ({:.2} - {:.2})", 1.0 / r, 1.0 / high, 1.0 / low)
            }
            (Some(r), Some(low), Some(high)) => format!("{r:.2}x ({low:.2} - {high:.2})"),
            _ => String::new(),
        };
        if let Some(ns) = self.ns_per_walker_dimension {
            text = format!("{ns:.2} ns per walker and dimension");
        }
        if let Some(bytes) = self.bytes_per_walker {
            text += &format!(", {bytes:.0} bytes per walker");
        }
        text
    }
}

/// All rows as one table.
pub fn table(rows: &[Row]) -> String {
    let ms = |value: f64| if value < 10.0 { format!("{value:.3}") } else { format!("{value:.1}") };
    let head =
        ["work", "precision", "peer", "ours ms", "peer ms", "our speed relative to the peer (quartiles)"];
    let mut cells = vec![head.map(String::from)];
    for row in rows {
        cells.push([
            row.work.clone(),
            row.precision.clone(),
            row.peer.clone().unwrap_or_default(),
            ms(row.ours_ms),
            row.peer_ms.map(ms).unwrap_or_default(),
            row.verdict(),
        ]);
    }
    let width = |c: usize| cells.iter().map(|row| row[c].chars().count()).max().unwrap_or(0);
    let widths: [usize; 6] = std::array::from_fn(width);
    let mut out = String::new();
    for (i, row) in cells.iter().enumerate() {
        let line: Vec<String> = (0..6)
            .map(|c| match c {
                3 | 4 => format!("{:>w$}", row[c], w = widths[c]),
                _ => format!("{:<w$}", row[c], w = widths[c]),
            })
            .collect();
        out += line.join("  ").trim_end();
        out.push('\n');
        if i == 0 {
            out += &"-".repeat(widths.iter().sum::<usize>() + 10);
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_the_promised_fields() {
        let c = Comparison::of(&[(2.0, 20.0)]);
        let json = serde_json::to_value(Row::compared("a", "f32", "jax", c)).unwrap();
        let expected = serde_json::json!({
            "work": "a", "precision": "f32", "peer": "jax", "ours_ms": 2.0, "peer_ms": 20.0,
            "ratio": 10.0, "ratio_low": 10.0, "ratio_high": 10.0
        });
        assert_eq!(json, expected);
    }

    #[test]
    fn limits_are_told_as_multiples() {
        let c = Comparison::of(&[(3.0, 2.0)]);
        let text = table(&[Row::compared("a", "f32", "limit:sum", c), Row::alone("a", "f64", 12.25)]);
        assert!(text.contains("1.50x the limit (1.50 - 1.50)"), "{text}");
        assert!(text.contains("12.2"), "{text}");
    }
}
