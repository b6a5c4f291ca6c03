//! `jarz metrics`: distances between samples and a reference.

mod source;

use super::print_json;
use crate::args::{MetricsArgs, RangeArg};
use crate::error::CliError;
use crate::ui::{Ui, stopped};
use jarz_data::{file_sha256, write_npy_f64};
use jarz_metrics::{
    Extracted, Extractor, Features, KernelOptions, MetricsError, Range, classifier_score, frechet,
    kernel_distance,
};
use jarz_run::files::FileError;
use serde_json::{Value, json};
use source::{Source, read_log_weights};
use std::path::Path;

/// Features of an Inception-v3 network.
const INCEPTION: usize = 2048;

/// A set of samples, ready to be compared.
struct Set {
    features: Features,
    logits: Option<Features>,
}

/// Compares samples with a reference and says how far they are apart.
pub fn metrics(args: MetricsArgs, ui: &Ui) -> Result<(), CliError> {
    let mut samples = Source::read(&args.samples, ui)?;
    let mut reference = Source::read(&args.reference, ui)?;
    if let Some(file) = &args.log_weights {
        samples.log_weights = Some(read_log_weights(file)?);
    }
    samples.thin(args.most);
    reference.thin(args.most_reference);
    let shape = args.shape.as_deref().map(parse_shape).transpose()?.or(reference.shape).or(samples.shape);
    let extractor = match &args.extractor {
        Some(path) => Some((path, Extractor::load(path, args.range.into())?, file_sha256(path)?)),
        None => None,
    };
    let network = extractor.as_ref().map(|(_, network, _)| network);
    let sets = [compared(samples, shape, network, ui)?, compared(reference, shape, network, ui)?];
    let dim = sets[0].features.dim();
    if args.inception && dim != INCEPTION {
        return Err(CliError::Message(format!(
            "--inception: an Inception-v3 network gives {INCEPTION} features, but there are {dim}; without this option the distance is reported under the extractor's own name"
        )));
    }
    if let Some(folder) = &args.save_features {
        save(folder, &sets)?;
    }
    let [samples, reference] = sets;
    let distance = frechet(&samples.features.moments()?, &reference.features.moments()?)?;
    let options = KernelOptions { most: args.kernel_samples, seed: args.seed, ..KernelOptions::default() };
    let kernel = kernel_distance(&samples.features, &reference.features, options)?;
    let score = samples.logits.as_ref().map(|l| classifier_score(l, args.splits)).transpose()?;
    if distance.too_few_samples {
        ui.warn(&format!(
            "a set has no more samples than the {dim} features: Frechet distances are much too large then, and compare only with those of as many samples"
        ));
    }
    let stem = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().to_string();
    let name = extractor.as_ref().map_or("features as given".into(), |(path, _, _)| stem(path));
    let names = names(args.inception, &name);
    let about = |set: &Set| json!({"samples": set.features.len(), "effective": set.features.effective()});
    let value = json!({
        "samples": about(&samples), "reference": about(&reference),
        "extractor": {
            "name": name, "features": dim, "inception": args.inception,
            "sha256": extractor.as_ref().map(|(_, _, sha)| sha),
        },
        "frechet": {"name": names[0], "value": distance},
        "kernel": {"name": names[1], "value": kernel},
        "score": score.map(|s| json!({"name": names[2], "value": s})),
    });
    if ui.json {
        return print_json(&value);
    }
    print(&value, &args);
    Ok(())
}

/// What the three are called: the well-known names belong to Inception-v3.
fn names(inception: bool, extractor: &str) -> [String; 3] {
    match inception {
        true => ["FID", "KID", "Inception score"].map(String::from),
        false => {
            ["Frechet distance", "kernel distance", "classifier score"].map(|n| format!("{n} ({extractor})"))
        }
    }
}

fn print(value: &Value, args: &MetricsArgs) {
    let number = |path: &str| value.pointer(path).and_then(Value::as_f64).unwrap_or(f64::NAN);
    let text = |path: &str| value.pointer(path).and_then(Value::as_str).unwrap_or_default();
    for (what, path, source) in
        [("samples", "/samples", &args.samples), ("reference", "/reference", &args.reference)]
    {
        let (n, effective) = (number(&format!("{path}/samples")), number(&format!("{path}/effective")));
        let worth = if n - effective > 1e-6 * n {
            format!(", worth {effective:.1} of equal weight")
        } else {
            String::new()
        };
        println!("{what:<10} {n} of '{source}'{worth}");
    }
    if let Some(sha) = value.pointer("/extractor/sha256").and_then(Value::as_str) {
        println!(
            "extractor  {}, {} features, SHA-256 {sha}",
            text("/extractor/name"),
            number("/extractor/features")
        );
    }
    println!("{}: {:.6}", text("/frechet/name"), number("/frechet/value/distance"));
    println!(
        "  of the means {:.6}, of the covariances {:.6}",
        number("/frechet/value/of_means"),
        number("/frechet/value/of_covariances")
    );
    println!(
        "{}: {:.6} ± {:.6}",
        text("/kernel/name"),
        number("/kernel/value/distance"),
        number("/kernel/value/std_error")
    );
    if !value["score"].is_null() {
        println!(
            "{}: {:.4} over all, {:.4} with a standard deviation of {:.4} over {} parts",
            text("/score/name"),
            number("/score/value/score"),
            number("/score/value/mean_of_splits"),
            number("/score/value/deviation_of_splits"),
            number("/score/value/splits")
        );
    }
}

/// Features of a source, by the network unless they are features already.
fn compared(
    source: Source,
    shape: Option<[usize; 3]>,
    network: Option<&Extractor>,
    ui: &Ui,
) -> Result<Set, CliError> {
    let logs = source.log_weights.clone();
    let (features, logits) = match network {
        Some(network) if !source.features => {
            let Extracted { features, dim, logits } = extract(&source, shape, network, ui)?;
            (Features::new(dim, features)?, logits.map(|(dim, l)| Features::new(dim, l)).transpose()?)
        }
        _ => (Features::new(source.dim, source.values)?, None),
    };
    let weighted = |f: Features| match &logs {
        Some(logs) => f.with_log_weights(logs),
        None => Ok(f),
    };
    Ok(Set { features: weighted(features)?, logits: logits.map(weighted).transpose()? })
}

fn extract(
    source: &Source,
    shape: Option<[usize; 3]>,
    network: &Extractor,
    ui: &Ui,
) -> Result<Extracted, CliError> {
    let Some(shape) = source.shape.or(shape) else {
        return Err(CliError::Message(format!(
            "'{}' has {} numbers per sample and says nothing of their shape: give --shape, e.g. --shape 32x32x3",
            source.name, source.dim
        )));
    };
    let [h, w, c] = shape;
    if h * w * c != source.dim {
        let text = format!(
            "'{}' has {} numbers per sample, which is no image of {h}x{w}x{c}",
            source.name, source.dim
        );
        return Err(CliError::Message(text));
    }
    let images: Vec<f32> = source.values.iter().map(|v| *v as f32).collect();
    let (total, mut said) = (source.len(), 0);
    let mut progress = |done: usize| {
        if done * 10 / total > said && done < total {
            said = done * 10 / total;
            ui.say(&format!("'{}': {done} of {total} images", source.name));
        }
        !stopped()
    };
    network.extract(&images, shape, &mut progress).map_err(|e| match e {
        MetricsError::Stopped { .. } => CliError::Interrupted(e.to_string()),
        e => e.into(),
    })
}

/// `HxWxC`, three positive numbers.
fn parse_shape(text: &str) -> Result<[usize; 3], CliError> {
    let numbers: Vec<usize> =
        text.split('x').filter_map(|n| n.parse().ok().filter(|n| (1..1 << 16).contains(n))).collect();
    match numbers[..] {
        [h, w, c] if text.split('x').count() == 3 => Ok([h, w, c]),
        _ => Err(CliError::Message(format!(
            "--shape {text}: should be height, width and channels, like 32x32x3"
        ))),
    }
}

fn save(folder: &Path, sets: &[Set; 2]) -> Result<(), CliError> {
    std::fs::create_dir_all(folder).map_err(FileError::at("create the folder", folder))?;
    for (name, set) in ["samples", "reference"].iter().zip(sets) {
        for (what, features) in [("features", Some(&set.features)), ("logits", set.logits.as_ref())] {
            if let Some(f) = features {
                let rows: Vec<f64> = (0..f.len()).flat_map(|i| f.row(i).to_vec()).collect();
                write_npy_f64(folder.join(format!("{name}-{what}.npy")), &[f.len(), f.dim()], &rows)?;
            }
        }
        let logs: Vec<f64> = set.features.weights().iter().map(|w| w.ln()).collect();
        write_npy_f64(folder.join(format!("{name}-log-weights.npy")), &[logs.len()], &logs)?;
    }
    Ok(())
}

impl From<RangeArg> for Range {
    fn from(range: RangeArg) -> Self {
        match range {
            RangeArg::Symmetric => Range::Symmetric,
            RangeArg::Unit => Range::Unit,
            RangeArg::Bytes => Range::Bytes,
        }
    }
}
