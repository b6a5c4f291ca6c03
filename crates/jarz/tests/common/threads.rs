//! Ranks that are threads of one process, to test what happens between ranks without a cluster.

use jarz::{Communicator, Ranks};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Barrier, Condvar, Mutex};

type Letters = HashMap<(usize, usize), VecDeque<Vec<u8>>>;

struct Office {
    barrier: Barrier,
    board: Mutex<Vec<Vec<u8>>>,
    letters: Mutex<Letters>,
    arrived: Condvar,
}

struct Thread {
    rank: usize,
    size: usize,
    office: Arc<Office>,
}

impl Communicator for Thread {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn all_gather(&self, mine: &[u8], lengths: &[usize], all: &mut [u8]) {
        assert_eq!(mine.len(), lengths[self.rank]);
        self.office.board.lock().unwrap()[self.rank] = mine.to_vec();
        self.office.barrier.wait();
        let board = self.office.board.lock().unwrap().clone();
        assert!(board.iter().map(Vec::len).eq(lengths.iter().copied()), "lengths that ranks disagree about");
        all.copy_from_slice(&board.concat());
        self.office.barrier.wait();
    }

    fn exchange(&self, to: &[(usize, &[u8])], from: &mut [(usize, &mut [u8])]) {
        for (rank, bytes) in to {
            let mut letters = self.office.letters.lock().unwrap();
            letters.entry((self.rank, *rank)).or_default().push_back(bytes.to_vec());
            self.office.arrived.notify_all();
        }
        for (rank, bytes) in from {
            let mut letters = self.office.letters.lock().unwrap();
            loop {
                if let Some(letter) = letters.entry((*rank, self.rank)).or_default().pop_front() {
                    bytes.copy_from_slice(&letter);
                    break;
                }
                letters = self.office.arrived.wait(letters).unwrap();
            }
        }
        // Nothing may be left over that the next exchange would take for its own.
        self.office.barrier.wait();
        assert!(
            self.office.letters.lock().unwrap().values().all(VecDeque::is_empty),
            "a letter nobody wanted"
        );
        self.office.barrier.wait();
    }
}

/// Runs `work` on so many ranks at the same time; what each has to say.
pub fn on_ranks<R: Send>(size: usize, work: impl Fn(Ranks) -> R + Sync) -> Vec<R> {
    let office = Arc::new(Office {
        barrier: Barrier::new(size),
        board: Mutex::new(vec![Vec::new(); size]),
        letters: Mutex::default(),
        arrived: Condvar::new(),
    });
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..size)
            .map(|rank| {
                let (office, work) = (office.clone(), &work);
                scope.spawn(move || work(Ranks::new(Arc::new(Thread { rank, size, office }))))
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    })
}
