//! Draws a figure from its layout.

use crate::font::fit;
use crate::layout::{
    HEADING_SIZE, LABEL_SIZE, Layout, Plot, TICK_GAP, TICK_LENGTH, TICK_SIZE, TITLE_SIZE, with_panels,
};
use crate::legend::{self, Legends};
use crate::svg::{Anchor, Canvas, Text, Type};
use crate::{Direction, Figure, Panel, curve};

const INK: &str = "#222222";
const FRAME: &str = "#444444";
const GRID: &str = "#e4e4e4";
const REFERENCE: &str = "#555555";

/// The SVG of a figure.
pub(crate) fn figure(figure: &Figure) -> String {
    let figure = &*with_panels(figure);
    let layout = Layout::of(figure);
    let mut canvas = Canvas::new(layout.width, layout.height, &summary(figure));
    if let Some(title) = &figure.title {
        let (title, size) = fit(title, HEADING_SIZE, true, layout.legend_room());
        let look = Type { bold: true, ..Type::new(size, INK, Anchor::Start) };
        canvas.text(layout.left(), layout.heading, &Text::plain(title), look);
    }
    for (panel, plot) in figure.panels.iter().zip(&layout.plots) {
        draw_panel(&mut canvas, panel, plot);
    }
    match &layout.legends {
        Legends::Shared(entries) => {
            legend::draw(&mut canvas, entries, 0.5 * layout.width, layout.legend_top, layout.legend_room());
        }
        Legends::Separate(all) => {
            for (entries, plot) in all.iter().zip(&layout.plots) {
                let middle = 0.5 * (plot.outer_left + plot.outer_right);
                legend::draw(&mut canvas, entries, middle, plot.legend_top, plot.legend_room());
            }
        }
    }
    canvas.finish()
}

/// What a reader who cannot see the figure is told.
fn summary(figure: &Figure) -> String {
    let titles = figure.title.iter().chain(figure.panels.iter().map(|p| &p.title));
    let parts: Vec<&str> = titles.map(String::as_str).filter(|t| !t.is_empty()).collect();
    if parts.is_empty() { "figure".to_string() } else { parts.join("; ") }
}

fn draw_panel(canvas: &mut Canvas, panel: &Panel, plot: &Plot) {
    grid(canvas, plot);
    canvas.open_clip(plot.left - 1.0, plot.top - 1.0, plot.width + 2.0, plot.height + 2.0);
    curve::bands(canvas, panel, plot);
    references(canvas, panel, plot);
    let mut lines = Vec::new();
    for (series, look) in panel.looks() {
        let runs = curve::runs(series, plot);
        curve::series(canvas, &runs, &look);
        lines.extend(runs);
    }
    reference_labels(canvas, panel, plot, &lines);
    canvas.close_clip();
    frame(canvas, plot);
    names(canvas, panel, plot);
    let banded = panel.series.iter().any(|s| s.band.as_ref().is_some_and(|b| !b.is_empty()));
    if lines.is_empty() && !banded {
        let look = Type::new(LABEL_SIZE, "#888888", Anchor::Middle);
        let (x, y) = plot.pixel(0.5, 0.5);
        canvas.text(x, y, &Text::plain("no data"), look);
    }
}

fn grid(canvas: &mut Canvas, plot: &Plot) {
    let mut lines = Vec::new();
    for (value, _) in plot.x_ticks.labelled() {
        if let Some(place) = plot.x.place(value) {
            let (x, _) = plot.pixel(place, 0.0);
            lines.push([x, plot.top, x, plot.bottom()]);
        }
    }
    for (value, _) in plot.y_ticks.labelled() {
        if let Some(place) = plot.y.place(value) {
            let (_, y) = plot.pixel(0.0, place);
            lines.push([plot.left, y, plot.right(), y]);
        }
    }
    canvas.strokes(&lines, GRID, 0.8);
}

fn frame(canvas: &mut Canvas, plot: &Plot) {
    let (left, right, bottom) = (plot.left, plot.right(), plot.bottom());
    let mut lines = vec![[left, plot.top, left, bottom], [left, bottom, right, bottom]];
    let length = |labelled: bool| if labelled { TICK_LENGTH } else { 0.55 * TICK_LENGTH };
    let look = |anchor| Type::new(TICK_SIZE, INK, anchor);
    let mut labels = Vec::new();
    for tick in &plot.x_ticks.list {
        let Some(place) = plot.x.place(tick.value) else { continue };
        let (x, _) = plot.pixel(place, 0.0);
        lines.push([x, bottom, x, bottom + length(tick.label.is_some())]);
        if let Some(label) = &tick.label {
            let half = 0.5 * label.width(TICK_SIZE, false);
            let y = bottom + TICK_LENGTH + TICK_GAP + 0.75 * TICK_SIZE;
            labels.push((x.min(plot.outer_right + 10.0 - half), y, label, look(Anchor::Middle)));
        }
    }
    for tick in &plot.y_ticks.list {
        let Some(place) = plot.y.place(tick.value) else { continue };
        let (_, y) = plot.pixel(0.0, place);
        lines.push([left - length(tick.label.is_some()), y, left, y]);
        if let Some(label) = &tick.label {
            labels.push((left - TICK_LENGTH - TICK_GAP, y + 0.35 * TICK_SIZE, label, look(Anchor::End)));
        }
    }
    canvas.strokes(&lines, FRAME, 0.9);
    for (x, y, label, look) in labels {
        canvas.text(x, y, label, look);
    }
}

/// Panel title and axis labels.
fn names(canvas: &mut Canvas, panel: &Panel, plot: &Plot) {
    if !panel.title.is_empty() {
        let (title, size) = fit(&panel.title, TITLE_SIZE, true, plot.outer_right - plot.left);
        let look = Type { bold: true, ..Type::new(size, INK, Anchor::Start) };
        canvas.text(plot.left, plot.top - 9.0, &Text::plain(title), look);
    }
    let (middle_x, middle_y) = plot.pixel(0.5, 0.5);
    if let Some((text, size)) = axis_name(&panel.x_label, plot.x_ticks.power, plot.width) {
        let y = plot.bottom() + TICK_LENGTH + TICK_GAP + TICK_SIZE + LABEL_SIZE + 4.0;
        canvas.text(middle_x, y, &text, Type::new(size, INK, Anchor::Middle));
    }
    if let Some((text, size)) = axis_name(&panel.y_label, plot.y_ticks.power, plot.height) {
        let look = Type { upright: true, ..Type::new(size, INK, Anchor::Middle) };
        canvas.text(plot.outer_left + LABEL_SIZE - 1.0, middle_y, &text, look);
    }
}

/// The label of an axis with the power of ten that its ticks leave out.
fn axis_name(label: &str, power: Option<i32>, room: f64) -> Option<(Text, f64)> {
    let Some(power) = power else {
        let (label, size) = fit(label, LABEL_SIZE, false, room);
        return (!label.is_empty()).then(|| (Text::plain(label), size));
    };
    let exponent = power.to_string().replace('-', "\u{2212}");
    if label.is_empty() {
        return Some((Text::plain("\u{00d7}10").raised(exponent), LABEL_SIZE));
    }
    let (label, size) = fit(label, LABEL_SIZE, false, room - 45.0);
    Some((Text::plain(format!("{label} (\u{00d7}10")).raised(exponent).then(")"), size))
}

/// The line of a reference, if it lies within the axes.
fn reference_line(panel: &Panel, plot: &Plot, index: usize) -> Option<[f64; 4]> {
    let reference = &panel.references[index];
    match reference.direction {
        Direction::Horizontal if plot.y.contains(reference.value) => {
            let (_, y) = plot.pixel(0.0, plot.y.place(reference.value)?);
            Some([plot.left, y, plot.right(), y])
        }
        Direction::Vertical if plot.x.contains(reference.value) => {
            let (x, _) = plot.pixel(plot.x.place(reference.value)?, 0.0);
            Some([x, plot.top, x, plot.bottom()])
        }
        _ => None,
    }
}

fn references(canvas: &mut Canvas, panel: &Panel, plot: &Plot) {
    let lines: Vec<[f64; 4]> =
        (0..panel.references.len()).filter_map(|i| reference_line(panel, plot, i)).collect();
    canvas.strokes(&lines, REFERENCE, 1.0);
}

/// Sets the labels of references where they hide the least of the curves.
fn reference_labels(canvas: &mut Canvas, panel: &Panel, plot: &Plot, lines: &[Vec<(f64, f64)>]) {
    let mut taken: Vec<[f64; 4]> = Vec::new();
    for (i, reference) in panel.references.iter().enumerate() {
        let Some([x0, y0, x1, y1]) = reference_line(panel, plot, i).filter(|_| !reference.label.is_empty())
        else {
            continue;
        };
        let (label, size) = fit(&reference.label, TICK_SIZE, false, 0.7 * plot.width);
        let text = Text::plain(label);
        let (w, h) = (text.width(size, false) + 6.0, size + 3.0);
        let (bx, by) = (plot.right() - w, plot.bottom() - h - 2.0);
        let mut places = Vec::new();
        match reference.direction {
            Direction::Horizontal => {
                for along in [1.0, 0.8, 0.6, 0.4, 0.2, 0.0] {
                    let x = plot.left + along * (plot.width - w);
                    places.extend([(x, y0 - h - 0.5), (x, y1 + 1.5)]);
                }
            }
            Direction::Vertical => {
                for along in [0.0, 0.2, 0.4, 0.6, 0.8, 1.0] {
                    let y = plot.top + along * (plot.height - h);
                    places.extend([(x0 + 1.0, y), (x1 - w - 1.0, y)]);
                }
            }
        }
        let inside =
            |(x, y): &(f64, f64)| (plot.left..=bx + 0.01).contains(x) && (plot.top..=by + 2.01).contains(y);
        let hidden = |(x, y): (f64, f64)| {
            let own = [x, y, x + w, y + h];
            let curves: usize =
                lines.iter().map(|run| run.windows(2).filter(|s| crosses(s[0], s[1], own)).count()).sum();
            curves + 1000 * taken.iter().filter(|other| overlap(own, **other)).count()
        };
        let best = places.into_iter().filter(inside).map(|p| (hidden(p), p)).min_by_key(|(count, _)| *count);
        if let Some((_, (x, y))) = best {
            taken.push([x, y, x + w, y + h]);
            let look = Type { halo: true, ..Type::new(size, "#444444", Anchor::Start) };
            canvas.text(x + 3.0, y + 0.82 * h, &text, look);
        }
    }
}

fn overlap(a: [f64; 4], b: [f64; 4]) -> bool {
    a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]
}

/// Whether the straight line from `a` to `b` meets the rectangle: bounding boxes overlap, and not all corners lie on
/// one side of the line.
fn crosses(a: (f64, f64), b: (f64, f64), r: [f64; 4]) -> bool {
    let bounds = [a.0.min(b.0), a.1.min(b.1), a.0.max(b.0), a.1.max(b.1)];
    if !(bounds[0] <= r[2] && r[0] <= bounds[2] && bounds[1] <= r[3] && r[1] <= bounds[3]) {
        return false;
    }
    let side = |x: f64, y: f64| (b.0 - a.0) * (y - a.1) - (b.1 - a.1) * (x - a.0);
    let sides = [side(r[0], r[1]), side(r[2], r[1]), side(r[0], r[3]), side(r[2], r[3])];
    !(sides.iter().all(|s| *s > 0.0) || sides.iter().all(|s| *s < 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_rectangles() {
        let r = [0.0, 0.0, 10.0, 4.0];
        assert!(crosses((-5.0, 2.0), (15.0, 2.0), r));
        assert!(crosses((5.0, -100.0), (5.0, 100.0), r));
        assert!(crosses((1.0, 1.0), (2.0, 2.0), r));
        assert!(!crosses((-5.0, 5.0), (15.0, 5.0), r));
        assert!(!crosses((-1.0, 3.0), (3.0, 7.5), r));
    }
}
