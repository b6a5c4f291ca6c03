"""The Jarzynski step of a two-mode Gaussian mixture of unit width, for PyTorch: what the eager and the compiled peer share.

With means `a`, `b`, the log-mass `l` of `b` relative to `a`, `D = x.(b - a)` and `t = D + l + (|a|^2 - |b|^2) / 2`:

    r    = sigmoid(t)                                share of mode b
    U(x) = |x|^2 / 2 - x.a + |a|^2 / 2 - softplus(t)
    dU   = x - m(x),  m = a + r (b - a)

Per walker and parameters only dot products of `x` with `a` and `b` and the norm of `x` are needed: in the gain of a log-weight

    U(x) + (y - x).dU(x) / 2 + h |dU(x)|^2 / 4 - U'(y) + (y - x).dU'(y) / 2 - h |dU'(y)|^2 / 4

the squares `|x|^2` and `|y|^2` cancel but for the terms in `h`, and it becomes

    c(x) - c'(y) - y.m(x) / 2 + x.m'(y) / 2,   c = U - |x|^2 / 2 + x.m / 2 + h |x - m|^2 / 4,

so that no gradient of size walkers x dimensions is ever made or stored: `r` stands for it.
"""

from concurrent.futures import ThreadPoolExecutor

import torch
from torch.nn.functional import softplus


def bias(means, log_mass):
    """`t = D + bias`."""
    squares = (means * means).sum(1)
    return log_mass + (squares[0] - squares[1]) / 2


def respond(pa, pb, norm, means, log_mass, h):
    """`r` and `c` of walkers with dot products `pa`, `pb` and squared norm `norm`."""
    aa, ab, bb = (means[0] * means[0]).sum(), (means[0] * means[1]).sum(), (means[1] * means[1]).sum()
    along = pb - pa
    t = along + (log_mass + (aa - bb) / 2)
    r = torch.sigmoid(t)
    # |m|^2 = aa + 2 r (ab - aa) + r^2 |b - a|^2
    poly = r * ((h / 2) * (ab - aa) + (h / 4) * r * (aa - 2 * ab + bb) + (0.5 - h / 2) * along)
    c = poly - softplus(t) - (0.5 + h / 2) * pa + (h / 4) * norm + (0.5 + h / 4) * aa
    return r, c


def data_term(data, data_mean, means, log_mass):
    """Mean over the data of the shares `1 - r`, `r` times `x - mean`, and of `r`. The mean of the data never changes."""
    r = torch.sigmoid(data @ (means[1] - means[0]) + bias(means, log_mass))
    share = r.mean()
    second = (r @ data) / data.shape[0]
    first = data_mean - second
    return torch.stack([first - means[0] * (1 - share), second - means[1] * share]), share


class Normals:
    """Fills an array with `scale` times standard normals. PyTorch draws on one thread; with `split` two Python threads
    draw half each, and doubles come from uniforms by `erfinv` (from MKL, vectorised), which `normal_` does not match."""

    def __init__(self, split):
        self.split = split
        self.generators = [torch.Generator().manual_seed(seed) for seed in (1, 2)]
        self.pool = ThreadPoolExecutor(1)

    def fill(self, out, scale):
        if not self.split:
            return out.normal_(0, scale, generator=self.generators[0])
        flat = out.view(-1)
        half = flat.numel() // 2
        if out.dtype == torch.float32:
            draw = lambda part, generator: part.normal_(0, scale, generator=generator)
        else:
            # -1 itself, which would give infinity, has a chance of 2^-53 per number.
            draw = lambda part, generator: part.uniform_(-1, 1, generator=generator).erfinv_()
        other = self.pool.submit(draw, flat[half:], self.generators[1])
        draw(flat[:half], self.generators[0])
        other.result()
        return out if out.dtype == torch.float32 else out.mul_(scale * 2**0.5)
