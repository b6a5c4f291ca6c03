//! The page of a folder, live in a browser: on loopback only, and read-only.

mod files;
mod live;
mod respond;

use crate::ViewError;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use respond::{Site, failure};
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Connections that are served at the same time; further ones are closed.
const CONNECTIONS: usize = 64;
/// A request must be complete by then.
const HEADER_TIME: Duration = Duration::from_secs(5);
/// A connection is closed after so long, whatever it is doing.
const CONNECTION_TIME: Duration = Duration::from_secs(60);
/// Longest head of a request, in bytes.
const HEADER_BYTES: usize = 16 << 10;
/// Most header lines of a request.
const HEADER_LINES: usize = 64;
/// How often `stop` is asked.
const TICK: Duration = Duration::from_millis(100);

/// Serves the page of a folder on 127.0.0.1 until `stop` says so. Port 0 takes any free one; `ready` hears which.
pub fn serve(
    folder: &Path,
    port: u16,
    ready: impl FnOnce(SocketAddr),
    stop: &dyn Fn() -> bool,
) -> Result<(), ViewError> {
    let site = Arc::new(Site::open(folder)?);
    let failed = |error| ViewError::Bind { port, error };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(failed)?;
        ready(listener.local_addr().map_err(failed)?);
        let mut connections = JoinSet::new();
        while !stop() {
            while connections.try_join_next().is_some() {}
            match tokio::time::timeout(TICK, listener.accept()).await {
                Ok(Ok((stream, _))) if connections.len() < CONNECTIONS => {
                    connections.spawn(connection(stream, site.clone()));
                }
                // Too many connections, or one that broke at once; a pause if it is the system that has no more.
                Ok(Ok(_)) | Err(_) => {}
                Ok(Err(_)) => tokio::time::sleep(TICK).await,
            }
        }
        // Answers that are under way may end.
        let _ = tokio::time::timeout(Duration::from_secs(1), connections.join_all()).await;
        Ok(())
    })
}

async fn connection(stream: TcpStream, site: Arc<Site>) {
    let service = service_fn(move |request| answer(request, site.clone()));
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME)
        .max_buf_size(HEADER_BYTES)
        .max_headers(HEADER_LINES)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    // A client that misbehaves or goes away is no concern of ours.
    let _ = tokio::time::timeout(CONNECTION_TIME, serving).await;
}

/// Answers are made on another thread, as they may read large files. Bodies of requests are never read.
async fn answer(request: Request<Incoming>, site: Arc<Site>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, _) = request.into_parts();
    let made = tokio::task::spawn_blocking(move || site.respond(&head)).await;
    Ok(made.unwrap_or_else(|_| failure(500, "the page could not be made")).map(Full::new))
}
