//! What runs look like: report pages, comparisons, and live views in a terminal or a browser.
//!
//! Everything is drawn from what is in the folders of runs, finished or not; nothing here changes a run.

mod error;
mod folder;
mod page;
mod quantity;
mod run;
mod serve;
mod text;
mod training;
mod watch;

pub use error::ViewError;
pub use folder::{Folder, Group, Kind, open_all};
pub use page::{compare, draw_run, draw_runs, rebuild, report, warnings};
pub use run::Run;
pub use serve::serve;
pub use text::plus_minus;
pub use watch::{watch, watch_once};
