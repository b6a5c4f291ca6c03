//! The 8x8 handwritten digits of UCI, which the library carries (CC BY 4.0; see `assets/digits/LICENSE.md`).

use std::path::Path;

use super::bytes::read_bytes;
use super::idx::parse_idx;
use super::{ImageError, Images};

const IMAGES: &[u8] = include_bytes!("../../assets/digits/images-idx3-ubyte.gz");
const LABELS: &[u8] = include_bytes!("../../assets/digits/labels-idx1-ubyte.gz");

/// 1797 handwritten digits of 8x8 pixels with 17 levels (0 to 16), in the original order.
///
/// E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning Repository,
/// doi 10.24432/C50P49, CC BY 4.0.
pub fn digits() -> Result<Images, ImageError> {
    let (images, labels) = (Path::new("embedded digits"), Path::new("labels of the embedded digits"));
    let (pixels, names) = (read_bytes(IMAGES, images)?, read_bytes(LABELS, labels)?);
    parse_idx((images, &pixels), (labels, &names), 10)?.with_levels(17)
}
