"""The work of the network peers: energies, their gradients in the walkers, and then, with weights that are only known after
these, the weighted sum of the gradients in the parameters.

    {"do": "setup", "folder": F, "input": [28, 28, 1], "layers": [{"type": "conv2d", ...}, ...]}
        reads F/network.safetensors, F/x.npy (batch x height x width x channels) and F/weights.npy     -> {"ok": true}
    {"do": "check"}
        writes F/energy.npy, F/gradient.npy (as x.npy) and F/parameters.npy (weights and biases in the order of the layers,
        as PyTorch keeps them)                                                                       -> {"ok": true}
    {"do": "time", ...}        as in protocol.py; a step is all three
"""

import json
import os

import numpy as np

from protocol import serve

THREADS = len(os.sched_getaffinity(0))


def read_safetensors(path):
    """A length, a header in JSON, and the numbers."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = file.read()
    header.pop("__metadata__", None)
    kinds = {"F64": np.float64, "F32": np.float32}
    return {
        name: np.frombuffer(data[slice(*t["data_offsets"])], kinds[t["dtype"]]).reshape(t["shape"]).astype(np.float32)
        for name, t in header.items()
    }


class NetworkJob:
    def __init__(self, request):
        self.folder = request["folder"]
        self.layers = request["layers"]
        self.input = request["input"]
        self.tensors = read_safetensors(f"{self.folder}/network.safetensors")
        x = np.load(f"{self.folder}/x.npy")
        # Channels first, as PyTorch has it.
        self.x = np.ascontiguousarray(x.reshape(-1, *self.input).transpose(0, 3, 1, 2))
        self.weights = np.load(f"{self.folder}/weights.npy").astype(np.float32)

    def parameters(self):
        """Names in the order of the layers."""
        numbers = [i for i, layer in enumerate(self.layers) if layer["type"] in ("conv2d", "linear")]
        return [f"{i}.{kind}" for i in numbers for kind in ("weight", "bias")]


def check(peer, job, _):
    energy, gradient, parameters = peer.results()
    save = lambda name, a: np.save(f"{job.folder}/{name}.npy", np.asarray(a, dtype=np.float64))
    save("energy", energy)
    save("gradient", np.asarray(gradient).transpose(0, 2, 3, 1).reshape(len(energy), -1))
    save("parameters", np.concatenate([np.asarray(p).reshape(-1) for p in parameters]))
    return {"ok": True}


def serve_network(make_peer):
    serve(make_peer, NetworkJob, check)
