//! What no step can be faster than, measured in the same run: filling the normals, and reading and writing the positions once.

use jarz::simd::Isa;
use jarz::{Purpose, Real, WalkerIds};
use rayon::prelude::*;
use std::time::Duration;

use crate::error::BenchError;
use crate::measure::time_calls;
use crate::work::{Shape, random};

/// Pieces that the threads share.
const PIECES: usize = 128;

/// Arrays of the size of one step's.
pub struct Limits<T> {
    pool: rayon::ThreadPool,
    dim: usize,
    positions: Vec<T>,
    normals: Vec<T>,
    step: u64,
}

impl<T: Real> Limits<T> {
    /// For a step of this shape on so many threads (0: all).
    pub fn new(shape: &Shape, threads: usize) -> Result<Self, BenchError> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
        let dim = shape.dim;
        let positions = vec![T::ONE; shape.walkers * dim];
        Ok(Limits { pool, dim, positions, normals: vec![T::ONE; shape.moving() * dim], step: 0 })
    }

    /// Milliseconds to fill one row of normals, those of the step's own generator, for every walker that moves.
    pub fn normals_ms(&mut self, least: Duration) -> f64 {
        let Limits { pool, dim, normals, step, .. } = self;
        let rows = (normals.len() / *dim).div_ceil(PIECES).next_multiple_of(16);
        let random = random();
        time_calls(least, || {
            *step += 1;
            let pieces = normals.par_chunks_mut(rows * *dim).enumerate();
            pool.install(|| {
                pieces.for_each(|(i, piece)| {
                    let first = WalkerIds::From((i * rows) as u64);
                    random.noise_rows(*step, Purpose::User, first, *dim, piece)
                })
            });
        })
    }

    /// Milliseconds to read and write the positions of all walkers.
    pub fn memory_ms(&mut self, least: Duration) -> f64 {
        let Limits { pool, positions, .. } = self;
        let isa = Isa::best();
        let piece = positions.len().div_ceil(PIECES).next_multiple_of(16);
        time_calls(least, || pool.install(|| positions.par_chunks_mut(piece).for_each(|p| negate(isa, p))))
    }
}

/// Reads and writes every value.
fn negate<T: Real>(isa: Isa, values: &mut [T]) {
    #[inline(always)]
    fn body<T: Real>(values: &mut [T]) {
        for v in values {
            *v = -*v;
        }
    }
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f")]
        fn avx512<T: Real>(values: &mut [T]) {
            body(values)
        }
        #[target_feature(enable = "avx2")]
        fn avx2<T: Real>(values: &mut [T]) {
            body(values)
        }
        // SAFETY: `Isa::best` answers only with what this processor has.
        if isa == Isa::Avx512 {
            return unsafe { avx512(values) };
        }
        if isa == Isa::Avx2 {
            return unsafe { avx2(values) };
        }
    }
    let _ = isa;
    body(values)
}
