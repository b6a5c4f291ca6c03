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

/// The factor of 4 is the requirement's own. The paper's rule errs by some -0.58, so the other may err by some 0.14:
/// about 7 of the standard errors of `log Z` of a run with so many resamplings, hence no false alarm but for a bias.
#[test]
fn leaving_one_out_is_at_least_four_times_closer() {
    let rules = [SelfInteractionRule::None, SelfInteractionRule::LeaveOneOut];
    let [none, one_out] = rules.map(|rule| {
        let errors: Vec<f64> = (1..=4).map(|seed| error_of_log_z(seed, rule)).collect();
        println!("{}: errors of log Z {errors:+.4?}, rms {:.4}", rule.name(), root_mean_square(&errors));
        root_mean_square(&errors)
    });
    assert!(4.0 * one_out <= none, "leave-one-out {one_out}, the paper's rule {none}");
}
