//! What `f32` positions do to `log Z` on the paper's mixture: the same walkers, parameters, noise and resampling once more in `f64`, by
//! loops written from the formulas.

mod common;

use common::{DIM, experiment};
use jarz::weights::WeightSums;
use jarz::{
    Advance, Energy, Exact, Kernel, Mixture, Purpose, Random, Sampler, Scheme, Stratification, Trainer,
    WalkerIds, Walkers, Weighting,
};

const WALKERS: usize = 2000;
const STEPS: u64 = 600;
const H: f64 = 0.1;

/// `U` and its gradient at one point.
fn plain(m: &Mixture, x: &[f64], gradient: &mut [f64]) -> f64 {
    let part = |k: usize| {
        m.log_masses()[k] - 0.5 * x.iter().zip(m.mean(k)).map(|(x, m)| (x - m) * (x - m)).sum::<f64>()
    };
    let (a, b) = (part(0), part(1));
    let top = a.max(b);
    let sum = (a - top).exp() + (b - top).exp();
    let r = (a - top).exp() / sum;
    for j in 0..x.len() {
        gradient[j] = x[j] - r * m.mean(0)[j] - (1.0 - r) * m.mean(1)[j];
    }
    -(top + sum.ln())
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The walkers of a plain ensemble in `f64`.
struct Plain {
    x: Vec<f64>,
    a: Vec<f64>,
    log_z: f64,
}

impl Plain {
    fn step(&mut self, from: &Mixture, to: &Mixture, random: &Random, k: u64) {
        let (mut g, mut g_new, mut noise) = ([0.0; DIM], [0.0; DIM], [0.0f32; DIM]);
        for (i, x) in self.x.chunks_exact_mut(DIM).enumerate() {
            random.noise_rows(k, Purpose::Noise, WalkerIds::From(i as u64), DIM, &mut noise);
            let u = plain(from, x, &mut g);
            let by: Vec<f64> = (0..DIM).map(|j| (2.0 * H).sqrt() * noise[j] as f64 - H * g[j]).collect();
            x.iter_mut().zip(&by).for_each(|(x, by)| *x += by);
            let u_new = plain(to, x, &mut g_new);
            let forward = u + 0.5 * dot(&by, &g) + 0.25 * H * dot(&g, &g);
            let backward = u_new - 0.5 * dot(&by, &g_new) + 0.25 * H * dot(&g_new, &g_new);
            self.a[i] += forward - backward;
        }
    }

    fn log_z(&self) -> f64 {
        self.log_z + WeightSums::of(&self.a).log_mean()
    }

    fn resample(&mut self, ancestors: &[u64]) {
        self.log_z = self.log_z();
        self.a.fill(0.0);
        let old = self.x.clone();
        for (to, &from) in ancestors.iter().enumerate() {
            let from = from as usize;
            self.x[to * DIM..(to + 1) * DIM].copy_from_slice(&old[from * DIM..(from + 1) * DIM]);
        }
    }
}

#[test]
fn rounding_moves_log_z_by_less_than_a_tenth_of_its_error() {
    // The parameters that a training run goes through, with large steps: it learns the means within these iterations.
    let mut setup = experiment::<f32>(3, 0.125, 0.025);
    setup.walkers = WALKERS;
    let mut path = vec![setup.energy.clone()];
    let mut trainer = Trainer::new(setup).unwrap();
    for _ in 0..STEPS {
        trainer.step().unwrap();
        path.push(trainer.energy().clone());
    }
    let error = trainer.estimates().unwrap().log_z.unwrap().std_error.unwrap();

    let (random, scheme) = (Random::new(3), Scheme::Systematic);
    let mut x = vec![0.0f32; WALKERS * DIM];
    path[0].sample(0..WALKERS as u64, WALKERS as u64, Stratification::Stratified, &random, &mut x);
    let log_z = Exact::<f32>::log_z(&path[0]);
    let wide_x = x.iter().map(|x| *x as f64).collect();
    let mut wide = Plain { x: wide_x, a: vec![0.0; WALKERS], log_z };
    let walkers = Walkers::new(DIM, x, Some(log_z));
    let mut sampler = Sampler::new(walkers, &path[0], Kernel::ula(), scheme, None, 3, 1).unwrap();
    sampler.begin(&path[0]).unwrap();
    let mut resamplings = 0;
    for k in 0..STEPS {
        let (from, to) = (&path[k as usize], &path[k as usize + 1]);
        let weighting = Weighting::Jarzynski;
        let advance = Advance { iteration: k, h: H, weighting, correction: None, restart: None };
        sampler.advance(from, to, advance).unwrap();
        wide.step(from, to, &random, k);
        if sampler.sums().ess() < 1.0 / 1.8 {
            let p = sampler.sums().normalise(sampler.walkers().log_weights());
            wide.resample(&scheme.ancestors(&p, WALKERS, &random, k, Purpose::Resample));
            sampler.resample(to, k).unwrap();
            resamplings += 1;
        }
    }
    assert_eq!(Energy::<f32>::dim(&path[0]), DIM);
    assert!(resamplings >= 3, "{resamplings} resamplings");
    let moved = (sampler.log_z().unwrap() - wide.log_z()).abs();
    println!("log Z moved by {moved:.2e}; statistical error {error:.2e}; {resamplings} resamplings");
    assert!(moved < 0.1 * error, "log Z moved by {moved}, its statistical error is {error}");
}
