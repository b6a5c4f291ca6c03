//! How far a parameter step may go.

/// Share of the trust region that a step must use if it is shortened at all.
const AT_LEAST: f64 = 0.7;
/// Share of the trust region that a step aims at.
const AIM: f64 = 0.85;

/// Factor by which a step is shortened until the log-weights it causes spread by no more than `limit`, and by no less than they must.
/// `spread` makes the step with a factor and says what it does. It is nearly quadratic in the length of the step, and the factor of the
/// last step, `first`, is a good first guess.
pub fn within_trust_region(limit: f64, first: f64, mut spread: impl FnMut(f64) -> f64) -> f64 {
    let mut scale = first;
    for _ in 0..20 {
        let spread = spread(scale);
        if spread <= limit && (scale == 1.0 || spread >= AT_LEAST * limit) {
            break;
        }
        // Also where the spread is zero, infinite or not a number.
        let factor = (AIM * limit / spread).sqrt();
        scale = (scale * if factor > 0.1 { factor.min(10.0) } else { 0.1 }).min(1.0);
    }
    scale
}
