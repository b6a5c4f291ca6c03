//! Curves in pixels: gaps, thinning to what a screen can show, and drawing.

use crate::layout::Plot;
use crate::style::{Look, Marker};
use crate::svg::Canvas;
use crate::{Panel, Series};

/// Width of the columns to which dense curves are thinned, in pixels.
const COLUMN: f64 = 0.5;
/// Width of the columns in which noise is looked for, in pixels.
const NOISE_COLUMN: f64 = 3.0;
/// Least distance between markers, in pixels.
const MARKER_GAP: f64 = 16.0;
const MARKER_RADIUS: f64 = 3.2;

type Run = Vec<(f64, f64)>;

/// The parts of a series between its gaps, in pixels.
pub(crate) fn runs(series: &Series, plot: &Plot) -> Vec<Run> {
    split(series.points.iter().map(|(x, y)| plot.point(*x, *y)))
}

fn split<T>(points: impl Iterator<Item = Option<T>>) -> Vec<Vec<T>> {
    let mut runs = vec![Vec::new()];
    for point in points {
        match point {
            Some(p) => runs.last_mut().expect("never empty").push(p),
            None if runs.last().is_some_and(|run| !run.is_empty()) => runs.push(Vec::new()),
            None => {}
        }
    }
    runs.retain(|run| !run.is_empty());
    runs
}

/// Keeps first, lowest, highest and last of the consecutive points that share a column of pixels.
pub(crate) fn thin_to_pixels(run: &[(f64, f64)]) -> Run {
    let column = |p: &(f64, f64)| (p.0 / COLUMN).floor();
    let mut out = Vec::new();
    for group in run.chunk_by(|a, b| column(a) == column(b)) {
        if group.len() <= 4 {
            out.extend_from_slice(group);
            continue;
        }
        let by_height = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let low = group.iter().min_by(by_height).expect("not empty");
        let high = group.iter().max_by(by_height).expect("not empty");
        let ends = [group[0], *low, *high, group[group.len() - 1]];
        let swap = group.iter().position(|p| p == low) > group.iter().position(|p| p == high);
        let order = if swap { [0, 2, 1, 3] } else { [0, 1, 2, 3] };
        out.extend(order.map(|i| ends[i]));
    }
    out.dedup();
    out
}

/// A run made ready for drawing.
#[derive(Debug, Default, PartialEq)]
struct Trace {
    line: Run,
    /// Outlines of the areas that a noisy line sweeps.
    swept: Vec<Run>,
}

impl Trace {
    /// Where the line swings up and down within a few pixels, it is replaced by its local mean and the area it sweeps:
    /// dashes drawn along the swings could not be told from a solid line. Elsewhere it is thinned to pixels.
    fn of(run: &[(f64, f64)]) -> Self {
        let mut trace = Self::default();
        let mut range: Vec<(f64, f64, f64)> = Vec::new();
        let column = |p: &(f64, f64)| (p.0 / NOISE_COLUMN).floor();
        for group in run.chunk_by(|a, b| column(a) == column(b)) {
            let top = group.iter().map(|p| p.1).fold(f64::INFINITY, f64::min);
            let bottom = group.iter().map(|p| p.1).fold(f64::NEG_INFINITY, f64::max);
            let travelled: f64 = group.windows(2).map(|w| (w[1].1 - w[0].1).abs()).sum();
            let extent = bottom - top;
            if group.len() < 6 || extent < 0.1 || travelled < 2.5 * extent {
                trace.sweep(&mut range);
                trace.line.extend(thin_to_pixels(group));
                continue;
            }
            let share = 1.0 / group.len() as f64;
            let middle = 0.5 * (group[0].0 + group[group.len() - 1].0);
            trace.line.push((middle, share * group.iter().map(|p| p.1).sum::<f64>()));
            if extent < 1.2 {
                // No wider than the line itself.
                trace.sweep(&mut range);
                continue;
            }
            if range.is_empty() {
                range.push((group[0].0, top, bottom));
            }
            range.push((middle, top, bottom));
            if range.len() == 2 || group.last() == run.last() {
                range.push((group[group.len() - 1].0, top, bottom));
            }
        }
        trace.sweep(&mut range);
        trace
    }

    /// Turns the ranges collected so far into an outline.
    fn sweep(&mut self, range: &mut Vec<(f64, f64, f64)>) {
        if !range.is_empty() {
            let back = range.iter().rev().map(|r| (r.0, r.2));
            self.swept.push(range.iter().map(|r| (r.0, r.1)).chain(back).collect());
            range.clear();
        }
    }
}

/// Draws all bands of a panel.
pub(crate) fn bands(canvas: &mut Canvas, panel: &Panel, plot: &Plot) {
    for (series, look) in panel.looks() {
        let Some(band) = &series.band else { continue };
        let edges = band.iter().map(|(x, low, high)| {
            let x = plot.x.place(*x)?;
            let (a, b) = (plot.y.place_or_below(*low)?, plot.y.place_or_below(*high)?);
            Some((plot.pixel(x, a), plot.pixel(x, b)))
        });
        for run in split(edges) {
            let mut outline = outer(run.iter().map(|(a, b)| if a.1 > b.1 { *a } else { *b }), f64::max);
            let mut upper = outer(run.iter().map(|(a, b)| if a.1 > b.1 { *b } else { *a }), f64::min);
            upper.reverse();
            outline.append(&mut upper);
            canvas.polygon(&outline, look.colour, 0.18);
        }
    }
}

/// Thins one edge of a band to one point per column of pixels, the outermost.
fn outer(edge: impl Iterator<Item = (f64, f64)>, pick: fn(f64, f64) -> f64) -> Run {
    let mut out: Run = Vec::new();
    let mut current = f64::NAN;
    for (x, y) in edge {
        let column = (x / COLUMN).floor();
        match out.last_mut() {
            Some(last) if column == current => last.1 = pick(last.1, y),
            _ => out.push((x, y)),
        }
        current = column;
    }
    out
}

/// Draws one series.
pub(crate) fn series(canvas: &mut Canvas, runs: &[Run], look: &Look) {
    for run in runs {
        if run.len() == 1 && look.marker.is_none() {
            canvas.disc(run[0].0, run[0].1, (1.1 * look.width).max(1.5), look.colour);
        } else {
            let trace = Trace::of(run);
            if look.width > 0.0 {
                for area in &trace.swept {
                    canvas.polygon(area, look.colour, 0.3);
                }
            }
            canvas.polyline(&trace.line, look);
        }
    }
    let Some(shape) = look.marker else { return };
    let mut last: Option<(f64, f64)> = None;
    for &(x, y) in runs.iter().flatten() {
        let gap = if look.width == 0.0 { 0.25 * COLUMN } else { MARKER_GAP };
        if last.is_none_or(|(u, v)| (x - u).hypot(y - v) >= gap) {
            marker(canvas, x, y, shape, look.colour);
            last = Some((x, y));
        }
    }
}

/// Draws one marker.
pub(crate) fn marker(canvas: &mut Canvas, x: f64, y: f64, shape: Marker, colour: &str) {
    let r = MARKER_RADIUS;
    let mut polygon = |corners: &[(f64, f64)]| {
        let corners: Run = corners.iter().map(|(u, v)| (x + r * u, y + r * v)).collect();
        canvas.polygon(&corners, colour, 1.0);
    };
    match shape {
        Marker::Circle => canvas.disc(x, y, r, colour),
        Marker::Square => polygon(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
        Marker::Triangle => polygon(&[(-1.1, 0.85), (0.0, -1.15), (1.1, 0.85)]),
        Marker::Diamond => polygon(&[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]),
        Marker::Cross => {
            canvas.strokes(&[[x - r, y - r, x + r, y + r], [x - r, y + r, x + r, y - r]], colour, 1.5);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_split_a_curve() {
        let parts = split([None, Some(1), Some(2), None, None, Some(3), None].into_iter());
        assert_eq!(parts, [vec![1, 2], vec![3]]);
        assert!(split::<i32>([None, None].into_iter()).is_empty());
    }

    #[test]
    fn only_noise_is_replaced_by_its_mean() {
        let curve = |f: fn(i32) -> f64| -> Run { (0..3000).map(|i| (f64::from(i) * 0.1, f(i))).collect() };
        let noisy = Trace::of(&curve(|i| 50.0 + f64::from(i * 7919 % 21)));
        assert_eq!(noisy.swept.len(), 1);
        assert!(noisy.line.len() <= 101 && noisy.line.iter().all(|p| (p.1 - 60.0).abs() < 4.0));
        let heights = || noisy.swept[0].iter().map(|p| p.1);
        assert_eq!((heights().fold(f64::MAX, f64::min), heights().fold(f64::MIN, f64::max)), (50.0, 70.0));
        for smooth in [curve(f64::from), curve(|i| f64::from(i % 300)), curve(|_| 5.0)] {
            let trace = Trace::of(&smooth);
            assert!(trace.swept.is_empty());
            assert_eq!((trace.line.first(), trace.line.last()), (smooth.first(), smooth.last()));
        }
    }

    #[test]
    fn dense_curves_keep_their_extremes() {
        let run: Run = (0..50_000).map(|i| (f64::from(i) * 0.005, f64::from(i * 7919 % 1000))).collect();
        let small = thin_to_pixels(&run);
        assert!(small.len() <= 4 * 501, "{}", small.len());
        let top = |r: &Run| r.iter().map(|p| p.1).fold(f64::MIN, f64::max);
        let low = |r: &Run| r.iter().map(|p| p.1).fold(f64::MAX, f64::min);
        assert_eq!((top(&run), low(&run)), (top(&small), low(&small)));
        assert_eq!((run[0], run[49_999]), (small[0], small[small.len() - 1]));
    }
}
