//! The kernel distance: the squared maximum mean discrepancy with the cubic kernel of KID, without bias, with an error bar.

use crate::error::MetricsError;
use crate::features::Features;
use faer::Mat;
use jarz::random::Subset;
use jarz::{Purpose, Random};
use serde::Serialize;

/// How the kernel distance is computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KernelOptions {
    /// Most samples taken of each set, at random: the time goes with the square of their number.
    pub most: usize,
    /// Groups that are left out in turn for the error bar.
    pub groups: usize,
    /// Seed of both choices.
    pub seed: u64,
}

impl Default for KernelOptions {
    fn default() -> Self {
        KernelOptions { most: 5000, groups: 20, seed: 1 }
    }
}

/// A kernel distance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct KernelDistance {
    /// The unbiased estimate of the squared discrepancy; it may be negative.
    pub distance: f64,
    /// Its standard error, by leaving out groups of both sets in turn.
    pub std_error: f64,
    /// Samples used of each set.
    pub samples: [usize; 2],
}

/// `MMD^2` with the kernel `(x . y / d + 1)^3`: the weighted mean over pairs of different samples, minus twice that over pairs across, plus that over pairs of
/// the reference.
pub fn kernel_distance(
    samples: &Features,
    reference: &Features,
    options: KernelOptions,
) -> Result<KernelDistance, MetricsError> {
    let (a, b) = (samples.dim(), reference.dim());
    if a != b {
        return Err(MetricsError::Dimensions { samples: a, reference: b });
    }
    let groups = options.groups.max(2);
    let random = Random::new(options.seed);
    let mut sides = Vec::new();
    for (side, set) in [samples, reference].into_iter().enumerate() {
        let needed = 2 * groups;
        let found = set.len().min(options.most);
        if found < needed {
            return Err(MetricsError::TooFew { what: "a kernel distance", found, needed });
        }
        sides.push(grouped(set, found, groups, &random, side as u64));
    }
    let [x, y] = [&sides[0], &sides[1]];
    let [xx, yy, xy] = [pair_sums(x, x), pair_sums(y, y), pair_sums(x, y)];
    let estimate = |left_out: Option<usize>| {
        let kept: Vec<usize> = (0..groups).filter(|g| Some(*g) != left_out).collect();
        let within = |set: &[Group], sums: &[f64]| {
            let (mut pairs, mut weight, mut squares) = (0.0, 0.0, 0.0);
            for &g in &kept {
                pairs += kept.iter().map(|h| sums[g * groups + h]).sum::<f64>() - set[g].own;
                weight += set[g].weight;
                squares += set[g].squares;
            }
            pairs / (weight * weight - squares)
        };
        let total = |set: &[Group]| kept.iter().map(|&g| set[g].weight).sum::<f64>();
        let across: f64 = kept.iter().flat_map(|g| kept.iter().map(|h| xy[*g * groups + h])).sum();
        within(x, &xx) + within(y, &yy) - 2.0 * across / (total(x) * total(y))
    };
    let without: Vec<f64> = (0..groups).map(|g| estimate(Some(g))).collect();
    let mean = without.iter().sum::<f64>() / groups as f64;
    let squares: f64 = without.iter().map(|v| (v - mean) * (v - mean)).sum();
    let std_error = ((groups as f64 - 1.0) / groups as f64 * squares).sqrt();
    let samples = [x, y].map(|set| set.iter().map(|g| g.weights.len()).sum());
    Ok(KernelDistance { distance: estimate(None), std_error, samples })
}

/// Some samples of a set.
struct Group {
    /// One sample per column.
    rows: Mat<f64>,
    weights: Vec<f64>,
    weight: f64,
    squares: f64,
    /// `w_i^2 k(x_i, x_i)`, added up.
    own: f64,
}

/// A random choice of `count` samples, in groups of consecutive ones: walkers stand beside their relatives, and what belongs together must be left out together.
fn grouped(set: &Features, count: usize, groups: usize, random: &Random, side: u64) -> Vec<Group> {
    let mut chosen = Subset::default();
    random.subset(side, Purpose::User, count, set.len(), &mut chosen);
    let chosen = chosen.members();
    let group = |g: usize| {
        let (first, end) = (g * count / groups, (g + 1) * count / groups);
        let rows: Vec<usize> = chosen[first..end].iter().map(|&i| i as usize).collect();
        let weights: Vec<f64> = rows.iter().map(|&i| set.weights()[i]).collect();
        let own = |(&i, w): (&usize, &f64)| {
            let x = set.row(i);
            w * w * kernel(x.iter().map(|v| v * v).sum(), set.dim())
        };
        Group {
            own: rows.iter().zip(&weights).map(own).sum(),
            weight: weights.iter().sum(),
            squares: weights.iter().map(|w| w * w).sum(),
            rows: Mat::from_fn(set.dim(), rows.len(), |j, i| set.row(rows[i])[j]),
            weights,
        }
    };
    (0..groups).map(group).collect()
}

fn kernel(product: f64, dim: usize) -> f64 {
    (product / dim as f64 + 1.0).powi(3)
}

/// `w_i v_j k(x_i, y_j)` added up over each pair of groups.
fn pair_sums(x: &[Group], y: &[Group]) -> Vec<f64> {
    let mut sums = Vec::with_capacity(x.len() * y.len());
    for a in x {
        for b in y {
            let products = a.rows.transpose() * &b.rows;
            let mut sum = 0.0;
            for (j, v) in b.weights.iter().enumerate() {
                for (i, w) in a.weights.iter().enumerate() {
                    sum += w * v * kernel(products[(i, j)], a.rows.nrows());
                }
            }
            sums.push(sum);
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normals(n: usize, dim: usize, seed: u64, mean: f64, scale: f64) -> Features {
        let mut values = vec![0.0f64; n * dim];
        for (i, row) in values.chunks_exact_mut(dim).enumerate() {
            Random::new(seed).normals(0, i as u64, Purpose::Data, row);
            row.iter_mut().for_each(|v| *v = mean + scale * *v);
        }
        Features::new(dim, values).unwrap()
    }

    /// The definition, pair by pair, for equal weights.
    #[test]
    fn it_is_the_mean_over_pairs() {
        let (x, y) = (normals(50, 3, 1, 0.0, 1.0), normals(60, 3, 2, 0.5, 1.0));
        let k = |a: &[f64], b: &[f64]| {
            let product: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
            (product / 3.0 + 1.0).powi(3)
        };
        let mean = |a: &Features, b: &Features, same: bool| {
            let pairs =
                (0..a.len()).flat_map(|i| (0..b.len()).map(move |j| (i, j))).filter(|(i, j)| !same || i != j);
            let all: Vec<f64> = pairs.map(|(i, j)| k(a.row(i), b.row(j))).collect();
            all.iter().sum::<f64>() / all.len() as f64
        };
        let expected = mean(&x, &x, true) + mean(&y, &y, true) - 2.0 * mean(&x, &y, false);
        let found = kernel_distance(&x, &y, KernelOptions { groups: 10, ..Default::default() }).unwrap();
        assert!((found.distance - expected).abs() < 1e-12 * expected.abs().max(1.0));
        assert_eq!(found.samples, [50, 60]);
    }

    /// Whole-number weights are repeated samples, except that a pair of equal samples does not count.
    #[test]
    fn weights_shift_the_distance_to_what_they_stand_for() {
        // A mixture of two clouds with weights 3:1 against one drawn in these proportions.
        let clouds = |seed: u64, first: fn(usize) -> bool| {
            let noise = normals(1200, 4, seed, 0.0, 0.5);
            let row = |i: usize| noise.row(i).iter().map(move |v| v + if first(i) { -1.0 } else { 1.0 });
            Features::new(4, (0..1200).flat_map(row).collect()).unwrap()
        };
        let even = clouds(1, |i| i % 2 == 0);
        let logs: Vec<f64> = (0..1200).map(|i| if i % 2 == 0 { 3f64.ln() } else { 0.0 }).collect();
        let weighted = even.clone().with_log_weights(&logs).unwrap();
        let uneven = clouds(3, |i| i % 4 > 0);
        let with = kernel_distance(&weighted, &uneven, KernelOptions::default()).unwrap();
        let without = kernel_distance(&even, &uneven, KernelOptions::default()).unwrap();
        assert!(with.distance.abs() < 4.0 * with.std_error, "{with:?}");
        assert!(without.distance > 10.0 * without.std_error, "{without:?}");
    }

    /// Between equal distributions the estimate has mean zero, and its error bar is about its scatter.
    #[test]
    fn the_error_bar_is_the_scatter() {
        let all: Vec<KernelDistance> = (0..60)
            .map(|i| {
                let (x, y) = (normals(200, 5, 100 + i, 0.0, 1.0), normals(200, 5, 300 + i, 0.2, 1.0));
                kernel_distance(&x, &y, KernelOptions::default()).unwrap()
            })
            .collect();
        let mean = all.iter().map(|d| d.distance).sum::<f64>() / 60.0;
        let scatter = (all.iter().map(|d| (d.distance - mean).powi(2)).sum::<f64>() / 59.0).sqrt();
        let claimed = (all.iter().map(|d| d.std_error.powi(2)).sum::<f64>() / 60.0).sqrt();
        // The scatter of 60 is known to 9 %, the jackknife errs on the safe side.
        assert!(claimed > 0.7 * scatter && claimed < 1.6 * scatter, "{claimed} against {scatter}");
    }

    /// Families of four copies: the error bar is that of the families, twice that of as many independent samples.
    #[test]
    fn relatives_do_not_make_the_error_bar_smaller() {
        let (mut of_families, mut scatter) = (0.0, Vec::new());
        for i in 0..60 {
            let (families, y) = (normals(80, 5, 500 + i, 0.0, 1.0), normals(320, 5, 700 + i, 0.3, 1.0));
            let rows = (0..320).flat_map(|k| families.row(k / 4).to_vec()).collect();
            let found =
                kernel_distance(&Features::new(5, rows).unwrap(), &y, KernelOptions::default()).unwrap();
            of_families += found.std_error.powi(2) / 60.0;
            scatter.push(found.distance);
        }
        let mean = scatter.iter().sum::<f64>() / 60.0;
        let scatter = (scatter.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / 59.0).sqrt();
        // The scatter of 60 is known to 9 %.
        assert!(of_families.sqrt() > 0.7 * scatter, "{} against {scatter}", of_families.sqrt());
    }

    #[test]
    fn too_few_samples_are_an_error() {
        let few = normals(10, 3, 1, 0.0, 1.0);
        let text = kernel_distance(&few, &few, KernelOptions::default()).unwrap_err().to_string();
        assert!(text.contains("10 samples") && text.contains("40"), "{text}");
    }
}
