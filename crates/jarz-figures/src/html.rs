//! A report as HTML.

use crate::svg::escape;
use crate::{Report, Section, Verdict, interactive};
use base64::prelude::{BASE64_STANDARD, Engine};
use std::fmt::Write;

const PAGE_CSS: &str = include_str!("../assets/page.css");
const PLOT_CSS: &str = include_str!("../assets/uplot/uPlot.min.css");
const PLOT_LICENCE: &str = include_str!("../assets/uplot/LICENSE");
/// The plotting library, then the parts of our own that stand on it.
const SCRIPTS: [&str; 5] = [
    include_str!("../assets/uplot/uPlot.iife.min.js"),
    include_str!("../assets/scales.js"),
    include_str!("../assets/draw.js"),
    include_str!("../assets/panel.js"),
    include_str!("../assets/figures.js"),
];
const LIVE_SCRIPT: &str = include_str!("../assets/live.js");
/// A falling curve; without an icon of its own, a page makes browsers ask the server for one.
const ICON: &str = "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'><path d='M2 2C3 12 7 13 14 13' fill='none' \
                    stroke='#0072B2' stroke-width='2.5' stroke-linecap='round'/></svg>";
/// Longer texts are folded.
const LONG_CODE: usize = 12;

/// The whole page; a live one asks the address `live` for news.
pub(crate) fn page(report: &Report, live: Option<&str>) -> String {
    let title = escape(&report.title);
    // Whatever slipped through the escaping could neither be fetched nor sent anywhere.
    let connect = if live.is_some() { "connect-src 'self'; " } else { "" };
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; {connect}img-src data:; \
         style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"generator\" content=\"jarz {}\">\n<link rel=\"icon\" href=\"{}\">\n\
         <title>{title}</title>\n<style>\n{PLOT_CSS}\n{PAGE_CSS}</style>\n</head>\n<body>\n",
        env!("CARGO_PKG_VERSION"),
        data_uri(ICON)
    );
    match live {
        Some(source) => {
            let _ = writeln!(out, "<main data-live=\"{}\">", escape(source));
        }
        None => out.push_str("<main>\n"),
    }
    out.push_str(&content(report));
    out.push_str("</main>\n");
    if live.is_some() || report.sections.iter().any(|s| matches!(s, Section::Plot { .. })) {
        let _ = write!(out, "<script>\n/*\n{PLOT_LICENCE}\n*/\n");
        SCRIPTS.iter().chain(live.map(|_| &LIVE_SCRIPT)).for_each(|script| {
            out.push_str(script);
            out.push('\n');
        });
        out.push_str("</script>\n");
    }
    out.push_str("</body>\n</html>\n");
    out
}

/// Title and sections.
pub(crate) fn content(report: &Report) -> String {
    let mut out = format!("<header>\n<h1>{}</h1>\n", escape(&report.title));
    if !report.subtitle.is_empty() {
        let _ = writeln!(out, "<p class=\"subtitle\">{}</p>", escape(&report.subtitle));
    }
    out.push_str("</header>\n");
    for section in &report.sections {
        write_section(&mut out, section);
    }
    out
}

fn write_section(out: &mut String, section: &Section) {
    match section {
        Section::Heading(text) => {
            let _ = writeln!(out, "<h2>{}</h2>", escape(text));
        }
        Section::Text(text) => paragraphs(out, text),
        Section::Note(text) => {
            out.push_str("<aside>\n");
            paragraphs(out, text);
            out.push_str("</aside>\n");
        }
        Section::Table { caption, headers, rows } => table(out, caption, headers, rows),
        Section::Figure { caption, svg } => figure(out, caption, &data_uri(svg), "", None),
        Section::Plot { caption, figure: plot } => {
            figure(out, caption, &data_uri(&plot.to_svg()), "", Some(&interactive::json(plot)));
        }
        Section::Picture { caption, png, width } => {
            let source = format!("data:image/png;base64,{}", BASE64_STANDARD.encode(png));
            figure(out, caption, &source, &format!(" width=\"{width}\""), None);
        }
        Section::Verdicts { caption, rows } => verdicts(out, caption, rows),
        Section::KeyValues { caption, pairs } => {
            label(out, caption);
            out.push_str("<dl>\n");
            for (key, value) in pairs {
                let _ =
                    writeln!(out, "<div><dt>{}</dt><dd>{}</dd></div>", escape(key), escape(&minus(value)));
            }
            out.push_str("</dl>\n");
        }
        Section::Code { caption, text } => code(out, caption, text),
        Section::Files { caption, paths } => files(out, caption, paths),
    }
}

fn label(out: &mut String, caption: &str) {
    if !caption.is_empty() {
        let _ = writeln!(out, "<p class=\"caption\">{}</p>", escape(caption));
    }
}

fn paragraphs(out: &mut String, text: &str) {
    let text = text.replace("\r\n", "\n");
    let mut paragraph: Vec<&str> = Vec::new();
    for line in text.lines().chain([""]) {
        if !line.trim().is_empty() {
            paragraph.push(line);
        } else if !paragraph.is_empty() {
            let _ = writeln!(out, "<p>{}</p>", escape(&paragraph.join("\n")));
            paragraph.clear();
        }
    }
}

/// A picture at the address `source`; with data, the script puts a plot in its place.
fn figure(out: &mut String, caption: &str, source: &str, attributes: &str, data: Option<&str>) {
    let alt = if caption.is_empty() { "figure" } else { caption };
    let class = if data.is_some() { " class=\"plot\"" } else { "" };
    let _ = writeln!(out, "<figure{class}>\n<img alt=\"{}\"{attributes} src=\"{source}\">", escape(alt));
    if let Some(data) = data {
        let _ = writeln!(out, "<script type=\"application/json\">{data}</script>");
    }
    if !caption.is_empty() {
        let _ = writeln!(out, "<figcaption>{}</figcaption>", escape(caption));
    }
    out.push_str("</figure>\n");
}

fn verdicts(out: &mut String, caption: &str, rows: &[Verdict]) {
    open_table(out, caption, "verdicts");
    out.push_str("<thead>\n<tr><th>what the paper says</th><th>what this run measured</th>");
    out.push_str("<th>criterion</th><th>agrees?</th></tr>\n</thead>\n<tbody>\n");
    for row in rows {
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td class=\"{}\"><span>{}</span> {}</td></tr>",
            escape(&row.claim),
            escape(&minus(&row.measured)),
            escape(&row.criterion),
            row.agreement.class(),
            row.agreement.sign(),
            row.agreement.text()
        );
    }
    out.push_str("</tbody>\n</table>\n</div>\n");
}

fn code(out: &mut String, caption: &str, text: &str) {
    let folded = text.lines().nth(LONG_CODE).is_some();
    if folded {
        let summary = if caption.is_empty() { "text" } else { caption };
        let _ = writeln!(out, "<details>\n<summary>{}</summary>", escape(summary));
    } else {
        label(out, caption);
    }
    // Browsers drop one line break right after the tag; this one is for them.
    let _ = writeln!(out, "<pre>\n{}</pre>", escape(text));
    if folded {
        out.push_str("</details>\n");
    }
}

fn files(out: &mut String, caption: &str, paths: &[String]) {
    let link = |path: &String| {
        let parts: Vec<String> = path.split('/').map(percent_encoded).collect();
        // The dot keeps a name with a colon from being read as an address.
        format!("<a href=\"./{}\">{}</a>", parts.join("/"), escape(path))
    };
    let links: Vec<String> = paths.iter().map(link).collect();
    let _ = writeln!(out, "<p class=\"files\">{} {}</p>", escape(caption), links.join(" \u{b7} "));
}

fn percent_encoded(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.~".contains(&b);
    text.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

fn open_table(out: &mut String, caption: &str, class: &str) {
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    let _ = writeln!(out, "<div class=\"wide\">\n<table{class}>");
    if !caption.is_empty() {
        let _ = writeln!(out, "<caption>{}</caption>", escape(caption));
    }
}

fn table(out: &mut String, caption: &str, headers: &[String], rows: &[Vec<String>]) {
    let columns = rows.iter().map(Vec::len).chain([headers.len()]).max().unwrap_or(0);
    let numeric: Vec<bool> = (0..columns)
        .map(|c| {
            let mut cells =
                rows.iter().filter_map(|row| row.get(c)).filter(|cell| !cell.is_empty()).peekable();
            cells.peek().is_some() && cells.all(|cell| is_number(cell))
        })
        .collect();
    let row = |out: &mut String, tag: &str, cells: &[String]| {
        out.push_str("<tr>");
        for c in 0..columns {
            let class = if numeric[c] { " class=\"number\"" } else { "" };
            let text = cells.get(c).map_or(String::new(), |cell| escape(&minus(cell)));
            let _ = write!(out, "<{tag}{class}>{text}</{tag}>");
        }
        out.push_str("</tr>\n");
    };
    open_table(out, caption, "");
    if !headers.is_empty() {
        out.push_str("<thead>\n");
        row(out, "th", headers);
        out.push_str("</thead>\n");
    }
    out.push_str("<tbody>\n");
    for cells in rows {
        row(out, "td", cells);
    }
    out.push_str("</tbody>\n</table>\n</div>\n");
}

/// The text with real minus signs before numbers.
fn minus(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = ' ';
    for (i, c) in text.char_indices() {
        let signed = text[i + c.len_utf8()..].starts_with(|d: char| d.is_ascii_digit());
        let free = before.is_whitespace() || matches!(before, '(' | '[' | ',');
        out.push(if c == '-' && signed && free { '\u{2212}' } else { c });
        before = c;
    }
    out
}

/// Whether a cell reads as a number, perhaps with an error (`1.2 ± 0.1`), a percent sign or a dash for none.
fn is_number(cell: &str) -> bool {
    cell.split('\u{b1}').all(|part| {
        let part = part.trim().trim_end_matches('%').trim_end().replace('\u{2212}', "-");
        matches!(part.as_str(), "-" | "\u{2013}" | "\u{2014}") || part.parse::<f64>().is_ok()
    })
}

/// An SVG as an address that holds the document itself.
fn data_uri(svg: &str) -> String {
    let mut out = String::with_capacity(svg.len() + svg.len() / 4);
    out.push_str("data:image/svg+xml;charset=utf-8,");
    for byte in svg.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => out.push(char::from(byte)),
            b' ' | b'-' | b'_' | b'.' | b',' | b':' | b';' | b'=' | b'/' | b'(' | b')' => {
                out.push(char::from(byte));
            }
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::minus;

    #[test]
    fn only_signs_become_minus_signs() {
        assert_eq!(
            minus("-1.5 \u{b1} 0.1, -2 (-3) 1e-5"),
            "\u{2212}1.5 \u{b1} 0.1, \u{2212}2 (\u{2212}3) 1e-5"
        );
        assert_eq!(minus("leave-one-out run-01 - -x"), "leave-one-out run-01 - -x");
    }
}
