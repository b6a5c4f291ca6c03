//! Quantiles of the Poisson distribution.

/// The smallest `m` with `P(count <= m) >= 1 - tail` for a Poisson count of the given mean.
pub fn quantile(mean: f64, tail: f64) -> f64 {
    if mean <= 0.0 {
        return 0.0;
    }
    let (mut m, mut log_term) = (0.0f64, -mean);
    let mut below = log_term.exp();
    // Far beyond the mean the terms vanish, so that this ends.
    while below < 1.0 - tail && m < 10.0 * mean + 100.0 {
        m += 1.0;
        log_term += (mean / m).ln();
        below += log_term.exp();
    }
    m
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_tables() {
        // P(N = 0) = 0.9048, P(N <= 1) = 0.9953, P(N <= 2) = 0.99985 for a mean of 0.1.
        assert_eq!([0.1, 0.01, 0.001].map(|tail| quantile(0.1, tail)), [0.0, 1.0, 2.0]);
        // P(N <= 14) = 0.9165, P(N <= 15) = 0.9513 for a mean of 10.
        assert_eq!(quantile(10.0, 0.05), 15.0);
        assert_eq!(quantile(0.0, 1e-4), 0.0);
        // Nearly normal for a large mean: 1000 + 3.09 sqrt(1000) = 1097.7, and a little skew.
        assert!((quantile(1000.0, 1e-3) - 1099.0).abs() <= 2.0);
    }
}
