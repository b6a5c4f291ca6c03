/// The colours of Okabe and Ito, as `#rrggbb`, ordered for lines on white. Yellow is left out: it vanishes in print.
pub const PALETTE: [&str; 7] = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"];

/// How a line is broken up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dash {
    /// An unbroken line.
    Solid,
    /// Dashes.
    Dashed,
    /// Dots.
    Dotted,
    /// Dash and dot in turn.
    DashDot,
    /// Long dashes.
    LongDash,
    /// A dash and two dots in turn.
    DashDotDot,
    /// Short dashes; the look of [`Style::companion_of`].
    ShortDash,
}

impl Dash {
    /// The automatic choice for a colour index.
    pub(crate) fn automatic(index: usize) -> Self {
        const ORDER: [Dash; 6] =
            [Dash::Solid, Dash::Dashed, Dash::Dotted, Dash::DashDot, Dash::LongDash, Dash::DashDotDot];
        // Colours repeat after 7 series and dashes after 6, so that 42 series differ.
        ORDER[index % ORDER.len()]
    }

    /// Lengths of strokes and gaps, in units of the line width.
    pub(crate) fn pattern(self) -> &'static [f64] {
        match self {
            Dash::Solid => &[],
            Dash::Dashed => &[4.0, 2.0],
            Dash::Dotted => &[1.1, 1.3],
            Dash::DashDot => &[5.0, 1.7, 1.2, 1.7],
            Dash::LongDash => &[8.0, 2.4],
            Dash::DashDotDot => &[5.0, 1.6, 1.2, 1.6, 1.2, 1.6],
            Dash::ShortDash => &[2.6, 2.0],
        }
    }
}

/// The shape drawn at the points of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// A disc.
    Circle,
    /// A square.
    Square,
    /// A triangle standing on its base.
    Triangle,
    /// A square standing on its corner.
    Diamond,
    /// Two crossed strokes.
    Cross,
}

/// The look of a series. What is left `None` is chosen from the position of the series in its panel.
#[derive(Clone, Debug, PartialEq)]
pub struct Style {
    /// Index into [`PALETTE`] (modulo its length). Series with an automatic colour are counted by themselves.
    pub colour: Option<usize>,
    /// Line style; the automatic choice follows the colour index.
    pub dash: Option<Dash>,
    /// Line width in pixels; 0 draws no line, only markers.
    pub width: f64,
    /// Shape drawn at the points; none by default.
    pub marker: Option<Marker>,
}

impl Default for Style {
    fn default() -> Self {
        Self { colour: None, dash: None, width: 1.8, marker: None }
    }
}

impl Style {
    /// The style of a secondary curve that belongs to the series with colour `index`: same colour, thinner, in short
    /// dashes, or dotted where the colours of [`PALETTE`] are used a second time.
    pub fn companion_of(index: usize) -> Self {
        let dash = if index < PALETTE.len() { Dash::ShortDash } else { Dash::Dotted };
        Self { colour: Some(index), dash: Some(dash), width: 1.3, marker: None }
    }

    /// Fills in the automatic choices; `automatic` counts the series before this one that have no colour of their own.
    pub(crate) fn resolve(&self, automatic: usize) -> Look {
        let index = self.colour.unwrap_or(automatic);
        let width = if self.width.is_finite() { self.width.clamp(0.0, 20.0) } else { 1.8 };
        Look {
            colour: PALETTE[index % PALETTE.len()],
            dash: self.dash.unwrap_or(Dash::automatic(index)),
            width,
            marker: self.marker,
        }
    }
}

/// A style with nothing left to choose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Look {
    pub colour: &'static str,
    pub dash: Dash,
    pub width: f64,
    pub marker: Option<Marker>,
}
