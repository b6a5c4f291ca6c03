use crate::FigureError;
use crate::font::database;
use resvg::{tiny_skia, usvg};

/// Largest side of an image, in pixels.
const MAX_SIDE: f64 = 16_384.0;

/// Rasterises an SVG of ours.
pub(crate) fn png(svg: &str, scale: f32) -> Result<Vec<u8>, FigureError> {
    pixmap(svg, scale)?.encode_png().map_err(|e| FigureError::Raster(e.to_string()))
}

/// The same, to draw on.
pub(crate) fn bitmap(svg: &str, scale: f32) -> Result<Bitmap, FigureError> {
    let pixmap = pixmap(svg, scale)?;
    let rgb = pixmap.data().chunks_exact(4).flat_map(|p| [p[0], p[1], p[2]]).collect();
    Ok(Bitmap { width: pixmap.width(), height: pixmap.height(), rgb })
}

fn pixmap(svg: &str, scale: f32) -> Result<tiny_skia::Pixmap, FigureError> {
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
    Ok(pixmap)
}

/// An opaque picture in red, green and blue.
pub(crate) struct Bitmap {
    width: u32,
    height: u32,
    rgb: Vec<u8>,
}

impl Bitmap {
    /// In pixels.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Fills a rectangle given by its upper left corner and size (down, right).
    pub fn fill(&mut self, [top, left]: [usize; 2], [height, width]: [usize; 2], colour: [u8; 3]) {
        for row in self.rgb.chunks_exact_mut(3 * self.width as usize).skip(top).take(height) {
            row.chunks_exact_mut(3).skip(left).take(width).for_each(|pixel| pixel.copy_from_slice(&colour));
        }
    }

    /// As PNG, without colours if there are none. Enlarged pixels repeat the row above, which the filter leaves out.
    pub fn encode(&self) -> Result<Vec<u8>, FigureError> {
        let failed = |e: png::EncodingError| FigureError::Raster(e.to_string());
        let grey = self.rgb.chunks_exact(3).all(|p| p[0] == p[1] && p[1] == p[2]);
        let mut out = Vec::new();
        let mut encoder = png::Encoder::new(&mut out, self.width, self.height);
        encoder.set_color(if grey { png::ColorType::Grayscale } else { png::ColorType::Rgb });
        encoder.set_compression(png::Compression::High);
        encoder.set_filter(png::Filter::Up);
        let mut writer = encoder.write_header().map_err(failed)?;
        match grey {
            true => writer.write_image_data(&self.rgb.iter().step_by(3).copied().collect::<Vec<u8>>()),
            false => writer.write_image_data(&self.rgb),
        }
        .map_err(failed)?;
        writer.finish().map_err(failed)?;
        Ok(out)
    }
}
