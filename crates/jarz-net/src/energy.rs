//! A network as an energy: `U(z) = |z|^2 / 2 + f(mean + L z)`, in coordinates in which the base measure is the standard Gaussian. With a mixture as base, its energy
//! stands in place of `|z|^2 / 2`, and the logarithms of its components' weights, relative to the first, are parameters as well: what mass each component has in the model
//! is learnt, from the base's own at the start.

use crate::architecture::{Architecture, Weights};
use crate::base::{Base, Maps};
use crate::error::Error;
use crate::functions::{add_base, half_squares};
use crate::init::initial_params;
use crate::mixture::{MixtureMeasure, Parts, Work};
use crate::network::{self, Network};
use crate::plan::check_energy;
use jarz::annealing::{BaseMeasure, GaussianBase};
use jarz::simd::Isa;
use jarz::{
    Coordinates, Energy, Exact, Matrix, ParamGroup, Purpose, Random, Real, Stratification, WalkerIds,
};
use std::ops::Range;
use std::sync::Arc;

/// Group of the parameters that change the weights of a mixture.
const WEIGHTS: &str = "base.weights";
/// Walkers that go through a full factor of a covariance together.
const SHARED_ROWS: usize = 64;

/// A base measure and a network on top of it. While the weights of the network's last layer are zero, and those of a mixture unchanged, as they are at the start, the
/// model is the base: walkers are sampled exactly and `log Z` is known.
#[derive(Clone, Debug)]
pub struct NetEnergy<T> {
    network: Network<T>,
    base: Arc<Base>,
    maps: Arc<Maps<T>>,
    mixture: Option<Arc<Parts<T>>>,
    /// The network's parameters, then those of a mixture's weights.
    params: Vec<f64>,
    groups: Arc<Vec<ParamGroup>>,
    /// One for each layer, with the biases as last row, then one for a mixture's weights.
    matrices: Arc<Vec<Matrix>>,
    /// The parameters whose vanishing makes the model the base.
    last: Range<usize>,
    is_base: bool,
}

/// Memory for a block of walkers.
#[derive(Clone, Debug, Default)]
pub struct NetWorkspace<T> {
    network: network::Workspace<T>,
    x: Vec<T>,
    f: Vec<T>,
    gradient: Vec<T>,
    base: Work<T>,
}

impl<T: Real> NetEnergy<T> {
    /// A network with random weights (see [`initial_params`]) whose last layer is zero.
    pub fn new(architecture: &Architecture, base: Base, seed: u64) -> Result<Self, Error> {
        let mut params = initial_params(architecture, seed)?;
        if let Some(last) = architecture.weights()?.last() {
            params[last.first..].fill(0.0);
        }
        Self::with_params(architecture, base, &params)
    }

    /// A network with given parameters. With a mixture as base, one number for each component but the first may follow: what the logarithm of its weight has in addition.
    pub fn with_params(architecture: &Architecture, base: Base, params: &[f64]) -> Result<Self, Error> {
        check_energy(architecture)?;
        let network = Network::new(architecture)?;
        if base.dim() != network.inputs() {
            let [h, w, c] = architecture.input;
            return Err(Error::Data(format!(
                "the base has {} dimensions but the network takes {h} x {w} with {c} channels, {} numbers",
                base.dim(),
                network.inputs()
            )));
        }
        let (maps, mixture) = (Arc::new(base.maps()), Parts::new(&base).map(Arc::new));
        let layers = network.params().len();
        let tilts = mixture.as_ref().map_or(0, |m: &Arc<Parts<T>>| m.count() - 1);
        if ![layers, layers + tilts].contains(&params.len()) {
            let base = if tilts > 0 { format!(", and {tilts} more for its base") } else { String::new() };
            let given = params.len();
            return Err(Error::Data(format!("{given} parameters for a network that has {layers}{base}")));
        }
        let mut groups = architecture.groups()?;
        let matrix = |w: &Weights| Matrix { rows: w.count() / w.outputs + 1, columns: w.outputs };
        let mut matrices: Vec<Matrix> = architecture.weights()?.iter().map(matrix).collect();
        let last = architecture.weights()?.last().map_or(0, |w| w.first)..layers + tilts;
        if tilts > 0 {
            groups.push(ParamGroup::new(WEIGHTS, layers..layers + tilts));
            matrices.push(Matrix { rows: tilts, columns: 1 });
        }
        let base = Arc::new(base);
        let (groups, matrices) = (Arc::new(groups), Arc::new(matrices));
        let mut all = params.to_vec();
        all.resize(layers + tilts, 0.0);
        let mut energy = NetEnergy {
            network,
            base,
            maps,
            mixture,
            params: Vec::new(),
            groups,
            matrices,
            last,
            is_base: false,
        };
        energy.set_params(&all);
        Ok(energy)
    }

    /// The network.
    pub fn network(&self) -> &Network<T> {
        &self.network
    }

    /// The base measure.
    pub fn base(&self) -> &Base {
        &self.base
    }

    /// Maps between the coordinates of the data and those of the walkers.
    pub fn maps(&self) -> &Maps<T> {
        &self.maps
    }

    /// What the logarithms of a mixture's weights have in addition.
    fn tilt(&self) -> &[f64] {
        &self.params[self.network.params().len()..]
    }

    /// `|z|^2 / 2`, or what a mixture has in its place, and what the network gave.
    fn total(&self, z: &[T], x: &[T], f: &[T], energy: &mut [f64], work: &mut Work<T>) {
        match &self.mixture {
            Some(mixture) => mixture.energy(x, self.tilt(), energy, work),
            None => half_squares(Isa::best(), z, self.network.inputs(), energy),
        }
        energy.iter_mut().zip(f).for_each(|(u, f)| *u += f.to_f64());
    }
}

impl<T: Real> Energy<T> for NetEnergy<T> {
    type Workspace = NetWorkspace<T>;

    fn dim(&self) -> usize {
        self.network.inputs()
    }

    fn groups(&self) -> Vec<ParamGroup> {
        self.groups.to_vec()
    }

    fn matrices(&self) -> Vec<Matrix> {
        self.matrices.to_vec()
    }

    fn params(&self) -> &[f64] {
        &self.params
    }

    fn set_params(&mut self, theta: &[f64]) {
        self.is_base = theta[self.last.clone()].iter().all(|v| *v == 0.0);
        self.network.set_params(&theta[..self.network.params().len()]);
        self.params.clear();
        self.params.extend_from_slice(theta);
    }

    fn energy_and_gradient(
        &self,
        z: &[T],
        energy: &mut [f64],
        gradient: &mut [T],
        workspace: &mut NetWorkspace<T>,
    ) {
        let NetWorkspace { network, x, f, gradient: of_x, base } = workspace;
        f.resize(energy.len(), T::ZERO);
        if self.maps.is_identity() {
            self.network.forward_and_backward(z, f, &[T::ONE], gradient, network);
        } else {
            x.resize(z.len(), T::ZERO);
            of_x.resize(z.len(), T::ZERO);
            self.maps.to_data(z, x);
            self.network.forward_and_backward(x, f, &[T::ONE], of_x, network);
        }
        self.total(z, x, f, energy, base);
        if let Some(mixture) = &self.mixture {
            mixture.add_gradient(of_x, base);
        }
        if !self.maps.is_identity() {
            self.maps.gradient_to_base(of_x, gradient);
        }
        if self.mixture.is_none() {
            add_base(Isa::best(), z, gradient);
        }
    }

    fn add_param_gradient(&self, _: &[T], weights: &[f64], out: &mut [f64], workspace: &mut NetWorkspace<T>) {
        let (layers, tilt) = out.split_at_mut(self.network.params().len());
        self.network.add_param_gradient(weights, layers, &mut workspace.network);
        if let Some(mixture) = &self.mixture {
            mixture.add_tilt_gradient(weights, tilt, &workspace.base);
        }
    }

    fn energy(&self, z: &[T], energy: &mut [f64], workspace: &mut NetWorkspace<T>) {
        let NetWorkspace { network, x, f, base, .. } = workspace;
        f.resize(energy.len(), T::ZERO);
        if self.maps.is_identity() {
            self.network.forward(z, f, network);
        } else {
            x.resize(z.len(), T::ZERO);
            self.maps.to_data(z, x);
            self.network.forward(x, f, network);
        }
        self.total(z, x, f, energy, base);
    }

    fn take_rows(&self, rows: &[usize], from: &NetWorkspace<T>, into: &mut NetWorkspace<T>) -> bool {
        self.network.take_images(rows, &from.network, &mut into.network);
        if let Some(mixture) = &self.mixture {
            mixture.take_rows(rows, &from.base, &mut into.base);
        }
        true
    }

    fn exact(&self) -> Option<&dyn Exact<T>> {
        self.is_base.then_some(self)
    }

    fn coordinates(&self) -> Option<&dyn Coordinates<T>> {
        (!self.maps.is_identity()).then_some(self)
    }

    fn rows_per_block(&self) -> Option<usize> {
        // A full factor of a covariance is as large as a block of images: several blocks should share it while it is in cache.
        let block = self.network.block();
        Some(if self.maps.is_full() { block * SHARED_ROWS.div_ceil(block) } else { block })
    }

    fn base_measure(&self) -> Option<Box<dyn BaseMeasure<T>>> {
        Some(match &self.mixture {
            Some(parts) => Box::new(MixtureMeasure { maps: self.maps.clone(), parts: parts.clone() }),
            None => Box::new(GaussianBase::standard(self.dim())),
        })
    }
}

impl<T: Real> Coordinates<T> for NetEnergy<T> {
    fn to_data(&self, z: &[T], x: &mut [T]) {
        self.maps.to_data(z, x);
    }

    fn to_walkers(&self, x: &[T], z: &mut [T]) {
        self.maps.to_base(x, z);
    }

    fn log_det(&self) -> f64 {
        self.base.log_det()
    }
}

impl<T: Real> Exact<T> for NetEnergy<T> {
    fn log_z(&self) -> f64 {
        0.5 * self.dim() as f64 * std::f64::consts::TAU.ln()
    }

    fn sample(&self, ids: Range<u64>, total: u64, start: Stratification, random: &Random, out: &mut [T]) {
        if let Some(mixture) = &self.mixture {
            let offset = random.uniform(0, u64::MAX >> 24, Purpose::StartMode);
            let at = |id: u64| match start {
                Stratification::Stratified => (id as f64 + offset) / total as f64,
                Stratification::Independent => random.uniform(0, id, Purpose::StartMode),
            };
            return mixture.sample_walkers(&self.maps, ids, random, Purpose::Start, at, out);
        }
        let (dim, stride) = (self.dim(), T::noise_stride(self.dim()));
        let mut rows = vec![T::ZERO; (ids.end - ids.start) as usize * stride];
        random.normal_rows(0, Purpose::Start, WalkerIds::From(ids.start), dim, &mut rows);
        for (row, out) in rows.chunks_exact(stride).zip(out.chunks_exact_mut(dim)) {
            out.copy_from_slice(&row[..dim]);
        }
    }
}
