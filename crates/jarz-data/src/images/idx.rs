//! IDX files, the format of MNIST: four bytes of type and number of axes, the lengths of the axes, the values.

use std::path::Path;

use super::bytes::read_file;
use super::{ImageError, Images, numbered};
use crate::error::DataError;
use crate::origin::Origin;

const IMAGES: [u8; 4] = [0, 0, 8, 3];
const LABELS: [u8; 4] = [0, 0, 8, 1];

/// Images and labels in IDX files, plain or gzipped, with labels from 0 to `classes - 1`.
pub fn read_idx(
    images: impl AsRef<Path>,
    labels: impl AsRef<Path>,
    classes: usize,
) -> Result<Images, ImageError> {
    let (images, labels) = (images.as_ref(), labels.as_ref());
    parse_idx((images, &read_file(images)?), (labels, &read_file(labels)?), classes)
}

/// Images alone in an IDX file, plain or gzipped.
pub fn read_idx_images(path: impl AsRef<Path>) -> Result<Images, ImageError> {
    let path = path.as_ref();
    parse_images(path, &read_file(path)?)
}

/// As [`read_idx`], from bytes; the paths are for messages.
pub(crate) fn parse_idx(
    (images_path, image_bytes): (&Path, &[u8]),
    (labels_path, label_bytes): (&Path, &[u8]),
    classes: usize,
) -> Result<Images, ImageError> {
    let images = parse_images(images_path, image_bytes)?;
    let (_, labels) = values::<1>(labels_path, label_bytes, LABELS)?;
    if labels.len() != images.len() {
        return Err(ImageError::CountMismatch {
            images_path: images_path.into(),
            images: images.len(),
            labels_path: labels_path.into(),
            labels: labels.len(),
        });
    }
    check_labels(labels_path, labels, classes)?;
    images.with_labels(labels.to_vec(), numbered(classes))
}

/// Refuses a label beyond the classes.
pub(super) fn check_labels(path: &Path, labels: &[u8], classes: usize) -> Result<(), ImageError> {
    match labels.iter().position(|&label| usize::from(label) >= classes) {
        None => Ok(()),
        Some(row) => Err(ImageError::LabelRange { path: path.into(), row, label: labels[row], classes }),
    }
}

fn parse_images(path: &Path, bytes: &[u8]) -> Result<Images, ImageError> {
    let ([count, height, width], pixels) = values::<3>(path, bytes, IMAGES)?;
    if count == 0 || height == 0 || width == 0 {
        let advice = "its header says so; download it again";
        return Err(ImageError::NoImages { path: path.into(), advice });
    }
    Images::new([height, width, 1], pixels.to_vec())
}

/// Lengths of the axes, and the values, which must be exactly as many as the lengths say.
fn values<'a, const AXES: usize>(
    path: &Path,
    bytes: &'a [u8],
    magic: [u8; 4],
) -> Result<([usize; AXES], &'a [u8]), ImageError> {
    check_magic(path, bytes, magic)?;
    let start = 4 + 4 * AXES;
    if bytes.len() < start {
        return Err(cut(path, start as u64, bytes.len() as u64));
    }
    let mut axes = [0; AXES];
    for (axis, word) in axes.iter_mut().zip(bytes[4..start].chunks_exact(4)) {
        *axis = u32::from_be_bytes([word[0], word[1], word[2], word[3]]) as usize;
    }
    let values = &bytes[start..];
    // 96 bits at most: three axes of 32.
    let expected = axes.iter().map(|&axis| axis as u128).product::<u128>().min(u64::MAX.into()) as u64;
    let (found, origin) = (values.len() as u64, Origin::file(path));
    match found {
        _ if found < expected => Err(cut(path, expected, found)),
        _ if found > expected => Err(DataError::TrailingBytes { origin, expected, found }.into()),
        _ => Ok((axes, values)),
    }
}

fn cut(path: &Path, expected: u64, found: u64) -> ImageError {
    DataError::Truncated { origin: Origin::file(path), expected, found }.into()
}

fn check_magic(path: &Path, bytes: &[u8], magic: [u8; 4]) -> Result<(), ImageError> {
    let name = |magic| if magic == IMAGES { "images" } else { "labels" };
    let mut found = [0; 4];
    let there = bytes.len().min(4);
    found[..there].copy_from_slice(&bytes[..there]);
    match found {
        _ if there < 4 => Err(cut(path, 4, there as u64)),
        _ if found == magic => Ok(()),
        IMAGES | LABELS => {
            Err(ImageError::Swapped { path: path.into(), wanted: name(magic), found: name(found) })
        }
        _ => Err(ImageError::Magic { path: path.into(), wanted: name(magic), found, expected: magic }),
    }
}
