//! The page that a run leaves behind.

use crate::chromium::Page;
use crate::common::{Jarz, SMALL};
use serde_json::{Value, json};

/// Opens a page of the disk and checks what must hold for all of them.
fn open(j: &Jarz, path: &str) -> Page {
    let mut page = Page::new(1280, 900);
    page.open(&format!("file://{}", j.path(path).display()));
    page.wait("jarz.figures.size > 0");
    page
}

/// No complaints, and nothing was asked for besides the page itself.
pub fn check_quiet(page: &mut Page, allowed: impl Fn(&str) -> bool) {
    page.eval("1");
    assert!(page.complaints.is_empty(), "{:?}", page.complaints);
    let foreign: Vec<&String> = page.requests.iter().filter(|url| !allowed(url)).collect();
    assert!(foreign.is_empty(), "{foreign:?}");
}

/// Every axis has labelled ticks.
fn check_ticks(page: &mut Page) {
    let bare = page.eval(&format!(
        "{FIGURE}.panels.filter(p => p.plot.axes.some(a => !(a._values?.filter(v => v).length > 1))).map(p => p.data.title)"
    ));
    assert_eq!(bare, json!([]), "panels with axes without ticks");
}

/// Middle of an element on the screen.
fn place(page: &mut Page, element: &str) -> (f64, f64) {
    let at = page.eval(&format!(
        "(() => {{ const e = {element}; e.scrollIntoView({{ block: 'center' }}); const r = e.getBoundingClientRect(); \
         return [r.x + r.width / 2, r.y + r.height / 2]; }})()"
    ));
    (at[0].as_f64().unwrap(), at[1].as_f64().unwrap())
}

pub fn click(page: &mut Page, element: &str) {
    let (x, y) = place(page, element);
    page.mouse("mousePressed", x, y);
    page.mouse("mouseReleased", x, y);
}

/// How many pixels of a canvas are nearly of a colour.
fn pixels(page: &mut Page, panel: &str, colour: [u8; 3]) -> u64 {
    page.eval(
        "new Promise(requestAnimationFrame).then(() => new Promise(requestAnimationFrame)).then(() => true)",
    );
    let [r, g, b] = colour;
    let count = page.eval(&format!(
        "(() => {{ const c = {panel}.plot.ctx.canvas, copy = new OffscreenCanvas(c.width, c.height).getContext('2d', {{ willReadFrequently: true }}); \
         copy.drawImage(c, 0, 0); const d = copy.getImageData(0, 0, c.width, c.height).data; let n = 0; \
         for (let i = 0; i < d.length; i += 4) n += Math.abs(d[i] - {r}) + Math.abs(d[i + 1] - {g}) + Math.abs(d[i + 2] - {b}) < 12 && d[i + 3] > 200; \
         return n; }})()"
    ));
    count.as_u64().unwrap()
}

const FIGURE: &str = "[...jarz.figures.values()][0]";
const BLUE: [u8; 3] = [0x00, 0x72, 0xb2];
const VERMILION: [u8; 3] = [0xd5, 0x5e, 0x00];

/// The panel with a title.
pub fn panel(title: &str) -> String {
    format!("{FIGURE}.panels.find(p => p.data.title.startsWith({}))", json!(title))
}

pub fn scale(page: &mut Page, panel: &str, axis: &str) -> (f64, f64) {
    let range = page.eval(&format!("[{panel}.plot.scales.{axis}.min, {panel}.plot.scales.{axis}.max]"));
    (range[0].as_f64().unwrap(), range[1].as_f64().unwrap())
}

#[test]
#[ignore = "needs Chromium"]
fn the_page_of_a_run() {
    let j = Jarz::new();
    j.write("small.toml", SMALL);
    j.ok(&["train", "small.toml", "--out", "run", "--quiet"]);
    let mut page = open(&j, "run/report.html");
    page.picture("run");

    // The series are those of the metrics, value by value.
    let rows = crate::common::rows(&j.path("run/metrics.jsonl"));
    let masses = panel("Masses");
    let drawn = page.eval(&format!("{masses}.plot.data[1]"));
    let drawn: Vec<f64> = drawn.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
    let expected: Vec<f64> = rows.iter().map(|r| r["masses"][0].as_f64().unwrap()).collect();
    assert_eq!(drawn.len(), expected.len());
    // Ten significant digits are embedded.
    assert!(
        drawn.iter().zip(&expected).all(|(a, b)| (a - b).abs() <= 1e-9 * b.abs()),
        "{drawn:?} {expected:?}"
    );
    let labels = page.eval(&format!("{masses}.plot.series.slice(1).map(s => s.label)"));
    assert_eq!(labels, json!(["mode 0", "mode 1", "mode 0, walkers", "mode 1, walkers"]));
    let titles = page.eval("[...document.querySelectorAll('.panel-title')].map(e => e.textContent)");
    for title in
        ["KL divergence", "Effective sample size", "Masses", "Means, first coordinate", "Gradient norm"]
    {
        assert!(titles.as_array().unwrap().iter().any(|t| t == title), "no {title} in {titles}");
    }

    // It is drawn, in the colours of the picture; the picture itself is kept for print only.
    assert!(pixels(&mut page, &masses, BLUE) > 100 && pixels(&mut page, &masses, VERMILION) > 100);
    let display = "getComputedStyle(document.querySelector('figure.plot img')).display";
    assert_eq!(page.eval(display), "none");
    page.call("Emulation.setEmulatedMedia", json!({ "media": "print" }));
    assert_eq!(page.eval(display), "block");
    assert_eq!(page.eval("getComputedStyle(document.querySelector('.frame')).display"), "none");
    page.call("Emulation.setEmulatedMedia", json!({ "media": "" }));

    check_ticks(&mut page);

    // The rest of the page.
    let text = page.eval("document.body.textContent");
    for word in
        ["Run run", "cross-entropy", "log Z", "± ", "seed", "computing time", "version", "log_every = 10"]
    {
        assert!(text.as_str().unwrap().contains(word), "no '{word}'");
    }
    check_quiet(&mut page, |url| url.starts_with("file://") && url.ends_with("/run/report.html"));
}

#[test]
#[ignore = "needs Chromium"]
fn legend_zoom_and_hover() {
    let j = Jarz::new();
    j.write("small.toml", SMALL);
    j.ok(&["train", "small.toml", "--out", "run", "--quiet"]);
    let mut page = open(&j, "run/report.html");
    let masses = panel("Masses");

    // A click in the legend hides a series, a second one brings it back.
    let button =
        format!("[...{masses}.box.querySelectorAll('.legend button')].find(b => b.textContent === 'mode 0')");
    let shown = |page: &mut Page| page.eval(&format!("{masses}.plot.series[1].show"));
    let before = pixels(&mut page, &masses, BLUE);
    assert_eq!(
        (shown(&mut page), page.eval(&format!("{button}.getAttribute('aria-pressed')"))),
        (true.into(), "true".into())
    );
    click(&mut page, &button);
    assert_eq!(
        (shown(&mut page), page.eval(&format!("{button}.getAttribute('aria-pressed')"))),
        (false.into(), "false".into())
    );
    let without = pixels(&mut page, &masses, BLUE);
    assert!(without < before / 2, "{before} blue pixels, {without} without the series");
    click(&mut page, &button);
    assert_eq!(shown(&mut page), true);
    assert_eq!(pixels(&mut page, &masses, BLUE), before);

    // A drag across half of a panel zooms all panels over the iterations, and the vertical axis follows the data.
    let norm = panel("Gradient norm");
    let (x, y) = place(&mut page, &format!("{norm}.plot.over"));
    let width = page.eval(&format!("{norm}.plot.over.clientWidth")).as_f64().unwrap();
    let whole = scale(&mut page, &norm, "x");
    let tall = scale(&mut page, &norm, "y");
    assert_eq!(whole, (0.0, 300.0));
    page.drag((x, y), (x + 0.25 * width, y + 2.0));
    page.wait(&format!("{norm}.zoom.x !== null"));
    let (low, high) = scale(&mut page, &norm, "x");
    // Two pixels of a panel, in iterations.
    let pixel = 300.0 / width * 2.0;
    assert!((low - 150.0).abs() < pixel && (high - 225.0).abs() < pixel, "{low} {high}");
    assert_eq!(scale(&mut page, &masses, "x"), (low, high), "the panels zoom together");
    let zoomed = scale(&mut page, &norm, "y");
    assert!(zoomed.0 > tall.0 || zoomed.1 < tall.1, "{zoomed:?} in {tall:?}");
    assert_eq!(scale(&mut page, &masses, "y"), (-0.02, 1.02), "a fixed range stays");
    page.picture("zoomed");

    // A drag downwards zooms the vertical axis of that panel alone.
    let height = page.eval(&format!("{masses}.plot.over.clientHeight")).as_f64().unwrap();
    let (x, y) = place(&mut page, &format!("{masses}.plot.over"));
    page.drag((x, y - 0.25 * height), (x + 2.0, y + 0.25 * height));
    page.wait(&format!("{masses}.zoom.y !== null"));
    let (low, high) = scale(&mut page, &masses, "y");
    assert!((low - 0.24).abs() < 0.02 && (high - 0.76).abs() < 0.02, "{low} {high}");
    assert_eq!(page.eval(&format!("{norm}.zoom.y")), Value::Null);
    click(&mut page, &format!("{FIGURE}.again"));
    assert_eq!((scale(&mut page, &norm, "x"), scale(&mut page, &norm, "y")), (whole, tall));
    assert_eq!(scale(&mut page, &masses, "y"), (-0.02, 1.02));

    // The box under the pointer holds the values of the nearest iteration.
    let (x, y) = place(&mut page, &format!("{masses}.plot.over"));
    page.mouse("mouseMoved", x + 1.0, y);
    page.wait(&format!("!{masses}.tip.hidden"));
    page.picture("hover");
    let tip = page.eval(&format!("{masses}.tip.innerText"));
    let tip = tip.as_str().unwrap();
    let rows = crate::common::rows(&j.path("run/metrics.jsonl"));
    let row = rows.iter().find(|r| r["iteration"] == 150).unwrap();
    // Five significant digits of a number between 0.1 and 1.
    let mass = format!("{:.5}", row["masses"][0].as_f64().unwrap());
    let mass = mass.trim_end_matches('0');
    assert!(
        tip.contains("iterations 150") && tip.contains("mode 0") && tip.contains(mass),
        "{tip}, not {mass}"
    );
    assert_eq!(page.eval(&format!("{norm}.tip.hidden")), true, "only where the pointer is");
    check_quiet(&mut page, |url| url.starts_with("file://"));
}

#[test]
#[ignore = "needs Chromium"]
fn pages_of_repeated_and_of_several_runs() {
    let j = Jarz::new();
    j.write("small.toml", SMALL);
    let quick = ["train", "small.toml", "--set", "run.iterations=60", "--quiet", "--out"];
    j.ok(&[&quick[..], &["many", "--runs", "3"]].concat());
    j.ok(&[&quick[..], &["pcd", "--set", "algorithm.kind=pcd"]].concat());
    let mut page = open(&j, "many/report.html");
    page.picture("repeated");
    assert_eq!(page.eval("document.querySelectorAll('tbody tr').length"), 3);
    check_quiet(&mut page, |url| url.starts_with("file://"));

    j.ok(&["report", "many", "pcd", "many/runs/run-02", "--out", "compared.html"]);
    let mut page = open(&j, "compared.html");
    page.picture("compared");
    let labels = page.eval(&format!("{}.plot.series.slice(1).map(s => s.label)", panel("Cross-entropy")));
    assert_eq!(labels, json!(["many", "pcd", "run-02", "many, exact", "run-02, exact"]));
    let ess =
        page.eval(&format!("{}.plot.series.slice(1).map(s => s.label)", panel("Effective sample size")));
    assert_eq!(ess, json!(["many", "run-02"]), "PCD has no weights");
    let keys = page.eval("[...document.querySelectorAll('td:first-child')].map(e => e.textContent)");
    for key in ["algorithm.kind", "run.runs", "seed"] {
        assert!(keys.as_array().unwrap().iter().any(|k| k == key), "{keys}");
    }
    // One legend for all panels: a click hides the series everywhere.
    click(
        &mut page,
        &format!(
            "[...{FIGURE}.frame.querySelectorAll('.legend button')].find(b => b.textContent === 'many')"
        ),
    );
    let hidden = page.eval(&format!(
        "{FIGURE}.panels.every(p => p.plot.series.slice(1).every(s => s.show === (s.label !== 'many')))"
    ));
    assert_eq!(hidden, true);
    check_quiet(&mut page, |url| url.starts_with("file://"));
}

/// Whatever the figure holds, the page shows it without complaint: odd axes, gaps, names made of markup.
#[test]
#[ignore = "needs Chromium"]
fn odd_figures() {
    use jarz_figures::{Figure, Marker, Panel, Report, Scale, Series};
    let j = Jarz::new();
    let nasty = "</script><script>throw 1</script><b>&amp;";
    let back: Vec<(f64, f64)> = (0..50).map(|i| ((f64::from(i) * 0.3).sin(), f64::from(i))).collect();
    let nan = f64::NAN;
    let figure = Figure::new()
        .title(nasty)
        .panel(
            Panel::new(nasty)
                .x(nasty)
                .y(nasty)
                .hline(0.5, nasty)
                .vline(0.2, nasty)
                .series(Series::new(nasty, back)),
        )
        .panel(Panel::new("nothing"))
        .panel(Panel::new("no values").series(Series::new("a", vec![(0.0, nan), (nan, 1.0)])))
        .panel(Panel::new("one point").y_log().series(Series::new("a", vec![(3.0, 1e-9)])))
        .panel(Panel::new("huge").series(Series::new("a", vec![(-1e299, -1e299), (1e299, 1e299)])))
        .panel(
            Panel::new("log").x_log().y_scale(Scale::SymLog { linthresh: 1e-3 }).series(
                Series::new("a", vec![(0.0, 1.0), (1.0, -5.0), (1e6, 30.0), (1e7, nan)])
                    .band(vec![(1.0, -8.0, f64::INFINITY), (10.0, -1.0, 1.0), (1e6, 2.0, 80.0)])
                    .marker(Marker::Diamond),
            ),
        );
    std::fs::write(j.path("odd.html"), Report::new(nasty).figure(nasty, &figure).to_html()).unwrap();
    let mut page = open(&j, "odd.html");
    page.picture("odd");
    assert_eq!(page.eval(&format!("{FIGURE}.panels.length")), 6);
    assert_eq!(page.eval("document.querySelector('h1').textContent"), nasty);
    assert_eq!(page.eval(&format!("{FIGURE}.panels[0].title.textContent")), nasty);
    let ticks = page.eval(&format!("{FIGURE}.panels[5].plot.axes[1]._values"));
    assert!(ticks.as_array().unwrap().iter().any(|t| t == "0"), "{ticks}");
    check_ticks(&mut page);
    for width in [400, 1600] {
        let size = json!({ "width": width, "height": 800, "deviceScaleFactor": 2, "mobile": false });
        page.call("Emulation.setDeviceMetricsOverride", size);
        page.wait(&format!("{FIGURE}.panels.every(p => p.plot.width === p.box.clientWidth)"));
        assert_eq!(page.eval("document.documentElement.scrollWidth <= innerWidth"), true);
    }
    page.call(
        "Emulation.setEmulatedMedia",
        json!({ "features": [{ "name": "prefers-color-scheme", "value": "dark" }] }),
    );
    page.wait(&format!("{FIGURE}.panels[0].theme.ink === '#e6e9ec'"));
    page.picture("dark");
    check_quiet(&mut page, |url| url.starts_with("file://"));
}
