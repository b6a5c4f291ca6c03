//! One PNG file as pixels.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use png::{BitDepth, ColorType, Decoder, Limits, Transformations};

use super::ImageError;
use crate::open::open_file;

/// The most bytes a single image may take.
const LARGEST: usize = 1 << 28;

/// Shape (height, width, channels) and pixels, channels-last, of the PNG file at `path`.
///
/// Palettes become colours and finer or coarser greys become 8 bits. An alpha channel is dropped if nothing shines through.
pub fn read_png(path: impl AsRef<Path>) -> Result<([usize; 3], Vec<u8>), ImageError> {
    let path = path.as_ref();
    let (file, _) = open_file(path)?;
    let bad = |problem: String| ImageError::Png { path: path.into(), problem };
    let (channels, [height, width], pixels) = decode(file).map_err(bad)?;
    match channels {
        1 | 3 => Ok(([height, width, channels], pixels)),
        with_alpha => {
            if pixels.iter().skip(with_alpha - 1).step_by(with_alpha).any(|&alpha| alpha != 255) {
                return Err(bad("some pixels are transparent: save it on a solid background".into()));
            }
            let opaque =
                pixels.chunks_exact(with_alpha).flat_map(|p| &p[..with_alpha - 1]).copied().collect();
            Ok(([height, width, with_alpha - 1], opaque))
        }
    }
}

fn decode(file: File) -> Result<(usize, [usize; 2], Vec<u8>), String> {
    let damaged = |e: png::DecodingError| format!("not a readable PNG image ({e}): save it again");
    let mut decoder = Decoder::new_with_limits(BufReader::new(file), Limits { bytes: LARGEST });
    decoder.set_transformations(Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().map_err(damaged)?;
    let size = reader.output_buffer_size().filter(|&size| size <= LARGEST);
    let mut pixels = vec![0; size.ok_or("the image is too large: make it smaller")?];
    let frame = reader.next_frame(&mut pixels).map_err(damaged)?;
    // What comes after the pixels is checked as well: a file that was cut off is not read as if it were whole.
    reader.finish().map_err(damaged)?;
    let channels = match (frame.color_type, frame.bit_depth) {
        (ColorType::Grayscale, BitDepth::Eight) => 1,
        (ColorType::GrayscaleAlpha, BitDepth::Eight) => 2,
        (ColorType::Rgb, BitDepth::Eight) => 3,
        (ColorType::Rgba, BitDepth::Eight) => 4,
        (colour, depth) => {
            return Err(format!("pixels of kind {colour:?} {depth:?}: save it as 8-bit grey or RGB"));
        }
    };
    pixels.truncate(frame.buffer_size());
    Ok((channels, [frame.height as usize, frame.width as usize], pixels))
}
