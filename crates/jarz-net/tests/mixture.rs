//! Mixtures of Gaussians as base measures: what they are fitted to, their density and their samples.

mod common;

use common::{numbers, params};
use jarz::{Energy, Purpose, Random, Stratification};
use jarz_net::{Architecture, Base, BaseKind, Component, Layer, NetEnergy, NetWorkspace};

/// Two Gaussians in three dimensions, 0.3 and 0.7 of the mass.
fn truth() -> Vec<Component> {
    let factor = |l: [f64; 6]| vec![l[0], 0.0, 0.0, l[1], l[2], 0.0, l[3], l[4], l[5]];
    vec![
        Component {
            weight: 0.3,
            mean: vec![-3.0, 0.5, 1.0],
            factor: factor([0.6, 0.3, 0.5, -0.2, 0.1, 0.4]),
        },
        Component {
            weight: 0.7,
            mean: vec![3.0, 0.0, -1.0],
            factor: factor([0.5, -0.2, 0.8, 0.1, 0.3, 0.6]),
        },
    ]
}

/// The base with these components, in coordinates that have nothing to do with them: the density must not mind.
fn base(components: Vec<Component>) -> Base {
    let factor = vec![1.7, 0.0, 0.0, 0.2, 0.9, 0.0, -0.5, 0.3, 1.1];
    Base::from_parts(vec![0.4, 0.1, -0.3], factor).unwrap().with_components(components).unwrap()
}

/// `L^-1 x`, by forward substitution.
fn substitute(l: &[f64], x: &[f64]) -> Vec<f64> {
    let dim = x.len();
    let mut y = vec![0.0; dim];
    for i in 0..dim {
        let known: f64 = (0..i).map(|j| l[i * dim + j] * y[j]).sum();
        y[i] = (x[i] - known) / l[i * dim + i];
    }
    y
}

/// `-log` of the mixture's density at `x`.
fn minus_log_density(components: &[Component], x: &[f64]) -> f64 {
    let dim = x.len();
    let terms = components.iter().map(|c| {
        let centred: Vec<f64> = x.iter().zip(&c.mean).map(|(x, m)| x - m).collect();
        let y = substitute(&c.factor, &centred);
        let squares: f64 = y.iter().map(|v| v * v).sum();
        let det: f64 = (0..dim).map(|i| c.factor[i * dim + i]).product();
        c.weight / det / std::f64::consts::TAU.powf(dim as f64 / 2.0) * (-0.5 * squares).exp()
    });
    -terms.sum::<f64>().ln()
}

fn flat(dim: usize) -> Architecture {
    Architecture { input: [1, 1, dim], layers: vec![Layer::Linear { features: 1 }] }
}

/// The network is zero at the start, so the energy is the base's: minus the log-density in the walkers' coordinates, up to the constant that makes `log Z` that of a standard Gaussian.
#[test]
fn the_energy_is_the_density_by_definition() {
    let base = base(truth());
    let (maps, log_det) = (base.maps::<f64>(), base.log_det());
    let energy = NetEnergy::<f64>::new(&flat(3), base, 1).unwrap();
    let single = NetEnergy::<f32>::new(&flat(3), energy.base().clone(), 1).unwrap();
    let z: Vec<f64> = numbers(4, 3 * 200).iter().map(|v| 3.0 * v).collect();
    let mut x = vec![0.0; z.len()];
    maps.to_data(&z, &mut x);
    let (mut u, mut g) = (vec![0.0; 200], vec![0.0; z.len()]);
    energy.energy_and_gradient(&z, &mut u, &mut g, &mut NetWorkspace::default());
    let (mut v, mut w) = (vec![0.0; 200], vec![0.0; 200]);
    energy.energy(&z, &mut v, &mut NetWorkspace::default());
    let rounded: Vec<f32> = z.iter().map(|v| *v as f32).collect();
    single.energy(&rounded, &mut w, &mut NetWorkspace::default());
    assert_eq!(u, v);
    let log_z = energy.exact().unwrap().log_z();
    assert_eq!(log_z, 1.5 * std::f64::consts::TAU.ln());
    for (i, x) in x.chunks(3).enumerate() {
        let expected = minus_log_density(&truth(), x) - log_det - log_z;
        assert!((u[i] - expected).abs() < 1e-10 * expected.abs().max(1.0), "{} {expected}", u[i]);
        assert!((w[i] - expected).abs() < 1e-5 * expected.abs().max(1.0), "{} {expected}", w[i]);
    }
}

/// Counts of the components, means and covariances of samples within 5 standard errors of the truth (two false alarms in 10^5 over all 39 numbers); at stratified starts the counts are exact up to the place where the strata begin.
#[test]
fn samples_are_those_of_the_mixture() {
    let n = 20_000;
    let base = base(truth());
    let maps = base.maps::<f64>();
    let energy = NetEnergy::<f64>::new(&flat(3), base, 1).unwrap();
    let annealing = energy.base_measure().unwrap();
    let exact = energy.exact().unwrap();
    let draw = |how: &dyn Fn(&mut [f64])| {
        let (mut z, mut x) = (vec![0.0; 3 * n], vec![0.0; 3 * n]);
        how(&mut z);
        maps.to_data(&z, &mut x);
        x
    };
    let random = Random::new(7);
    let start = |s| draw(&|z: &mut [f64]| exact.sample(0..n as u64, n as u64, s, &random, z));
    let drawn = [
        (start(Stratification::Stratified), true),
        (start(Stratification::Independent), false),
        (draw(&|z: &mut [f64]| annealing.sample(0..n as u64, &random, z)), false),
    ];
    assert_ne!(drawn[1].0, drawn[2].0, "an annealing has numbers of its own");
    for (x, stratified) in drawn {
        // The two are so far apart that the sign of the first coordinate tells them: zero is at least 5 standard deviations away from either.
        let first: Vec<&[f64]> = x.chunks(3).filter(|x| x[0] < 0.0).collect();
        let expected = 0.3 * n as f64;
        let allowed = if stratified { 2.0 } else { 5.0 * (0.21 * n as f64).sqrt() };
        assert!((first.len() as f64 - expected).abs() < allowed, "{} of {n}", first.len());
        let c = &truth()[0];
        let covariance =
            |i: usize, j: usize| -> f64 { (0..3).map(|k| c.factor[i * 3 + k] * c.factor[j * 3 + k]).sum() };
        let count = first.len() as f64;
        for i in 0..3 {
            let mean = first.iter().map(|x| x[i]).sum::<f64>() / count;
            assert!((mean - c.mean[i]).abs() < 5.0 * (covariance(i, i) / count).sqrt(), "{i}: {mean}");
            for j in 0..3 {
                let found =
                    first.iter().map(|x| (x[i] - c.mean[i]) * (x[j] - c.mean[j])).sum::<f64>() / count;
                let error = ((covariance(i, i) * covariance(j, j) + covariance(i, j).powi(2)) / count).sqrt();
                assert!((found - covariance(i, j)).abs() < 5.0 * error, "{i} {j}: {found}");
            }
        }
    }
}

/// Fitted to samples of a mixture, with noise whose variance is known, the likelihood of noisy samples is at least that of the truth; weights and means are within 5
/// standard errors of it (a false alarm in 10^5 over all eight).
#[test]
fn the_fit_finds_the_mixture() {
    let (n, noise) = (4000, 0.2);
    let energy = NetEnergy::<f64>::new(&flat(3), base(truth()), 1).unwrap();
    let (mut z, mut x) = (vec![0.0; 3 * n], vec![0.0; 3 * n]);
    let exact = energy.exact().unwrap();
    exact.sample(0..n as u64, n as u64, Stratification::Independent, &Random::new(3), &mut z);
    energy.maps().to_data(&z, &mut x);
    let fitted = Base::fit(&x, 3, noise, BaseKind::Mixture(2)).unwrap();
    let mut found = fitted.components().to_vec();
    found.sort_by(|a, b| a.weight.total_cmp(&b.weight));
    // The truth with the noise: its covariances are no factors any more, so compare by sampling the noise.
    let random = Random::new(11);
    let noisy: Vec<f64> = (0..x.len() as u64)
        .map(|i| {
            let mut xi = [0.0f64];
            random.normals(0, i, Purpose::User, &mut xi);
            x[i as usize] + noise * xi[0]
        })
        .collect();
    let mean = |c: &[Component]| noisy.chunks(3).map(|x| minus_log_density(c, x)).sum::<f64>() / n as f64;
    let truth = truth();
    let widened: Vec<Component> =
        truth.iter().map(|c| Component { factor: widen(&c.factor, noise), ..c.clone() }).collect();
    // By maximum likelihood the gain is half a chi-squared with 19 degrees of freedom over n, less what this noise happens to be: 5 of its standard errors, about 5 * sqrt(19 / 2) / n.
    let (ours, theirs) = (mean(&found), mean(&widened));
    assert!(ours < theirs + 15.0 / n as f64, "{ours} instead of at most {theirs}");
    for (found, truth) in found.iter().zip(&truth) {
        let share = truth.weight * n as f64;
        assert!((found.weight - truth.weight).abs() < 5.0 * (0.21 / n as f64).sqrt(), "{}", found.weight);
        for i in 0..3 {
            let variance: f64 = (0..3).map(|k| truth.factor[i * 3 + k].powi(2)).sum::<f64>();
            assert!(
                (found.mean[i] - truth.mean[i]).abs() < 5.0 * (variance / share).sqrt(),
                "{:?}",
                found.mean
            );
        }
    }
    // In the walkers' coordinates the mean precision is one.
    let maps = fitted.maps::<f64>();
    let mut columns = [0.0; 12];
    maps.to_data(&[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0], &mut columns);
    let column = |i: usize| (0..3).map(|k| columns[i * 3 + k] - columns[9 + k]).collect::<Vec<f64>>();
    for (i, j) in [(0, 0), (1, 1), (2, 2), (1, 0), (2, 0), (2, 1)] {
        let products = found.iter().map(|c| {
            let [a, b] = [i, j].map(|i| substitute(&c.factor, &column(i)));
            c.weight * (0..3).map(|k| a[k] * b[k]).sum::<f64>()
        });
        let (product, unit) = (products.sum::<f64>(), if i == j { 1.0 } else { 0.0 });
        assert!((product - unit).abs() < 1e-10, "{i} {j}: {product}");
    }
    // The same numbers again, and one Gaussian is no mixture.
    assert_eq!(Base::fit(&x, 3, noise, BaseKind::Mixture(2)).unwrap(), fitted);
    assert!(Base::fit(&x, 3, noise, BaseKind::Mixture(1)).unwrap_err().to_string().contains("2 to 64"));
}

/// Cholesky factor of `L L' + noise^2`, for three dimensions.
fn widen(l: &[f64], noise: f64) -> Vec<f64> {
    let c = |i: usize, j: usize| {
        (0..3).map(|k| l[i * 3 + k] * l[j * 3 + k]).sum::<f64>() + if i == j { noise * noise } else { 0.0 }
    };
    let a = c(0, 0).sqrt();
    let (b, d) = (c(1, 0) / a, c(2, 0) / a);
    let e = (c(1, 1) - b * b).sqrt();
    let f = (c(2, 1) - d * b) / e;
    vec![a, 0.0, 0.0, b, e, 0.0, d, f, (c(2, 2) - d * d - f * f).sqrt()]
}

#[test]
fn components_that_make_no_mixture_are_refused() {
    let refused = |change: &dyn Fn(&mut Vec<Component>)| {
        let mut components = truth();
        change(&mut components);
        let gaussian = Base::from_parts(vec![0.0; 3], base(Vec::new()).factor().to_vec()).unwrap();
        gaussian.with_components(components).err().map(|e| e.to_string()).unwrap_or_default()
    };
    assert_eq!(refused(&|_| ()), "");
    assert!(refused(&|c| c[0].weight = 0.4).contains("add up to 1"));
    assert!(refused(&|c| c[0].weight = -0.3).contains("positive weight"));
    assert!(refused(&|c| c[1].mean[2] = f64::NAN).contains("component"));
    assert!(refused(&|c| c[1].factor[1] = 0.5).contains("triangular"));
    assert!(refused(&|c| c[1].mean.truncate(2)).contains("component"));
    let diagonal = Base::standard(3).with_components(truth()).unwrap_err().to_string();
    assert!(diagonal.contains("full covariance"), "{diagonal}");
    // A network with trained weights is no base any more.
    let energy = NetEnergy::<f64>::with_params(&flat(3), base(truth()), &params(&flat(3), 2)).unwrap();
    assert!(energy.exact().is_none());
}

/// With changed weights it is the mixture with these weights, but for a constant; the derivatives in the parameters are those of the sum by definition, from single walkers and from rows that are taken from
/// elsewhere; a model whose weights have changed is not the base.
#[test]
fn weights_of_the_components_are_parameters() {
    let tilt = 0.8;
    let layers = params(&flat(3), 5);
    let theta: Vec<f64> = layers.iter().copied().chain([tilt]).collect();
    let energy = NetEnergy::<f64>::with_params(&flat(3), base(truth()), &theta).unwrap();
    let plain = NetEnergy::<f64>::with_params(&flat(3), base(truth()), &layers).unwrap();
    assert_eq!((energy.params(), plain.params()[4]), (&theta[..], 0.0));
    let group = energy.groups().pop().unwrap();
    assert_eq!((group.name.as_str(), group.range), ("base.weights", 4..5));
    assert_eq!(energy.matrices().iter().map(|m| m.rows * m.columns).sum::<usize>(), 5);

    let total = 0.3 + 0.7 * f64::exp(tilt);
    let mut tilted = truth();
    (tilted[0].weight, tilted[1].weight) = (0.3 / total, 0.7 * f64::exp(tilt) / total);
    let n = 40;
    let z: Vec<f64> = numbers(6, 3 * n).iter().map(|v| 3.0 * v).collect();
    let mut x = vec![0.0; z.len()];
    energy.maps().to_data(&z, &mut x);
    let (mut u, mut v, mut g, mut h) = (vec![0.0; n], vec![0.0; n], vec![0.0; z.len()], vec![0.0; z.len()]);
    let (mut work, mut other) = (NetWorkspace::default(), NetWorkspace::default());
    plain.energy_and_gradient(&z, &mut v, &mut h, &mut other);
    energy.energy_and_gradient(&z, &mut u, &mut g, &mut work);
    for (i, x) in x.chunks(3).enumerate() {
        let expected = minus_log_density(&tilted, x) - total.ln() - minus_log_density(&truth(), x);
        assert!((u[i] - v[i] - expected).abs() < 1e-10, "{} {expected}", u[i] - v[i]);
    }
    // The gradient in the walkers, by central differences.
    let step = 1e-5;
    for (i, row) in z.chunks(3).enumerate() {
        for j in 0..3 {
            let at = |by: f64| {
                let mut z = row.to_vec();
                z[j] += by;
                let mut u = [0.0];
                energy.energy(&z, &mut u, &mut NetWorkspace::default());
                u[0]
            };
            let slope = (at(step) - at(-step)) / (2.0 * step);
            assert!((g[3 * i + j] - slope).abs() < 1e-6 * slope.abs().max(1.0), "{i} {j}: {slope}");
        }
    }
    // Minus the share of the second component, as the weights have it now.
    let share = |x: &[f64]| {
        let second = vec![Component { weight: 1.0, ..truth()[1].clone() }];
        tilted[1].weight * (minus_log_density(&tilted, x) - minus_log_density(&second, x)).exp()
    };
    let p = numbers(8, n);
    let expected: f64 = x.chunks(3).zip(&p).map(|(x, p)| -p * share(x)).sum();
    let slope = |work: &mut NetWorkspace<f64>| {
        let mut out = vec![0.0; 5];
        energy.add_param_gradient(&z, &p, &mut out, work);
        out
    };
    let found = slope(&mut work);
    assert!((found[4] - expected).abs() < 1e-10, "{} {expected}", found[4]);
    let odd: Vec<usize> = (1..n).step_by(2).collect();
    let rows: Vec<f64> = (0..n)
        .flat_map(|i| if i % 2 == 1 { &z[3 * i..3 * i + 3] } else { &[9.0, 9.0, 9.0] })
        .copied()
        .collect();
    let mut from = NetWorkspace::default();
    energy.energy_and_gradient(&rows, &mut v, &mut h, &mut from);
    let mixed: Vec<f64> = (0..n)
        .flat_map(|i| if i % 2 == 0 { &z[3 * i..3 * i + 3] } else { &[-9.0, 0.0, 5.0] })
        .copied()
        .collect();
    energy.energy_and_gradient(&mixed, &mut v, &mut h, &mut other);
    assert!(energy.take_rows(&odd, &from, &mut other));
    assert_eq!(slope(&mut other), found);

    let mut moved = vec![0.0; 5];
    moved[4] = 0.1;
    let mut model = energy.clone();
    model.set_params(&moved);
    assert!(model.exact().is_none());
    model.set_params(&[0.0; 5]);
    assert!(model.exact().is_some());
    // The base does not learn.
    let (measure, same) = (energy.base_measure().unwrap(), plain.base_measure().unwrap());
    measure.energy_and_gradient(&z, &mut u, &mut g);
    same.energy_and_gradient(&z, &mut v, &mut h);
    assert_eq!((u, g), (v, h));
    let error = NetEnergy::<f64>::with_params(&flat(3), base(truth()), &[0.0; 6]).unwrap_err().to_string();
    assert!(error.contains("6 parameters"), "{error}");
}
