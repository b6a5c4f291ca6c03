//! What ends up in the SVG and in the PNG.

use jarz_figures::{Dash, Figure, FigureError, Marker, PALETTE, Panel, Scale, Series, Style, thin};
use roxmltree::Document;
use std::fs;

fn wave(phase: f64) -> Vec<(f64, f64)> {
    (0..200).map(|i| (i as f64, (i as f64 / 20.0 + phase).sin())).collect()
}

fn sample() -> Figure {
    let panel = |title: &str| {
        (0..4).fold(Panel::new(title).x("iterations").y("value").hline(0.25, "data 0.25"), |panel, k| {
            panel.series(Series::new(format!("method {k}"), wave(k as f64)))
        })
    };
    Figure::new().title("Overview").panel(panel("first")).panel(panel("second")).panel(panel("third"))
}

/// All texts of an SVG, one per `text` element.
fn texts(svg: &str) -> Vec<String> {
    let document = Document::parse(svg).expect("well-formed");
    document
        .descendants()
        .filter(|n| n.has_tag_name("text"))
        .map(|n| n.descendants().filter(|d| d.is_text()).filter_map(|d| d.text()).collect())
        .collect()
}

/// Width, height and RGBA bytes of a PNG.
fn pixels(png: &[u8]) -> (u32, u32, Vec<u8>) {
    let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
    let mut buffer = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut buffer).unwrap();
    assert_eq!((info.color_type, info.bit_depth), (png::ColorType::Rgba, png::BitDepth::Eight));
    (info.width, info.height, buffer)
}

/// How many pixels have exactly this colour.
fn count(rgba: &[u8], colour: &str) -> usize {
    let value = u32::from_str_radix(&colour[1..], 16).unwrap().to_be_bytes();
    rgba.chunks_exact(4).filter(|p| p[..3] == value[1..]).count()
}

fn count_of(list: &[String], wanted: &str) -> usize {
    list.iter().filter(|t| *t == wanted).count()
}

#[test]
fn the_svg_holds_all_labels_and_one_shared_legend() {
    let svg = sample().to_svg();
    let list = texts(&svg);
    for wanted in ["Overview", "first", "second", "third", "method 0", "method 1", "method 2", "method 3"] {
        assert_eq!(count_of(&list, wanted), 1, "{wanted}");
    }
    for wanted in ["iterations", "value", "data 0.25"] {
        assert_eq!(count_of(&list, wanted), 3, "{wanted}");
    }
    for colour in &PALETTE[..4] {
        // Three panels and the legend.
        assert_eq!(svg.matches(&format!(r#"stroke="{colour}""#)).count(), 4, "{colour}");
    }
    assert_eq!(svg, sample().to_svg(), "the output is deterministic");
}

#[test]
fn the_png_shows_every_series_at_the_expected_size() {
    let figure = sample();
    let (w, h) = figure.size();
    for scale in [1.0f32, 2.0] {
        let (width, height, rgba) = pixels(&figure.to_png(scale).unwrap());
        assert_eq!((width, height), ((w as f32 * scale) as u32, (h as f32 * scale) as u32));
        for colour in &PALETTE[..4] {
            assert!(count(&rgba, colour) > 50, "{colour} at {scale}");
        }
        let white = count(&rgba, "#ffffff");
        let total = (width * height) as usize;
        assert!(white > total / 2 && white < total * 98 / 100, "{white} of {total}");
    }
}

#[test]
fn text_is_drawn_with_the_embedded_font() {
    let bare = Figure::new().panel(Panel::new(""));
    let titled = Figure::new().panel(Panel::new("A title"));
    let dark = |figure: &Figure| count(&pixels(&figure.to_png(2.0).unwrap()).2, "#222222");
    assert!(dark(&titled) > dark(&bare) + 100);
}

#[test]
fn impossible_image_sizes_are_refused() {
    for scale in [0.0, -1.0, f32::NAN, f32::INFINITY, 1e6] {
        assert!(matches!(sample().to_png(scale), Err(FigureError::Size { .. })), "{scale}");
    }
}

#[test]
fn panels_with_other_series_get_their_own_legend() {
    let one = |name: &str| Panel::new("").series(Series::new(name, wave(0.0)));
    // Both are the first of their panel, hence look the same.
    let list = texts(&Figure::new().panel(one("loss")).panel(one("rate")).panel(one("rate")).to_svg());
    assert_eq!((count_of(&list, "loss"), count_of(&list, "rate")), (1, 2));
    // With its own colour the second can share the legend of the first.
    let other = Panel::new("").series(Series::new("rate", wave(0.0)).colour(1));
    let figure = Figure::new().panel(one("loss")).panel(other.clone()).panel(other);
    assert_eq!(count_of(&texts(&figure.to_svg()), "rate"), 1);
}

#[test]
fn companions_share_the_colour_and_do_not_shift_the_others() {
    let figure = Figure::new().panel(
        Panel::new("")
            .series(Series::new("a", wave(0.0)))
            .series(Series::new("a, estimated", wave(0.1)).companion_of(0))
            .series(Series::new("b", wave(0.2))),
    );
    let svg = figure.to_svg();
    assert_eq!(svg.matches(&format!(r#"stroke="{}""#, PALETTE[0])).count(), 4);
    assert_eq!(svg.matches(&format!(r#"stroke="{}""#, PALETTE[1])).count(), 2);
    assert_eq!(Style::companion_of(0).dash, Some(Dash::ShortDash));
}

#[test]
fn line_styles_differ_without_colour() {
    let svg = sample().to_svg();
    let document = Document::parse(&svg).unwrap();
    let mut styles: Vec<Option<&str>> = document
        .descendants()
        .filter(|n| n.attribute("stroke").is_some_and(|s| PALETTE.contains(&s)))
        .map(|n| n.attribute("stroke-dasharray"))
        .collect();
    styles.sort();
    styles.dedup();
    assert_eq!(styles.len(), 4);
}

#[test]
fn points_that_cannot_be_drawn_break_the_line() {
    let broken = |bad: f64, panel: Panel| {
        let mut points = wave(0.0);
        points.iter_mut().for_each(|p| p.1 += 2.0);
        points[100].1 = bad;
        let svg = Figure::new().panel(panel.series(Series::new("", points))).to_svg();
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{bad}");
        svg.matches(&format!(r#"stroke="{}""#, PALETTE[0])).count()
    };
    assert_eq!(broken(2.0, Panel::new("")), 1);
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(broken(bad, Panel::new("")), 2, "{bad}");
    }
    for bad in [0.0, -3.0] {
        assert_eq!(broken(bad, Panel::new("").y_log()), 2, "{bad}");
    }
    assert_eq!(broken(-3.0, Panel::new("").y_scale(Scale::SymLog { linthresh: 0.1 })), 1);
}

#[test]
fn edge_cases_give_a_figure() {
    let with = |points: Vec<(f64, f64)>| Panel::new("t").x("x").y("y").series(Series::new("s", points));
    let no_data = |panel: Panel| {
        let figure = Figure::new().panel(panel);
        assert!(figure.to_png(1.0).is_ok());
        count_of(&texts(&figure.to_svg()), "no data")
    };
    assert_eq!(no_data(with(vec![])), 1);
    assert_eq!(no_data(with(vec![(0.0, f64::NAN), (1.0, f64::INFINITY)])), 1);
    assert_eq!(no_data(with(vec![(1.0, 0.0), (2.0, -4.0)]).y_log()), 1);
    assert_eq!(no_data(Panel::new("no series at all")), 1);
    assert_eq!(no_data(with(vec![(3.0, 7.0)])), 0);
    assert_eq!(no_data(with(vec![(0.0, 7.0), (5.0, 7.0)])), 0);
    assert_eq!(no_data(with(vec![(0.0, 1e15), (5.0, 1e15 + 1.0)])), 0);
    assert_eq!(no_data(with(vec![(1.0, 1.0), (5.0, 2.0)]).y_scale(Scale::SymLog { linthresh: f64::NAN })), 0);
    assert!(texts(&Figure::new().to_svg()).contains(&"no data".to_string()));
    // A lone point is a dot.
    assert!(Figure::new().panel(with(vec![(3.0, 7.0)])).to_svg().contains("<circle"));
}

#[test]
fn long_numbers_widen_the_margin_instead_of_overlapping() {
    let left = |y: f64| {
        let points = vec![(0.0, y), (1.0, y + 1.0)];
        let svg = Figure::new().panel(Panel::new("").y("y").series(Series::new("", points))).to_svg();
        let document = Document::parse(&svg).unwrap();
        let clip = document.descendants().filter(|n| n.has_tag_name("svg")).nth(1).unwrap();
        clip.attribute("x").unwrap().parse::<f64>().unwrap()
    };
    assert!(left(99_999.0) > left(0.0) + 15.0);
}

#[test]
fn horizontal_tick_labels_keep_their_distance() {
    for width in [150.0, 220.0, 340.0, 700.0] {
        for end in [1.0, 999_999.0, 1e-4, 3e12] {
            let points = vec![(0.0, 0.0), (end, 1.0)];
            let panel = Panel::new("").series(Series::new("", points));
            let svg = Figure::new().panel(panel).panel_size(width, 200.0).to_svg();
            let document = Document::parse(&svg).unwrap();
            let labels: Vec<(f64, usize)> = document
                .descendants()
                .filter(|n| {
                    n.attribute("text-anchor") == Some("middle") && n.attribute("font-size") == Some("10.5")
                })
                .map(|n| (n.attribute("x").unwrap().parse().unwrap(), n.text().unwrap().chars().count()))
                .collect();
            assert!(!labels.is_empty(), "{width} {end}");
            for pair in labels.windows(2) {
                let room = 5.0 * (pair[0].1 + pair[1].1) as f64 / 2.0;
                assert!(pair[1].0 - pair[0].0 > room, "{width} {end} {pair:?}");
            }
        }
    }
}

#[test]
fn markup_in_labels_is_text() {
    let nasty = r#"<script>&"'</script>]]>"#;
    let figure = Figure::new()
        .title(nasty)
        .panel_size(500.0, 240.0)
        .panel(Panel::new(nasty).x(nasty).y(nasty).hline(0.0, nasty).series(Series::new(nasty, wave(0.0))));
    let svg = figure.to_svg();
    assert!(!svg.contains("<script"));
    assert_eq!(count_of(&texts(&svg), nasty), 6);
}

#[test]
fn long_curves_give_small_files() {
    let points: Vec<(f64, f64)> =
        (0..100_000).map(|i| (i as f64, (i as f64 * 0.001).sin() + (i as f64 * 1.7).sin())).collect();
    let svg = Figure::new().panel(Panel::new("").series(Series::new("", points))).to_svg();
    assert!(svg.len() < 60_000, "{}", svg.len());
}

#[test]
fn bands_markers_and_vertical_lines_are_drawn() {
    let band: Vec<(f64, f64, f64)> = wave(0.0)
        .iter()
        .enumerate()
        .map(|(i, p)| (p.0, if i == 50 { f64::NAN } else { p.1 - 0.1 }, p.1 + 0.1))
        .collect();
    let shapes = [Marker::Circle, Marker::Square, Marker::Triangle, Marker::Diamond, Marker::Cross];
    let mut panel = Panel::new("").vline(77.0, "here").series(Series::new("band", wave(0.0)).band(band));
    for shape in shapes {
        panel = panel.series(Series::new(format!("{shape:?}"), wave(1.0)).marker(shape).width(1.0));
    }
    let figure = Figure::new().panel(panel);
    let svg = figure.to_svg();
    // Two parts of the band and its legend sample.
    assert_eq!(svg.matches("fill-opacity").count(), 3);
    assert!(texts(&svg).contains(&"here".to_string()));
    assert!(figure.to_png(1.0).is_ok());
}

#[test]
fn saving_writes_both_files_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("new/figures");
    sample().save(&target, "run-1").unwrap();
    sample().save(&target, "run-1").unwrap();
    let mut names: Vec<_> = fs::read_dir(&target).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["run-1.png", "run-1.svg"]);
    assert_eq!(fs::read_to_string(target.join("run-1.svg")).unwrap(), sample().to_svg());
    assert_eq!(fs::read(target.join("run-1.png")).unwrap(), sample().to_png(2.0).unwrap());
    for stem in ["", "..", "a/b"] {
        assert!(matches!(sample().save(&target, stem), Err(FigureError::Stem(_))));
    }
    fs::write(folder.path().join("file"), "").unwrap();
    let error = sample().save(&folder.path().join("file"), "x").unwrap_err();
    assert!(error.to_string().contains("x.svg"), "{error}");
}

#[test]
fn thinning_keeps_extremes_ends_and_gaps() {
    let mut points: Vec<(f64, f64)> = (0..100_000).map(|i| (i as f64, (i as f64 * 0.01).sin())).collect();
    points[12_345].1 = 50.0;
    points[54_321].1 = -50.0;
    for max in [2, 3, 10, 1000, 99_999] {
        let small = thin(&points, max);
        assert!(small.len() <= max);
        assert!(small.contains(&(12_345.0, 50.0)) && small.contains(&(54_321.0, -50.0)), "{max}");
        assert!(small.windows(2).all(|w| w[0].0 < w[1].0));
    }
    assert_eq!(thin(&points, 100_000), points);
    assert_eq!(thin(&points, 1), points[..1]);
    assert!(thin(&points, 0).is_empty() && thin(&[], 5).is_empty());
    let small = thin(&points, 500);
    assert_eq!((small[0], small[small.len() - 1]), (points[0], points[99_999]));
    points[70_000].1 = f64::NAN;
    let small = thin(&points, 500);
    assert!(small.len() <= 500 && small.iter().filter(|p| p.1.is_nan()).count() == 1);
}
