//! Images and networks of a configuration: what is loaded, the base fitted to it, and the energy on top.

use crate::config::{Config, DataConfig, ImagesConfig, NetworkConfig};
use crate::error::RunError;
use crate::problem::load_data;
use crate::state::Scalar;
use jarz::{Dataset, Energy, Real};
use jarz_data::{Images, KnownSet, Part, Preparation, cache_folder, read_png_folder};
use jarz_net::{Architecture, Base, BaseKind, NetEnergy};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;

/// Images as a configuration wants them, without noise.
pub fn load_images(config: &ImagesConfig, part: Part) -> Result<Images, RunError> {
    let images = match config.set.as_str() {
        "digits" => jarz_data::digits()?,
        name => match KnownSet::by_name(name) {
            Some(known) => known.load(part, &cache_folder()?)?,
            None => read_png_folder(&config.set)?,
        },
    };
    match (part, config.labels.is_empty(), config.set.as_str()) {
        (Part::Train, true, _) => Ok(images),
        (Part::Train, false, _) => Ok(images.subset(&config.labels)?),
        // What training left of the same labels; other sets have a part of their own for tests.
        (Part::Test, false, "digits") => Ok(images.subset_and_rest(&config.labels)?.1),
        (Part::Test, false, _) => {
            let counts = images.label_counts();
            let wanted: Vec<(u8, usize)> = config
                .labels
                .iter()
                .map(|(l, _)| (*l, counts.get(*l as usize).copied().unwrap_or(0)))
                .collect();
            Ok(images.subset(&wanted)?)
        }
        (Part::Test, true, _) => Ok(images),
    }
}

/// How the images of a run are prepared; copy `copy` of them.
pub fn preparation(config: &ImagesConfig, seed: u64, copy: u64) -> Preparation {
    Preparation {
        dequantise: config.dequantise,
        noise: config.noise,
        seed: config.seed.unwrap_or(seed),
        draw: copy,
    }
}

/// The images of a set, as often as the configuration says, each time with noise of its own.
pub(crate) fn noisy_copies<T: Real>(
    set: &Images,
    config: &ImagesConfig,
    seed: u64,
) -> Result<Vec<T>, RunError> {
    let count = set.len() * config.copies;
    if let Some(batch) = config.batch
        && batch > count
    {
        return Err(RunError::Impossible(format!("data.batch = {batch}: there are only {count} images")));
    }
    let mut values = Vec::new();
    for copy in 0..config.copies as u64 {
        values.extend(set.values::<T>(&preparation(config, seed, copy))?);
    }
    Ok(values)
}

/// The network's architecture for images (or points) of a shape.
pub fn architecture(config: &NetworkConfig, input: [usize; 3]) -> Result<Architecture, RunError> {
    let architecture = match config.network.as_deref() {
        Some("mnist") => Architecture::mnist(),
        Some(_) => Architecture::cifar(config.width.unwrap_or(32)),
        None => Architecture { input, layers: config.layers.clone() },
    };
    if architecture.input != input {
        let [h, w, c] = architecture.input;
        return Err(RunError::Impossible(format!(
            "model.network takes images of {h} x {w} with {c} channel(s), but the data has {} x {} with {}",
            input[0], input[1], input[2]
        )));
    }
    Ok(architecture)
}

/// A network with its base, the data in the walkers' coordinates, and the shape of a data point.
type Networked<T> = (NetEnergy<T>, Dataset<T>, [usize; 3]);

/// The network of a configuration, and its data.
pub(crate) fn network_and_data<T: Scalar>(
    config: &Config,
    network: &NetworkConfig,
) -> Result<Networked<T>, RunError> {
    let (shape, base, mut rows) = match &config.data {
        DataConfig::Images(images) => {
            let set = load_images(images, Part::Train)?;
            let base = fitted_base(&set, images, network.base)?;
            (set.shape(), base, noisy_copies::<T>(&set, images, config.seed)?)
        }
        _ => {
            let (data, _) = load_data::<T>(config)?;
            let clean: Vec<f64> = data.values().iter().map(|v| v.to_f64()).collect();
            let base = Base::fit(&clean, data.dim(), 0.0, network.base)?;
            ([1, 1, data.dim()], base, data.values().to_vec())
        }
    };
    let dim = shape.iter().product();
    let energy = NetEnergy::new(&architecture(network, shape)?, base, config.seed)?;
    if let Some(coordinates) = energy.coordinates() {
        let mut z = vec![T::ZERO; rows.len().min(1024 * dim)];
        for x in rows.chunks_mut(1024 * dim) {
            coordinates.to_walkers(x, &mut z[..x.len()]);
            x.copy_from_slice(&z[..x.len()]);
        }
    }
    let data = Dataset::new(dim, rows)
        .ok_or_else(|| RunError::Impossible("the data has values that are not finite".into()))?;
    Ok((energy, data, shape))
}

/// What a fitted base depends on: a hash of the images, the noise and the kind.
type FittedTo = (u64, u64, BaseKind);

/// The base fitted last. The runs of an experiment share their images, and fitting a covariance in thousands of dimensions takes most of a minute.
static FITTED: Mutex<Option<(FittedTo, Base)>> = Mutex::new(None);

/// The base of images, fitted to them without their noise, whose variance is known.
fn fitted_base(set: &Images, images: &ImagesConfig, kind: BaseKind) -> Result<Base, RunError> {
    let level = preparation(images, 0, 0).level_width(set);
    let dequantised = if images.dequantise { level * level / 12.0 } else { 0.0 };
    let noise = (images.noise * images.noise + dequantised).sqrt();
    let mut hasher = DefaultHasher::new();
    (set.shape(), set.levels(), set.pixels()).hash(&mut hasher);
    let key = (hasher.finish(), noise.to_bits(), kind);
    // Held while fitting, so that runs side by side do it once.
    let mut fitted = FITTED.lock().unwrap_or_else(|e| e.into_inner());
    match &*fitted {
        Some((to, base)) if *to == key => Ok(base.clone()),
        _ => {
            let clean = set.values::<f64>(&Preparation::default())?;
            let base = Base::fit(&clean, set.dim(), noise, kind)?;
            *fitted = Some((key, base.clone()));
            Ok(base)
        }
    }
}
