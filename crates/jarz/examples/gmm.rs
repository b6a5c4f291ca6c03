//! The paper's 50-dimensional mixture, with everything on the command line: algorithm, rule, precision, steps, iterations, seed.
use jarz::*;
use std::time::Instant;

fn main() -> Result<(), Error> {
    let args: Vec<String> = std::env::args().collect();
    let get = |name: &str, default: &str| {
        let at = args.iter().position(|a| a == &format!("--{name}"));
        at.and_then(|i| args.get(i + 1).cloned()).unwrap_or(default.to_string())
    };
    if get("precision", "f64") == "f32" { go::<f32>(&get) } else { go::<f64>(&get) }
}

fn go<T: Real>(get: &dyn Fn(&str, &str) -> String) -> Result<(), Error> {
    let num = |name: &str, default: f64| get(name, &default.to_string()).parse::<f64>().unwrap();
    let d = num("d", 50.0) as usize;
    let axis = |v: f64| {
        let mut m = vec![0.0; d];
        m[0] = v;
        m
    };
    let seed = num("seed", 1.0) as u64;
    let n = num("n", 1e4) as usize;
    let teacher = Mixture::paper(&axis(-10.0), &axis(6.0), -(3f64.ln())).unwrap();
    let data = Dataset::<T>::sample(&teacher, n, seed).unwrap();
    let random = Random::new(seed);
    let mut eps = vec![0.0f64; 2 * d];
    random.normals(0, 0, Purpose::Parameters, &mut eps);
    eps.iter_mut().for_each(|e| *e *= 0.01);
    (eps[0], eps[d]) = (-0.1, 0.1);
    let student = Mixture::paper(&eps[..d], &eps[d..], 0.0).unwrap();
    let mut setup = Setup::new(student.clone(), data.clone());
    let rates = optimizer::learning_rates(
        &Energy::<T>::groups(&student),
        &[("mean".into(), num("mean", 0.025)), ("log_mass".into(), num("z", 0.125))],
        &["log_mass.0".into()],
    )
    .unwrap();
    let rule = match get("rule", "gradient").as_str() {
        "momentum" => Rule::Momentum { beta: 0.9 },
        "adam" => Rule::ADAM,
        "adagrad" => Rule::AdaGrad { epsilon: 1e-8 },
        _ => Rule::Gradient,
    };
    setup.optimizer = Optimizer::new(rule, rates);
    setup.algorithm = Algorithm::ALL.into_iter().find(|a| a.name() == get("algorithm", "jarzynski")).unwrap();
    if get("self", "loo") == "none" {
        setup.self_interaction = Some(SelfInteractionRule::None);
    }
    setup.kernel = if get("kernel", "ula") == "mala" { Kernel::mala() } else { Kernel::ula() }
        .with_steps(num("P", 1.0) as u32);
    setup.step_size = StepSize::fixed(num("h", 0.1));
    setup.trigger = Trigger::EssBelow(Thresholds::constant(num("c", 1.0 / 1.8)));
    setup.walkers = num("N", 1e4) as usize;
    let batch = num("batch", 0.0) as usize;
    setup.batch = (batch > 0).then_some(batch);
    setup.seed = seed;
    setup.threads = num("threads", 0.0) as usize;
    let truth = {
        let mut t = setup.clone();
        t.energy = teacher.clone();
        t.walkers = 2;
        t.batch = None;
        t.algorithm = Algorithm::Jarzynski;
        Trainer::new(t)?.estimates()?.cross_entropy_exact
    };
    setup.truth = truth;
    let mut trainer = Trainer::new(setup)?;
    let steps = num("K", 4000.0) as u64;
    let left = data.values().chunks(d).filter(|r| r[0].to_f64() < -2.0).count() as f64 / n as f64;
    let start = Instant::now();
    for k in 0..=steps {
        if k % (steps / 8).max(1) == 0 {
            let e = trainer.estimates()?;
            println!(
                "{k}: mass {:.4} (data {left:.4}) walkers {:.4?} means {:.3} {:.3} KL exact {:.4?} est {:.4?} logZ se {:.4?} ESS {:.3} res {} anc {} acc {:.3?} {:.1}s",
                e.masses.as_ref().unwrap()[0],
                e.walker_masses.as_ref().unwrap()[0].value,
                e.means.as_ref().unwrap()[0][0],
                e.means.as_ref().unwrap()[1][0],
                e.kl_exact.unwrap_or(f64::NAN),
                e.kl.unwrap_or(f64::NAN),
                e.log_z.and_then(|z| z.std_error).unwrap_or(f64::NAN),
                e.ess,
                e.resamplings,
                e.distinct_ancestors,
                e.acceptance,
                start.elapsed().as_secs_f64()
            );
        }
        if k < steps {
            trainer.step()?;
        }
    }
    Ok(())
}
