//! How far an experiment is, for whoever waits for it.

use crate::figures::draw_run;
use crate::ui::{Ui, stopped};
use indicatif::{ProgressBar, ProgressStyle};
use jarz::annealing::Rung;
use jarz_experiments::timing::duration;
use jarz_experiments::{Progress, Watch};
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// One bar, or a line now and then, for all runs of an experiment.
pub(super) struct Board<'a> {
    ui: &'a Ui,
    name: String,
    begun: Instant,
    bar: Option<ProgressBar>,
    last: Mutex<Instant>,
}

/// The bar counts in these.
const PARTS: u64 = 1000;

impl<'a> Board<'a> {
    /// For the experiment of that name.
    pub(super) fn new(ui: &'a Ui, name: &str) -> Self {
        let bar = (!ui.quiet && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::new(PARTS);
            if let Ok(style) = ProgressStyle::with_template("{prefix:>22} [{bar:28}] {percent} % {msg}") {
                bar.set_style(style.progress_chars("=> "));
            }
            bar.set_prefix(name.to_string());
            bar
        });
        let now = Instant::now();
        Board { ui, name: name.into(), begun: now, bar, last: Mutex::new(now) }
    }
}

/// The last two parts of a run's folder: variant and run.
fn of_run(folder: &Path) -> String {
    let parts: Vec<_> = folder.iter().rev().take(2).map(|p| p.to_string_lossy()).collect();
    parts.into_iter().rev().collect::<Vec<_>>().join("/")
}

impl Board<'_> {
    /// Whether it is time to show something; the end is always shown.
    fn is_due(&self, end: bool) -> bool {
        let pause = Duration::from_millis(if self.bar.is_some() { 200 } else { 5000 });
        let Ok(mut last) = self.last.try_lock() else { return false };
        if self.ui.quiet || (last.elapsed() < pause && !end) {
            return false;
        }
        *last = Instant::now();
        true
    }
}

impl Watch for Board<'_> {
    fn say(&self, text: &str) {
        self.ui.say(text);
    }

    fn warn(&self, text: &str) {
        self.ui.warn(text);
    }

    fn stopped(&self) -> bool {
        stopped()
    }

    fn progress(&self, p: Progress) {
        if !self.is_due(p.share >= 1.0) {
            return;
        }
        let spent = self.begun.elapsed().as_secs_f64();
        let left = if p.share > 0.01 {
            format!(", {} left", duration(spent / p.share - spent))
        } else {
            String::new()
        };
        let text = format!("{} of {} runs done{left}", p.done, p.runs);
        match &self.bar {
            Some(bar) => {
                bar.set_position((p.share * PARTS as f64) as u64);
                bar.set_message(text);
            }
            None => eprintln!("{}: {:.0} %, {text}", self.name, 100.0 * p.share),
        }
    }

    fn annealing(&self, folder: &Path, rung: &Rung) {
        if !self.is_due(rung.t >= 1.0) {
            return;
        }
        let text = format!("annealing to {}: t = {:.4}, ESS {:.2}", of_run(folder), rung.t, rung.ess);
        match &self.bar {
            Some(bar) => {
                // Time is not proportional to t; the bar shows that it goes on.
                bar.set_position((rung.t * PARTS as f64) as u64);
                bar.set_message(text);
            }
            None => eprintln!("{}: {text}", self.name),
        }
    }

    fn finished(&self, folder: &Path) -> Result<(), String> {
        draw_run(folder).map(|_| ()).map_err(|e| e.to_string())
    }
}

impl Drop for Board<'_> {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.abandon();
        }
    }
}
