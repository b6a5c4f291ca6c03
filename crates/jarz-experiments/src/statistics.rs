//! Means and scatter over runs, with intervals that cover the truth in 95 of 100 cases.

/// Upper 2.5 % points of Student's distribution for 1 to 10 degrees of freedom.
const STUDENT: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
/// The same of the normal distribution.
const NORMAL: f64 = 1.959964;

/// A number and where the truth lies, as far as the runs tell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Best guess.
    pub value: f64,
    /// Standard error, where there is one.
    pub std_error: Option<f64>,
    /// The truth is above this in 97.5 of 100 cases.
    pub low: f64,
    /// The truth is below this in 97.5 of 100 cases.
    pub high: f64,
}

impl Interval {
    /// A number that is known.
    pub fn exact(value: f64) -> Self {
        Interval { value, std_error: None, low: value, high: value }
    }

    fn around(value: f64, std_error: f64, degrees: f64) -> Self {
        let half = student(degrees) * std_error;
        Interval { value, std_error: Some(std_error), low: value - half, high: value + half }
    }
}

/// Two-sided 95 % point of Student's distribution.
pub fn student(degrees: f64) -> f64 {
    let whole = degrees.floor();
    if whole < 1.0 {
        return f64::INFINITY;
    }
    if let Some(t) = STUDENT.get(whole as usize - 1) {
        return *t;
    }
    // Expansion about the normal distribution (Abramowitz and Stegun 26.7.5).
    let (z, v) = (NORMAL, degrees);
    z + (z.powi(3) + z) / (4.0 * v)
        + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * v.powi(2))
        + (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / (384.0 * v.powi(3))
}

/// Mean.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Standard deviation; not a number for fewer than two values.
pub fn spread(values: &[f64]) -> f64 {
    let m = mean(values);
    (values.iter().map(|v| (v - m).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0)).sqrt()
}

/// Root of the mean square.
pub fn rms(values: &[f64]) -> f64 {
    (values.iter().map(|v| v * v).sum::<f64>() / values.len() as f64).sqrt()
}

/// Mean over runs with Student's interval; none for a single run, which does not tell how runs scatter.
pub fn mean_interval(values: &[f64]) -> Option<Interval> {
    let n = values.len() as f64;
    (values.len() > 1).then(|| Interval::around(mean(values), spread(values) / n.sqrt(), n - 1.0))
}

/// Difference of the largest and the smallest of some means.
pub fn range_interval(means: &[Interval], runs: usize) -> Option<Interval> {
    let by_value = |a: &&Interval, b: &&Interval| a.value.total_cmp(&b.value);
    let (top, bottom) = (means.iter().max_by(by_value)?, means.iter().min_by(by_value)?);
    let error = top.std_error?.hypot(bottom.std_error?);
    Some(Interval::around(top.value - bottom.value, error, 2.0 * (runs as f64 - 1.0)))
}

/// Ratio of the means of two quantities of the same runs.
pub fn ratio_interval(values: &[f64], reference: &[f64]) -> Option<Interval> {
    let (ratio, n) = (mean(values) / mean(reference), values.len() as f64);
    let rest: Vec<f64> = values.iter().zip(reference).map(|(v, r)| v - ratio * r).collect();
    let error = spread(&rest) / n.sqrt() / mean(reference).abs();
    (values.len() > 1 && ratio.is_finite()).then(|| Interval::around(ratio, error, n - 1.0))
}

/// Standard deviation over runs. Its logarithm has a standard error of `1 / sqrt(2 (n - 1))` for normal scatter.
pub fn spread_interval(values: &[f64]) -> Option<Interval> {
    let s = spread(values);
    (values.len() > 2).then(|| log_interval(s, 1.0 / (2.0 * (values.len() as f64 - 1.0)).sqrt()))
}

/// Ratio of two standard deviations over independent runs.
pub fn spread_ratio_interval(values: &[f64], reference: &[f64]) -> Option<Interval> {
    let part = |v: &[f64]| 1.0 / (2.0 * (v.len() as f64 - 1.0));
    let ratio = spread(values) / spread(reference);
    let enough = values.len() > 2 && reference.len() > 2 && ratio.is_finite();
    enough.then(|| log_interval(ratio, (part(values) + part(reference)).sqrt()))
}

fn log_interval(value: f64, log_error: f64) -> Interval {
    let factor = (NORMAL * log_error).exp();
    Interval { value, std_error: Some(value * log_error), low: value / factor, high: value * factor }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jarz::{Purpose, Random};

    #[test]
    fn students_points_are_those_of_the_tables() {
        // 2.201 for 11, 2.086 for 20, 1.984 for 100 degrees of freedom.
        for (degrees, t) in [(1.0, 12.706), (3.0, 3.182), (11.0, 2.201), (20.0, 2.086), (100.0, 1.984)] {
            assert!((student(degrees) - t).abs() < 0.001, "{degrees}");
        }
        assert_eq!(student(0.0), f64::INFINITY);
    }

    #[test]
    fn one_run_has_no_interval() {
        assert_eq!(mean_interval(&[1.0]), None);
        assert_eq!(spread_interval(&[1.0, 2.0]), None);
        let m = mean_interval(&[1.0, 2.0, 3.0]).unwrap();
        assert!(
            (m.value - 2.0).abs() < 1e-15 && (m.std_error.unwrap() - (1.0f64 / 3.0).sqrt()).abs() < 1e-15
        );
        assert!((m.high - 2.0 - 4.303 / 3f64.sqrt()).abs() < 1e-12);
    }

    /// Each interval covers the truth in 95 of 100 cases, up to the approximations made: 4000 cases have a standard error of 0.35 %.
    #[test]
    fn intervals_cover_what_they_say() {
        let (cases, runs) = (4000, 8);
        let mut covered = [0; 4];
        for case in 0..cases {
            let (mut a, mut b) = (vec![0.0f64; runs], vec![0.0f64; runs]);
            Random::new(3).normals(0, case, Purpose::User, &mut a);
            Random::new(3).normals(1, case, Purpose::User, &mut b);
            let reference: Vec<f64> = b.iter().map(|b| 5.0 + 0.3 * b).collect();
            let values: Vec<f64> = a.iter().zip(&reference).map(|(a, r)| 2.0 * r + a).collect();
            let inside = |i: Option<Interval>, truth: f64| i.is_some_and(|i| i.low < truth && truth < i.high);
            let all = [
                inside(mean_interval(&a), 0.0),
                inside(ratio_interval(&values, &reference), 2.0),
                inside(spread_interval(&a), 1.0),
                inside(spread_ratio_interval(&a, &b), 1.0),
            ];
            covered.iter_mut().zip(all).for_each(|(c, i)| *c += usize::from(i));
        }
        let shares = covered.map(|c| c as f64 / cases as f64);
        assert!((shares[0] - 0.95).abs() < 0.015 && (shares[1] - 0.95).abs() < 0.02, "{shares:?}");
        // The logarithm of a standard deviation is only nearly normal.
        assert!(shares[2] > 0.90 && shares[3] > 0.92, "{shares:?}");
    }
}
