//! Figures and report pages of runs; see [`jarz_view`].

pub use jarz_view::{draw_run, draw_runs, warnings};
