//! The same numbers by NumPy and SciPy. JARZ_SCIPY_PYTHON names a Python that has both; scripts/test sees to it.

use jarz::{Purpose, Random};
use jarz_data::write_npy_f64;
use jarz_metrics::{Features, KernelOptions, classifier_score, frechet, kernel_distance};
use std::process::Command;

const SCRIPT: &str = r#"
import sys, json, numpy as np, scipy.linalg
x, y, a = (np.load(f"{sys.argv[1]}/{n}.npy") for n in ("x", "y", "a"))
w = np.exp(a - a.max()); w /= w.sum()

def frechet(x, wx, y):
    mx, cx = wx @ x, np.cov(x, rowvar=False, aweights=wx)
    my, cy = y.mean(0), np.cov(y, rowvar=False)
    root = scipy.linalg.sqrtm(cx @ cy)
    return float((mx - my) @ (mx - my) + np.trace(cx) + np.trace(cy) - 2 * np.trace(root).real)

def mmd(x, wx, y):
    k = lambda a, b: (a @ b.T / a.shape[1] + 1) ** 3
    wy = np.full(len(y), 1 / len(y))
    def within(s, ws):
        g = np.outer(ws, ws) * k(s, s)
        return (g.sum() - np.trace(g)) / (1 - (ws ** 2).sum())
    return float(within(x, wx) + within(y, wy) - 2 * wx @ k(x, y) @ wy)

def score(x, wx):
    p = scipy.special.softmax(x, axis=1)
    m = wx @ p
    return float(np.exp(wx @ (p * (np.log(p) - np.log(m))).sum(1)))

import scipy.special
even = np.full(len(x), 1 / len(x))
print(json.dumps([[f(x, even, y), f(x, w, y)] for f in (frechet, mmd)] + [[score(x, even), score(x, w)]]))
"#;

/// Correlated features of different scales that are not normal.
fn features(n: usize, dim: usize, seed: u64) -> Vec<f64> {
    let random = Random::new(seed);
    let mut values = vec![0.0f64; n * dim];
    for (i, row) in values.chunks_exact_mut(dim).enumerate() {
        random.normals(0, i as u64, Purpose::Data, row);
        for j in 1..dim {
            row[j] = 0.6 * row[j - 1] + (0.3 + j as f64 / dim as f64) * row[j].tanh() + 0.01 * seed as f64;
        }
    }
    values
}

#[test]
#[ignore = "needs JARZ_SCIPY_PYTHON, a Python with NumPy and SciPy"]
fn numpy_and_scipy_find_the_same() {
    let python = std::env::var("JARZ_SCIPY_PYTHON")
        .expect("JARZ_SCIPY_PYTHON must name a Python with NumPy and SciPy");
    let (n, m, dim) = (900, 1100, 200);
    let (x, y) = (features(n, dim, 1), features(m, dim, 2));
    let logs: Vec<f64> = (0..n).map(|i| (i as f64 * 0.37).sin() * 1.5 - 700.0).collect();
    let folder = tempfile::tempdir().unwrap();
    write_npy_f64(folder.path().join("x.npy"), &[n, dim], &x).unwrap();
    write_npy_f64(folder.path().join("y.npy"), &[m, dim], &y).unwrap();
    write_npy_f64(folder.path().join("a.npy"), &[n], &logs).unwrap();
    let out = Command::new(python).args(["-c", SCRIPT]).arg(folder.path()).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let expected: [[f64; 2]; 3] = serde_json::from_slice(&out.stdout).unwrap();

    let (x, y) = (Features::new(dim, x).unwrap(), Features::new(dim, y).unwrap());
    let weighted = x.clone().with_log_weights(&logs).unwrap();
    assert!(weighted.effective() < 0.8 * n as f64, "the weights must matter");
    for (i, x) in [&x, &weighted].into_iter().enumerate() {
        let distance = frechet(&x.moments().unwrap(), &y.moments().unwrap()).unwrap().distance;
        let kernel = kernel_distance(x, &y, KernelOptions::default()).unwrap().distance;
        let score = classifier_score(x, 10).unwrap().score;
        for (k, found) in [distance, kernel, score].into_iter().enumerate() {
            let expected = expected[k][i];
            assert!((found / expected - 1.0).abs() < 1e-6, "{k}, {i}: {found} against {expected}");
        }
    }
}
