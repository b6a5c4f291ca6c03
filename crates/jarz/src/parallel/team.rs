//! Threads that share the tasks of a job, and look out for the next one awake for a moment before they sleep.
//!
//! A step has a few jobs of tens of microseconds each, one right after the other. Waking a thread takes as long as such a job, so nobody sleeps
//! in between. Every thread begins with a stretch of the tasks of its own, the same one in every job of so many tasks, whose data its caches may still
//! have; who is done takes tasks from the ends of the others' stretches.

use std::any::Any;
use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

/// What is done with a task, given its number and that of the thread.
type Work<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// How long a thread looks out before it sleeps: longer than what lies between the jobs of a step, shorter than anybody notices.
const PATIENCE: Duration = Duration::from_micros(50);
/// Looks between two looks at the clock.
const LOOKS: usize = 32;

/// Bit of the state: threads may join the job.
const OPEN: u64 = 1;
/// Bit of the state: there will be no more jobs.
const OVER: u64 = 2;
/// One thread at the job, in bits 8 to 31.
const MEMBER: u64 = 1 << 8;
const MEMBERS: u64 = 0xffff_ff00;
/// One job, in bits 32 to 63.
const JOB: u64 = 1 << 32;

/// Several threads, the caller's among them.
pub(super) struct Team {
    shared: Arc<Shared>,
    helpers: Vec<JoinHandle<()>>,
    /// Jobs come one after the other.
    turn: Mutex<()>,
}

/// On a cache line of its own (two, as processors fetch pairs of them).
#[repr(align(128))]
struct Apart<T>(T);

struct Shared {
    /// Number of the job, threads at it, [`OPEN`], [`OVER`].
    state: Apart<AtomicU64>,
    /// The present job. Written only while nobody is at a job and none is open.
    job: UnsafeCell<Option<Work<'static>>>,
    /// Each thread's stretch of tasks that nobody has taken yet: from (lower half) and to (upper half).
    stretches: Vec<Apart<AtomicU64>>,
    /// Helpers that sleep or are about to.
    asleep: Vec<Apart<AtomicBool>>,
    /// Whether the caller sleeps or is about to, and who it is.
    caller_sleeps: AtomicBool,
    caller: Mutex<Option<Thread>>,
    /// What the first task that panicked had to say.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    patience: Duration,
}

// SAFETY: `job` is written by the caller alone, while no thread is at a job or may join one, and read only by threads that have joined one.
unsafe impl Sync for Shared {}
// SAFETY: work is `Sync`, so that other threads may have a reference to it.
unsafe impl Send for Shared {}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Team {
    /// So many threads, the caller's among them.
    pub(super) fn new(threads: usize) -> std::io::Result<Self> {
        let cores = thread::available_parallelism().map_or(1, |n| n.get());
        let shared = Arc::new(Shared {
            state: Apart(AtomicU64::new(0)),
            job: UnsafeCell::new(None),
            stretches: (0..threads).map(|_| Apart(AtomicU64::new(0))).collect(),
            asleep: (0..threads).map(|_| Apart(AtomicBool::new(false))).collect(),
            caller_sleeps: AtomicBool::new(false),
            caller: Mutex::new(None),
            panic: Mutex::new(None),
            // With more threads than cores, who looks out keeps others from working.
            patience: if threads <= cores { PATIENCE } else { Duration::ZERO },
        });
        let mut team = Team { shared, helpers: Vec::new(), turn: Mutex::new(()) };
        for me in 1..threads {
            let shared = Arc::clone(&team.shared);
            let helper = thread::Builder::new().name(format!("jarz-{me}"));
            team.helpers.push(helper.spawn(move || shared.help(me))?);
        }
        Ok(team)
    }

    /// Does `work` for every task below `tasks`. It must not ask the same team for help.
    pub(super) fn run(&self, tasks: usize, work: Work<'_>) {
        assert!(u32::try_from(tasks).is_ok(), "{tasks} tasks are too many");
        let _turn = lock(&self.turn);
        let shared = &*self.shared;
        *lock(&shared.panic) = None;
        for (me, stretch) in shared.stretches.iter().enumerate() {
            let place = |me: usize| (tasks * me / shared.stretches.len()) as u64;
            stretch.0.store(place(me) | place(me + 1) << 32, Ordering::Relaxed);
        }
        // SAFETY: nobody is at a job and none is open. The reference outlives the job: `Closing` waits for all who have joined, also if a task panics.
        unsafe { *shared.job.get() = Some(std::mem::transmute::<Work<'_>, Work<'static>>(work)) };
        // A new number, and open.
        let job = shared.state.0.load(Ordering::Relaxed).wrapping_add(JOB | OPEN);
        shared.state.0.store(job, Ordering::SeqCst);
        {
            let _closing = Closing(shared);
            for (helper, asleep) in self.helpers.iter().zip(&shared.asleep[1..]) {
                if asleep.0.load(Ordering::SeqCst) && asleep.0.swap(false, Ordering::SeqCst) {
                    helper.thread().unpark();
                }
            }
            shared.work_off(0, work);
        }
        if let Some(panic) = lock(&shared.panic).take() {
            resume_unwind(panic);
        }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.state.0.fetch_or(OVER, Ordering::SeqCst);
        for helper in self.helpers.drain(..) {
            helper.thread().unpark();
            // Panics of tasks have been passed on.
            let _ = helper.join();
        }
    }
}

/// Lets nobody join any more, and waits for those who have.
struct Closing<'a>(&'a Shared);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        let shared = self.0;
        shared.state.0.fetch_and(!OPEN, Ordering::SeqCst);
        let alone = || shared.state.0.load(Ordering::SeqCst) & MEMBERS == 0;
        if shared.look_out(alone) {
            return;
        }
        *lock(&shared.caller) = Some(thread::current());
        shared.caller_sleeps.store(true, Ordering::SeqCst);
        while !alone() {
            thread::park();
        }
        shared.caller_sleeps.store(false, Ordering::SeqCst);
    }
}

impl Shared {
    /// Waits awake for what `happens`, for a while; tells whether it did.
    fn look_out(&self, happens: impl Fn() -> bool) -> bool {
        if happens() {
            return true;
        }
        let since = Instant::now();
        while since.elapsed() < self.patience {
            for _ in 0..LOOKS {
                if happens() {
                    return true;
                }
                std::hint::spin_loop();
            }
        }
        false
    }

    /// What a helper does all its life.
    fn help(&self, me: usize) {
        let mut last = 0;
        let state = || self.state.0.load(Ordering::SeqCst);
        loop {
            let called = || {
                let state = state();
                state & OVER != 0 || (state & OPEN != 0 && state >> 32 != last)
            };
            if !self.look_out(called) {
                self.asleep[me].0.store(true, Ordering::SeqCst);
                while !called() && self.asleep[me].0.load(Ordering::SeqCst) {
                    thread::park();
                }
                self.asleep[me].0.store(false, Ordering::SeqCst);
            }
            let now = state();
            if now & OVER != 0 {
                return;
            }
            let open = now & OPEN != 0 && now >> 32 != last;
            let join =
                || self.state.0.compare_exchange(now, now + MEMBER, Ordering::SeqCst, Ordering::SeqCst);
            if !open || join().is_err() {
                continue;
            }
            last = now >> 32;
            // SAFETY: the job was written before it was opened, and stays until those who have joined have left.
            if let Some(work) = unsafe { *self.job.get() }
                && let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.work_off(me, work)))
            {
                lock(&self.panic).get_or_insert(panic);
            }
            let before = self.state.0.fetch_sub(MEMBER, Ordering::SeqCst);
            if before & MEMBERS == MEMBER
                && self.caller_sleeps.load(Ordering::SeqCst)
                && let Some(caller) = &*lock(&self.caller)
            {
                caller.unpark();
            }
        }
    }

    /// Takes tasks until there are none, the own ones first.
    fn work_off(&self, me: usize, work: Work<'_>) {
        while let Some(task) = take(&self.stretches[me].0, true) {
            work(task, me);
        }
        let others = self.stretches.len();
        for other in (1..others).map(|k| &self.stretches[(me + k) % others].0) {
            while let Some(task) = take(other, false) {
                work(task, me);
            }
        }
    }
}

/// The first or the last task of a stretch, which is shorter then.
fn take(stretch: &AtomicU64, first: bool) -> Option<usize> {
    let mut now = stretch.load(Ordering::Relaxed);
    loop {
        let (from, to) = (now & 0xffff_ffff, now >> 32);
        if from >= to {
            return None;
        }
        let (task, then) =
            if first { (from, (from + 1) | to << 32) } else { (to - 1, from | (to - 1) << 32) };
        // What tasks work on was written before the job was opened; what they write is read after all have left it.
        match stretch.compare_exchange_weak(now, then, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return Some(task as usize),
            Err(other) => now = other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    /// Every task of many jobs is done once, whatever the number of threads and tasks, and with callers that come and go.
    #[test]
    fn every_task_is_done_once() {
        for threads in [2, 3, 8] {
            let team = Team::new(threads).unwrap();
            for job in 0..2000 {
                let tasks = [1, 2, 7, 64, 300][job % 5];
                let done: Vec<AtomicUsize> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
                let work = |task: usize, me: usize| {
                    assert!(me < threads);
                    done[task].fetch_add(1, Ordering::Relaxed);
                    if job % 100 == 0 && task.is_multiple_of(3) {
                        thread::sleep(Duration::from_micros(100));
                    }
                };
                if job % 500 == 0 {
                    thread::sleep(2 * PATIENCE);
                    thread::scope(|s| s.spawn(|| team.run(tasks, &work)).join()).unwrap();
                } else {
                    team.run(tasks, &work);
                }
                assert!(done.iter().all(|d| d.load(Ordering::Relaxed) == 1), "job {job}, {threads} threads");
            }
        }
    }

    /// Tasks have several threads: two that wait for each other come to an end.
    #[test]
    fn tasks_run_side_by_side() {
        let team = Team::new(2).unwrap();
        for _ in 0..100 {
            let met = std::sync::Barrier::new(2);
            team.run(2, &|_, _| {
                met.wait();
            });
        }
    }

    /// Several callers get their turns.
    #[test]
    fn callers_take_turns() {
        let (team, sum) = (Team::new(2).unwrap(), AtomicUsize::new(0));
        thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    for _ in 0..200 {
                        team.run(10, &|task, _| {
                            sum.fetch_add(task, Ordering::Relaxed);
                        });
                    }
                });
            }
        });
        assert_eq!(sum.into_inner(), 4 * 200 * 45);
    }

    /// A task's panic reaches the caller, after all others are done with the job, and the team goes on.
    #[test]
    fn panics_reach_the_caller() {
        let team = Team::new(3).unwrap();
        for bad in 0..20 {
            let at_work = AtomicUsize::new(0);
            let work = |task: usize, _| {
                at_work.fetch_add(1, Ordering::SeqCst);
                if task == bad {
                    at_work.fetch_sub(1, Ordering::SeqCst);
                    panic!("task {task}");
                }
                thread::sleep(Duration::from_micros(20));
                at_work.fetch_sub(1, Ordering::SeqCst);
            };
            let panic = catch_unwind(AssertUnwindSafe(|| team.run(20, &work))).unwrap_err();
            assert_eq!(panic.downcast_ref::<String>(), Some(&format!("task {bad}")));
            assert_eq!(at_work.load(Ordering::SeqCst), 0);
            let count = AtomicUsize::new(0);
            team.run(20, &|_, _| {
                count.fetch_add(1, Ordering::Relaxed);
            });
            assert_eq!(count.into_inner(), 20);
        }
    }
}
