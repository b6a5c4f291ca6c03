//! Learning the masses of two separate modes in one dimension: the differential equations of the paper's theory appendix
//! (eqs. `app:noweight`, `app:pert:pcd`, `app:pert:jar`), the fixed point (eq. `app:tildez_1`), and how far a real run may be from them.
//!
//! The model is `exp(-(x - a)^2 / 2) + exp(-z - (x - b)^2 / 2)`, only `z` is trained. A fraction `q` of the data and a fraction `q0` of the
//! initial walkers are near `b`. With equal weights `z' = q0 - q`; with Jarzynski's the walkers near `b` weigh `e^{-(z - z0)}`, so that
//! `z' = q0 e^{-(z-z0)} / (p0 + q0 e^{-(z-z0)}) - q`.
//!
//! # The band
//!
//! A run differs from its equation for three reasons, and the band adds bounds of the three:
//! * Steps of length `h` instead of a flow: `(h / 2) |z''|` per unit time, and `|z''| = |f' f| <= |z'| / 4`, which sums up to at most
//!   `(h / 8) |z - z0|`; twice that is allowed for higher orders.
//! * A walker's share of a mode is not exactly 0 or 1: the paper's lemma bounds both averages together by
//!   `0.0004 + 2 e^{-10} (e^{|z|} + e^{|z*|})` per unit time.
//! * Walkers cross the barrier now and then. The number of crossings is a Poisson variable with the rate of escape from a well
//!   (mean first-passage time, an integral); its quantile at 1 - 10^-4 is allowed. A crossing changes the fraction of walkers by `1 / N`, for good.
//!
//! Jarzynski's equation pulls back with a rate of at least `lambda = min(p q, p0 q0)`, so that there a persistent error `e` of the
//! right-hand side moves `z` by no more than `e / lambda`. The equations hold while `|z|` stays below 5 (assumption `app:hyp:z`).

use super::poisson;

/// Beyond this the approximations of the paper are no longer small.
pub const LARGEST_Z: f64 = 5.0;
/// Modes nearer than this are not separate in the paper's sense (assumption `app:sepmodes`).
pub const SMALLEST_SEPARATION: f64 = 10.0;
/// Probability with which the number of crossings may exceed what the band allows.
const TAIL: f64 = 1e-4;
/// Longest step of the integration.
const LONGEST_STEP: f64 = 0.05;

/// The problem of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Problem {
    /// Distance of the modes.
    pub separation: f64,
    /// Walkers.
    pub walkers: f64,
    /// Fraction of the data near `b`.
    pub q_data: f64,
    /// Fraction of the initial walkers near `b`.
    pub q_walkers: f64,
    /// `z` at the start.
    pub z0: f64,
    /// Time step.
    pub h: f64,
    /// Change of `z` per unit time and unit of the direction; 1 in the paper.
    pub speed: f64,
    /// Whether walkers carry Jarzynski's weights.
    pub weighted: bool,
}

impl Problem {
    /// Weight of the walkers near `b` relative to those near `a`, and weighted fraction near `b`.
    fn fraction(&self, z: f64) -> f64 {
        let odds = if self.weighted { (self.z0 - z).exp() } else { 1.0 };
        let (p, q) = (1.0 - self.q_walkers, self.q_walkers * odds);
        q / (p + q)
    }

    /// Right-hand side of the equation.
    pub fn drift(&self, z: f64) -> f64 {
        self.speed * (self.fraction(z) - self.q_data)
    }

    /// Where Jarzynski's equation comes to rest: `z* + log(q0 / p0) + z0` with `z* = log(p / q)` of the data.
    pub fn fixed_point(&self) -> Option<f64> {
        let logit = |q: f64| (q / (1.0 - q)).ln();
        let z = self.z0 + logit(self.q_walkers) - logit(self.q_data);
        (self.weighted && z.is_finite()).then_some(z)
    }

    /// Solution at the given times, which must not decrease (Runge and Kutta, fourth order).
    pub fn solve(&self, times: &[f64]) -> Vec<f64> {
        let (mut t, mut z) = (0.0, self.z0);
        let mut out = Vec::with_capacity(times.len());
        for &end in times {
            let steps = ((end - t) / LONGEST_STEP).ceil().max(0.0);
            let dt = (end - t) / steps.max(1.0);
            for _ in 0..steps as u64 {
                let k1 = self.drift(z);
                let k2 = self.drift(z + 0.5 * dt * k1);
                let k3 = self.drift(z + 0.5 * dt * k2);
                let k4 = self.drift(z + dt * k3);
                z += dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4);
            }
            t = end;
            out.push(z);
        }
        out
    }

    /// How far a run may be from the solution `z` at the given times.
    pub fn band(&self, times: &[f64], z: &[f64]) -> Vec<f64> {
        let z_data = ((1.0 - self.q_data) / self.q_data).ln().abs();
        let share = |z: f64| 0.0004 + 2.0 * (-10f64).exp() * (z.abs().exp() + z_data.exp());
        let pull = self.pull();
        let (mut crossings, mut softness, mut before) = (0.0, 0.0, 0.0);
        let mut out = Vec::with_capacity(times.len());
        for (&t, &z) in times.iter().zip(z) {
            crossings += (t - before) * self.crossings_per_time(z);
            softness += (t - before) * share(z);
            before = t;
            let stepping = 0.25 * self.h * self.speed * (z - self.z0).abs();
            let (largest, _) = self.steps_of_crossings(z);
            let crossed = poisson::quantile(crossings, TAIL) * largest;
            out.push(match pull {
                Some(pull) => {
                    stepping
                        + (self.speed * softness).min(share(z) / pull)
                        + crossed * (self.speed * t).min(1.0 / pull)
                }
                None => stepping + self.speed * (softness + crossed * t),
            });
        }
        out
    }

    /// Standard error of `z` at rest, from crossings up to time `t`: each moves the weighted fraction near `b` by its walker's weight.
    pub fn fixed_point_error(&self, t: f64) -> Option<f64> {
        let (z, pull) = (self.fixed_point()?, self.pull()?);
        let (from_a, from_b) = (self.rate_from_a(z), self.rate_from_a(-z));
        let (_, [step_a, step_b]) = self.steps_of_crossings(z);
        let p = 1.0 - self.q_walkers;
        let variance =
            self.walkers * t * (p * from_a * step_a.powi(2) + self.q_walkers * from_b * step_b.powi(2));
        Some(variance.sqrt() / pull)
    }

    /// Least rate at which Jarzynski's equation pulls back.
    fn pull(&self) -> Option<f64> {
        let variance = |q: f64| q * (1.0 - q);
        self.weighted.then(|| variance(self.q_walkers).min(variance(self.q_data)))
    }

    /// Changes of the weighted fraction near `b` by one crossing: the largest, and those from `a` and from `b`.
    fn steps_of_crossings(&self, z: f64) -> (f64, [f64; 2]) {
        let odds = if self.weighted { (self.z0 - z).exp() } else { 1.0 };
        let total = self.walkers * (1.0 - self.q_walkers + self.q_walkers * odds);
        let steps = [1.0 / total, odds / total];
        (steps[0].max(steps[1]), steps)
    }

    fn crossings_per_time(&self, z: f64) -> f64 {
        let q = self.q_walkers;
        self.walkers * ((1.0 - q) * self.rate_from_a(z) + q * self.rate_from_a(-z))
    }

    /// Rate of escape from the mode at `a` to that at `b` (with `-z`: the other way round): the inverse of the mean first-passage time
    /// `int_a^b dy e^{U(y)} int_{-inf}^y dx e^{-U(x)}`.
    fn rate_from_a(&self, z: f64) -> f64 {
        const POINTS: usize = 800;
        const MARGIN: f64 = 8.0;
        let (d, dx) = (self.separation, (self.separation + MARGIN) / POINTS as f64);
        let density = |x: f64| (-0.5 * x * x).exp() + (-z - 0.5 * (x - d).powi(2)).exp();
        let (mut inner, mut time) = (0.0, 0.0);
        let mut last = density(-MARGIN);
        for i in 1..=POINTS {
            let x = -MARGIN + dx * i as f64;
            let now = density(x);
            inner += 0.5 * dx * (last + now);
            last = now;
            if x > 0.0 {
                time += dx * inner / now;
            }
        }
        1.0 / time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(weighted: bool) -> Problem {
        Problem {
            separation: 10.0,
            walkers: 200.0,
            q_data: 0.26,
            q_walkers: 0.47,
            z0: 0.0,
            h: 0.01,
            speed: 1.0,
            weighted,
        }
    }

    /// With `y = e^z`, Jarzynski's equation separates: `t = log(y) / p - log|A - B y| (1 / p + 1 / q) + const` with `A = q0 p`, `B = q p0`.
    #[test]
    fn jarzynski_follows_the_implicit_solution() {
        let m = problem(true);
        let (p, q, p0, q0) = (1.0 - m.q_data, m.q_data, 1.0 - m.q_walkers, m.q_walkers);
        let time = |z: f64| z / p - (q0 * p - q * p0 * z.exp()).abs().ln() * (1.0 / p + 1.0 / q);
        let times = [0.5, 1.0, 3.0, 10.0, 30.0];
        for (t, z) in times.iter().zip(m.solve(&times)) {
            assert!((time(z) - time(0.0) - t).abs() < 1e-6, "{t}: {z}");
        }
    }

    #[test]
    fn the_fixed_point_is_where_the_drift_vanishes() {
        for z0 in [0.0, 0.7] {
            let m = Problem { z0, ..problem(true) };
            let z = m.fixed_point().unwrap();
            assert!(m.drift(z).abs() < 1e-15);
            assert!((m.solve(&[400.0])[0] - z).abs() < 1e-9);
            // The paper's remark: z* + log(q0 / p0) + z(0).
            let shift = (0.47f64 / 0.53).ln();
            assert!((z - ((0.74f64 / 0.26).ln() + shift + z0)).abs() < 1e-12);
        }
        assert_eq!(problem(false).fixed_point(), None);
    }

    #[test]
    fn equal_weights_drift_at_a_constant_rate() {
        let m = problem(false);
        let times = [0.0, 7.0, 20.0];
        for (t, z) in times.iter().zip(m.solve(&times)) {
            assert!((z - 0.21 * t).abs() < 1e-12);
        }
        // Walkers that begin at the data do not drift at all.
        assert_eq!(Problem { q_walkers: 0.26, ..m }.solve(&[1000.0]), [0.0]);
    }

    /// For z = 0 and two modes of unit width, 10 apart, the time of escape is the mass of a well, `sqrt(2 pi)`, times the integral of
    /// `e^U` over the barrier. There `U = 12.5 + y^2 / 2 - log(2 cosh 5 y)`, and with `e^{y^2 / 2} = E[e^{s y}]`, `s` normal, the integral is
    /// `e^12.5 (pi / 10) E[sec(pi s / 10)]`, where `sec x = 1 + x^2 / 2 + 5 x^4 / 24 + 61 x^6 / 720 + ...`
    #[test]
    fn the_rate_of_escape_is_that_of_the_barrier() {
        let x = std::f64::consts::PI / 10.0;
        let secant = 1.0 + x.powi(2) / 2.0 + 5.0 / 24.0 * 3.0 * x.powi(4) + 61.0 / 720.0 * 15.0 * x.powi(6);
        let expected = 1.0 / (std::f64::consts::TAU.sqrt() * 12.5f64.exp() * x * secant);
        let rate = problem(false).rate_from_a(0.0);
        assert!((rate / expected - 1.0).abs() < 0.01, "{rate} and {expected}");
    }

    /// Detailed balance: with masses 1 and e^{-z} as many cross one way as the other.
    #[test]
    fn escapes_are_balanced() {
        for z in [0.5, 2.0] {
            let m = problem(false);
            let ratio = m.rate_from_a(z) / (m.rate_from_a(-z) * f64::exp(-z));
            assert!((ratio - 1.0).abs() < 1e-2, "{z}: {ratio}");
        }
    }

    #[test]
    fn the_band_grows_with_time_and_is_wider_without_weights() {
        let times: Vec<f64> = (0..100).map(f64::from).collect();
        let [free, held] = [false, true].map(|weighted| {
            let m = Problem { q_walkers: 0.26, ..problem(weighted) };
            let band = m.band(&times, &m.solve(&times));
            assert!(band.windows(2).all(|w| w[1] >= w[0]), "{band:?}");
            band[99]
        });
        assert!(free > held && held > 0.001, "{free} and {held}");
        // One crossing in 100 walkers' lifetimes of 100: three are allowed, each moving z by at most t / N.
        assert!(free < 0.1 + 4.0 * 99.0 / 200.0, "{free}");
    }
}
