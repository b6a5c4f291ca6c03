//! Figures and report pages, without a plotting toolkit and without system fonts.
//!
//! A [`Figure`] is a grid of [`Panel`]s, a panel holds [`Series`] and [`Reference`] lines. Its SVG is written by a
//! small drawing layer, and the PNG is that very SVG, rasterised with an embedded font (Noto Sans, SIL Open Font
//! License), so that both files show the same picture on every machine. Colours are those of Okabe and Ito, and line
//! styles tell the series apart in black and white as well. The output is a function of the input alone.
//!
//! ```
//! use jarz_figures::{Figure, Panel, Series};
//!
//! let decay: Vec<(f64, f64)> = (0..100).map(|i| (i as f64, (-0.05 * i as f64).exp())).collect();
//! let figure = Figure::new()
//!     .panel(Panel::new("Loss").x("iterations").y("loss").y_log().series(Series::new("run 1", decay.clone())))
//!     .panel(Panel::new("Mass").x("iterations").y("mass").hline(0.25, "data").series(Series::new("run 1", decay)));
//! assert!(figure.to_svg().starts_with("<svg"));
//! ```
//!
//! Values that cannot be drawn (NaN, infinities, non-positive values on a logarithmic axis) interrupt a line and are
//! otherwise left out; they never reach the SVG.
//!
//! An [`ImageGrid`] shows images in rows and columns as PNG, perhaps with their weights.
//!
//! A [`Report`] collects text, tables, verdicts and figures in one self-contained HTML page. Its figures can be zoomed, read
//! and thinned out in a browser (by uPlot, which the page carries); without scripts, and in print, they are the SVG.

mod axis;
mod curve;
mod draw;
mod error;
mod files;
mod font;
mod html;
mod images;
mod interactive;
mod layout;
mod legend;
mod model;
mod provenance;
mod raster;
mod report;
mod style;
mod svg;
mod thin;
mod ticks;
mod verdict;

pub use error::FigureError;
pub use images::{ImageGrid, Order};
pub use model::{Direction, Figure, Panel, Reference, Scale, Series};
pub use provenance::{Provenance, duration};
pub use report::{Report, Section};
pub use style::{Dash, Marker, PALETTE, Style};
pub use thin::thin;
pub use verdict::{Agreement, Verdict};
