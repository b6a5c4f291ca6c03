//! Draws grids of the embedded digits and of every data set in the cache, and a page with all of them:
//! `cargo run -p jarz-figures --example images -- FOLDER`.

use jarz_data::{Images, KNOWN_SETS, Part, Preparation, cache_folder, digits};
use jarz_figures::{ImageGrid, Order, Report};
use std::error::Error;
use std::path::PathBuf;

/// The first so many images, in `[-1, 1]`.
fn first(images: &Images, count: usize) -> Result<(Images, Vec<f32>), Box<dyn Error>> {
    let images = images.select(&(0..count).collect::<Vec<_>>())?;
    let values = images.values(&Preparation::default())?;
    Ok((images, values))
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or("images".into()));
    let mut page = Report::new("Images");
    let (some, values) = first(&digits()?, 60)?;
    // Weights as walkers might have them: log-normal, with a spread of one.
    let weights: Vec<f64> = (0..60).map(|i| ((i as f64 * 2.4).sin() * 1.4).exp()).collect();
    let plain = ImageGrid::new(some.shape(), &values)?.grid(3, 20);
    let weighted = plain.clone().weights(&weights)?.weight_captions().grid(4, 12).order(Order::WeightSpread);
    for (name, grid) in [("digits", plain), ("digits-by-weight", weighted)] {
        grid.save(&folder, name)?;
        page = page.images(name, &grid)?;
    }
    for set in KNOWN_SETS {
        let Ok(images) = set.load(Part::Test, &cache_folder()?) else { continue };
        let (some, values) = first(&images, 40)?;
        let names =
            some.labels().unwrap_or_default().iter().map(|&l| some.label_names()[usize::from(l)].clone());
        let grid = ImageGrid::new(some.shape(), &values)?.grid(4, 10).captions(names)?;
        grid.save(&folder, set.name)?;
        page = page.images(set.title, &grid)?;
    }
    page.save(&folder, "images")?;
    println!("wrote pictures and images.html into '{}'", folder.display());
    Ok(())
}
