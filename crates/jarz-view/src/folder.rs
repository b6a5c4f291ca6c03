//! What a folder holds: a run, repeated runs, or groups of runs.

use crate::ViewError;
use crate::run::{Run, name_of};
use jarz_run::{Config, is_run, read_config};
use std::fs;
use std::path::{Path, PathBuf};

/// How deep below a folder runs are looked for.
const DEPTH: usize = 3;

/// What kind of folder it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One run.
    Run,
    /// One configuration with several seeds.
    Repeated,
    /// Several configurations, each with one or more runs: an experiment.
    Collection,
}

/// Runs that differ only in their seeds; possibly just one.
#[derive(Debug)]
pub struct Group {
    /// What it is called in figures and tables.
    pub name: String,
    /// Where its runs are.
    pub folder: PathBuf,
    /// Configuration of the whole group.
    pub config: Config,
    /// The runs that have begun.
    pub runs: Vec<Run>,
}

/// A folder as it is now.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    kind: Kind,
    groups: Vec<Group>,
}

/// A group before its runs are read.
struct Found {
    name: String,
    folder: PathBuf,
    config: Config,
    runs: Vec<PathBuf>,
}

impl Folder {
    /// Reads a folder.
    pub fn open(path: &Path) -> Result<Self, ViewError> {
        let mut folder = Self { path: path.into(), kind: Kind::Run, groups: Vec::new() };
        folder.refresh()?;
        Ok(folder)
    }

    /// Reads a folder in which every row must be sound.
    pub fn open_strictly(path: &Path) -> Result<Self, ViewError> {
        let folder = Self::open(path)?;
        folder.groups.iter().flat_map(|g| &g.runs).try_for_each(Run::check)?;
        Ok(folder)
    }

    /// Takes in what has changed, runs that have begun since included; tells whether anything has. After an error, what was known
    /// before still is.
    pub fn refresh(&mut self) -> Result<bool, ViewError> {
        let (kind, found) = find(&self.path)?;
        let paths: Vec<&PathBuf> = found.iter().flat_map(|f| &f.runs).collect();
        let mut changed = kind != self.kind;
        for run in self.groups.iter_mut().flat_map(|g| &mut g.runs) {
            if paths.iter().any(|path| *path == run.folder()) {
                changed |= run.refresh()?;
            }
        }
        let known = |path: &Path| self.groups.iter().flat_map(|g| &g.runs).any(|run| run.folder() == path);
        let new: Vec<&PathBuf> = paths.into_iter().filter(|path| !known(path)).collect();
        let new: Vec<Run> = new.into_iter().map(|path| Run::open(path)).collect::<Result<_, _>>()?;
        changed |= !new.is_empty();
        let mut pool: Vec<Run> = self.groups.drain(..).flat_map(|g| g.runs).chain(new).collect();
        let mut take = |path: &PathBuf| {
            let place = pool.iter().position(|run| run.folder() == path)?;
            Some(pool.swap_remove(place))
        };
        self.kind = kind;
        self.groups = found
            .into_iter()
            .map(|Found { name, folder, config, runs }| {
                let runs = runs.iter().filter_map(&mut take).collect();
                Group { name, folder, config, runs }
            })
            .collect();
        // What is left has gone from the folder.
        Ok(changed || !pool.is_empty())
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it holds.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Its groups, at least one.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Takes the groups out.
    pub fn into_groups(self) -> Vec<Group> {
        self.groups
    }
}

/// The groups of several folders, with names that tell them apart.
pub fn open_all(paths: &[PathBuf]) -> Result<Vec<Group>, ViewError> {
    let mut groups = Vec::new();
    for path in paths {
        groups.extend(Folder::open_strictly(path)?.groups);
    }
    let ends: Vec<Vec<String>> = groups.iter().map(|g| parts(&g.folder)).collect();
    for (i, group) in groups.iter_mut().enumerate() {
        // As many parts from the end of the path as no other path ends with.
        let shared = |other: &[String]| ends[i].iter().zip(other).take_while(|(a, b)| a == b).count();
        let others = ends.iter().enumerate().filter(|(k, _)| *k != i).map(|(_, other)| shared(other));
        let wanted = (others.max().unwrap_or(0) + 1).min(ends[i].len());
        group.name = ends[i][..wanted].iter().rev().cloned().collect::<Vec<_>>().join("/");
    }
    Ok(groups)
}

/// The parts of a path, last one first.
fn parts(path: &Path) -> Vec<String> {
    let full = path.canonicalize().unwrap_or_else(|_| path.into());
    full.iter().rev().map(|part| part.to_string_lossy().into_owned()).filter(|part| part != "/").collect()
}

impl Group {
    /// The runs that means are made of: the finished ones, or all while none is.
    pub fn counted(&self) -> Vec<&Run> {
        let finished: Vec<&Run> = self.runs.iter().filter(|r| r.is_finished()).collect();
        if finished.is_empty() { self.runs.iter().collect() } else { finished }
    }

    /// Computing time of all runs.
    pub fn seconds(&self) -> f64 {
        self.runs.iter().filter_map(Run::seconds).sum()
    }
}

fn find(path: &Path) -> Result<(Kind, Vec<Found>), ViewError> {
    if !path.is_dir() {
        return Err(ViewError::Missing { folder: path.into() });
    }
    if is_run(path) {
        let config = read_config(path)?;
        let repeated = config.run.runs > 1;
        let runs = if repeated { runs_below(&path.join("runs"), 1) } else { vec![path.into()] };
        let found = Found { name: name_of(path), folder: path.into(), config, runs };
        return Ok((if repeated { Kind::Repeated } else { Kind::Run }, vec![found]));
    }
    let mut groups: Vec<Found> = Vec::new();
    for run in runs_below(path, DEPTH) {
        let parent = run.parent().unwrap_or(path).to_path_buf();
        if let Some(group) = groups.iter_mut().find(|g| g.folder == parent) {
            group.runs.push(run);
            continue;
        }
        let below = parent.strip_prefix(path).unwrap_or(&parent);
        let name = if below.as_os_str().is_empty() { name_of(path) } else { below.display().to_string() };
        groups.push(Found { name, folder: parent, config: read_config(&run)?, runs: vec![run] });
    }
    match groups.is_empty() {
        true => Err(ViewError::NoRuns { folder: path.into() }),
        false => Ok((Kind::Collection, groups)),
    }
}

/// Run folders below a folder, by name. Links are not followed: they could lead in circles.
fn runs_below(path: &Path, depth: usize) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(path) else { return Vec::new() };
    let is_folder = |e: &fs::DirEntry| e.file_type().is_ok_and(|t| t.is_dir());
    let mut folders: Vec<PathBuf> = entries.flatten().filter(is_folder).map(|e| e.path()).collect();
    folders.sort();
    let mut runs = Vec::new();
    for folder in folders {
        if is_run(&folder) {
            runs.push(folder);
        } else if depth > 1 {
            runs.extend(runs_below(&folder, depth - 1));
        }
    }
    runs
}
