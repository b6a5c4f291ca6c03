//! Draws sample figures and a sample report: `cargo run --example gallery -- FOLDER`.

use jarz_figures::{
    Agreement, Figure, FigureError, Marker, Panel, Provenance, Report, Scale, Section, Series, Verdict,
};
use std::path::PathBuf;

const METHODS: [&str; 4] = ["Jarzynski", "Jarzynski, paper rule", "PCD", "CD"];
const STEPS: usize = 4000;

/// A small reproducible noise in [-1, 1].
fn noise(seed: usize, i: usize) -> f64 {
    let mut z = (seed as u64 * 7_919 + i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

fn curve(f: impl Fn(usize) -> f64) -> Vec<(f64, f64)> {
    (0..=STEPS).map(|i| (i as f64 * 10.0, f(i))).collect()
}

fn training() -> Figure {
    let rate = |i: usize, k: f64| 1.0 - (-(i as f64) * k / STEPS as f64).exp();
    let mass = |m: usize, i: usize| match m {
        0 => 0.5 - 0.25 * rate(i, 9.0) + 0.006 * noise(0, i),
        1 => 0.5 - 0.247 * rate(i, 6.0) + 0.008 * noise(1, i),
        2 => 0.5 + 0.12 * rate(i, 4.0) + 0.01 * noise(2, i),
        _ => 0.5 - 0.03 * rate(i, 3.0) + 0.004 * noise(3, i),
    };
    let mean = |m: usize, i: usize| match m {
        0 => 10.0 - 2.0 * (1.0 - rate(i, 10.0)),
        1 => 10.0 - 2.4 * (1.0 - rate(i, 7.0)),
        2 => 9.6 - 2.0 * (1.0 - rate(i, 5.0)),
        _ => 8.9 - 1.2 * (1.0 - rate(i, 4.0)) + 0.05 * noise(4, i),
    };
    let kl = |m: usize, i: usize| match m {
        0 => 3.0 * (-(i as f64) / 420.0).exp() + 2e-4 * (1.0 + noise(5, i)) - 1e-4,
        1 => 3.0 * (-(i as f64) / 600.0).exp() + 4e-3 * (1.1 + noise(6, i)),
        2 => 0.9 + 2.0 * (-(i as f64) / 500.0).exp() + 0.02 * noise(7, i),
        _ => 0.3 + 2.6 * (-(i as f64) / 900.0).exp(),
    };
    let mut masses = Panel::new("Mass of the first mode").x("iterations").y("mass").hline(0.25, "data 0.25");
    let mut means = Panel::new("Distance of the means").x("iterations").y("|b − a|").hline(10.0, "data 10");
    let mut divergence = Panel::new("KL divergence").x("iterations").y("KL(data | model)");
    divergence = divergence.y_scale(Scale::SymLog { linthresh: 1e-3 });
    for (m, name) in METHODS.iter().enumerate() {
        masses = masses.series(Series::new(*name, curve(|i| mass(m, i))));
        means = means.series(Series::new(*name, curve(|i| mean(m, i))));
        divergence = divergence.series(Series::new(*name, curve(|i| kl(m, i))));
    }
    let estimate = curve(|i| kl(0, i) * 1.6 + 3e-3);
    divergence = divergence.series(Series::new("Jarzynski, estimated", estimate).companion_of(0));
    Figure::new().title("Two-mode Gaussian mixture").panel(masses).panel(means).panel(divergence)
}

fn saw_tooth() -> Figure {
    let mut panel = Panel::new("Effective sample size").x("iterations").y("ESS / N").hline(0.5, "resampling");
    for s in 0..5 {
        let mut ess = 1.0;
        let points: Vec<(f64, f64)> = (0..=2000)
            .map(|i| {
                ess *= 1.0 - (0.0012 + 0.0011 * s as f64) * (1.0 + 0.8 * noise(s, i));
                let now = ess;
                if ess < 0.5 - 0.02 * s as f64 {
                    ess = 1.0;
                }
                (i as f64, now)
            })
            .collect();
        panel = panel.series(Series::new(format!("step size {}", 0.01 * (s + 1) as f64), points));
    }
    Figure::new().panel(panel.y_range(0.0, 1.02)).panel_size(640.0, 300.0)
}

fn odd_ones() -> Figure {
    let band: Vec<(f64, f64, f64)> =
        (1..=60).map(|i| (i as f64, 1.0 / (i as f64).powi(2) - 0.002, 3.0 / i as f64)).collect();
    let line: Vec<(f64, f64)> = (1..=60).map(|i| (i as f64, 1.0 / i as f64)).collect();
    let gaps = curve(|i| if (1000..1800).contains(&i) { f64::NAN } else { (i as f64 / 300.0).sin() * 3.2e7 });
    let few: Vec<(f64, f64)> = (0..8).map(|i| (i as f64 * 2.5e5, 1e-5 * (1.0 + noise(9, i)))).collect();
    Figure::new()
        .panel(
            Panel::new("Band, both axes logarithmic")
                .x("samples")
                .y("error")
                .x_log()
                .y_log()
                .vline(20.0, "switch")
                .series(Series::new("error", line).band(band)),
        )
        .panel(
            Panel::new("Gap and large numbers")
                .x("iterations")
                .y("energy")
                .series(Series::new("energy", gaps)),
        )
        .panel(
            Panel::new("Markers")
                .x("steps")
                .y("rate")
                .series(Series::new("rate", few.clone()).marker(Marker::Circle))
                .series(
                    Series::new("shifted", few.iter().map(|p| (p.0, p.1 + 4e-6)).collect::<Vec<_>>())
                        .marker(Marker::Square),
                ),
        )
        .panel(
            Panel::new("Nothing to draw")
                .x("iterations")
                .y("loss")
                .series(Series::new("loss", vec![(0.0, f64::NAN)])),
        )
        .panel(
            Panel::new("A constant")
                .x("iterations")
                .y("loss")
                .hline(3.5, "bound")
                .series(Series::new("loss", vec![(0.0, 3.0), (9.0, 3.0)])),
        )
        .panel(
            Panel::new("One point")
                .x("iterations")
                .y("loss")
                .y_log()
                .series(Series::new("loss", vec![(4.0, 2e-7)])),
        )
}

fn verdicts() -> Vec<Verdict> {
    vec![
        Verdict::new(
            "Jarzynski finds the masses of the modes",
            "0.2512 ± 0.0008",
            "within 0.005 of 0.25",
            true,
        ),
        Verdict::new("CD finds the masses", "0.4701 ± 0.0004", "within 0.005 of 0.25", false),
        Verdict::new(
            "The ESS stays above 0.9 for 10^5 iterations",
            "4000 iterations",
            "10^5 iterations",
            Agreement::Undecided,
        ),
    ]
}

fn main() -> Result<(), FigureError> {
    let folder = PathBuf::from(std::env::args_os().nth(1).expect("usage: gallery FOLDER"));
    let row = |cells: [&str; 3]| cells.map(String::from).to_vec();
    Report::new("Sample report")
        .subtitle("Figures, a table and settings on one page")
        .text("A first paragraph.\n\nA second one, with <markup> that is shown as it is.")
        .heading("Training")
        .figure("Four ways to estimate the gradient.", &training())
        .figure("The effective sample size falls until the walkers are resampled.", &saw_tooth())
        .figure("Axes, gaps and markers.", &odd_ones())
        .verdicts("Claims, measurements and rules", verdicts())
        .section(Section::Note("Something that a reader should not miss.".to_string()))
        .section(Section::Table {
            caption: "Mass of the first mode".to_string(),
            headers: row(["method", "mass", "error"]),
            rows: vec![row(["Jarzynski", "0.251", "0.4 %"]), row(["PCD", "0.618", "147 %"])],
        })
        .provenance(&Provenance {
            version: "gallery".to_string(),
            seeds: (1..=20).collect(),
            seconds: Some(754.0),
            more: vec![("walkers".to_string(), "10000".to_string())],
        })
        .section(Section::Code { caption: "Command".to_string(), text: "gallery FOLDER\n".to_string() })
        .save(&folder, "report")?;
    training().save(&folder, "training")?;
    saw_tooth().save(&folder, "ess")?;
    odd_ones().save(&folder, "odd")?;
    Ok(())
}
