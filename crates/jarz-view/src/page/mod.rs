//! Report pages, made from what is in run folders.

mod cautions;
mod compare;
mod differences;
mod repeated;
mod single;

pub use compare::compare;

use crate::{Folder, Kind, Run, ViewError};
use jarz_figures::{Figure, Report, Section};
use std::path::{Path, PathBuf};

/// A page and its figure.
struct Page {
    folder: PathBuf,
    report: Report,
    figure: Figure,
    /// Stem of the figure's files.
    stem: &'static str,
}

impl Page {
    /// Writes `figures/` and `report.html`; returns their paths.
    fn save(self) -> Result<Vec<PathBuf>, ViewError> {
        let figures = self.folder.join("figures");
        self.figure.save(&figures, self.stem)?;
        let file = |end: &str| figures.join(format!("{}.{end}", self.stem));
        let written = vec![file("svg"), file("png"), self.folder.join("report.html")];
        let folder = self.folder.clone();
        self.report().save(&folder, "report")?;
        Ok(written)
    }

    /// The page with links to the files that exist beside it.
    fn report(self) -> Report {
        let figure = |end: &str| format!("figures/{}.{end}", self.stem);
        let known = ["metrics.jsonl", "summary.json", "run.toml"].map(String::from);
        let paths = known.into_iter().chain([figure("svg"), figure("png")]);
        let paths = paths.filter(|name| self.folder.join(name).is_file()).collect();
        self.report.section(Section::Files { caption: "In this folder:".into(), paths })
    }
}

/// The page of a folder, whatever it holds.
pub fn report(folder: &Folder) -> Report {
    match (folder.kind(), folder.groups()) {
        (Kind::Run, [group]) => match &group.runs[..] {
            [run] => single::page(run).report(),
            _ => Report::new(group.name.clone()),
        },
        (Kind::Repeated, [group]) => repeated::page(group).report(),
        (_, groups) => compare(groups),
    }
}

/// Writes the page and figures of a folder into it; returns their paths. A folder with several kinds of runs is refused: its
/// page is not ours to overwrite.
pub fn rebuild(path: &Path) -> Result<Vec<PathBuf>, ViewError> {
    let folder = Folder::open_strictly(path)?;
    match folder.kind() {
        Kind::Run => draw_run(path),
        Kind::Repeated => {
            for run in folder.groups().iter().flat_map(|g| &g.runs) {
                single::page(run).save()?;
            }
            draw_runs(path)
        }
        Kind::Collection => Err(ViewError::Collection { folder: path.into() }),
    }
}

/// Writes `figures/training.svg`, `figures/training.png` and `report.html` of a run folder; returns their paths.
pub fn draw_run(folder: &Path) -> Result<Vec<PathBuf>, ViewError> {
    single::page(&Run::open_strictly(folder)?).save()
}

/// Writes `figures/runs.svg`, `figures/runs.png` and `report.html` of a folder with repeated runs; returns their paths.
pub fn draw_runs(path: &Path) -> Result<Vec<PathBuf>, ViewError> {
    let folder = Folder::open_strictly(path)?;
    match (folder.kind(), folder.groups()) {
        (Kind::Repeated, [group]) => repeated::page(group).save(),
        _ => Err(ViewError::NoRuns { folder: path.into() }),
    }
}

/// What a reader of a run's numbers should know.
pub fn warnings(folder: &Path) -> Result<Vec<String>, ViewError> {
    Ok(cautions::numeric(&Run::open(folder)?))
}

/// Adds notes, if there are any.
fn with_notes(report: Report, notes: &[String]) -> Report {
    if notes.is_empty() { report } else { report.section(Section::Note(notes.join("\n\n"))) }
}

/// Adds a configuration as it stands in `run.toml`.
fn with_configuration(report: Report, caption: &str, config: &jarz_run::Config) -> Report {
    let text = config.to_toml().unwrap_or_else(|e| format!("# {e}\n"));
    report.configuration(caption, text)
}

/// Who made a page.
fn version() -> String {
    format!("jarz {}", env!("CARGO_PKG_VERSION"))
}
