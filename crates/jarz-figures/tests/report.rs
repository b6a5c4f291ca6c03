//! The report page.

use jarz_figures::{Agreement, Figure, Panel, Provenance, Report, Section, Series, Verdict};

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

/// The page without what the scripts bring along.
fn without_scripts(html: &str) -> String {
    let mut out = String::new();
    let mut rest = html;
    while let Some(start) = rest.find("<script") {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        rest = &rest[rest.find("</script>").expect("scripts end") + "</script>".len()..];
    }
    out + rest
}

/// The page is written such that, apart from the tags that need no end, an XML parser can read it.
fn as_xml(html: &str) -> String {
    let mut out = String::new();
    for line in html.lines().filter(|l| !l.starts_with("<!DOCTYPE")) {
        if ["<meta", "<img", "<link"].iter().any(|tag| line.starts_with(tag)) {
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
    let xml = as_xml(&without_scripts(&html));
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
    // The name space of SVG is a name, not an address to be fetched, and the library names its home in a comment.
    let html = sample().to_html();
    let addresses: Vec<&str> =
        html.split("http").skip(1).filter(|rest| rest.starts_with([':', 's'])).collect();
    for rest in addresses {
        let known = ["://www.w3.org/2000/svg", "s://github.com/leeoniya/uPlot (v1.6.32) */"];
        assert!(known.iter().any(|k| rest.starts_with(k)), "http{}", &rest[..60.min(rest.len())]);
    }
    assert_eq!(html.matches("<link").count(), html.matches("<link rel=\"icon\" href=\"data:").count());
    assert!(!html.contains("@import") && !html.contains("url("));
    assert!(!html.contains("<script src"));
    assert!(html.contains("default-src 'none'") && !html.contains("connect-src"));
    assert!(html.contains("prefers-color-scheme: dark"));
}

#[test]
fn pages_without_plots_carry_no_script() {
    let html = Report::new("r").text("words").to_html();
    assert!(!html.contains("<script"));
}

#[test]
fn a_live_page_knows_where_to_ask_and_its_content_is_that_of_the_page() {
    let html = sample().to_live_html("content?\"x\"");
    assert!(
        html.contains("<main data-live=\"content?&quot;x&quot;\">") && html.contains("connect-src 'self'")
    );
    assert!(html.contains(&sample().content()) && sample().to_html().contains(&sample().content()));
}

#[test]
fn verdicts_notes_files_and_provenance() {
    let rows = vec![
        Verdict::new("KL < 0.01", "0.004 ± 0.001", "below 0.01", true),
        Verdict::new("PCD collapses", "0.31", "mass below 0.05", false),
        Verdict::new("20 runs", "1 run", "needs 20", Agreement::Undecided),
    ];
    let made = Provenance {
        version: "jarz 1.2".into(),
        seeds: vec![1, 2, 3],
        seconds: Some(75.0),
        ..Default::default()
    };
    let html = Report::new("r")
        .verdicts("Claims", rows)
        .section(Section::Note("Careful <now>".into()))
        .section(Section::Files { caption: "Files:".into(), paths: vec!["a b/javascript:x\".svg".into()] })
        .provenance(&made)
        .configuration("run.toml", "a = 1\n".repeat(20))
        .to_html();
    let xml = as_xml(&html);
    let page = roxmltree::Document::parse(&xml).expect("well-formed");
    let texts = |tag: &str| -> Vec<String> {
        let nodes = page.descendants().filter(|n| n.has_tag_name(tag));
        nodes.map(|n| n.descendants().filter_map(|d| d.text().filter(|_| d.is_text())).collect()).collect()
    };
    let cells = texts("td");
    assert_eq!(cells[..4], ["KL < 0.01", "0.004 ± 0.001", "below 0.01", "✓ yes"]);
    assert_eq!((cells[7].as_str(), cells[11].as_str()), ("✗ no", "? cannot decide at this scale"));
    assert_eq!(texts("aside")[0].trim(), "Careful <now>");
    let link = page.descendants().find(|n| n.has_tag_name("a")).unwrap();
    assert_eq!(link.attribute("href"), Some("./a%20b/javascript%3Ax%22.svg"));
    assert_eq!(texts("dd"), ["1 to 3", "1 min 15 s", "jarz 1.2"]);
    assert_eq!(texts("summary"), ["run.toml"], "long texts are folded");
}

#[test]
fn figures_survive_embedding() {
    let figure = Figure::new().panel(Panel::new("Größe # 100 %"));
    let html = Report::new("r").figure("f", &figure).to_html();
    let start = html.find("<img").unwrap();
    let start = start + html[start..].find("charset=utf-8,").unwrap() + "charset=utf-8,".len();
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
