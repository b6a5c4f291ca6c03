//! A small HTTP server that misbehaves as told, and a data set of two small files.
#![allow(dead_code)]

use flate2::Compression;
use flate2::write::GzEncoder;
use jarz_data::{KnownFile, KnownSet, Layout};
use jarz_fetch::Watch;
use sha2::{Digest, Sha256};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// What the server does with a request for a file of `body`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mood {
    /// Answers, with ranges.
    Good,
    /// Sends everything, whatever range was asked for.
    NoRanges,
    /// Announces everything, sends so many bytes and hangs up; after that it is good.
    CutOnce(usize),
    /// Announces everything and sends nothing.
    Silent,
    /// Says that there is no such file.
    Missing,
}

/// Path and start of the range of a request.
pub type Asked = (String, Option<usize>);

pub struct Server {
    pub address: String,
    pub requests: Arc<Mutex<Vec<Asked>>>,
    pub mood: Arc<Mutex<Mood>>,
}

impl Server {
    /// Serves `files` by name until the test ends.
    pub fn start(mood: Mood, files: Vec<(String, Vec<u8>)>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/files/", listener.local_addr().unwrap());
        let server = Server { address, requests: Arc::default(), mood: Arc::new(Mutex::new(mood)) };
        let (requests, mood) = (server.requests.clone(), server.mood.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that hangs up is none of the server's business.
                let _ = answer(stream, &files, &requests, &mood);
            }
        });
        server
    }

    pub fn requests(&self) -> Vec<Asked> {
        self.requests.lock().unwrap().clone()
    }
}

fn answer(
    mut stream: TcpStream,
    files: &[(String, Vec<u8>)],
    requests: &Mutex<Vec<Asked>>,
    mood: &Mutex<Mood>,
) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().unwrap_or(Ok(String::new()))?;
    let name = first.split(' ').nth(1).unwrap_or("").trim_start_matches("/files/").to_string();
    let mut start = None;
    for line in lines {
        let line = line?.to_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(range) = line.strip_prefix("range: bytes=") {
            start = range.trim_end_matches('-').parse().ok();
        }
    }
    requests.lock().unwrap().push((name.clone(), start));
    let now = *mood.lock().unwrap();
    let body = files.iter().find(|(file, _)| *file == name).map(|(_, body)| body);
    let (Some(body), false) = (body, now == Mood::Missing) else {
        return stream
            .write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\nConnection: close\r\n\r\nnone");
    };
    let total = body.len();
    let (head, from) = match start.filter(|_| now != Mood::NoRanges) {
        None => ("200 OK".to_string(), 0),
        Some(start) if start >= total => {
            let head = format!(
                "HTTP/1.1 416 No\r\nContent-Range: bytes */{total}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
            return stream.write_all(head.as_bytes());
        }
        Some(start) => (format!("206 Partial\r\nContent-Range: bytes {start}-{}/{total}", total - 1), start),
    };
    let length = total - from;
    write!(stream, "HTTP/1.1 {head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n")?;
    let sent = match now {
        Mood::CutOnce(count) => {
            *mood.lock().unwrap() = Mood::Good;
            count
        }
        Mood::Silent => 0,
        _ => length,
    };
    stream.write_all(&body[from..from + sent.min(length)])
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub fn sha256(bytes: &[u8]) -> &'static str {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>().leak()
}

/// Bytes that do not compress, the same in every run.
pub fn noise(seed: u32, count: usize) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..count).map(|_| next()).collect()
}

/// A set of two files, and their contents.
pub fn small_set() -> (KnownSet, [Vec<u8>; 2]) {
    let contents = [noise(1, 300_000), noise(2, 700)];
    let file =
        |name, content: &[u8]| KnownFile { name, bytes: content.len() as u64, sha256: sha256(content) };
    let files: &'static [KnownFile] = vec![file("large", &contents[0]), file("small", &contents[1])].leak();
    let label_names = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
    (KnownSet { name: "tiny", title: "", layout: Layout::Idx, files, label_names }, contents)
}

/// Remembers, and stops after so many reports of progress.
pub struct Memory {
    pub last: Option<(String, u64, Option<u64>)>,
    pub reports: usize,
    pub stop_after: usize,
}

impl Memory {
    pub fn new() -> Self {
        Memory { last: None, reports: 0, stop_after: usize::MAX }
    }
}

impl Watch for Memory {
    fn say(&mut self, _: &str) {}
    fn progress(&mut self, file: &str, done: u64, total: Option<u64>) {
        self.last = Some((file.to_string(), done, total));
        self.reports += 1;
    }
    fn stopped(&self) -> bool {
        self.reports >= self.stop_after
    }
}
