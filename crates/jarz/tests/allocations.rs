//! A step of the mixture allocates nothing.

mod common;

use common::experiment;
use jarz::{Real, SelfInteractionRule, Trainer, Trigger};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The system's allocator, counting.
struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations<T: Real>(batch: Option<usize>, data_batch: Option<usize>, threads: usize) -> usize {
    let mut setup = experiment::<T>(1, 0.0125, 0.0025);
    (setup.batch, setup.data_batch, setup.threads) = (batch, data_batch, threads);
    setup.trigger = Trigger::Never;
    // With leave-one-out, a look at the walkers' memory every 20 iterations does allocate.
    setup.self_interaction = Some(SelfInteractionRule::None);
    let mut trainer = Trainer::new(setup).unwrap();
    for _ in 0..5 {
        trainer.step().unwrap();
    }
    // Each thread makes room when it gets its first work, which on a busy machine may be late: what a step allocates shows every time.
    let some_steps = |_| {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        for _ in 0..40 {
            trainer.step().unwrap();
        }
        ALLOCATIONS.load(Ordering::Relaxed) - before
    };
    (0..4).map(some_steps).min().unwrap_or(0)
}

/// One test, so that no other runs beside it.
#[test]
fn steps_do_not_allocate() {
    for (batch, data_batch) in [(None, None), (Some(1000), None), (None, Some(500)), (Some(1000), Some(500))]
    {
        assert_eq!(allocations::<f32>(batch, data_batch, 1), 0, "f32, {batch:?}, {data_batch:?}");
        assert_eq!(allocations::<f64>(batch, data_batch, 1), 0, "f64, {batch:?}, {data_batch:?}");
        // Rayon hands work to its threads through a list whose blocks of 63 it allocates: 80 passes need one or two.
        let shared = allocations::<f32>(batch, data_batch, 2);
        assert!(shared <= 4, "f32 on two threads, {batch:?}, {data_batch:?}: {shared} allocations");
    }
}
