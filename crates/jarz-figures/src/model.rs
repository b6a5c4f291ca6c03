use crate::files::{check_stem, write_atomically};
use crate::style::{Dash, Look, Marker, Style};
use crate::{FigureError, draw, layout, raster};
use std::path::Path;

/// A grid of panels with a title above and the legend below.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Title of the whole figure.
    pub title: Option<String>,
    /// The panels, row by row.
    pub panels: Vec<Panel>,
    /// Width of one panel with its labels, in pixels.
    pub width_per_panel: f64,
    /// Height of one row of panels with their labels, in pixels. Figure title and legend come on top of it.
    pub height: f64,
    /// Panels per row; 0 chooses (up to three in a row, four as two by two).
    pub columns: usize,
}

impl Default for Figure {
    fn default() -> Self {
        Self { title: None, panels: Vec::new(), width_per_panel: 340.0, height: 270.0, columns: 0 }
    }
}

impl Figure {
    /// A figure without panels.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the title.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Adds a panel.
    pub fn panel(mut self, panel: Panel) -> Self {
        self.panels.push(panel);
        self
    }

    /// Sets the number of panels per row; 0 chooses.
    pub fn columns(mut self, columns: usize) -> Self {
        self.columns = columns;
        self
    }

    /// Sets the size of one panel with its labels, in pixels.
    pub fn panel_size(mut self, width: f64, height: f64) -> Self {
        self.width_per_panel = width;
        self.height = height;
        self
    }

    /// Width and height of the whole figure, in pixels at scale 1.
    pub fn size(&self) -> (f64, f64) {
        let layout = layout::Layout::of(&layout::with_panels(self));
        (layout.width, layout.height)
    }

    /// The figure as an SVG document; the same figure always gives the same text.
    pub fn to_svg(&self) -> String {
        draw::figure(self)
    }

    /// The SVG rasterised to PNG bytes. A `scale` of 2 gives two pixels per unit of [`Figure::size`].
    pub fn to_png(&self, scale: f32) -> Result<Vec<u8>, FigureError> {
        raster::png(&self.to_svg(), scale)
    }

    /// Writes `stem.svg` and `stem.png` (at scale 2) into `folder`, each in one step: temporary file, then rename.
    pub fn save(&self, folder: &Path, stem: &str) -> Result<(), FigureError> {
        check_stem(stem)?;
        let svg = self.to_svg();
        let png = raster::png(&svg, 2.0)?;
        write_atomically(folder, &format!("{stem}.svg"), svg.as_bytes())?;
        write_atomically(folder, &format!("{stem}.png"), &png)
    }
}

/// One pair of axes with its curves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Panel {
    /// Title above the axes.
    pub title: String,
    /// Label below the horizontal axis.
    pub x_label: String,
    /// Label beside the vertical axis.
    pub y_label: String,
    /// Scale of the horizontal axis.
    pub x_scale: Scale,
    /// Scale of the vertical axis.
    pub y_scale: Scale,
    /// Fixed horizontal range; without it (or when it cannot be used) the data decide.
    pub x_range: Option<(f64, f64)>,
    /// Fixed vertical range; without it (or when it cannot be used) the data decide.
    pub y_range: Option<(f64, f64)>,
    /// The curves; later ones are drawn over earlier ones.
    pub series: Vec<Series>,
    /// Reference lines, drawn below the curves.
    pub references: Vec<Reference>,
}

impl Panel {
    /// An empty panel with linear axes.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// Sets the label of the horizontal axis.
    pub fn x(mut self, label: impl Into<String>) -> Self {
        self.x_label = label.into();
        self
    }

    /// Sets the label of the vertical axis.
    pub fn y(mut self, label: impl Into<String>) -> Self {
        self.y_label = label.into();
        self
    }

    /// Sets the scale of the horizontal axis.
    pub fn x_scale(mut self, scale: Scale) -> Self {
        self.x_scale = scale;
        self
    }

    /// Sets the scale of the vertical axis.
    pub fn y_scale(mut self, scale: Scale) -> Self {
        self.y_scale = scale;
        self
    }

    /// Makes the horizontal axis logarithmic.
    pub fn x_log(self) -> Self {
        self.x_scale(Scale::Log)
    }

    /// Makes the vertical axis logarithmic.
    pub fn y_log(self) -> Self {
        self.y_scale(Scale::Log)
    }

    /// Fixes the horizontal range.
    pub fn x_range(mut self, low: f64, high: f64) -> Self {
        self.x_range = Some((low, high));
        self
    }

    /// Fixes the vertical range.
    pub fn y_range(mut self, low: f64, high: f64) -> Self {
        self.y_range = Some((low, high));
        self
    }

    /// Adds a curve.
    pub fn series(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// Adds a horizontal reference line.
    pub fn hline(mut self, value: f64, label: impl Into<String>) -> Self {
        self.references.push(Reference { direction: Direction::Horizontal, value, label: label.into() });
        self
    }

    /// Adds a vertical reference line.
    pub fn vline(mut self, value: f64, label: impl Into<String>) -> Self {
        self.references.push(Reference { direction: Direction::Vertical, value, label: label.into() });
        self
    }

    /// The series with their styles filled in.
    pub(crate) fn looks(&self) -> Vec<(&Series, Look)> {
        let mut automatic = 0;
        self.series
            .iter()
            .map(|series| {
                let look = series.style.resolve(automatic);
                automatic += usize::from(series.style.colour.is_none());
                (series, look)
            })
            .collect()
    }
}

/// How values are laid out along an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Scale {
    /// Equal distances for equal differences.
    #[default]
    Linear,
    /// Equal distances for equal ratios; only positive values can be drawn.
    Log,
    /// Linear up to `linthresh` on both sides of zero, logarithmic beyond. The linear part takes one decade per side.
    SymLog {
        /// Where the logarithmic part begins; a positive number.
        linthresh: f64,
    },
}

/// A curve.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Name in the legend; an empty name is not listed.
    pub label: String,
    /// The points in drawing order; a point that cannot be drawn interrupts the line. Any number of points may be
    /// given: the drawing is thinned to what pixels can show. Where the line would swing up and down within a few
    /// pixels, the area it sweeps is shaded and the line runs through the local mean (as seen on the axis).
    pub points: Vec<(f64, f64)>,
    /// A shaded band as x, low, high.
    pub band: Option<Vec<(f64, f64, f64)>>,
    /// The look.
    pub style: Style,
}

impl Series {
    /// A curve with an automatic style.
    pub fn new(label: impl Into<String>, points: impl Into<Vec<(f64, f64)>>) -> Self {
        Self { label: label.into(), points: points.into(), ..Self::default() }
    }

    /// Adds a shaded band as x, low, high.
    pub fn band(mut self, band: impl Into<Vec<(f64, f64, f64)>>) -> Self {
        self.band = Some(band.into());
        self
    }

    /// Replaces the style.
    pub fn style(mut self, style: Style) -> Self {
        self.style = style;
        self
    }

    /// Gives the series the look of a companion of the series with colour `index`; see [`Style::companion_of`].
    pub fn companion_of(self, index: usize) -> Self {
        self.style(Style::companion_of(index))
    }

    /// Fixes the colour by its index in [`PALETTE`](crate::PALETTE), and with it the automatic line style.
    pub fn colour(mut self, index: usize) -> Self {
        self.style.colour = Some(index);
        self
    }

    /// Fixes the line style.
    pub fn dash(mut self, dash: Dash) -> Self {
        self.style.dash = Some(dash);
        self
    }

    /// Sets the line width in pixels; 0 draws markers only.
    pub fn width(mut self, width: f64) -> Self {
        self.style.width = width;
        self
    }

    /// Draws markers at the points (thinned out where they are dense).
    pub fn marker(mut self, marker: Marker) -> Self {
        self.style.marker = Some(marker);
        self
    }
}

/// Which way a reference line runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// At a fixed y.
    Horizontal,
    /// At a fixed x.
    Vertical,
}

/// A thin line across the panel at a value of interest, with its label beside it.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// Which way it runs.
    pub direction: Direction,
    /// Where it sits on the axis it crosses.
    pub value: f64,
    /// Text beside the line; may be empty.
    pub label: String,
}
