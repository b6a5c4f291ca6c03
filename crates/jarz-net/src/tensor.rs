//! Where numbers lie: images with their channels last, one image after the other, with zeros around them where a convolution wants some.

/// What flows between two layers, and its gradient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tensor {
    pub height: usize,
    pub width: usize,
    pub channels: usize,
    /// Zeros around an image, and around its gradient.
    pub margin: usize,
    pub gradient_margin: usize,
}

impl Tensor {
    pub fn new([height, width, channels]: [usize; 3]) -> Self {
        Tensor { height, width, channels, margin: 0, gradient_margin: 0 }
    }

    /// Height, width, channels.
    pub fn sides(&self) -> [usize; 3] {
        [self.height, self.width, self.channels]
    }

    /// Positions per image.
    pub fn places(&self) -> usize {
        self.height * self.width
    }

    /// Width of the stored image.
    pub fn width_all(&self) -> usize {
        self.width + 2 * self.margin
    }

    /// Width of the stored gradient.
    pub fn gradient_width_all(&self) -> usize {
        self.width + 2 * self.gradient_margin
    }

    /// Numbers of a stored image.
    pub fn len(&self) -> usize {
        (self.height + 2 * self.margin) * self.width_all() * self.channels
    }

    /// Numbers of a stored gradient.
    pub fn gradient_len(&self) -> usize {
        (self.height + 2 * self.gradient_margin) * self.gradient_width_all() * self.channels
    }

    /// Where row `y` of image `n` begins, or of its gradient.
    pub fn row(&self, n: usize, y: usize, gradient: bool) -> usize {
        let (len, width, margin) = match gradient {
            true => (self.gradient_len(), self.gradient_width_all(), self.gradient_margin),
            false => (self.len(), self.width_all(), self.margin),
        };
        n * len + ((y + margin) * width + margin) * self.channels
    }

    /// Numbers in a row of an image.
    pub fn row_len(&self) -> usize {
        self.width * self.channels
    }

    /// Where the rows of `count` images begin; one piece per image where nothing lies between rows. Gives their length, too.
    pub fn rows(&self, count: usize, gradient: bool) -> impl Iterator<Item = usize> + '_ {
        (0..count * self.height).map(move |i| self.row(i / self.height, i % self.height, gradient))
    }

    /// Where each position of `block` images lies.
    pub fn table(&self, block: usize, gradient: bool) -> Vec<u32> {
        let rows = self.rows(block, gradient);
        rows.flat_map(|row| (0..self.width).map(move |x| (row + x * self.channels) as u32)).collect()
    }
}
