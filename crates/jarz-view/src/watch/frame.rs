//! The picture of a run: what it is, how far it is, its curves and its last figures.

use super::curves::{Curves, Part, cross_entropy, ess, masses};
use crate::{Folder, Kind, Run, plus_minus};
use jarz::StopReason;
use jarz_figures::duration;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Gauge, Paragraph, Widget, Wrap};

/// Enough room for charts side by side.
const WIDE: u16 = 80;

/// One run of a folder.
pub(super) struct Frame<'a> {
    folder: &'a Folder,
    at: usize,
    /// Whether only the later half is drawn.
    half: bool,
    trouble: Option<&'a str>,
    plain: bool,
}

impl<'a> Frame<'a> {
    /// For a terminal; `trouble` is what went wrong with the last look at the folder.
    pub(super) fn new(folder: &'a Folder, at: usize, half: bool, trouble: Option<&'a str>) -> Self {
        Self { folder, at, half, trouble, plain: false }
    }

    /// For a file.
    pub(super) fn plain(folder: &'a Folder, at: usize) -> Self {
        Self { folder, at, half: false, trouble: None, plain: true }
    }

    /// Group and run, with the number of all runs.
    fn run(&self) -> Option<(&'a str, &'a Run, usize)> {
        let all =
            || self.folder.groups().iter().flat_map(|g| g.runs.iter().map(move |r| (g.name.as_str(), r)));
        let (name, run) = all().nth(self.at)?;
        Some((name, run, all().count()))
    }

    fn title(&self, group: &str, run: &Run, count: usize) -> String {
        let name = match self.folder.kind() {
            Kind::Run => run.name(),
            _ => format!("{group}/{} ({} of {count} runs)", run.name(), self.at + 1),
        };
        let state = match run.summary() {
            Some(s) if s.stop_reason == StopReason::Finished.name() && run.is_finished() => "finished",
            Some(s) if s.stop_reason == StopReason::Interrupted.name() => "stopped",
            _ => "not finished",
        };
        let time = run.seconds().map_or(String::new(), |s| format!(", {}", duration(s)));
        format!("{name}: {state}, seed {}{time}", run.config().seed)
    }

    fn footer(&self, run: &Run, count: usize, width: u16) -> Vec<Line<'static>> {
        let mut lines: Vec<Line<'_>> =
            filled(figures(run), width.into()).into_iter().map(Line::from).collect();
        let trouble = self.trouble.map(String::from);
        lines.extend(
            trouble.into_iter().chain(run.damages()).take(2).map(|t| Line::from(t).fg(Color::Indexed(166))),
        );
        if !self.plain {
            let more = if count > 1 { "  ←/→ other runs" } else { "" };
            let part = if self.half { "all" } else { "the later half only" };
            lines.push(Line::from(format!("q quits  h shows {part}{more}")).dim());
        }
        lines
    }
}

/// The last figures.
fn figures(run: &Run) -> Vec<String> {
    let Some(row) = run.rows().last() else { return vec!["no rows yet".into()] };
    let mut parts = Vec::new();
    if let Some(h) = row.cross_entropy {
        parts.push(format!("cross-entropy {} nats", plus_minus(h, row.cross_entropy_std_error)));
    } else if let Some(h) = row.cross_entropy_exact {
        parts.push(format!("cross-entropy {h:.4} nats (exact)"));
    }
    if let Some(z) = row.log_z {
        parts.push(format!("log Z {}", plus_minus(z, row.log_z_std_error)));
    }
    if let Some(ess) = row.ess.filter(|_| run.is_weighted()) {
        parts.push(format!("ESS {ess:.3}, {} resamplings", row.resamplings));
    }
    if let Some(masses) = &row.masses {
        let list: Vec<String> = masses.iter().take(6).map(|m| format!("{m:.3}")).collect();
        parts.push(format!("masses {}", list.join(" ")));
    }
    parts
}

/// Parts side by side, as many in a line as fit.
fn filled(parts: Vec<String>, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 3 + part.chars().count() <= width => {
                line.push_str("   ");
                line.push_str(&part);
            }
            _ => lines.push(part),
        }
    }
    lines
}

impl Widget for Frame<'_> {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        let Some((group, run, count)) = self.run() else {
            let words = self.trouble.unwrap_or("no run has begun yet");
            return Paragraph::new(words).wrap(Wrap { trim: true }).render(area, buffer);
        };
        let footer = self.footer(run, count, area.width);
        let rows = height(&footer, area.width).min(area.height / 3);
        let parts =
            [Constraint::Length(1), Constraint::Length(1), Constraint::Fill(1), Constraint::Length(rows)];
        let [head, progress, charts, foot] = area.layout(&Layout::vertical(parts));
        Line::from(self.title(group, run, count)).bold().render(head, buffer);
        let (done, all) = (run.iterations(), run.config().run.iterations);
        let ratio = if all == 0 { 1.0 } else { (done as f64 / all as f64).clamp(0.0, 1.0) };
        if self.plain {
            format!("{done} of {all} iterations, {:.0} %", 100.0 * ratio).render(progress, buffer);
        } else {
            let label = format!("{done} of {all} iterations");
            Gauge::default()
                .ratio(ratio)
                .label(label)
                .gauge_style(Color::Indexed(32))
                .render(progress, buffer);
        }
        let part = Part { run, half: self.half };
        let curves = [cross_entropy(part), ess(part), masses(part)];
        let curves: Vec<Curves> = curves.into_iter().filter(|c| !c.is_empty()).collect();
        for (curves, place) in curves.iter().zip(places(charts, curves.len())) {
            curves.chart(self.plain, place.height).render(place, buffer);
        }
        Paragraph::new(footer).wrap(Wrap { trim: true }).render(foot, buffer);
    }
}

/// Rows that lines take when they are broken between words.
fn height(lines: &[Line<'_>], width: u16) -> u16 {
    let rows = |line: &Line<'_>| match line.width().div_ceil(usize::from(width.max(1))) {
        // A word that does not fit leaves its place empty.
        n if n > 1 => n + 1,
        n => n.max(1),
    };
    lines.iter().map(rows).sum::<usize>() as u16
}

/// The first chart above the others, which share a row if there is room; else one below the other.
fn places(area: Rect, count: usize) -> Vec<Rect> {
    let rows = |area: Rect, n: usize| Layout::vertical(vec![Constraint::Fill(1); n]).split(area).to_vec();
    if count < 3 || area.width < WIDE {
        return rows(area, count);
    }
    let halves = rows(area, 2);
    let below = Layout::horizontal(vec![Constraint::Fill(1); count - 1]).split(halves[1]);
    [&halves[..1], &below].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_cover_the_area_without_overlap() {
        for (width, count) in [(120, 3), (120, 1), (60, 3), (60, 2)] {
            let area = Rect::new(0, 2, width, 31);
            let all = places(area, count);
            assert_eq!(all.len(), count);
            assert_eq!(all.iter().map(|r| r.area()).sum::<u32>(), area.area());
            assert!(all.iter().enumerate().all(|(i, a)| all[..i].iter().all(|b| !a.intersects(*b))));
        }
    }
}
