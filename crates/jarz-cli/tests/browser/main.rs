//! Pages in a real browser: they render, and zoom, hover and legend do what they say. Needs Chromium (its name or path in
//! JARZ_CHROMIUM if it is not `chromium`), so these tests run only when asked for: `cargo test --test browser -- --ignored`.

#[path = "../common/mod.rs"]
mod common;

mod chromium;
mod live;
mod report;
