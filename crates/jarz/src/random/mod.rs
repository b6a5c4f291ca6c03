//! Random numbers addressed by (seed, step, walker, purpose): the number a walker gets does not depend
//! on how many threads or machines share the work, nor on what was drawn before.
//!
//! The generator is Philox4x32-7 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as
//! 1, 2, 3", SC 2011): a keyed bijection of 128-bit counters. The key is the seed, the counter is
//! the address. Normals come from the Box-Muller transform. The noise of fused moves, which is most of what is ever drawn, comes from
//! ARS-5 of the same paper, AES rounds for which processors have instructions ([`Random::noise_rows`]).

pub(crate) mod ars;
pub(crate) mod math;
pub(crate) mod noise;
pub(crate) mod normal;
pub(crate) mod philox;

use crate::real::{Real, WalkerIds};
use crate::simd::Isa;
pub use ars::{ARS_ROUNDS, ARS_WEYL, ars4x32};
pub use philox::{MULTIPLIERS, ROUNDS, WEYL, philox4x32};

/// What a random number is for; part of its address, so that no two uses share a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Purpose {
    /// Langevin noise of a kernel step.
    Noise = 0,
    /// The uniform of a Metropolis test.
    Accept = 1,
    /// Normals of the initial walkers.
    Start = 2,
    /// Choice of the mode of an initial walker.
    StartMode = 3,
    /// Which walkers move in a mini-batch step.
    WalkerBatch = 4,
    /// Uniforms of a resampling step.
    Resample = 5,
    /// Which data points a step uses.
    DataBatch = 6,
    /// Which data point a walker restarts from.
    Restart = 7,
    /// Initial parameters.
    Parameters = 8,
    /// Synthetic data: normals.
    Data = 9,
    /// Synthetic data: choice of mode.
    DataMode = 10,
    /// Equal-weight samples drawn on demand.
    Draw = 11,
    /// Seed of the witnesses' own random numbers.
    Witnesses = 12,
    /// Disturbances of walkers between iterations.
    Disturb = 13,
    /// Velocities of the initial walkers.
    Momentum = 14,
    /// Choice of the keepers whose copies drive next.
    Relay = 15,
    /// Seed of the keepers' own random numbers.
    Keepers = 16,
    /// Data with rounded values: the uniform that spreads them.
    Dequantise = 20,
    /// Gaussian noise on data.
    DataNoise = 21,
    /// Which data points are held out.
    DataSplit = 22,
    /// Langevin noise of an annealing.
    AnnealNoise = 30,
    /// The uniform of an annealing's Metropolis test.
    AnnealAccept = 31,
    /// Uniforms of an annealing's resampling.
    AnnealResample = 32,
    /// Samples of the base measure that an annealing starts from.
    AnnealStart = 33,
    /// Velocities that an annealing starts with.
    AnnealMomentum = 34,
    /// Free for the user's own code.
    User = 255,
}

/// Everything of an address but the walker and the block within a walker's row.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    pub(crate) seed: [u32; 2],
    pub(crate) step: u64,
    pub(crate) purpose: Purpose,
}

impl Key {
    /// The seed as the generator's key.
    pub fn seed(&self) -> [u32; 2] {
        self.seed
    }

    /// The 128-bit counter of block `block` of `walker`: 32 bits of block, 40 of walker, 48 of step, 8 of purpose.
    #[inline(always)]
    pub fn counter(&self, walker: u64, block: u32) -> [u32; 4] {
        let high = (self.purpose as u32)
            | (((walker >> 32) as u32 & 0xff) << 8)
            | (((self.step >> 32) as u32 & 0xffff) << 16);
        [block, walker as u32, self.step as u32, high]
    }
}

/// The random numbers of one seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Random {
    seed: u64,
}

impl Random {
    /// The numbers of `seed`.
    pub fn new(seed: u64) -> Self {
        Random { seed }
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Random numbers of their own for a part of the run that has walkers numbered from zero again.
    pub fn branch(&self, purpose: Purpose) -> Random {
        let w = self.words(0, 0, purpose, 0);
        Random { seed: u64::from(w[0]) | u64::from(w[1]) << 32 }
    }

    /// Key of a step and purpose.
    pub fn key(&self, step: u64, purpose: Purpose) -> Key {
        Key { seed: [self.seed as u32, (self.seed >> 32) as u32], step, purpose }
    }

    /// Four random words.
    #[inline]
    pub fn words(&self, step: u64, walker: u64, purpose: Purpose, block: u32) -> [u32; 4] {
        let key = self.key(step, purpose);
        philox4x32::<ROUNDS>(key.counter(walker, block), key.seed)
    }

    /// A uniform in (0, 1), 53 bits.
    #[inline]
    pub fn uniform(&self, step: u64, walker: u64, purpose: Purpose) -> f64 {
        let w = self.words(step, walker, purpose, 0);
        uniform_from(w[0], w[1])
    }

    /// Uniforms in (0, 1) of the walkers from `first` on, as by [`Random::uniform`].
    pub fn uniforms(&self, step: u64, first: u64, purpose: Purpose, out: &mut [f64]) {
        self.uniforms_of_block(step, first, purpose, 0, out);
    }

    /// The same from another block of the walkers' numbers.
    pub(crate) fn uniforms_of_block(
        &self,
        step: u64,
        first: u64,
        purpose: Purpose,
        block: u32,
        out: &mut [f64],
    ) {
        normal::uniform_row(Isa::best(), &self.key(step, purpose), first, block, out);
    }

    /// An integer below `bound`, unbiased to 2^-64 (multiply-shift of 64 random bits).
    #[inline]
    pub fn below(&self, step: u64, walker: u64, purpose: Purpose, bound: u64) -> u64 {
        let w = self.words(step, walker, purpose, 0);
        let bits = (w[0] as u64) | ((w[1] as u64) << 32);
        ((bits as u128 * bound as u128) >> 64) as u64
    }

    /// Rows of standard normals, one row per walker, rows [`Real::noise_stride`] apart (the few numbers
    /// between `dim` and the stride are further normals of that walker).
    pub fn normal_rows<T: Real>(
        &self,
        step: u64,
        purpose: Purpose,
        walkers: WalkerIds<'_>,
        dim: usize,
        out: &mut [T],
    ) {
        T::normal_rows(Isa::best(), &self.key(step, purpose), walkers, dim, out);
    }

    /// Rows of `dim` standard normals, one row per walker: those that fused moves draw (see [`crate::Energy::fused`]). They come from another
    /// generator than [`Random::normal_rows`], and from the same addresses.
    pub fn noise_rows<T: Real>(
        &self,
        step: u64,
        purpose: Purpose,
        walkers: WalkerIds<'_>,
        dim: usize,
        out: &mut [T],
    ) {
        T::noise_rows(Isa::best(), &self.key(step, purpose), walkers, dim, out);
    }

    /// The standard normals of one walker, `out.len()` of them.
    pub fn normals<T: Real>(&self, step: u64, walker: u64, purpose: Purpose, out: &mut [T]) {
        let stride = T::noise_stride(out.len());
        if stride == out.len() {
            self.normal_rows(step, purpose, WalkerIds::From(walker), out.len(), out);
        } else {
            let mut padded = vec![T::ZERO; stride];
            self.normal_rows(step, purpose, WalkerIds::From(walker), out.len(), &mut padded);
            out.copy_from_slice(&padded[..out.len()]);
        }
    }

    /// `count` distinct indices below `total`, each subset equally likely (Floyd's algorithm), sorted.
    pub fn subset(&self, step: u64, purpose: Purpose, count: usize, total: usize, out: &mut Subset) {
        out.clear(total);
        for (i, top) in (total - count..total).enumerate() {
            let pick = self.below(step, i as u64, purpose, top as u64 + 1) as usize;
            out.insert(if out.contains(pick) { top } else { pick });
        }
        out.collect();
    }
}

/// Replaces uniforms by `-ln u`.
pub(crate) fn minus_ln(values: &mut [f64]) {
    normal::minus_ln(Isa::best(), values);
}

/// A set of indices below a bound, reused from step to step.
#[derive(Clone, Debug, Default)]
pub struct Subset {
    words: Vec<u64>,
    members: Vec<u64>,
}

impl Subset {
    fn clear(&mut self, total: usize) {
        self.words.clear();
        self.words.resize(total.div_ceil(64), 0);
        self.members.clear();
    }
    fn insert(&mut self, i: usize) {
        self.words[i / 64] |= 1 << (i % 64);
    }
    fn collect(&mut self) {
        for (w, &word) in self.words.iter().enumerate() {
            let mut rest = word;
            while rest != 0 {
                self.members.push(w as u64 * 64 + rest.trailing_zeros() as u64);
                rest &= rest - 1;
            }
        }
    }
    /// Whether `i` is in the set.
    pub fn contains(&self, i: usize) -> bool {
        self.words[i / 64] >> (i % 64) & 1 == 1
    }
    /// The members, ascending.
    pub fn members(&self) -> &[u64] {
        &self.members
    }
}

/// A uniform in (0, 1) from two words: 53 bits, centred in their cells so that 0 and 1 never occur.
#[inline(always)]
pub(crate) fn uniform_from(low: u32, high: u32) -> f64 {
    let bits = ((low as u64) | ((high as u64) << 32)) >> 11;
    (bits as f64 + 0.5) * (1.0 / (1u64 << 53) as f64)
}

#[cfg(test)]
mod tests;
