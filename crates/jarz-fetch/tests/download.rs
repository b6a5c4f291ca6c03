//! Downloads from a server that misbehaves.

mod common;

use common::{Memory, Mood, Server, gzip, noise, small_set};
use jarz_data::KnownSet;
use jarz_fetch::{FetchError, Outcome, Request, Source, get};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

struct Case {
    set: KnownSet,
    contents: [Vec<u8>; 2],
    zipped: [Vec<u8>; 2],
    server: Server,
    cache: TempDir,
}

impl Case {
    fn new(mood: Mood) -> Case {
        let (set, contents) = small_set();
        let zipped = [gzip(&contents[0]), gzip(&contents[1])];
        let files = vec![("large.gz".into(), zipped[0].clone()), ("small.gz".into(), zipped[1].clone())];
        Case {
            set,
            contents,
            zipped,
            server: Server::start(mood, files),
            cache: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.cache.path().join("tiny").join(name)
    }

    /// Leaves these bytes as an interrupted download would.
    fn leave(&self, bytes: &[u8]) {
        fs::create_dir_all(self.path("")).unwrap();
        fs::write(self.path("large.gz.part"), bytes).unwrap();
    }

    fn get(&self) -> Result<Outcome, FetchError> {
        self.get_watched(&mut Memory::new())
    }

    fn get_watched(&self, memory: &mut Memory) -> Result<Outcome, FetchError> {
        let mirror = Some(self.server.address.clone());
        let request = Request { cache: self.cache.path().into(), mirror, from: None };
        get(&self.set, &Source::default(), &request, memory)
    }

    fn names(&self) -> Vec<String> {
        names(&self.path(""))
    }

    fn assert_complete(&self) {
        assert_eq!(self.names(), ["large", "small"]);
        assert_eq!(fs::read(self.path("large")).unwrap(), self.contents[0]);
        assert_eq!(fs::read(self.path("small")).unwrap(), self.contents[1]);
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn files_are_downloaded_checked_and_not_asked_for_again() {
    let case = Case::new(Mood::Good);
    let mut memory = Memory::new();
    assert_eq!(case.get_watched(&mut memory).unwrap(), Outcome::Downloaded(case.server.address.clone()));
    case.assert_complete();
    let total = case.zipped[1].len() as u64;
    assert_eq!(memory.last, Some(("small.gz".into(), total, Some(total))));
    assert_eq!(case.get().unwrap(), Outcome::Cached);
    assert_eq!(case.server.requests().len(), 2);
    // A file that was damaged is got again, and only that one.
    fs::write(case.path("small"), b"rubbish").unwrap();
    case.get().unwrap();
    case.assert_complete();
    assert_eq!(case.server.requests()[2..], [("small.gz".to_string(), None)]);
}

#[test]
fn a_download_goes_on_where_it_stopped() {
    let case = Case::new(Mood::Good);
    case.leave(&case.zipped[0][..100_000]);
    case.get().unwrap();
    case.assert_complete();
    assert_eq!(case.server.requests()[0], ("large.gz".to_string(), Some(100_000)));
}

#[test]
fn a_finished_part_needs_no_further_bytes() {
    let case = Case::new(Mood::Good);
    case.leave(&case.zipped[0]);
    case.get().unwrap();
    case.assert_complete();
    assert_eq!(case.server.requests()[0].1, Some(case.zipped[0].len()));
}

#[test]
fn a_server_without_ranges_is_asked_for_everything() {
    let case = Case::new(Mood::NoRanges);
    case.leave(&case.zipped[0][..100_000]);
    case.get().unwrap();
    case.assert_complete();
}

#[test]
fn a_broken_connection_is_taken_up_again() {
    let case = Case::new(Mood::CutOnce(70_000));
    case.get().unwrap();
    case.assert_complete();
    let ranges: Vec<_> = case.server.requests().iter().map(|r| r.1).collect();
    assert_eq!(ranges, [None, Some(70_000), None]);
}

#[test]
fn a_server_that_never_delivers_is_given_up_and_the_part_kept() {
    let case = Case::new(Mood::Silent);
    case.leave(&case.zipped[0][..100_000]);
    let text = case.get().unwrap_err().to_string();
    assert!(text.contains("100000 of") && text.contains("--from"), "{text}");
    assert_eq!(case.names(), ["large.gz.part"]);
    assert_eq!(case.server.requests().len(), 3);
    *case.server.mood.lock().unwrap() = Mood::Good;
    case.get().unwrap();
    case.assert_complete();
}

#[test]
fn remains_of_another_file_do_no_harm() {
    for remains in [noise(7, 5_000), noise(7, 2_000_000), gzip(&noise(8, 5_000))] {
        let case = Case::new(Mood::Good);
        case.leave(&remains);
        case.get().unwrap();
        case.assert_complete();
    }
}

#[test]
fn stopping_keeps_what_came() {
    let case = Case::new(Mood::Good);
    let mut memory = Memory { stop_after: 2, ..Memory::new() };
    assert!(matches!(case.get_watched(&mut memory), Err(FetchError::Stopped { set: "tiny" })));
    let kept = memory.last.unwrap().1;
    assert!(kept > 0 && kept < case.zipped[0].len() as u64);
    assert_eq!(case.names(), ["large.gz.part"]);
    assert_eq!(fs::metadata(case.path("large.gz.part")).unwrap().len(), kept);
    case.get().unwrap();
    case.assert_complete();
    assert_eq!(case.server.requests()[1].1, Some(kept as usize));
}

#[test]
fn wrong_answers_are_named_and_leave_nothing_behind() {
    let missing = Case::new(Mood::Missing);
    let text = missing.get().unwrap_err().to_string();
    assert!(text.contains("large.gz") && text.contains("404"), "{text}");
    assert_eq!(missing.names(), [""; 0]);
    // Another file of the same kind, a longer one, a page instead of a file, a file that was cut off.
    let (set, contents) = small_set();
    let longer = [&contents[0][..], b"more"].concat();
    let zipped = gzip(&contents[0]);
    let wrong: [(Vec<u8>, &str); 4] = [
        (gzip(&noise(5, 300_000)), "SHA-256"),
        (gzip(&longer), "longer"),
        (b"<html>log in first</html>".to_vec(), "cannot be unpacked"),
        (zipped[..zipped.len() / 2].to_vec(), "cannot be unpacked"),
    ];
    for (body, word) in wrong {
        let case = Case {
            server: Server::start(Mood::Good, vec![("large.gz".into(), body)]),
            ..Case::new(Mood::Missing)
        };
        let text = case.get().unwrap_err().to_string();
        assert!(text.contains(word) && text.contains("large"), "{text}");
        if word == "SHA-256" {
            assert!(text.contains(set.files[0].sha256), "{text}");
        }
        assert_eq!(case.names(), [""; 0], "{word}");
    }
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let case = Case::new(Mood::Good);
    // A port that was free a moment ago, and that nobody listens on.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mirror = Some(format!("http://127.0.0.1:{port}"));
    let request = Request { cache: case.cache.path().into(), mirror, from: None };
    let text = get(&case.set, &Source::default(), &request, &mut Memory::new()).unwrap_err().to_string();
    assert!(text.contains(&format!("127.0.0.1:{port}/large.gz")), "{text}");
    assert_eq!(case.names(), [""; 0]);
}

#[test]
fn two_downloads_of_one_file_do_not_mix() {
    let case = Case::new(Mood::Good);
    case.leave(&case.zipped[0][..10]);
    let other = fs::OpenOptions::new().write(true).open(case.path("large.gz.part")).unwrap();
    other.lock().unwrap();
    let text = case.get().unwrap_err().to_string();
    assert!(text.contains("another process"), "{text}");
    drop(other);
    case.get().unwrap();
    case.assert_complete();
}
