//! Standard normals by Box-Muller from groups of counters, and their plain scalar twins.

use super::Key;
use super::math::{ln_f32, ln_f64, sin_cos_turn_f32, sin_cos_turn_f64};
use super::philox::philox_lanes;
use crate::real::WalkerIds;
use crate::simd::{LANES, multiversion};

/// Fills the counters of the next group of lanes, walking through (row, block) pairs.
#[inline(always)]
fn counters(
    key: &Key,
    walkers: &WalkerIds<'_>,
    position: &mut (usize, u32),
    rows: usize,
    per_row: u32,
) -> [[u32; LANES]; 4] {
    let mut out = [[0u32; LANES]; 4];
    let (mut row, mut block) = *position;
    if block + LANES as u32 <= per_row {
        // The whole group lies in one row.
        let first = key.counter(walkers.get(row), block);
        for l in 0..LANES {
            out[0][l] = first[0] + l as u32;
            out[1][l] = first[1];
            out[2][l] = first[2];
            out[3][l] = first[3];
        }
        block += LANES as u32;
        if block == per_row {
            (row, block) = (row + 1, 0);
        }
    } else if per_row >= 8 {
        // The group spans a few rows: find each lane's row by subtraction, which vectorises.
        let mut blocks = [0u32; LANES];
        let mut rows_on = [0u32; LANES];
        for l in 0..LANES {
            blocks[l] = block + l as u32;
        }
        for _ in 0..3 {
            for l in 0..LANES {
                let over = (blocks[l] >= per_row) as u32;
                blocks[l] -= per_row * over;
                rows_on[l] += over;
            }
        }
        let first = key.counter(walkers.get(row), 0);
        let same_high = matches!(walkers, WalkerIds::From(_)) && first[1] < u32::MAX - LANES as u32;
        for l in 0..LANES {
            out[0][l] = blocks[l];
            out[1][l] = first[1].wrapping_add(rows_on[l]);
            out[2][l] = first[2];
            out[3][l] = first[3];
        }
        if !same_high {
            for l in 0..LANES {
                let counter = key.counter(walkers.get((row + rows_on[l] as usize).min(rows - 1)), 0);
                (out[1][l], out[3][l]) = (counter[1], counter[3]);
            }
        }
        block += LANES as u32;
        while block >= per_row {
            (row, block) = (row + 1, block - per_row);
        }
    } else {
        for l in 0..LANES {
            let counter = key.counter(walkers.get(row.min(rows - 1)), block);
            for word in 0..4 {
                out[word][l] = counter[word];
            }
            block += 1;
            if block == per_row {
                (row, block) = (row + 1, 0);
            }
        }
    }
    *position = (row, block);
    out
}

multiversion! {
    /// Rows of `f32` normals, four per counter: two Box-Muller pairs.
    pub(crate) fn rows_f32(key: Key, walkers: WalkerIds<'_>, dim: usize, out: &mut [f32]) {
        let per_row = dim.div_ceil(4);
        if per_row == 0 { return; }
        let rows = out.len() / (per_row * 4);
        let mut position = (0usize, 0u32);
        let groups = out[..rows * per_row * 4].chunks_mut(4 * LANES);
        for group in groups {
            let mut c = counters(&key, &walkers, &mut position, rows, per_row as u32);
            philox_lanes::<10>(&mut c, key.seed);
            let mut n = [[0.0f32; LANES]; 4];
            for pair in 0..2 {
                let mut u = [0.0f32; LANES];
                for l in 0..LANES {
                    u[l] = (c[2 * pair][l] as f32).mul_add(1.0 / 4_294_967_296.0, 0.5 / 4_294_967_296.0);
                }
                let ln = ln_f32(u);
                let (sin, cos) = sin_cos_turn_f32(c[2 * pair + 1]);
                for l in 0..LANES {
                    let square = -2.0 * ln[l];
                    let radius = (if square > 0.0 { square } else { 0.0 }).sqrt();
                    n[2 * pair][l] = radius * cos[l];
                    n[2 * pair + 1][l] = radius * sin[l];
                }
            }
            let mut flat = [0.0f32; 4 * LANES];
            for l in 0..LANES {
                for word in 0..4 {
                    flat[4 * l + word] = n[word][l];
                }
            }
            let len = group.len();
            if len == 4 * LANES {
                group.copy_from_slice(&flat);
            } else {
                group.copy_from_slice(&flat[..len]);
            }
        }
    }
}

multiversion! {
    /// Rows of `f64` normals, two per counter: one Box-Muller pair of 53 and 52 bits.
    pub(crate) fn rows_f64(key: Key, walkers: WalkerIds<'_>, dim: usize, out: &mut [f64]) {
        let per_row = dim.div_ceil(2);
        if per_row == 0 { return; }
        let rows = out.len() / (per_row * 2);
        let mut position = (0usize, 0u32);
        let groups = out[..rows * per_row * 2].chunks_mut(2 * LANES);
        for group in groups {
            let mut c = counters(&key, &walkers, &mut position, rows, per_row as u32);
            philox_lanes::<10>(&mut c, key.seed);
            let mut u = [0.0f64; LANES];
            let mut turn = [0u64; LANES];
            for l in 0..LANES {
                // 52 random bits as the mantissa of a number in [1, 2), shifted to (0, 1).
                let bits = ((c[0][l] as u64) | ((c[1][l] as u64) << 32)) >> 12;
                u[l] = (f64::from_bits(bits | 0x3ff0_0000_0000_0000) - 1.0) + (0.5 / (1u64 << 52) as f64);
                turn[l] = ((c[2][l] as u64) | ((c[3][l] as u64) << 32)) >> 12;
            }
            let ln = ln_f64(u);
            let (sin, cos) = sin_cos_turn_f64(turn);
            let mut flat = [0.0f64; 2 * LANES];
            for l in 0..LANES {
                let square = -2.0 * ln[l];
                let radius = (if square > 0.0 { square } else { 0.0 }).sqrt();
                flat[2 * l] = radius * cos[l];
                flat[2 * l + 1] = radius * sin[l];
            }
            let len = group.len();
            if len == 2 * LANES {
                group.copy_from_slice(&flat);
            } else {
                group.copy_from_slice(&flat[..len]);
            }
        }
    }
}

/// Scalar twin of [`rows_f32`]: one counter's four normals, in double precision with the standard library's functions.
#[cfg(test)]
pub(crate) fn block_f32_scalar(words: [u32; 4]) -> [f64; 4] {
    let mut out = [0.0; 4];
    for pair in 0..2 {
        let u = (words[2 * pair] as f64 + 0.5) / 4_294_967_296.0;
        let angle = words[2 * pair + 1] as f64 / 4_294_967_296.0 * std::f64::consts::TAU;
        let radius = (-2.0 * u.ln()).sqrt();
        out[2 * pair] = radius * angle.cos();
        out[2 * pair + 1] = radius * angle.sin();
    }
    out
}

/// Scalar twin of [`rows_f64`].
#[cfg(test)]
pub(crate) fn block_f64_scalar(words: [u32; 4]) -> [f64; 2] {
    let join = |low: u32, high: u32| (((low as u64) | ((high as u64) << 32)) >> 12) as f64;
    let u = (join(words[0], words[1]) + 0.5) / (1u64 << 52) as f64;
    let angle = join(words[2], words[3]) / (1u64 << 52) as f64 * std::f64::consts::TAU;
    let radius = (-2.0 * u.ln()).sqrt();
    [radius * angle.cos(), radius * angle.sin()]
}
