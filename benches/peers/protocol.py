"""How a peer talks to `jarz-bench`: one JSON object a line on standard input, one answer a line on standard output.

    {"do": "setup", "folder": F, "precision": "f32", "batch": null, "h": .1, "mean_rate": .005, "mass_rate": .025}
        reads F/walkers.npy, F/data.npy and F/theta.npy (mean of mode 0, mean of mode 1, log-masses)   -> {"ok": true}
    {"do": "check", "steps": 5}
        steps with the noise in F/noise.npy (and the walkers that move in F/chosen.npy); writes F/answer.npy, the log-weights
                                                   -> {"theta": [...], "log_mean": ..., "ess": ...}
    {"do": "time", "warmup": 2, "steps": 10, "seconds": 0.2}
        from the start: untimed steps, then timed ones; all of it again until `seconds` of timed steps  -> {"ms": ...}

A peer does nothing between requests: it blocks on standard input.
"""

import json
import os
import sys
import time
import traceback

import numpy as np


class Job:
    """What `setup` describes, with its arrays."""

    def __init__(self, request):
        self.folder = request["folder"]
        self.dtype = np.float32 if request["precision"] == "f32" else np.float64
        self.batch = request.get("batch")
        self.h = request["h"]
        self.mean_rate = request["mean_rate"]
        self.mass_rate = request["mass_rate"]
        self.walkers = self.load("walkers")
        self.data = self.load("data")
        self.count, self.dim = self.walkers.shape
        theta = np.load(f"{self.folder}/theta.npy")
        d = self.dim
        self.means = theta[: 2 * d].reshape(2, d)
        # Only the difference of the log-masses matters, and the first one stays what it is.
        self.first_mass = theta[2 * d]
        self.log_mass = theta[2 * d + 1] - theta[2 * d]
        self.random = np.random.default_rng(1)

    def load(self, name):
        return np.load(f"{self.folder}/{name}.npy").astype(self.dtype, copy=False)

    def noise(self):
        return self.load("noise")

    def chosen(self):
        return np.load(f"{self.folder}/chosen.npy").astype(np.int64) if self.batch else None

    def choose(self):
        """A random set of walkers, ascending: what NumPy does here takes half the time of `torch.randperm`."""
        chosen = self.random.choice(self.count, self.batch, replace=False, shuffle=False)
        chosen.sort()
        return chosen

    def theta(self, means, log_mass):
        means = np.asarray(means, dtype=np.float64).reshape(-1)
        return [*means.tolist(), self.first_mass, float(log_mass) + self.first_mass]


def check(peer, job, steps):
    """Steps with given noise; what came out."""
    peer.reset()
    noise, chosen = job.noise(), job.chosen()
    for k in range(steps):
        log_mean, ess = peer.step_with(noise[k], None if chosen is None else chosen[k])
    means, log_mass, log_weights = peer.results()
    np.save(f"{job.folder}/answer.npy", np.asarray(log_weights, dtype=np.float64))
    return {"theta": job.theta(means, log_mass), "log_mean": float(log_mean), "ess": float(ess)}


def timed(peer, warmup, steps, seconds):
    """Milliseconds a step."""
    spent, done = 0.0, 0
    while spent < seconds:
        peer.reset()
        peer.run(warmup)
        start = time.perf_counter()
        peer.run(steps)
        spent += time.perf_counter() - start
        done += steps
    return {"ms": 1e3 * spent / done}


def serve(make_peer, make_job=Job, check=check):
    """Answers requests until standard input ends. `make_peer(job)` gives an object with `reset()`, `run(steps)`,
    `step_with(noise, chosen)` and `results()` (for another `check`: whatever that wants)."""
    answers = os.fdopen(os.dup(1), "w")
    # Whatever a framework prints must not get between the answers.
    os.dup2(2, 1)
    job = peer = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            match request["do"]:
                case "setup":
                    job, peer = make_job(request), None
                    peer = make_peer(job)
                    answer = {"ok": True}
                case "check":
                    answer = check(peer, job, request.get("steps"))
                case "time":
                    answer = timed(peer, request["warmup"], request["steps"], request["seconds"])
                case other:
                    answer = {"error": f"unknown request {other}"}
        except Exception as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
