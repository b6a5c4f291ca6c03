//! Values that change over the iterations: learning rates and time steps.

/// Shape of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Shape {
    /// The same at all times.
    #[default]
    Constant,
    /// A straight line.
    Linear,
    /// Half a period of a cosine.
    Cosine,
}

/// A value that goes from `start` to `end` over `over` iterations and stays there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    /// Shape of the way from start to end.
    pub shape: Shape,
    /// Value at iteration 0.
    pub start: f64,
    /// Value from iteration `over` on.
    pub end: f64,
    /// Number of iterations.
    pub over: u64,
}

impl Schedule {
    /// The same at all times.
    pub fn constant(value: f64) -> Self {
        Schedule { shape: Shape::Constant, start: value, end: value, over: 1 }
    }

    /// Value at an iteration.
    pub fn at(&self, iteration: u64) -> f64 {
        let t = (iteration as f64 / self.over.max(1) as f64).min(1.0);
        let mix = match self.shape {
            Shape::Constant => 0.0,
            Shape::Linear => t,
            Shape::Cosine => 0.5 - 0.5 * (std::f64::consts::PI * t).cos(),
        };
        self.start + (self.end - self.start) * mix
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_go_from_start_to_end() {
        for shape in [Shape::Linear, Shape::Cosine] {
            let s = Schedule { shape, start: 1.0, end: 0.2, over: 10 };
            assert_eq!(s.at(0), 1.0);
            assert!((s.at(5) - 0.6).abs() < 1e-12);
            assert!((s.at(10) - 0.2).abs() < 1e-12 && s.at(1000) == s.at(10));
        }
        let linear = Schedule { shape: Shape::Linear, start: 1.0, end: 0.0, over: 4 };
        assert_eq!(linear.at(1), 0.75);
        let cosine = Schedule { shape: Shape::Cosine, start: 1.0, end: 0.0, over: 4 };
        assert!((cosine.at(1) - (0.5 + 0.5 * std::f64::consts::FRAC_1_SQRT_2)).abs() < 1e-12);
        assert_eq!(Schedule::constant(3.0).at(77), 3.0);
    }
}
