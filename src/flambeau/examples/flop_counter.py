"""A mode that counts floating-point operations of matrix products and convolutions, and of everything else by elements."""

import collections
import math

import flambeau as torch
from flambeau import nn
from flambeau.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten


def product(a, b):
    """(..., n, m) times (..., m, p)."""
    return 2 * math.prod(a.shape) * b.shape[-1]


RULES = {
    aten.mm.default: lambda args, out: product(args[0], args[1]),
    aten.bmm.default: lambda args, out: product(args[0], args[1]),
    aten.addmm.default: lambda args, out: product(args[1], args[2]) + out.numel(),
    # Each element of the result is a sum over the weight of one output channel.
    aten.convolution.default: lambda args, out: 2 * out.numel() * math.prod(args[1].shape[1:]),
    # As many again for each of the gradients that are asked for.
    aten.convolution_backward.default: lambda args, out: (
        2 * args[0].numel() * math.prod(args[2].shape[1:]) * sum(g is not None for g in out[:2])
    ),
}


class FlopCounter(TorchDispatchMode):
    """``flops``: operator -> number of operations."""

    def __init__(self):
        super().__init__()
        self.flops = collections.Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        rule = RULES.get(func)
        if rule is not None:
            self.flops[str(func)] += rule(args, out)
        elif isinstance(out, torch.Tensor) and out.is_floating_point() and not func.is_view:
            self.flops["other"] += out.numel()
        return out


if __name__ == "__main__":
    model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.AvgPool2d(8), nn.Flatten(), nn.Linear(256, 10))
    with FlopCounter() as counter:
        loss = model(torch.randn(4, 3, 32, 32)).sum()
    forward = sum(counter.flops.values())
    with counter:
        loss.backward()
    for name, count in counter.flops.most_common():
        print(f"{name:28s}{count:12,}")
    print(f"forward {forward:,}, forward and backward {sum(counter.flops.values()):,}")
