//! A device as the engine of runs.

use crate::burn::device::{Opened, open};
use crate::burn::trainer::DeviceTrainer;
use crate::error::Error;
use crate::names::Name;
use crate::names::Noise;
use jarz::{Setup, Training};
use jarz_net::{BaseKind, NetEnergy};
use jarz_run::config::{
    AlgorithmKind, KernelName, ModelConfig, OptimizerName, Precision, SelfInteractionKind,
};
use jarz_run::{Config, Engine, RunError};

/// Trains on a device.
#[derive(Debug)]
pub struct DeviceEngine {
    opened: Opened,
    noise: Noise,
}

impl DeviceEngine {
    /// Opens a device.
    pub fn open(name: Name, noise: Noise) -> Result<Self, Error> {
        Ok(DeviceEngine { opened: open(name)?, noise })
    }

    /// A trainer whose walkers are on the device.
    pub fn trainer(&self, setup: Setup<f32, NetEnergy<f32>>) -> Result<DeviceTrainer, RunError> {
        self.check_sizes(&setup)?;
        DeviceTrainer::new(setup, &self.opened, self.noise).map_err(RunError::from)
    }

    /// Compares the largest arrays with what the device allows.
    fn check_sizes(&self, setup: &Setup<f32, NetEnergy<f32>>) -> Result<(), Error> {
        let Some(limit) = self.opened.largest else { return Ok(()) };
        let dim = setup.data.dim();
        let (walkers, fewer) =
            (setup.walkers.max(setup.witnesses), "take fewer walkers (walkers.count, walkers.witnesses)");
        // A mini-batch, and walkers that are augmented, are put behind the ensemble before they take their places.
        let behind = if setup.disturbance.is_some() { walkers } else { setup.batch.unwrap_or(0) };
        let rows = walkers + behind;
        let base = setup.energy.base().factor().len();
        let arrays = [
            (format!("the position of {walkers} walkers in {dim} dimensions"), rows * dim, fewer),
            ("the covariance of the base".to_string(), base, "take model.base = \"diagonal\""),
            ("the network".to_string(), setup.optimizer.rates().len(), "take a smaller network"),
        ];
        for (what, numbers, instead) in arrays {
            let bytes = (numbers * size_of::<f32>()) as u64;
            if bytes > limit {
                let mib = |bytes: u64| bytes as f64 / (1u64 << 20) as f64;
                return Err(Error::TooLarge { what, needed: mib(bytes), limit: mib(limit), instead });
            }
        }
        Ok(())
    }
}

impl Engine for DeviceEngine {
    fn check(&self, config: &Config) -> Result<(), RunError> {
        let refuse = |key, value: &str, instead| {
            Err(Error::Unsupported { key, value: format!("\"{value}\""), instead }.into())
        };
        match &config.model {
            ModelConfig::Network(_) => {}
            ModelConfig::Mixture { .. } => {
                return refuse("model.kind", "mixture", "take a network (model.kind = \"network\")");
            }
            ModelConfig::Gaussian { .. } => {
                return refuse("model.kind", "gaussian", "take a network (model.kind = \"network\")");
            }
        }
        if config.precision == Precision::F64 {
            return refuse("precision", "f64", "say precision = \"f32\" (or --set precision=f32)");
        }
        if config.kernel.kind == KernelName::Ghmc {
            return refuse("kernel.kind", "ghmc", "take \"mala\"");
        }
        if config.optimizer.kind == OptimizerName::Natural {
            return refuse("optimizer.kind", "natural", "take \"adam\"");
        }
        if let Some(delay) = config.optimizer.delay {
            return refuse("optimizer.delay", &delay.to_string(), "leave it out");
        }
        if let ModelConfig::Network(network) = &config.model
            && let BaseKind::Mixture(count) = network.base
        {
            return refuse("model.base", &format!("{{ mixture = {count} }}"), "take \"full\"");
        }
        if config.optimizer.settle.is_some() {
            return refuse("optimizer.settle", "{ ... }", "leave it out");
        }
        if config.walkers.relay.is_some() {
            return refuse("walkers.relay", "{ ... }", "leave it out");
        }
        if config.algorithm.kind == AlgorithmKind::JarzynskiContinuous {
            return refuse("algorithm.kind", "jarzynski-continuous", "take \"jarzynski\"");
        }
        if config.algorithm.self_interaction == Some(SelfInteractionKind::LeaveOneOut) {
            return refuse(
                "algorithm.self_interaction",
                "leave-one-out",
                "say \"none\", and judge by walkers.witnesses",
            );
        }
        Ok(())
    }

    fn start(&self, setup: Setup<f32, NetEnergy<f32>>) -> Result<Box<dyn Training<f32>>, RunError> {
        Ok(Box::new(self.trainer(setup)?))
    }
}
