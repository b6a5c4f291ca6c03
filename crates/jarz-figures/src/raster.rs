use crate::FigureError;
use crate::font::database;
use resvg::{tiny_skia, usvg};

/// Largest side of an image, in pixels.
const MAX_SIDE: f64 = 16_384.0;

/// Rasterises an SVG of ours.
pub(crate) fn png(svg: &str, scale: f32) -> Result<Vec<u8>, FigureError> {
    let options = usvg::Options { fontdb: database(), ..usvg::Options::default() };
    let tree = usvg::Tree::from_str(svg, &options).map_err(|e| FigureError::Raster(e.to_string()))?;
    let width = (f64::from(tree.size().width()) * f64::from(scale)).round();
    let height = (f64::from(tree.size().height()) * f64::from(scale)).round();
    let fine = |side: f64| (1.0..=MAX_SIDE).contains(&side);
    if !(fine(width) && fine(height)) {
        return Err(FigureError::Size { width, height });
    }
    let mut pixmap =
        tiny_skia::Pixmap::new(width as u32, height as u32).ok_or(FigureError::Size { width, height })?;
    pixmap.fill(tiny_skia::Color::WHITE);
    resvg::render(&tree, tiny_skia::Transform::from_scale(scale, scale), &mut pixmap.as_mut());
    pixmap.encode_png().map_err(|e| FigureError::Raster(e.to_string()))
}
