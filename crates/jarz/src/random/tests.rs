use super::*;
use crate::random::math::minus_two_ln_f32;
use crate::random::normal::{block_f32_scalar, block_f64_scalar, normal_rows};
use crate::simd::{LANES, Simd, Vector, dispatch};

/// Known answers published with the Random123 library.
#[test]
fn philox_known_answers() {
    let pi = ([0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344], [0xa4093822, 0x299f31d0]);
    let cases = [
        (([0; 4], [0; 2]), [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]),
        (([u32::MAX; 4], [u32::MAX; 2]), [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]),
        (pi, [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1]),
    ];
    for ((counter, key), expected) in cases {
        assert_eq!(philox4x32::<10>(counter, key), expected);
    }
    assert_eq!(philox4x32::<7>([0; 4], [0; 2]), [0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48]);
}

/// Every CPU path against the scalar twin, for many dimensions and both kinds of walker ids.
#[test]
fn normals_equal_their_scalar_twin_on_every_path() {
    let random = Random::new(0x1234_5678_9abc_def0);
    let ids: Vec<u64> = (0..37).map(|i| i * 977 + (i << 33)).collect();
    for isa in Isa::available() {
        for dim in [1, 2, 3, 4, 5, 7, 16, 50, 63, 64, 65, 130] {
            let key = random.key(3 + (7 << 32), Purpose::Noise);
            for walkers in [WalkerIds::From(11), WalkerIds::List(&ids)] {
                let (s32, s64) = (f32::noise_stride(dim), f64::noise_stride(dim));
                let mut out32 = vec![0.0f32; 37 * s32];
                let mut out64 = vec![0.0f64; 37 * s64];
                normal_rows(isa, &key, walkers, dim, &mut out32);
                normal_rows(isa, &key, walkers, dim, &mut out64);
                for row in 0..37 {
                    for j in 0..dim {
                        let words = |per: usize| {
                            random.words(key.step, walkers.get(row), key.purpose, (j / per) as u32)
                        };
                        let (a, b) = (out32[row * s32 + j] as f64, block_f32_scalar(words(4))[j % 4]);
                        assert!((a - b).abs() < 2e-6, "{isa:?} f32 dim {dim}: {a} {b}");
                        let (a, b) = (out64[row * s64 + j], block_f64_scalar(words(2))[j % 2]);
                        assert!((a - b).abs() < 1e-13, "{isa:?} f64 dim {dim}: {a} {b}");
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn logarithms<S: Simd>(x: &[f32], out: &mut [f32]) {
    for (x, out) in x.as_chunks().0.iter().zip(out.as_chunks_mut().0) {
        let [[ln]] = minus_two_ln_f32::<S, 1, 1>(&[[S::F::load(x)]]);
        ln.store(out);
    }
}
dispatch! { fn minus_two_ln{}{}(x: &[f32], out: &mut [f32]) = logarithms }

/// Logarithms of the 4008 single-precision numbers up to one and of some in every octave, on every path: never below zero (a radius is
/// their square root), and right to 4e-7 of themselves (2.4e-7 of the fit, and two roundings of 6e-8).
#[test]
fn logarithms_of_uniforms_are_right_and_never_negative() {
    let near_one = (0..4008).map(|i| f32::from_bits(1f32.to_bits() - i));
    let octaves = (1..34).flat_map(|e| (0..1000).map(move |i| (1.0 + i as f32 / 1000.0) * 0.5f32.powi(e)));
    let all: Vec<f32> = near_one.chain(octaves).collect();
    assert_eq!(all.len() % LANES, 0, "whole vectors");
    for isa in Isa::available() {
        let mut found = vec![0.0; all.len()];
        minus_two_ln(isa, &all, &mut found);
        for (x, y) in all.iter().zip(found) {
            let exact = -2.0 * (*x as f64).ln();
            assert!(y >= 0.0 && (y as f64 - exact).abs() <= 4e-7 * exact, "{isa:?} -2 ln {x}: {y}, {exact}");
        }
    }
}

#[test]
fn all_paths_give_the_same_bits() {
    let key = Random::new(9).key(5, Purpose::Noise);
    let mut reference: Option<(Vec<u32>, Vec<u64>)> = None;
    for isa in Isa::available() {
        let (mut a, mut b) = (vec![0.0f32; 400 * 52], vec![0.0f64; 400 * 50]);
        normal_rows(isa, &key, WalkerIds::From(0), 50, &mut a);
        normal_rows(isa, &key, WalkerIds::From(0), 50, &mut b);
        let bits = (a.iter().map(|v| v.to_bits()).collect(), b.iter().map(|v| v.to_bits()).collect());
        match &reference {
            None => reference = Some(bits),
            Some(first) => assert!(*first == bits, "{isa:?} differs"),
        }
    }
}

#[test]
fn uniforms_in_bulk_are_the_single_ones_on_every_path() {
    let random = Random::new(77);
    for isa in Isa::available() {
        let mut bulk = vec![0.0; 1003];
        let first = (1 << 32) - 500;
        normal::uniform_row(isa, &random.key(3, Purpose::Accept), first, 0, &mut bulk);
        for (i, u) in bulk.iter().enumerate() {
            assert_eq!(*u, random.uniform(3, first + i as u64, Purpose::Accept), "{isa:?}");
        }
        let mut logs = bulk.clone();
        normal::minus_ln(isa, &mut logs);
        for (u, log) in bulk.iter().zip(&logs) {
            assert!((log + u.ln()).abs() <= 4.0 * f64::EPSILON * u.ln().abs(), "{isa:?} {u}");
        }
    }
}

/// A seed means the same run next year: these numbers must never change.
#[test]
fn streams_are_pinned() {
    let random = Random::new(42);
    let mut normals = [0.0f64; 3];
    random.normals(7, 5, Purpose::Noise, &mut normals);
    let words = random.words(7, 5, Purpose::Noise, 0);
    let expected = block_f64_scalar(words);
    assert!((normals[0] - expected[0]).abs() < 1e-14);
    assert_eq!(words, philox4x32::<ROUNDS>([0, 5, 7, 0], [42, 0]));
    assert_eq!(
        random.words(1 << 40, 3 << 32, Purpose::Accept, 9),
        philox4x32::<ROUNDS>([9, 0, 0, 1 | 3 << 8 | (1 << 8) << 16], [42, 0])
    );
}

fn normal_cdf(x: f64) -> f64 {
    // Complementary error function by its continued fraction / series; accurate to 1e-12 here.
    let z = x.abs() / std::f64::consts::SQRT_2;
    let erf = if z < 2.5 {
        let (mut term, mut sum, mut n) = (z, z, 0.0);
        while term.abs() > 1e-17 * sum.abs() {
            n += 1.0;
            term *= -z * z / n;
            sum += term / (2.0 * n + 1.0);
        }
        2.0 / std::f64::consts::PI.sqrt() * sum
    } else {
        let mut f = 0.0;
        for k in (1..=60).rev() {
            f = k as f64 / 2.0 / (z + f);
        }
        1.0 - (-z * z).exp() / std::f64::consts::PI.sqrt() / (z + f)
    };
    if x > 0.0 { 0.5 + 0.5 * erf } else { 0.5 - 0.5 * erf }
}

/// Moments, the share of numbers in 24 cells out to 5 standard deviations (chi-square), and the most extreme
/// values. Limits are those of a one-in-a-million false alarm (5 sigma; chi-square with 23 degrees of freedom: 77).
fn goodness<T: Real>() {
    const N: usize = 1 << 24;
    let random = Random::new(2026);
    let mut row = vec![T::ZERO; 1 << 16];
    let edges: Vec<f64> = (0..23).map(|i| -5.0 + 10.0 / 22.0 * i as f64).collect();
    let mut cells = [0u64; 24];
    let (mut m1, mut m2, mut m3, mut m4, mut lag) = (0.0, 0.0, 0.0, 0.0, 0.0);
    let mut largest = 0.0f64;
    for walker in 0..(N >> 16) as u64 {
        random.normals(0, walker, Purpose::Noise, &mut row);
        let mut previous = 0.0;
        for v in &row {
            let v = v.to_f64();
            cells[edges.partition_point(|e| *e <= v)] += 1;
            m1 += v;
            m2 += v * v;
            m3 += v * v * v;
            m4 += v * v * v * v;
            lag += v * previous;
            previous = v;
            largest = largest.max(v.abs());
        }
    }
    let n = N as f64;
    let z = |sum: f64, mean: f64, var: f64| ((sum / n - mean) / (var / n).sqrt()).abs();
    assert!(z(m1, 0.0, 1.0) < 5.0 && z(m2, 1.0, 2.0) < 5.0, "moments 1, 2");
    assert!(z(m3, 0.0, 15.0) < 5.0 && z(m4, 3.0, 96.0) < 5.0, "moments 3, 4");
    assert!(z(lag, 0.0, 1.0) < 5.0, "neighbours");
    let mut chi2 = 0.0;
    for (i, &count) in cells.iter().enumerate() {
        let low = if i == 0 { 0.0 } else { normal_cdf(edges[i - 1]) };
        let high = if i == 23 { 1.0 } else { normal_cdf(edges[i]) };
        let expected = n * (high - low);
        chi2 += (count as f64 - expected).powi(2) / expected;
    }
    assert!(chi2 < 77.0, "chi-square {chi2}");
    // The largest of 2^24 lies in (4.6, 6.7) but once in 10^6 times.
    assert!(largest > 4.6 && largest < 6.7, "largest {largest}");
}

#[test]
fn normals_of_f32_are_normal() {
    goodness::<f32>();
}

#[test]
fn normals_of_f64_are_normal() {
    goodness::<f64>();
}

/// Streams that differ in one field of the address are uncorrelated: 5 sigma, 8 pairs, false alarm 5e-6.
#[test]
fn address_fields_are_independent() {
    let base = (1u64, 5u64, 9u64, Purpose::Noise);
    let draw = |(seed, step, walker, purpose): (u64, u64, u64, Purpose)| {
        let mut row = vec![0.0f64; 1 << 18];
        Random::new(seed).normals(step, walker, purpose, &mut row);
        row
    };
    let reference = draw(base);
    let others = [
        (2, 5, 9, Purpose::Noise),
        (1 + (1 << 32), 5, 9, Purpose::Noise),
        (1, 6, 9, Purpose::Noise),
        (1, 5 + (1 << 32), 9, Purpose::Noise),
        (1, 5, 10, Purpose::Noise),
        (1, 5, 9 + (1 << 32), Purpose::Noise),
        (1, 5, 9, Purpose::Start),
        (1, 9, 5, Purpose::Noise),
    ];
    for other in others {
        let row = draw(other);
        assert_ne!(row, reference);
        let dot: f64 = row.iter().zip(&reference).map(|(a, b)| a * b).sum();
        assert!((dot / (row.len() as f64).sqrt()).abs() < 5.0, "{other:?}");
    }
}

/// Subsets: the right size, each member equally often (5.5 sigma over 40 members, false alarm 2e-6).
#[test]
fn subsets_are_uniform() {
    let random = Random::new(3);
    let mut subset = Subset::default();
    let mut counts = [0u64; 40];
    for step in 0..20_000 {
        random.subset(step, Purpose::WalkerBatch, 13, 40, &mut subset);
        assert_eq!(subset.members().len(), 13);
        assert!(subset.members().windows(2).all(|w| w[0] < w[1]));
        subset.members().iter().for_each(|&m| counts[m as usize] += 1);
    }
    let (p, n) = (13.0 / 40.0, 20_000.0);
    for count in counts {
        let z: f64 = (count as f64 - n * p) / (n * p * (1.0 - p)).sqrt();
        assert!(z.abs() < 5.5, "{counts:?}");
    }
}
