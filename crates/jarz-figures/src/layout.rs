//! Where everything goes: sizes of the figure, of its panels and of the plots in them.

use crate::axis::Axis;
use crate::font::text_width;
use crate::legend::{self, Legends};
use crate::svg::Text;
use crate::ticks::Ticks;
use crate::{Direction, Figure, Panel};
use std::borrow::Cow;

pub(crate) const TICK_SIZE: f64 = 10.5;
pub(crate) const LABEL_SIZE: f64 = 11.5;
pub(crate) const TITLE_SIZE: f64 = 12.5;
pub(crate) const HEADING_SIZE: f64 = 15.0;
pub(crate) const TICK_LENGTH: f64 = 4.0;
/// Distance from the end of a tick to its label.
pub(crate) const TICK_GAP: f64 = 4.0;
const MARGIN: f64 = 14.0;
const PANEL_GAP: f64 = 12.0;
const ROW_GAP: f64 = 20.0;
/// Room to the right of a plot, into which the last tick label reaches.
const RIGHT: f64 = 10.0;
const LEGEND_GAP: f64 = 8.0;

/// The place of one panel.
#[derive(Clone, Debug)]
pub(crate) struct Plot {
    /// Corner of the area between the axes.
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
    /// Left end of everything that belongs to the panel.
    pub outer_left: f64,
    /// Right end of everything that belongs to the panel.
    pub outer_right: f64,
    pub x: Axis,
    pub y: Axis,
    pub x_ticks: Ticks,
    pub y_ticks: Ticks,
    /// Top of the panel's own legend.
    pub legend_top: f64,
}

impl Plot {
    /// A pixel from places along the axes.
    pub fn pixel(&self, x: f64, y: f64) -> (f64, f64) {
        (self.left + x * self.width, self.top + (1.0 - y) * self.height)
    }

    /// A pixel from values, if both can be drawn.
    pub fn point(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        Some(self.pixel(self.x.place(x)?, self.y.place(y)?))
    }

    pub fn right(&self) -> f64 {
        self.left + self.width
    }

    pub fn bottom(&self) -> f64 {
        self.top + self.height
    }

    pub fn legend_room(&self) -> f64 {
        self.outer_right - self.outer_left
    }
}

/// The places of all panels.
pub(crate) struct Layout {
    pub width: f64,
    pub height: f64,
    /// Panels per row.
    pub columns: usize,
    /// Width and height of a panel with its labels.
    pub panel: [f64; 2],
    /// Base line of the figure title.
    pub heading: f64,
    pub plots: Vec<Plot>,
    pub legends: Legends,
    /// Top of the shared legend.
    pub legend_top: f64,
}

impl Layout {
    /// Room for the shared legend.
    pub fn legend_room(&self) -> f64 {
        self.width - 2.0 * MARGIN
    }

    pub fn left(&self) -> f64 {
        MARGIN
    }

    pub fn of(figure: &Figure) -> Self {
        let columns = columns(figure);
        let panel_width = side(figure.width_per_panel, 340.0);
        let panel_height = side(figure.height, 270.0);
        let gaps = PANEL_GAP * (columns as f64 - 1.0);
        let width = (2.0 * MARGIN + columns as f64 * panel_width + gaps).ceil();
        let legends = Legends::of(figure);

        let titled = figure.title.as_ref().is_some_and(|t| !t.is_empty());
        let heading = MARGIN + HEADING_SIZE - 2.0;
        let mut top = if titled { heading + 14.0 } else { MARGIN };
        let drafts: Vec<Draft> = figure.panels.iter().map(Draft::of).collect();
        let mut plots: Vec<Plot> = Vec::with_capacity(drafts.len());
        for (r, row) in drafts.chunks(columns).enumerate() {
            if r > 0 {
                top += ROW_GAP;
            }
            let title = if row.iter().any(|d| !d.panel.title.is_empty()) { TITLE_SIZE + 8.0 } else { 6.0 };
            let below = TICK_LENGTH + TICK_GAP + TICK_SIZE + LABEL_SIZE + 8.0;
            let height = (panel_height - title - below).max(30.0);
            for (c, draft) in row.iter().enumerate() {
                let outer_left = MARGIN + c as f64 * (panel_width + PANEL_GAP);
                let legend_top = top + panel_height + LEGEND_GAP;
                plots.push(draft.plot(outer_left, outer_left + panel_width, top + title, height, legend_top));
            }
            top += panel_height;
            if let Legends::Separate(all) = &legends {
                let needed = |c: usize| legend::height(&all[r * columns + c], panel_width);
                let most = (0..row.len()).map(needed).fold(0.0, f64::max);
                top += if most > 0.0 { LEGEND_GAP + most } else { 0.0 };
            }
        }
        align_columns(&mut plots, columns);
        for plot in &mut plots {
            plot.x_ticks = ticks_that_fit(&plot.x, plot.width);
        }
        let legend_top = top + LEGEND_GAP;
        if let Legends::Shared(entries) = &legends
            && !entries.is_empty()
        {
            top = legend_top + legend::height(entries, width - 2.0 * MARGIN);
        }
        let panel = [panel_width, panel_height];
        Self { width, height: (top + MARGIN).ceil(), columns, panel, heading, plots, legends, legend_top }
    }
}

/// The figure itself, or one with an empty panel if it has none.
pub(crate) fn with_panels(figure: &Figure) -> Cow<'_, Figure> {
    if figure.panels.is_empty() {
        Cow::Owned(Figure { panels: vec![Panel::default()], ..figure.clone() })
    } else {
        Cow::Borrowed(figure)
    }
}

/// A panel with its ranges.
struct Draft<'a> {
    panel: &'a Panel,
    x: Axis,
    y: Axis,
}

impl<'a> Draft<'a> {
    fn of(panel: &'a Panel) -> Self {
        let crossing =
            |direction| panel.references.iter().filter(move |r| r.direction == direction).map(|r| r.value);
        let bands = || panel.series.iter().flat_map(|s| s.band.iter().flatten());
        let points = || panel.series.iter().flat_map(|s| s.points.iter());
        let marked = panel.series.iter().any(|s| s.style.marker.is_some());
        let xs = points().map(|p| p.0).chain(bands().map(|b| b.0)).chain(crossing(Direction::Vertical));
        let x = Axis::new(panel.x_scale, panel.x_range, xs, if marked { 0.03 } else { 0.0 });
        let ys = points()
            .filter(|p| x.contains(p.0))
            .map(|p| p.1)
            .chain(bands().filter(|b| x.contains(b.0)).flat_map(|b| [b.1, b.2]))
            .chain(crossing(Direction::Horizontal));
        let y = Axis::new(panel.y_scale, panel.y_range, ys, 0.05);
        Self { panel, x, y }
    }

    fn plot(&self, outer_left: f64, outer_right: f64, top: f64, height: f64, legend_top: f64) -> Plot {
        let mut y_ticks = Ticks::new(&self.y, (height / 34.0).clamp(2.0, 8.0) as usize);
        drop_crowded(&mut y_ticks, &self.y, height, |_| TICK_SIZE, 3.0);
        let labels = y_ticks.labelled().map(|(_, text)| text.width(TICK_SIZE, false)).fold(0.0, f64::max);
        let named = !self.panel.y_label.is_empty() || y_ticks.power.is_some();
        let name = if named { LABEL_SIZE + 7.0 } else { 2.0 };
        let total = outer_right - outer_left;
        let left = (name + labels + TICK_GAP + TICK_LENGTH).min(0.6 * total).round();
        Plot {
            left: outer_left + left,
            top,
            width: total - left - RIGHT,
            height,
            outer_left,
            outer_right,
            x: self.x,
            y: self.y,
            x_ticks: Ticks::default(),
            y_ticks,
            legend_top,
        }
    }
}

/// Panels below each other begin at the same place.
fn align_columns(plots: &mut [Plot], columns: usize) {
    for c in 0..columns {
        let inset = |plot: &Plot| plot.left - plot.outer_left;
        let most = plots.iter().skip(c).step_by(columns).map(inset).fold(0.0, f64::max);
        for plot in plots.iter_mut().skip(c).step_by(columns) {
            plot.width += plot.left - plot.outer_left - most;
            plot.left = plot.outer_left + most;
        }
    }
}

/// As many ticks below a horizontal axis as have room for their labels.
fn ticks_that_fit(axis: &Axis, width: f64) -> Ticks {
    let size = |text: &Text| text.width(TICK_SIZE, false);
    let gap = text_width("000", TICK_SIZE, false);
    let most = (width / 45.0).clamp(2.0, 8.0) as usize;
    for wanted in (2..=most).rev() {
        let mut ticks = Ticks::new(axis, wanted);
        if wanted == 2 || !drop_crowded(&mut ticks.clone(), axis, width, size, gap) {
            drop_crowded(&mut ticks, axis, width, size, gap);
            return ticks;
        }
    }
    Ticks::new(axis, 2)
}

/// Takes the label from ticks whose label would come too close to the one before; tells whether there were any.
fn drop_crowded(ticks: &mut Ticks, axis: &Axis, length: f64, size: impl Fn(&Text) -> f64, gap: f64) -> bool {
    let mut end = f64::NEG_INFINITY;
    let mut crowded = false;
    for tick in &mut ticks.list {
        let (Some(label), Some(place)) = (&tick.label, axis.place(tick.value)) else { continue };
        let (middle, half) = (place * length, 0.5 * size(label));
        if middle - half < end + gap {
            tick.label = None;
            crowded = true;
        } else {
            end = middle + half;
        }
    }
    crowded
}

fn columns(figure: &Figure) -> usize {
    let count = figure.panels.len().max(1);
    match (figure.columns, count) {
        (0, 4) => 2,
        (0, _) => count.min(3),
        (asked, _) => asked.min(count),
    }
}

/// A side of a panel that leaves room for its labels and for memory.
fn side(asked: f64, usual: f64) -> f64 {
    if asked.is_finite() { asked.clamp(120.0, 4000.0) } else { usual }
}
