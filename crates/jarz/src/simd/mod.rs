//! One source, several instruction sets: hot loops are compiled for AVX-512, AVX2 and a portable
//! baseline, and the best one the processor has is chosen at run time.
//!
//! Loops that matter most are written on vectors of [`LANES`] numbers ([`Simd`], `dispatch!`); for others the compiler finds the
//! vectors itself (`multiversion!`). All work on fixed groups and use fused multiply-adds explicitly, so
//! all paths do the same arithmetic in the same order and give the same bits.

pub(crate) mod aes;
#[cfg(target_arch = "x86_64")]
#[doc(hidden)]
pub mod avx2;
#[cfg(target_arch = "x86_64")]
#[doc(hidden)]
pub mod avx512;
#[doc(hidden)]
pub mod portable;
pub(crate) mod tile;
#[cfg(target_arch = "x86_64")]
mod tile_avx2;
#[cfg(target_arch = "x86_64")]
mod tile_avx512;
pub(crate) mod vector;

pub use aes::Aes;
pub use tile::{Tile, Unzip};
pub use vector::{Simd, Vector, Words};

use std::sync::OnceLock;

/// Numbers handled together; the order of every sum is defined by it, on any processor.
pub const LANES: usize = 16;

/// Instruction set of a hot loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Isa {
    /// Whatever the compiler's baseline for the target is.
    Portable,
    /// AVX2 with fused multiply-add.
    Avx2,
    /// AVX-512 (F, BW, DQ, VL).
    Avx512,
}

impl Isa {
    /// All instruction sets this processor can run, slowest first.
    pub fn available() -> Vec<Isa> {
        #[allow(unused_mut)]
        let mut all = vec![Isa::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("bmi2");
            if avx2 {
                all.push(Isa::Avx2);
            }
            if avx2
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
            {
                all.push(Isa::Avx512);
            }
        }
        all
    }

    /// The fastest available set, or the one named by the environment variable `JARZ_ISA`
    /// (`portable`, `avx2`, `avx512`) if this processor has it.
    pub fn best() -> Isa {
        static BEST: OnceLock<Isa> = OnceLock::new();
        *BEST.get_or_init(|| {
            let available = Isa::available();
            let asked = match std::env::var("JARZ_ISA").as_deref() {
                Ok("portable") => Some(Isa::Portable),
                Ok("avx2") => Some(Isa::Avx2),
                Ok("avx512") => Some(Isa::Avx512),
                _ => None,
            };
            match asked {
                Some(isa) if available.contains(&isa) => isa,
                _ => *available.last().unwrap_or(&Isa::Portable),
            }
        })
    }

    /// This set, or the next lower one for which the processor also has the AES instructions: AVX-512 needs them for whole vectors, which processors
    /// have had since Ice Lake and Zen 4.
    pub fn with_aes(self) -> Isa {
        #[cfg(target_arch = "x86_64")]
        {
            let aes = is_x86_feature_detected!("aes");
            if self == Isa::Avx512 && aes && is_x86_feature_detected!("vaes") {
                return Isa::Avx512;
            }
            if self >= Isa::Avx2 && aes {
                return Isa::Avx2;
            }
        }
        Isa::Portable
    }
}

/// Asks for the cache line at `address`, which need not be valid.
#[inline(always)]
pub(crate) fn prefetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch has no effect that a program can see.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Compiles a function for every instruction set; the first argument of the result is the [`Isa`].
#[doc(hidden)]
#[macro_export]
macro_rules! __multiversion {
    ($(#[$meta:meta])* $vis:vis fn $name:ident $([$t:ident : $bound:path])? ($($arg:ident : $ty:ty),* $(,)?) $body:block) => {
        $(#[$meta])*
        #[allow(clippy::too_many_arguments)]
        $vis fn $name $(<$t: $bound>)? (isa: $crate::simd::Isa, $($arg: $ty),*) {
            #[inline(always)]
            #[allow(clippy::too_many_arguments)]
            fn body $(<$t: $bound>)? ($($arg: $ty),*) $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2")]
                #[allow(clippy::too_many_arguments)]
                fn avx512 $(<$t: $bound>)? ($($arg: $ty),*) { body($($arg),*) }
                #[target_feature(enable = "avx2,fma,bmi2")]
                #[allow(clippy::too_many_arguments)]
                fn avx2 $(<$t: $bound>)? ($($arg: $ty),*) { body($($arg),*) }
                // SAFETY: `Isa` values other than `Portable` are handed out only after detection.
                match isa {
                    $crate::simd::Isa::Avx512 => return unsafe { avx512($($arg),*) },
                    $crate::simd::Isa::Avx2 => return unsafe { avx2($($arg),*) },
                    $crate::simd::Isa::Portable => {}
                }
            }
            let _ = isa;
            body($($arg),*)
        }
    };
}
#[doc(hidden)]
pub use crate::__multiversion as multiversion;

/// Entry points, one per instruction set, of a kernel that is generic over [`Simd`]: `fn name{generics}{their names}(arguments) = kernel`
/// makes `name(isa, arguments)` out of an `#[inline(always)]` function `kernel::<S, generics>(arguments)`.
#[doc(hidden)]
#[macro_export]
macro_rules! __dispatch {
    ($($function:tt)*) => {
        $crate::simd::entry_points! { "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2", "avx2,fma,bmi2", std::convert::identity, $($function)* }
    };
}
#[doc(hidden)]
pub use crate::__dispatch as dispatch;

/// The same for kernels that encrypt counters ([`Aes`]).
#[doc(hidden)]
#[macro_export]
macro_rules! __dispatch_aes {
    ($($function:tt)*) => {
        $crate::simd::entry_points! {
            "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2,aes,vaes", "avx2,fma,bmi2,aes", $crate::simd::Isa::with_aes, $($function)*
        }
    };
}
#[doc(hidden)]
pub use crate::__dispatch_aes as dispatch_aes;

/// What [`dispatch!`] and [`dispatch_aes!`] have in common: the features of the entry points, and which of them is called.
#[doc(hidden)]
#[macro_export]
macro_rules! __entry_points {
    ($wide:literal, $narrow:literal, $choose:expr, $(#[$meta:meta])* $vis:vis fn $name:ident {$($generics:tt)*} {$($names:tt)*} ($($arg:ident : $ty:ty),* $(,)?) $(-> $ret:ty)? = $kernel:path) => {
        $(#[$meta])*
        #[allow(clippy::too_many_arguments)]
        $vis fn $name<$($generics)*>(isa: $crate::simd::Isa, $($arg: $ty),*) $(-> $ret)? {
            use $kernel as kernel;
            #[cfg(target_arch = "x86_64")]
            {
                use $crate::simd::{avx2::Avx2, avx512::Avx512};
                #[target_feature(enable = $wide)]
                #[allow(clippy::too_many_arguments)]
                fn avx512<$($generics)*>($($arg: $ty),*) $(-> $ret)? { kernel::<Avx512, $($names)*>($($arg),*) }
                #[target_feature(enable = $narrow)]
                #[allow(clippy::too_many_arguments)]
                fn avx2<$($generics)*>($($arg: $ty),*) $(-> $ret)? { kernel::<Avx2, $($names)*>($($arg),*) }
                // SAFETY: `Isa` values other than `Portable` are handed out only after detection.
                match $choose(isa) {
                    $crate::simd::Isa::Avx512 => return unsafe { avx512::<$($names)*>($($arg),*) },
                    $crate::simd::Isa::Avx2 => return unsafe { avx2::<$($names)*>($($arg),*) },
                    $crate::simd::Isa::Portable => {}
                }
            }
            let _ = isa;
            kernel::<$crate::simd::portable::Portable, $($names)*>($($arg),*)
        }
    };
}
#[doc(hidden)]
pub use crate::__entry_points as entry_points;
