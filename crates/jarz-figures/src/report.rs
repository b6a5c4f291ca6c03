use crate::files::{check_stem, write_atomically};
use crate::svg::escape;
use crate::{Figure, FigureError};
use std::fmt::Write;
use std::path::Path;

/// A report: one HTML page that needs no other file, no script and no network.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Title of the page.
    pub title: String,
    /// A line below the title; may be empty.
    pub subtitle: String,
    /// The content, from top to bottom.
    pub sections: Vec<Section>,
}

/// A part of a [`Report`]. All text is escaped.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Section {
    /// A heading.
    Heading(String),
    /// Paragraphs, separated by blank lines.
    Text(String),
    /// A table; cells that hold numbers are set to the right.
    Table {
        /// Text above the table; may be empty.
        caption: String,
        /// Names of the columns.
        headers: Vec<String>,
        /// The rows.
        rows: Vec<Vec<String>>,
    },
    /// A figure. The SVG is embedded as an image, so that whatever it holds cannot act on the page.
    Figure {
        /// Text below the figure; may be empty.
        caption: String,
        /// The SVG document, for example from [`Figure::to_svg`].
        svg: String,
    },
    /// Names with their values, for example the settings of a run.
    KeyValues {
        /// Text above the list; may be empty.
        caption: String,
        /// The names and values.
        pairs: Vec<(String, String)>,
    },
    /// Text in which spaces and line breaks count.
    Code {
        /// Text above the block; may be empty.
        caption: String,
        /// The text.
        text: String,
    },
}

impl Report {
    /// A report without content.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// Sets the line below the title.
    pub fn subtitle(mut self, subtitle: impl Into<String>) -> Self {
        self.subtitle = subtitle.into();
        self
    }

    /// Adds a section.
    pub fn section(mut self, section: Section) -> Self {
        self.sections.push(section);
        self
    }

    /// Adds a heading.
    pub fn heading(self, text: impl Into<String>) -> Self {
        self.section(Section::Heading(text.into()))
    }

    /// Adds paragraphs, separated by blank lines.
    pub fn text(self, text: impl Into<String>) -> Self {
        self.section(Section::Text(text.into()))
    }

    /// Adds a figure.
    pub fn figure(self, caption: impl Into<String>, figure: &Figure) -> Self {
        self.section(Section::Figure { caption: caption.into(), svg: figure.to_svg() })
    }

    /// The page.
    pub fn to_html(&self) -> String {
        let title = escape(&self.title);
        let mut out = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>\n{CSS}</style>\n</head>\n<body>\n<main>\n<header>\n<h1>{title}</h1>\n"
        );
        if !self.subtitle.is_empty() {
            let _ = writeln!(out, "<p class=\"subtitle\">{}</p>", escape(&self.subtitle));
        }
        out.push_str("</header>\n");
        for section in &self.sections {
            section.write(&mut out);
        }
        out.push_str("</main>\n</body>\n</html>\n");
        out
    }

    /// Writes `stem.html` into `folder` in one step: temporary file, then rename.
    pub fn save(&self, folder: &Path, stem: &str) -> Result<(), FigureError> {
        check_stem(stem)?;
        write_atomically(folder, &format!("{stem}.html"), self.to_html().as_bytes())
    }
}

impl Section {
    fn write(&self, out: &mut String) {
        match self {
            Section::Heading(text) => {
                let _ = writeln!(out, "<h2>{}</h2>", escape(text));
            }
            Section::Text(text) => paragraphs(out, text),
            Section::Table { caption, headers, rows } => table(out, caption, headers, rows),
            Section::Figure { caption, svg } => {
                let alt = if caption.is_empty() { "figure" } else { caption };
                let _ = writeln!(out, "<figure>\n<img alt=\"{}\" src=\"{}\">", escape(alt), data_uri(svg));
                if !caption.is_empty() {
                    let _ = writeln!(out, "<figcaption>{}</figcaption>", escape(caption));
                }
                out.push_str("</figure>\n");
            }
            Section::KeyValues { caption, pairs } => {
                label(out, caption);
                out.push_str("<dl>\n");
                for (key, value) in pairs {
                    let _ = writeln!(out, "<div><dt>{}</dt><dd>{}</dd></div>", escape(key), escape(value));
                }
                out.push_str("</dl>\n");
            }
            Section::Code { caption, text } => {
                label(out, caption);
                // Browsers drop one line break right after the tag; this one is for them.
                let _ = writeln!(out, "<pre>\n{}</pre>", escape(text));
            }
        }
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
            let text = cells.get(c).map_or(String::new(), |cell| escape(cell));
            let _ = write!(out, "<{tag}{class}>{text}</{tag}>");
        }
        out.push_str("</tr>\n");
    };
    out.push_str("<div class=\"wide\">\n<table>\n");
    if !caption.is_empty() {
        let _ = writeln!(out, "<caption>{}</caption>", escape(caption));
    }
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
            b'a'..=b'z'
            | b'A'..=b'Z'
            | b'0'..=b'9'
            | b' '
            | b'-'
            | b'_'
            | b'.'
            | b','
            | b':'
            | b';'
            | b'='
            | b'/'
            | b'('
            | b')' => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

const CSS: &str = "\
:root { color-scheme: light dark; --ink: #1f2328; --soft: #59636e; --line: #d8dde3; --ground: #ffffff; --tint: #f5f7f9; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ec; --soft: #9aa4ae; --line: #3a424b; --ground: #14181c; --tint: #1e2429; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 16px/1.55 system-ui, 'Segoe UI', Helvetica, Arial, sans-serif; }
main { max-width: 72rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
header { border-bottom: 1px solid var(--line); margin-bottom: 1.5rem; padding-bottom: 0.75rem; }
h1 { font-size: 1.8rem; line-height: 1.2; margin: 0; }
h2 { font-size: 1.25rem; margin: 2.25rem 0 0.5rem; }
.subtitle { color: var(--soft); margin: 0.35rem 0 0; }
p { max-width: 46rem; margin: 0.75rem 0; overflow-wrap: break-word; }
.caption, caption, figcaption { color: var(--soft); font-size: 0.9rem; text-align: left; }
.caption { margin: 1.25rem 0 0.35rem; }
caption { padding-bottom: 0.4rem; }
figure { margin: 1.5rem 0; }
figure img { display: block; max-width: 100%; height: auto; background: #ffffff; border: 1px solid var(--line); border-radius: 4px; }
figcaption { max-width: 46rem; margin-top: 0.5rem; }
.wide { overflow-x: auto; margin: 1.25rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 0.35rem 0.9rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: baseline; }
th { border-bottom: 2px solid var(--line); }
.number { text-align: right; white-space: nowrap; }
dl { margin: 0.5rem 0 1.25rem; max-width: 46rem; border-top: 1px solid var(--line); }
dl div { display: flex; gap: 1rem; border-bottom: 1px solid var(--line); padding: 0.3rem 0; }
dt { flex: 0 0 14rem; color: var(--soft); overflow-wrap: anywhere; }
dd { margin: 0; flex: 1; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
pre { background: var(--tint); border: 1px solid var(--line); border-radius: 4px; padding: 0.75rem 1rem; overflow-x: auto; font: 0.85rem/1.45 ui-monospace, Menlo, Consolas, monospace; }
@media (max-width: 40rem) { dl div { display: block; } }
@media print {
  :root { --ink: #000000; --soft: #444444; --line: #bbbbbb; --ground: #ffffff; --tint: #ffffff; }
  main { max-width: none; padding: 0; }
  figure, tr, pre { break-inside: avoid; }
}
";
