//! Where results come from: version, seeds, time.

/// What made the results of a report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Provenance {
    /// Program and version.
    pub version: String,
    /// The seeds, in the order of the runs.
    pub seeds: Vec<u64>,
    /// Computing time in seconds, if known.
    pub seconds: Option<f64>,
    /// Whatever else is worth knowing, as names and values.
    pub more: Vec<(String, String)>,
}

impl Provenance {
    /// As names and values.
    pub fn pairs(&self) -> Vec<(String, String)> {
        let mut pairs = self.more.clone();
        let name = if self.seeds.len() > 1 { "seeds" } else { "seed" };
        if !self.seeds.is_empty() {
            pairs.push((name.into(), ranges(&self.seeds)));
        }
        if let Some(seconds) = self.seconds {
            pairs.push(("computing time".into(), duration(seconds)));
        }
        if !self.version.is_empty() {
            pairs.push(("version".into(), self.version.clone()));
        }
        pairs
    }
}

/// Numbers with runs of successors shortened: `1 to 5, 9`.
fn ranges(numbers: &[u64]) -> String {
    let follows = |a: &u64, b: &u64| a.checked_add(1) == Some(*b);
    let parts: Vec<String> = numbers
        .chunk_by(follows)
        .map(|run| match run {
            [one] => one.to_string(),
            [a, b] => format!("{a}, {b}"),
            _ => format!("{} to {}", run[0], run[run.len() - 1]),
        })
        .collect();
    parts.join(", ")
}

/// A time as people say it: `0.42 s`, `12.3 s`, `2 min 05 s`, `3 h 07 min`.
///
/// ```
/// assert_eq!(jarz_figures::duration(125.2), "2 min 05 s");
/// ```
pub fn duration(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return "unknown".into();
    }
    let whole = seconds.round() as u64;
    match seconds {
        s if s < 9.995 => format!("{s:.2} s"),
        s if s < 59.95 => format!("{s:.1} s"),
        s if s < 3599.5 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => {
            let minutes = (seconds / 60.0).round() as u64;
            format!("{} h {:02} min", minutes / 60, minutes % 60)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_well() {
        let cases = [
            (0.004, "0.00 s"),
            (1.5, "1.50 s"),
            (9.996, "10.0 s"),
            (59.96, "1 min 00 s"),
            (119.6, "2 min 00 s"),
            (3599.7, "1 h 00 min"),
            (90_000.0, "25 h 00 min"),
            (f64::NAN, "unknown"),
        ];
        for (seconds, text) in cases {
            assert_eq!(duration(seconds), text, "{seconds}");
        }
    }

    #[test]
    fn seeds_are_listed_in_short() {
        let of = |seeds: &[u64]| Provenance { seeds: seeds.to_vec(), ..Default::default() }.pairs();
        assert_eq!(of(&[7]), [("seed".to_string(), "7".to_string())]);
        assert_eq!(of(&[1, 2, 3, 4, 9, 11, 12])[0].1, "1 to 4, 9, 11, 12");
        assert_eq!(of(&[u64::MAX, 0])[0].1, "18446744073709551615, 0");
        assert!(of(&[]).is_empty());
    }
}
