//! The mixture's fused step: what it hands to the sampler.

use super::panels::{Arrays, Movers, Own, Step};
use super::{Mixture, MixtureWorkspace};
use crate::energy::{Fused, FusedBlock, FusedDone, FusedRows, FusedStep};
use crate::real::Real;
use crate::sampler::SelfInteraction;
use crate::simd::Isa;

pub(super) fn parts<T: Real>(mixture: &Mixture) -> Fused<T, Mixture> {
    Fused {
        kept: mixture.modes,
        evaluate: Mixture::respond_to,
        leave_own_out,
        advance: |from, to, step, block, ws| advance(Isa::best(), from, to, step, block, ws),
        add_param_gradient: Mixture::add_gradient,
        add_data_gradient: Mixture::add_data_gradient,
    }
}

/// Brings the leave-one-out correction's numbers into the kernels' shape, unless they are there already.
fn prepare_own<T: Real>(mixture: &Mixture, own: SelfInteraction<'_>, ws: &mut MixtureWorkspace<T>) {
    if ws.own_of[0] == own.response && ws.own_of[1] == own.mean {
        return;
    }
    ws.own_of[0].clear();
    ws.own_of[0].extend_from_slice(own.response);
    ws.own_of[1].clear();
    ws.own_of[1].extend_from_slice(own.mean);
    let (d, modes, stride) = (mixture.dim, mixture.modes, mixture.dim.next_multiple_of(4));
    for (padded, factor) in [(&mut ws.own.response, None), (&mut ws.own.product, Some(own.mean))] {
        padded.clear();
        padded.resize(modes * stride, T::ZERO);
        for k in 0..modes {
            for j in 0..d {
                let value = own.response[k * d + j] * factor.map_or(1.0, |f| f[k * d + j]);
                padded[k * stride + j] = T::from_f64(value);
            }
        }
    }
    ws.own.masses.clear();
    ws.own.masses.extend((modes * d..modes * d + modes).map(|at| [own.response[at], own.mean[at]]));
}

fn leave_own_out<T: Real>(
    mixture: &Mixture,
    own: SelfInteraction<'_>,
    log_sum: f64,
    x: &[T],
    kept: &[T],
    a: &mut [f64],
    ws: &mut MixtureWorkspace<T>,
) {
    prepare_own(mixture, own, ws);
    ws.own.log_sum = log_sum;
    let at = ws.prepare(mixture);
    T::leave_own_out(Isa::best(), &ws.prepared[at].modes, &ws.own, x, kept, a);
}

/// One step, on a given instruction set.
pub(super) fn advance<T: Real>(
    isa: Isa,
    from: &Mixture,
    to: &Mixture,
    step: &FusedStep<'_>,
    block: FusedBlock<'_, T>,
    ws: &mut MixtureWorkspace<T>,
) -> FusedDone {
    if let Some(own) = step.own {
        prepare_own(from, own, ws);
        ws.own.log_sum = step.log_sum;
    }
    let new = ws.prepare(to);
    let old = ws.prepare(from);
    let none = Own::default();
    let kernel = Step {
        from: &ws.prepared[old].modes,
        to: &ws.prepared[new].modes,
        own: if step.own.is_some() { &ws.own } else { &none },
        key: step.key,
        h: step.h,
        noise_scale: step.noise_scale,
        weigh: step.weigh,
    };
    let movers = match block.rows {
        FusedRows::All { first } => Movers::All(first),
        FusedRows::Listed { ids, first } => Movers::Some(ids, first),
    };
    let mut arrays = Arrays { x: block.x, kept: block.kept, u: block.u, a: block.a };
    let (accepted, bad) = T::advance(isa, &kernel, movers, &mut arrays, &mut ws.workbench);
    FusedDone { accepted, bad }
}
