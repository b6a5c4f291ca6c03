//! Files of images that are missing, damaged, swapped or mislabelled: what is said about them.

mod image_files;

use image_files::{cifar, gzip, idx_images, idx_labels, png};
use jarz_data::{ImageError, MNIST, Part, read_cifar10, read_idx, read_png_folder};
use png::ColorType::{Grayscale, Rgb};
use std::fs;
use std::path::PathBuf;
use tempfile::{TempDir, tempdir};

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Folder(tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn put(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }
}

fn assert_says<T: std::fmt::Debug>(outcome: Result<T, ImageError>, words: &[&str]) {
    let text = outcome.unwrap_err().to_string();
    words.iter().for_each(|word| assert!(text.contains(word), "no '{word}' in: {text}"));
}

/// Reads the pair of files `i` and `l`, and checks what is said.
fn pair(images: &[u8], labels: &[u8], words: &[&str]) {
    let folder = Folder::new();
    for (images, labels) in [(images.to_vec(), labels.to_vec()), (gzip(images), gzip(labels))] {
        let outcome = read_idx(folder.put("i", images), folder.put("l", labels), 10);
        assert_says(outcome, words);
    }
}

#[test]
fn idx_files_that_are_not_right() {
    let images = idx_images([3, 2, 2], &[7; 12]);
    let labels = idx_labels(&[1, 2, 3]);
    pair(&labels, &images, &["/i'", "holds labels, not images", "swapped"]);
    pair(&images, &images, &["/l'", "holds images, not labels"]);
    pair(b"\x89PNG....", &labels, &["/i'", "not an IDX file of images", "89"]);
    pair(&images, b"1,2,3,4", &["/l'", "not an IDX file of labels"]);
    // Doubles instead of bytes, and one axis too many.
    pair(&[0, 0, 14, 3], &labels, &["/i'", "not an IDX file of images"]);
    pair(&[0, 0, 8, 4], &labels, &["/i'", "not an IDX file of images"]);
    pair(&images[..2], &labels, &["/i'", "cut short"]);
    pair(&images[..10], &labels, &["/i'", "cut short"]);
    pair(&images[..27], &labels, &["/i'", "cut short", "12 bytes", "only 11"]);
    pair(&[&images[..], b"x"].concat(), &labels, &["/i'", "12 bytes", "13"]);
    pair(&images, &labels[..9], &["/l'", "cut short"]);
    pair(&images, &idx_labels(&[1, 2]), &["/l'", "2 labels", "/i'", "3 images"]);
    pair(&images, &idx_labels(&[1, 2, 3, 4]), &["/l'", "4 labels", "/i'", "3 images"]);
    pair(&images, &idx_labels(&[1, 10, 3]), &["/l'", "image 1", "label 10", "0 to 9"]);
    pair(&idx_images([0, 2, 2], &[]), &idx_labels(&[]), &["/i'", "no images"]);
    pair(&idx_images([3, 0, 2], &[]), &labels, &["/i'", "no images"]);
    // A header that promises more than any machine has.
    pair(&idx_images([u32::MAX; 3], &[0; 12]), &labels, &["/i'", "cut short", "only 12"]);
}

#[test]
fn files_that_are_missing_empty_or_wrongly_compressed() {
    let folder = Folder::new();
    let (images, labels) = (idx_images([1, 1, 1], &[7]), folder.put("l", idx_labels(&[1])));
    let read = |path: PathBuf| read_idx(path, &labels, 10);
    assert_says(read(folder.path("gone")), &["/gone'", "does not exist"]);
    assert_says(read(folder.0.path().into()), &["is a folder"]);
    assert_says(read(folder.put("empty", b"")), &["/empty'", "is empty"]);
    let zipped = gzip(&images);
    assert_says(read(folder.put("cut.gz", &zipped[..zipped.len() - 3])), &["/cut.gz'", "gzip", "damaged"]);
    let mut flipped = zipped.clone();
    let sum = flipped.len() - 6;
    flipped[sum] ^= 1;
    assert_says(read(folder.put("flipped.gz", &flipped)), &["/flipped.gz'", "gzip", "damaged"]);
    assert_says(read(folder.put("rubbish.gz", b"\x1f\x8brubbish and more")), &["/rubbish.gz'", "gzip"]);
}

#[test]
fn cifar_files_that_are_not_right() {
    let folder = Folder::new();
    let good = cifar(&[(3, vec![1; 3072])]);
    let read = |bytes: &[u8]| read_cifar10(&[folder.put("1.bin", &good), folder.put("2.bin", bytes)]);
    assert_eq!(read(&good).unwrap().len(), 2);
    assert_says(read(&good[..3000]), &["/2.bin'", "3000 bytes", "3073"]);
    assert_says(read(&[&good[..], b"x"].concat()), &["/2.bin'", "3074 bytes"]);
    assert_says(
        read(&cifar(&[(3, vec![1; 3072]), (10, vec![1; 3072])])),
        &["/2.bin'", "image 1", "label 10"],
    );
    assert_says(read(b""), &["/2.bin'", "is empty"]);
    assert_says(read_cifar10(&[folder.path("3.bin")]), &["/3.bin'", "does not exist"]);
    assert!(read_cifar10::<PathBuf>(&[]).is_err());
}

#[test]
fn folders_that_are_not_right() {
    let says = |files: &[(&str, Vec<u8>)], words: &[&str]| {
        let folder = Folder::new();
        files.iter().for_each(|(name, bytes)| {
            folder.put(name, bytes);
        });
        assert_says(read_png_folder(folder.0.path()), words);
    };
    let grey = png(Grayscale, 8, [2, 2], &[0; 4]);
    let wide = png(Grayscale, 8, [4, 1], &[0; 4]);
    let colour = png(Rgb, 8, [2, 2], &[0; 12]);
    let file = |name, bytes: &[u8]| (name, bytes.to_vec());
    says(&[], &["no images", "PNG"]);
    says(&[file("notes.txt", b"")], &["no images"]);
    says(&[file("a/1.png", &grey), file("b/notes.txt", b"")], &["/b'", "no images"]);
    says(&[file("a/1.png", &grey), file("2.png", &grey)], &["beside sub-folders"]);
    says(&[file("1.png", &grey), file("2.jpg", b"")], &["/2.jpg'", "PNG"]);
    says(
        &[file("1.png", &grey), file("2.png", &wide)],
        &["/2.png'", "4 pixels wide, 1 high", "/1.png'", "2 pixels wide"],
    );
    says(&[file("a/1.png", &grey), file("b/2.png", &colour)], &["/b/2.png'", "colour", "/a/1.png'", "grey"]);
    says(&[file("1.png", b"")], &["/1.png'", "PNG"]);
    says(&[file("1.png", b"GIF89a")], &["/1.png'", "not a readable PNG"]);
    let mut flipped = grey.clone();
    let middle = flipped.len() - 20;
    flipped[middle] ^= 1;
    says(&[file("1.png", &flipped)], &["/1.png'", "not a readable PNG"]);
    for end in 1..grey.len() {
        says(&[file("1.png", &grey[..end])], &["/1.png'", "not a readable PNG"]);
    }
    assert_says(read_png_folder("nowhere/at/all"), &["nowhere/at/all", "does not exist"]);
}

#[test]
fn a_cache_without_the_right_files() {
    let folder = Folder::new();
    let cache = folder.0.path();
    assert_says(MNIST.load(Part::Test, cache), &["mnist/t10k-images-idx3-ubyte'", "jarz data get mnist"]);
    folder.put("mnist/t10k-images-idx3-ubyte", idx_images([1, 28, 28], &[0; 784]));
    let words = ["mnist/t10k-images-idx3-ubyte'", "SHA-256", "0fa7898d", "jarz data get mnist"];
    assert_says(MNIST.load(Part::Test, cache), &words);
    assert_says(MNIST.check_all(cache), &["mnist/train-images-idx3-ubyte'"]);
}
