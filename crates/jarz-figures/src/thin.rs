/// Reduces a curve to at most `max` points while keeping its look: the points are cut into runs of equal length, and
/// each run keeps its lowest and its highest point, in their order. First and last point stay, hence so do the global
/// extremes. A run that holds a non-finite point keeps one of those too, so that gaps in the curve remain gaps.
///
/// With `max` of 2 or 3 only the extremes are kept, with 1 only the first point.
///
/// ```
/// let wave: Vec<(f64, f64)> = (0..100_000).map(|i| (i as f64, (i as f64 * 0.37).sin())).collect();
/// let small = jarz_figures::thin(&wave, 1000);
/// assert!(small.len() <= 1000);
/// assert_eq!(small.first(), wave.first());
/// ```
pub fn thin(points: &[(f64, f64)], max: usize) -> Vec<(f64, f64)> {
    if points.len() <= max {
        return points.to_vec();
    }
    if max < 2 {
        return points[..max].to_vec();
    }
    let finite = |i: usize| points[i].0.is_finite() && points[i].1.is_finite();
    let gaps = (0..points.len()).any(|i| !finite(i));
    let last = points.len() - 1;
    let per_run = if gaps { 3 } else { 2 };
    let runs = max.saturating_sub(2) / per_run;
    let mut kept = Vec::with_capacity(max);
    if runs == 0 {
        keep_run(&mut kept, 0..points.len(), points, false);
    } else {
        kept.push(0);
        for r in 0..runs {
            let start = 1 + r * (last - 1) / runs;
            let end = 1 + (r + 1) * (last - 1) / runs;
            keep_run(&mut kept, start..end, points, gaps);
        }
        kept.push(last);
    }
    kept.into_iter().map(|i| points[i]).collect()
}

/// Adds the indices of the lowest, the highest and (if asked for) one undrawable point of a run, ascending.
fn keep_run(kept: &mut Vec<usize>, run: std::ops::Range<usize>, points: &[(f64, f64)], with_gap: bool) {
    let (mut low, mut high, mut gap) = (None, None, None);
    for i in run {
        let (x, y) = points[i];
        if !(x.is_finite() && y.is_finite()) {
            gap = gap.or(Some(i));
            continue;
        }
        if low.is_none_or(|k: usize| y < points[k].1) {
            low = Some(i);
        }
        if high.is_none_or(|k: usize| y > points[k].1) {
            high = Some(i);
        }
    }
    let mut chosen: Vec<usize> = [low, high, gap.filter(|_| with_gap)].into_iter().flatten().collect();
    chosen.sort_unstable();
    chosen.dedup();
    kept.extend(chosen);
}
