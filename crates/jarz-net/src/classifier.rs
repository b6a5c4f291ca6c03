//! A classifier on the same engine: one output per class, soft-max, cross-entropy.

use crate::architecture::Architecture;
use crate::error::Error;
use crate::init::initial_params;
use crate::network::{Network, Workspace};
use crate::plan::check_classifier;
use jarz::{Optimizer, Purpose, Random, Real, Rule};

/// A network that tells classes apart.
#[derive(Clone, Debug)]
pub struct Classifier<T> {
    network: Network<T>,
    classes: usize,
}

/// How a classifier is trained: Adam on batches drawn without replacement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Training {
    /// Passes over the data.
    pub epochs: usize,
    /// Images per step.
    pub batch: usize,
    /// Learning rate.
    pub rate: f64,
    /// Images get Gaussian noise whose standard deviation is uniform up to this, so that what is not quite clean is recognised, too.
    pub noise: f64,
    /// Seed of the order and the noise.
    pub seed: u64,
}

impl Default for Training {
    fn default() -> Self {
        Training { epochs: 4, batch: 128, rate: 1e-3, noise: 0.0, seed: 1 }
    }
}

impl<T: Real> Classifier<T> {
    /// With random weights.
    pub fn new(architecture: &Architecture, seed: u64) -> Result<Self, Error> {
        Self::with_params(architecture, &initial_params(architecture, seed)?)
    }

    /// With given weights.
    pub fn with_params(architecture: &Architecture, params: &[f64]) -> Result<Self, Error> {
        let classes = check_classifier(architecture)?;
        let mut network = Network::new(architecture)?;
        if params.len() != network.params().len() {
            let needed = network.params().len();
            return Err(Error::Data(format!("{} parameters for a network that has {needed}", params.len())));
        }
        network.set_params(params);
        Ok(Classifier { network, classes })
    }

    /// A small network for images: two convolutions of stride 2 and two linear layers.
    pub fn for_images(input: [usize; 3], classes: usize, seed: u64) -> Result<Self, Error> {
        use crate::architecture::Layer::{Conv2d, Flatten, Linear, Silu};
        let conv = |channels| Conv2d { channels, kernel: 3, stride: 2, padding: 1 };
        let layers = vec![
            conv(16),
            Silu,
            conv(32),
            Silu,
            Flatten,
            Linear { features: 64 },
            Silu,
            Linear { features: classes },
        ];
        Self::new(&Architecture { input, layers }, seed)
    }

    /// The network.
    pub fn network(&self) -> &Network<T> {
        &self.network
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.classes
    }

    fn check(&self, x: &[T], labels: &[usize]) -> Result<(), Error> {
        let dim = self.network.inputs();
        if labels.is_empty() || x.len() != labels.len() * dim {
            return Err(Error::Data(format!(
                "{} labels need as many rows of {dim} numbers, at least one; there are {} numbers",
                labels.len(),
                x.len()
            )));
        }
        match labels.iter().find(|l| **l >= self.classes) {
            Some(label) => {
                Err(Error::Data(format!("label {label} is not below the {} classes", self.classes)))
            }
            None => Ok(()),
        }
    }

    /// Trains on rows of images; gives the mean loss of every epoch, in nats.
    pub fn train(&mut self, x: &[T], labels: &[usize], how: Training) -> Result<Vec<f64>, Error> {
        self.check(x, labels)?;
        if how.batch == 0
            || !(how.rate > 0.0 && how.rate.is_finite())
            || !(how.noise >= 0.0 && how.noise.is_finite())
        {
            return Err(Error::Data(
                "training needs batches of at least one, a positive rate and noise of at least 0".into(),
            ));
        }
        let (dim, n) = (self.network.inputs(), labels.len());
        let mut theta = self.network.params().to_vec();
        let mut optimizer = Optimizer::new(Rule::ADAM, vec![how.rate; theta.len()]);
        let mut step = Step::new(theta.len(), Random::new(how.seed), how.noise);
        let mut iteration = 0;
        let mut losses = Vec::new();
        for epoch in 0..how.epochs as u64 {
            let mut loss = 0.0;
            for batch in order(n, epoch, &step.random).chunks(how.batch) {
                step.fill(x, labels, batch, dim, epoch);
                loss += step.direction(self);
                optimizer.step(iteration, &step.direction, &mut theta, &mut step.response);
                self.network.set_params(&theta);
                iteration += 1;
            }
            losses.push(loss / n as f64);
        }
        match losses.last() {
            Some(loss) if !loss.is_finite() => {
                Err(Error::Data("the classifier diverged: take a smaller learning rate".into()))
            }
            _ => Ok(losses),
        }
    }

    /// Probabilities of the classes, `classes` numbers per row.
    pub fn probabilities(&self, x: &[T]) -> Vec<f64> {
        let n = x.len() / self.network.inputs();
        let mut out = vec![T::ZERO; n * self.classes];
        let rows = self.network.block();
        let mut workspace = Workspace::default();
        for (x, out) in x.chunks(rows * self.network.inputs()).zip(out.chunks_mut(rows * self.classes)) {
            self.network.forward(x, out, &mut workspace);
        }
        out.chunks_exact(self.classes).flat_map(soft_max).collect()
    }

    /// Share of rows whose likeliest class is the right one.
    pub fn accuracy(&self, x: &[T], labels: &[usize]) -> Result<f64, Error> {
        self.check(x, labels)?;
        let probabilities = self.probabilities(x);
        let right = probabilities.chunks_exact(self.classes).zip(labels).filter(|(p, label)| {
            let best = (0..p.len()).max_by(|a, b| p[*a].total_cmp(&p[*b]));
            best == Some(**label)
        });
        Ok(right.count() as f64 / labels.len() as f64)
    }
}

fn soft_max<T: Real>(row: &[T]) -> Vec<f64> {
    let top = row.iter().fold(f64::NEG_INFINITY, |top, v| top.max(v.to_f64()));
    let e: Vec<f64> = row.iter().map(|v| (v.to_f64() - top).exp()).collect();
    let total: f64 = e.iter().sum();
    e.iter().map(|e| e / total).collect()
}

/// A random order of the rows (Fisher and Yates).
fn order(n: usize, epoch: u64, random: &Random) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    for i in (1..n).rev() {
        order.swap(i, random.below(epoch, i as u64, Purpose::DataBatch, i as u64 + 1) as usize);
    }
    order
}

/// Memory of a training step.
struct Step<T> {
    random: Random,
    noise: f64,
    x: Vec<T>,
    labels: Vec<usize>,
    out: Vec<T>,
    direction: Vec<f64>,
    response: Vec<f64>,
    workspace: Workspace<T>,
}

impl<T: Real> Step<T> {
    fn new(params: usize, random: Random, noise: f64) -> Self {
        Step {
            random,
            noise,
            x: Vec::new(),
            labels: Vec::new(),
            out: Vec::new(),
            direction: vec![0.0; params],
            response: vec![0.0; params],
            workspace: Workspace::default(),
        }
    }

    /// The rows of a batch, with their noise.
    fn fill(&mut self, x: &[T], labels: &[usize], batch: &[usize], dim: usize, epoch: u64) {
        self.x.clear();
        self.labels.clear();
        let mut normals = vec![T::ZERO; dim];
        for &i in batch {
            self.labels.push(labels[i]);
            let row = &x[i * dim..(i + 1) * dim];
            if self.noise == 0.0 {
                self.x.extend_from_slice(row);
                continue;
            }
            let level = T::from_f64(self.noise * self.random.uniform(epoch, i as u64, Purpose::DataMode));
            self.random.normals(epoch, i as u64, Purpose::Data, &mut normals);
            self.x.extend(row.iter().zip(&normals).map(|(x, n)| level.mul_add(*n, *x)));
        }
    }

    /// The direction of descent of the batch's mean loss; gives the sum of losses.
    fn direction(&mut self, classifier: &Classifier<T>) -> f64 {
        let (network, classes) = (&classifier.network, classifier.classes);
        let (dim, rows) = (network.inputs(), network.block());
        self.direction.fill(0.0);
        self.out.resize(rows * classes, T::ZERO);
        let mut loss = 0.0;
        for (x, labels) in self.x.chunks(rows * dim).zip(self.labels.chunks(rows)) {
            let out = &mut self.out[..labels.len() * classes];
            network.forward(x, out, &mut self.workspace);
            for (row, &label) in out.chunks_exact_mut(classes).zip(labels) {
                let p = soft_max(row);
                loss -= p[label].max(f64::MIN_POSITIVE).ln();
                for (k, (out, p)) in row.iter_mut().zip(p).enumerate() {
                    *out = T::from_f64(p - if k == label { 1.0 } else { 0.0 });
                }
            }
            network.backward_to_params(out, &mut self.workspace);
            let weights = vec![-1.0 / self.labels.len() as f64; labels.len()];
            network.add_param_gradient(&weights, &mut self.direction, &mut self.workspace);
        }
        loss
    }
}
