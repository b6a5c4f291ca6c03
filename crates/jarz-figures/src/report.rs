use crate::files::{check_stem, write_atomically};
use crate::{Figure, FigureError, ImageGrid, Provenance, Verdict, html};
use std::path::Path;

/// A report: one HTML page that needs no other file and no network.
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
    /// Something that a reader should not miss: paragraphs, separated by blank lines.
    Note(String),
    /// A table; cells that hold numbers are set to the right.
    Table {
        /// Text above the table; may be empty.
        caption: String,
        /// Names of the columns.
        headers: Vec<String>,
        /// The rows.
        rows: Vec<Vec<String>>,
    },
    /// A picture. The SVG is embedded as an image, so that whatever it holds cannot act on the page.
    Figure {
        /// Text below the figure; may be empty.
        caption: String,
        /// The SVG document, for example from [`Figure::to_svg`].
        svg: String,
    },
    /// A picture of pixels, for example of an [`ImageGrid`](crate::ImageGrid).
    Picture {
        /// Text below the picture; may be empty.
        caption: String,
        /// The picture, as PNG.
        png: Vec<u8>,
        /// Width in the page, in units of CSS.
        width: u32,
    },
    /// A figure to zoom, to read values from and to switch series on and off in; its SVG without scripts and in print.
    Plot {
        /// Text below the figure; may be empty.
        caption: String,
        /// The figure.
        figure: Figure,
    },
    /// What is claimed, what was measured, by which rule they are compared, and the outcome.
    Verdicts {
        /// Text above the table; may be empty.
        caption: String,
        /// The rows.
        rows: Vec<Verdict>,
    },
    /// Names with their values, for example the settings of a run.
    KeyValues {
        /// Text above the list; may be empty.
        caption: String,
        /// The names and values.
        pairs: Vec<(String, String)>,
    },
    /// Text in which spaces and line breaks count. Long ones are folded until the reader asks for them.
    Code {
        /// Text above the block; may be empty.
        caption: String,
        /// The text.
        text: String,
    },
    /// Files beside the page, as paths relative to it.
    Files {
        /// Text before the list; may be empty.
        caption: String,
        /// The paths, with `/` between their parts.
        paths: Vec<String>,
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
        self.section(Section::Plot { caption: caption.into(), figure: figure.clone() })
    }

    /// Adds a grid of images.
    pub fn images(self, caption: impl Into<String>, grid: &ImageGrid) -> Result<Self, FigureError> {
        Ok(self.section(grid.section(caption)?))
    }

    /// Adds a table of claims and what came of them.
    pub fn verdicts(self, caption: impl Into<String>, rows: Vec<Verdict>) -> Self {
        self.section(Section::Verdicts { caption: caption.into(), rows })
    }

    /// Adds where the results come from.
    pub fn provenance(self, provenance: &Provenance) -> Self {
        self.section(Section::KeyValues { caption: String::new(), pairs: provenance.pairs() })
    }

    /// Adds a configuration.
    pub fn configuration(self, caption: impl Into<String>, text: impl Into<String>) -> Self {
        self.section(Section::Code { caption: caption.into(), text: text.into() })
    }

    /// The page.
    pub fn to_html(&self) -> String {
        html::page(self, None)
    }

    /// The page for a server: it asks the address `source` again and again for [`Report::content`] and shows what has
    /// changed, without losing the reader's place, zoom or choice of series.
    pub fn to_live_html(&self, source: &str) -> String {
        html::page(self, Some(source))
    }

    /// What a live page asks for: everything from the title to the last section.
    pub fn content(&self) -> String {
        html::content(self)
    }

    /// Writes `stem.html` into `folder` in one step: temporary file, then rename.
    pub fn save(&self, folder: &Path, stem: &str) -> Result<(), FigureError> {
        check_stem(stem)?;
        write_atomically(folder, &format!("{stem}.html"), self.to_html().as_bytes())
    }
}
