//! A trainer's state as a checkpoint, and back.

use crate::checkpoint::{Array, CheckpointError, Snapshot};
use crate::error::RunError;
use jarz::weights::WeightSums;
use jarz::{Real, State, Walkers};

/// A scalar type that checkpoints can hold.
pub trait Scalar: Real {
    /// As a checkpoint array.
    fn array(values: &[Self]) -> Array;
    /// From a checkpoint.
    fn values<'a>(snapshot: &'a Snapshot, name: &str) -> Result<&'a [Self], CheckpointError>;
}

impl Scalar for f32 {
    fn array(values: &[Self]) -> Array {
        Array::F32(values.to_vec())
    }
    fn values<'a>(snapshot: &'a Snapshot, name: &str) -> Result<&'a [Self], CheckpointError> {
        snapshot.f32s(name)
    }
}

impl Scalar for f64 {
    fn array(values: &[Self]) -> Array {
        Array::F64(values.to_vec())
    }
    fn values<'a>(snapshot: &'a Snapshot, name: &str) -> Result<&'a [Self], CheckpointError> {
        snapshot.f64s(name)
    }
}

/// What the names of the witnesses' arrays begin with.
const WITNESSES: &str = "witnesses/";
/// And those of the walkers that a relay copies.
const KEEPERS: &str = "keepers/";

/// The state as named arrays; `seconds` is the computing time so far.
pub fn to_snapshot<T: Scalar>(state: &State<T>, seconds: f64) -> Snapshot {
    let mut out = Snapshot::new();
    out.put_text("precision", T::NAME);
    out.put_text("iteration", state.iteration.to_string());
    let mut list = |name: &str, values: &[f64]| out.put(name, &[values.len()], values.to_vec());
    list("theta", &state.theta);
    if !state.average.is_empty() {
        list("average", &state.average);
    }
    list("optimizer.first", &state.moments[0]);
    list("optimizer.second", &state.moments[1]);
    list("step_size", &[state.step_size]);
    list("memory.variance", &state.memory[0]);
    list("memory.covariance", &state.memory[1]);
    if !state.waiting.is_empty() {
        list("waiting", &state.waiting);
    }
    list("last", &state.last);
    list("seconds", &[seconds]);
    put_walkers(&mut out, "", state.iteration, &state.walkers, &state.sums);
    for (prefix, ensemble) in [(WITNESSES, &state.witnesses), (KEEPERS, &state.keepers)] {
        if let Some((walkers, sums)) = ensemble {
            put_walkers(&mut out, prefix, state.iteration, walkers, sums);
        }
    }
    out
}

fn put_walkers<T: Scalar>(out: &mut Snapshot, prefix: &str, iteration: u64, w: &Walkers<T>, s: &WeightSums) {
    let name = |name: &str| format!("{prefix}{name}");
    let mut list = |part: &str, values: &[f64]| out.put(name(part), &[values.len()], values.to_vec());
    list("walkers.energies", &w.energies);
    list("walkers.log_weights", &w.log_weights);
    list("walkers.log_z", w.log_z.as_slice());
    list("sums.gradient", &s.gradient);
    list("sums.weights", &[s.top, s.sum, s.sum_squares, s.sum_log]);
    let n = w.energies.len();
    out.put(name("walkers.positions"), &[n, w.dim], T::array(&w.positions));
    // Gradients, or whatever else the energy keeps per walker.
    out.put(name("walkers.gradients"), &[n, w.gradients.len() / n.max(1)], T::array(&w.gradients));
    out.put(name("walkers.ancestors"), &[n], w.ancestors.clone());
    out.put(name("counts"), &[3], vec![iteration, w.resamplings, s.count]);
}

fn get_walkers<T: Scalar>(from: &Snapshot, prefix: &str) -> Result<(Walkers<T>, WeightSums), RunError> {
    let name = |name: &str| format!("{prefix}{name}");
    let list = |part: &str| from.f64s(&name(part)).map(<[f64]>::to_vec);
    let counts = from.u64s_shaped(&name("counts"), &[3])?;
    let sums = from.f64s_shaped(&name("sums.weights"), &[4])?;
    let walkers = Walkers {
        dim: from.shape(&name("walkers.positions"))?.get(1).copied().unwrap_or(0),
        positions: T::values(from, &name("walkers.positions"))?.to_vec(),
        gradients: T::values(from, &name("walkers.gradients"))?.to_vec(),
        energies: list("walkers.energies")?,
        log_weights: list("walkers.log_weights")?,
        ancestors: from.u64s(&name("walkers.ancestors"))?.to_vec(),
        log_z: list("walkers.log_z")?.first().copied(),
        resamplings: counts[1],
    };
    let sums = WeightSums {
        top: sums[0],
        sum: sums[1],
        sum_squares: sums[2],
        sum_log: sums[3],
        count: counts[2],
        gradient: list("sums.gradient")?,
    };
    Ok((walkers, sums))
}

/// The state of a checkpoint, and the computing time it had taken.
pub fn from_snapshot<T: Scalar>(snapshot: &Snapshot) -> Result<(State<T>, f64), RunError> {
    let found = snapshot.text("precision")?;
    if found != T::NAME {
        let text = format!(
            "the checkpoint has precision \"{found}\" but the run's configuration says \"{}\"",
            T::NAME
        );
        return Err(RunError::Impossible(text));
    }
    let list = |name: &str| snapshot.f64s(name).map(<[f64]>::to_vec);
    let if_any = |name: &str| match snapshot.arrays.contains_key(name) {
        true => list(name),
        false => Ok(Vec::new()),
    };
    let last = snapshot.f64s_shaped("last", &[3])?;
    let (walkers, sums) = get_walkers(snapshot, "")?;
    let ensemble = |prefix: &str| match snapshot.arrays.keys().any(|name| name.starts_with(prefix)) {
        true => get_walkers(snapshot, prefix).map(Some),
        false => Ok(None),
    };
    let state = State {
        iteration: snapshot.u64s_shaped("counts", &[3])?[0],
        theta: list("theta")?,
        average: if_any("average")?,
        moments: [list("optimizer.first")?, list("optimizer.second")?],
        walkers,
        sums,
        witnesses: ensemble(WITNESSES)?,
        keepers: ensemble(KEEPERS)?,
        step_size: snapshot.f64s_shaped("step_size", &[1])?[0],
        memory: [list("memory.variance")?, list("memory.covariance")?],
        waiting: if_any("waiting")?,
        last: [last[0], last[1], last[2]],
    };
    Ok((state, snapshot.f64s_shaped("seconds", &[1])?[0]))
}
