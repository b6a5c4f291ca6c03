//! Medians and quartiles of paired measurements.

use std::time::{Duration, Instant};

/// Our time and a peer's, in milliseconds, measured one right after the other.
pub type Pair = (f64, f64);

/// What the pairs of one comparison say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// Median of ours.
    pub ours_ms: f64,
    /// Median of the peer's.
    pub peer_ms: f64,
    /// Peer's median over our median.
    pub ratio: f64,
    /// Lower quartile of the pairs' ratios (or the ratio of the medians, should that be lower).
    pub ratio_low: f64,
    /// Upper quartile, likewise.
    pub ratio_high: f64,
}

impl Comparison {
    /// From at least one pair.
    pub fn of(pairs: &[Pair]) -> Self {
        let mut ratios: Vec<f64> = pairs.iter().map(|(ours, peer)| peer / ours).collect();
        let ours_ms = median(pairs.iter().map(|p| p.0).collect());
        let peer_ms = median(pairs.iter().map(|p| p.1).collect());
        let ratio = peer_ms / ours_ms;
        ratios.sort_by(f64::total_cmp);
        let (ratio_low, ratio_high) =
            (quantile(&ratios, 0.25).min(ratio), quantile(&ratios, 0.75).max(ratio));
        Comparison { ours_ms, peer_ms, ratio, ratio_low, ratio_high }
    }
}

/// Median.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    quantile(&values, 0.5)
}

/// Quantile of ascending values, linear between them.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let at = q * (sorted.len() - 1) as f64;
    let (low, part) = (at.floor() as usize, at.fract());
    let high = (low + 1).min(sorted.len() - 1);
    sorted[low] + part * (sorted[high] - sorted[low])
}

/// Milliseconds a call, from at least `least` of them after one untimed call.
pub fn time_calls(least: Duration, mut call: impl FnMut()) -> f64 {
    call();
    let (start, mut calls) = (Instant::now(), 0u32);
    while start.elapsed() < least || calls == 0 {
        call();
        calls += 1;
    }
    start.elapsed().as_secs_f64() * 1e3 / calls as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_quartiles() {
        let pairs = [(1.0, 2.0), (2.0, 8.0), (1.0, 6.0), (1.0, 8.0), (1.0, 10.0)];
        let c = Comparison::of(&pairs);
        assert_eq!((c.ours_ms, c.peer_ms, c.ratio), (1.0, 8.0, 8.0));
        // Ratios 2, 4, 6, 8, 10.
        assert_eq!((c.ratio_low, c.ratio_high), (4.0, 8.0));
        assert_eq!(median(vec![3.0, 1.0]), 2.0);
    }
}
