"""`particles`: `resampling.SCHEME(W)` on given weights. Its loops are compiled by numba, which happens before timing.

The requests are those of `protocol.py`, but `setup` names a scheme and reads F/weights.npy (normalised); `check` reads the
uniforms of F/uniforms.npy instead of drawing any and writes the ancestors, in ascending order, as F/answer.npy; `draw` writes
ancestors of its own there.
"""

import json
import os
import sys
import time

import numpy as np
from particles import resampling


class Given:
    """Stands for `numpy.random` inside `particles`: gives out prescribed uniforms in order."""

    def __init__(self, uniforms):
        self.uniforms = uniforms

    def rand(self, count):
        return self.uniforms[:count].copy()


def save(ancestors, state):
    np.save(f"{state['folder']}/answer.npy", np.sort(ancestors).astype(np.float64))


def answer(request, state):
    match request["do"]:
        case "setup":
            state["folder"] = request["folder"]
            state["scheme"] = resampling.rs_funcs.get(request["scheme"])
            if state["scheme"] is None:
                return {"error": f"particles has no scheme {request['scheme']}"}
            state["weights"] = np.load(f"{request['folder']}/weights.npy")
            return {"ok": True}
        case "check":
            own = resampling.random
            resampling.random = Given(np.load(f"{state['folder']}/uniforms.npy"))
            try:
                ancestors = state["scheme"](state["weights"])
            finally:
                resampling.random = own
            save(ancestors, state)
            return {"ok": True}
        case "draw":
            save(state["scheme"](state["weights"]), state)
            return {"ok": True}
        case "time":
            scheme, weights = state["scheme"], state["weights"]
            for _ in range(request["warmup"]):
                scheme(weights)
            start, done = time.perf_counter(), 0
            while time.perf_counter() - start < request["seconds"]:
                scheme(weights)
                done += 1
            return {"ms": 1e3 * (time.perf_counter() - start) / done}
        case other:
            return {"error": f"unknown request {other}"}


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    state = {}
    for line in sys.stdin:
        try:
            reply = answer(json.loads(line), state)
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(reply) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
