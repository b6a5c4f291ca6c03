//! Configurations small enough for a software device.

use jarz_burn::{DeviceEngine, Name, Noise};
use jarz_run::Config;

/// The device that tests run on: that of the variable `JARZ_TEST_DEVICE`, or the software one.
pub fn name() -> Name {
    let name = std::env::var("JARZ_TEST_DEVICE").unwrap_or_else(|_| "wgpu:software".into());
    name.parse().unwrap()
}

pub fn engine(noise: Noise) -> DeviceEngine {
    DeviceEngine::open(name(), noise).unwrap()
}

/// Digits of 8 x 8 pixels and a small network.
pub const DIGITS: &str = r#"
    seed = 3
    precision = "f32"
    [data]
    kind = "images"
    set = "digits"
    labels = [[0, 40], [1, 20]]
    noise = 0.15
    [model]
    kind = "network"
    base = "full"
    layers = [
        { type = "conv2d", channels = 4, kernel = 3, stride = 2, padding = 1 },
        { type = "silu" },
        { type = "flatten" },
        { type = "linear", features = 8 },
        { type = "leaky_relu" },
        { type = "linear", features = 1 },
    ]
    [walkers]
    count = 96
    [kernel]
    step_size = 0.05
    [run]
    iterations = 12
    log_every = 4
"#;

/// [`DIGITS`] with changes.
pub fn config(changes: &[&str]) -> Config {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("digits.toml");
    std::fs::write(&file, DIGITS).unwrap();
    let changes: Vec<String> = changes.iter().map(|c| c.to_string()).collect();
    let config = Config::load(&file, &changes).unwrap();
    config.check().unwrap();
    config
}
