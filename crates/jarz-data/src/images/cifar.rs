//! The binary version of CIFAR-10: for every image a byte of label, then 32x32 bytes of red, of green and of blue.

use std::path::Path;

use super::bytes::read_file;
use super::idx::check_labels;
use super::{ImageError, Images};

const SIDE: usize = 32;
const PLANE: usize = SIDE * SIDE;
/// Bytes of an image with its label.
pub const CIFAR_ROW: usize = 1 + 3 * PLANE;
/// The names of CIFAR-10's classes.
pub const CIFAR10_NAMES: [&str; 10] =
    ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"];

/// Files of CIFAR-10's binary version (`data_batch_1.bin` and so on), plain or gzipped, one after the other.
pub fn read_cifar10<P: AsRef<Path>>(files: &[P]) -> Result<Images, ImageError> {
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    for path in files {
        let path = path.as_ref();
        let bytes = read_file(path)?;
        if bytes.len() % CIFAR_ROW != 0 {
            let bytes = bytes.len() as u64;
            return Err(ImageError::RowLength { path: path.into(), bytes, row: CIFAR_ROW });
        }
        let own: Vec<u8> = bytes.chunks_exact(CIFAR_ROW).map(|row| row[0]).collect();
        check_labels(path, &own, CIFAR10_NAMES.len())?;
        labels.extend(own);
        pixels.reserve(bytes.len());
        for row in bytes.chunks_exact(CIFAR_ROW) {
            let planes = &row[1..];
            pixels.extend((0..PLANE).flat_map(|i| [planes[i], planes[PLANE + i], planes[2 * PLANE + i]]));
        }
    }
    let names = CIFAR10_NAMES.map(String::from).to_vec();
    Images::new([SIDE, SIDE, 3], pixels)?.with_labels(labels, names)
}

/// Rows of CIFAR-10's binary version from channels-last pixels.
pub fn cifar10_rows(pixels: &[u8], labels: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(labels.len() * CIFAR_ROW);
    for (image, &label) in pixels.chunks_exact(3 * PLANE).zip(labels) {
        out.push(label);
        (0..3).for_each(|channel| out.extend(image.iter().skip(channel).step_by(3)));
    }
    out
}
