//! The machine: what it is, and whether others used it meanwhile.

use std::time::Instant;

/// Processor time of the whole machine and of this program, at some moment (Linux).
pub struct Machine {
    start: Instant,
    busy: Option<f64>,
    own: Option<f64>,
}

impl Machine {
    /// Now.
    pub fn now() -> Self {
        Machine { start: Instant::now(), busy: busy_seconds(), own: own_seconds() }
    }

    /// Warns if others used more than a twentieth of a processor since then. Call it when all peers have ended.
    pub fn complain(&self) {
        let (Some(busy), Some(own)) = (self.busy, self.own) else { return };
        let (Some(busy_now), Some(own_now)) = (busy_seconds(), own_seconds()) else { return };
        let share = ((busy_now - busy) - (own_now - own)) / self.start.elapsed().as_secs_f64();
        if share > 0.05 {
            eprintln!(
                "warning: other programs used {:.0} % of a processor meanwhile; peers that share work between threads in fixed parts \
                 suffer most from that, so measure again on an idle machine",
                100.0 * share
            );
        }
    }
}

/// One line about processor and threads.
pub fn describe() -> String {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|l| l.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or("unknown processor", |(_, name)| name.trim());
    format!("{model}, {threads} threads, instruction set {:?}", jarz::simd::Isa::best())
}

/// Seconds that processors worked: user, nice, system, interrupts.
fn busy_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    let fields: Vec<f64> =
        stat.lines().next()?.split_whitespace().skip(1).filter_map(|f| f.parse().ok()).collect();
    let [user, nice, system, _idle, _wait, hard, soft, ..] = fields[..] else { return None };
    Some((user + nice + system + hard + soft) / 100.0)
}

/// Seconds of this process and of its children that have ended.
fn own_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11).take(4);
    Some(fields.filter_map(|f| f.parse::<f64>().ok()).sum::<f64>() / 100.0)
}
