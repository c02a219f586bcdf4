"""Pooling: bindings, and the functions that can return indices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from flambeau.core.bindings import function
from flambeau.core.overrides import checked_input, overridable
from flambeau.core.tensor import Tensor

__all__ = ["avg_pool1d", "avg_pool2d", "avg_pool3d"]

avg_pool1d, avg_pool2d, avg_pool3d = map(function, ("avg_pool1d", "avg_pool2d", "avg_pool3d"))
_indices = {n: function(f"max_pool{n}d_with_indices") for n in (1, 2, 3)}
_maxima = {n: function(f"max_pool{n}d") for n in (1, 2, 3)}
_adaptive_avg = {n: function(f"adaptive_avg_pool{n}d") for n in (1, 2, 3)}
_adaptive_max = {n: function(f"adaptive_max_pool{n}d") for n in (1, 2, 3)}
_unpool = {2: function("max_unpool2d"), 3: function("max_unpool3d")}
_fractional = {n: function(f"fractional_max_pool{n}d") for n in (2, 3)}
_rand = function("rand")


def _public(**made):
    """Bind functions under their names, with the override protocol."""
    for name, fn in made.items():
        fn.__name__ = fn.__qualname__ = name
        globals()[name] = overridable(fn)
        __all__.append(name)


def _max_pool(n):
    def max_pool(
        input: Tensor,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        """The maximum of each window; with ``return_indices`` also its flat position in the input."""
        stride = [] if stride is None else stride
        if return_indices:
            return _indices[n](input, kernel_size, stride, padding, dilation, ceil_mode)
        return _maxima[n](input, kernel_size, stride, padding, dilation, ceil_mode)

    def with_indices(
        input: Tensor,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """(maxima of windows, their flat positions in the input)."""
        return _indices[n](input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode)

    return max_pool, with_indices


for _n in (1, 2, 3):
    _plain, _with = _max_pool(_n)
    _public(**{f"max_pool{_n}d": _plain, f"max_pool{_n}d_with_indices": _with})


def _sizes(input, output_size, n: int, name: str) -> list:
    """``output_size`` with None replaced by the input's size."""
    checked_input(name, input)
    if output_size.__class__ is int and input.dim() > n:
        return [output_size] * n
    if output_size is None:
        raise TypeError(f"{name}(): argument 'output_size' (position 2) must be tuple of ints, not NoneType")
    asked = len(output_size) if isinstance(output_size, (tuple, list)) else n
    if input.dim() <= asked and n > 1:
        raise ValueError(f"Input dimension should be at least {asked + 1}")
    if asked != n:
        raise RuntimeError(f"output_size must be {n} numbers, but got {asked}")
    if not isinstance(output_size, (tuple, list)):
        output_size = [output_size] * n
    return [input.shape[input.dim() - n + i] if s is None else s for i, s in enumerate(output_size)]


def _adaptive(n):
    def avg(input: Tensor, output_size: int | Sequence[int]) -> Tensor:
        """The mean of windows that share the input evenly; None keeps a size."""
        return _adaptive_avg[n](input, _sizes(input, output_size, n, f"adaptive_avg_pool{n}d"))

    def with_indices(
        input: Tensor, output_size: int | Sequence[int], return_indices: bool = False
    ) -> tuple[Tensor, Tensor]:
        """(maxima of windows that share the input evenly, their flat positions)."""
        return _adaptive_max[n](input, _sizes(input, output_size, n, f"adaptive_max_pool{n}d"))

    def maximum(input: Tensor, output_size: int | Sequence[int], return_indices: bool = False) -> Any:
        """The maximum of windows that share the input evenly; None keeps a size."""
        out = _adaptive_max[n](input, _sizes(input, output_size, n, f"adaptive_max_pool{n}d"))
        return tuple(out) if return_indices else out[0]

    return avg, maximum, with_indices


for _n in (1, 2, 3):
    _plain, _max_, _with = _adaptive(_n)
    _public(
        **{
            f"adaptive_avg_pool{_n}d": _plain,
            f"adaptive_max_pool{_n}d": _max_,
            f"adaptive_max_pool{_n}d_with_indices": _with,
        }
    )


def _lp_pool(n, average):
    def lp_pool(
        input: Tensor,
        norm_type: float,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        ceil_mode: bool = False,
    ) -> Tensor:
        """(sum of x^p over each window)^(1/p); the largest, or smallest, size of an element for infinite p."""
        windows = kernel_size, [] if stride is None else stride, 0
        if norm_type == math.inf:
            return _maxima[n](input.abs(), *windows, 1, ceil_mode)
        if norm_type == -math.inf:
            return -_maxima[n](-input.abs(), *windows, 1, ceil_mode)
        count = kernel_size if isinstance(kernel_size, int) else 1
        if not isinstance(kernel_size, int):
            for k in kernel_size:
                count *= k
        else:
            count = kernel_size**n
        out = average(input.pow(norm_type), *windows, ceil_mode)
        return (out.sign() * out.abs().relu()).mul(count).pow(1.0 / norm_type)

    return lp_pool


for _n, _average in ((1, avg_pool1d), (2, avg_pool2d), (3, avg_pool3d)):
    _public(**{f"lp_pool{_n}d": _lp_pool(_n, _average)})


def _unpool_size(input, kernel, stride, padding, output_size, n) -> list[int]:
    lead = input.dim() - n
    if len(kernel) != n:
        raise RuntimeError(f"kernel_size should have {n} elements, but it has {len(kernel)}")
    default = [(input.shape[lead + d] - 1) * stride[d] + kernel[d] - 2 * padding[d] for d in range(n)]
    if output_size is None:
        return default
    output_size = list(output_size)
    if len(output_size) == n + 2 or len(output_size) == n + 1 and lead == 1:
        output_size = output_size[-n:]
    if len(output_size) != n:
        raise ValueError(
            f"output_size should be a sequence containing {n} or {n + 2} elements, but it has a length of '{len(output_size)}'"
        )
    for d in range(n):
        low, high = default[d] - stride[d], default[d] + stride[d]
        if not low < output_size[d] < high:
            raise ValueError(f'invalid output_size "{output_size}" (dim {d} must be between {low} and {high})')
    return output_size


def _list(value, n):
    return list(value) if isinstance(value, (tuple, list)) else [value] * n


def _max_unpool(n):
    def max_unpool(
        input: Tensor,
        indices: Tensor,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        output_size: int | Sequence[int] | None = None,
    ) -> Tensor:
        """Zeros with the maxima at the places that ``return_indices`` gave."""
        kernel = _list(kernel_size, n)
        stride = kernel if stride is None else _list(stride, n)
        padding = _list(padding, n)
        size = _unpool_size(input, kernel, stride, padding, output_size, n)
        if n == 1:
            return _unpool[2](input.unsqueeze(-1), indices.unsqueeze(-1), [*size, 1]).squeeze(-1)
        if n == 2:
            return _unpool[2](input, indices, size)
        return _unpool[3](input, indices, size, stride, padding)

    return max_unpool


for _n in (1, 2, 3):
    _public(**{f"max_unpool{_n}d": _max_unpool(_n)})


def _fractional_max_pool(n):
    def with_indices(
        input: Tensor,
        kernel_size: int | Sequence[int],
        output_size: int | Sequence[int] | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """(maxima of windows at random places, their flat positions). Graham, arXiv:1412.6071."""
        if output_size is None and output_ratio is None:
            raise ValueError(f"fractional_max_pool{n}d requires specifying either an output_size or an output_ratio")
        if output_size is None:
            ratio = _list(output_ratio, n)
            output_size = [int(input.size(input.dim() - n + i) * ratio[i]) for i in range(n)]
        if _random_samples is None:
            batch = 1 if input.dim() == n + 1 else input.size(0)
            _random_samples = _rand(batch, input.size(-n - 1), n, dtype=input.dtype, device=input.device)
        return _fractional[n](input, _list(kernel_size, n), _list(output_size, n), _random_samples)

    def fractional(
        input: Tensor,
        kernel_size: int | Sequence[int],
        output_size: int | Sequence[int] | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> Any:
        """Maxima of windows at random places. Graham, arXiv:1412.6071."""
        out = with_indices(input, kernel_size, output_size, output_ratio, True, _random_samples)
        return tuple(out) if return_indices else out[0]

    return fractional, with_indices


for _n in (2, 3):
    _plain, _with = _fractional_max_pool(_n)
    _public(**{f"fractional_max_pool{_n}d": _plain, f"fractional_max_pool{_n}d_with_indices": _with})
