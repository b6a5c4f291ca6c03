//! Nearest training images of samples: a model that has learnt images by heart puts its samples closer to them than images are that it never saw.

use super::{Judged, Kinds};
use crate::error::ExperimentError;
use jarz_data::{Images, Preparation};
use jarz_figures::{ImageGrid, Report, Section};
use serde_json::{Value, json};
use std::path::Path;

/// Samples that are looked at.
const QUERIES: usize = 60;
/// Samples that are shown, in a row.
const SHOWN: usize = 12;
/// Training images compared at a time.
const PIECE: usize = 512;

/// Some images, with the training image nearest to each and the distance to it: root mean square over the pixels.
pub(super) struct Neighbours {
    images: Vec<f32>,
    nearest: Vec<(usize, f64)>,
}

impl Neighbours {
    /// Of samples drawn from a run's walkers in proportion to their weights.
    pub fn of_walkers(kinds: &Kinds, judged: &Judged) -> Result<Self, ExperimentError> {
        let (walkers, dim) = (&judged.walkers, kinds.train.dim());
        let drawn: Vec<usize> =
            spread(walkers.ancestors.len()).map(|i| walkers.ancestors[i] as usize).collect();
        let image = |i: &usize| walkers.images[i * dim..(i + 1) * dim].iter().copied();
        Neighbours::new(&kinds.train, drawn.iter().flat_map(image).collect())
    }

    /// Of held-out images with noise as `how` says.
    pub fn of_held_out(kinds: &Kinds, how: &Preparation) -> Result<Self, ExperimentError> {
        let rows: Vec<usize> = spread(kinds.held_out.len()).collect();
        let run = |e: jarz_data::ImageError| ExperimentError::Run(e.into());
        let some = kinds.held_out.select(&rows).map_err(run)?;
        Neighbours::new(&kinds.train, some.values(how).map_err(run)?)
    }

    fn new(train: &Images, images: Vec<f32>) -> Result<Self, ExperimentError> {
        let dim = train.dim();
        let mut nearest = vec![(0, f64::INFINITY); images.len() / dim];
        for first in (0..train.len()).step_by(PIECE) {
            let rows: Vec<usize> = (first..(first + PIECE).min(train.len())).collect();
            let some = train.select(&rows).and_then(|s| s.values::<f32>(&Preparation::default()));
            let some = some.map_err(|e| ExperimentError::Run(e.into()))?;
            for (query, best) in images.chunks_exact(dim).zip(&mut nearest) {
                for (i, image) in some.chunks_exact(dim).enumerate() {
                    let distance = (square_distance(query, image) / dim as f64).sqrt();
                    if distance < best.1 {
                        *best = (first + i, distance);
                    }
                }
            }
        }
        Ok(Neighbours { images, nearest })
    }

    /// Distances in ascending order.
    fn sorted(&self) -> Vec<f64> {
        let mut all: Vec<f64> = self.nearest.iter().map(|n| n.1).collect();
        all.sort_by(f64::total_cmp);
        all
    }

    fn median(&self) -> f64 {
        let all = self.sorted();
        all[all.len() / 2]
    }

    fn smallest(&self) -> f64 {
        self.sorted()[0]
    }

    /// For machines.
    pub fn summary(&self) -> Value {
        json!({"median": self.median(), "smallest": self.smallest(), "samples": self.nearest.len()})
    }

    /// Samples, and below each its nearest training image.
    fn grid(&self, train: &Images) -> Result<ImageGrid, ExperimentError> {
        let (dim, shown) = (train.dim(), SHOWN.min(self.nearest.len()));
        let rows: Vec<usize> = self.nearest[..shown].iter().map(|n| n.0).collect();
        let nearest = train.select(&rows).and_then(|s| s.values::<f32>(&Preparation::default()));
        let mut values = self.images[..shown * dim].to_vec();
        values.extend(nearest.map_err(|e| ExperimentError::Run(e.into()))?);
        let texts = (0..2 * shown).map(|i| match i.checked_sub(shown) {
            None => String::new(),
            Some(i) => format!("{:.2}", self.nearest[i].1),
        });
        Ok(ImageGrid::new(train.shape(), &values)?.grid(2, shown).captions(texts)?)
    }
}

/// Evenly spread places among `n`.
fn spread(n: usize) -> impl Iterator<Item = usize> {
    let count = QUERIES.min(n);
    (0..count).map(move |i| i * n / count)
}

/// `|a - b|^2`, in lanes that the compiler can put side by side.
fn square_distance(a: &[f32], b: &[f32]) -> f64 {
    const LANES: usize = 16;
    let mut sums = [0.0f32; LANES];
    let (head, tail) = (a.chunks_exact(LANES).zip(b.chunks_exact(LANES)), a.len() / LANES * LANES);
    for (a, b) in head {
        for k in 0..LANES {
            sums[k] += (a[k] - b[k]) * (a[k] - b[k]);
        }
    }
    let rest: f32 = a[tail..].iter().zip(&b[tail..]).map(|(a, b)| (a - b) * (a - b)).sum();
    f64::from(sums.iter().sum::<f32>() + rest)
}

/// The section of the page.
pub(super) fn section(
    mut report: Report,
    figures: &Path,
    kinds: &Kinds,
    judged: &[Judged],
    all: &[Neighbours],
    held_out: &Neighbours,
) -> Result<Report, ExperimentError> {
    report = report.heading("Nearest training images").text(
        "Samples, and below each the training image that is nearest to it. A model that has learnt images by heart puts its samples closer to them than \
         images are that it never saw.",
    );
    let row = |name: String, n: &Neighbours| {
        vec![name, format!("{:.3}", n.median()), format!("{:.3}", n.smallest())]
    };
    let mut rows = vec![row("held-out images".into(), held_out)];
    rows.extend(judged.iter().zip(all).map(|(j, n)| row(format!("{}: {}", j.label, j.ensemble), n)));
    let headers = ["", "median distance", "smallest"].map(String::from).to_vec();
    let caption = format!(
        "Distance to the nearest of {} training images without noise: root mean square over the pixels, whose values run from -1 to 1. {} images of each, \
         with the noise of the run.",
        kinds.train.len(),
        held_out.nearest.len()
    );
    report = report.section(Section::Table { caption, headers, rows });
    for (i, (j, neighbours)) in judged.iter().zip(all).enumerate() {
        let grid = neighbours.grid(&kinds.train)?;
        grid.save(figures, &format!("neighbours-{}", i + 1))?;
        report =
            report.images(format!("{}: {} and their nearest training images", j.label, j.ensemble), &grid)?;
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_that_was_learnt_by_heart_is_found() {
        let digits = jarz_data::digits().unwrap();
        let exact = digits.select(&[700, 3]).unwrap().values::<f32>(&Preparation::default()).unwrap();
        let mut noisy = exact.clone();
        noisy.iter_mut().enumerate().for_each(|(i, v)| *v += if i % 2 == 0 { 0.1 } else { -0.1 });
        let found = Neighbours::new(&digits, [exact, noisy].concat()).unwrap();
        assert_eq!(found.nearest.iter().map(|n| n.0).collect::<Vec<_>>(), [700, 3, 700, 3]);
        assert_eq!(found.smallest(), 0.0);
        assert!(found.nearest[2..].iter().all(|n| (n.1 - 0.1).abs() < 1e-6));
    }
}
