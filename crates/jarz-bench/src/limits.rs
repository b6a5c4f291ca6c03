//! What no step can be faster than, measured in the same run: filling the normals, and reading and writing the positions once.

use jarz::simd::Isa;
use jarz::{Purpose, Real, WalkerIds};
use rayon::prelude::*;
use std::time::Duration;

use crate::error::BenchError;
use crate::measure::time_calls;
use crate::work::{Shape, random};

/// Passes of a thread over its part before it waits for the others: what is measured is the work, not how fast threads wake up.
const PASSES: u32 = 8;

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
        let rows = (normals.len() / *dim).div_ceil(pool.current_num_threads()).next_multiple_of(16);
        let random = random();
        let ms = time_calls(least, || {
            *step += u64::from(PASSES);
            pool.install(|| {
                normals.par_chunks_mut(rows * *dim).with_max_len(1).enumerate().for_each(|(i, part)| {
                    let first = WalkerIds::From((i * rows) as u64);
                    for pass in 0..u64::from(PASSES) {
                        random.noise_rows(*step + pass, Purpose::User, first, *dim, part);
                    }
                })
            });
        });
        ms / f64::from(PASSES)
    }

    /// Milliseconds to read and write the positions of all walkers.
    pub fn memory_ms(&mut self, least: Duration) -> f64 {
        let Limits { pool, positions, .. } = self;
        let isa = Isa::best();
        let part = positions.len().div_ceil(pool.current_num_threads()).next_multiple_of(16);
        let ms = time_calls(least, || {
            pool.install(|| {
                positions.par_chunks_mut(part).with_max_len(1).for_each(|part| {
                    for _ in 0..PASSES {
                        negate(isa, std::hint::black_box(&mut *part));
                    }
                })
            })
        });
        ms / f64::from(PASSES)
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
