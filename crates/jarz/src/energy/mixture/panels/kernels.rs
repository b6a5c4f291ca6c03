//! The kernels by scalar type.

use super::data::{DataBench, gather_some};
use super::step::move_some;
use super::sums::{sum_rows, weigh};
use super::weights::leave_own_out;
use super::{Arrays, Modes, Movers, Own, Step, Workbench, evaluate_some};
use crate::panels::PanelsOf;
use crate::simd::{Isa, LANES};

/// The kernels by scalar type: compiled once, here, and not in every crate that uses a mixture.
#[doc(hidden)]
pub trait MixtureKernels: Sized {
    /// Energies and responsibilities of a block. `parts` is scratch memory, a panel per mode.
    fn evaluate(
        isa: Isa,
        modes: &Modes<Self>,
        x: &[Self],
        u: &mut [f64],
        kept: &mut [Self],
        parts: &mut [[f64; LANES]],
    );
    /// Of data points: `sums[k][j] = sum_i r_ik x_ij` and `masses[k] = sum_i r_ik`, the latter lane by lane, in one pass; at most [`MAX_MODES`] modes.
    fn gather(
        isa: Isa,
        modes: &Modes<Self>,
        x: PanelsOf<'_, Self>,
        sums: &mut [Self],
        masses: &mut [[f64; LANES]],
        bench: &mut DataBench<Self>,
    );
    /// Leaves the own push of contiguous walkers out of their log-weights, where they stand; at most [`MAX_MODES`] modes.
    fn leave_own_out(
        isa: Isa,
        modes: &Modes<Self>,
        own: &Own<Self>,
        x: &[Self],
        kept: &[Self],
        a: &mut [f64],
    );
    /// One ULA step of the movers; at most [`MAX_MODES`] modes. Returns the sum of the would-be acceptances and the first
    /// walker whose weight is no longer finite.
    fn advance(
        isa: Isa,
        step: &Step<'_, Self>,
        movers: Movers<'_>,
        arrays: &mut Arrays<'_, Self>,
        workbench: &mut Workbench<Self>,
    ) -> (f64, Option<u64>);
    /// `c_ik = weight_i r_ik`, rounded to the walkers' precision; `masses` and `rounded` receive the sums of the `c_ik` before and
    /// after rounding.
    fn weigh(
        isa: Isa,
        kept: &[Self],
        weights: &[f64],
        modes: usize,
        c: &mut [Self],
        masses: &mut [f64],
        rounded: &mut [f64],
    );
    /// `sums[k][j] = sum_i c[i][k] x[i][j]` over the rows of a block.
    fn sum_rows(isa: Isa, x: &[Self], c: &[Self], dim: usize, modes: usize, sums: &mut [Self]);
}

macro_rules! kernels {
    ($t:ty) => {
        impl MixtureKernels for $t {
            fn evaluate(
                isa: Isa,
                modes: &Modes<$t>,
                x: &[$t],
                u: &mut [f64],
                kept: &mut [$t],
                parts: &mut [[f64; LANES]],
            ) {
                match modes.count {
                    2 => evaluate_some::<$t, 2>(isa, modes, x, u, kept, parts),
                    _ => evaluate_some::<$t, 0>(isa, modes, x, u, kept, parts),
                }
            }
            fn gather(
                isa: Isa,
                modes: &Modes<$t>,
                x: PanelsOf<'_, $t>,
                sums: &mut [$t],
                masses: &mut [[f64; LANES]],
                bench: &mut DataBench<$t>,
            ) {
                match modes.count {
                    2 => gather_some::<$t, 2>(isa, modes, x, sums, masses, bench),
                    _ => gather_some::<$t, 0>(isa, modes, x, sums, masses, bench),
                }
            }
            fn leave_own_out(
                isa: Isa,
                modes: &Modes<$t>,
                own: &Own<$t>,
                x: &[$t],
                kept: &[$t],
                a: &mut [f64],
            ) {
                leave_own_out(isa, modes, own, x, kept, a)
            }
            fn advance(
                isa: Isa,
                step: &Step<'_, $t>,
                movers: Movers<'_>,
                arrays: &mut Arrays<'_, $t>,
                workbench: &mut Workbench<$t>,
            ) -> (f64, Option<u64>) {
                match (step.from.count, step.own.response.is_empty()) {
                    (2, true) => move_some::<$t, 2, false>(isa, step, movers, arrays, workbench),
                    (2, false) => move_some::<$t, 2, true>(isa, step, movers, arrays, workbench),
                    (_, true) => move_some::<$t, 0, false>(isa, step, movers, arrays, workbench),
                    (_, false) => move_some::<$t, 0, true>(isa, step, movers, arrays, workbench),
                }
            }
            fn weigh(
                isa: Isa,
                kept: &[$t],
                weights: &[f64],
                modes: usize,
                c: &mut [$t],
                masses: &mut [f64],
                rounded: &mut [f64],
            ) {
                weigh(isa, kept, weights, modes, c, masses, rounded)
            }
            fn sum_rows(isa: Isa, x: &[$t], c: &[$t], dim: usize, modes: usize, sums: &mut [$t]) {
                sum_rows(isa, x, c, dim, modes, sums)
            }
        }
    };
}
kernels!(f32);
kernels!(f64);
