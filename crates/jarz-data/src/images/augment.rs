//! Random changes of images that leave them images: a crop scaled back to size, a horizontal flip, distorted colours, Gaussian blur.
//!
//! These are the augmentations that Du, Li, Tenenbaum and Mordatch ("Improved contrastive divergence training of energy-based models", 2021) apply to the
//! samples of persistent chains, in the form that SimCLR gave them.

use super::ImageError;
use jarz::{Purpose, Random, Real};

/// Which changes are made, and how strong they are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Augmentation {
    /// Chance that an image is changed at all.
    pub probability: f64,
    /// Strength `s` of the colour distortion: brightness, contrast and saturation change by factors within `1 ± 0.8 s`, hue by up to
    /// `0.2 s` of a turn, and one image in five times `s` becomes grey.
    pub colour: f64,
    /// Chance of a horizontal flip.
    pub flip: f64,
    /// Smallest share of the area that a crop keeps; 1 means no rescaling.
    pub smallest_crop: f64,
    /// Largest standard deviation, in pixels, of the blur that every other image gets; 0 means none.
    pub blur: f64,
}

impl Default for Augmentation {
    fn default() -> Self {
        Augmentation { probability: 1.0, colour: 0.5, flip: 0.5, smallest_crop: 0.5, blur: 1.0 }
    }
}

impl Augmentation {
    /// Complains about what is out of range.
    pub fn check(&self) -> Result<(), ImageError> {
        let unit = "0 to 1";
        let checks = [
            (
                "the probability of an augmentation",
                self.probability,
                (0.0..=1.0).contains(&self.probability),
                unit,
            ),
            ("the strength of the colour distortion", self.colour, (0.0..=1.0).contains(&self.colour), unit),
            ("the chance of a flip", self.flip, (0.0..=1.0).contains(&self.flip), unit),
            (
                "the smallest crop",
                self.smallest_crop,
                self.smallest_crop > 0.0 && self.smallest_crop <= 1.0,
                "above 0, at most 1",
            ),
            ("the blur", self.blur, (0.0..=16.0).contains(&self.blur), "0 to 16 pixels"),
        ];
        match checks.into_iter().find(|(_, _, fits, _)| !fits) {
            Some((what, value, _, range)) => Err(ImageError::Number { what, value, range }),
            None => Ok(()),
        }
    }

    /// Whether image `id` is changed in step `step`.
    pub fn chooses(&self, random: &Random, step: u64, id: u64) -> bool {
        Uniforms::new(random, step, id).next() < self.probability
    }

    /// Changes image `id`, of shape (height, width, channels) and with values in `[-1, 1]`, as the random numbers of step `step` say.
    pub fn apply<T: Real>(&self, random: &Random, step: u64, id: u64, shape: [usize; 3], image: &mut [T]) {
        let mut u = Uniforms::new(random, step, id);
        u.next(); // The one that chose it.
        let mut values: Vec<f64> = image.iter().map(|v| (v.to_f64() + 1.0) / 2.0).collect();
        if self.smallest_crop < 1.0 {
            values = rescale(&values, shape, self.smallest_crop, &mut u);
        }
        if u.next() < self.flip {
            flip(&mut values, shape);
        }
        if self.colour > 0.0 {
            distort(&mut values, shape[2], self.colour, &mut u);
        }
        let (blurred, sigma) = (u.next() < 0.5, self.blur * u.next());
        if blurred && sigma > 0.1 {
            values = blur(&values, shape, sigma);
        }
        image.iter_mut().zip(values).for_each(|(v, new)| *v = T::from_f64(2.0 * new.clamp(0.0, 1.0) - 1.0));
    }
}

/// The uniform numbers of one image in one step, in order.
struct Uniforms<'a> {
    random: &'a Random,
    step: u64,
    id: u64,
    used: u32,
}

impl<'a> Uniforms<'a> {
    fn new(random: &'a Random, step: u64, id: u64) -> Self {
        Uniforms { random, step, id, used: 0 }
    }

    /// The next one, in (0, 1).
    fn next(&mut self) -> f64 {
        let words = self.random.words(self.step, self.id, Purpose::Disturb, self.used / 4);
        let word = words[self.used as usize % 4];
        self.used += 1;
        (f64::from(word) + 0.5) / (1u64 << 32) as f64
    }

    /// The next one, between two numbers.
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.next()
    }
}

/// A crop with a share of the area from `smallest` to 1 and sides in a ratio of 3:4 to 4:3, scaled back to size (bilinear).
fn rescale(values: &[f64], [h, w, c]: [usize; 3], smallest: f64, u: &mut Uniforms<'_>) -> Vec<f64> {
    let (area, ratio) = (u.between(smallest, 1.0), u.between(-1.0, 1.0) * (4.0f64 / 3.0).ln() / 2.0);
    let share = |side: f64| (area.sqrt() * side.exp()).min(1.0);
    let (height, width) = (share(ratio) * h as f64, share(-ratio) * w as f64);
    let (top, left) = (u.next() * (h as f64 - height), u.next() * (w as f64 - width));
    // Neighbouring pixels of a place on the old grid, and the share of the second.
    let place = |i: usize, n: usize, first: f64, size: f64| {
        let at = (first + (i as f64 + 0.5) * size / n as f64 - 0.5).clamp(0.0, (n - 1) as f64);
        (at as usize, (at as usize + 1).min(n - 1), at.fract())
    };
    let mut out = Vec::with_capacity(values.len());
    for i in 0..h {
        let (y0, y1, fy) = place(i, h, top, height);
        for j in 0..w {
            let (x0, x1, fx) = place(j, w, left, width);
            for k in 0..c {
                let at = |y: usize, x: usize| values[(y * w + x) * c + k];
                let row = |y: usize| at(y, x0) + fx * (at(y, x1) - at(y, x0));
                out.push(row(y0) + fy * (row(y1) - row(y0)));
            }
        }
    }
    out
}

fn flip(values: &mut [f64], [_, w, c]: [usize; 3]) {
    for row in values.chunks_exact_mut(w * c) {
        for j in 0..w / 2 {
            for k in 0..c {
                row.swap(j * c + k, (w - 1 - j) * c + k);
            }
        }
    }
}

/// Weights of red, green and blue in the brightness (ITU-R BT.601).
const LUMA: [f64; 3] = [0.299, 0.587, 0.114];

/// Brightness and contrast; for three channels also saturation, hue, and grey images.
fn distort(values: &mut [f64], channels: usize, strength: f64, u: &mut Uniforms<'_>) {
    let range = 0.8 * strength;
    let mut factor = || u.between(1.0 - range, 1.0 + range);
    let (brightness, contrast, saturation) = (factor(), factor(), factor());
    let (turn, grey) = (u.between(-0.2, 0.2) * strength * std::f64::consts::TAU, u.next() < 0.2 * strength);
    values.iter_mut().for_each(|v| *v *= brightness);
    let colour = channels == 3;
    let luma = |p: &[f64]| {
        if colour { (0..3).map(|k| LUMA[k] * p[k]).sum() } else { p.iter().sum::<f64>() / p.len() as f64 }
    };
    let mean = values.chunks_exact(channels).map(luma).sum::<f64>() / (values.len() / channels) as f64;
    values.iter_mut().for_each(|v| *v = mean + contrast * (*v - mean));
    if !colour {
        return;
    }
    let (sin, cos) = turn.sin_cos();
    let saturation = if grey { 0.0 } else { saturation };
    for pixel in values.chunks_exact_mut(3) {
        let y = luma(pixel);
        let turned = turn_hue([0, 1, 2].map(|k| saturation * (pixel[k] - y)), sin, cos);
        (0..3).for_each(|k| pixel[k] = y + turned[k]);
    }
}

/// A difference from grey, turned about the grey axis (Rodrigues' formula): red goes towards green, green towards blue.
fn turn_hue(d: [f64; 3], sin: f64, cos: f64) -> [f64; 3] {
    let along = (d[0] + d[1] + d[2]) / 3.0 * (1.0 - cos);
    [0, 1, 2].map(|k| cos * d[k] + sin * (d[(k + 2) % 3] - d[(k + 1) % 3]) / 3f64.sqrt() + along)
}

/// Gaussian blur; beyond the border the image goes on with its last pixels.
fn blur(values: &[f64], [h, w, c]: [usize; 3], sigma: f64) -> Vec<f64> {
    let reach = (3.0 * sigma).ceil() as isize;
    let kernel: Vec<f64> = (-reach..=reach).map(|i| (-0.5 * (i as f64 / sigma).powi(2)).exp()).collect();
    let total: f64 = kernel.iter().sum();
    let along = |from: &[f64], rows: bool| -> Vec<f64> {
        let place = |i: usize, offset: isize, n: usize| i.saturating_add_signed(offset).min(n - 1);
        let mut out = Vec::with_capacity(from.len());
        for i in 0..h {
            for j in 0..w {
                for k in 0..c {
                    let term = |(t, weight): (usize, &f64)| {
                        let offset = t as isize - reach;
                        let (y, x) = if rows { (place(i, offset, h), j) } else { (i, place(j, offset, w)) };
                        weight / total * from[(y * w + x) * c + k]
                    };
                    out.push(kernel.iter().enumerate().map(term).sum());
                }
            }
        }
        out
    };
    along(&along(values, true), false)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: [usize; 3] = [32, 32, 3];
    const NONE: Augmentation =
        Augmentation { probability: 1.0, colour: 0.0, flip: 0.0, smallest_crop: 1.0, blur: 0.0 };

    /// A smooth image whose channels differ.
    fn image() -> Vec<f64> {
        let pixel =
            |i: usize, k: usize| ((i / 32) as f64 * 0.11 + (i % 32) as f64 * 0.07 + k as f64).sin() * 0.6;
        (0..32 * 32).flat_map(|i| (0..3).map(move |k| pixel(i, k))).collect()
    }

    fn changed(by: &Augmentation, id: u64) -> Vec<f64> {
        let mut x = image();
        by.apply(&Random::new(1), 5, id, SHAPE, &mut x);
        x
    }

    fn distance(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    }

    #[test]
    fn nothing_asked_for_changes_nothing() {
        assert!(distance(&changed(&NONE, 3), &image()) < 1e-12);
    }

    #[test]
    fn two_flips_are_none_and_one_is_the_mirror_image() {
        let by = Augmentation { flip: 1.0, ..NONE };
        let (mut x, before) = (changed(&by, 0), image());
        for (i, j) in [(0, 0), (7, 30), (31, 12)] {
            assert!((x[(i * 32 + j) * 3 + 1] - before[(i * 32 + 31 - j) * 3 + 1]).abs() < 1e-12);
        }
        by.apply(&Random::new(1), 6, 0, SHAPE, &mut x);
        assert!(distance(&x, &before) < 1e-12);
    }

    #[test]
    fn a_blur_keeps_the_mean_of_a_flat_image_and_spreads_a_point_as_a_gaussian() {
        let mut point = vec![0.0; 32 * 32];
        point[16 * 32 + 16] = 1.0;
        let out = blur(&point, [32, 32, 1], 1.5);
        assert!((out.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        let variance: f64 =
            (0..32).map(|i| (0..32).map(|j| out[i * 32 + j]).sum::<f64>() * (i as f64 - 16.0).powi(2)).sum();
        // Of a Gaussian sampled at whole numbers and cut at 3 to 4 standard deviations.
        assert!((variance - 2.25).abs() < 0.05, "{variance}");
        let flat = blur(&vec![0.3; 32 * 32], [32, 32, 1], 2.0);
        assert!(flat.iter().all(|v| (v - 0.3).abs() < 1e-12));
    }

    #[test]
    fn a_turn_of_the_hue_keeps_grey_and_a_third_of_one_exchanges_the_channels() {
        let random = Random::new(2);
        let mut grey = vec![0.4f64; 12];
        let by = Augmentation { colour: 0.5, ..NONE };
        by.apply(&random, 0, 0, [2, 2, 3], &mut grey);
        assert!(grey.windows(2).all(|p| (p[0] - p[1]).abs() < 1e-12), "{grey:?}");
        let (sin, cos) = (std::f64::consts::TAU / 3.0).sin_cos();
        assert!(distance(&turn_hue([0.5, -0.2, -0.1], sin, cos), &[-0.1, 0.5, -0.2]) < 1e-12);
    }

    #[test]
    fn crops_of_a_linear_image_are_linear_and_stay_inside() {
        let ramp: Vec<f64> = (0..32 * 32).map(|i| (i % 32) as f64 / 31.0).collect();
        let random = Random::new(3);
        for id in 0..50 {
            let out = rescale(&ramp, [32, 32, 1], 0.3, &mut Uniforms::new(&random, 0, id));
            let inner = &out[32 * 8 + 2..32 * 8 + 30];
            let slope = inner[1] - inner[0];
            assert!(slope > 0.0 && slope <= 1.0 / 31.0 + 1e-12, "{slope}");
            assert!(inner.windows(2).all(|p| (p[1] - p[0] - slope).abs() < 1e-9));
            assert!(out.iter().all(|v| (0.0..=1.0).contains(v)));
        }
    }

    #[test]
    fn the_address_alone_decides() {
        let by = Augmentation::default();
        assert_eq!(changed(&by, 7), changed(&by, 7));
        assert!(distance(&changed(&by, 7), &changed(&by, 8)) > 1e-3);
        let random = Random::new(1);
        let by = Augmentation { probability: 0.25, ..by };
        let chosen = (0..4000).filter(|&id| by.chooses(&random, 0, id)).count();
        // Five standard deviations.
        assert!((chosen as f64 - 1000.0).abs() < 5.0 * (4000.0f64 * 0.25 * 0.75).sqrt(), "{chosen}");
    }

    #[test]
    fn what_is_out_of_range_is_named() {
        let check = |a: Augmentation| a.check().unwrap_err().to_string();
        assert!(check(Augmentation { smallest_crop: 0.0, ..NONE }).contains("smallest crop"));
        assert!(check(Augmentation { colour: 2.0, ..NONE }).contains("colour"));
        assert!(check(Augmentation { probability: f64::NAN, ..NONE }).contains("probability"));
        assert!(Augmentation::default().check().is_ok());
    }
}
