//! From requests to answers.

use super::files::{decoded, find};
use super::live::Live;
use crate::ViewError;
use hyper::body::Bytes;
use hyper::header::{self, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Response};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Scripts and styles are in the page itself, which may ask its own server and nobody else. Pictures run nothing.
const PAGE_POLICY: &str = "default-src 'none'; connect-src 'self'; img-src data:; style-src 'unsafe-inline'; \
                           script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const FILE_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'";

/// What is served.
pub(super) struct Site {
    /// The folder, canonical.
    root: PathBuf,
    live: Mutex<Live>,
}

impl Site {
    pub(super) fn open(folder: &Path) -> Result<Self, ViewError> {
        let live = Mutex::new(Live::open(folder)?);
        let root = folder.canonicalize().map_err(jarz_run::files::FileError::at("find", folder))?;
        Ok(Self { root, live })
    }

    /// The answer to a request.
    pub(super) fn respond(&self, head: &Parts) -> Response<Bytes> {
        if !is_local(head) {
            return failure(403, "this server answers only to 127.0.0.1 and localhost");
        }
        if head.method != Method::GET && head.method != Method::HEAD {
            let mut refusal = failure(405, "this server is read-only");
            refusal.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            return refusal;
        }
        match head.uri.path() {
            "/" => self.page(),
            "/content" => self.content(head),
            path => {
                let name = path.strip_prefix('/').and_then(decoded).unwrap_or_default();
                match find(&self.root, &name) {
                    Some((bytes, kind)) => answer(200, kind, FILE_POLICY, bytes.into()),
                    None => failure(404, "there is no such file of the run"),
                }
            }
        }
    }

    fn page(&self) -> Response<Bytes> {
        // A lock that a panic left behind is as good as any: the next look repairs what it guards.
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        match live.refresh() {
            Ok(()) => answer(200, "text/html; charset=utf-8", PAGE_POLICY, live.page().into()),
            Err(e) => failure(503, &e.to_string()),
        }
    }

    fn content(&self, head: &Parts) -> Response<Bytes> {
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(e) = live.refresh() {
            return failure(503, &e.to_string());
        }
        let tag = live.tag();
        let known = head.headers.get(header::IF_NONE_MATCH).is_some_and(|v| v.as_bytes() == tag.as_bytes());
        let mut answer = match known {
            true => answer(304, "text/html; charset=utf-8", PAGE_POLICY, Bytes::new()),
            false => answer(200, "text/html; charset=utf-8", PAGE_POLICY, live.content()),
        };
        if let Ok(tag) = HeaderValue::from_str(&tag) {
            answer.headers_mut().insert(header::ETAG, tag);
        }
        answer
    }
}

/// Whether a request was meant for this machine: a page from elsewhere, whose name was made to point here, says its own name.
fn is_local(head: &Parts) -> bool {
    let mut hosts = head.headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    let said = host.to_str().ok().is_some_and(is_local_name);
    said && head.uri.authority().is_none_or(|a| is_local_name(a.as_str()))
}

/// A local name with any port: a tunnel may end at another one.
fn is_local_name(host: &str) -> bool {
    let (name, port) = host.rsplit_once(':').unwrap_or((host, "0"));
    (name == "127.0.0.1" || name.eq_ignore_ascii_case("localhost")) && port.parse::<u16>().is_ok()
}

/// An answer that says in words what is wrong.
pub(super) fn failure(status: u16, text: &str) -> Response<Bytes> {
    answer(status, "text/plain; charset=utf-8", FILE_POLICY, format!("{text}\n").into())
}

fn answer(status: u16, kind: &'static str, policy: &'static str, body: Bytes) -> Response<Bytes> {
    let mut response = Response::new(body);
    *response.status_mut() = status.try_into().unwrap_or_default();
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::is_local_name;

    #[test]
    fn only_local_names() {
        for name in ["127.0.0.1", "127.0.0.1:8377", "localhost:1", "LOCALHOST:80"] {
            assert!(is_local_name(name), "{name}");
        }
        for name in [
            "",
            "example.org",
            "example.org:8377",
            "127.0.0.1.example.org",
            "localhost:x",
            "127.0.0.1:8377:1",
            "[::1]:80",
            "0.0.0.0:8377",
            "user@127.0.0.1:1",
        ] {
            assert!(!is_local_name(name), "{name}");
        }
    }
}
