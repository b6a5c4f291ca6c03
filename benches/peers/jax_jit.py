"""JAX with `jit`: the whole step is one compiled function whose walkers are donated (updated in place).

The walkers are kept in pieces of equal size: XLA runs the normals of different pieces on different threads, while those of
one array take turns with the arithmetic around them. The algebra is explained in `mixture_torch.py`.
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from protocol import serve

PIECES = 4


def bias(means, log_mass):
    return log_mass + (means[0] @ means[0] - means[1] @ means[1]) / 2


def respond(dots, norm, means, log_mass, h):
    """`r` and `c` of walkers from dot products with the means (one column each) and squared norms."""
    aa, ab, bb = means[0] @ means[0], means[0] @ means[1], means[1] @ means[1]
    along = dots[:, 1] - dots[:, 0]
    t = along + (log_mass + (aa - bb) / 2)
    r = jax.nn.sigmoid(t)
    poly = r * ((h / 2) * (ab - aa) + (h / 4) * r * (aa - 2 * ab + bb) + (0.5 - h / 2) * along)
    return r, poly - jax.nn.softplus(t) - (0.5 + h / 2) * dots[:, 0] + (h / 4) * norm + (0.5 + h / 4) * aa


def data_term(data, data_mean, means, log_mass):
    r = jax.nn.sigmoid(data @ (means[1] - means[0]) + bias(means, log_mass))
    share = r.mean()
    second = (r @ data) / data.shape[0]
    return jnp.stack([data_mean - second - means[0] * (1 - share), second - means[1] * share]), share


def new_parameters(means, log_mass, model, mass, data, data_mean, mean_rate, mass_rate):
    of_data, share = data_term(data, data_mean, means, log_mass)
    return means + mean_rate * (of_data - model), log_mass + mass_rate * (share - mass)


def summary(log_weights):
    """Normalised weights, log-mean, ESS."""
    top = log_weights.max()
    w = jnp.exp(log_weights - top)
    total, count = w.sum(), log_weights.shape[0]
    return w / total, top + jnp.log(total) - math.log(count), total * total / ((w @ w) * count)


def mix(dots, r):
    return dots[:, 0] + r * (dots[:, 1] - dots[:, 0])


def move(x, r, c, means, log_mass, new, noise, h):
    """New positions, their `r` and `c`, and the gain in log-weight."""
    m = means[0] + r[:, None] * (means[1] - means[0])
    # Without the barrier XLA draws the noise again for everything that reads y.
    y = jax.lax.optimization_barrier((1 - h) * x + h * m + math.sqrt(2 * h) * noise)
    of_y = y @ jnp.concatenate([means, new[0]]).T
    of_x = x @ new[0].T
    r2, c2 = respond(of_y[:, 2:], (y * y).sum(1), *new, h)
    return y, r2, c2, c - c2 - 0.5 * mix(of_y, r) + 0.5 * mix(of_x, r2)


def full_step(pieces, state, noise, key, data, data_mean, *, mean_rate, mass_rate, h):
    log_weights, r, c, means, log_mass, model, mass = state
    new = new_parameters(means, log_mass, model, mass, data, data_mean, mean_rate, mass_rate)
    keys = jax.random.split(key, len(pieces) + 1)
    moved = []
    for i, x in enumerate(pieces):
        xi = jax.random.normal(keys[i], x.shape, x.dtype) if noise is None else noise[i]
        moved.append(move(x, r[i], c[i], means, log_mass, new, xi, h))
    pieces, r, c, gain = (list(part) for part in zip(*moved))
    log_weights = log_weights + jnp.concatenate(gain)
    w, log_mean, ess = summary(log_weights)
    model, masses = jnp.zeros_like(means), jnp.zeros(2, means.dtype)
    for x, w_x, r_x in zip(pieces, jnp.split(w, len(pieces)), r):
        weighted = jnp.stack([w_x - w_x * r_x, w_x * r_x])
        model, masses = model + weighted @ x, masses + weighted.sum(1)
    model = model - new[0] * masses[:, None]
    return pieces, (log_weights, r, c, *new, model, masses[1]), keys[-1], (log_mean, ess)


def energies(x, means, log_mass):
    """`r` and `U - |x|^2 / 2`."""
    dots = x @ means.T
    t = dots[:, 1] - dots[:, 0] + bias(means, log_mass)
    return jax.nn.sigmoid(t), 0.5 * (means[0] @ means[0]) - dots[:, 0] - jax.nn.softplus(t)


def batch_step(x, state, noise, key, chosen, data, data_mean, *, mean_rate, mass_rate, h):
    log_weights, r, u, means, log_mass, model, mass = state
    new = new_parameters(means, log_mass, model, mass, data, data_mean, mean_rate, mass_rate)
    key, own = jax.random.split(key)
    at = x[chosen]
    if noise is None:
        noise = jax.random.normal(own, at.shape, at.dtype)
    old = respond(at @ means.T, (at * at).sum(1), means, log_mass, h)
    y, _, _, gain = move(at, *old, means, log_mass, new, noise, h)
    unique = dict(unique_indices=True, indices_are_sorted=True)
    x = x.at[chosen].set(y, **unique)
    r2, u2 = energies(x, *new)
    moved = log_weights[chosen] + gain
    log_weights = (log_weights + (u - u2)).at[chosen].set(moved, **unique)
    w, log_mean, ess = summary(log_weights)
    weighted = jnp.stack([w - w * r2, w * r2])
    masses = weighted.sum(1)
    model = weighted @ x - new[0] * masses[:, None]
    return x, (log_weights, r2, u2, *new, model, masses[1]), key, (log_mean, ess)


class Jitted:
    def __init__(self, job):
        self.job = job
        if job.dtype == np.float64:
            jax.config.update("jax_enable_x64", True)
        constants = dict(mean_rate=job.mean_rate, mass_rate=job.mass_rate, h=job.h)
        step = batch_step if job.batch else full_step
        self.function = jax.jit(functools.partial(step, **constants), donate_argnums=(0, 1))
        self.pieces = PIECES if job.count % PIECES == 0 and not job.batch else 1
        self.data = jnp.asarray(job.data)
        self.data_mean = self.data.mean(0)
        self.key = jax.random.key(1)
        self.start = self.first_state()
        self.reset()

    def first_state(self):
        job = self.job
        x, means = jnp.asarray(job.walkers), jnp.asarray(job.means, job.dtype)
        log_mass = jnp.asarray(job.log_mass, job.dtype)
        r, c = respond(x @ means.T, (x * x).sum(1), means, log_mass, job.h)
        weighted = jnp.stack([1 - r, r]) / job.count
        masses = weighted.sum(1)
        model = weighted @ x - means * masses[:, None]
        log_weights = jnp.zeros(job.count, job.dtype)
        if job.batch:
            _, u = energies(x, means, log_mass)
            return x, (log_weights, r, u, means, log_mass, model, masses[1])
        cut = lambda v: jnp.split(v, self.pieces)
        return cut(x), (log_weights, cut(r), cut(c), means, log_mass, model, masses[1])

    def reset(self):
        self.x, self.state = jax.tree.map(jnp.copy, self.start)
        jax.block_until_ready((self.x, self.state))

    def step(self, noise=None, chosen=None):
        job = self.job
        given = (self.data, self.data_mean)
        if job.batch:
            if chosen is None:
                chosen = job.choose()
            given = (chosen, *given)
        self.x, self.state, self.key, self.info = self.function(self.x, self.state, noise, self.key, *given)

    def step_with(self, noise, chosen):
        noise = jnp.asarray(noise)
        self.step(noise if self.job.batch else jnp.split(noise, self.pieces), chosen)
        return self.info

    def run(self, steps):
        for _ in range(steps):
            self.step()
        jax.block_until_ready((self.x, self.state))

    def results(self):
        log_weights, _, _, means, log_mass = self.state[:5]
        return np.asarray(means), float(log_mass), np.asarray(log_weights)


if __name__ == "__main__":
    serve(Jitted)
