"""Initialisation of parameters, in place and without gradient. Draws come from the generator in PyTorch's order.

Sources: Glorot & Bengio 2010 (xavier), He et al. 2015 (kaiming), Saxe et al. 2013 (orthogonal).
"""

from __future__ import annotations

import functools
import math
import warnings

from flambeau.autograd.grad_mode import no_grad
from flambeau.core.bindings import function
from flambeau.core.generator import Generator
from flambeau.core.overrides import wrap_function
from flambeau.core.tensor import Tensor

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]

empty_like, where = function("empty_like"), function("where")
diag, qr = function("diag"), function("linalg_qr")
_wrap = functools.partial(wrap_function, module="torch.nn.init")


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor that keeps the variance through ``nonlinearity`` (``param``: the slope of leaky_relu)."""
    if nonlinearity in ("linear", "sigmoid") or nonlinearity in {
        f"conv{t}{d}d" for t in ("", "_transpose") for d in (1, 2, 3)
    }:
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        if param is None:
            slope = 0.01
        elif isinstance(param, int | float) and not isinstance(param, bool):
            slope = param
        else:
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def _calculate_fan_in_and_fan_out(tensor) -> tuple[int, int]:
    """Inputs and outputs that each element of a weight (out, in, *receptive field) connects."""
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.size(1) * field, tensor.size(0) * field


def _fan(tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode == "fan_in" else fan_out


@_wrap
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Draw ``tensor`` from U(a, b); it is returned. Nothing is recorded."""
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


@_wrap
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Draw ``tensor`` from N(mean, std^2); it is returned. Nothing is recorded."""
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


@_wrap
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill ``tensor`` with ``val``; it is returned. Nothing is recorded."""
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill ``tensor`` with 1; it is returned. Nothing is recorded."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill ``tensor`` with 0; it is returned. Nothing is recorded."""
    with no_grad():
        return tensor.zero_()


def eye_(tensor: Tensor) -> Tensor:
    """The identity, as far as it fits into the 2-d ``tensor``."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with no_grad():
        tensor.zero_()
        n = min(tensor.shape)
        tensor.diagonal()[:n].fill_(1)
    return tensor


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """A normal distribution cut to [a, b], by rejection: of normal draws while more than 0.3 of the normal lies inside, else of uniform ones."""

    def cdf(x: float) -> float:
        return (1.0 + math.erf((x - mean) / (std * math.sqrt(2.0)))) / 2.0

    if tensor.is_meta:
        return tensor
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be incorrect.",
            stacklevel=2,
        )
    with no_grad():
        if cdf(b) - cdf(a) > 0.3:
            # The bounds as the tensor's dtype holds them: a draw that equals one is inside.
            low, high = (tensor.new_tensor(v).item() for v in (a, b))
            tensor.normal_(mean, std, generator=generator)
            while (outside := (tensor < low) | (tensor > high)).any():
                again = empty_like(tensor).normal_(mean, std, generator=generator)
                tensor.copy_(where(outside, again, tensor))
        else:
            _reject_uniform(tensor, mean, std, a, b, generator)
    return tensor


def _reject_uniform(tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Generator | None) -> None:
    """Draw from U(a, b), and keep each draw with the share that the normal's density has there of its largest in [a, b]."""
    largest = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2
    left = None
    while left is None or left.any():
        drawn = empty_like(tensor).uniform_(a, b, generator=generator)
        share = drawn.clone().sub_(mean).div_(std).pow_(2).mul_(-0.5).sub_(largest)
        refused = empty_like(tensor).uniform_(generator=generator).log_() > share
        tensor.copy_(drawn if left is None else where(left, drawn, tensor))
        left = refused if left is None else left & refused


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Draw from U(-k, k), k = ``gain`` sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010). ValueError for fewer than 2 dimensions."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    std = gain * math.sqrt(2.0 / float(fan_in + fan_out))
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Draw from N(0, s^2), s = ``gain`` sqrt(2 / (fan_in + fan_out)) (Glorot and Bengio 2010). ValueError for fewer than 2 dimensions."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(fan_in + fan_out)), generator)


def _kaiming_std(tensor, a: float, mode: str, nonlinearity: str) -> float | None:
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return None
    return calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode))


@_wrap
def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Draw from U(-k, k), k = gain sqrt(3 / fan) (He et al. 2015), the gain that of ``nonlinearity`` (with slope ``a``), the fan by ``mode``:
    "fan_in" or "fan_out". ValueError for fewer than 2 dimensions.
    """
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Draw from N(0, s^2), s = gain / sqrt(fan) (He et al. 2015). Options as for :func:`kaiming_uniform_`."""
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else normal_(tensor, 0.0, std, generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """A (semi-)orthogonal matrix: the Q of a normal matrix, with the signs of R's diagonal moved into it."""
    if tensor.ndimension() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    cols = tensor.numel() // rows
    flat = tensor.new_empty((rows, cols)).normal_(0, 1, generator=generator)
    if rows < cols:
        flat.t_()
    with no_grad():
        q, r = qr(flat)
        q *= diag(r, 0).sign()
        if rows < cols:
            q.t_()
        tensor.view_as(q).copy_(q)
        tensor.mul_(gain)
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """A convolution's weight that passes as many channels through as there are, in each group."""
    dimensions = tensor.ndimension()
    if dimensions not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    out_channels, in_channels = tensor.shape[:2]
    if out_channels % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    each = out_channels // groups
    with no_grad():
        tensor.zero_()
        middle = [n // 2 for n in tensor.shape[2:]]
        for g in range(groups):
            for d in range(min(each, in_channels)):
                tensor[(g * each + d, d, *middle)] = 1
    return tensor


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Normal values, the share ``sparsity`` of each column zero. Martens 2010."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, cols = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        for c in range(cols):
            tensor[function("randperm")(rows)[:zeros], c] = 0
    return tensor


def _deprecated(fn):
    old = fn.__name__[:-1]

    # Not its documentation, which an import shouldn't have to work out.
    @functools.wraps(fn, assigned=("__module__",))
    def alias(*args, **kwargs) -> Tensor:
        warnings.warn(f"`nn.init.{old}` is now deprecated in favor of `nn.init.{old}_`.", FutureWarning, stacklevel=2)
        return fn(*args, **kwargs)

    alias.__name__ = alias.__qualname__ = old
    alias.__doc__ = f"``{old}_`` under its old name."
    return alias


uniform, normal, constant, eye, dirac = map(_deprecated, (uniform_, normal_, constant_, eye_, dirac_))
xavier_uniform, xavier_normal, kaiming_uniform, kaiming_normal, orthogonal, sparse = map(
    _deprecated, (xavier_uniform_, xavier_normal_, kaiming_uniform_, kaiming_normal_, orthogonal_, sparse_)
)
