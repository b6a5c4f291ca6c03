//! Claims and whether a measurement bears them out.

use serde::Serialize;

/// Whether a measurement agrees with a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Agreement {
    /// The criterion is met.
    Yes,
    /// The criterion is not met.
    No,
    /// The experiment is too small to tell.
    Undecided,
}

impl Agreement {
    /// What a reader is told.
    pub fn text(self) -> &'static str {
        match self {
            Agreement::Yes => "yes",
            Agreement::No => "no",
            Agreement::Undecided => "cannot decide at this scale",
        }
    }

    /// A sign that can be told from the others without colours.
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Agreement::Yes => "\u{2713}",
            Agreement::No => "\u{2717}",
            Agreement::Undecided => "?",
        }
    }

    /// Its class in the style sheet.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Agreement::Yes => "yes",
            Agreement::No => "no",
            Agreement::Undecided => "undecided",
        }
    }
}

impl From<bool> for Agreement {
    fn from(met: bool) -> Self {
        if met { Agreement::Yes } else { Agreement::No }
    }
}

/// One row of the table "what the paper says, what this run measured, does it agree".
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// What is claimed.
    pub claim: String,
    /// What was measured, with its error where there is one.
    pub measured: String,
    /// The rule that decides, stated so that a reader can apply it.
    pub criterion: String,
    /// What the rule says.
    pub agreement: Agreement,
}

impl Verdict {
    /// A row.
    pub fn new(
        claim: impl Into<String>,
        measured: impl Into<String>,
        criterion: impl Into<String>,
        agreement: impl Into<Agreement>,
    ) -> Self {
        Self {
            claim: claim.into(),
            measured: measured.into(),
            criterion: criterion.into(),
            agreement: agreement.into(),
        }
    }
}
