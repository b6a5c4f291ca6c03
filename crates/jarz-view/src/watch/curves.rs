//! Charts of a run for a terminal.

use crate::Run;
use crate::quantity::{has_values, points};
use jarz_figures::thin;
use jarz_run::Row;
use ratatui::style::{Color, Style, Stylize};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Block, Chart, Dataset, GraphType};

/// The colours of the figures, as near as 256 colours come.
const COLOURS: [u8; 6] = [32, 166, 36, 175, 178, 74];
/// Signs for the curves where there are no colours.
const SIGNS: [char; 6] = ['*', 'o', '+', 'x', '#', '%'];
/// Most modes that are drawn.
const MAX_MODES: usize = 6;
/// Points of a curve; a terminal has no room for more.
const MOST_POINTS: usize = 2000;

/// Curves on common axes.
pub(super) struct Curves {
    title: &'static str,
    list: Vec<(String, Vec<(f64, f64)>)>,
    /// Fixed vertical range.
    range: Option<[f64; 2]>,
    /// First and last iteration.
    span: [f64; 2],
}

/// The rows to draw: all, or the later half.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    pub run: &'a Run,
    pub half: bool,
}

impl<'a> Part<'a> {
    fn rows(&self) -> &'a [Row] {
        let rows = self.run.rows();
        &rows[if self.half { rows.len() / 2 } else { 0 }..]
    }
}

impl Curves {
    fn new(part: Part<'_>, title: &'static str, range: Option<[f64; 2]>) -> Self {
        let at = |row: Option<&Row>| row.map_or(0, |r| r.iteration) as f64;
        let (first, last) = (at(part.rows().first()), at(part.rows().last()));
        Self { title, list: Vec::new(), range, span: [first, last.max(first + 1.0)] }
    }

    fn add(&mut self, part: Part<'_>, label: &str, get: impl Fn(&Row) -> Option<f64>) {
        let curve = points(part.rows(), get);
        if has_values(&curve) {
            let finite = |p: &(f64, f64)| p.1.is_finite();
            let curve: Vec<(f64, f64)> = thin(&curve, MOST_POINTS).into_iter().filter(finite).collect();
            self.list.push((label.to_string(), curve));
        }
    }

    /// Whether there is anything to draw.
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// As a chart of that size; without colours, each curve has its sign.
    pub(super) fn chart(&self, plain: bool, height: u16) -> Chart<'_> {
        let datasets = self.list.iter().enumerate().map(|(i, (_, curve))| {
            let k = i % COLOURS.len();
            let marker = if plain { Marker::Custom(SIGNS[k]) } else { Marker::Braille };
            let style = Style::new().fg(Color::Indexed(COLOURS[k]));
            let set = Dataset::default().data(curve).marker(marker).style(style);
            set.graph_type(if curve.len() > 1 { GraphType::Line } else { GraphType::Scatter })
        });
        let [low, high] = self.range.unwrap_or_else(|| self.data_range());
        let y = Axis::default().bounds([low, high]).labels(labels(low, high, if height > 8 { 3 } else { 2 }));
        let x = Axis::default().bounds(self.span).labels(self.span.map(|k| format!("{k:.0}")));
        Chart::new(datasets.collect())
            .block(Block::bordered().title(self.heading(plain)))
            .x_axis(x)
            .y_axis(y)
            .legend_position(None)
    }

    /// The title with a key to the curves.
    fn heading(&self, plain: bool) -> Line<'_> {
        let mut spans = vec![Span::from(format!(" {} ", self.title)).bold()];
        for (i, (label, _)) in self.list.iter().enumerate().filter(|(_, (label, _))| !label.is_empty()) {
            let k = i % COLOURS.len();
            let sign = if plain { SIGNS[k] } else { '━' };
            spans.push(Span::from(format!("{sign} {label} ")).fg(Color::Indexed(COLOURS[k])));
        }
        Line::from(spans)
    }

    /// The values with a margin.
    fn data_range(&self) -> [f64; 2] {
        let values = || self.list.iter().flat_map(|(_, curve)| curve.iter().map(|p| p.1));
        let (low, high) =
            (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
        if low > high {
            return [0.0, 1.0];
        }
        let margin = if high > low { 0.05 * (high - low) } else { 0.1 * low.abs().max(1e-3) };
        [low - margin, high + margin]
    }
}

/// Evenly spaced labels, with the digits that tell them apart.
fn labels(low: f64, high: f64, count: usize) -> Vec<String> {
    let step = (high - low) / (count - 1) as f64;
    // A step of 0.0001 may come out a rounding error short of it.
    let digits = (1.0 - (step.abs().max(1e-12) * (1.0 + 1e-9)).log10().floor()).clamp(0.0, 8.0) as usize;
    (0..count).map(|i| format!("{:.digits$}", low + step * i as f64)).collect()
}

/// Cross-entropy, from the weights and exact.
pub(super) fn cross_entropy(part: Part<'_>) -> Curves {
    let mut curves = Curves::new(part, "cross-entropy, nats", None);
    curves.add(part, "from the weights", |r| r.cross_entropy);
    curves.add(part, "exact", |r| r.cross_entropy_exact);
    curves
}

/// Effective sample size.
pub(super) fn ess(part: Part<'_>) -> Curves {
    let mut curves = Curves::new(part, "ESS / N", Some([0.0, 1.0]));
    if part.run.is_weighted() {
        curves.add(part, "", |r| r.ess);
    }
    curves
}

/// Masses of the model's modes.
pub(super) fn masses(part: Part<'_>) -> Curves {
    let mut curves = Curves::new(part, "masses", Some([0.0, 1.0]));
    for k in 0..MAX_MODES {
        curves.add(part, &format!("mode {k}"), |r| r.masses.as_ref()?.get(k).copied());
    }
    curves
}

#[cfg(test)]
mod tests {
    use super::labels;

    #[test]
    fn labels_tell_their_places_apart() {
        assert_eq!(labels(0.0, 1.0, 3), ["0.00", "0.50", "1.00"]);
        assert_eq!(labels(8.9512, 13.04, 2), ["9.0", "13.0"]);
        assert_eq!(labels(9.0001, 9.0003, 3), ["9.00010", "9.00020", "9.00030"]);
        assert_eq!(labels(-2e6, 2e6, 3), ["-2000000", "0", "2000000"]);
    }
}
