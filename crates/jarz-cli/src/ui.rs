//! What the user sees while something runs: a progress bar on a terminal, plain lines elsewhere, JSON if asked.

use indicatif::{ProgressBar, ProgressStyle};
use jarz::{Estimates, Observer, StepInfo};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Set by Ctrl-C (or SIGTERM): finish the iteration, write a checkpoint, stop.
static STOP: AtomicBool = AtomicBool::new(false);

/// Catches Ctrl-C, and answers with `word` if there is one. A second one ends the program at once.
pub fn catch_interrupts(word: Option<&'static str>) -> Result<(), ctrlc::Error> {
    ctrlc::set_handler(move || {
        if STOP.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
        if let Some(word) = word {
            eprintln!("\n{word}");
        }
    })
}

/// Whether the user asked to stop.
pub fn stopped() -> bool {
    STOP.load(Ordering::SeqCst)
}

/// How much is said, and how.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ui {
    /// Nothing but errors and results.
    pub quiet: bool,
    /// Results as JSON on standard output.
    pub json: bool,
    /// Not even warnings and results: another rank says them.
    pub silent: bool,
}

impl Ui {
    /// A line for the user; on standard error, so that results can be piped.
    pub fn say(&self, text: &str) {
        if !self.quiet {
            eprintln!("{text}");
        }
    }

    /// A warning; never suppressed.
    pub fn warn(&self, text: &str) {
        if !self.silent {
            eprintln!("warning: {text}");
        }
    }

    /// How it ended; never suppressed.
    pub fn result(&self, text: &str) {
        if !self.silent {
            eprintln!("{text}");
        }
    }

    /// Progress of a run of `iterations`, of which `done` are done.
    pub fn progress(&self, label: &str, done: u64, iterations: u64) -> Progress {
        let terminal = std::io::stderr().is_terminal();
        let bar = (!self.quiet && terminal).then(|| {
            let bar = ProgressBar::new(iterations).with_position(done);
            let style =
                ProgressStyle::with_template("{prefix:>22} [{bar:28}] {pos}/{len} {per_sec} ETA {eta} {msg}");
            if let Ok(style) = style {
                bar.set_style(style.progress_chars("=> "));
            }
            bar.set_prefix(label.to_string());
            bar
        });
        Progress {
            label: label.to_string(),
            bar,
            lines: !self.quiet && !terminal,
            iterations,
            begun: (done, Instant::now()),
            last_line: None,
        }
    }
}

/// Shows how a run goes.
pub struct Progress {
    label: String,
    bar: Option<ProgressBar>,
    lines: bool,
    iterations: u64,
    begun: (u64, Instant),
    last_line: Option<Instant>,
}

/// What a line says about estimates.
fn describe(e: &Estimates) -> String {
    let mut text = format!("ESS {:.2}", e.ess);
    if let Some(h) = e.cross_entropy {
        text += &format!(", cross-entropy {:.4}", h.value);
    } else if let Some(h) = e.cross_entropy_exact {
        text += &format!(", cross-entropy {h:.4} (exact)");
    }
    if let Some(masses) = e.masses.as_ref().filter(|m| m.len() > 1 && m.len() <= 4) {
        let list: Vec<String> = masses.iter().map(|m| format!("{m:.3}")).collect();
        text += &format!(", masses {}", list.join(" "));
    }
    text
}

impl Observer for Progress {
    fn log(&mut self, e: &Estimates) -> Result<(), String> {
        if let Some(bar) = &self.bar {
            bar.set_message(describe(e));
        }
        let end = e.iteration >= self.iterations;
        let pause = Duration::from_secs(5);
        if self.lines && (end || self.last_line.is_none_or(|at| at.elapsed() >= pause)) {
            let (from, start) = self.begun;
            let seconds = start.elapsed().as_secs_f64();
            let rate = (e.iteration.saturating_sub(from)) as f64 / seconds.max(1e-9);
            let left = self.iterations.saturating_sub(e.iteration) as f64 / rate;
            let pace = match rate > 0.0 {
                true => format!("{rate:.0} it/s, {left:.0} s left, "),
                false => String::new(),
            };
            eprintln!("{}: iteration {}/{}, {pace}{}", self.label, e.iteration, self.iterations, describe(e));
            self.last_line = Some(Instant::now());
        }
        Ok(())
    }

    fn step(&mut self, info: &StepInfo) -> Result<(), String> {
        if let Some(bar) = &self.bar {
            bar.set_position(info.iteration);
        }
        Ok(())
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.abandon();
        }
    }
}

/// Shows how a file comes in.
pub struct Transfer<'a> {
    ui: &'a Ui,
    file: String,
    bar: Option<ProgressBar>,
    last_line: Instant,
}

impl<'a> Transfer<'a> {
    /// Nothing has come yet.
    pub fn new(ui: &'a Ui) -> Self {
        Transfer { ui, file: String::new(), bar: None, last_line: Instant::now() }
    }

    fn begin(&mut self, file: &str, total: Option<u64>) {
        self.end();
        self.file = file.to_string();
        self.last_line = Instant::now();
        if !self.ui.quiet && std::io::stderr().is_terminal() {
            let bar = total.map_or_else(ProgressBar::no_length, ProgressBar::new);
            let template = "{prefix:>30} [{bar:28}] {bytes}/{total_bytes} {bytes_per_sec} ETA {eta}";
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style.progress_chars("=> "));
            }
            bar.set_prefix(file.to_string());
            self.bar = Some(bar);
        }
    }

    fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.abandon();
        }
    }
}

impl jarz_fetch::Watch for Transfer<'_> {
    fn say(&mut self, text: &str) {
        self.end();
        self.ui.say(text);
    }

    fn progress(&mut self, file: &str, done: u64, total: Option<u64>) {
        if file != self.file {
            self.begin(file, total);
        }
        match &self.bar {
            Some(bar) => bar.set_position(done),
            None if total == Some(done) || self.last_line.elapsed() >= Duration::from_secs(5) => {
                let of = total.map_or(String::new(), |total| format!(" of {:.1}", total as f64 / 1e6));
                self.ui.say(&format!("{file}: {:.1}{of} MB", done as f64 / 1e6));
                self.last_line = Instant::now();
            }
            None => {}
        }
    }

    fn stopped(&self) -> bool {
        stopped()
    }
}

impl Drop for Transfer<'_> {
    fn drop(&mut self) {
        self.end();
    }
}
