//! Draws a grid of images pixel by pixel; only the texts go through SVG.

use super::{Captions, ImageGrid};
use crate::FigureError;
use crate::font::text_width;
use crate::raster::{self, Bitmap};
use crate::svg::{Anchor, Canvas, Text, Type};

/// Wanted side of an image in the picture.
const SIDE: usize = 112;
/// White space between images, and around them.
const GAP: usize = 8;
/// Width of a frame.
const FRAME: usize = 5;
/// Size of the texts, and the height of their line.
const TYPE: f64 = 20.0;
const LINE: usize = 28;
/// Frames of weight 0 and of the largest weight.
const LIGHT: [f64; 3] = [228.0, 233.0, 238.0];
const DARK: [f64; 3] = [8.0, 48.0, 107.0];
/// What is no number.
const INVALID: [u8; 3] = [255, 0, 255];

/// Places of the images in the picture.
struct Layout {
    zoom: usize,
    /// Size of an image, enlarged.
    tile: [usize; 2],
    frame: usize,
    line: usize,
    rows: usize,
    columns: usize,
}

impl Layout {
    fn of(grid: &ImageGrid, shown: usize) -> Self {
        let [height, width, _] = grid.shape;
        let zoom = match grid.zoom {
            0 => (SIDE as f64 / height.max(width) as f64).round().max(1.0) as usize,
            zoom => zoom,
        };
        let columns = grid.rows_and_columns().1.clamp(1, shown.max(1));
        Layout {
            zoom,
            tile: [height.saturating_mul(zoom), width.saturating_mul(zoom)],
            frame: if grid.weights.is_some() { FRAME } else { 0 },
            line: if grid.captions == Captions::None { 0 } else { LINE },
            rows: shown.div_ceil(columns),
            columns,
        }
    }

    /// Distances from one image to the next: down and to the right.
    fn step(&self) -> [usize; 2] {
        let [height, width] = self.tile;
        let around = 2 * self.frame + GAP;
        [height.saturating_add(around + self.line), width.saturating_add(around)]
    }

    /// Height and width of the picture.
    fn size(&self) -> [f64; 2] {
        let [down, right] = self.step();
        [(GAP as f64) + self.rows as f64 * down as f64, (GAP as f64) + self.columns as f64 * right as f64]
    }

    /// Upper left corner of the image at place `i`, within its frame.
    fn corner(&self, i: usize) -> [usize; 2] {
        let [down, right] = self.step();
        let inset = GAP + self.frame;
        [inset + i / self.columns * down, inset + i % self.columns * right]
    }
}

/// The whole picture.
pub(super) fn picture(grid: &ImageGrid) -> Result<Bitmap, FigureError> {
    let shown = grid.shown();
    let layout = Layout::of(grid, shown.len());
    let [height, width] = layout.size();
    let mut canvas = Canvas::new(width, height, "images");
    for (place, &image) in shown.iter().enumerate() {
        caption(&mut canvas, grid, &layout, place, image);
    }
    let mut bitmap = raster::bitmap(&canvas.finish(), 1.0)?;
    let heaviest = grid.weights.iter().flatten().fold(0.0f64, |a, &b| a.max(b));
    for (place, &image) in shown.iter().enumerate() {
        let [top, left] = layout.corner(place);
        if let Some(weights) = &grid.weights {
            let (frame, [h, w]) = (layout.frame, layout.tile);
            let colour = shade(weights[image] / heaviest);
            bitmap.fill([top - frame, left - frame], [h + 2 * frame, w + 2 * frame], colour);
        }
        paint(&mut bitmap, grid, image, [top, left], layout.zoom);
    }
    Ok(bitmap)
}

/// The text below an image, in the middle.
fn caption(canvas: &mut Canvas, grid: &ImageGrid, layout: &Layout, place: usize, image: usize) {
    let text = match (&grid.captions, &grid.weights) {
        (Captions::Texts(texts), _) => texts[image].clone(),
        (Captions::Weights, Some(weights)) => format!("{}\u{d7}", short(weights[image])),
        _ => return,
    };
    let [top, left] = layout.corner(place);
    let [height, width] = layout.tile;
    let x = left as f64 + width as f64 / 2.0;
    let y = (top + height + layout.frame) as f64 + 0.78 * LINE as f64;
    let room = layout.step()[1] as f64 - 2.0;
    canvas.text(x, y, &Text::plain(fitted(&text, room)), Type::new(TYPE, "#333333", Anchor::Middle));
}

/// Two digits that count, or so.
fn short(weight: f64) -> String {
    match weight {
        w if w >= 9.95 => format!("{w:.0}"),
        w if w >= 0.095 => format!("{w:.1}"),
        w if w >= 0.005 => format!("{w:.2}"),
        _ => "0".to_string(),
    }
}

/// The text, cut if it is wider than `room`.
fn fitted(text: &str, room: f64) -> String {
    let fits = |text: &str| text_width(text, TYPE, false) <= room;
    let mut kept = text.to_string();
    while !fits(&kept) {
        let shorter = kept.trim_end_matches('\u{2026}').char_indices().next_back().map(|(i, _)| i);
        match shorter {
            Some(end) => kept = format!("{}\u{2026}", kept[..end].trim_end()),
            None => return String::new(),
        }
    }
    kept
}

/// The colour of a frame; `share` is relative to the largest weight.
fn shade(share: f64) -> [u8; 3] {
    [0, 1, 2].map(|c| (LIGHT[c] + (DARK[c] - LIGHT[c]) * share.clamp(0.0, 1.0)).round() as u8)
}

fn paint(bitmap: &mut Bitmap, grid: &ImageGrid, image: usize, [top, left]: [usize; 2], zoom: usize) {
    let [height, width, channels] = grid.shape;
    let values = &grid.values[image * height * width * channels..][..height * width * channels];
    for (i, pixel) in values.chunks_exact(channels).enumerate() {
        let corner = [top + i / width * zoom, left + i % width * zoom];
        bitmap.fill(corner, [zoom, zoom], colour(pixel));
    }
}

/// Red, green and blue of a pixel with one or three values in `[-1, 1]`.
fn colour(pixel: &[f32]) -> [u8; 3] {
    if pixel.iter().any(|v| v.is_nan()) {
        return INVALID;
    }
    let level = |v: f32| ((f64::from(v).clamp(-1.0, 1.0) + 1.0) * 127.5).round() as u8;
    [0, 1, 2].map(|c| level(pixel[c.min(pixel.len() - 1)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_levels() {
        assert_eq!(colour(&[-1.0]), [0; 3]);
        assert_eq!(colour(&[1.0]), [255; 3]);
        assert_eq!(colour(&[f32::INFINITY]), [255; 3]);
        assert_eq!(colour(&[-7.0]), [0; 3]);
        // Every level of a byte survives the way to [-1, 1] and back.
        for level in 0..=255u8 {
            assert_eq!(colour(&[(f64::from(level) / 127.5 - 1.0) as f32]), [level; 3]);
        }
        assert_eq!(colour(&[-1.0, 1.0, 0.6]), [0, 255, 204]);
        assert_eq!(colour(&[0.0, f32::NAN, 0.0]), INVALID);
    }

    #[test]
    fn captions_fit() {
        assert_eq!(fitted("2.1\u{d7}", 100.0), "2.1\u{d7}");
        let cut = fitted("a caption that is far too long", 100.0);
        assert!(
            cut.ends_with('\u{2026}') && text_width(&cut, TYPE, false) <= 100.0 && cut.len() > 5,
            "{cut}"
        );
        assert_eq!(fitted("wide", 0.5), "");
        assert_eq!([0.0, 0.012, 0.5, 2.04, 12.3].map(short), ["0", "0.01", "0.5", "2.0", "12"]);
    }
}
