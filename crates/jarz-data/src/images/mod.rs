//! Images with labels: reading them, choosing among them, bringing them to `[-1, 1]`.

mod augment;
mod bytes;
mod cifar;
mod digits;
mod error;
mod folder;
mod idx;
mod known;
mod png;
mod prepare;

pub use augment::Augmentation;
pub use cifar::{CIFAR_ROW, CIFAR10_NAMES, cifar10_rows, read_cifar10};
pub use digits::digits;
pub use error::ImageError;
pub use folder::read_png_folder;
pub use idx::{read_idx, read_idx_images};
pub use known::{CIFAR10, FASHION_MNIST, KNOWN_SETS, KnownFile, KnownSet, Layout, MNIST, Part, cache_folder};
pub use png::read_png;
pub use prepare::Preparation;

use jarz::random::Subset;
use jarz::{Purpose, Random};

/// Images of one size, pixels as whole numbers, perhaps with labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Images {
    shape: [usize; 3],
    levels: u16,
    pixels: Vec<u8>,
    labels: Option<Vec<u8>>,
    label_names: Vec<String>,
}

impl Images {
    /// Images of shape (height, width, channels), pixels channels-last, one image after the other, with 256 levels.
    pub fn new(shape: [usize; 3], pixels: Vec<u8>) -> Result<Self, ImageError> {
        let each = shape.iter().try_fold(1usize, |product, &axis| product.checked_mul(axis));
        let whole = each.is_some_and(|each| each > 0 && pixels.len().is_multiple_of(each));
        if !whole || pixels.is_empty() {
            let [h, w, c] = shape;
            let text = format!("{} pixels do not fill one or more images of {h}x{w}x{c}", pixels.len());
            return Err(ImageError::Shape(text));
        }
        Ok(Images { shape, levels: 256, pixels, labels: None, label_names: Vec::new() })
    }

    /// Adds a label per image, an index into `names`.
    pub fn with_labels(mut self, labels: Vec<u8>, names: Vec<String>) -> Result<Self, ImageError> {
        if labels.len() != self.len() {
            let text = format!("{} labels for {} images", labels.len(), self.len());
            return Err(ImageError::Shape(text));
        }
        if let Some(&label) = labels.iter().find(|&&label| usize::from(label) >= names.len()) {
            return Err(ImageError::UnknownLabel { label, classes: names.len() });
        }
        (self.labels, self.label_names) = (Some(labels), names);
        Ok(self)
    }

    /// Says that pixels are below `levels`, from 2 to 256.
    pub fn with_levels(mut self, levels: u16) -> Result<Self, ImageError> {
        let largest = self.pixels.iter().max().copied().unwrap_or(0);
        if !(2..=256).contains(&levels) || u16::from(largest) >= levels {
            let text = format!("a pixel of {largest} with {levels} levels (2 to 256, more than any pixel)");
            return Err(ImageError::Shape(text));
        }
        self.levels = levels;
        Ok(self)
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.pixels.len() / self.dim()
    }
    /// Never: there is at least one.
    pub fn is_empty(&self) -> bool {
        false
    }
    /// Height, width and channels.
    pub fn shape(&self) -> [usize; 3] {
        self.shape
    }
    /// Numbers in an image.
    pub fn dim(&self) -> usize {
        self.shape.iter().product()
    }
    /// Pixels are below this.
    pub fn levels(&self) -> u16 {
        self.levels
    }
    /// All pixels: channels-last, one image after the other.
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }
    /// The pixels of image `i`.
    pub fn image(&self, i: usize) -> &[u8] {
        &self.pixels[i * self.dim()..(i + 1) * self.dim()]
    }
    /// The labels, if there are any: indices into [`Images::label_names`].
    pub fn labels(&self) -> Option<&[u8]> {
        self.labels.as_deref()
    }
    /// What the labels are called.
    pub fn label_names(&self) -> &[String] {
        &self.label_names
    }

    /// How many images there are of each label.
    pub fn label_counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.label_names.len()];
        self.labels.iter().flatten().for_each(|&label| counts[usize::from(label)] += 1);
        counts
    }

    /// The images of the given rows, in that order; `Err` if there are none or one does not exist.
    pub fn select(&self, rows: &[usize]) -> Result<Images, ImageError> {
        if let Some(row) = rows.iter().find(|&&row| row >= self.len()) {
            return Err(ImageError::Shape(format!("image {row} of {} (counted from 0)", self.len())));
        }
        let pixels = rows.iter().flat_map(|&row| self.image(row)).copied().collect();
        let chosen = Images { levels: self.levels, ..Images::new(self.shape, pixels)? };
        match &self.labels {
            None => Ok(chosen),
            Some(labels) => {
                let labels = rows.iter().map(|&row| labels[row]).collect();
                chosen.with_labels(labels, self.label_names.clone())
            }
        }
    }

    /// The first so many images of each of the given labels, in the order of the file:
    /// `subset(&[(2, 5600), (3, 2800), (6, 1400)])` are the first 5600 twos, 2800 threes and 1400 sixes.
    pub fn subset(&self, counts: &[(u8, usize)]) -> Result<Images, ImageError> {
        self.select(&self.subset_rows(counts)?.0)
    }

    /// [`Images::subset`], and what it leaves of the same labels, which there must be.
    pub fn subset_and_rest(&self, counts: &[(u8, usize)]) -> Result<(Images, Images), ImageError> {
        let (chosen, rest) = self.subset_rows(counts)?;
        Ok((self.select(&chosen)?, self.select(&rest)?))
    }

    fn subset_rows(&self, counts: &[(u8, usize)]) -> Result<(Vec<usize>, Vec<usize>), ImageError> {
        let labels = self.labels.as_ref().ok_or(ImageError::NoLabels)?;
        let (there, classes) = (self.label_counts(), self.label_names.len());
        let mut left = vec![None; classes];
        for &(label, wanted) in counts {
            let index = usize::from(label);
            let found = *there.get(index).ok_or(ImageError::UnknownLabel { label, classes })?;
            if left[index].is_some() {
                return Err(ImageError::Shape(format!("label {label} is asked for twice")));
            }
            if wanted > found {
                let name = self.label_names[index].clone();
                return Err(ImageError::TooFew { label, name, wanted, found });
            }
            left[index] = Some(wanted);
        }
        let (mut chosen, mut rest) = (Vec::new(), Vec::new());
        for (row, &label) in labels.iter().enumerate() {
            match &mut left[usize::from(label)] {
                None => {}
                Some(0) => rest.push(row),
                Some(n) => {
                    *n -= 1;
                    chosen.push(row);
                }
            }
        }
        Ok((chosen, rest))
    }

    /// Cuts the images at random into two parts, the second with a share `test` of every label (of all, without labels),
    /// rounded. The seed decides; the order of the file is kept.
    pub fn split(&self, test: f64, seed: u64) -> Result<(Images, Images), ImageError> {
        if !(test > 0.0 && test < 1.0) {
            let range = "between 0 and 1";
            return Err(ImageError::Number { what: "the share of the test part", value: test, range });
        }
        let (random, mut drawn) = (Random::new(seed), Subset::default());
        let mut is_test = vec![false; self.len()];
        let label = |row: usize| self.labels.as_ref().map_or(0, |labels| usize::from(labels[row]));
        for class in 0..self.label_names.len().max(1) {
            let rows: Vec<usize> = (0..self.len()).filter(|&row| label(row) == class).collect();
            let count = (rows.len() as f64 * test).round() as usize;
            random.subset(class as u64, Purpose::DataSplit, count, rows.len(), &mut drawn);
            drawn.members().iter().for_each(|&i| is_test[rows[i as usize]] = true);
        }
        let part = |wanted| (0..self.len()).filter(|&row| is_test[row] == wanted).collect::<Vec<_>>();
        Ok((self.select(&part(false))?, self.select(&part(true))?))
    }
}

/// The numbers below `classes`, as names.
fn numbered(classes: usize) -> Vec<String> {
    (0..classes).map(|class| class.to_string()).collect()
}
