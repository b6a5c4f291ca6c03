//! The embedded font: text widths for the layout and the font database for rasterising.

use resvg::usvg::fontdb;
use skrifa::instance::{LocationRef, Size};
use skrifa::{FontRef, MetadataProvider};
use std::sync::{Arc, OnceLock};

/// Families named in the SVG: the embedded font first, then what browsers have.
pub(crate) const FAMILIES: &str = "Noto Sans, Ubuntu, Helvetica, Arial, sans-serif";

/// A database that holds the embedded font only.
pub(crate) fn database() -> Arc<fontdb::Database> {
    static DATABASE: OnceLock<Arc<fontdb::Database>> = OnceLock::new();
    Arc::clone(DATABASE.get_or_init(|| {
        let mut database = fontdb::Database::new();
        for bytes in [notosans::REGULAR_TTF, notosans::BOLD_TTF] {
            database.load_font_source(fontdb::Source::Binary(Arc::new(bytes)));
        }
        database.set_sans_serif_family("Noto Sans");
        Arc::new(database)
    }))
}

/// Width of `text` in the embedded font at `size` pixels.
pub(crate) fn text_width(text: &str, size: f64, bold: bool) -> f64 {
    let bytes = if bold { notosans::BOLD_TTF } else { notosans::REGULAR_TTF };
    let Ok(font) = FontRef::new(bytes) else {
        return 0.6 * size * text.chars().count() as f64;
    };
    let charmap = font.charmap();
    // At a size of one thousand the advances come in thousandths of an em, whatever the font's own unit.
    let metrics = font.glyph_metrics(Size::new(1000.0), LocationRef::default());
    let per_mille: f64 = text
        .chars()
        .map(|c| charmap.map(c).and_then(|glyph| metrics.advance_width(glyph)).map_or(600.0, f64::from))
        .sum();
    per_mille / 1000.0 * size
}

/// Makes `text` fit into `room` pixels: first by a smaller size (down to 8 pixels), then by cutting its end off.
pub(crate) fn fit(text: &str, size: f64, bold: bool, room: f64) -> (String, f64) {
    let width = text_width(text, size, bold);
    if width <= room {
        return (text.to_string(), size);
    }
    let smaller = (size * room / width).clamp(8.0_f64.min(size), size);
    if text_width(text, smaller, bold) <= room + 1e-6 {
        return (text.to_string(), smaller);
    }
    let mut cut = String::new();
    let mut used = text_width("\u{2026}", smaller, bold);
    for c in text.chars() {
        used += text_width(c.encode_utf8(&mut [0; 4]), smaller, bold);
        if used > room {
            break;
        }
        cut.push(c);
    }
    cut.truncate(cut.trim_end().len());
    cut.push('\u{2026}');
    (cut, smaller)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_come_from_the_font() {
        let narrow = text_width("iiii", 10.0, false);
        let wide = text_width("WWWW", 10.0, false);
        assert!(narrow > 5.0 && narrow * 2.0 < wide && wide < 60.0, "{narrow} {wide}");
        assert!(text_width("data", 10.0, true) > text_width("data", 10.0, false));
        assert!((text_width("data", 20.0, false) - 2.0 * text_width("data", 10.0, false)).abs() < 1e-6);
    }

    #[test]
    fn the_signs_used_in_labels_are_in_the_font() {
        let font = FontRef::new(notosans::REGULAR_TTF).unwrap();
        for c in ['\u{2212}', '\u{00d7}', '\u{2009}', '\u{2026}', 'θ', 'β'] {
            assert!(font.charmap().map(c).is_some_and(|g| g.to_u32() != 0), "{c:?}");
        }
    }

    #[test]
    fn long_text_shrinks_and_is_then_cut() {
        assert_eq!(fit("short", 12.0, false, 100.0), ("short".to_string(), 12.0));
        let (text, size) = fit("a label slightly too long", 12.0, false, 120.0);
        assert!(text.ends_with("long") && (8.0..12.0).contains(&size));
        let (text, size) = fit(&"word ".repeat(40), 12.0, false, 100.0);
        assert!(text.ends_with('\u{2026}') && text_width(&text, size, false) <= 100.0 + 1e-6);
    }
}
