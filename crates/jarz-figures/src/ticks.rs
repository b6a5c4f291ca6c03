//! Ticks at round values and their labels.

use crate::Scale;
use crate::axis::Axis;
use crate::svg::Text;

/// A mark on an axis; without a label it is a minor one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    pub value: f64,
    pub label: Option<Text>,
}

/// The ticks of an axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Ticks {
    pub list: Vec<Tick>,
    /// The power of ten that all labels leave out.
    pub power: Option<i32>,
}

impl Ticks {
    /// At most `most` labelled ticks (at least two are aimed for).
    pub fn new(axis: &Axis, most: usize) -> Self {
        let most = most.max(2);
        match axis.scale {
            Scale::Linear => linear(axis, most),
            Scale::Log => logarithmic(axis, most),
            Scale::SymLog { linthresh } => symmetric(axis, linthresh, most),
        }
    }

    pub fn labelled(&self) -> impl Iterator<Item = (f64, &Text)> {
        self.list.iter().filter_map(|tick| tick.label.as_ref().map(|label| (tick.value, label)))
    }
}

/// Multiples of 1, 2 or 5 times a power of ten.
fn linear(axis: &Axis, most: usize) -> Ticks {
    let span = axis.high - axis.low;
    let mut exponent = (span / most as f64).log10().floor() as i32;
    let (first, last, mantissa) = 'search: loop {
        for mantissa in [1i64, 2, 5] {
            let step = shift(mantissa as f64, exponent);
            let first = (axis.low / step - 1e-7).ceil();
            let last = (axis.high / step + 1e-7).floor();
            if last - first < most as f64 {
                break 'search (first as i64, last as i64, mantissa);
            }
        }
        exponent += 1;
    };
    let largest = axis.low.abs().max(axis.high.abs());
    let power = if (1e-3..1e6).contains(&largest) { 0 } else { largest.log10().floor() as i32 };
    let decimals = (power - exponent).clamp(0, 12) as usize;
    let list = (first..=last)
        .map(|k| {
            let value = shift((k * mantissa) as f64, exponent);
            let text = format!("{:.decimals$}", shift((k * mantissa) as f64, exponent - power));
            Tick { value, label: Some(Text::plain(typeset(&text))) }
        })
        .collect();
    Ticks { list, power: (power != 0).then_some(power) }
}

/// `value` times ten to `exponent`; exact where division by a power of ten is.
fn shift(value: f64, exponent: i32) -> f64 {
    match exponent {
        0.. => value * 10f64.powi(exponent),
        -300..0 => value / 10f64.powi(-exponent),
        _ => value / 1e300 / 10f64.powi(-exponent - 300),
    }
}

/// Real minus signs, and thin spaces between the thousands of numbers with five digits or more.
fn typeset(text: &str) -> String {
    let digits = text.trim_start_matches('-');
    let (whole, rest) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    let nothing = digits.bytes().all(|b| matches!(b, b'0' | b'.'));
    let mut out = String::new();
    if digits.len() < text.len() && !nothing {
        out.push('\u{2212}');
    }
    for (i, c) in whole.chars().enumerate() {
        if i > 0 && whole.len() > 4 && (whole.len() - i).is_multiple_of(3) {
            out.push('\u{2009}');
        }
        out.push(c);
    }
    out + rest
}

/// A label for `mantissa` times ten to `exponent`, written out or as a power.
fn power_label(negative: bool, mantissa: i32, exponent: i32, written_out: bool) -> Text {
    let sign = if negative { "\u{2212}" } else { "" };
    if written_out {
        let decimals = (-exponent).max(0) as usize;
        let value = shift(f64::from(mantissa), exponent);
        return Text::plain(format!("{sign}{}", typeset(&format!("{value:.decimals$}"))));
    }
    let base = if mantissa == 1 { format!("{sign}10") } else { format!("{sign}{mantissa}\u{00d7}10") };
    Text::plain(base).raised(typeset(&exponent.to_string()))
}

/// Whether all powers of ten are short enough to be written out.
fn short(mut exponents: impl Iterator<Item = i32>) -> bool {
    exponents.all(|k| (-2..=3).contains(&k))
}

/// Powers of ten; over less than two of them also 2 and 5 times those, and over still less multiples of a step.
fn logarithmic(axis: &Axis, most: usize) -> Ticks {
    let first = (axis.low.log10() - 1e-9).ceil() as i32;
    let last = (axis.high.log10() + 1e-9).floor() as i32;
    let decades = last - first + 1;
    let labels: Vec<(i32, i32)> = if decades >= 2 {
        let stride = (decades as usize).div_ceil(most) as i32;
        (first..=last).filter(|k| k.rem_euclid(stride) == 0).map(|k| (1, k)).collect()
    } else {
        (first - 1..=last)
            .flat_map(|k| [(1, k), (2, k), (5, k)])
            .filter(|(m, k)| axis.contains(shift(f64::from(*m), *k)))
            .collect()
    };
    if labels.len() < 2 && decades < 2 {
        return linear(axis, most);
    }
    let written_out = short(labels.iter().map(|l| l.1));
    let mut list: Vec<Tick> = labels
        .iter()
        .map(|(m, k)| Tick {
            value: shift(f64::from(*m), *k),
            label: Some(power_label(false, *m, *k, written_out)),
        })
        .collect();
    let minor = minors(first - 1, last, decades, labels.len());
    list.extend(
        minor
            .into_iter()
            .filter(|mk| !labels.contains(mk))
            .map(|(m, k)| shift(f64::from(m), k))
            .filter(|v| axis.contains(*v))
            .map(|value| Tick { value, label: None }),
    );
    list.sort_by(|a, b| a.value.total_cmp(&b.value));
    Ticks { list, power: None }
}

/// Unlabelled places between powers of ten: 2 to 9 times each, or the powers themselves when there are many.
fn minors(first: i32, last: i32, decades: i32, labels: usize) -> Vec<(i32, i32)> {
    if decades > 40 {
        return Vec::new();
    }
    let all: &[i32] =
        if decades <= 8 && labels as i32 >= decades { &[1, 2, 3, 4, 5, 6, 7, 8, 9] } else { &[1] };
    (first..=last).flat_map(|k| all.iter().map(move |m| (*m, k))).collect()
}

/// Zero and the powers of ten beyond the threshold on both sides.
fn symmetric(axis: &Axis, linthresh: f64, most: usize) -> Ticks {
    if axis.low >= linthresh {
        return logarithmic(axis, most);
    }
    let first = (linthresh.log10() - 1e-9).ceil() as i32;
    let end = |limit: f64| if limit > 0.0 { (limit.log10() + 1e-9).floor() as i32 } else { i32::MIN };
    let (down, up) = (end(-axis.low), end(axis.high));
    let powers = |last: i32| (last.saturating_sub(first).saturating_add(1)).max(0);
    let zero = axis.contains(0.0);
    let total = powers(down) + powers(up) + i32::from(zero);
    let stride = (total.max(1) as usize).div_ceil(most) as i32;
    let mut list = Vec::new();
    if zero {
        list.push(Tick { value: 0.0, label: Some(Text::plain("0")) });
    }
    for (negative, last) in [(true, down), (false, up)] {
        let written_out = short([first, down.max(up)].into_iter());
        for k in first..=last {
            for m in 1..=9 {
                let value = if negative { -shift(f64::from(m), k) } else { shift(f64::from(m), k) };
                let labelled = m == 1 && (k - first + 1) % stride == 0;
                let wanted = labelled || (m == 1 && total <= 40) || (stride == 1 && total <= 9);
                if wanted && axis.contains(value) {
                    let label = labelled.then(|| power_label(negative, 1, k, written_out));
                    list.push(Tick { value, label });
                }
            }
        }
    }
    list.sort_by(|a, b| a.value.total_cmp(&b.value));
    if list.iter().filter(|tick| tick.label.is_some()).count() < 2 {
        return linear(axis, most);
    }
    Ticks { list, power: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: Scale, low: f64, high: f64, most: usize) -> Vec<String> {
        let axis = Axis::new(scale, Some((low, high)), std::iter::empty(), 0.0);
        Ticks::new(&axis, most).labelled().map(|(_, text)| text.flat()).collect()
    }

    #[test]
    fn linear_ticks_are_round() {
        assert_eq!(labels(Scale::Linear, 0.0, 1.0, 6), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(Scale::Linear, -0.05, 0.33, 5), ["0.0", "0.1", "0.2", "0.3"]);
        assert_eq!(labels(Scale::Linear, -3.0, 3.0, 4), ["\u{2212}2", "0", "2"]);
        assert_eq!(labels(Scale::Linear, 0.0, 4000.0, 5), ["0", "1000", "2000", "3000", "4000"]);
        assert_eq!(labels(Scale::Linear, 0.0, 40_000.0, 3), ["0", "20\u{2009}000", "40\u{2009}000"]);
        assert_eq!(labels(Scale::Linear, 99.97, 100.03, 4), ["99.98", "100.00", "100.02"]);
    }

    #[test]
    fn large_and_small_numbers_share_a_power() {
        let axis = Axis::new(Scale::Linear, Some((0.0, 3e7)), std::iter::empty(), 0.0);
        let ticks = Ticks::new(&axis, 4);
        assert_eq!(ticks.power, Some(7));
        assert_eq!(ticks.list.iter().map(|t| t.value).collect::<Vec<_>>(), [0.0, 1e7, 2e7, 3e7]);
        assert_eq!(labels(Scale::Linear, 0.0, 3e7, 4), ["0", "1", "2", "3"]);
        assert_eq!(labels(Scale::Linear, 0.0, 2.5e-5, 6), ["0.0", "0.5", "1.0", "1.5", "2.0", "2.5"]);
    }

    #[test]
    fn log_ticks_are_decades() {
        assert_eq!(labels(Scale::Log, 0.01, 100.0, 8), ["0.01", "0.1", "1", "10", "100"]);
        assert_eq!(
            labels(Scale::Log, 1e-6, 1e-3, 8),
            ["10^\u{2212}6", "10^\u{2212}5", "10^\u{2212}4", "10^\u{2212}3"]
        );
        assert_eq!(labels(Scale::Log, 1.0, 1e12, 5), ["10^0", "10^3", "10^6", "10^9", "10^12"]);
        assert_eq!(labels(Scale::Log, 1.5, 30.0, 6), ["2", "5", "10", "20"]);
        assert_eq!(labels(Scale::Log, 1.5e5, 6e5, 6), ["2\u{d7}10^5", "5\u{d7}10^5"]);
        assert_eq!(labels(Scale::Log, 2.1, 3.9, 4), ["2.5", "3.0", "3.5"]);
    }

    #[test]
    fn log_axes_have_minor_ticks() {
        let axis = Axis::new(Scale::Log, Some((1.0, 100.0)), std::iter::empty(), 0.0);
        let ticks = Ticks::new(&axis, 5);
        assert_eq!(ticks.list.len(), 19);
        assert_eq!(ticks.labelled().count(), 3);
    }

    #[test]
    fn symlog_ticks_hold_zero_and_both_signs() {
        let scale = Scale::SymLog { linthresh: 0.01 };
        let all = ["\u{2212}0.1", "\u{2212}0.01", "0", "0.01", "0.1", "1"];
        assert_eq!(labels(scale, -0.5, 2.0, 8), all);
        assert_eq!(labels(scale, -0.005, 0.005, 3), ["\u{2212}0.005", "0.000", "0.005"]);
        assert_eq!(labels(scale, 0.1, 100.0, 8), ["0.1", "1", "10", "100"]);
        assert!(labels(scale, -1e9, 1e9, 7).contains(&"0".to_string()));
    }

    #[test]
    fn ticks_lie_inside_and_are_few_for_any_range() {
        for scale in [Scale::Linear, Scale::Log, Scale::SymLog { linthresh: 1e-3 }] {
            for exponent in -290..290 {
                for factor in [1.000001, 1.3, 7.0, 1e4, 1e9] {
                    let low = 1.7 * 10f64.powi(exponent);
                    let axis = Axis::new(scale, Some((low, low * factor)), std::iter::empty(), 0.0);
                    let ticks = Ticks::new(&axis, 6);
                    assert!(ticks.labelled().count() <= 6, "{scale:?} {low} {factor}");
                    assert!(ticks.list.iter().all(|t| axis.contains(t.value)), "{scale:?} {low} {factor}");
                }
            }
        }
    }
}
