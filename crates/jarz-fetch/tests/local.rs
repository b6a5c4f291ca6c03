//! Files that are there already, and archives.

mod common;

use common::{Memory, Mood, Server, gzip, noise, small_set};
use jarz_fetch::{Outcome, Request, Source, get};
use std::fs;
use std::path::Path;

const ARCHIVED: Source = Source { mirrors: &[], archive: Some("all.tar.gz"), package: None };

fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, format!("inside/{name}"), *bytes).unwrap();
    }
    gzip(&builder.into_inner().unwrap())
}

fn copy(from: &Path, cache: &Path) -> Result<Outcome, String> {
    let request = Request { cache: cache.into(), from: Some(from.into()), mirror: None };
    get(&small_set().0, &ARCHIVED, &request, &mut Memory::new()).map_err(|e| e.to_string())
}

fn assert_complete(cache: &Path) {
    let contents = small_set().1;
    assert_eq!(fs::read(cache.join("tiny/large")).unwrap(), contents[0]);
    assert_eq!(fs::read(cache.join("tiny/small")).unwrap(), contents[1]);
    assert_eq!(fs::read_dir(cache.join("tiny")).unwrap().count(), 2);
}

#[test]
fn plain_gzipped_and_archived_files_are_taken() {
    let contents = small_set().1;
    let cases: [&[(&str, Vec<u8>)]; 3] = [
        &[("large", contents[0].clone()), ("small.gz", gzip(&contents[1]))],
        &[("raw/large.gz", gzip(&contents[0])), ("small", contents[1].clone())],
        &[("all.tar.gz", archive(&[("small", &contents[1]), ("large", &contents[0]), ("other", b"x")]))],
    ];
    for files in cases {
        let (from, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(from.path().join("raw")).unwrap();
        for (name, bytes) in files {
            fs::write(from.path().join(name), bytes).unwrap();
        }
        assert_eq!(copy(from.path(), cache.path()), Ok(Outcome::Copied(from.path().into())));
        assert_complete(cache.path());
    }
}

#[test]
fn what_is_wrong_with_a_file_is_said() {
    let contents = small_set().1;
    let (from, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let says = |words: &[&str]| {
        let text = copy(from.path(), cache.path()).unwrap_err();
        words.iter().for_each(|word| assert!(text.contains(word), "no '{word}' in: {text}"));
        assert_eq!(fs::read_dir(cache.path().join("tiny")).unwrap().count(), 0, "{text}");
    };
    let put = |name: &str, bytes: &[u8]| fs::write(from.path().join(name), bytes).unwrap();
    says(&["no 'large'", "large.gz", "all.tar.gz", "--from"]);
    put("large", &noise(9, 300_000));
    says(&["/large'", "not the official file", "SHA-256"]);
    put("large", &contents[0][..200_000]);
    says(&["/large'", "not the official file"]);
    fs::remove_file(from.path().join("large")).unwrap();
    put("large.gz", &contents[0]);
    says(&["/large.gz'", "cannot be unpacked"]);
    fs::remove_file(from.path().join("large.gz")).unwrap();
    put("all.tar.gz", &archive(&[("other", b"x")]));
    says(&["all.tar.gz", "no 'large'"]);
    put("all.tar.gz", &archive(&[("large", b"x")]));
    says(&["inside/large", "not the official file"]);
    put("all.tar.gz", b"\x1f\x8b rubbish");
    says(&["all.tar.gz", "cannot be unpacked"]);
}

#[test]
fn an_archive_is_downloaded() {
    let contents = small_set().1;
    let body = archive(&[("large", &contents[0]), ("small", &contents[1])]);
    let server = Server::start(Mood::CutOnce(1000), vec![("all.tar.gz".into(), body)]);
    let cache = tempfile::tempdir().unwrap();
    let request = Request { cache: cache.path().into(), mirror: Some(server.address.clone()), from: None };
    get(&small_set().0, &ARCHIVED, &request, &mut Memory::new()).unwrap();
    assert_complete(cache.path());
    assert_eq!(server.requests(), [("all.tar.gz".to_string(), None), ("all.tar.gz".to_string(), Some(1000))]);
}
