//! Which legends a figure needs, and how they are set below the panels.

use crate::curve::marker;
use crate::font::{fit, text_width};
use crate::style::Look;
use crate::svg::{Anchor, Canvas, Text, Type};
use crate::{Figure, Panel};

const SIZE: f64 = 11.5;
const SAMPLE: f64 = 30.0;
const SAMPLE_GAP: f64 = 7.0;
const ENTRY_GAP: f64 = 22.0;
const ROW: f64 = 18.0;

/// A line of a legend.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    label: String,
    look: Look,
    band: bool,
}

impl Entry {
    fn width(&self) -> f64 {
        SAMPLE + SAMPLE_GAP + text_width(&self.label, SIZE, false)
    }
}

/// The legends of a figure.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Legends {
    /// One for all panels.
    Shared(Vec<Entry>),
    /// One for each panel.
    Separate(Vec<Vec<Entry>>),
}

impl Legends {
    /// One legend serves all panels if no name has two looks and no look has two names.
    pub fn of(figure: &Figure) -> Self {
        let separate: Vec<Vec<Entry>> = figure.panels.iter().map(entries).collect();
        let mut shared: Vec<Entry> = Vec::new();
        for entry in separate.iter().flatten() {
            let named = shared.iter().position(|known| known.label == entry.label);
            let drawn = shared.iter().position(|known| known.look == entry.look);
            match (named, drawn) {
                (None, None) => shared.push(entry.clone()),
                (Some(i), Some(k)) if i == k => shared[i].band |= entry.band,
                _ => return Self::Separate(separate),
            }
        }
        Self::Shared(shared)
    }
}

fn entries(panel: &Panel) -> Vec<Entry> {
    let mut list: Vec<Entry> = Vec::new();
    for (series, look) in panel.looks() {
        let entry = Entry { label: series.label.clone(), look, band: series.band.is_some() };
        if !entry.label.is_empty() && !list.contains(&entry) {
            list.push(entry);
        }
    }
    list
}

/// Breaks a legend into rows of at most `room` pixels.
fn rows(entries: &[Entry], room: f64) -> Vec<&[Entry]> {
    let mut rows = Vec::new();
    let (mut start, mut used) = (0, 0.0);
    for (i, entry) in entries.iter().enumerate() {
        let width = entry.width().min(room);
        if i > start && used + ENTRY_GAP + width > room {
            rows.push(&entries[start..i]);
            (start, used) = (i, width);
        } else {
            used += width + if i > start { ENTRY_GAP } else { 0.0 };
        }
    }
    if start < entries.len() {
        rows.push(&entries[start..]);
    }
    rows
}

/// Height that a legend takes.
pub(crate) fn height(entries: &[Entry], room: f64) -> f64 {
    ROW * rows(entries, room).len() as f64
}

/// Draws a legend centred on `middle`, starting at `top`.
pub(crate) fn draw(canvas: &mut Canvas, entries: &[Entry], middle: f64, top: f64, room: f64) {
    for (r, row) in rows(entries, room).iter().enumerate() {
        let widths: Vec<f64> = row.iter().map(|entry| entry.width().min(room)).collect();
        let total = widths.iter().sum::<f64>() + ENTRY_GAP * (row.len() - 1) as f64;
        let mut x = middle - 0.5 * total;
        let y = top + ROW * (r as f64 + 0.5);
        for (entry, width) in row.iter().zip(widths) {
            sample(canvas, entry, x, y);
            let (label, size) = fit(&entry.label, SIZE, false, room - SAMPLE - SAMPLE_GAP);
            let look = Type::new(size, "#222222", Anchor::Start);
            canvas.text(x + SAMPLE + SAMPLE_GAP, y + 0.35 * size, &Text::plain(label), look);
            x += width + ENTRY_GAP;
        }
    }
}

fn sample(canvas: &mut Canvas, entry: &Entry, x: f64, y: f64) {
    let end = x + SAMPLE;
    if entry.band {
        let corners = [(x, y - 5.0), (end, y - 5.0), (end, y + 5.0), (x, y + 5.0)];
        canvas.polygon(&corners, entry.look.colour, 0.18);
    }
    canvas.polyline(&[(x, y), (end, y)], &entry.look);
    if let Some(shape) = entry.look.marker {
        marker(canvas, 0.5 * (x + end), y, shape, entry.look.colour);
    }
}
