//! Whatever the input, there is a figure and it is valid.

use jarz_figures::{Dash, Figure, Marker, Panel, Report, Scale, Series, Style, thin};
use proptest::prelude::*;

fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        3 => any::<f64>(),
        3 => -10.0..10.0f64,
        1 => (-310..309i32).prop_map(|e| 10f64.powi(e)),
        1 => prop::sample::select(vec![
            0.0, -0.0, 1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN, f64::MIN_POSITIVE, 5e-324,
        ]),
    ]
}

fn scale() -> impl Strategy<Value = Scale> {
    prop_oneof![
        Just(Scale::Linear),
        Just(Scale::Log),
        value().prop_map(|linthresh| Scale::SymLog { linthresh })
    ]
}

fn style() -> impl Strategy<Value = Style> {
    let dash = prop::option::of(Just(Dash::DashDot));
    let marker =
        prop::option::of(prop::sample::select(vec![Marker::Circle, Marker::Triangle, Marker::Cross]));
    (prop::option::of(any::<usize>()), dash, prop_oneof![Just(1.8), value()], marker)
        .prop_map(|(colour, dash, width, marker)| Style { colour, dash, width, marker })
}

fn series() -> impl Strategy<Value = Series> {
    let points = prop::collection::vec((value(), value()), 0..40);
    let band = prop::option::of(prop::collection::vec((value(), value(), value()), 0..10));
    (".{0,30}", points, band, style()).prop_map(|(label, points, band, style)| Series {
        label,
        points,
        band,
        style,
    })
}

fn panel() -> impl Strategy<Value = Panel> {
    let range = || prop::option::of((value(), value()));
    let lines = prop::collection::vec((value(), ".{0,10}", any::<bool>()), 0..4);
    let series = prop::collection::vec(series(), 0..4);
    (".*", ".*", ".*", scale(), scale(), range(), range(), series, lines).prop_map(
        |(title, x, y, x_scale, y_scale, x_range, y_range, series, lines)| {
            let panel = Panel { series, x_range, y_range, ..Panel::new(title) };
            let panel = panel.x(x).y(y).x_scale(x_scale).y_scale(y_scale);
            lines.into_iter().fold(panel, |panel, (at, label, upright)| {
                if upright { panel.vline(at, label) } else { panel.hline(at, label) }
            })
        },
    )
}

fn figure() -> impl Strategy<Value = Figure> {
    let panels = prop::collection::vec(panel(), 0..4);
    (
        prop::option::of(".*"),
        panels,
        prop_oneof![Just(300.0), value()],
        prop_oneof![Just(200.0), value()],
        0..6usize,
    )
        .prop_map(|(title, panels, width_per_panel, height, columns)| Figure {
            title,
            panels,
            width_per_panel,
            height,
            columns,
        })
}

/// Every number in the attributes that hold numbers can be read and is finite.
fn check_numbers(svg: &str) {
    let document = roxmltree::Document::parse(svg).expect("well-formed");
    let names =
        ["d", "x", "y", "width", "height", "cx", "cy", "r", "viewBox", "stroke-width", "font-size", "dy"];
    for node in document.descendants() {
        for attribute in node.attributes().filter(|a| names.contains(&a.name())) {
            let separators = [' ', 'M', 'L', 'Z'];
            for part in attribute.value().split(separators).filter(|p| !p.is_empty()) {
                let number: f64 =
                    part.parse().unwrap_or_else(|_| panic!("{part:?} in {}", attribute.value()));
                assert!(number.is_finite() && number.abs() <= 1e5);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_figure_is_valid_svg(figure in figure()) {
        let svg = figure.to_svg();
        check_numbers(&svg);
        prop_assert_eq!(&svg, &figure.to_svg());
        let (width, height) = figure.size();
        let start = format!(r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}""#);
        prop_assert!(svg.starts_with(&start));
        let html = Report::new("r").figure("f", &figure).to_html();
        prop_assert!(html.ends_with("</html>\n"));
    }

    #[test]
    fn thinning_is_bounded_and_keeps_the_extremes(
        points in prop::collection::vec((value(), value()), 0..300),
        max in 2..100usize,
    ) {
        let small = thin(&points, max);
        prop_assert!(small.len() <= max);
        let best = |list: &[(f64, f64)], pick: fn(f64, f64) -> f64| {
            list.iter().filter(|p| p.0.is_finite() && p.1.is_finite()).map(|p| p.1).reduce(pick)
        };
        prop_assert_eq!(best(&points, f64::max), best(&small, f64::max));
        prop_assert_eq!(best(&points, f64::min), best(&small, f64::min));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_figure_can_be_rasterised(panels in prop::collection::vec(panel(), 0..3)) {
        let figure = Figure { panels, ..Figure::new() };
        prop_assert!(figure.to_png(1.0).is_ok());
    }
}
