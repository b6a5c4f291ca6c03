"""PyTorch with `torch.compile`: the move and all row sums of a step are one fused loop over the walkers.

The normals are drawn outside the graph by `normal_`: the compiler's own `randn` is several times slower. With the argument
`split`, two Python threads draw them (see `Normals`).
"""

import math
import sys

import torch

from mixture_torch import Normals, bias, data_term, respond
from protocol import serve

torch.set_num_threads(2)
torch.set_grad_enabled(False)


def sums(log_weights, r, x, means):
    """Weighted sums that the next direction needs, with the log-mean of the weights and the ESS."""
    top = log_weights.max()
    w = torch.exp(log_weights - top)
    total, squares = w.sum(), (w * w).sum()
    w = w / total
    weighted = torch.stack([w - w * r, w * r])
    masses = weighted.sum(1)
    model = weighted @ x - means * masses[:, None]
    count = log_weights.shape[0]
    return model, masses[1], top + torch.log(total) - math.log(count), total * total / (squares * count)


def new_parameters(means, log_mass, model, mass, data, data_mean, mean_rate, mass_rate):
    of_data, share = data_term(data, data_mean, means, log_mass)
    return means + mean_rate * (of_data - model), log_mass + mass_rate * (share - mass)


def move(x, r, c, means, log_mass, new_means, new_log_mass, noise, h):
    """New positions, `r` and `c` there, and the gain in log-weight."""
    y = (1 - h) * x + h * (means[0] + r[:, None] * (means[1] - means[0])) + math.sqrt(2 * h) * noise
    row = lambda z, v: (z * v).sum(1)
    y_old = row(y, means[0]), row(y, means[1])
    y_new = row(y, new_means[0]), row(y, new_means[1])
    x_new = row(x, new_means[0]), row(x, new_means[1])
    r2, c2 = respond(*y_new, row(y, y), new_means, new_log_mass, h)
    gain = c - c2 - 0.5 * torch.lerp(*y_old, r) + 0.5 * torch.lerp(*x_new, r2)
    return y, r2, c2, gain


def full_step(x, out, noise, log_weights, r, c, means, log_mass, model, mass, data, data_mean, mean_rate, mass_rate, h):
    new = new_parameters(means, log_mass, model, mass, data, data_mean, mean_rate, mass_rate)
    y, r2, c2, gain = move(x, r, c, means, log_mass, *new, noise, h)
    log_weights = log_weights + gain
    out.copy_(y)
    return log_weights, r2, c2, *new, *sums(log_weights, r2, out, new[0])


def energies(x, means, log_mass):
    """`r` and `U - |x|^2 / 2` by one fused pass."""
    pa = (x * means[0]).sum(1)
    t = (x * means[1]).sum(1) - pa + bias(means, log_mass)
    u = 0.5 * (means[0] * means[0]).sum() - pa - torch.nn.functional.softplus(t)
    return torch.sigmoid(t), u


def batch_step(x, noise, chosen, log_weights, r, u, means, log_mass, model, mass, data, data_mean, mean_rate, mass_rate, h):
    new = new_parameters(means, log_mass, model, mass, data, data_mean, mean_rate, mass_rate)
    at = x[chosen]
    old = respond((at * means[0]).sum(1), (at * means[1]).sum(1), (at * at).sum(1), means, log_mass, h)
    y, _, _, gain = move(at, *old, means, log_mass, *new, noise, h)
    x.index_copy_(0, chosen, y)
    r2, u2 = energies(x, *new)
    moved = log_weights[chosen] + gain
    log_weights = (log_weights + (u - u2)).index_copy(0, chosen, moved)
    return log_weights, r2, u2, *new, *sums(log_weights, r2, x, new[0])


class Compiled:
    def __init__(self, job, split=False):
        self.job, self.batch = job, job.batch
        self.start = torch.from_numpy(job.walkers)
        self.data = torch.from_numpy(job.data)
        self.data_mean = self.data.mean(0)
        dtype = self.data.dtype
        self.x, self.y = torch.empty_like(self.start), torch.empty_like(self.start)
        self.noise = torch.empty(job.batch or job.count, job.dim, dtype=dtype)
        self.normals = Normals(split)
        means = torch.from_numpy(job.means).to(dtype)
        log_mass = torch.tensor(job.log_mass, dtype=dtype)
        pa, pb = self.start @ means[0], self.start @ means[1]
        r, c = respond(pa, pb, (self.start * self.start).sum(1), means, log_mass, job.h)
        u = energies(self.start, means, log_mass)[1]
        log_weights = torch.zeros(job.count, dtype=dtype)
        self.begin = [log_weights, r, u if self.batch else c, means, log_mass, *sums(log_weights, r, self.start, means)]
        self.function = torch.compile(batch_step if self.batch else full_step, dynamic=False, fullgraph=True)
        self.reset()

    def reset(self):
        self.x.copy_(self.start)
        self.state = self.begin

    def step(self, noise=None, chosen=None):
        job = self.job
        if noise is None:
            noise = self.normals.fill(self.noise, 1.0)
        constants = (self.data, self.data_mean, job.mean_rate, job.mass_rate, job.h)
        if self.batch:
            if chosen is None:
                chosen = torch.from_numpy(job.choose())
            self.state = self.function(self.x, noise, chosen, *self.state[:7], *constants)
        else:
            # Two arrays take turns: the walkers are read and written once, and nothing is allocated for them.
            self.state = self.function(self.x, self.y, noise, *self.state[:7], *constants)
            self.x, self.y = self.y, self.x

    def step_with(self, noise, chosen):
        self.step(torch.from_numpy(noise), None if chosen is None else torch.from_numpy(chosen))
        return self.state[7].item(), self.state[8].item()

    def run(self, steps):
        for _ in range(steps):
            self.step()

    def results(self):
        log_weights, _, _, means, log_mass = self.state[:5]
        return means.numpy(), log_mass.item(), log_weights.numpy()


if __name__ == "__main__":
    serve(lambda job: Compiled(job, split="split" in sys.argv[1:]))
