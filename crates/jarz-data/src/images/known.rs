//! Data sets known by name: which files they consist of, where they are cached, how they are read.

use std::path::{Path, PathBuf};

use super::{CIFAR10_NAMES, ImageError, Images, read_cifar10, read_idx};
use crate::error::DataError;
use crate::hash::file_sha256;

/// A part of a data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// For training.
    Train,
    /// Held out.
    Test,
}

/// How the files of a data set are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Pairs of IDX files, images and labels: first for training, then for testing.
    Idx,
    /// Files of CIFAR-10's binary version, the last one for testing.
    Cifar,
}

/// A file of a known data set, uncompressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownFile {
    /// Its official name.
    pub name: &'static str,
    /// Its length.
    pub bytes: u64,
    /// Its SHA-256, as lower-case hexadecimal digits.
    pub sha256: &'static str,
}

/// A data set known by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownSet {
    /// Name on the command line and of the folder in the cache.
    pub name: &'static str,
    /// What it is, in a line.
    pub title: &'static str,
    /// How its files are read.
    pub layout: Layout,
    /// Its files.
    pub files: &'static [KnownFile],
    /// What its labels mean.
    pub label_names: [&'static str; 10],
}

/// All of them.
pub const KNOWN_SETS: [&KnownSet; 3] = [&MNIST, &FASHION_MNIST, &CIFAR10];

/// Handwritten digits (LeCun, Cortes and Burges).
pub const MNIST: KnownSet = KnownSet {
    name: "mnist",
    title: "handwritten digits, 28x28 grey, 60000 for training and 10000 for testing",
    layout: Layout::Idx,
    files: &[
        file(IDX_NAMES[0], 47_040_016, "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"),
        file(IDX_NAMES[1], 60_008, "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"),
        file(IDX_NAMES[2], 7_840_016, "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"),
        file(IDX_NAMES[3], 10_008, "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"),
    ],
    label_names: ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"],
};

/// Pictures of clothes (Xiao, Rasul and Vollgraf).
pub const FASHION_MNIST: KnownSet = KnownSet {
    name: "fashion-mnist",
    title: "clothes, 28x28 grey, 60000 for training and 10000 for testing",
    layout: Layout::Idx,
    files: &[
        file(IDX_NAMES[0], 47_040_016, "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"),
        file(IDX_NAMES[1], 60_008, "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"),
        file(IDX_NAMES[2], 7_840_016, "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"),
        file(IDX_NAMES[3], 10_008, "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"),
    ],
    label_names: [
        "T-shirt/top",
        "Trouser",
        "Pullover",
        "Dress",
        "Coat",
        "Sandal",
        "Shirt",
        "Sneaker",
        "Bag",
        "Ankle boot",
    ],
};

/// Small photographs of ten kinds of things (Krizhevsky).
pub const CIFAR10: KnownSet = KnownSet {
    name: "cifar10",
    title: "photographs of ten kinds of things, 32x32 in colour, 50000 for training and 10000 for testing",
    layout: Layout::Cifar,
    files: &[
        batch("data_batch_1.bin", "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"),
        batch("data_batch_2.bin", "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"),
        batch("data_batch_3.bin", "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"),
        batch("data_batch_4.bin", "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"),
        batch("data_batch_5.bin", "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"),
        batch("test_batch.bin", "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"),
    ],
    label_names: CIFAR10_NAMES,
};

const IDX_NAMES: [&str; 4] = [
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
];

const fn file(name: &'static str, bytes: u64, sha256: &'static str) -> KnownFile {
    KnownFile { name, bytes, sha256 }
}

const fn batch(name: &'static str, sha256: &'static str) -> KnownFile {
    file(name, 10_000 * super::CIFAR_ROW as u64, sha256)
}

impl KnownSet {
    /// The set of that name.
    pub fn by_name(name: &str) -> Option<&'static KnownSet> {
        KNOWN_SETS.into_iter().find(|set| set.name == name)
    }

    /// Its folder in a cache.
    pub fn folder(&self, cache: &Path) -> PathBuf {
        cache.join(self.name)
    }

    /// Bytes of all its files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Checks one of its files against the official length and SHA-256.
    pub fn check(&self, file: &KnownFile, path: &Path) -> Result<(), ImageError> {
        let found = file_sha256(path).map_err(|e| match e {
            DataError::NotFound { path } => ImageError::NotCached { set: self.name, path },
            other => other.into(),
        })?;
        match found == file.sha256 {
            true => Ok(()),
            false => {
                Err(ImageError::Checksum { set: self.name, path: path.into(), expected: file.sha256, found })
            }
        }
    }

    /// Checks all its files in a cache.
    pub fn check_all(&self, cache: &Path) -> Result<(), ImageError> {
        let folder = self.folder(cache);
        self.files.iter().try_for_each(|file| self.check(file, &folder.join(file.name)))
    }

    /// Reads a part of the set from a cache; the files are checked first.
    pub fn load(&self, part: Part, cache: &Path) -> Result<Images, ImageError> {
        let middle = match self.layout {
            Layout::Idx => 2,
            Layout::Cifar => self.files.len() - 1,
        };
        let files = match part {
            Part::Train => &self.files[..middle],
            Part::Test => &self.files[middle..],
        };
        let folder = self.folder(cache);
        let paths: Vec<PathBuf> = files.iter().map(|file| folder.join(file.name)).collect();
        files.iter().zip(&paths).try_for_each(|(file, path)| self.check(file, path))?;
        let images = match self.layout {
            Layout::Idx => read_idx(&paths[0], &paths[1], self.label_names.len())?,
            Layout::Cifar => read_cifar10(&paths)?,
        };
        let labels = images.labels().unwrap_or_default().to_vec();
        images.with_labels(labels, self.label_names.map(String::from).to_vec())
    }
}

/// Where data sets are cached: `JARZ_CACHE`, or `jarz` in the user's cache folder (`XDG_CACHE_HOME`, `~/.cache`).
pub fn cache_folder() -> Result<PathBuf, ImageError> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("JARZ_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").filter(|path| path.is_absolute()).map(|path| path.join("jarz")))
        .or_else(|| set("HOME").map(|home| home.join(".cache").join("jarz")))
        .or_else(|| set("LOCALAPPDATA").map(|path| path.join("jarz")))
        .ok_or(ImageError::NoCache)
}
