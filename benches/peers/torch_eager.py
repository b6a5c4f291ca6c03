"""PyTorch, eager: every pass over an array of walkers x dimensions is one call, in place where it can be."""

import math

import torch

from mixture_torch import Normals, bias, data_term, respond
from protocol import serve

torch.set_num_threads(2)
torch.set_grad_enabled(False)


class Eager:
    def __init__(self, job, split=False):
        self.job, self.h, self.scale = job, job.h, math.sqrt(2 * job.h)
        self.start = torch.from_numpy(job.walkers)
        self.data = torch.from_numpy(job.data)
        self.data_mean = self.data.mean(0)
        self.dtype = self.data.dtype
        self.x = torch.empty_like(self.start)
        moved = job.batch or job.count
        self.y = torch.empty(moved, job.dim, dtype=self.dtype)
        self.shares = torch.empty(2, job.count, dtype=self.dtype)
        self.normals = Normals(split)
        self.reset()

    def reset(self):
        self.x.copy_(self.start)
        self.means = torch.from_numpy(self.job.means).to(self.dtype)
        self.log_mass = torch.tensor(self.job.log_mass, dtype=self.dtype)
        self.log_weights = torch.zeros(self.job.count, dtype=self.dtype)
        self.respond(self.dots(self.x, self.means), self.norms(self.x))

    @staticmethod
    def dots(x, vectors):
        """One contiguous row per vector."""
        return (x @ vectors.T).T.contiguous()

    @staticmethod
    def norms(x):
        return torch.linalg.vector_norm(x, dim=1).square_()

    def respond(self, dots, norms):
        self.shares[1], self.c = respond(dots[0], dots[1], norms, self.means, self.log_mass, self.h)
        torch.sub(1, self.shares[1], out=self.shares[0])

    def new_parameters(self):
        weights = torch.softmax(self.log_weights, 0)
        weighted = self.shares * weights
        masses = weighted.sum(1)
        model = weighted @ self.x - self.means * masses[:, None]
        data, share = data_term(self.data, self.data_mean, self.means, self.log_mass)
        means = self.means + self.job.mean_rate * (data - model)
        return means, self.log_mass + self.job.mass_rate * (share - masses[1])

    def propose(self, x, shares, noise):
        """`y = (1 - h) x + h m + sqrt(2 h) noise`."""
        if noise is None:
            self.normals.fill(self.y, self.scale)
        else:
            torch.mul(noise, self.scale, out=self.y)
        self.y.add_(x, alpha=1 - self.h)
        torch.addmm(self.y, shares.T, self.means, alpha=self.h, out=self.y)

    def step(self, noise=None):
        means, log_mass = self.new_parameters()
        self.propose(self.x, self.shares, noise)
        # Old and new dot products of y in one pass.
        of_y = self.dots(self.y, torch.cat([self.means, means]))
        of_x = self.dots(self.x, means)
        gain = self.c.add_(torch.lerp(of_y[0], of_y[1], self.shares[1]), alpha=-0.5)
        self.means, self.log_mass = means, log_mass
        self.respond(of_y[2:], self.norms(self.y))
        gain.add_(torch.lerp(of_x[0], of_x[1], self.shares[1]), alpha=0.5).sub_(self.c)
        self.log_weights.add_(gain)
        self.x, self.y = self.y, self.x
        return self.summary()

    def summary(self):
        top = self.log_weights.max()
        w = torch.exp(self.log_weights - top)
        total = w.sum()
        log_mean = top + torch.log(total) - math.log(self.job.count)
        return log_mean, total * total / (w.dot(w) * self.job.count)

    def step_with(self, noise, chosen):
        return self.step(torch.from_numpy(noise))

    def run(self, steps):
        for _ in range(steps):
            self.step()

    def results(self):
        return self.means.numpy(), self.log_mass.item(), self.log_weights.numpy()


class EagerBatch(Eager):
    """Only some walkers move; all are weighted. Energies of the others need one product with the new means."""

    def respond(self, dots, _):
        self.pa = dots[0]
        t = dots[1] - dots[0] + bias(self.means, self.log_mass)
        torch.sigmoid(t, out=self.shares[1])
        torch.sub(1, self.shares[1], out=self.shares[0])
        # U - |x|^2 / 2
        self.u = 0.5 * self.means[0].dot(self.means[0]) - self.pa - torch.nn.functional.softplus(t)
        self.all_dots = dots

    @staticmethod
    def norms(x):
        return None

    def step(self, noise=None, chosen=None):
        if chosen is None:
            chosen = torch.from_numpy(self.job.choose())
        means, log_mass = self.new_parameters()
        x = self.x[chosen]
        dots = self.all_dots[:, chosen]
        r, c = respond(dots[0], dots[1], Eager.norms(x), self.means, self.log_mass, self.h)
        self.propose(x, torch.stack([1 - r, r]), noise)
        of_y = self.dots(self.y, torch.cat([self.means, means]))
        of_x = self.dots(x, means)
        r2, c2 = respond(of_y[2], of_y[3], Eager.norms(self.y), means, log_mass, self.h)
        gain = c - c2 - 0.5 * torch.lerp(of_y[0], of_y[1], r) + 0.5 * torch.lerp(of_x[0], of_x[1], r2)
        gain.add_(self.log_weights[chosen])
        self.x.index_copy_(0, chosen, self.y)
        before = self.u
        self.means, self.log_mass = means, log_mass
        self.respond(self.dots(self.x, means), None)
        self.log_weights.add_(before).sub_(self.u)
        self.log_weights.index_copy_(0, chosen, gain)
        return self.summary()

    def step_with(self, noise, chosen):
        return self.step(torch.from_numpy(noise), torch.from_numpy(chosen))


if __name__ == "__main__":
    serve(lambda job: EagerBatch(job) if job.batch else Eager(job))
