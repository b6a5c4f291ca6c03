"""JAX, `jit`. Argument: `nchw` or `nhwc`, the layout of the images."""

import sys

import jax
import jax.numpy as jnp
import numpy as np

from network import serve_network

how = sys.argv[1] if len(sys.argv) > 1 else "nhwc"
LAYOUT = ("NCHW", "OIHW", "NCHW") if how == "nchw" else ("NHWC", "HWIO", "NHWC")
CHANNEL = 1 if how == "nchw" else 3


class Jax:
    def __init__(self, job):
        self.names = job.parameters()
        turn = lambda a: a if how == "nchw" or a.ndim != 4 else a.transpose(2, 3, 1, 0)
        self.parameters = [jnp.asarray(turn(job.tensors[name])) for name in self.names]
        self.x = jnp.asarray(job.x if how == "nchw" else job.x.transpose(0, 2, 3, 1))
        self.weights = jnp.asarray(job.weights)
        layers = job.layers

        def f(parameters, x):
            rest = iter(parameters)
            for layer in layers:
                match layer["type"]:
                    case "conv2d":
                        w, b, s, p = next(rest), next(rest), layer.get("stride", 1), layer.get("padding", 0)
                        x = jax.lax.conv_general_dilated(x, w, (s, s), ((p, p), (p, p)), dimension_numbers=LAYOUT)
                        x = x + b.reshape(-1, *[1] * (3 - CHANNEL))
                    case "linear":
                        w, b = next(rest), next(rest)
                        x = x @ w.T + b
                    case "silu":
                        x = jax.nn.silu(x)
                    case "leaky_relu":
                        x = jax.nn.leaky_relu(x, layer["slope"])
                    case "flatten":
                        # PyTorch's order.
                        x = (x if how == "nchw" else x.transpose(0, 3, 1, 2)).reshape(len(x), -1)
                    case other:
                        raise ValueError(f"no layer {other} here")
            return x.reshape(-1)

        @jax.jit
        def work(parameters, x, weights):
            u, back = jax.vjp(f, parameters, x)
            gradient = back(jnp.ones_like(u))[1]
            return u, gradient, back(weights)[0]

        self.work = work

    def reset(self):
        pass

    def run(self, steps):
        for _ in range(steps):
            jax.block_until_ready(self.work(self.parameters, self.x, self.weights))

    def results(self):
        u, gradient, parameters = self.work(self.parameters, self.x, self.weights)
        back = lambda a: a if how == "nchw" or a.ndim != 4 else a.transpose(3, 2, 0, 1)
        gradient = gradient if how == "nchw" else gradient.transpose(0, 3, 1, 2)
        return np.asarray(u), np.asarray(gradient), [back(np.asarray(p)) for p in parameters]


serve_network(Jax)
