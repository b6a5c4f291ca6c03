//! The leave-one-out rule against the paper's: the error of the estimated `log Z` after 4000 coarse steps (in `f32`).

mod common;

use common::{experiment, run};
use jarz::SelfInteractionRule;

fn error_of_log_z(seed: u64, rule: SelfInteractionRule) -> f64 {
    let mut setup = experiment::<f32>(seed, 0.125, 0.025);
    setup.self_interaction = Some(rule);
    let end = run(setup, 4000);
    end.log_z.unwrap().value - end.log_z_exact.unwrap()
}

fn root_mean_square(errors: &[f64]) -> f64 {
    (errors.iter().map(|e| e * e).sum::<f64>() / errors.len() as f64).sqrt()
}

/// Whether the leave-one-out rule errs at least 4 times less than the paper's, the requirement's own factor.
fn compare(seeds: std::ops::RangeInclusive<u64>) {
    let rules = [SelfInteractionRule::None, SelfInteractionRule::LeaveOneOut];
    let [none, one_out] = rules.map(|rule| {
        let errors: Vec<f64> = seeds.clone().map(|seed| error_of_log_z(seed, rule)).collect();
        println!("{}: errors of log Z {errors:+.4?}, rms {:.4}", rule.name(), root_mean_square(&errors));
        root_mean_square(&errors)
    });
    assert!(4.0 * one_out <= none, "leave-one-out {one_out}, the paper's rule {none}");
}

/// The paper's rule errs by some -0.58 (prototypes), so the other may err by 0.14. The standard error of `log Z` from 10^4 walkers resampled
/// a few times is `sqrt(few / 10^4)` = 0.02 or so: without a bias, a false alarm takes 7 of them.
#[test]
fn leaving_one_out_is_four_times_closer_over_four_seeds() {
    compare(1..=4);
}
