//! Milliseconds of forward, backward and weighted parameter gradient on one thread.
use jarz_net::*;
#[repr(C)]
struct Ts {
    s: i64,
    n: i64,
}
unsafe extern "C" {
    fn clock_gettime(c: i32, t: *mut Ts) -> i32;
}
#[derive(Clone, Copy)]
struct Instant(f64);
impl Instant {
    fn now() -> Self {
        let mut t = Ts { s: 0, n: 0 };
        unsafe {
            clock_gettime(3, &mut t);
        }
        Instant(t.s as f64 + t.n as f64 * 1e-9)
    }
    fn elapsed(self) -> D {
        D(Instant::now().0 - self.0)
    }
}
struct D(f64);
impl D {
    fn as_secs_f64(&self) -> f64 {
        self.0
    }
}
fn main() {
    for (name, a, batch) in [("mnist", Architecture::mnist(), 256), ("cifar", Architecture::cifar(32), 64)] {
        if std::env::args().nth(2).is_some_and(|n| n != name) {
            continue;
        }
        let mut net = Network::<f32>::new(&a).unwrap();
        let r = jarz::Random::new(1);
        let params: Vec<f64> = (0..net.params().len())
            .map(|i| 0.1 * (r.uniform(0, i as u64, jarz::Purpose::User) - 0.5))
            .collect();
        net.set_params(&params);
        let x: Vec<f32> =
            (0..batch * net.inputs()).map(|i| r.uniform(1, i as u64, jarz::Purpose::User) as f32).collect();
        let mut u = vec![0.0; batch];
        let mut g = vec![0.0; x.len()];
        let mut ws = Workspace::default();
        let mut out = vec![0.0; params.len()];
        let p = vec![1.0; batch];
        let per = std::env::args().nth(1).map_or(net.block(), |s| s.parse().unwrap());
        let d = net.inputs();
        let ones = vec![1.0f32; batch];
        let mut best = [f64::MAX; 4];
        for _ in 0..60 {
            let mut t = [0.0; 4];
            let all = Instant::now();
            for at in (0..batch).step_by(per) {
                let end = (at + per).min(batch);
                let s = Instant::now();
                net.forward(&x[at * d..end * d], &mut u[at..end], &mut ws);
                t[0] += s.elapsed().as_secs_f64();
                let s = Instant::now();
                net.backward(&ones[at..end], &mut g[at * d..end * d], &mut ws);
                t[1] += s.elapsed().as_secs_f64();
                let s = Instant::now();
                net.add_param_gradient(&p[at..end], &mut out, &mut ws);
                t[2] += s.elapsed().as_secs_f64();
            }
            t[3] = all.elapsed().as_secs_f64();
            for i in 0..4 {
                best[i] = best[i].min(t[i] * 1e3);
            }
        }
        println!(
            "{name} block {} per {per}: forward {:.2} backward {:.2} weights {:.2} all {:.2} ms",
            net.block(),
            best[0],
            best[1],
            best[2],
            best[3]
        );
    }
}
