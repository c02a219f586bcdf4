"""Activations with an ``inplace`` flag or parameters of their own."""

from __future__ import annotations

import warnings

from flambeau.base.dtypes import DType
from flambeau.base.memory_format import contiguous_format
from flambeau.core.bindings import function
from flambeau.core.overrides import overridable
from flambeau.core.public import overwrite
from flambeau.core.tensor import Tensor

__all__ = [
    "celu",
    "celu_",
    "elu_",
    "glu",
    "gumbel_softmax",
    "hardshrink",
    "hardtanh_",
    "leaky_relu_",
    "prelu",
    "relu_",
    "rrelu",
    "rrelu_",
]
__all__ += ["selu", "selu_", "softmin", "softshrink", "softsign", "tanhshrink", "threshold", "threshold_"]

_celu, _selu, _threshold, _rrelu, _softmax, _elu, _hardtanh, _leaky, _relu = map(
    function, ("celu", "selu", "threshold", "rrelu", "softmax", "elu", "hardtanh", "leaky_relu", "relu")
)
celu_, selu_, threshold_, elu_, hardtanh_, leaky_relu_, relu_ = map(
    function, ("celu_", "selu_", "threshold_", "elu_", "hardtanh_", "leaky_relu_", "relu_")
)
hardshrink, softshrink, prelu, glu = map(function, ("hardshrink", "softshrink", "prelu", "glu"))
_like, _zeros = function("rand_like"), function("zeros_like")


@overridable
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """max(0, x) + min(0, alpha (exp(x / alpha) - 1))."""
    return celu_(input, alpha) if inplace else _celu(input, alpha)


@overridable
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """ELU with the scale and alpha of self-normalising networks."""
    return selu_(input) if inplace else _selu(input)


@overridable
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where it is above the threshold, else ``value``."""
    return threshold_(input, threshold, value) if inplace else _threshold(input, threshold, value)


@overridable
def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """Leaky ReLU with slopes drawn from [lower, upper] while training, their mean else."""
    out = _rrelu(input, lower, upper, training)
    return overwrite(input, out) if inplace else out


def rrelu_(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False) -> Tensor:
    """:func:`rrelu` in place."""
    return rrelu(input, lower, upper, training, True)


@overridable
def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Tensor:
    """softmax(-x).

    >>> torch.nn.functional.softmin(torch.tensor([0., 0.]), dim=0)
    tensor([0.5000, 0.5000])
    """
    if dim is None:
        warnings.warn(
            "Implicit dimension choice for softmin has been deprecated. Change the call to include dim=X as an argument.",
            stacklevel=3,
        )
        dim = 0 if input.dim() in (0, 1, 3) else 1
    return _softmax(-input, dim) if dtype is None else _softmax(-input, dim, dtype=dtype)


@overridable
def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)."""
    return input / (input.abs() + 1)


@overridable
def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
    return input - input.tanh()


@overridable
def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A sample of a relaxed one-hot; with ``hard`` one-hot in the forward pass and soft in the backward. Jang et al., arXiv:1611.01144.

    >>> torch.nn.functional.gumbel_softmax(torch.zeros(3, 5), hard=True).sum(-1)
    tensor([1., 1., 1.])
    """
    gumbels = -_zeros(logits, memory_format=contiguous_format).exponential_().log()
    soft = ((logits + gumbels) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    return _zeros(logits).scatter_(dim, index, 1.0) - soft.detach() + soft
