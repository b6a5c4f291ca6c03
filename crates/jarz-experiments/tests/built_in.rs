//! The experiments that come with the program, cut short: every figure and criterion finds what it speaks of.

mod common;

use common::Silent;
use jarz_experiments::criterion::Outcome;
use jarz_experiments::{Options, Scale, built_in, file, rebuild};

#[test]
fn all_of_them_run_and_are_judged() {
    let folder = tempfile::tempdir().unwrap();
    for (name, title) in built_in() {
        assert!(!title.is_empty());
        let mut experiment = file::load(&name).unwrap();
        let scale = experiment.scales.get_mut(&Scale::Quick).expect("a quick scale");
        scale.set.extend(["run.iterations=20".to_string(), "run.log_every=5".to_string()]);
        let criteria = experiment.criteria.iter().filter(|c| c.scale != Some(Scale::Paper)).count();
        let plan = experiment.plan(Scale::Quick, Some(2), None).unwrap();
        let options = Options {
            name: name.clone(),
            out: folder.path().join(&name),
            scale: Scale::Quick,
            runs: None,
            seed: None,
            threads: 2,
            force: false,
            engine: None,
        };
        let finished = options.reproduce(&plan, &Silent).unwrap();
        assert_eq!(finished.verdicts.len(), criteria, "{name}");
        for v in &finished.verdicts {
            // A short run may disagree, or not decide, but never for want of the quantity.
            let lost = matches!(&v.outcome, Outcome::Undecided(reason) if reason.contains(" has no ") || reason.contains("nothing"));
            assert!(!lost && !v.measured.contains(" has no "), "{name}: {v:?}");
        }
        for figure in &plan.resolved.figures {
            let stem = if figure.name.is_empty() { &name } else { &figure.name };
            let svg = std::fs::read_to_string(options.out.join(format!("figures/{stem}.svg"))).unwrap();
            assert!(svg.starts_with("<svg"), "{name}: {stem}");
            for panel in figure.panels.iter().filter(|p| !p.title.contains('\'')) {
                assert!(svg.contains(&panel.title), "{name}: {stem} has no panel '{}'", panel.title);
            }
        }
        // The folder alone is enough to make everything again.
        let again = rebuild(&options.out, None, false).unwrap();
        assert_eq!(again.summary, finished.summary, "{name}");
    }
}

#[test]
fn all_of_them_have_a_paper_scale() {
    for (name, _) in built_in() {
        let plan = file::load(&name).unwrap().plan(Scale::Paper, None, None).unwrap();
        assert!(plan.runs >= 5, "{name}");
        // Written out and read again it is the same plan.
        let text = plan.resolved.to_toml().unwrap();
        let again = file::parse(&text, "", &name).unwrap().plan(Scale::Paper, None, None).unwrap();
        assert_eq!((again.variants, again.runs), (plan.variants, plan.runs), "{name}");
    }
}
