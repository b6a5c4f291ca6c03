//! The report page.

use jarz_figures::{Figure, Panel, Report, Section, Series};

fn strings(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|c| c.to_string()).collect()
}

fn sample() -> Report {
    let figure =
        Figure::new().panel(Panel::new("Größe").series(Series::new("s", vec![(0.0, 1.0), (1.0, 2.0)])));
    Report::new("Runs & results")
        .subtitle("a < b")
        .heading("Part <one>")
        .text("First\nline.\n\n\nSecond <b>paragraph</b>.")
        .figure("A \"caption\"", &figure)
        .section(Section::Table {
            caption: "Table".into(),
            headers: strings(&["name", "value"]),
            rows: vec![strings(&["x<y", "1.5"]), strings(&["z", "−2 ± 0.1", "5 %"]), strings(&["short"])],
        })
        .section(Section::KeyValues { caption: String::new(), pairs: vec![("seed".into(), "<7>".into())] })
        .section(Section::Code { caption: "Log".into(), text: "\n  if a < b && c {\n".into() })
}

/// The page is written such that, apart from the tags that need no end, an XML parser can read it.
fn as_xml(html: &str) -> String {
    let mut out = String::new();
    for line in html.lines().filter(|l| !l.starts_with("<!DOCTYPE")) {
        if line.starts_with("<meta") || line.starts_with("<img") {
            out.push_str(&line.replacen('>', "/>", 1));
        } else {
            out.push_str(line);
        }
        out.push('\n');
    }
    out
}

#[test]
fn the_page_is_well_formed_and_escaped() {
    let html = sample().to_html();
    let xml = as_xml(&html);
    let page = roxmltree::Document::parse(&xml).expect("well-formed");
    let all = |tag: &str| -> Vec<String> {
        let nodes = page.descendants().filter(|n| n.has_tag_name(tag));
        nodes.map(|n| n.text().unwrap_or_default().to_string()).collect()
    };
    assert_eq!(all("title"), ["Runs & results"]);
    assert_eq!(all("h2"), ["Part <one>"]);
    assert_eq!(all("p"), ["a < b", "First\nline.", "Second <b>paragraph</b>.", "Log"]);
    assert_eq!(all("td"), ["x<y", "1.5", "", "z", "−2 ± 0.1", "5 %", "short", "", ""]);
    assert_eq!(all("dd"), ["<7>"]);
    assert!(all("pre")[0].contains("  if a < b && c {"));
    let numeric =
        page.descendants().filter(|n| n.has_tag_name("td") && n.attribute("class") == Some("number"));
    assert_eq!(numeric.count(), 6);
    assert_eq!(html, sample().to_html());
}

#[test]
fn the_page_needs_nothing_from_outside() {
    // The name space of SVG is a name, not an address to be fetched.
    let html = sample().to_html().replace("http://www.w3.org/2000/svg", "");
    assert!(!html.contains("<script") && !html.contains("<link") && !html.contains("@import"));
    assert!(!html.contains("url(") && !html.contains("http://") && !html.contains("https://"));
    assert!(html.contains("prefers-color-scheme: dark"));
}

#[test]
fn figures_survive_embedding() {
    let figure = Figure::new().panel(Panel::new("Größe # 100 %"));
    let html = Report::new("r").figure("f", &figure).to_html();
    let start = html.find("charset=utf-8,").unwrap() + "charset=utf-8,".len();
    let end = start + html[start..].find('"').unwrap();
    let mut bytes = Vec::new();
    let mut rest = html[start..end].bytes();
    while let Some(b) = rest.next() {
        if b == b'%' {
            let hex = [rest.next().unwrap(), rest.next().unwrap()];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&hex).unwrap(), 16).unwrap());
        } else {
            bytes.push(b);
        }
    }
    assert_eq!(String::from_utf8(bytes).unwrap(), figure.to_svg());
}

#[test]
fn hostile_figures_stay_images() {
    let svg = "\"><script>alert(1)</script>".to_string();
    let html = Report::new("r").section(Section::Figure { caption: String::new(), svg }).to_html();
    assert!(!html.contains("<script"));
}

#[test]
fn reports_are_saved() {
    let folder = tempfile::tempdir().unwrap();
    sample().save(folder.path(), "index").unwrap();
    assert_eq!(std::fs::read_to_string(folder.path().join("index.html")).unwrap(), sample().to_html());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    assert!(sample().save(folder.path(), "a/b").is_err());
}
