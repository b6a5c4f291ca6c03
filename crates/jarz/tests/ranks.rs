//! Same seed, same bits: on any number of ranks, and when a run goes on with another number of them. What goes between ranks is counted.

#[path = "common/kinds.rs"]
mod kinds;
#[path = "common/threads.rs"]
mod threads;

use jarz::ranks::{Shard, Topic};
use jarz::{Dataset, Mixture, Ranks, Real, Sampler, Scheme, Setup, State, Thresholds, Trainer, Trigger};
use kinds::{advance, fingerprint, kinds, setup};
use threads::on_ranks;

const ITERATIONS: u64 = 30;

/// The kinds that matter among threads, and what only matters among ranks: every scheme, and segments of walkers that ranks share.
fn all_kinds<T: Real>() -> Vec<(String, Setup<T, Mixture>)> {
    let mut all: Vec<_> = kinds::<T>().into_iter().map(|(name, setup)| (name.to_string(), setup)).collect();
    for scheme in Scheme::ALL {
        for (walkers, batch) in [(2000, None), (9001, Some(2000))] {
            let mut setup = setup::<T>(3);
            (setup.walkers, setup.batch, setup.scheme) = (walkers, batch, scheme);
            all.push((format!("{} {walkers}", scheme.name()), setup));
        }
    }
    // Fewer chunks than ranks: some have nobody.
    let mut few = setup::<T>(5);
    (few.walkers, few.data_batch) = (70, Some(3));
    all.push(("few".into(), few));
    // Several resamplings in each run.
    all.iter_mut().for_each(|(_, setup)| setup.trigger = Trigger::EssBelow(Thresholds::constant(0.998)));
    all
}

/// What the first rank knows at the end, which is all there is to know.
fn run<T: Real>(
    setup: &Setup<T, Mixture>,
    ranks: Ranks,
    from: Option<&State<T>>,
    until: u64,
) -> (String, State<T>) {
    let mut trainer = Trainer::new(Setup { ranks, ..setup.clone() }).unwrap();
    if let Some(state) = from {
        trainer.restore(state.clone()).unwrap();
    }
    advance(&mut trainer, until);
    (fingerprint(&mut trainer), trainer.state())
}

fn ranks_do_not_matter<T: Real>(sizes: &[usize]) {
    for (name, setup) in all_kinds::<T>() {
        let (alone, state) = run(&setup, Ranks::alone(), None, ITERATIONS);
        if setup.algorithm.is_weighted() {
            let resamplings = state.walkers.resamplings();
            assert!(resamplings >= 3, "{name}: {resamplings} resamplings");
        }
        for &size in sizes {
            let all = on_ranks(size, |ranks| run(&setup, ranks, None, ITERATIONS).0);
            assert!(all[0] == alone, "{name} {}: {size} ranks differ from 1", T::NAME);
        }
    }
}

#[test]
fn ranks_do_not_matter_in_f32() {
    ranks_do_not_matter::<f32>(&[2, 3, 4, 8]);
}

#[test]
fn ranks_do_not_matter_in_f64() {
    ranks_do_not_matter::<f64>(&[2, 5, 7]);
}

#[test]
fn a_run_goes_on_with_another_number_of_ranks() {
    for (name, setup) in all_kinds::<f32>() {
        let (whole, _) = run(&setup, Ranks::alone(), None, ITERATIONS);
        let mut state: Option<State<f32>> = None;
        for (size, until) in [(3, 7), (1, 12), (4, 20), (2, ITERATIONS)] {
            let mut all = on_ranks(size, |ranks| run(&setup, ranks, state.as_ref(), until));
            let (print, kept) = all.swap_remove(0);
            if until == ITERATIONS {
                assert!(print == whole, "{name}: the run ended elsewhere");
            }
            state = Some(kept);
        }
    }
}

/// What resampling sends of walkers are the rows of those that end up on another rank than their ancestor, each once, and nothing more.
#[test]
fn resampling_sends_the_walkers_that_change_rank() {
    let size = 4;
    for scheme in Scheme::ALL {
        let mut setup = setup::<f32>(11);
        (setup.walkers, setup.scheme, setup.trigger) = (9001, scheme, Trigger::Never);
        // Numbers of a walker: position, responsibilities of the two modes, and energy and ancestor of 8 bytes.
        let row = (5 + 2) * size_of::<f32>() + 16;
        let counted = on_ranks(size, |ranks| {
            let mut trainer = Trainer::new(Setup { ranks: ranks.clone(), ..setup.clone() }).unwrap();
            advance(&mut trainer, 40);
            let before = trainer.state();
            assert_eq!(ranks.traffic().bytes(Topic::Walkers), 0);
            let trigger = Trigger::Every(1);
            let mut resampling =
                Trainer::new(Setup { ranks: ranks.clone(), trigger, ..setup.clone() }).unwrap();
            let whole = ranks_state(&ranks, &before);
            resampling.restore(whole).unwrap();
            resampling.step().unwrap();
            let shard: Shard = Sampler::<f32, Mixture>::shard(&setup.energy, 9001, &ranks);
            (ranks.traffic().bytes(Topic::Walkers), shard.rows(), resampling.walkers().ancestors().to_vec())
        });
        // The ancestor of a walker after one resampling of a run without any is the number it had.
        let mut strangers = 0;
        for (bytes, rows, ancestors) in counted {
            let came = ancestors.iter().filter(|a| !rows.contains(&(**a as usize))).count();
            assert_eq!(bytes, (came * row) as u64, "{}", scheme.name());
            strangers += came;
        }
        assert!(strangers > 10, "{}: only {strangers} walkers changed rank", scheme.name());
    }
}

/// Bytes that all ranks receive in an iteration without resampling, as docs/scaling.md has them: sums of walkers in `chunks` (weights and columns of the
/// gradient, folded and put together), the same of the data, and whether to stop.
fn bytes_per_iteration(params: usize, chunks: &Shard, data: &Shard, size: usize) -> [u64; 3] {
    let columns = |r: usize| (r + 1) * params / size - r * params / size;
    let count = |shard: &Shard| (0..size).map(|r| shard.chunks_of(r).len()).sum::<usize>();
    let folded = |shard: &Shard| {
        let received =
            |r: usize| columns(r) * (count(shard) - shard.chunks_of(r).len()) + params - columns(r);
        8 * (0..size).map(received).sum::<usize>()
    };
    let heads = 9 * 8 * count(chunks) * (size - 1);
    [heads + folded(chunks), folded(data), 2 * size * (size - 1)].map(|bytes| bytes as u64)
}

#[test]
fn what_goes_between_ranks_is_what_the_formula_says() {
    for (size, walkers) in [(2, 2000), (3, 2000), (4, 9001), (8, 9001)] {
        let mut setup = setup::<f32>(2);
        (setup.walkers, setup.trigger) = (walkers, Trigger::Never);
        setup.self_interaction = Some(jarz::SelfInteractionRule::None);
        let topics = [Topic::Sums, Topic::Data, Topic::Control];
        let counted = on_ranks(size, |ranks| {
            let mut trainer = Trainer::new(Setup { ranks: ranks.clone(), ..setup.clone() }).unwrap();
            let before = topics.map(|t| ranks.traffic().bytes(t));
            let mut steps = jarz::Loop {
                iterations: 10,
                log_every: u64::MAX,
                classes: None,
                observers: Vec::new(),
                checkpoints: None,
                stop: &|| false,
            };
            steps.run(&mut trainer).unwrap();
            let after = topics.map(|t| ranks.traffic().bytes(t));
            let shards = [
                Sampler::<f32, Mixture>::shard(&setup.energy, walkers, &ranks),
                Dataset::<f32>::shard(&setup.energy, 1500, &ranks),
            ];
            (shards, std::array::from_fn::<u64, 3, _>(|t| after[t] - before[t]))
        });
        let [chunks, data] = counted[0].0;
        let [sums, points, control] = bytes_per_iteration(12, &chunks, &data, size);
        let total = |t: usize| counted.iter().map(|(_, bytes)| bytes[t]).sum::<u64>();
        // Whether to stop is asked once more than there are iterations.
        assert_eq!([total(0), total(1), total(2)], [10 * sums, 10 * points, 11 * control], "{size} ranks");
    }
}

/// The first rank's state, on all ranks.
fn ranks_state(ranks: &Ranks, state: &State<f32>) -> State<f32> {
    static WHOLE: std::sync::Mutex<Option<State<f32>>> = std::sync::Mutex::new(None);
    static BARRIER: std::sync::Barrier = std::sync::Barrier::new(4);
    if ranks.is_first() {
        *WHOLE.lock().unwrap() = Some(state.clone());
    }
    BARRIER.wait();
    let whole = WHOLE.lock().unwrap().clone().unwrap();
    BARRIER.wait();
    whole
}

#[test]
fn ranks_that_are_given_different_states_notice() {
    let setup = setup::<f64>(1);
    let states: Vec<_> = [3, 4].map(|until| run(&setup, Ranks::alone(), None, until).1).into();
    let results = on_ranks(2, |ranks| {
        let state = states[ranks.rank()].clone();
        Trainer::new(Setup { ranks, ..setup.clone() }).unwrap().restore(state).unwrap_err().to_string()
    });
    assert!(results.iter().all(|r| r.contains("different states")), "{results:?}");
}
