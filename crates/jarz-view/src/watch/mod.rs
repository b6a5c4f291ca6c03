//! A run in the terminal: curves that grow with it.

mod curves;
mod frame;

use crate::{Folder, ViewError};
use frame::Frame;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::Rect;
use ratatui::widgets::Widget;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a key press may take to be noticed, at most.
const TICK: Duration = Duration::from_millis(100);
/// How often the folder is looked at.
const REFRESH: Duration = Duration::from_millis(500);
/// Smallest plain picture in which something can be seen.
const SMALLEST: (u16, u16) = (40, 16);

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Quit,
    Next,
    Previous,
    /// The later half, or all again.
    Half,
    Nothing,
}

/// One picture as plain text, for pipes and files.
pub fn watch_once(folder: &Path, width: u16, height: u16) -> Result<String, ViewError> {
    let folder = Folder::open(folder)?;
    let area = Rect::new(0, 0, width.max(SMALLEST.0), height.max(SMALLEST.1));
    let mut buffer = Buffer::empty(area);
    Frame::plain(&folder, newest(&folder)).render(area, &mut buffer);
    let line = |y: u16| -> String { (0..area.width).map(|x| buffer[(x, y)].symbol()).collect() };
    Ok((0..area.height).map(|y| format!("{}\n", line(y).trim_end())).collect())
}

/// Shows a folder on the terminal until the user presses q or Ctrl-C, or `stop` says so. The terminal is given back as it was,
/// also when something panics.
pub fn watch(folder: &Path, stop: &dyn Fn() -> bool) -> Result<(), ViewError> {
    let mut folder = Folder::open(folder)?;
    let mut terminal = ratatui::try_init().map_err(ViewError::Terminal)?;
    let restore = Restore;
    let (mut chosen, mut half): (Option<usize>, bool) = (None, false);
    let mut trouble = None;
    let mut looked = Instant::now();
    let shown = loop {
        let at = chosen.unwrap_or_else(|| newest(&folder));
        let picture = Frame::new(&folder, at, half, trouble.as_deref());
        if let Err(e) = terminal.draw(|f| f.render_widget(picture, f.area())) {
            break Err(ViewError::Terminal(e));
        }
        match wait(looked + REFRESH, stop) {
            Err(e) => break Err(ViewError::Terminal(e)),
            Ok(Wish::Quit) => break Ok(()),
            Ok(Wish::Next) => chosen = Some((at + 1) % runs(&folder).max(1)),
            Ok(Wish::Previous) => chosen = Some(at.checked_sub(1).unwrap_or(runs(&folder).saturating_sub(1))),
            Ok(Wish::Half) => half = !half,
            Ok(Wish::Nothing) => {}
        }
        if looked.elapsed() >= REFRESH {
            // A folder that cannot be read just now may be readable again later; the last picture stays.
            trouble = folder.refresh().err().map(|e| e.to_string());
            looked = Instant::now();
        }
    };
    drop(restore);
    shown
}

/// Gives the terminal back.
struct Restore;

impl Drop for Restore {
    fn drop(&mut self) {
        // A panic has done so already, before its message; twice would put the cursor back where it was.
        if !std::thread::panicking() {
            ratatui::restore();
        }
    }
}

/// Waits for a key, the end of waiting, or the wish to stop.
fn wait(until: Instant, stop: &dyn Fn() -> bool) -> std::io::Result<Wish> {
    while Instant::now() < until {
        if stop() {
            return Ok(Wish::Quit);
        }
        if !event::poll(TICK.min(until.saturating_duration_since(Instant::now())))? {
            continue;
        }
        match event::read()? {
            Event::Key(key) if key.kind != KeyEventKind::Release => return Ok(wish(key)),
            // Redraw in the new size.
            Event::Resize(..) => return Ok(Wish::Nothing),
            _ => {}
        }
    }
    Ok(Wish::Nothing)
}

fn wish(key: KeyEvent) -> Wish {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c' | 'd') if control => Wish::Quit,
        KeyCode::Char('q' | 'Q') | KeyCode::Esc => Wish::Quit,
        KeyCode::Char('h' | 'H') => Wish::Half,
        KeyCode::Right | KeyCode::Down | KeyCode::Tab => Wish::Next,
        KeyCode::Left | KeyCode::Up | KeyCode::BackTab => Wish::Previous,
        _ => Wish::Nothing,
    }
}

fn runs(folder: &Folder) -> usize {
    folder.groups().iter().map(|g| g.runs.len()).sum()
}

/// The run that was written to last.
fn newest(folder: &Folder) -> usize {
    let written = |run: &crate::Run| {
        std::fs::metadata(run.folder().join("metrics.jsonl")).and_then(|m| m.modified()).ok()
    };
    let all = folder.groups().iter().flat_map(|g| &g.runs).enumerate();
    all.max_by_key(|(_, run)| written(run)).map_or(0, |(i, _)| i)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys() {
        let plain = |code| wish(KeyEvent::new(code, KeyModifiers::NONE));
        assert_eq!(plain(KeyCode::Char('q')), Wish::Quit);
        assert_eq!(plain(KeyCode::Esc), Wish::Quit);
        assert_eq!(wish(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)), Wish::Quit);
        assert_eq!(plain(KeyCode::Char('c')), Wish::Nothing);
        assert_eq!(plain(KeyCode::Char('h')), Wish::Half);
        assert_eq!(plain(KeyCode::Right), Wish::Next);
        assert_eq!(plain(KeyCode::Left), Wish::Previous);
    }
}
