"""PyTorch. Arguments: `nchw` (as one writes it by default), `channels-last`, `explicit` or `compile`.

Autograd needs two backward passes, since the weights are known only after the first. `explicit` (channels last) does by hand what no user would
expect to have to: gradients in the outputs of layers are kept from the only backward pass, and weights come in later.
"""

import sys

import torch
import torch.nn.functional as F

from network import THREADS, serve_network

torch.set_num_threads(THREADS)
torch.set_flush_denormal(True)
how = sys.argv[1] if len(sys.argv) > 1 else "nchw"
if how == "compile":
    # Two backward passes through one graph: the first must not give its buffers away, which the compiler else refuses now and then.
    import torch._functorch.config

    torch._functorch.config.donated_buffer = False


class Model(torch.nn.Sequential):
    def __init__(self, job):
        modules, channels = [], job.input[2]
        size = None
        for i, layer in enumerate(job.layers):
            match layer["type"]:
                case "conv2d":
                    out = layer["channels"]
                    conv = torch.nn.Conv2d(channels, out, layer["kernel"], layer.get("stride", 1), layer.get("padding", 0))
                    modules.append(conv)
                    channels = out
                case "linear":
                    modules.append(torch.nn.Linear(job.tensors[f"{i}.weight"].shape[1], layer["features"]))
                case "silu":
                    modules.append(torch.nn.SiLU())
                case "leaky_relu":
                    modules.append(torch.nn.LeakyReLU(layer["slope"]))
                case "flatten":
                    modules.append(torch.nn.Flatten())
                case other:
                    raise ValueError(f"no layer {other} here")
        super().__init__(*modules)
        self.load_state_dict({name: torch.from_numpy(v.copy()) for name, v in job.tensors.items()})


class Autograd:
    def __init__(self, job):
        self.model = Model(job)
        self.x = torch.from_numpy(job.x)
        self.weights = torch.from_numpy(job.weights)
        if how != "nchw":
            self.model = self.model.to(memory_format=torch.channels_last)
            self.x = self.x.contiguous(memory_format=torch.channels_last)
        self.parameters = list(self.model.parameters())
        self.f = torch.compile(self.model) if how == "compile" else self.model

    def reset(self):
        pass

    def all(self):
        x = self.x.detach().requires_grad_(True)
        u = self.f(x).reshape(-1)
        (gradient,) = torch.autograd.grad(u.sum(), x, retain_graph=True)
        parameters = torch.autograd.grad(self.weights.dot(u), self.parameters)
        return u.detach(), gradient, parameters

    def run(self, steps):
        for _ in range(steps):
            self.all()

    def results(self):
        u, gradient, parameters = self.all()
        return u.numpy(), gradient.numpy(), [p.numpy() for p in parameters]


class Explicit(Autograd):
    @torch.no_grad()
    def all(self):
        backward, values = torch.ops.aten.convolution_backward, [self.x]
        for module in self.model:
            values.append(module(values[-1]))
        u = values[-1].reshape(-1)
        delta, kept = torch.ones_like(values[-1]), []
        for module, x in zip(reversed(self.model), reversed(values[:-1])):
            match module:
                case torch.nn.Conv2d():
                    kept.append((module, x, delta))
                    more = ([0], module.stride, module.padding, (1, 1), False, (0, 0), 1)
                    delta = backward(delta, x, module.weight, *more, [True, False, False])[0]
                case torch.nn.Linear():
                    kept.append((module, x, delta))
                    delta = delta @ module.weight
                case torch.nn.SiLU():
                    delta = torch.ops.aten.silu_backward(delta, x)
                case torch.nn.LeakyReLU():
                    delta = torch.ops.aten.leaky_relu_backward(delta, x, module.negative_slope, False)
                case torch.nn.Flatten():
                    delta = delta.reshape(x.shape).contiguous(memory_format=torch.channels_last)
        parameters = []
        for module, x, d in reversed(kept):
            d = d * self.weights.reshape(-1, *[1] * (d.dim() - 1))
            if isinstance(module, torch.nn.Linear):
                parameters += [d.T @ x, d.sum(0)]
            else:
                more = ([module.out_channels], module.stride, module.padding, (1, 1), False, (0, 0), 1)
                parameters += backward(d, x, module.weight, *more, [False, True, True])[1:]
        return u, delta, parameters


serve_network(Explicit if how == "explicit" else Autograd)
