//! What a caller may choose about how a data file is read.

/// The default of [`ReadOptions::max_bytes`]: 16 GiB.
pub const DEFAULT_MAX_BYTES: u64 = 16 << 30;

/// Whether the first row of a text file holds column names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Header {
    /// Decide from the first row: it is a header if one of its fields is text and not a number.
    #[default]
    Auto,
    /// The first row holds column names, even if they look like numbers.
    Yes,
    /// The first row is data.
    No,
}

/// How to read a data file; the default suits most files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// Name of the array to take from an `.npz` archive; needed if it holds more than one.
    pub array: Option<String>,
    /// Delimiter of a text file. By default it is detected among comma, semicolon, tab and blanks
    /// (a `.tsv` file is split at tabs). A space means any run of spaces and tabs.
    pub delimiter: Option<u8>,
    /// Whether a text file begins with a row of column names.
    pub header: Header,
    /// The most bytes to read, after decompression, and the most memory the values may take as
    /// `f64`; [`DEFAULT_MAX_BYTES`] if `None`.
    pub max_bytes: Option<u64>,
}

impl ReadOptions {
    pub(crate) fn limit(&self) -> u64 {
        self.max_bytes.unwrap_or(DEFAULT_MAX_BYTES)
    }
}
