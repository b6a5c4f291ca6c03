//! Initial parameters.

use crate::architecture::Architecture;
use crate::error::Error;
use jarz::{Purpose, Random};

/// PyTorch's default: weights and biases uniform within `1 / sqrt(fan in)`. Layers are numbered in their order, so that the numbers of one do
/// not depend on the sizes of others.
pub fn initial_params(architecture: &Architecture, seed: u64) -> Result<Vec<f64>, Error> {
    let random = Random::new(seed);
    let mut params = Vec::new();
    for (i, w) in architecture.weights()?.iter().enumerate() {
        let bound = 1.0 / (w.fan_in() as f64).sqrt();
        let mut uniforms = vec![0.0; w.count() + w.outputs];
        random.uniforms(i as u64, 0, Purpose::Parameters, &mut uniforms);
        params.extend(uniforms.iter().map(|u| bound * (2.0 * u - 1.0)));
    }
    Ok(params)
}
