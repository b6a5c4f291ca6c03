//! Langevin steps against a scalar twin on every instruction set, and the weights' terms against the transition densities.

use super::*;
use crate::energy::{Energy, Gaussian, Mixture};
use crate::random::{Purpose, Random};
use crate::simd::Isa;

const CLIPS: [Option<Clip>; 5] = [
    None,
    Some(Clip::Norm(1.5)),
    Some(Clip::Norm(1e6)),
    Some(Clip::Component(0.4)),
    Some(Clip::Component(1e6)),
];

fn normals<T: Real>(stream: u64, count: usize, width: f64) -> Vec<T> {
    let mut out = vec![0.0f64; count];
    Random::new(404).normals(stream, 0, Purpose::User, &mut out);
    out.iter().map(|v| T::from_f64(v * width)).collect()
}

fn widen<T: Real>(values: &[T]) -> Vec<f64> {
    values.iter().map(|v| v.to_f64()).collect()
}

fn epsilon<T: Real>() -> f64 {
    if T::NAME == "f32" { f32::EPSILON as f64 } else { f64::EPSILON }
}

/// The clipped drift, from its definition.
fn drift(gradient: &[f64], clip: Option<Clip>) -> Vec<f64> {
    let norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
    match clip {
        Some(Clip::Norm(limit)) if norm > limit => gradient.iter().map(|g| g * limit / norm).collect(),
        Some(Clip::Component(limit)) => gradient.iter().map(|g| g.clamp(-limit, limit)).collect(),
        _ => gradient.to_vec(),
    }
}

/// One proposal as (new positions, displacement, forward), and the backward term of the same displacement with another drift.
type Step<T> = (Vec<T>, Vec<T>, Vec<f64>, Vec<f64>);

fn step_on<T: Real>(
    isa: Isa,
    x: &[T],
    g: &[T],
    g_new: &[T],
    noise: &[T],
    dim: usize,
    h: f64,
    clip: Option<Clip>,
) -> Step<T> {
    let rows = x.len() / dim;
    let (norm, component) = limits(clip);
    let (h_t, scale, component) = (T::from_f64(h), T::from_f64((2.0 * h).sqrt()), T::from_f64(component));
    let mut y = x.to_vec();
    let (mut displacement, mut forward) = (vec![T::ZERO; x.len()], vec![0.0; rows]);
    propose_rows(isa, &mut y, g, noise, dim, h_t, scale, norm, component, &mut displacement, &mut forward);
    let mut backward = vec![0.0; rows];
    reverse_rows(isa, &displacement, g_new, dim, h_t, norm, component, &mut backward);
    (y, displacement, forward, backward)
}

fn close(value: f64, expected: f64, tolerance: f64, what: &str) {
    let off = (value - expected).abs();
    assert!(off <= tolerance, "{what}: {value} instead of {expected}, off by {off}, allowed {tolerance}");
}

/// Worst-case rounding: a drift component carries `dim / 16 + 12` roundings at most (the norm's sum and the scaling), a displacement a few
/// more, and sums over components as many again.
fn equals_the_twin<T: Real>(dim: usize, h: f64, clip: Option<Clip>) {
    let rows = 9;
    let stride = T::noise_stride(dim);
    let (x, noise) = (normals::<T>(1, rows * dim, 2.0), normals::<T>(2, rows * stride, 1.0));
    let (g, g_new) = (normals::<T>(3, rows * dim, 1.0), normals::<T>(4, rows * dim, 1.0));
    let (e, depth) = (epsilon::<T>(), dim as f64 / 16.0 + 12.0);
    let mut first: Option<Step<T>> = None;
    for isa in Isa::available() {
        let found = step_on(isa, &x, &g, &g_new, &noise, dim, h, clip);
        for i in 0..rows {
            let row = i * dim..(i + 1) * dim;
            let (c, c_new) = (drift(&widen(&g[row.clone()]), clip), drift(&widen(&g_new[row.clone()]), clip));
            let (mut forward, mut backward, mut allowed, mut allowed_back) = (0.0, 0.0, 0.0, 0.0);
            for j in 0..dim {
                let at = i * dim + j;
                let kick = (2.0 * h).sqrt() * noise[i * stride + j].to_f64();
                let moved = -h * c[j] + kick;
                let slip = e * (depth * h * c[j].abs() + 4.0 * kick.abs());
                close(found.1[at].to_f64(), moved, slip, "displacement");
                let y = x[at].to_f64() + moved;
                close(found.0[at].to_f64(), y, slip + e * y.abs(), "position");
                forward += 0.5 * c[j] * moved + 0.25 * h * c[j] * c[j];
                backward += -0.5 * c_new[j] * moved + 0.25 * h * c_new[j] * c_new[j];
                let bound = |c: f64| c.abs() * (slip + 2.0 * depth * e * (moved.abs() + h * c.abs()));
                allowed += bound(c[j]);
                allowed_back += bound(c_new[j]);
            }
            close(found.2[i], forward, allowed, "forward");
            close(found.3[i], backward, allowed_back, "backward");
        }
        match &first {
            None => first = Some(found),
            Some(first) => assert!(*first == found, "{isa:?} gives other bits than the portable path"),
        }
    }
}

#[test]
fn steps_equal_their_scalar_twin_on_every_path() {
    for dim in [1, 2, 3, 7, 15, 16, 17, 31, 32, 50, 65] {
        for h in [1e-3, 0.1, 0.7] {
            for clip in CLIPS {
                equals_the_twin::<f64>(dim, h, clip);
                equals_the_twin::<f32>(dim, h, clip);
            }
        }
    }
}

/// Without noise the displacement is `-h c`: the drift must obey its limit, keep its direction (norm clip) and be untouched where it is short.
fn obeys_its_limit<T: Real>() {
    let (dim, rows, h) = (37, 40, 0.25);
    let e = epsilon::<T>();
    let mut g = normals::<T>(5, rows * dim, 1.0);
    // From far below to far above the limits.
    for (i, row) in g.chunks_mut(dim).enumerate() {
        let scale = T::from_f64(10f64.powf(i as f64 / 8.0 - 2.5));
        row.iter_mut().for_each(|g| *g = *g * scale);
    }
    let (x, noise) = (vec![T::ZERO; rows * dim], vec![T::ZERO; rows * T::noise_stride(dim)]);
    let (limit, mut clipped) = (2.0, [0, 0]);
    for isa in Isa::available() {
        for (kind, clip) in [Clip::Norm(limit), Clip::Component(limit)].into_iter().enumerate() {
            let (_, displacement, ..) = step_on(isa, &x, &g, &g, &noise, dim, h, Some(clip));
            for (step, g) in displacement.chunks(dim).zip(g.chunks(dim)) {
                let c: Vec<f64> = step.iter().map(|s| -s.to_f64() / h).collect();
                let g = widen(g);
                let norm = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
                let largest = |v: &[f64]| v.iter().fold(0.0f64, |m, v| m.max(v.abs()));
                let (size, was) = if kind == 0 { (norm(&c), norm(&g)) } else { (largest(&c), largest(&g)) };
                let slack = if kind == 0 { 16.0 * e } else { 0.0 };
                assert!(size <= limit * (1.0 + slack), "drift of size {size}");
                if was < limit * (1.0 - 16.0 * e) {
                    assert_eq!(c, g, "a drift below the limit is left alone");
                } else {
                    clipped[kind] += 1;
                    close(size, limit, limit * 16.0 * e, "clipped size");
                    if kind == 0 {
                        let cosine =
                            c.iter().zip(&g).map(|(c, g)| c * g).sum::<f64>() / (norm(&c) * norm(&g));
                        close(cosine, 1.0, 64.0 * e, "direction");
                    }
                }
            }
        }
    }
    assert!(clipped.iter().all(|&n| n > 5), "the test must clip something: {clipped:?}");
}

#[test]
fn clipped_drifts_obey_their_limit() {
    obeys_its_limit::<f64>();
    obeys_its_limit::<f32>();
}

/// `log b(x -> y)` of a step with drift `c` at `x`: a Gaussian around `x - h c` with variance `2h`.
fn log_density(x: &[f64], c: &[f64], y: &[f64], h: f64) -> f64 {
    let square: f64 = (0..x.len()).map(|j| (y[j] - x[j] + h * c[j]).powi(2)).sum();
    -square / (4.0 * h) - 0.5 * x.len() as f64 * (4.0 * std::f64::consts::PI * h).ln()
}

fn energy_of<E: Energy<f64>>(energy: &E, x: &[f64]) -> (f64, Vec<f64>) {
    let (mut u, mut g) = ([0.0], vec![0.0; x.len()]);
    energy.energy_and_gradient(x, &mut u, &mut g, &mut E::Workspace::default());
    (u[0], g)
}

/// `(U + forward) - (U' + backward) = U(x) - U'(y) + log b'(y -> x) - log b(x -> y)`, for the drifts really used.
fn alphas_are_densities<E: Energy<f64>>(from: &E, to: &E) -> u32 {
    let dim = from.dim();
    let mut clipped = 0;
    for clip in CLIPS {
        for h in [1e-3, 0.05, 0.6] {
            for trial in 0..20 {
                let x = normals::<f64>(1000 + trial, dim, 1.5);
                let noise = normals::<f64>(2000 + trial, f64::noise_stride(dim), 1.0);
                let (u, g) = energy_of(from, &x);
                let mut y = x.clone();
                let (mut displacement, mut forward, mut backward) = (vec![0.0; dim], [0.0], [0.0]);
                propose(&mut y, &g, &noise, dim, h, (2.0 * h).sqrt(), clip, &mut displacement, &mut forward);
                let (u_new, g_new) = energy_of(to, &y);
                reverse(&displacement, &g_new, dim, h, clip, &mut backward);
                let gain = (u + forward[0]) - (u_new + backward[0]);
                let (c, c_new) = (drift(&g, clip), drift(&g_new, clip));
                let (there, back) = (log_density(&x, &c, &y, h), log_density(&y, &c_new, &x, h));
                let scale = 1.0 + u.abs() + u_new.abs() + there.abs() + back.abs();
                close(gain, u - u_new + back - there, 1e-10 * scale, "alpha difference");
                clipped += u32::from(c != g) + u32::from(c_new != g_new);
            }
        }
    }
    clipped
}

#[test]
fn alphas_equal_energies_and_transition_densities() {
    for dim in [1, 2, 17, 50] {
        let mean = |stream| normals::<f64>(stream, dim, 1.0);
        let mixture = |s| Mixture::new(&[mean(s), mean(s + 1)], &[0.0, 0.4], 0.8).unwrap();
        assert!(alphas_are_densities(&mixture(10), &mixture(20)) > 0, "no drift was clipped");
        let diagonal =
            |d: f64| (0..dim * dim).map(|i| if i % (dim + 1) == 0 { d } else { 0.0 }).collect::<Vec<_>>();
        let gauss = |s, d| Gaussian::new(&mean(s), &diagonal(d)).unwrap();
        assert!(alphas_are_densities(&gauss(30, 1.0), &gauss(40, 1.7)) > 0, "no drift was clipped");
    }
}

/// A gradient that is not a number must not be turned into a drift of the clip's size: the walker would go on as if nothing were wrong.
#[test]
fn clipping_does_not_hide_a_gradient_that_is_not_a_number() {
    for clip in CLIPS {
        let (mut y, mut displacement, mut forward) = ([0.0f64; 2], [0.0; 2], [0.0]);
        propose(
            &mut y,
            &[f64::NAN, 0.1],
            &[0.3, -0.2],
            2,
            0.1,
            0.2f64.sqrt(),
            clip,
            &mut displacement,
            &mut forward,
        );
        assert!(
            !y[0].is_finite() && !forward[0].is_finite(),
            "{clip:?}: moved to {y:?}, forward {forward:?}"
        );
    }
}

/// Velocities, renewed and after a step, from their definitions; a few roundings of every term are allowed, and `dim / 16 + 12` in a clipped drift (above).
fn velocities_equal_the_twin<T: Real>(dim: usize, h: f64, clip: Option<Clip>) {
    let (rows, friction) = (5, 0.7);
    let stride = T::noise_stride(dim);
    let (v, noise) = (normals::<T>(6, rows * dim, 1.0), normals::<T>(7, rows * stride, 1.0));
    let (step, g) = (normals::<T>(8, rows * dim, h.sqrt()), normals::<T>(9, rows * dim, 1.0));
    let (e, depth) = (epsilon::<T>(), dim as f64 / 16.0 + 12.0);
    let length = (2.0 * h).sqrt();
    let keep = (-friction * length).exp();
    let fresh = (1.0 - keep * keep).sqrt();
    let ((norm, component), mut first) = (limits(clip), None);
    for isa in Isa::available() {
        let (mut renewed, mut after) = (noise.clone(), v.clone());
        renew_rows(isa, &v, &mut renewed, dim, T::from_f64(keep), T::from_f64(fresh));
        for i in 0..rows {
            let row = i * dim..(i + 1) * dim;
            let (inverse, half) = (T::from_f64(1.0 / length), T::from_f64(-0.5 * length));
            let (out, made, g_row) = (&mut after[row.clone()], &step[row.clone()], &g[row.clone()]);
            arrive_row(isa, out, made, g_row, inverse, half, norm, T::from_f64(component));
            let c = drift(&widen(&g[row.clone()]), clip);
            for (j, at) in row.enumerate() {
                let (kept, new) = (keep * v[at].to_f64(), fresh * noise[i * stride + j].to_f64());
                let allowed = 4.0 * e * (kept.abs() + new.abs());
                close(renewed[i * stride + j].to_f64(), kept + new, allowed, "renewed velocity");
                let (half_way, kick) = (step[at].to_f64() / length, 0.5 * length * c[j]);
                let allowed = e * (4.0 * half_way.abs() + depth * kick.abs());
                close(after[at].to_f64(), half_way - kick, allowed, "velocity after the step");
            }
        }
        let found = (renewed, after);
        match &first {
            None => first = Some(found),
            Some(first) => assert!(*first == found, "{isa:?} gives other bits than the portable path"),
        }
    }
}

#[test]
fn velocities_equal_their_scalar_twin_on_every_path() {
    for dim in [1, 2, 3, 7, 15, 16, 17, 31, 32, 50, 65] {
        for clip in CLIPS {
            velocities_equal_the_twin::<f64>(dim, 0.1, clip);
            velocities_equal_the_twin::<f32>(dim, 0.1, clip);
        }
    }
}

/// A leapfrog step goes back the way it came if the velocity is reversed, whatever limits the drift: what the Metropolis test relies on.
#[test]
fn a_step_with_momentum_is_reversible() {
    let model = Mixture::paper(&[-1.0, 0.3, 0.0], &[1.0, 0.0, 0.5], 0.4).unwrap();
    let (dim, h) = (3, 0.4);
    let start = normals::<f64>(10, dim, 1.5);
    for clip in CLIPS {
        let leap = |x: &[f64], v: &[f64]| {
            let (mut u, mut g) = ([0.0], vec![0.0; dim]);
            model.energy_and_gradient(x, &mut u, &mut g, &mut Default::default());
            let mut noise = vec![0.0; <f64 as Real>::noise_stride(dim)];
            noise[..dim].copy_from_slice(v);
            let (mut y, mut made, mut forward) = (x.to_vec(), vec![0.0; dim], [0.0]);
            propose(&mut y, &g, &noise, dim, h, (2.0 * h).sqrt(), clip, &mut made, &mut forward);
            model.energy_and_gradient(&y, &mut u, &mut g, &mut Default::default());
            let mut after = vec![0.0; dim];
            velocity_after(&mut after, v, &made, &g, true, h, clip);
            (y, after)
        };
        let velocity = normals::<f64>(11, dim, 1.0);
        let (y, after) = leap(&start, &velocity);
        let (back, reversed) = leap(&y, &after.iter().map(|v| -v).collect::<Vec<_>>());
        for j in 0..dim {
            close(back[j], start[j], 1e-13, "position");
            close(reversed[j], -velocity[j], 1e-13, "velocity");
        }
    }
}
