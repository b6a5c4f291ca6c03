//! The paper's 50-dimensional mixture: Jarzynski finds the masses, the two controls do not (in `f32`).

mod common;

use common::{experiment, run};
use jarz::{Algorithm, Dataset, Kernel, Real};

/// Share of the data that came from the teacher's first mode.
fn fraction_of_first_mode<T: Real>(data: &Dataset<T>) -> f64 {
    let left = data.values().chunks(data.dim()).filter(|row| row[0].to_f64() < -2.0).count();
    left as f64 / data.len() as f64
}

fn first_mass(estimates: &jarz::Estimates) -> f64 {
    estimates.masses.as_ref().unwrap()[0]
}

/// Final mass of the first mode minus the data's own fraction.
fn jarzynski_error(seed: u64) -> f64 {
    let setup = experiment::<f32>(seed, 0.0125, 0.0025);
    let fraction = fraction_of_first_mode(&setup.data);
    let end = run(setup, 8000);
    let mass = first_mass(&end);
    println!(
        "jarzynski seed {seed}: mass {mass:.4}, data {fraction:.4}, difference {:+.4}, log Z off by {:+.4}, {} resamplings, {} ancestors",
        mass - fraction,
        end.log_z.unwrap().value - end.log_z_exact.unwrap(),
        end.resamplings,
        end.distinct_ancestors
    );
    let means = end.means.unwrap();
    // A mode of mass 0.25 moves by 0.25 * 0.0025 of what is left in a step, so that exp(-5) of 10, or 0.07, is left after 8000. The
    // mean of its 2500 points, less that of walkers worth at least 1400, has a standard error of 0.033, of which 4 are 0.13.
    assert!((means[0][0] + 10.0).abs() < 0.2 && (means[1][0] - 6.0).abs() < 0.2, "{means:?}");
    mass - fraction
}

/// The requirement's own number: 0.01 on the mean over 4 seeds. With 10^4 walkers of an ESS above 1/1.8 the mass of one run errs by
/// `sqrt(0.25 * 0.75 * 1.8 / 10^4)` = 0.006 or so, the mean of four by half that: false alarm 1e-3 for other seeds than these.
#[test]
fn jarzynski_recovers_the_mass_of_the_data_over_four_seeds() {
    let mean = (1..=4).map(jarzynski_error).sum::<f64>() / 4.0;
    assert!(mean.abs() < 0.01, "mean difference {mean}");
}

/// Persistent contrastive divergence drifts until one mode has all the mass.
#[test]
fn pcd_loses_a_mode() {
    let mut setup = experiment::<f32>(1, 0.125, 0.025);
    setup.algorithm = Algorithm::Pcd;
    let mass = first_mass(&run(setup, 4000));
    println!("pcd seed 1: mass {mass:.6}");
    assert!(!(0.02..=0.98).contains(&mass), "mass {mass}");
}

/// Contrastive divergence finds the modes and has no way to know their masses.
#[test]
fn cd_misses_the_mass() {
    let mut setup = experiment::<f32>(1, 0.125, 0.025);
    setup.algorithm = Algorithm::Cd;
    setup.kernel = Kernel::ula().with_steps(4);
    let mass = first_mass(&run(setup, 1000));
    println!("cd seed 1: mass {mass:.4}");
    assert!((mass - 0.25).abs() >= 0.1, "mass {mass}");
}
