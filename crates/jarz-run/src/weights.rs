//! The weights of a run's network as a file of their own, and other weights for the same network.

use crate::config::{Config, ModelConfig};
use crate::error::RunError;
use crate::folder::read_config;
use crate::network::network_and_data;
use crate::sample::{TrainedJob, trained};
use crate::state::Scalar;
use jarz::{Energy, Kernel, Scheme, Trainer};
use jarz_net::{Architecture, Base, Saved};
use std::path::Path;

/// Writes the model of a run, architecture and base measure with it, as safetensors with PyTorch's names; the architecture goes beside it as TOML. Says how many parameters
/// there are.
pub fn export(folder: &Path, to: &Path, warn: &dyn Fn(&str)) -> Result<usize, RunError> {
    let config = read_config(folder)?;
    // Whether there are weights to be written shows before data are read.
    network_of(&config)?;
    let params = trained(folder, Params, warn)?;
    let (architecture, base) = parts(&config)?;
    let count = params.len();
    Saved { architecture, params, base: Some(base) }.write(to)?;
    Ok(count)
}

/// The parameters that a weight file has for the network of a configuration.
pub(crate) fn read_weights(config: &Config, path: &Path) -> Result<Vec<f64>, RunError> {
    network_of(config)?;
    let (architecture, base) = parts(config)?;
    Ok(Saved::read_onto(path, &architecture, &base)?)
}

fn network_of(config: &Config) -> Result<&crate::config::NetworkConfig, RunError> {
    match &config.model {
        ModelConfig::Network(network) => Ok(network),
        _ => Err(RunError::Impossible(
            "only networks have weight files, and the model of this run is none: its parameters are in summary.json and checkpoints/".into(),
        )),
    }
}

fn parts(config: &Config) -> Result<(Architecture, Base), RunError> {
    let (energy, _, _) = network_and_data::<f32>(config, network_of(config)?)?;
    Ok((energy.network().architecture().clone(), energy.base().clone()))
}

/// The parameters of the trained model.
struct Params;

impl TrainedJob for Params {
    type Output = Vec<f64>;
    fn run<T: Scalar, E: Energy<T>>(
        self,
        trainer: Trainer<T, E>,
        _: Kernel,
        _: Scheme,
    ) -> Result<Vec<f64>, RunError> {
        Ok(trainer.energy().params().to_vec())
    }
}
