use super::*;
use crate::random::ars::ars_key;
use crate::random::math::minus_two_ln_f32;
use crate::random::noise::noise_rows;
use crate::random::normal::{block_f32_scalar, block_f64_scalar, normal_rows};
use crate::simd::{LANES, Simd, Vector, aes, dispatch};

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

/// The rounds against the example of FIPS 197, appendix B: ten of them with the keys that its schedule makes.
#[test]
fn aes_rounds_encrypt_as_published() {
    let words =
        |bytes: [u8; 16]| bytes.as_chunks().0.iter().map(|b| u32::from_le_bytes(*b)).collect::<Vec<u32>>();
    let four = |words: &[u32]| <[u32; 4]>::try_from(words).unwrap();
    let mut keys = words(0x2b7e1516_28aed2a6_abf71588_09cf4f3c_u128.to_be_bytes());
    let mut constant = 1u8;
    for i in 4..44 {
        let mut word = keys[i - 1];
        if i % 4 == 0 {
            word =
                u32::from_le_bytes(word.rotate_right(8).to_le_bytes().map(|b| aes::SUBSTITUTES[b as usize]));
            word ^= constant as u32;
            constant = constant << 1 ^ if constant >> 7 == 1 { 0x1b } else { 0 };
        }
        keys.push(keys[i - 4] ^ word);
    }
    let plain = words(0x3243f6a8_885a308d_313198a2_e0370734_u128.to_be_bytes());
    let mut state: [u32; 4] = std::array::from_fn(|w| plain[w] ^ keys[w]);
    for round in 1..10 {
        state = aes::round(state, four(&keys[4 * round..4 * round + 4]));
    }
    let cipher = words(0x3925841d_02dc09fb_dc118597_196a0b32_u128.to_be_bytes());
    assert_eq!(aes::last(state, four(&keys[40..])), four(&cipher));
}

/// Known answers that come with Random123 (its file `kat_vectors`, version 1.14), which are of ten rounds, and what its own implementation gives for five.
#[test]
fn ars_gives_the_known_answers() {
    let pi = [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344];
    let key = [0xa4093822, 0x299f31d0, 0x082efa98, 0xec4e6c89];
    let ones = u32::MAX;
    for (counter, key, answer) in [
        ([0; 4], [0; 4], [0x8d73ee19, 0x506401ef, 0x13c2dbe4, 0x0cbe9c0d]),
        (pi, key, [0xa516e7d6, 0x8357ad74, 0x5b59b3ec, 0x8763fff3]),
        ([ones; 4], [ones, ones, 0, 0], [0xbb3743b1, 0x9f635551, 0xecbc87fc, 0xa19478a9]),
    ] {
        assert_eq!(ars4x32::<10>(counter, key), answer);
    }
    for (counter, key, answer) in [
        ([0; 4], [0; 4], [0x7ecce06f, 0x7cdc3bca, 0x15513c87, 0x29d24c9b]),
        (pi, key, [0x9150862d, 0x525af535, 0x6612f4fa, 0xe2a60648]),
        ([1, 2, 3, 4], [5, 6, 0, 0], [0x34d875b9, 0x48c143f4, 0x550594ab, 0x7242eb54]),
    ] {
        assert_eq!(ars4x32::<ARS_ROUNDS>(counter, key), answer);
    }
}

/// ARS is these rounds with keys of its own.
#[test]
fn ars_adds_its_weyl_sequence_to_the_key() {
    let (counter, key) = ([1, 2, 3, 4], [0xffff_ffff, 6, 7, 0xffff_ffff]);
    let mut weyl =
        u128::from(key[0]) | u128::from(key[1]) << 32 | u128::from(key[2]) << 64 | u128::from(key[3]) << 96;
    let mut state: [u32; 4] = std::array::from_fn(|w| counter[w] ^ key[w]);
    for round in 1..=7 {
        let (low, high) = (weyl as u64, (weyl >> 64) as u64);
        let (low, high) = (low.wrapping_add(ARS_WEYL[0]), high.wrapping_add(ARS_WEYL[1]));
        weyl = u128::from(low) | u128::from(high) << 64;
        let key = std::array::from_fn(|w| (weyl >> (32 * w)) as u32);
        state = if round < 7 { aes::round(state, key) } else { aes::last(state, key) };
    }
    assert_eq!(ars4x32::<7>(counter, key), state);
}

/// Normal `j` of a fused move in `dim` dimensions from the words of its counters, by the standard library's functions in double precision.
fn noise_twin<T: Real>(key: &Key, walker: u64, dim: usize, j: usize) -> f64 {
    let per = T::NORMALS_PER_BLOCK;
    let (quads, quad, column) = (dim.div_ceil(4), j / 4, j % 4);
    // Word `c` of a group of four: 32 bits of its one block, or 64 of its two.
    let word = |quad: usize, c: usize| {
        let block = (quad * 4 + c) / per;
        let words = ars4x32::<ARS_ROUNDS>(key.counter(walker, block as u32), ars_key(key.seed));
        if per == 4 { vec![words[c]] } else { words[c % 2 * 2..c % 2 * 2 + 2].to_vec() }
    };
    let (radius, angle, which) = if quad % 2 == 1 {
        (word(quad - 1, column), word(quad, column), 1)
    } else if quad + 1 < quads {
        (word(quad, column), word(quad + 1, column), 0)
    } else {
        (word(quad, column / 2 * 2), word(quad, column / 2 * 2 + 1), column % 2)
    };
    match per {
        4 => block_f32_scalar([radius[0], angle[0], 0, 0])[which],
        _ => block_f64_scalar([radius[0], radius[1], angle[0], angle[1]])[which],
    }
}

/// The normals of fused moves on every CPU path against their scalar twin, for many dimensions and both kinds of walker ids, and the same bits on all.
#[test]
fn noise_equals_its_scalar_twin_on_every_path() {
    fn check<T: Real>(tolerance: f64) {
        let random = Random::new(0x1234_5678_9abc_def0);
        let ids: Vec<u64> = (0..37).map(|i| i * 977 + (i << 33)).collect();
        let key = random.key(3 + (7 << 32), Purpose::Noise);
        for dim in [1, 2, 3, 4, 5, 7, 8, 11, 16, 50, 63, 64, 65, 130] {
            for walkers in [WalkerIds::From((1 << 32) - 20), WalkerIds::List(&ids), WalkerIds::From(11)] {
                let mut reference = None;
                for isa in Isa::available() {
                    let mut out = vec![T::ZERO; 37 * dim];
                    noise_rows(isa, &key, walkers, dim, &mut out);
                    for (i, v) in out.iter().enumerate() {
                        let twin = noise_twin::<T>(&key, walkers.get(i / dim), dim, i % dim);
                        assert!((v.to_f64() - twin).abs() < tolerance, "{isa:?} dim {dim}: {v} {twin}");
                    }
                    let bits: Vec<u64> = out.iter().map(|v| v.to_f64().to_bits()).collect();
                    assert!(*reference.get_or_insert_with(|| bits.clone()) == bits, "{isa:?} differs");
                }
            }
        }
    }
    check::<f32>(2e-6);
    check::<f64>(1e-13);
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
        let [[ln]] = minus_two_ln_f32::<S, 1, 1>(&[[S::F::load(x)]], 0.0, S::F::splat(1.0));
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
fn goodness<T: Real>(draw: impl Fn(u64, &mut [T])) {
    const N: usize = 1 << 24;
    let mut row = vec![T::ZERO; 1 << 16];
    let edges: Vec<f64> = (0..23).map(|i| -5.0 + 10.0 / 22.0 * i as f64).collect();
    let mut cells = [0u64; 24];
    let (mut m1, mut m2, mut m3, mut m4, mut lag) = (0.0, 0.0, 0.0, 0.0, 0.0);
    let mut largest = 0.0f64;
    for walker in 0..(N >> 16) as u64 {
        draw(walker, &mut row);
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
    goodness::<f32>(|walker, row| Random::new(2026).normals(0, walker, Purpose::Noise, row));
}

#[test]
fn normals_of_f64_are_normal() {
    goodness::<f64>(|walker, row| Random::new(2026).normals(0, walker, Purpose::Noise, row));
}

/// The noise of 1024 walkers in 64 dimensions at a time, as moves draw it.
fn noise_block<T: Real>(block: u64, out: &mut [T]) {
    Random::new(2026).noise_rows(block / 4, Purpose::Noise, WalkerIds::From(block % 4 * 1024), 64, out);
}

#[test]
fn noise_of_f32_is_normal() {
    goodness::<f32>(noise_block);
}

#[test]
fn noise_of_f64_is_normal() {
    goodness::<f64>(noise_block);
}

/// Streams that differ in one field of the address are uncorrelated: 5 sigma, twice 8 pairs, false alarm 1e-5.
#[test]
fn address_fields_are_independent() {
    fields_are_independent(|random, step, walker, purpose, row| random.normals(step, walker, purpose, row));
    fields_are_independent(|random, step, walker, purpose, row| {
        random.noise_rows(step, purpose, WalkerIds::From(walker), row.len(), row)
    });
}

fn fields_are_independent(rows: impl Fn(Random, u64, u64, Purpose, &mut [f64])) {
    let base = (1u64, 5u64, 9u64, Purpose::Noise);
    let draw = |(seed, step, walker, purpose): (u64, u64, u64, Purpose)| {
        let mut row = vec![0.0f64; 1 << 18];
        rows(Random::new(seed), step, walker, purpose, &mut row);
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
