//! From values to places along an axis, and the choice of the range.

use crate::Scale;

/// Values beyond this size are not drawn: sums and differences of what remains stay finite.
const LARGEST: f64 = 1e300;
/// Positive values below this are not drawn on a logarithmic axis.
const SMALLEST: f64 = 1e-300;

impl Scale {
    /// The same scale with a usable threshold.
    fn sound(self) -> Self {
        match self {
            Scale::SymLog { linthresh } if linthresh.is_finite() && linthresh > 0.0 => {
                Scale::SymLog { linthresh: linthresh.clamp(1e-100, 1e100) }
            }
            Scale::SymLog { .. } => Scale::SymLog { linthresh: 1.0 },
            other => other,
        }
    }

    fn drawable(self, value: f64) -> bool {
        match self {
            Scale::Log => (SMALLEST..=LARGEST).contains(&value),
            _ => value.abs() <= LARGEST,
        }
    }

    /// Maps a drawable value to a number in which the axis is linear.
    fn forward(self, value: f64) -> f64 {
        match self {
            Scale::Linear => value,
            Scale::Log => value.log10(),
            Scale::SymLog { linthresh } => {
                // The difference of logarithms, as the ratio may overflow.
                if value.abs() <= linthresh {
                    value / linthresh
                } else {
                    (1.0 + value.abs().log10() - linthresh.log10()).copysign(value)
                }
            }
        }
    }

    fn backward(self, place: f64) -> f64 {
        match self {
            Scale::Linear => place.clamp(-LARGEST, LARGEST),
            Scale::Log => 10f64.powf(place).clamp(SMALLEST, LARGEST),
            Scale::SymLog { linthresh } => {
                let size = place.abs();
                let value =
                    if size <= 1.0 { size * linthresh } else { 10f64.powf(size - 1.0 + linthresh.log10()) };
                value.min(LARGEST).copysign(place)
            }
        }
    }

    /// Whether two forward values are too close for an axis between them.
    fn degenerate(self, a: f64, b: f64) -> bool {
        let relative = 1e-9 * a.abs().max(b.abs());
        match self {
            Scale::Linear => b - a <= relative.max(1e-290),
            _ => b - a <= relative.max(1e-6),
        }
    }
}

/// A scale with its range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Axis {
    pub scale: Scale,
    pub low: f64,
    pub high: f64,
    /// Whether anything at all can be drawn along it.
    pub data: bool,
}

impl Axis {
    /// Chooses the range: the one asked for if it can be used, else that of the values with a margin of `pad` (as a
    /// part of the range) at both ends.
    pub fn new(scale: Scale, asked: Option<(f64, f64)>, values: impl Iterator<Item = f64>, pad: f64) -> Self {
        let scale = scale.sound();
        let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|v| scale.drawable(*v)) {
            min = min.min(value);
            max = max.max(value);
        }
        let data = min <= max;
        if let Some((a, b)) = asked {
            let (low, high) = (a.min(b), a.max(b));
            if scale.drawable(a)
                && scale.drawable(b)
                && !scale.degenerate(scale.forward(low), scale.forward(high))
            {
                return Self { scale, low, high, data };
            }
        }
        let (low, high) = match (data, scale) {
            (true, _) => widened(scale, min, max, pad),
            (false, Scale::Linear) => (0.0, 1.0),
            (false, Scale::Log) => (1.0, 10.0),
            (false, Scale::SymLog { linthresh }) => (0.0, 10.0 * linthresh),
        };
        Self { scale, low, high, data }
    }

    /// Where a value lies: 0 at the low end, 1 at the high end; `None` if it cannot be drawn.
    pub fn place(&self, value: f64) -> Option<f64> {
        if !self.scale.drawable(value) {
            return None;
        }
        let (a, b) = (self.scale.forward(self.low), self.scale.forward(self.high));
        let place = (self.scale.forward(value) - a) / (b - a);
        place.is_finite().then_some(place)
    }

    /// As [`Axis::place`], but finite values that lie below a logarithmic axis go far below its low end.
    pub fn place_or_below(&self, value: f64) -> Option<f64> {
        let below = self.scale == Scale::Log && value < SMALLEST && value.is_finite();
        if below { Some(-1.0) } else { self.place(value) }
    }

    /// Whether the value lies within the range, up to rounding.
    pub fn contains(&self, value: f64) -> bool {
        self.place(value).is_some_and(|p| (-1e-6..=1.0 + 1e-6).contains(&p))
    }
}

fn widened(scale: Scale, min: f64, max: f64, pad: f64) -> (f64, f64) {
    let (a, b) = (scale.forward(min), scale.forward(max));
    if scale.degenerate(a, b) {
        let half = match scale {
            Scale::Linear if a.abs() < 1e-280 => 1.0,
            Scale::Linear => 0.1 * a.abs(),
            _ => 0.5,
        };
        return (scale.backward(a - half), scale.backward(b + half));
    }
    if pad == 0.0 {
        return (min, max);
    }
    let margin = pad * (b - a);
    (scale.backward(a - margin), scale.backward(b + margin))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(scale: Scale, values: &[f64]) -> Axis {
        Axis::new(scale, None, values.iter().copied(), 0.0)
    }

    #[test]
    fn ranges_follow_the_drawable_values() {
        let a = axis(Scale::Linear, &[f64::NAN, 3.0, -1.0, f64::INFINITY]);
        assert_eq!((a.low, a.high, a.data), (-1.0, 3.0, true));
        let a = axis(Scale::Log, &[-5.0, 0.0, 0.1, 1000.0]);
        assert_eq!((a.low, a.high), (0.1, 1000.0));
        assert_eq!(a.place(0.0), None);
        assert_eq!(a.place(10.0), Some(0.5));
        let a = Axis::new(Scale::Linear, None, [0.0, 1.0].into_iter(), 0.05);
        assert_eq!((a.low, a.high), (-0.05, 1.05));
    }

    #[test]
    fn constants_and_nothing_still_give_an_axis() {
        let a = axis(Scale::Linear, &[5.0, 5.0]);
        assert_eq!((a.low, a.high), (4.5, 5.5));
        let a = axis(Scale::Linear, &[0.0]);
        assert_eq!((a.low, a.high), (-1.0, 1.0));
        let a = axis(Scale::Linear, &[f64::NAN]);
        assert_eq!((a.low, a.high, a.data), (0.0, 1.0, false));
        assert!(!axis(Scale::Log, &[-1.0, 0.0]).data);
    }

    #[test]
    fn ranges_asked_for_are_used_when_they_make_sense() {
        let ask = |scale, range| Axis::new(scale, Some(range), [1.0, 2.0].into_iter(), 0.0);
        assert_eq!((ask(Scale::Linear, (3.0, 0.0)).low, ask(Scale::Linear, (3.0, 0.0)).high), (0.0, 3.0));
        assert_eq!(ask(Scale::Linear, (f64::NAN, 0.0)).high, 2.0);
        assert_eq!(ask(Scale::Linear, (7.0, 7.0)).high, 2.0);
        assert_eq!(ask(Scale::Log, (0.0, 9.0)).high, 2.0);
    }

    #[test]
    fn symlog_is_odd_continuous_and_invertible() {
        let scale = Scale::SymLog { linthresh: 0.01 };
        assert_eq!(scale.forward(0.0), 0.0);
        assert!((scale.forward(0.01) - 1.0).abs() < 1e-12);
        assert!((scale.forward(0.1) - 2.0).abs() < 1e-12);
        assert!((scale.forward(-1.0) + 3.0).abs() < 1e-12);
        for v in [-30.0, -0.004, 0.0, 0.009, 0.5, 1e6] {
            assert!((scale.backward(scale.forward(v)) - v).abs() <= 1e-9 * v.abs());
        }
    }
}
