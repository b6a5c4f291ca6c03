//! Images: what is read, what is chosen, what becomes of the pixels.

mod image_files;

use image_files::{cifar, gzip, idx_images, idx_labels, png};
use jarz_data::{
    Images, Preparation, digits, read_cifar10, read_idx, read_idx_images, read_png, read_png_folder,
};
use std::fs;
use tempfile::tempdir;

#[test]
fn the_embedded_digits_are_those_of_uci() {
    let digits = digits().unwrap();
    assert_eq!((digits.len(), digits.shape(), digits.levels()), (1797, [8, 8, 1], 17));
    // As published with the data set.
    assert_eq!(digits.label_counts(), [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]);
    assert_eq!(digits.pixels().iter().min(), Some(&0));
    assert_eq!(digits.pixels().iter().max(), Some(&16));
    // The first row of the data set: a zero.
    assert_eq!(digits.labels().unwrap()[..10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(digits.image(0)[..16], [0, 0, 5, 13, 9, 1, 0, 0, 0, 0, 13, 15, 10, 15, 5, 0]);
    assert_eq!(digits.image(0)[56..], [0, 0, 6, 13, 10, 0, 0, 0]);
    // The sum of all pixels in the file of scikit-learn, computed from it in Python.
    assert_eq!(digits.pixels().iter().map(|&p| u32::from(p)).sum::<u32>(), 561_718);
}

#[test]
fn idx_files_are_read_plain_and_gzipped() {
    let folder = tempdir().unwrap();
    let pixels: Vec<u8> = (0..24).collect();
    let (images, labels) = (idx_images([4, 2, 3], &pixels), idx_labels(&[3, 0, 9, 1]));
    let path = |name: &str| folder.path().join(name);
    fs::write(path("images"), &images).unwrap();
    fs::write(path("labels"), &labels).unwrap();
    fs::write(path("images.gz"), gzip(&images)).unwrap();
    fs::write(path("labels.gz"), gzip(&labels)).unwrap();
    let plain = read_idx(path("images"), path("labels"), 10).unwrap();
    assert_eq!(plain, read_idx(path("images.gz"), path("labels.gz"), 10).unwrap());
    assert_eq!((plain.len(), plain.shape(), plain.levels()), (4, [2, 3, 1], 256));
    assert_eq!(plain.pixels(), pixels);
    assert_eq!(plain.labels(), Some(&[3, 0, 9, 1][..]));
    assert_eq!(plain.label_names()[9], "9");
    let alone = read_idx_images(path("images.gz")).unwrap();
    assert_eq!((alone.pixels(), alone.labels()), (&pixels[..], None));
}

#[test]
fn cifar_planes_become_channels() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    // Pixel i of image k has the colour (k, i / 4, i % 256).
    let image =
        |k: usize| -> Vec<u8> { (0..1024).flat_map(|i| [k as u8, (i / 4) as u8, (i % 256) as u8]).collect() };
    fs::write(path("1.bin"), cifar(&[(6, image(0)), (9, image(1))])).unwrap();
    fs::write(path("2.bin"), gzip(&cifar(&[(0, image(2))]))).unwrap();
    let images = read_cifar10(&[path("1.bin"), path("2.bin")]).unwrap();
    assert_eq!((images.len(), images.shape()), (3, [32, 32, 3]));
    assert_eq!(images.labels(), Some(&[6, 9, 0][..]));
    assert_eq!(images.label_names()[6], "frog");
    (0..3).for_each(|k| assert_eq!(images.image(k), image(k)));
    let rows = jarz_data::cifar10_rows(&images.pixels()[..2 * 3072], &[6, 9]);
    assert_eq!(rows, fs::read(path("1.bin")).unwrap());
}

#[test]
fn folders_of_png_images_are_read() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for (name, level) in
        [("b/2.png", 20), ("b/10.png", 10), ("a/x.PNG", 30), ("a/notes.txt", 0), ("a/.hidden.png", 0)]
    {
        fs::create_dir_all(path(name).parent().unwrap()).unwrap();
        fs::write(path(name), png(::png::ColorType::Grayscale, 8, [2, 1], &[level, 255])).unwrap();
    }
    let images = read_png_folder(folder.path()).unwrap();
    assert_eq!((images.len(), images.shape()), (3, [1, 2, 1]));
    assert_eq!(images.pixels(), [30, 255, 10, 255, 20, 255]);
    assert_eq!(images.labels(), Some(&[0, 1, 1][..]));
    assert_eq!(images.label_names(), ["a", "b"]);
    // One of the folders alone: no labels.
    let flat = read_png_folder(path("b")).unwrap();
    assert_eq!((flat.pixels(), flat.labels()), (&[10, 255, 20, 255][..], None));
}

#[test]
fn png_images_of_every_kind_become_bytes() {
    use ::png::ColorType::{Grayscale, GrayscaleAlpha, Indexed, Rgb, Rgba};
    let folder = tempdir().unwrap();
    let file = folder.path().join("x.png");
    let read = |colour, depth, pixels: &[u8]| {
        fs::write(&file, png(colour, depth, [2, 1], pixels)).unwrap();
        read_png(&file).map_err(|e| e.to_string())
    };
    assert_eq!(read(Grayscale, 8, &[1, 2]), Ok(([1, 2, 1], vec![1, 2])));
    assert_eq!(read(Grayscale, 1, &[0b0100_0000]), Ok(([1, 2, 1], vec![0, 255])));
    assert_eq!(read(Grayscale, 16, &[7, 9, 200, 1]), Ok(([1, 2, 1], vec![7, 200])));
    assert_eq!(read(Rgb, 8, &[1, 2, 3, 4, 5, 6]), Ok(([1, 2, 3], vec![1, 2, 3, 4, 5, 6])));
    assert_eq!(read(GrayscaleAlpha, 8, &[1, 255, 2, 255]), Ok(([1, 2, 1], vec![1, 2])));
    assert_eq!(read(Rgba, 8, &[1, 2, 3, 255, 4, 5, 6, 255]), Ok(([1, 2, 3], vec![1, 2, 3, 4, 5, 6])));
    assert_eq!(read(Indexed, 8, &[1, 0]), Ok(([1, 2, 3], vec![40, 50, 60, 10, 20, 30])));
    let text = read(Rgba, 8, &[1, 2, 3, 254, 4, 5, 6, 255]).unwrap_err();
    assert!(text.contains("x.png") && text.contains("transparent"), "{text}");
}

#[test]
fn subsets_take_the_first_of_each_label() {
    let digits = digits().unwrap();
    let counts = [(2, 80), (3, 40), (6, 20)];
    let (chosen, rest) = digits.subset_and_rest(&counts).unwrap();
    assert_eq!(chosen, digits.subset(&counts).unwrap());
    assert_eq!(chosen.label_counts(), [0, 0, 80, 40, 0, 0, 20, 0, 0, 0]);
    assert_eq!(rest.label_counts(), [0, 0, 97, 143, 0, 0, 161, 0, 0, 0]);
    assert_eq!(chosen.levels(), 17);
    // The n-th two of the subset is the n-th two of the whole set; the order of the file is kept.
    let labels = digits.labels().unwrap();
    let mut rows: Vec<usize> = Vec::new();
    for (label, count) in counts {
        rows.extend((0..digits.len()).filter(|&row| labels[row] == label).take(count));
    }
    rows.sort();
    (0..140).for_each(|i| assert_eq!(chosen.image(i), digits.image(rows[i])));
    for (counts, words) in [
        (&[(2, 178)][..], ["178", "177"]),
        (&[(10, 1)], ["label 10", "0 to 9"]),
        (&[(1, 1), (1, 2)], ["label 1", "twice"]),
    ] {
        let text = digits.subset(counts).unwrap_err().to_string();
        words.iter().for_each(|word| assert!(text.contains(word), "{text}"));
    }
    let unlabelled = Images::new([1, 1, 1], vec![1, 2]).unwrap();
    assert!(unlabelled.subset(&[(0, 1)]).unwrap_err().to_string().contains("no labels"));
}

#[test]
fn a_split_keeps_the_shares_of_the_labels() {
    let digits = digits().unwrap();
    let (train, test) = digits.split(0.25, 3).unwrap();
    assert_eq!(train.len() + test.len(), 1797);
    for (all, part) in digits.label_counts().iter().zip(test.label_counts()) {
        assert_eq!(part, (*all as f64 * 0.25).round() as usize);
    }
    assert_eq!(digits.split(0.25, 3).unwrap(), (train, test.clone()));
    assert_ne!(digits.split(0.25, 4).unwrap().1, test);
    for share in [0.0, 1.0, -1.0, f64::NAN] {
        assert!(digits.split(share, 3).is_err());
    }
    assert!(digits.split(1e-6, 3).is_err(), "a part would be empty");
}

#[test]
fn scaled_pixels_fill_the_interval() {
    let pixels: Vec<u8> = (0..=255).collect();
    let images = Images::new([16, 16, 1], pixels).unwrap();
    let values: Vec<f64> = images.values(&Preparation::default()).unwrap();
    assert_eq!((values[0], values[255]), (-1.0, 1.0));
    (0..256).for_each(|p| assert!((values[p] - (p as f64 / 127.5 - 1.0)).abs() < 1e-15));
    let digits = digits().unwrap();
    let values: Vec<f32> = digits.values(&Preparation::default()).unwrap();
    digits.pixels().iter().zip(&values).for_each(|(&p, &v)| assert_eq!(v, f32::from(p) / 8.0 - 1.0));
    assert_eq!(Preparation::default().level_width(&digits), 0.125);
}

/// Kolmogorov's distance between the values and the uniform distribution on (0, 1), times the root of their number.
fn distance_from_uniform(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len() as f64;
    let at = |(i, &v): (usize, &f64)| (v - i as f64 / n).abs().max(((i + 1) as f64 / n - v).abs());
    values.iter().enumerate().map(at).fold(0.0, f64::max) * n.sqrt()
}

#[test]
fn dequantised_pixels_are_uniform_within_their_level() {
    let digits = digits().unwrap();
    let how = Preparation { dequantise: true, seed: 5, ..Preparation::default() };
    let values: Vec<f64> = digits.values(&how).unwrap();
    let levels = 17.0;
    let within: Vec<f64> =
        digits.pixels().iter().zip(&values).map(|(&p, v)| (v + 1.0) / 2.0 * levels - f64::from(p)).collect();
    assert!(within.iter().all(|&u| u > -1e-9 && u < 1.0 + 1e-9));
    // Beyond 2.23 with a probability of 1e-4.
    let distance = distance_from_uniform(within.clone());
    assert!(distance < 2.23, "{distance}");
    // Neighbouring pixels are independent: the mean product has a standard error of 1/12 / sqrt(n).
    let products: Vec<f64> = within.chunks_exact(2).map(|w| (w[0] - 0.5) * (w[1] - 0.5)).collect();
    let mean = products.iter().sum::<f64>() / products.len() as f64;
    assert!(mean.abs() < 3.9 / 12.0 / (products.len() as f64).sqrt(), "{mean}");
}

#[test]
fn noise_is_normal_and_addressed_by_seed_draw_and_row() {
    let digits = digits().unwrap();
    let how = Preparation { noise: 0.05, seed: 5, ..Preparation::default() };
    let clean: Vec<f64> = digits.values(&Preparation::default()).unwrap();
    let noisy: Vec<f64> = digits.values(&how).unwrap();
    let noise: Vec<f64> = noisy.iter().zip(&clean).map(|(a, b)| (a - b) / 0.05).collect();
    let n = noise.len() as f64;
    let (mean, square) = (noise.iter().sum::<f64>() / n, noise.iter().map(|z| z * z).sum::<f64>() / n);
    // 3.9 standard errors: a false alarm in 1e4.
    assert!(mean.abs() < 3.9 / n.sqrt() && (square - 1.0).abs() < 3.9 * (2.0 / n).sqrt(), "{mean} {square}");
    // The noise of a row does not depend on the rows after it, and differs with row, draw and seed.
    let first = digits.select(&[0, 1, 2]).unwrap();
    assert_eq!(first.values::<f64>(&how).unwrap(), noisy[..192]);
    assert_ne!(noise[..64], noise[64..128]);
    for other in [Preparation { seed: 6, ..how }, Preparation { draw: 1, ..how }] {
        assert_ne!(first.values::<f64>(&other).unwrap(), noisy[..192]);
    }
    // Both noises at once are their sum.
    let both = Preparation { dequantise: true, ..how };
    let spread: Vec<f64> = first.values(&Preparation { noise: 0.0, ..both }).unwrap();
    let sum: Vec<f64> = first.values(&both).unwrap();
    (0..192).for_each(|i| assert!((sum[i] - spread[i] - 0.05 * noise[i]).abs() < 1e-12));
    assert_eq!(first.dataset::<f32>(&both).unwrap().dim(), 64);
    for noise in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(first.values::<f32>(&Preparation { noise, ..how }).is_err());
    }
    assert!(first.dataset::<f32>(&Preparation { noise: 1e300, ..how }).is_err());
}

#[test]
fn parts_that_do_not_fit_together_are_refused() {
    assert!(Images::new([2, 2, 1], vec![0; 6]).is_err());
    assert!(Images::new([2, 2, 1], vec![]).is_err());
    assert!(Images::new([0, 2, 1], vec![0; 6]).is_err());
    assert!(Images::new([usize::MAX, 2, 1], vec![0; 6]).is_err());
    let images = Images::new([1, 1, 1], vec![3, 4]).unwrap();
    assert!(images.clone().with_labels(vec![0], vec!["a".into()]).is_err());
    assert!(images.clone().with_labels(vec![0, 1], vec!["a".into()]).is_err());
    assert!(images.clone().with_levels(4).is_err() && images.clone().with_levels(257).is_err());
    assert!(images.clone().with_levels(5).is_ok());
    assert!(images.select(&[2]).is_err() && images.select(&[]).is_err());
}
