//! What messages between ranks cost: `mpirun -n 2 target/release/examples/wire` prints latency and bandwidth, one line of JSON.

use jarz::Communicator;
use jarz_mpi::World;
use std::time::Instant;

fn main() -> Result<(), jarz_mpi::MpiError> {
    let (_universe, world) = World::connect()?;
    let (me, size) = (world.rank(), world.size());
    let mut results = Vec::new();
    for length in [8usize, 64 << 10, 16 << 20] {
        let (mine, mut theirs) = (vec![me as u8; length], vec![0u8; length]);
        let repeats = ((64 << 20) / length).clamp(8, 2000);
        let time = |work: &mut dyn FnMut()| {
            let mut best = f64::INFINITY;
            for _ in 0..5 {
                let start = Instant::now();
                (0..repeats).for_each(|_| work());
                best = best.min(start.elapsed().as_secs_f64() / repeats as f64);
            }
            best
        };
        // Everybody sends to the next and receives from the one before.
        let (next, before) = ((me + 1) % size, (me + size - 1) % size);
        let ring = time(&mut || world.exchange(&[(next, &mine)], &mut [(before, &mut theirs)]));
        let mut all = vec![0u8; length * size];
        let lengths = vec![length; size];
        let gather = time(&mut || world.all_gather(&mine, &lengths, &mut all));
        results.push(format!(
            "{{\"bytes\": {length}, \"exchange_us\": {:.2}, \"all_gather_us\": {:.2}}}",
            1e6 * ring,
            1e6 * gather
        ));
    }
    if me == 0 {
        println!("{{\"ranks\": {size}, \"messages\": [{}]}}", results.join(", "));
    }
    Ok(())
}
