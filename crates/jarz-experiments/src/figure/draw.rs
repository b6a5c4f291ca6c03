//! Drawing the figures of an experiment.

use super::curves::{Curve, over_axis, over_rows};
use super::{FigureSpec, Known, PanelSpec, ReferenceSpec, ScaleName, Shown, default_figures};
use crate::criterion::short;
use crate::plan::{Plan, selects};
use crate::quantity::Quantity;
use crate::results::VariantResult;
use crate::statistics::mean;
use jarz_figures::{Dash, Figure, Marker, Panel, Scale, Series};
use jarz_run::config::{DataConfig, TriggerName};

/// Most modes whose means get a line.
const MAX_MEANS: usize = 4;
/// Markers of the series against an axis, in their order.
const MARKERS: [Marker; 4] = [Marker::Circle, Marker::Square, Marker::Triangle, Marker::Diamond];

/// A figure with its name and caption.
pub struct Drawn {
    /// Name of its files.
    pub name: String,
    /// Text below it.
    pub caption: String,
    /// The figure.
    pub figure: Figure,
}

/// All figures of an experiment; those without anything to show are left out.
pub fn draw(plan: &Plan, results: &[VariantResult]) -> Vec<Drawn> {
    let specs = match plan.resolved.figures.is_empty() {
        true => default_figures(),
        false => plan.resolved.figures.clone(),
    };
    let drawn = specs.iter().map(|spec| Drawn {
        name: if spec.name.is_empty() { plan.name.clone() } else { spec.name.clone() },
        caption: caption(plan, spec),
        figure: figure(plan, spec, results),
    });
    drawn.filter(|d| !d.figure.panels.is_empty()).collect()
}

fn caption(plan: &Plan, spec: &FigureSpec) -> String {
    let shows = |what: Shown| spec.panels.iter().any(|p| p.runs == what);
    let mut text = spec.caption.trim().to_string();
    if plan.runs > 1 && shows(Shown::Mean) {
        text += " Shaded: one standard error over the runs.";
    }
    if plan.runs > 2 && shows(Shown::Median) {
        text += " Lines are medians, shaded from the lowest to the highest tenth of the runs.";
    }
    if plan.runs > 1 && shows(Shown::First) {
        text += " The first run is shown.";
    }
    text.trim().to_string()
}

fn figure(plan: &Plan, spec: &FigureSpec, results: &[VariantResult]) -> Figure {
    let title = if spec.title.is_empty() { &plan.resolved.title } else { &spec.title };
    let first = spec.panels.iter().all(|p| p.runs == Shown::First);
    let runs = match plan.runs {
        1 => String::new(),
        runs if first => format!(" (first of {runs} runs)"),
        runs => format!(" ({runs} runs)"),
    };
    let panels = spec.panels.iter().flat_map(|p| panels(p, results)).collect();
    let figure = Figure { panels, columns: spec.columns, ..Figure::new() };
    figure.title(format!("{title}{runs}"))
}

/// One panel, or one for every variant or choice.
fn panels(spec: &PanelSpec, results: &[VariantResult]) -> Vec<Panel> {
    // A variant keeps its colour in all panels.
    let chosen: Vec<(usize, &VariantResult)> =
        results.iter().filter(|v| selects(&spec.variants, &v.name)).enumerate().collect();
    let groups: Vec<(String, Vec<(usize, &VariantResult)>)> = match (&spec.split, spec.split_axis()) {
        (None, _) => vec![(String::new(), chosen)],
        (Some(_), None) => chosen.into_iter().map(|(i, v)| (v.label.clone(), vec![(i, v)])).collect(),
        (Some(_), Some(axis)) => {
            let mut groups: Vec<(String, Vec<(usize, &VariantResult)>)> = Vec::new();
            for (_, v) in chosen {
                let Some(choice) = v.choices.get(axis) else { continue };
                let at = groups.iter().position(|g| g.0 == choice.label).unwrap_or_else(|| {
                    groups.push((choice.label.clone(), Vec::new()));
                    groups.len() - 1
                });
                let colour = groups[at].1.len();
                groups[at].1.push((colour, v));
            }
            groups
        }
    };
    let drawn = groups.into_iter().map(|(name, variants)| panel(spec, &name, &variants));
    drawn.filter(|p| !p.series.is_empty()).collect()
}

fn panel(spec: &PanelSpec, group: &str, variants: &[(usize, &VariantResult)]) -> Panel {
    let title = match (spec.title.is_empty(), group.is_empty()) {
        (false, false) => format!("{}: {group}", spec.title),
        _ => format!("{}{group}", spec.title),
    };
    let first = spec.y.first().map_or(String::new(), |q| q.label());
    let mut panel = Panel::new(title)
        .x(x_label(spec, variants))
        .y(if spec.label.is_empty() { first } else { spec.label.clone() })
        .x_scale(scale(spec.x_scale, spec.linear))
        .y_scale(scale(spec.scale, spec.linear));
    panel.y_range = spec.range.map(|[low, high]| (low, high));
    panel.x_range = spec.x_range.map(|[low, high]| (low, high));
    for reference in &spec.references {
        panel = lines(panel, reference, spec.runs, variants);
    }
    match spec.axis() {
        None => add_curves(panel, spec, group, variants),
        Some(axis) => add_points(panel, spec, axis, variants),
    }
}

fn x_label(spec: &PanelSpec, variants: &[(usize, &VariantResult)]) -> String {
    let choice = spec.axis().and_then(|axis| variants.iter().find_map(|(_, v)| v.choices.get(axis)));
    choice.map_or_else(|| spec.x.clone(), |c| c.axis.clone())
}

fn scale(name: ScaleName, linthresh: f64) -> Scale {
    match name {
        ScaleName::Linear => Scale::Linear,
        ScaleName::Log => Scale::Log,
        ScaleName::SymLog => Scale::SymLog { linthresh },
    }
}

fn lines(
    panel: Panel,
    reference: &ReferenceSpec,
    runs: Shown,
    variants: &[(usize, &VariantResult)],
) -> Panel {
    let Some((_, first)) = variants.first() else { return panel };
    let known = match reference {
        ReferenceSpec::At(value) => {
            return panel.hline(*value, if *value == 0.0 { String::new() } else { short(*value) });
        }
        ReferenceSpec::Known(known) => known,
    };
    // Every run has data of its own.
    let shown = if runs == Shown::First { 1 } else { usize::MAX };
    let mass = first.last(Quantity::DataMass).map(|m| mean(&m[..shown.min(m.len())]));
    match (known, mass, &first.config.data) {
        (Known::DataMass, Some(mass), _) => panel.hline(mass, format!("data {mass:.3}")),
        (Known::DataZ, Some(mass), _) => {
            let z = (mass / (1.0 - mass)).ln();
            panel.hline(z, format!("data {}", short(z)))
        }
        (Known::DataMeans, _, DataConfig::Mixture { means, .. }) => {
            means.iter().take(MAX_MEANS).fold(panel, |panel, mean| {
                let x = mean.first().copied().unwrap_or(0.0);
                panel.hline(x, format!("data {x}").replace('-', "−"))
            })
        }
        (Known::Threshold, ..) => {
            let resampling = &first.config.resampling;
            let c = resampling.threshold;
            match resampling.trigger == TriggerName::Ess && resampling.thresholds.is_empty() {
                true => panel.hline(c, format!("resampling below {c:.2}")),
                false => panel,
            }
        }
        _ => panel,
    }
}

fn series(label: String, curve: Curve, colour: usize) -> Series {
    let series = Series::new(label, curve.points).colour(colour);
    if curve.band.is_empty() { series } else { series.band(curve.band) }
}

/// Whether a quantity accompanies the first one: an estimate or a prediction of it, rather than another thing of the same kind.
fn accompanies(quantity: Quantity) -> bool {
    !matches!(quantity, Quantity::Mean(_))
}

/// The look of the `j`-th quantity of the series with this colour; a third one is dotted.
fn companion(series: Series, colour: usize, j: usize) -> Series {
    let series = series.companion_of(colour);
    if j > 1 { series.dash(Dash::Dotted) } else { series }
}

fn add_curves(
    mut panel: Panel,
    spec: &PanelSpec,
    group: &str,
    variants: &[(usize, &VariantResult)],
) -> Panel {
    for (j, quantity) in spec.y.iter().enumerate() {
        for (colour, v) in variants {
            let curve = over_rows(v, *quantity, spec);
            if curve.points.is_empty() || (j > 0 && !selects(&spec.companions, &v.name)) {
                continue;
            }
            // A panel of its own needs no name in the legend.
            let alone = group == v.label;
            let name = if alone { String::new() } else { name_beside(v, spec, None) };
            panel = panel.series(match j > 0 && accompanies(*quantity) {
                false if alone => series(name, curve, *colour).dash(Dash::Solid).width(1.2),
                false => series(name, curve, *colour),
                true => {
                    let sep = if alone { "" } else { ", " };
                    companion(series(format!("{name}{sep}{}", quantity.label()), curve, *colour), *colour, j)
                }
            });
        }
    }
    panel
}

/// Name of a variant without what the panel's title or its horizontal axis says already.
fn name_beside(v: &VariantResult, spec: &PanelSpec, axis: Option<&str>) -> String {
    if axis.or(spec.split_axis()).is_none() {
        return v.label.clone();
    }
    let shown = |name: &str| Some(name) != axis && Some(name) != spec.split_axis();
    let labels = v.choices.iter().filter(|(name, _)| shown(name)).map(|(_, choice)| choice.label.clone());
    labels.collect::<Vec<_>>().join(", ")
}

/// A series for every combination of the other axes' choices.
fn add_points(mut panel: Panel, spec: &PanelSpec, axis: &str, variants: &[(usize, &VariantResult)]) -> Panel {
    let mut groups: Vec<(String, Vec<&VariantResult>)> = Vec::new();
    for (_, v) in variants {
        let label = name_beside(v, spec, Some(axis));
        match groups.iter_mut().find(|g| g.0 == label) {
            Some(group) => group.1.push(v),
            None => groups.push((label, vec![v])),
        }
    }
    for (j, quantity) in spec.y.iter().enumerate() {
        for (i, (label, members)) in groups.iter().enumerate() {
            let curve = over_axis(members, axis, *quantity, spec);
            let left_out = j > 0 && !members.iter().any(|v| selects(&spec.companions, &v.name));
            if curve.points.is_empty() || left_out {
                continue;
            }
            panel = panel.series(match j {
                0 => series(label.clone(), curve, i).marker(MARKERS[i % MARKERS.len()]),
                _ => {
                    let sep = if label.is_empty() { "" } else { ", " };
                    companion(series(format!("{label}{sep}{}", quantity.label()), curve, i), i, j)
                }
            });
        }
    }
    panel
}
