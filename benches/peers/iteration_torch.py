"""PyTorch: the whole Jarzynski iteration with a network. Argument: `by-hand` or `autograd` (both channels last).

    {"do": "setup", "folder": F, "input": ..., "layers": ..., "iteration": k, "h": ..., "batch": 512, "rate": ..., "betas": [...],
     "epsilon": ..., "clip": 1, "target": .7, "gain": .05, "threshold": .5}
        reads F/network.safetensors, F/first.npy, F/second.npy (Adam's moments, in the order of the file), F/mean.npy, F/factor.npy
        (x = mean + L z), F/data.npy (noisy images x), F/walkers.npy (z), F/log_weights.npy                      -> {"ok": true}
    {"do": "check", "steps": 3}
        steps with F/noise.npy, F/chosen.npy (the data batch), F/uniforms.npy and the Metropolis decisions in F/accepted.npy; writes
        F/gain.npy and F/change.npy, the changes of log-weights and parameters
                              -> {"other": decisions that would have been others, "by": how far these ratios are from it}

An iteration: gradient step with Adam on the mean over a data batch minus the weighted mean over walkers; new energies and gradients where
walkers stand, which change their weights; a MALA move; resampling if the ESS is low. `|z|^2 / 2` cancels in the
weights, images are kept beside their whitened coordinates, and what is computed at a walker's place is not computed again: with
`by-hand`, the activations and the gradients in the layers' outputs of the places where walkers end up are collected from the two
passes, so that the parameter gradient is one more product per layer. `autograd` cannot do that, and goes through the network again.
"""

import math
import sys

import numpy as np
import torch

from network import THREADS, read_safetensors
from protocol import serve

torch.set_num_threads(THREADS)
torch.set_flush_denormal(True)
how = sys.argv[1] if len(sys.argv) > 1 else "by-hand"
backward = torch.ops.aten.convolution_backward


class IterationJob:
    def __init__(self, request):
        self.__dict__.update({k: v for k, v in request.items() if k != "do"})
        self.tensors = read_safetensors(f"{self.folder}/network.safetensors")

    def load(self, name):
        return torch.from_numpy(np.load(f"{self.folder}/{name}.npy"))

    def shapes(self):
        numbers = [i for i, layer in enumerate(self.layers) if layer["type"] in ("conv2d", "linear")]
        return [(name, self.tensors[name].shape) for i in numbers for name in (f"{i}.weight", f"{i}.bias")]


class Parameters:
    """All in one vector, for Adam; weights of convolutions with their channels last."""

    def __init__(self, job):
        self.shapes = job.shapes()
        self.flat = torch.empty(sum(math.prod(s) for _, s in self.shapes))
        self.gradient = torch.empty_like(self.flat)
        self.views, self.gradients = self.split(self.flat), self.split(self.gradient)

    def split(self, flat):
        parts = flat.split([math.prod(s) for _, s in self.shapes])
        last = lambda p, s: p.view(s[0], *s[2:], s[1]).permute(0, 3, 1, 2)
        return [last(p, s) if len(s) == 4 else p.view(s) for p, (_, s) in zip(parts, self.shapes)]

    def pack(self, file_order):
        flat = torch.empty_like(self.flat)
        rest = file_order.to(flat.dtype).split([math.prod(s) for _, s in self.shapes])
        for view, values, (_, shape) in zip(self.split(flat), rest, self.shapes):
            view.copy_(values.view(shape))
        return flat

    def unpack(self, flat):
        return torch.cat([view.reshape(-1) for view in self.split(flat)])


class Network:
    """Layers with an explicit backward pass. What a pass keeps: inputs of all layers, and gradients in the outputs of those with weights."""

    def __init__(self, job, parameters):
        self.layers, self.parameters, self.shape = job.layers, parameters, job.input

    def places(self):
        """Each layer with the number of its weights."""
        at = 0
        for layer in self.layers:
            yield layer, at
            at += 2 if layer["type"] in ("conv2d", "linear") else 0

    def conv(self, layer):
        s, p = layer.get("stride", 1), layer.get("padding", 0)
        return ([s, s], [p, p], [1, 1], False, [0, 0], 1)

    def forward(self, x):
        views, n = self.parameters.views, len(x)
        h, w, c = self.shape
        x = x.view(n, h, w, c).permute(0, 3, 1, 2)
        values = []
        for layer, at in self.places():
            values.append(x)
            match layer["type"]:
                case "conv2d":
                    x = torch.ops.aten.convolution(x, views[at], views[at + 1], *self.conv(layer))
                case "linear":
                    x = torch.addmm(views[at + 1], x, views[at].T)
                case "silu":
                    x = torch.nn.functional.silu(x)
                case "flatten":
                    x = x.reshape(n, -1)
                case other:
                    raise ValueError(f"no layer {other} here")
        return x.view(n), values

    def backward(self, values, to_input):
        views, n, deltas = self.parameters.views, len(values[0]), []
        delta = torch.ones(n, 1)
        for (layer, at), x in zip(reversed(list(self.places())), reversed(values)):
            match layer["type"]:
                case "conv2d":
                    deltas.append(delta)
                    if at > 0 or to_input:
                        delta = backward(delta, x, views[at], [0], *self.conv(layer), [True, False, False])[0]
                case "linear":
                    deltas.append(delta)
                    delta = delta @ views[at]
                case "silu":
                    delta = torch.ops.aten.silu_backward(delta, x)
                case "flatten":
                    delta = delta.reshape(x.shape).contiguous(memory_format=torch.channels_last)
        return delta.permute(0, 2, 3, 1).reshape(n, -1), deltas[::-1]

    def weigh(self, values, deltas, weights, out, add):
        """`out` (views of a flat vector) gets the weighted sum of parameter gradients."""
        put = lambda o, v: o.add_(v) if add else o.copy_(v)
        with_weights = [(layer, at, x) for (layer, at), x in zip(self.places(), values) if layer["type"] in ("conv2d", "linear")]
        for (layer, at, x), d in zip(with_weights, deltas):
            d = d * weights.view(-1, *[1] * (d.dim() - 1))
            if layer["type"] == "linear":
                put(out[at], d.T @ x)
                put(out[at + 1], d.sum(0))
            else:
                view = self.parameters.views[at]
                _, w, b = backward(d, x, view, [len(view)], *self.conv(layer), [False, True, True])
                put(out[at], w)
                put(out[at + 1], b)

    def kept(self, values, deltas):
        """What the parameter gradient needs, images first and then places with their channels."""
        inputs = [x for (layer, _), x in zip(self.places(), values) if layer["type"] in ("conv2d", "linear")]
        rows = lambda t: t.permute(0, 2, 3, 1) if t.dim() == 4 else t
        return [rows(t) for t in [*inputs, *deltas]]


class ByHand:
    def __init__(self, job):
        self.job, self.parameters = job, Parameters(job)
        load = lambda name: job.load(name).float()
        self.mean, self.factor = load("mean"), load("factor").contiguous()
        self.transposed = self.factor.T.contiguous()
        self.data, self.start = load("data"), load("walkers")
        self.start_weights = job.load("log_weights")
        self.theta = self.parameters.pack(torch.cat([torch.from_numpy(job.tensors[name]).reshape(-1) for name, _ in job.shapes()]))
        self.moments = [self.parameters.pack(load(name)) for name in ("first", "second")]
        self.network = Network(job, self.parameters)
        self.data_weights = torch.full((job.batch,), 1.0 / job.batch)
        self.noise = torch.empty_like(self.start)
        self.reset()

    @torch.no_grad()
    def reset(self):
        job = self.job
        self.h, self.z, self.log_weights = job.h, self.start.clone(), self.start_weights.clone()
        self.parameters.flat.copy_(self.theta)
        flat = torch.nn.Parameter(self.parameters.flat)
        flat.data = self.parameters.flat
        flat.grad = self.parameters.gradient
        self.adam = torch.optim.Adam([flat], lr=job.rate, betas=tuple(job.betas), eps=job.epsilon, fused=True)
        first, second = (m.clone() for m in self.moments)
        first.neg_()  # the other side moves along the direction, PyTorch against the gradient
        self.adam.state[flat] = {"step": torch.tensor(float(job.iteration)), "exp_avg": first, "exp_avg_sq": second}
        self.flat = flat
        self.x = torch.addmm(self.mean, self.z, self.transposed)
        self.begin()

    def begin(self):
        self.f, self.values = self.network.forward(self.x)
        _, self.deltas = self.network.backward(self.values, False)

    def evaluate(self, z, x):
        """f, dU/dz, and what the parameter gradient will need."""
        f, values = self.network.forward(x)
        of_x, deltas = self.network.backward(values, True)
        return f, torch.addmm(z, of_x, self.factor), values, deltas

    def direction(self, weights, images):
        """Gradient of the cross-entropy."""
        network, gradients = self.network, self.parameters.gradients
        network.weigh(self.values, self.deltas, -weights, gradients, False)
        _, values = network.forward(images)
        _, deltas = network.backward(values, False)
        network.weigh(values, deltas, self.data_weights, gradients, True)

    def settle(self, accepted, y, xy, fy, values, deltas):
        """Walkers go where they were accepted; what was computed there goes with them."""
        stay = accepted.logical_not().nonzero().view(-1)
        pairs = [(y, self.z), (xy, self.x), (fy, self.f)]
        pairs += zip(self.network.kept(values, deltas)[1:], self.network.kept(self.values, self.deltas)[1:])
        for new, old in pairs:
            new.index_copy_(0, stay, old.index_select(0, stay))
        self.z, self.x, self.f, self.values, self.deltas = y, xy, fy, values, deltas

    def resample(self, weights):
        n = len(weights)
        at = (torch.arange(n, dtype=torch.float64) + torch.rand(1, dtype=torch.float64)) / n
        pick = torch.searchsorted(torch.cumsum(weights, 0), at).clamp_(max=n - 1)
        self.z, self.x = self.z[pick], self.x[pick]
        self.log_weights.zero_()
        self.begin()

    @torch.no_grad()
    def step(self, noise=None, images=None, uniforms=None, decided=None):
        job, n = self.job, len(self.z)
        weights = torch.softmax(self.log_weights, 0)
        if images is None:
            images = self.data[torch.randint(0, len(self.data), (job.batch,))]
        self.direction(weights.float(), images)
        torch.nn.utils.clip_grad_norm_([self.flat], job.clip)
        self.adam.step()

        f, g, values, deltas = self.evaluate(self.z, self.x)
        self.log_weights += self.f.double() - f
        self.f, self.values, self.deltas = f, values, deltas

        noise = self.noise.normal_() if noise is None else noise
        y = torch.add(self.z, g, alpha=-self.h).add_(noise, alpha=math.sqrt(2 * self.h))
        xy = torch.addmm(self.mean, y, self.transposed)
        fy, gy, values, deltas = self.evaluate(y, xy)
        # log ratio: U(z) + forward - U(y) - backward, with |z|^2 - |y|^2 = (z - y).(z + y).
        step, h = y - self.z, self.h
        change = torch.linalg.vecdot(step, g + gy - self.z - y).double() / 2
        ratio = (f - fy).double() + change + h / 4 * (torch.linalg.vecdot(g, g).double() - torch.linalg.vecdot(gy, gy).double())
        uniforms = torch.rand(n, dtype=torch.float64) if uniforms is None else uniforms
        margin = ratio - uniforms.log()
        accepted = margin > 0
        if decided is not None:
            other = accepted != decided
            self.others.append(margin[other].abs())
            accepted = decided
        acceptance = ratio.clamp(max=0).exp().mean().item()
        self.settle(accepted, y, xy, fy, values, deltas)
        self.h *= math.exp(job.gain * (acceptance - job.target))

        weights = torch.softmax(self.log_weights, 0)
        if 1 / (n * weights.square().sum().item()) < job.threshold:
            self.resample(weights)

    def run(self, steps):
        for _ in range(steps):
            self.step()

    def results(self):
        return self.log_weights - self.start_weights, self.parameters.unpack(self.parameters.flat.double() - self.theta.double())


class Autograd(ByHand):
    """The same with autograd: parameter gradients need a pass of their own."""

    def begin(self):
        self.f, _ = self.network.forward(self.x)

    def evaluate(self, z, x):
        with torch.enable_grad():
            x = x.detach().requires_grad_(True)
            f, _ = self.network.forward(x)
            (of_x,) = torch.autograd.grad(f.sum(), x)
        return f.detach(), torch.addmm(z, of_x, self.factor), None, None

    def direction(self, weights, images):
        with torch.enable_grad():
            self.flat.grad = None
            self.network.parameters.views = self.parameters.split(self.flat)
            f, _ = self.network.forward(torch.cat([self.x, images]))
            n = len(weights)
            (f[n:].mean() - weights.dot(f[:n])).backward()
        self.network.parameters.views = self.parameters.split(self.parameters.flat)

    def settle(self, accepted, y, xy, fy, values, deltas):
        rows = accepted[:, None]
        self.z, self.x = torch.where(rows, y, self.z), torch.where(rows, xy, self.x)
        self.f = torch.where(accepted, fy, self.f)


def check(peer, job, steps):
    peer.reset()
    peer.others = []
    noise, uniforms = job.load("noise"), job.load("uniforms")
    chosen, accepted = job.load("chosen").long(), job.load("accepted").bool()
    for k in range(steps):
        peer.step(noise[k], peer.data[chosen[k]], uniforms[k], accepted[k])
    gain, change = peer.results()
    np.save(f"{job.folder}/gain.npy", gain.numpy())
    np.save(f"{job.folder}/change.npy", change.numpy())
    others = torch.cat(peer.others)
    return {"other": len(others), "by": others.max().item() if len(others) else 0.0}


serve(Autograd if how == "autograd" else ByHand, IterationJob, check)
