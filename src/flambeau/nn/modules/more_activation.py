"""Activations beside the common ones."""

from __future__ import annotations

from flambeau.core.bindings import function
from flambeau.modules.module import Module
from flambeau.modules.parameter import Parameter
from flambeau.nn import functional as F
from flambeau.nn.modules._made import layer

__all__ = [
    "CELU",
    "GLU",
    "Hardshrink",
    "Hardtanh",
    "PReLU",
    "RReLU",
    "SELU",
    "Softmax2d",
    "Softmin",
    "Softshrink",
    "Softsign",
    "Tanhshrink",
    "Threshold",
]

_full = function("full")

CELU = layer("CELU", F.celu, "alpha=1.0, inplace=False", "max(0, x) + min(0, alpha (exp(x / alpha) - 1)).")
SELU = layer("SELU", F.selu, "inplace=False", "ELU of self-normalising networks.")
GLU = layer("GLU", lambda input, dim: F.glu(input, dim), "dim=-1", "One half of the input, gated by the other.")
Hardshrink = layer(
    "Hardshrink",
    lambda input, lambd: F.hardshrink(input, lambd),
    "lambd=0.5",
    "x, or 0 in [-lambd, lambd].",
    shown="*lambd",
)
Softshrink = layer(
    "Softshrink",
    lambda input, lambd: F.softshrink(input, lambd),
    "lambd=0.5",
    "x moved towards 0 by lambd.",
    shown="*lambd",
)
Softsign = layer("Softsign", F.softsign, "", "x / (1 + |x|).")
Tanhshrink = layer("Tanhshrink", F.tanhshrink, "", "x - tanh(x).")
Threshold = layer("Threshold", F.threshold, "threshold, value, inplace=False", "x above the threshold, else ``value``.")
Softmin = layer("Softmin", F.softmin, "dim=None", "softmax(-x) along ``dim``.")
RReLU = layer(
    "RReLU",
    F.rrelu,
    "lower=1.0 / 8, upper=1.0 / 3, inplace=False",
    "Leaky ReLU with random slopes while training.",
    passed="lower upper training inplace",
)


class Hardtanh(Module):
    """x clamped to [min_val, max_val]."""

    def __init__(
        self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False, min_value=None, max_value=None
    ):
        super().__init__()
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        self.inplace = inplace
        if self.max_val <= self.min_val:
            raise AssertionError("max_val must be greater than min_val")

    def forward(self, input):
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}" + (", inplace=True" if self.inplace else "")


class Softmax2d(Module):
    """Softmax over the channels of (N, C, H, W)."""

    def forward(self, input):
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3)


class PReLU(Module):
    """Leaky ReLU whose slope is learnt, one or one for each channel."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device=None, dtype=None):
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(_full((num_parameters,), init, device=device, dtype=dtype))

    def reset_parameters(self) -> None:
        from flambeau.nn import init

        init.constant_(self.weight, self.init)

    def forward(self, input):
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"
