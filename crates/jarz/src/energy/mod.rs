//! Energies: the models. A density is `exp(-U(x)) / Z`, and everything the algorithms need of `U` is here.

mod gaussian;
pub(crate) mod mixture;

pub use gaussian::Gaussian;
pub use mixture::Mixture;

use crate::annealing::BaseMeasure;
use crate::optimizer::Matrix;
use crate::panels::PanelsOf;
use crate::random::{Key, Random};
use crate::real::Real;
use crate::sampler::SelfInteraction;
use std::ops::Range;

/// A named part of the flat parameter vector, with a learning rate of its own if so wished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamGroup {
    /// Name, dotted from general to particular: a rate given for `mean` also holds for `mean.3`.
    pub name: String,
    /// The parameters it covers.
    pub range: Range<usize>,
}

impl ParamGroup {
    /// A group of the parameters in `range`.
    pub fn new(name: impl Into<String>, range: Range<usize>) -> Self {
        ParamGroup { name: name.into(), range }
    }

    /// Whether `pattern` names this group or one of its parents.
    pub fn matches(&self, pattern: &str) -> bool {
        self.name == pattern || self.name.strip_prefix(pattern).is_some_and(|rest| rest.starts_with('.'))
    }
}

/// An energy-based model: `U_theta(x)` with its derivatives, for a block of walkers at a time.
///
/// Positions are row-major: `x[i * dim .. (i + 1) * dim]` is walker `i` of the block. A block holds some
/// tens to hundreds of walkers, chosen so that it stays in cache; the trainer spreads blocks over
/// threads. What a walker gets must not depend on the other walkers of the block.
///
/// ```
/// use jarz::{Energy, ParamGroup};
///
/// /// `U(x) = a x^4 - b x^2`, a double well in one dimension.
/// #[derive(Clone)]
/// struct DoubleWell([f64; 2]);
///
/// impl Energy<f64> for DoubleWell {
///     type Workspace = ();
///     fn dim(&self) -> usize { 1 }
///     fn groups(&self) -> Vec<ParamGroup> {
///         vec![ParamGroup::new("quartic", 0..1), ParamGroup::new("quadratic", 1..2)]
///     }
///     fn params(&self) -> &[f64] { &self.0 }
///     fn set_params(&mut self, theta: &[f64]) { self.0.copy_from_slice(theta) }
///     fn energy_and_gradient(&self, x: &[f64], u: &mut [f64], g: &mut [f64], _: &mut ()) {
///         let [a, b] = self.0;
///         for i in 0..x.len() {
///             u[i] = a * x[i].powi(4) - b * x[i].powi(2);
///             g[i] = 4.0 * a * x[i].powi(3) - 2.0 * b * x[i];
///         }
///     }
///     fn add_param_gradient(&self, x: &[f64], weights: &[f64], out: &mut [f64], _: &mut ()) {
///         for i in 0..x.len() {
///             out[0] += weights[i] * x[i].powi(4);
///             out[1] -= weights[i] * x[i].powi(2);
///         }
///     }
/// }
/// let mut g = [0.0];
/// let mut u = [0.0];
/// DoubleWell([1.0, 2.0]).energy_and_gradient(&[1.0], &mut u, &mut g, &mut ());
/// assert_eq!((u[0], g[0]), (-1.0, 0.0));
/// ```
pub trait Energy<T: Real>: Clone + Send + Sync {
    /// Memory for one block, reused from block to block; `()` if none is needed.
    type Workspace: Default + Send;

    /// Dimension of a walker.
    fn dim(&self) -> usize;

    /// The parts of the parameter vector.
    fn groups(&self) -> Vec<ParamGroup>;

    /// The parameters as matrices, one after the other, if that is what they are: what [`crate::Rule::Natural`] needs.
    fn matrices(&self) -> Vec<Matrix> {
        Vec::new()
    }

    /// The parameters, flat.
    fn params(&self) -> &[f64];

    /// Replaces the parameters.
    fn set_params(&mut self, theta: &[f64]);

    /// `U(x_i)` and its gradient in x for every walker of the block.
    fn energy_and_gradient(
        &self,
        x: &[T],
        energy: &mut [f64],
        gradient: &mut [T],
        workspace: &mut Self::Workspace,
    );

    /// Adds `sum_i weights_i dU/dtheta(x_i)` to `out`. Called right after [`Energy::energy`] or
    /// [`Energy::energy_and_gradient`] with the same `x` and workspace, which may have kept what is needed here.
    fn add_param_gradient(&self, x: &[T], weights: &[f64], out: &mut [f64], workspace: &mut Self::Workspace);

    /// `U(x_i)` alone; worth overriding where it is cheaper than the gradient.
    fn energy(&self, x: &[T], energy: &mut [f64], workspace: &mut Self::Workspace) {
        let mut gradient = vec![T::ZERO; x.len()];
        self.energy_and_gradient(x, energy, &mut gradient, workspace);
    }

    /// Makes rows of a workspace those of another one: after [`Energy::energy_and_gradient`] of two blocks of the same size,
    /// [`Energy::add_param_gradient`] with `into` must then answer for a block that has its `rows` from the first and all others from the second. Says
    /// whether it did; where not, such a mixed block is evaluated again.
    fn take_rows(&self, _rows: &[usize], _from: &Self::Workspace, _into: &mut Self::Workspace) -> bool {
        false
    }

    /// Walkers that a block should have, for models that know better than to go by the size of a walker. Results may depend on it
    /// (sums have another order), so it must be a function of the model alone.
    fn rows_per_block(&self) -> Option<usize> {
        None
    }

    /// A step of the unadjusted kernel in one pass, for models that can do better than the sum of their parts.
    fn fused(&self) -> Option<Fused<T, Self>> {
        None
    }

    /// Exact samples and the exact normalisation at the present parameters, where there are any.
    fn exact(&self) -> Option<&dyn Exact<T>> {
        None
    }

    /// Parameter gradients walker by walker, where they are cheap enough: needed for the
    /// leave-one-out correction and for the continuous-time weights.
    fn per_walker(&self) -> Option<&dyn PerWalker<T>> {
        None
    }

    /// The coordinates walkers live in, where they are not those of the data.
    fn coordinates(&self) -> Option<&dyn Coordinates<T>> {
        None
    }

    /// The modes of a mixture.
    fn modes(&self) -> Option<&dyn Modes<T>> {
        None
    }

    /// The base measure of a model that is one with something on top: where annealing to it begins.
    fn base_measure(&self) -> Option<Box<dyn BaseMeasure<T>>> {
        None
    }
}

/// A model's own way of doing a ULA step: noise, move, new energy and weight of a walker in one go (see [`Energy::fused`]). It keeps
/// a few numbers per walker from step to step, of its own choice, instead of the gradient. All functions give what the
/// sampler's composition of [`Energy::energy_and_gradient`] and [`Energy::add_param_gradient`] would, up to rounding.
#[allow(clippy::type_complexity)] // Signatures, each explained where it stands.
pub struct Fused<T: Real, E: Energy<T>> {
    /// Numbers kept per walker.
    pub kept: usize,
    /// `(model, x, energies, kept, workspace)`: energies, and what is to be kept.
    pub evaluate: fn(&E, &[T], &mut [f64], &mut [T], &mut E::Workspace),
    /// `(model, own, log sum exp A, x, kept, log-weights, workspace)`: applies the leave-one-out correction alone.
    pub leave_own_out: fn(&E, SelfInteraction<'_>, f64, &[T], &[T], &mut [f64], &mut E::Workspace),
    /// `(old, new, step, block, workspace)`: moves walkers and updates all that belongs to them.
    pub advance: fn(&E, &E, &FusedStep<'_>, FusedBlock<'_, T>, &mut E::Workspace) -> FusedDone,
    /// `(model, x, kept, weights, out, workspace)`: adds `sum_i weights_i dU/dtheta(x_i)` to `out`.
    pub add_param_gradient: fn(&E, &[T], &[T], &[f64], &mut [f64], &mut E::Workspace),
    /// `(model, points, out, workspace)`: adds `sum_i dU/dtheta(x_i)` of data points to `out`.
    pub add_data_gradient: fn(&E, PanelsOf<'_, T>, &mut [f64], &mut E::Workspace),
}

/// What a fused step needs to know.
#[derive(Clone, Copy, Debug)]
pub struct FusedStep<'a> {
    /// Address of the noise.
    pub key: Key,
    /// Time step.
    pub h: f64,
    /// Factor of the noise, `sqrt(2 h)`.
    pub noise_scale: f64,
    /// Share of the gain that goes to the log-weight: one, or zero for walkers without weights.
    pub weigh: f64,
    /// Leave-one-out correction, if any.
    pub own: Option<SelfInteraction<'a>>,
    /// `log sum exp A` of the ensemble before the step.
    pub log_sum: f64,
}

/// Walkers of a fused step; rows of all arrays correspond.
pub struct FusedBlock<'a, T> {
    /// Which of them move.
    pub rows: FusedRows<'a>,
    /// Positions.
    pub x: &'a mut [T],
    /// What the model keeps.
    pub kept: &'a mut [T],
    /// Energies.
    pub u: &'a mut [f64],
    /// Log-weights.
    pub a: &'a mut [f64],
}

/// Which rows a fused step moves.
#[derive(Clone, Copy, Debug)]
pub enum FusedRows<'a> {
    /// All.
    All {
        /// Global id of the first.
        first: u64,
    },
    /// Some.
    Listed {
        /// Their global ids, ascending.
        ids: &'a [u64],
        /// Global id of the first row.
        first: u64,
    },
}

/// What a fused step says about the kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FusedDone {
    /// Sum of the would-be acceptances.
    pub accepted: f64,
    /// First walker whose weight is no longer finite.
    pub bad: Option<u64>,
}

/// An energy that can be normalised and sampled exactly.
pub trait Exact<T: Real> {
    /// `log Z`.
    fn log_z(&self) -> f64;

    /// Draws the walkers with the given global ids, out of `total` in all. Stratified draws give each mode
    /// its share of the walkers up to rounding (the fixed point of training remembers these shares).
    fn sample(&self, ids: Range<u64>, total: u64, start: Stratification, random: &Random, out: &mut [T]);
}

/// Coordinates that walkers and data have in training, when these are not the ones the data came in. Both ways, rows correspond.
pub trait Coordinates<T: Real> {
    /// From the walkers' coordinates to those of the data.
    fn to_data(&self, z: &[T], x: &mut [T]);

    /// From the data's coordinates to those of the walkers.
    fn to_walkers(&self, x: &[T], z: &mut [T]);

    /// `log |det dx/dz|`: a cross-entropy in the data's coordinates is the one in the walkers' plus this.
    fn log_det(&self) -> f64;
}

/// How initial walkers are spread over the modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Stratification {
    /// Each mode gets its share of the walkers (systematic: one random offset, unbiased).
    #[default]
    Stratified,
    /// Each walker picks its mode independently.
    Independent,
}

/// Parameter gradients of single walkers.
pub trait PerWalker<T: Real> {
    /// `dU/dtheta(x_i)`, one row of `params` numbers per walker.
    fn param_gradients(&self, x: &[T], out: &mut [f64]);

    /// `out_i = dU(x_i) . direction`, the derivative of the energy along a direction in parameter space.
    fn directional(&self, x: &[T], direction: &[f64], out: &mut [f64]) {
        let p = direction.len();
        let mut rows = vec![0.0; out.len() * p];
        self.param_gradients(x, &mut rows);
        for (value, g) in out.iter_mut().zip(rows.chunks_exact(p)) {
            *value = g.iter().zip(direction).map(|(g, d)| g * d).sum();
        }
    }

    /// `out_i = sum_j response_j g_ij (g_ij - mean_j)` with `g_i = dU/dtheta(x_i)`: how much a walker's own share of
    /// the direction would lower its own energy (the self-interaction).
    fn self_products(&self, x: &[T], response: &[f64], mean: &[f64], out: &mut [f64]) {
        let p = response.len();
        let mut rows = vec![0.0; out.len() * p];
        self.param_gradients(x, &mut rows);
        for (value, g) in out.iter_mut().zip(rows.chunks_exact(p)) {
            *value = (0..p).map(|j| response[j] * g[j] * (g[j] - mean[j])).sum();
        }
    }
}

/// The modes of a mixture model.
pub trait Modes<T: Real> {
    /// How many.
    fn count(&self) -> usize;
    /// Mass of each mode under the model.
    fn masses(&self) -> Vec<f64>;
    /// Mean of each mode.
    fn means(&self) -> Vec<Vec<f64>>;
    /// Probability that walker `i` belongs to mode `k`, in `out[i * count + k]`.
    fn memberships(&self, x: &[T], out: &mut [f64]);
}

#[cfg(test)]
mod tests;
