//! A figure as data for the script that draws it in a browser: same axes, colours and legend as the SVG.

use crate::axis::Axis;
use crate::layout::{Layout, with_panels};
use crate::legend::Legends;
use crate::style::{Look, Marker};
use crate::{Direction, Figure, Panel, Reference, Scale, Series, thin};
use serde::Serialize;

/// Most points of a curve that a page carries; longer ones are thinned, extremes kept.
const MOST_POINTS: usize = 4000;

#[derive(Serialize)]
struct FigureData<'a> {
    title: &'a str,
    columns: usize,
    /// Width and height of a panel.
    size: [f64; 2],
    /// Whether one legend serves all panels.
    shared_legend: bool,
    panels: Vec<PanelData<'a>>,
    /// Lists of x, which the curves refer to by their place: most curves share one.
    grids: Vec<Vec<Option<f64>>>,
}

#[derive(Serialize)]
struct PanelData<'a> {
    title: &'a str,
    x: AxisData<'a>,
    y: AxisData<'a>,
    series: Vec<SeriesData<'a>>,
    references: Vec<ReferenceData<'a>>,
}

#[derive(Serialize)]
struct AxisData<'a> {
    label: &'a str,
    scale: &'static str,
    linthresh: Option<f64>,
    low: f64,
    high: f64,
    /// Whether the range was asked for, so that it does not follow the data.
    fixed: bool,
}

#[derive(Serialize)]
struct SeriesData<'a> {
    label: &'a str,
    colour: &'static str,
    width: f64,
    dash: Vec<f64>,
    marker: Option<&'static str>,
    grid: usize,
    y: Vec<Option<f64>>,
    band: Option<BandData>,
}

#[derive(Serialize)]
struct BandData {
    grid: usize,
    low: Vec<Option<f64>>,
    high: Vec<Option<f64>>,
}

#[derive(Serialize)]
struct ReferenceData<'a> {
    horizontal: bool,
    value: Option<f64>,
    label: &'a str,
}

/// The figure as JSON that may stand in an HTML `<script>`: no character in it means anything to HTML.
pub(crate) fn json(figure: &Figure) -> String {
    let figure = &*with_panels(figure);
    let layout = Layout::of(figure);
    let mut grids = Grids::default();
    let panels = figure
        .panels
        .iter()
        .zip(&layout.plots)
        .map(|(panel, plot)| PanelData {
            title: &panel.title,
            x: axis(&panel.x_label, &plot.x, panel.x_range),
            y: axis(&panel.y_label, &plot.y, panel.y_range),
            series: panel.looks().iter().map(|(s, look)| series(s, look, &mut grids)).collect(),
            references: references(panel),
        })
        .collect();
    let data = FigureData {
        title: figure.title.as_deref().unwrap_or_default(),
        columns: layout.columns,
        size: layout.panel,
        shared_legend: matches!(layout.legends, Legends::Shared(_)),
        panels,
        grids: grids.lists,
    };
    let text = serde_json::to_string(&data).unwrap_or_else(|_| "null".into());
    text.replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e")
}

/// The lists of x met so far.
#[derive(Default)]
struct Grids {
    lists: Vec<Vec<Option<f64>>>,
}

impl Grids {
    fn place(&mut self, list: Vec<Option<f64>>) -> usize {
        self.lists.iter().position(|known| *known == list).unwrap_or_else(|| {
            self.lists.push(list);
            self.lists.len() - 1
        })
    }
}

fn axis<'a>(label: &'a str, axis: &Axis, asked: Option<(f64, f64)>) -> AxisData<'a> {
    let (scale, linthresh) = match axis.scale {
        Scale::Linear => ("linear", None),
        Scale::Log => ("log", None),
        Scale::SymLog { linthresh } => ("symlog", Some(linthresh)),
    };
    let used = |(a, b): (f64, f64)| (a.min(b), a.max(b)) == (axis.low, axis.high);
    AxisData { label, scale, linthresh, low: axis.low, high: axis.high, fixed: asked.is_some_and(used) }
}

fn series<'a>(series: &'a Series, look: &Look, grids: &mut Grids) -> SeriesData<'a> {
    let points = thin(&series.points, MOST_POINTS);
    let band = series.band.as_ref().map(|band| {
        let band = thin_band(band, MOST_POINTS);
        BandData {
            grid: grids.place(band.iter().map(|b| short(b.0)).collect()),
            low: band.iter().map(|b| short(b.1)).collect(),
            high: band.iter().map(|b| short(b.2)).collect(),
        }
    });
    SeriesData {
        label: &series.label,
        colour: look.colour,
        width: look.width,
        dash: look.dash.pattern().iter().map(|part| round(part * look.width)).collect(),
        marker: look.marker.map(marker),
        grid: grids.place(points.iter().map(|p| short(p.0)).collect()),
        y: points.iter().map(|p| short(p.1)).collect(),
        band,
    }
}

fn marker(marker: Marker) -> &'static str {
    match marker {
        Marker::Circle => "circle",
        Marker::Square => "square",
        Marker::Triangle => "triangle",
        Marker::Diamond => "diamond",
        Marker::Cross => "cross",
    }
}

fn references(panel: &Panel) -> Vec<ReferenceData<'_>> {
    let data = |r: &'_ Reference| (r.direction == Direction::Horizontal, short(r.value));
    let with_label = |r| {
        let (horizontal, value) = data(r);
        ReferenceData { horizontal, value, label: &r.label }
    };
    panel.references.iter().map(with_label).collect()
}

/// Reduces a band to at most `max` places, each with the outermost edges of those it stands for.
fn thin_band(band: &[(f64, f64, f64)], max: usize) -> Vec<(f64, f64, f64)> {
    let run = band.len().div_ceil(max).max(1);
    let outermost = |run: &[(f64, f64, f64)]| {
        let low = run.iter().map(|b| b.1).fold(f64::NAN, f64::min);
        let high = run.iter().map(|b| b.2).fold(f64::NAN, f64::max);
        (run[0].0, low, high)
    };
    band.chunks(run).map(outermost).collect()
}

/// A number with ten significant digits, more than any zoom shows; none if it is not finite.
fn short(value: f64) -> Option<f64> {
    let rounded: f64 = format!("{value:.9e}").parse().ok()?;
    rounded.is_finite().then_some(rounded)
}

fn round(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn parsed(figure: &Figure) -> Value {
        serde_json::from_str(&json(figure)).unwrap()
    }

    #[test]
    fn the_data_is_that_of_the_figure() {
        let points = vec![(0.0, 1.0), (1.0, f64::NAN), (2.0, 1.0 / 3.0)];
        let band = vec![(0.0, 0.5, f64::INFINITY), (2.0, 0.25, 0.5)];
        let panel = Panel::new("p").x("k").y("mass").y_range(0.0, 1.0).hline(0.25, "data");
        let panel = panel.series(Series::new("a", points.clone()).band(band).dash(crate::Dash::Dashed));
        let panel = panel.series(Series::new("b", points).marker(Marker::Cross));
        let data = parsed(&Figure::new().title("t").panel(panel));
        let panel = &data["panels"][0];
        assert_eq!(data["title"], "t");
        assert_eq!(panel["series"][0]["y"], serde_json::json!([1.0, null, 0.3333333333]));
        assert_eq!(panel["series"][0]["colour"], crate::PALETTE[0]);
        assert_eq!(panel["series"][1]["colour"], crate::PALETTE[1]);
        assert_eq!(panel["series"][0]["dash"], serde_json::json!([7.2, 3.6]));
        assert_eq!(panel["series"][0]["band"]["high"], serde_json::json!([null, 0.5]));
        assert_eq!(panel["series"][0]["grid"], panel["series"][1]["grid"], "equal lists are stored once");
        assert_eq!(panel["y"]["fixed"], true);
        // Markers keep three percent of the range away from the ends.
        assert_eq!((&panel["x"]["low"], &panel["x"]["high"]), (&Value::from(-0.06), &Value::from(2.06)));
        assert_eq!(panel["references"][0]["value"], 0.25);
    }

    #[test]
    fn nothing_in_it_means_anything_to_html() {
        let nasty = "</script><!-- & \u{2028} \" \\";
        let panel = Panel::new(nasty).x(nasty).y(nasty).hline(0.0, nasty);
        let figure = Figure::new().title(nasty).panel(panel.series(Series::new(nasty, vec![(0.0, 0.0)])));
        let text = json(&figure);
        assert!(!text.contains(['<', '>', '&']));
        assert_eq!(parsed(&figure)["panels"][0]["series"][0]["label"], nasty);
    }

    #[test]
    fn long_curves_are_thinned_and_keep_their_extremes() {
        let n = 50_000;
        let points: Vec<(f64, f64)> = (0..n).map(|i| (i as f64, f64::from(i * 7919 % 1000))).collect();
        let band: Vec<(f64, f64, f64)> = points.iter().map(|p| (p.0, p.1 - 1.0, p.1 + 1.0)).collect();
        let figure = Figure::new().panel(Panel::new("").series(Series::new("a", points).band(band)));
        let data = parsed(&figure);
        let series = &data["panels"][0]["series"][0];
        let list =
            |v: &Value| -> Vec<f64> { v.as_array().unwrap().iter().filter_map(Value::as_f64).collect() };
        let (y, low, high) =
            (list(&series["y"]), list(&series["band"]["low"]), list(&series["band"]["high"]));
        assert!(y.len() <= MOST_POINTS && low.len() <= MOST_POINTS);
        let top = |v: &[f64]| v.iter().copied().fold(f64::MIN, f64::max);
        let bottom = |v: &[f64]| v.iter().copied().fold(f64::MAX, f64::min);
        assert_eq!((bottom(&y), top(&y), bottom(&low), top(&high)), (0.0, 999.0, -1.0, 1000.0));
    }
}
