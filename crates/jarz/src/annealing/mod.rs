//! Annealed sequential Monte Carlo: `log Z` and expectations of a model, judged independently of how it was trained.
//!
//! Walkers begin as exact samples of a base measure whose `log Z_0` is known and follow `U_t = base + t f`, with `f = U - base`, from
//! `t = 0` to the model at `t = 1`. Going from `t` to `t'` a walker's log-weight gains `-(t' - t) f(x)`; the ensemble is resampled when the ESS is
//! low and moved by MALA at `t'`, which leaves `exp(-U_t')` invariant (Neal, Stat. Comput. 11, 2001; Del Moral, Doucet and Jasra, J. R. Stat. Soc. B 68, 2006).
//!
//! The next `t` is chosen such that the ESS of the increments, given the present weights, falls to a set fraction (Zhou, Johansen and
//! Aston, J. Comput. Graph. Stat. 25, 2016), and the time step follows the acceptance of the rungs before. Both look at the walkers they are applied to, which biases `Z_hat` by
//! terms of order `1 / N` (Beskos et al., Ann. Appl. Probab. 26, 2016); with a ladder that is given ([`Settings::ladder`], for example that of another
//! seed) `Z_hat` is unbiased for any number of walkers.
//!
//! ```
//! use jarz::annealing::{GaussianBase, Settings, anneal};
//! use jarz::{Energy, Mixture, Modes};
//! use std::ops::ControlFlow;
//!
//! let model = Mixture::paper(&[-2.0, 0.0], &[2.0, 0.0], -3f64.ln()).unwrap(); // masses 1/4 and 3/4
//! let base = GaussianBase::isotropic(vec![0.0, 0.0], 2.0)?;
//! let settings = Settings { walkers: 1000, ..Settings::default() };
//! let annealed = anneal::<f64, _>(&model, &base, &settings, &mut |_| ControlFlow::Continue(()))?;
//! let mut memberships = vec![0.0; 2 * 1000];
//! Modes::<f64>::memberships(&model, annealed.walkers.positions(), &mut memberships);
//! let masses = annealed.masses(&memberships, 2)?;
//! let exact = Energy::<f64>::exact(&model).unwrap().log_z();
//! println!("log Z {:?}, exactly {exact}; masses {masses:?}", annealed.log_z);
//! # assert!((annealed.log_z.value - exact).abs() < 0.5 && masses.len() == 2);
//! # Ok::<(), jarz::annealing::AnnealingError>(())
//! ```

mod base;
mod ensemble;
mod error;
mod ladder;
mod outcome;
mod settings;

pub use base::{BaseMeasure, GaussianBase};
pub use error::AnnealingError;
pub use outcome::{Annealed, Rung};
pub use settings::Settings;

use crate::energy::Energy;
use crate::estimate::{Families, Measured};
use crate::real::Real;
use crate::weights::normalise;
use ensemble::Ensemble;
use ladder::Ladder;
use std::ops::ControlFlow;

/// Anneals from `base` to `energy`. `progress` hears of every rung and may stop the run before its end.
pub fn anneal<T: Real, E: Energy<T>>(
    energy: &E,
    base: &dyn BaseMeasure<T>,
    settings: &Settings,
    progress: &mut dyn FnMut(&Rung) -> ControlFlow<()>,
) -> Result<Annealed<T>, AnnealingError> {
    settings.check(energy.dim(), base)?;
    let mut ensemble = Ensemble::new(energy, base, settings)?;
    let mut ladder = Ladder::new(settings, &ensemble);
    let mut trace: Vec<Rung> = Vec::new();
    let mut t = 0.0;
    while t < 1.0 {
        let (next, h) = ladder.next(t, &ensemble);
        let ess = ensemble.reweight(t, next)?;
        // At the end resampling would only add noise to the estimates.
        let resampled = next < 1.0 && ess < settings.threshold;
        if resampled {
            ensemble.resample(trace.len() as u64);
        }
        t = next;
        let acceptance = ensemble.advance(t, h)?;
        ladder.learn(acceptance);
        let rung = Rung { t, h, ess, acceptance, resampled };
        trace.push(rung);
        if progress(&rung).is_break() && t < 1.0 {
            return Err(AnnealingError::Stopped { t });
        }
    }
    let walkers = ensemble.into_walkers();
    let weights = normalise(walkers.log_weights());
    let std_error =
        Families::new(walkers.ancestors(), &weights).log_z_std_error(settings.scheme, walkers.resamplings());
    let ess = trace.last().map_or(1.0, |r| r.ess);
    let value =
        walkers.log_z.unwrap_or(f64::NAN) + crate::weights::WeightSums::of(walkers.log_weights()).log_mean();
    Ok(Annealed { log_z: Measured { value, std_error: Some(std_error) }, ess, walkers, weights, trace })
}

#[cfg(test)]
mod tests;
