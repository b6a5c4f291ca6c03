//! The page of a folder, made again when something in the folder has changed.

use crate::{Folder, ViewError, report};
use hyper::body::Bytes;
use jarz_figures::Report;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The newest page.
pub(super) struct Live {
    folder: Folder,
    report: Report,
    content: Bytes,
    /// Tells this server's pages from those of an earlier one on the same port.
    start: u128,
    version: u64,
}

impl Live {
    pub(super) fn open(path: &Path) -> Result<Self, ViewError> {
        let start = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos());
        let folder = Folder::open(path)?;
        let report = report(&folder);
        let content = report.content().into();
        Ok(Self { folder, report, content, start, version: 1 })
    }

    /// Looks for news.
    pub(super) fn refresh(&mut self) -> Result<(), ViewError> {
        if self.folder.refresh()? {
            self.report = report(&self.folder);
            self.content = self.report.content().into();
            self.version += 1;
        }
        Ok(())
    }

    /// The whole page.
    pub(super) fn page(&self) -> String {
        self.report.to_live_html("content")
    }

    /// What a page that is already open asks for.
    pub(super) fn content(&self) -> Bytes {
        self.content.clone()
    }

    /// Changes with the content.
    pub(super) fn tag(&self) -> String {
        format!("\"{:x}-{}\"", self.start, self.version)
    }
}
