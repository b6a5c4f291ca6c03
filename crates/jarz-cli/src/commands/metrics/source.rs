//! Where samples come from: files, folders, runs, data sets known by name.

use crate::error::CliError;
use crate::ui::Ui;
use jarz_data::{
    Images, KNOWN_SETS, KnownSet, Part, Preparation, ReadOptions, cache_folder, read_png_folder, read_table,
};
use jarz_run::SampleRequest;
use std::path::Path;

/// Samples, as images, points or features.
pub struct Source {
    /// As the user wrote it.
    pub name: String,
    /// Numbers per sample.
    pub dim: usize,
    /// Row-major.
    pub values: Vec<f64>,
    pub log_weights: Option<Vec<f64>>,
    /// Height, width and channels, where they are known.
    pub shape: Option<[usize; 3]>,
    /// Whether these are features already.
    pub features: bool,
}

impl Source {
    /// Reads a source: `features:FILE`, a file of points, a run, a folder that 'jarz sample' wrote, a folder of PNG images, or the name of a data set, with
    /// `:test` for the part that is for tests.
    pub fn read(name: &str, ui: &Ui) -> Result<Self, CliError> {
        let path = Path::new(name);
        if let Some(file) = name.strip_prefix("features:") {
            return Ok(Source { features: true, ..Source::file(name, Path::new(file))? });
        }
        if path.is_file() {
            return Source::file(name, path);
        }
        let samples =
            [path.to_path_buf(), path.join("samples")].into_iter().find(|p| p.join("weighted.npy").is_file());
        if let Some(folder) = samples {
            let mut source = Source::file(name, &folder.join("weighted.npy"))?;
            source.log_weights = Some(read_log_weights(&folder.join("log_weights.npy"))?);
            return Ok(source);
        }
        if jarz_run::is_run(path) {
            return Source::run(name, path, ui);
        }
        if path.is_dir() {
            return Source::images(name, &read_png_folder(path)?);
        }
        Source::images(name, &Source::known(name)?)
    }

    fn known(name: &str) -> Result<Images, CliError> {
        let (set, part) = match name.split_once(':') {
            Some((set, "test")) => (set, Part::Test),
            Some((set, "train")) => (set, Part::Train),
            _ => (name, Part::Train),
        };
        if set == "digits" {
            return Ok(jarz_data::digits()?);
        }
        let Some(known) = KnownSet::by_name(set) else {
            let names: Vec<&str> = KNOWN_SETS.iter().map(|set| set.name).collect();
            return Err(CliError::Message(format!(
                "'{name}' is no file, no folder and no data set: give a .npy, .npz or CSV file, a run, a folder of samples or of PNG images, or one of digits, {} (with :test for its other part)",
                names.join(", ")
            )));
        };
        Ok(known.load(part, &cache_folder()?)?)
    }

    fn file(name: &str, path: &Path) -> Result<Self, CliError> {
        let table = read_table(path, &ReadOptions::default())?;
        let (dim, values) = (table.cols, table.values);
        Ok(Source { name: name.into(), dim, values, log_weights: None, shape: None, features: false })
    }

    fn images(name: &str, images: &Images) -> Result<Self, CliError> {
        let values = images.values(&Preparation::default())?;
        let (dim, shape) = (images.dim(), Some(images.shape()));
        Ok(Source { name: name.into(), dim, values, log_weights: None, shape, features: false })
    }

    /// The walkers of a run, with their weights.
    fn run(name: &str, folder: &Path, ui: &Ui) -> Result<Self, CliError> {
        let request = SampleRequest { n: None, steps: None, seed: 1, threads: 0 };
        let samples = jarz_run::sample(folder, &request, &|text| ui.warn(text))?;
        let log_weights = samples.weighted.then_some(samples.log_weights);
        let (dim, values) = (samples.dim, samples.positions);
        Ok(Source { name: name.into(), dim, values, log_weights, shape: None, features: false })
    }

    /// How many samples.
    pub fn len(&self) -> usize {
        self.values.len() / self.dim
    }

    /// Keeps at most `most` samples, evenly spread.
    pub fn thin(&mut self, most: usize) {
        let (n, dim) = (self.len(), self.dim);
        if n <= most {
            return;
        }
        let rows: Vec<usize> = (0..most).map(|i| i * n / most).collect();
        self.values = rows.iter().flat_map(|&i| self.values[i * dim..(i + 1) * dim].to_vec()).collect();
        if let Some(logs) = &mut self.log_weights {
            *logs = rows.iter().map(|&i| logs[i]).collect();
        }
    }
}

/// Logarithms of weights, one number each.
pub fn read_log_weights(path: &Path) -> Result<Vec<f64>, CliError> {
    let table = read_table(path, &ReadOptions::default())?;
    if table.cols != 1 && table.rows != 1 {
        let text = format!(
            "'{}' holds {} x {} numbers, not one log-weight per sample",
            path.display(),
            table.rows,
            table.cols
        );
        return Err(CliError::Message(text));
    }
    Ok(table.values)
}
