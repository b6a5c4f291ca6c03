//! Resampling schemes against their exact laws, the in-place copies, and the triggers.

use jarz::weights::WeightSums;
use jarz::{Purpose, Random, Scheme, Thresholds, Trigger};

/// Deviation in units of Bernstein's inequality: exceeded with probability at most `2 exp(-Z^2 / 2)` = 1.3e-9.
const Z: f64 = 6.5;

fn normalised(weights: Vec<f64>) -> Vec<f64> {
    let total: f64 = weights.iter().sum();
    weights.iter().map(|w| w / total).collect()
}

/// Weight vectors of length 2 to 1000: even, uneven, nearly or wholly degenerate, with zeros at the ends and in between.
fn weight_vectors() -> Vec<Vec<f64>> {
    let random = Random::new(77);
    let uniform = |i: u64| random.uniform(0, i, Purpose::User);
    vec![
        vec![0.5, 0.5],
        vec![1.0 - 1e-12, 1e-12],
        vec![0.3, 0.7],
        vec![0.0, 0.25, 0.0, 0.75, 0.0],
        normalised(vec![1e-300, 1.0, 1e-300, 2.0, 1e-17]),
        vec![0.125; 8],
        normalised((0..10).map(|i| 0.5f64.powi(i)).collect()),
        normalised((0..64).map(|i| 1.0 / (i + 1) as f64).collect()),
        normalised((0..100).map(|i| if i % 3 == 0 { 0.0 } else { -uniform(i).ln() }).collect()),
        normalised((0..1000).map(|i| (3.0 * uniform(5000 + i)).exp()).collect()),
        normalised((0..1000).map(|i| if i == 437 { 500.0 } else { 1.0 }).collect()),
    ]
}

fn counts_of(ancestors: &[u64], walkers: usize) -> Vec<u64> {
    let mut counts = vec![0; walkers];
    ancestors.iter().for_each(|&a| counts[a as usize] += 1);
    counts
}

/// Length of the part of stratum `s` of `n` (in units of a stratum) that lies in `[low, high)` of the cumulative weights.
fn overlap(s: usize, n: usize, low: f64, high: f64) -> f64 {
    ((high * n as f64).min(s as f64 + 1.0) - (low * n as f64).max(s as f64)).max(0.0)
}

/// Variance of one walker's count, from the scheme's definition. Counts are sums of independent indicators in every scheme
/// (systematic: a constant and one indicator), so that Bernstein's inequality holds with these variances.
fn count_variance(scheme: Scheme, p: &[f64], i: usize, n: usize) -> f64 {
    let expected = n as f64 * p[i];
    let fraction = expected - expected.floor();
    match scheme {
        Scheme::Multinomial => expected * (1.0 - p[i]),
        Scheme::Systematic => fraction * (1.0 - fraction),
        Scheme::Stratified => {
            let low: f64 = p[..i].iter().sum();
            let inside = (0..n).map(|s| overlap(s, n, low, low + p[i]));
            inside.map(|f| f * (1.0 - f).max(0.0)).sum()
        }
        Scheme::Residual => {
            let rest: f64 = p.iter().map(|p| n as f64 * p - (n as f64 * p).floor()).sum();
            if rest > 0.0 { fraction * (1.0 - fraction / rest).max(0.0) } else { 0.0 }
        }
    }
}

/// Mean counts are `n p_i`: 4 schemes, 33 cases, some 27 000 comparisons at 1.3e-9 each, so a false alarm once in 28 000 changes
/// of the seed. The bounds that hold for every single draw are checked along the way.
#[test]
fn counts_are_unbiased_and_within_their_bounds() {
    let random = Random::new(2024);
    for p in weight_vectors() {
        let m = p.len();
        for n in [m, (m / 2).max(2), 2 * m + 3] {
            for scheme in Scheme::ALL {
                let draws = 1500;
                let mut total = vec![0u64; m];
                for step in 0..draws {
                    let ancestors = scheme.ancestors(&p, n, &random, step, Purpose::Resample);
                    assert_eq!(ancestors.len(), n);
                    assert!(ancestors.windows(2).all(|w| w[0] <= w[1]), "{scheme:?} is not ascending");
                    let counts = counts_of(&ancestors, m);
                    for i in 0..m {
                        check_bounds(scheme, counts[i], p[i], n);
                        total[i] += counts[i];
                    }
                }
                for i in 0..m {
                    let expected = draws as f64 * n as f64 * p[i];
                    let spread = (draws as f64 * count_variance(scheme, &p, i, n)).sqrt();
                    let off = (total[i] as f64 - expected).abs();
                    // Rounding of the cumulative weights shifts an expectation by less than 1e-9.
                    let limit = Z * spread + Z * Z / 3.0 + 1e-9 * draws as f64;
                    let what = format!("{scheme:?} walker {i} of {m}, n = {n}, p = {}", p[i]);
                    assert!(off <= limit, "{what}: {} instead of {expected} +- {spread}", total[i]);
                }
            }
        }
    }
}

fn check_bounds(scheme: Scheme, count: u64, p: f64, n: usize) {
    let (count, expected, slack) = (count as f64, n as f64 * p, 1e-9);
    let fits = match scheme {
        Scheme::Multinomial => true,
        Scheme::Systematic => count >= (expected - slack).floor() && count <= (expected + slack).ceil(),
        Scheme::Stratified => (count - expected).abs() < 2.0 + slack,
        Scheme::Residual => count >= (expected - slack).floor(),
    };
    assert!(fits, "{scheme:?}: {count} copies for {expected} expected");
    assert!(p > 0.0 || count == 0.0, "{scheme:?} chose a walker without weight");
}

#[test]
fn one_walker_with_all_the_weight_is_chosen_always() {
    let random = Random::new(5);
    for (m, heavy) in [(2, 0), (2, 1), (50, 0), (50, 23), (50, 49)] {
        let mut p = vec![0.0; m];
        p[heavy] = 1.0;
        for scheme in Scheme::ALL {
            for n in [1, m, 3 * m] {
                for step in 0..50 {
                    let ancestors = scheme.ancestors(&p, n, &random, step, Purpose::Resample);
                    assert_eq!(ancestors, vec![heavy as u64; n], "{scheme:?}");
                }
            }
        }
    }
}

/// Exact variance of `sum_i counts_i f_i`, scheme by scheme.
fn sum_variance(scheme: Scheme, p: &[f64], f: &[f64], n: usize) -> f64 {
    let of = |q: &[f64]| {
        let total: f64 = q.iter().sum();
        let mean = q.iter().zip(f).map(|(q, f)| q * f).sum::<f64>() / total;
        q.iter().zip(f).map(|(q, f)| q * (f - mean).powi(2)).sum::<f64>()
    };
    let edges: Vec<f64> = (0..=p.len()).map(|i| p[..i].iter().sum::<f64>()).collect();
    match scheme {
        Scheme::Multinomial => n as f64 * of(p),
        Scheme::Residual => of(&p.iter().map(|p| n as f64 * p - (n as f64 * p).floor()).collect::<Vec<_>>()),
        Scheme::Stratified => {
            let stratum = |s| (0..p.len()).map(|i| overlap(s, n, edges[i], edges[i + 1])).collect::<Vec<_>>();
            (0..n).map(|s| of(&stratum(s))).sum()
        }
        Scheme::Systematic => {
            // The sum as a function of the common offset is constant between the fractional parts of the edges.
            let mut cuts: Vec<f64> = edges.iter().map(|e| (e * n as f64).fract()).chain([0.0, 1.0]).collect();
            cuts.sort_by(f64::total_cmp);
            let at = |u: f64| -> f64 {
                let place = |s: usize| edges.partition_point(|e| e * n as f64 <= s as f64 + u) - 1;
                (0..n).map(|s| f[place(s).min(p.len() - 1)]).sum()
            };
            let pieces: Vec<(f64, f64)> =
                cuts.windows(2).map(|c| (c[1] - c[0], at(0.5 * (c[0] + c[1])))).collect();
            let mean: f64 = pieces.iter().map(|(w, v)| w * v).sum();
            pieces.iter().map(|(w, v)| w * (v - mean).powi(2)).sum()
        }
    }
}

/// Stratified and residual resampling never scatter more than multinomial resampling; systematic resampling does not where `f` is
/// an indicator of neighbours (its sum is then rounded up or down). Every scheme shows the variance that its definition
/// implies: 5 standard errors of a sample variance, 8 comparisons, false alarm 5e-6.
#[test]
fn variances_are_those_of_the_definitions_and_ordered() {
    let random = Random::new(31);
    let p = normalised((0..23).map(|i| 0.2 + -random.uniform(9, i, Purpose::User).ln()).collect());
    let smooth: Vec<f64> = (0..23).map(|i| (i as f64 * 0.37).sin()).collect();
    let indicator: Vec<f64> = (0..23).map(|i| (5..12).contains(&i) as u8 as f64).collect();
    let (n, draws) = (23, 40_000u64);
    for (f, is_indicator) in [(&smooth, false), (&indicator, true)] {
        let multinomial = sum_variance(Scheme::Multinomial, &p, f, n);
        for scheme in Scheme::ALL {
            let exact = sum_variance(scheme, &p, f, n);
            let sums: Vec<f64> = (0..draws)
                .map(|step| {
                    let ancestors = scheme.ancestors(&p, n, &random, step, Purpose::Resample);
                    ancestors.iter().map(|&a| f[a as usize]).sum()
                })
                .collect();
            let mean = n as f64 * p.iter().zip(f).map(|(p, f)| p * f).sum::<f64>();
            let moment = |k: i32| sums.iter().map(|s| (s - mean).powi(k)).sum::<f64>() / draws as f64;
            let (variance, fourth) = (moment(2), moment(4));
            let error = ((fourth - variance * variance) / draws as f64).sqrt();
            assert!(
                (variance - exact).abs() < 5.0 * error + 1e-9,
                "{scheme:?}: {variance} {exact} +- {error}"
            );
            if scheme != Scheme::Systematic || is_indicator {
                assert!(variance <= multinomial + 5.0 * error, "{scheme:?}: {variance} > {multinomial}");
            }
        }
    }
}

/// Weights 1/2, 1/4, 1/8, 1/8: ESS 1 / (4 * 22/64) = 8/11 of the walkers, entropy 7/4 ln 2, so exp(entropy) / N = 2^(7/4) / 4.
#[test]
fn triggers_compare_the_known_ess_and_entropy() {
    let sums = WeightSums::of(&[0.5f64, 0.25, 0.125, 0.125].map(|p| 3.0 + p.ln()));
    let (ess, perplexity) = (8.0 / 11.0, 2f64.powf(1.75) / 4.0);
    let below = |c: f64| Trigger::EssBelow(Thresholds::constant(c)).fires(1, &sums);
    assert!(below(ess + 1e-12) && !below(ess - 1e-12));
    let below = |c: f64| Trigger::EntropyBelow(Thresholds::constant(c)).fires(1, &sums);
    assert!(below(perplexity + 1e-12) && !below(perplexity - 1e-12));
    let even = WeightSums::of(&[7.0; 9]);
    assert!(!Trigger::EssBelow(Thresholds::constant(1.0)).fires(3, &even), "equal weights have full ESS");
}

#[test]
fn thresholds_wait_for_their_iteration() {
    let sums = WeightSums::of(&[0.0, 1.0, 2.0]);
    // Given out of order on purpose.
    let steps = Thresholds::steps(vec![(60, 0.2), (25, 0.999)]);
    assert_eq!(steps.as_slice(), [(25, 0.999), (60, 0.2)]);
    let ess = {
        let w = [1.0, 1f64.exp(), 2f64.exp()];
        w.iter().sum::<f64>().powi(2) / (3.0 * w.iter().map(|w| w * w).sum::<f64>())
    };
    assert!(0.2 < ess && ess < 0.999);
    for iteration in 0..100 {
        let expected = (25..60).contains(&iteration);
        assert_eq!(Trigger::EssBelow(steps.clone()).fires(iteration, &sums), expected, "{iteration}");
        let c = if iteration < 25 {
            0.0
        } else if iteration < 60 {
            0.999
        } else {
            0.2
        };
        assert_eq!(steps.at(iteration), c);
    }
}

#[test]
fn a_fixed_lag_and_never() {
    let (even, uneven) = (WeightSums::of(&[0.0; 5]), WeightSums::of(&[0.0, 50.0]));
    for sums in [&even, &uneven] {
        for iteration in 1..50 {
            assert_eq!(Trigger::Every(7).fires(iteration, sums), iteration % 7 == 0);
            assert!(Trigger::Every(1).fires(iteration, sums));
            assert!(!Trigger::Every(0).fires(iteration, sums) && !Trigger::Never.fires(iteration, sums));
        }
    }
}
