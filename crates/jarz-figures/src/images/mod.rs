//! Grids of images: samples, data, walkers with their weights.

mod draw;
mod order;

use crate::files::{check_stem, write_atomically};
use crate::{FigureError, Section};
pub use order::Order;
use std::path::Path;

/// Images in rows and columns, enlarged with crisp pixels, perhaps with a text below each and a frame whose shade shows
/// its weight.
///
/// ```
/// use jarz_figures::{ImageGrid, Order};
///
/// // Three grey images of 2x2 pixels; -1 is black and 1 is white.
/// let values: Vec<f32> = (0..12).map(|i| i as f32 / 5.5 - 1.0).collect();
/// let grid = ImageGrid::new([2, 2, 1], &values)?.weights(&[0.2, 0.7, 0.1])?.order(Order::Weight).weight_captions();
/// assert!(grid.to_png()?.starts_with(b"\x89PNG"));
/// # Ok::<(), jarz_figures::FigureError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ImageGrid {
    shape: [usize; 3],
    values: Vec<f32>,
    /// Relative to their mean.
    weights: Option<Vec<f64>>,
    captions: Captions,
    order: Order,
    rows: usize,
    columns: usize,
    zoom: usize,
}

#[derive(Clone, Debug, PartialEq)]
enum Captions {
    None,
    Weights,
    Texts(Vec<String>),
}

impl ImageGrid {
    /// Images of shape (height, width, channels) with 1 or 3 channels, channels-last, one after the other. Values outside
    /// of `[-1, 1]` are drawn as the nearer end, and those that are no number in magenta.
    pub fn new<T: Copy + Into<f64>>(shape: [usize; 3], values: &[T]) -> Result<Self, FigureError> {
        let each = shape.iter().try_fold(1usize, |product, &axis| product.checked_mul(axis)).unwrap_or(0);
        if each == 0 || !matches!(shape[2], 1 | 3) || values.is_empty() || !values.len().is_multiple_of(each)
        {
            let [h, w, c] = shape;
            let text = format!(
                "{} values are no images of {h}x{w}x{c}: give one or more whole images with 1 or 3 channels",
                values.len()
            );
            return Err(FigureError::Images(text));
        }
        let values = values.iter().map(|&v| v.into() as f32).collect();
        let (captions, order) = (Captions::None, Order::Given);
        Ok(Self { shape, values, weights: None, captions, order, rows: 0, columns: 0, zoom: 0 })
    }

    /// How many images there are, drawn or not.
    pub fn count(&self) -> usize {
        self.values.len() / self.shape.iter().product::<usize>()
    }

    /// Gives every image a weight (of any sum), shown by the shade of its frame: the darker, the heavier.
    pub fn weights(mut self, weights: &[f64]) -> Result<Self, FigureError> {
        let sum: f64 = weights.iter().sum();
        let fine = weights.iter().all(|&w| w >= 0.0) && sum > 0.0 && sum.is_finite();
        if weights.len() != self.count() || !fine {
            let text = format!(
                "{} weights for {} images: give each image one, positive or 0 and finite, and not 0 to all",
                weights.len(),
                self.count()
            );
            return Err(FigureError::Images(text));
        }
        let mean = sum / weights.len() as f64;
        self.weights = Some(weights.iter().map(|w| w / mean).collect());
        Ok(self)
    }

    /// Writes below each image its weight in units of the mean weight.
    pub fn weight_captions(mut self) -> Self {
        self.captions = Captions::Weights;
        self
    }

    /// Writes a text below each image; texts that are too wide are cut.
    pub fn captions<S: Into<String>>(
        mut self,
        texts: impl IntoIterator<Item = S>,
    ) -> Result<Self, FigureError> {
        let texts: Vec<String> = texts.into_iter().map(Into::into).collect();
        if texts.len() != self.count() {
            let text = format!("{} captions for {} images: give each image one", texts.len(), self.count());
            return Err(FigureError::Images(text));
        }
        self.captions = Captions::Texts(texts);
        Ok(self)
    }

    /// Sets which images are drawn, and in which order.
    pub fn order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// Sets rows and columns; 0 chooses. Images beyond them are not drawn.
    pub fn grid(mut self, rows: usize, columns: usize) -> Self {
        (self.rows, self.columns) = (rows, columns);
        self
    }

    /// Sets how many pixels of the picture a pixel of an image is wide and high; 0 chooses.
    pub fn zoom(mut self, zoom: usize) -> Self {
        self.zoom = zoom;
        self
    }

    /// The images that are drawn, row by row, as indices into those given.
    pub fn shown(&self) -> Vec<usize> {
        let (rows, columns) = self.rows_and_columns();
        self.order.choose(self.count(), rows.saturating_mul(columns), self.weights.as_deref())
    }

    /// The picture, as PNG. Made for screens with two pixels per unit: [`ImageGrid::section`] shows it at half its size.
    pub fn to_png(&self) -> Result<Vec<u8>, FigureError> {
        draw::picture(self)?.encode()
    }

    /// The picture for a report.
    pub fn section(&self, caption: impl Into<String>) -> Result<Section, FigureError> {
        let picture = draw::picture(self)?;
        Ok(Section::Picture { caption: caption.into(), width: picture.width() / 2, png: picture.encode()? })
    }

    /// Writes `stem.png` into `folder` in one step: temporary file, then rename.
    pub fn save(&self, folder: &Path, stem: &str) -> Result<(), FigureError> {
        check_stem(stem)?;
        write_atomically(folder, &format!("{stem}.png"), &self.to_png()?)
    }

    /// Rows and columns of the picture: as set; else 8 to 16 columns, and as many rows as needed.
    fn rows_and_columns(&self) -> (usize, usize) {
        let count = self.count();
        match (self.rows, self.columns) {
            (0, 0) => {
                let columns = ((count as f64).sqrt().ceil() as usize).clamp(8, 16).min(count);
                (count.div_ceil(columns), columns)
            }
            (0, columns) => (count.div_ceil(columns), columns),
            (rows, 0) => (rows, count.div_ceil(rows)),
            both => both,
        }
    }
}
