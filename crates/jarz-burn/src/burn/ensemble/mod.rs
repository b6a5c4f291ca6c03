//! Weighted walkers on the device: what [`jarz::Sampler`] is on the processor.
//!
//! Positions, gradients and log-weights stay there. The processor sees six sums per advance, and for a resampling the log-weights, from
//! which it draws the ancestors; ancestry is its business.

mod advance;
mod disturb;
mod inspect;

pub(crate) use advance::Step;

use crate::burn::energy::{DeviceEnergy, add, take, take1, total};
use crate::burn::network::Theta;
use crate::burn::noise::Source;
use crate::burn::transfer::{Trouble, indices, numbers, rows, vector};
use burn_tensor::{Device, Int, Tensor};
use jarz::random::Subset;
use jarz::weights::WeightSums;
use jarz::{Kernel, KernelKind, Purpose, Scheme, Walkers};

/// The ensemble.
pub(crate) struct Ensemble {
    x: Tensor<2>,
    f: Tensor<1>,
    /// Kept where the next step can use it: for ULA with all walkers moving.
    g: Option<Tensor<2>>,
    /// Log-weights; their mean weight is one after every advance, what was taken off is in `book.log_z`.
    a: Tensor<1>,
    /// Ancestry and `log Z`; its positions are not those of the walkers.
    pub book: Walkers<f32>,
    pub kernel: Kernel,
    scheme: Scheme,
    batch: Option<usize>,
    noise: Source,
    subset: Subset,
    /// Weighted mean of `dU/dtheta`; none for walkers that only watch.
    pub gradient: Option<Tensor<1>>,
    drives: bool,
    /// Of the weights alone.
    pub sums: WeightSums,
}

/// What goes into an ensemble besides the walkers.
pub(crate) struct Settings {
    pub kernel: Kernel,
    pub scheme: Scheme,
    pub batch: Option<usize>,
    pub noise: Source,
    /// Whether the parameters follow from them.
    pub drives: bool,
}

/// Where the walkers are found when those of `members` were put, changed, behind the ensemble.
fn places(n: usize, members: &[u64], device: &Device) -> Tensor<1, Int> {
    let mut places: Vec<u64> = (0..n as u64).collect();
    members.iter().zip(n as u64..).for_each(|(&member, place)| places[member as usize] = place);
    indices(places.into_iter(), device)
}

/// What is known of an advance before its sums are brought over.
struct Arrived {
    accepted: Tensor<1>,
    tried: usize,
    /// `sum exp(A) dU/dtheta`.
    gradient: Option<Tensor<1>>,
}

impl Ensemble {
    pub fn new(
        walkers: Walkers<f32>,
        energy: &DeviceEnergy,
        theta: &Theta,
        settings: Settings,
    ) -> Result<Self, Trouble> {
        let Settings { kernel, scheme, batch, noise, drives } = settings;
        let n = walkers.len();
        let device = &energy.device;
        let x = rows(walkers.positions, walkers.dim, device);
        let mut book = Walkers::new(1, vec![0.0; n], walkers.log_z);
        (book.ancestors, book.resamplings) = (walkers.ancestors, walkers.resamplings);
        let mut ensemble = Ensemble {
            f: Tensor::zeros([n], device),
            g: None,
            a: vector(walkers.log_weights.iter().map(|a| *a as f32), device),
            x,
            book,
            kernel,
            scheme,
            batch: batch.filter(|&b| b < n),
            noise,
            subset: Subset::default(),
            gradient: None,
            drives,
            sums: WeightSums::new(0),
        };
        let arrived = ensemble.evaluate(energy, theta);
        ensemble.settle(arrived, false)?;
        Ok(ensemble)
    }

    /// Energies, gradients and sums at the present positions.
    fn evaluate(&mut self, energy: &DeviceEnergy, theta: &Theta) -> Arrived {
        let keeps = self.kernel.kind == KernelKind::Ula && self.batch.is_none();
        let (mut f, mut g, mut gradient) = (Vec::new(), Vec::new(), None);
        for rows in energy.blocks(self.book.len()) {
            let x = take(&self.x, &rows);
            let weights = take1(&self.a, &rows).exp();
            if keeps {
                let pass = energy.pass(theta, x);
                if self.drives {
                    gradient = add(gradient, energy.network.weighted_gradient(theta, pass.deltas, weights));
                }
                f.push(pass.f);
                g.push(pass.g);
            } else if self.drives {
                let (values, sum) = energy.param_pass(theta, x, weights);
                gradient = add(gradient, sum);
                f.push(values);
            } else {
                f.push(energy.values(theta, &x));
            }
        }
        self.f = Tensor::cat(f, 0);
        self.g = keeps.then(|| Tensor::cat(g, 0));
        Arrived { accepted: Tensor::zeros([1], &energy.device), tried: 1, gradient }
    }

    /// Brings the sums over to the processor, and the mean weight back to one; gives the mean acceptance.
    fn settle(&mut self, arrived: Arrived, weighted: bool) -> Result<f64, Trouble> {
        let n = self.book.len();
        let top = self.a.clone().max();
        let log = self.a.clone() - top.clone();
        let w = log.clone().exp();
        let scalars = vec![
            top,
            total(w.clone()),
            total(w.clone().square()),
            total(w * log),
            total(self.f.clone()) + self.a.clone().min(),
            arrived.accepted,
        ];
        let scalars = numbers(Tensor::cat(scalars, 0))?;
        let [top, sum, squares, logs, check, accepted] = scalars[..] else { return Ok(f64::NAN) };
        if !(check.is_finite() && sum.is_finite() && top.is_finite()) {
            return Err(Trouble::Diverged(self.first_bad()?));
        }
        self.gradient = arrived.gradient.map(|g| g / (sum * top.exp()));
        self.sums = WeightSums {
            top,
            sum,
            sum_squares: squares,
            sum_log: logs,
            count: n as u64,
            gradient: Vec::new(),
        };
        if weighted {
            // The same single-precision number on both sides, so that nothing is lost.
            let mean = self.sums.log_mean() as f32;
            self.a = self.a.clone() - mean;
            self.sums.top -= f64::from(mean);
            self.book.log_z = self.book.log_z.map(|z| z + f64::from(mean));
        }
        Ok(accepted / arrived.tried as f64)
    }

    /// The first walker whose energy or weight is not finite.
    fn first_bad(&self) -> Result<u64, Trouble> {
        let (a, f) = (numbers(self.a.clone())?, numbers(self.f.clone())?);
        let bad = a.iter().zip(&f).position(|(a, f)| !(a.is_finite() && f.is_finite()));
        Ok(bad.unwrap_or(0) as u64)
    }

    /// Draws new walkers in proportion to the weights, which become equal; `log Z` keeps what they had to say.
    pub fn resample(&mut self, energy: &DeviceEnergy, theta: &Theta, iteration: u64) -> Result<(), Trouble> {
        let log_weights = numbers(self.a.clone())?;
        let (sums, n) = (WeightSums::of(&log_weights), self.book.len());
        let (p, random) = (sums.normalise(&log_weights), &self.noise.random);
        let ancestors = self.scheme.ancestors(&p, n, random, iteration, Purpose::Resample);
        self.book.ancestors = ancestors.iter().map(|a| self.book.ancestors[*a as usize]).collect();
        let sources = indices(ancestors.into_iter(), &energy.device);
        self.x = self.x.clone().select(0, sources.clone());
        self.f = self.f.clone().select(0, sources.clone());
        self.g = self.g.take().map(|g| g.select(0, sources));
        self.a = Tensor::zeros([n], &energy.device);
        self.book.log_z = self.book.log_z.map(|z| z + sums.log_mean());
        self.book.resamplings += 1;
        let mut gradient = None;
        if self.drives {
            for rows in energy.blocks(n) {
                let ones = Tensor::ones([rows.len()], &energy.device);
                gradient = add(gradient, energy.param_pass(theta, take(&self.x, &rows), ones).1);
            }
        }
        self.settle(Arrived { accepted: Tensor::zeros([1], &energy.device), tried: 1, gradient }, false)?;
        Ok(())
    }
}
