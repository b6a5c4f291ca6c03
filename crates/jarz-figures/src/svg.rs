//! Writes SVG elements. Only presentation attributes are used (no style sheet, no ids), so that several figures can
//! live in one page.

use crate::font::{FAMILIES, text_width};
use crate::style::Look;
use std::fmt::Write;

/// Coordinates beyond this many pixels are pulled in; the visible part of a line changes by nothing one could see.
const FAR: f64 = 1e5;
/// Size of an exponent relative to its base.
const EXPONENT_SIZE: f64 = 0.72;

/// Escapes text for XML and HTML, in content and in double-quoted attributes. Characters that XML 1.0 does not allow
/// become U+FFFD.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' | '\r' => out.push(c),
            c if (c as u32) < 0x20 || matches!(c as u32, 0xFFFE | 0xFFFF) => out.push('\u{FFFD}'),
            c => out.push(c),
        }
    }
    out
}

/// A coordinate with at most two decimals, always finite.
pub(crate) fn number(value: f64) -> String {
    let value = if value.is_nan() { 0.0 } else { value.clamp(-FAR, FAR) };
    let mut text = format!("{value:.2}");
    let kept = text.trim_end_matches('0').trim_end_matches('.').len();
    text.truncate(kept);
    if text == "-0" { "0".to_string() } else { text }
}

/// A line of text in which parts may be raised as exponents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text(Vec<(String, bool)>);

impl Text {
    pub fn plain(text: impl Into<String>) -> Self {
        Self(vec![(text.into(), false)])
    }

    pub fn then(mut self, text: impl Into<String>) -> Self {
        self.0.push((text.into(), false));
        self
    }

    pub fn raised(mut self, text: impl Into<String>) -> Self {
        self.0.push((text.into(), true));
        self
    }

    pub fn width(&self, size: f64, bold: bool) -> f64 {
        self.0
            .iter()
            .map(|(part, up)| text_width(part, if *up { EXPONENT_SIZE * size } else { size }, bold))
            .sum()
    }

    /// The text in one line, exponents after a caret.
    #[cfg(test)]
    pub fn flat(&self) -> String {
        self.0.iter().map(|(part, up)| if *up { format!("^{part}") } else { part.clone() }).collect()
    }

    fn markup(&self, size: f64) -> String {
        let mut out = String::new();
        let rise = 0.38 * size;
        let mut raised = false;
        for (part, up) in &self.0 {
            match (raised, *up) {
                (false, true) => {
                    let small = number(EXPONENT_SIZE * size);
                    let _ = write!(out, r#"<tspan dy="{}" font-size="{small}">"#, number(-rise));
                }
                (true, false) => {
                    let _ = write!(out, r#"<tspan dy="{}">"#, number(rise));
                }
                (true, true) | (false, false) => out.push_str("<tspan>"),
            }
            out.push_str(&escape(part));
            out.push_str("</tspan>");
            raised = *up;
        }
        if self.0.len() == 1 && !raised { escape(&self.0[0].0) } else { out }
    }
}

/// Which point of a text its position refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// How a text is set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Type {
    pub size: f64,
    pub bold: bool,
    pub fill: &'static str,
    pub anchor: Anchor,
    /// Turned a quarter to the left.
    pub upright: bool,
    /// With a white rim, for text over lines.
    pub halo: bool,
}

impl Type {
    pub fn new(size: f64, fill: &'static str, anchor: Anchor) -> Self {
        Self { size, bold: false, fill, anchor, upright: false, halo: false }
    }
}

/// An SVG document being written.
pub(crate) struct Canvas {
    out: String,
}

impl Canvas {
    /// Starts a document on a white ground.
    pub fn new(width: f64, height: f64, label: &str) -> Self {
        let (w, h) = (number(width), number(height));
        let mut out = String::new();
        let _ = writeln!(
            out,
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{w}" height="{h}" viewBox="0 0 {w} {h}" role="img" aria-label="{}" font-family="{FAMILIES}">"#,
            escape(label)
        );
        let _ = writeln!(out, r##"<rect width="{w}" height="{h}" fill="#ffffff"/>"##);
        Self { out }
    }

    pub fn finish(mut self) -> String {
        self.out.push_str("</svg>\n");
        self.out
    }

    /// Starts a part that is cut off at the given rectangle; coordinates inside stay those of the document.
    pub fn open_clip(&mut self, x: f64, y: f64, w: f64, h: f64) {
        let (x, y, w, h) = (number(x), number(y), number(w), number(h));
        let _ = writeln!(
            self.out,
            r#"<svg x="{x}" y="{y}" width="{w}" height="{h}" viewBox="{x} {y} {w} {h}" overflow="hidden">"#
        );
    }

    pub fn close_clip(&mut self) {
        self.out.push_str("</svg>\n");
    }

    /// Several separate strokes of one colour.
    pub fn strokes(&mut self, segments: &[[f64; 4]], colour: &str, width: f64) {
        if segments.is_empty() {
            return;
        }
        let mut d = String::new();
        for [x0, y0, x1, y1] in segments {
            let _ = write!(d, "M{} {}L{} {}", number(*x0), number(*y0), number(*x1), number(*y1));
        }
        let _ = writeln!(
            self.out,
            r#"<path d="{d}" fill="none" stroke="{colour}" stroke-width="{}"/>"#,
            number(width)
        );
    }

    /// A line through points, in the look of a series.
    pub fn polyline(&mut self, points: &[(f64, f64)], look: &Look) {
        if points.len() < 2 || look.width == 0.0 {
            return;
        }
        let mut d = String::with_capacity(points.len() * 14);
        path(&mut d, points);
        let pattern = look.dash.pattern();
        let dash = if pattern.is_empty() {
            String::new()
        } else {
            let lengths: Vec<String> = pattern.iter().map(|l| number(l * look.width.max(1.0))).collect();
            format!(r#" stroke-dasharray="{}""#, lengths.join(" "))
        };
        let _ = writeln!(
            self.out,
            r#"<path d="{d}" fill="none" stroke="{}" stroke-width="{}" stroke-linejoin="round"{dash}/>"#,
            look.colour,
            number(look.width)
        );
    }

    /// A filled polygon.
    pub fn polygon(&mut self, points: &[(f64, f64)], colour: &str, opacity: f64) {
        let mut d = String::with_capacity(points.len() * 14);
        path(&mut d, points);
        d.push('Z');
        let opacity =
            if opacity < 1.0 { format!(r#" fill-opacity="{}""#, number(opacity)) } else { String::new() };
        let _ = writeln!(self.out, r#"<path d="{d}" fill="{colour}"{opacity}/>"#);
    }

    pub fn disc(&mut self, x: f64, y: f64, radius: f64, colour: &str) {
        let (x, y, r) = (number(x), number(y), number(radius));
        let _ = writeln!(self.out, r#"<circle cx="{x}" cy="{y}" r="{r}" fill="{colour}"/>"#);
    }

    /// A text at its base line.
    pub fn text(&mut self, x: f64, y: f64, text: &Text, look: Type) {
        let (x, y) = (number(x), number(y));
        let mut attributes =
            format!(r#"x="{x}" y="{y}" font-size="{}" fill="{}""#, number(look.size), look.fill);
        match look.anchor {
            Anchor::Start => {}
            Anchor::Middle => attributes.push_str(r#" text-anchor="middle""#),
            Anchor::End => attributes.push_str(r#" text-anchor="end""#),
        }
        if look.bold {
            attributes.push_str(r#" font-weight="bold""#);
        }
        if look.upright {
            let _ = write!(attributes, r#" transform="rotate(-90 {x} {y})""#);
        }
        if look.halo {
            attributes.push_str(
                r##" paint-order="stroke" stroke="#ffffff" stroke-width="3" stroke-linejoin="round""##,
            );
        }
        let _ = writeln!(self.out, "<text {attributes}>{}</text>", text.markup(look.size));
    }
}

fn path(d: &mut String, points: &[(f64, f64)]) {
    for (i, (x, y)) in points.iter().enumerate() {
        d.push(if i == 0 { 'M' } else { 'L' });
        d.push_str(&number(*x));
        d.push(' ');
        d.push_str(&number(*y));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_finite() {
        assert_eq!(number(1.0), "1");
        assert_eq!(number(100.0), "100");
        assert_eq!(number(1.25), "1.25");
        assert_eq!(number(-0.001), "0");
        assert_eq!(number(f64::NAN), "0");
        assert_eq!(number(f64::INFINITY), "100000");
        assert_eq!(number(-1e300), "-100000");
    }

    #[test]
    fn escaping_covers_markup_and_forbidden_characters() {
        assert_eq!(escape(r#"<a b="c">&'"#), "&lt;a b=&quot;c&quot;&gt;&amp;&#39;");
        assert_eq!(escape("a\0b\u{1b}\u{FFFF}"), "a\u{FFFD}b\u{FFFD}\u{FFFD}");
        assert_eq!(escape("θ ≤ 1"), "θ ≤ 1");
    }
}
