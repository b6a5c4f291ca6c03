//! Which images of many are drawn, and in which order.

/// Which images of a grid are drawn, and in which order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// As they were given, the first ones.
    #[default]
    Given,
    /// As they were given, in even steps from the first to the last: relatives stand side by side.
    Spread,
    /// By weight, the heaviest ones.
    Weight,
    /// By weight, from the heaviest to the lightest in even steps of rank, so that all weights are seen.
    WeightSpread,
}

impl Order {
    /// At most `places` indices below `count`. Equal weights stay in their order.
    pub(super) fn choose(self, count: usize, places: usize, weights: Option<&[f64]>) -> Vec<usize> {
        let mut ranked: Vec<usize> = (0..count).collect();
        if let (Order::Weight | Order::WeightSpread, Some(weights)) = (self, weights) {
            ranked.sort_by(|&a, &b| weights[b].total_cmp(&weights[a]));
        }
        let shown = places.min(count);
        match self {
            Order::Spread | Order::WeightSpread if shown > 1 => {
                (0..shown).map(|i| ranked[i * (count - 1) / (shown - 1)]).collect()
            }
            _ => ranked[..shown].to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heavy_ones_come_first_and_a_spread_reaches_both_ends() {
        let weights = [0.5, 3.0, 0.0, 1.0, 3.0];
        assert_eq!(Order::Given.choose(5, 3, Some(&weights)), [0, 1, 2]);
        assert_eq!(Order::Spread.choose(5, 3, Some(&weights)), [0, 2, 4]);
        assert_eq!(Order::Weight.choose(5, 3, Some(&weights)), [1, 4, 3]);
        assert_eq!(Order::WeightSpread.choose(5, 3, Some(&weights)), [1, 3, 2]);
        assert_eq!(Order::WeightSpread.choose(5, 9, Some(&weights)), [1, 4, 3, 0, 2]);
        assert_eq!(Order::Weight.choose(5, 2, None), [0, 1]);
        assert_eq!(Order::WeightSpread.choose(5, 1, Some(&weights)), [1]);
    }
}
