//! What the tests of experiments share.

use jarz_experiments::{Progress, Watch};
use std::path::Path;

/// Says nothing, and takes warnings for failures.
pub struct Silent;

impl Watch for Silent {
    fn say(&self, _: &str) {}
    fn warn(&self, text: &str) {
        panic!("{text}");
    }
    fn stopped(&self) -> bool {
        false
    }
    fn progress(&self, _: Progress) {}
    fn finished(&self, _: &Path) -> Result<(), String> {
        Ok(())
    }
}
