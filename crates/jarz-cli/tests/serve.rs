//! `jarz serve`: read-only, on loopback, and nothing but the run.
#![cfg(unix)]

mod common;

use common::{Jarz, SMALL, text};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Stdio};

/// A server on a free port; ended when it goes out of scope.
struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    fn new(j: &Jarz, folder: &str) -> Self {
        let mut command = j.command(&["serve", folder, "--port", "0"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("http://").and_then(|a| a.strip_suffix('/'));
        let address = address.unwrap_or_else(|| panic!("no address in {line:?}")).parse().unwrap();
        Server { child, address }
    }

    /// Sends bytes as they are; gives status and everything that comes back.
    fn raw(&self, request: &[u8]) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.write_all(request).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = text(&answer);
        let status = answer.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0);
        (status, answer)
    }

    fn get(&self, path: &str) -> (u16, String) {
        self.raw(format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address).as_bytes())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn trained() -> Jarz {
    let j = Jarz::new();
    j.write("small.toml", SMALL);
    j.ok(&["train", "small.toml", "--out", "run", "--set", "run.iterations=40", "--quiet"]);
    j
}

#[test]
fn pages_and_files_of_a_run() {
    let j = trained();
    let server = Server::new(&j, "run");
    assert!(server.address.ip().is_loopback());
    let (status, page) = server.get("/");
    assert!(
        status == 200 && page.contains("<main data-live=\"content\">") && page.contains("Run run"),
        "{status}"
    );
    let (status, content) = server.get("/content");
    assert!(status == 200 && content.contains("<h1>Run run</h1>") && !content.contains("<html"), "{status}");
    let tag = content.lines().find_map(|l| l.strip_prefix("etag: ")).unwrap().trim().to_string();
    let again = format!("GET /content HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: {tag}\r\n\r\n");
    assert_eq!(server.raw(again.as_bytes()).0, 304, "nothing new");
    let mut metrics = std::fs::read_to_string(j.path("run/metrics.jsonl")).unwrap();
    let last = metrics.lines().last().unwrap().replace("\"iteration\":40", "\"iteration\":50");
    metrics += &format!("{last}\n");
    j.write("run/metrics.jsonl", metrics);
    let (status, content) = server.raw(again.as_bytes());
    assert!(status == 200 && content.contains("40.0,50.0]"), "the new row is in the figure");
    for file in ["run.toml", "summary.json", "metrics.jsonl", "figures/training.svg", "figures/training.png"]
    {
        assert_eq!(server.get(&format!("/{file}")).0, 200, "{file}");
    }
    let head = server.raw(format!("HEAD / HTTP/1.1\r\nHost: {}\r\n\r\n", server.address).as_bytes());
    assert!(head.0 == 200 && head.1.ends_with("\r\n\r\n"), "a head has no body");
}

#[test]
fn nothing_else() {
    let j = trained();
    j.write("secret.json", "{}");
    std::os::unix::fs::symlink(j.path("secret.json"), j.path("run/link.json")).unwrap();
    std::os::unix::fs::symlink(j.dir.path(), j.path("run/up")).unwrap();
    let server = Server::new(&j, "run");
    let paths = [
        "/../secret.json",
        "/..%2fsecret.json",
        "/%2e%2e/secret.json",
        "/figures/../../secret.json",
        "//secret.json",
        "/./run.toml/../../secret.json",
        "/link.json",
        "/up/secret.json",
        "/.lock",
        "/checkpoints/000000000040.safetensors",
        "/figures/",
        "/%00.json",
        "/%zz",
        "/secret.json?x",
    ];
    for path in paths {
        let (status, answer) = server.get(path);
        assert!(status == 404 || status == 400, "{path}: {answer}");
    }
    // Only reading, only for names of this machine: another site's name may be made to point here.
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"] {
        let (status, answer) =
            server.raw(format!("{method} / HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes());
        assert_eq!(status, 405, "{method}: {answer}");
    }
    let hosts = [
        "Host: evil.example\r\n",
        "",
        "Host: localhost\r\nHost: evil.example\r\n",
        "Host: 127.0.0.1.evil.example\r\n",
    ];
    for host in hosts {
        let (status, answer) = server.raw(format!("GET /run.toml HTTP/1.1\r\n{host}\r\n").as_bytes());
        assert!((400..=403).contains(&status) && !answer.contains("seed"), "{host}: {answer}");
    }
    let absolute = b"GET http://evil.example/run.toml HTTP/1.1\r\nHost: localhost\r\n\r\n";
    assert_eq!(server.raw(absolute).0, 403);
    // Heads that are too long, or no heads at all.
    let long = format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "a".repeat(40_000));
    assert_eq!(server.raw(long.as_bytes()).0, 431);
    let many = format!("GET / HTTP/1.1\r\nHost: localhost\r\n{}\r\n", "X: a\r\n".repeat(200));
    assert_eq!(server.raw(many.as_bytes()).0, 431);
    assert!(matches!(server.raw(b"\x16\x03\x01 nonsense\r\n\r\n").0, 0 | 400));
    assert_eq!(server.get("/").0, 200, "and it still serves");
}

/// A client that sends nothing, or half a request, is cut off, and in the meantime others are served.
#[test]
fn slow_clients_do_not_block() {
    let j = trained();
    let server = Server::new(&j, "run");
    let mut idle: Vec<TcpStream> = (0..8).map(|_| TcpStream::connect(server.address).unwrap()).collect();
    idle.iter_mut().for_each(|s| s.write_all(b"GET / HTTP/1.1\r\nHost: loc").unwrap());
    assert_eq!(server.get("/").0, 200);
    let mut rest = Vec::new();
    // The server closes; without its time limit this would wait forever.
    idle[0].read_to_end(&mut rest).unwrap();
    assert!(rest.is_empty() || text(&rest).starts_with("HTTP/1.1 408"), "{}", text(&rest));
}

#[test]
fn an_interrupt_ends_it_and_a_taken_port_is_named() {
    let j = trained();
    let mut server = Server::new(&j, "run");
    let port = server.address.port().to_string();
    j.fails(&["serve", "run", "--port", &port], &[&port, "--port 0"]);
    let sent = std::process::Command::new("kill").args(["-INT", &server.child.id().to_string()]).status();
    assert!(sent.unwrap().success());
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    let mut said = String::new();
    server.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("Ctrl-C ends it") && !said.contains("iteration"), "{said}");
    j.fails(&["serve", "nowhere"], &["nowhere"]);
    std::fs::create_dir(j.path("empty")).unwrap();
    j.fails(&["serve", "empty"], &["empty", "run.toml"]);
}

#[test]
fn a_folder_that_goes_away_is_no_crash() {
    let j = trained();
    let server = Server::new(&j, "run");
    std::fs::rename(j.path("run"), j.path("moved")).unwrap();
    let (status, answer) = server.get("/content");
    assert!(status == 503 && answer.contains("no folder"), "{status} {answer}");
    std::fs::rename(j.path("moved"), j.path("run")).unwrap();
    assert_eq!(server.get("/content").0, 200);
}
