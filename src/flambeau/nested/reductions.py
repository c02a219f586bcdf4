"""Reductions of nested tensors: over dimensions of the values, over the sequences (each on its own), or over batch and sequences together."""

from __future__ import annotations

from flambeau import _C
from flambeau.base import dtypes
from flambeau.core.operator import namespace

from .around import wrapped
from .functions import elementwise, is_nested, lengths_of, like, padded, rule

aten = namespace("aten")


def _least(dtype):
    return (
        dtypes.finfo(dtype).min if dtype.category >= 2 else False if dtype is dtypes.bool_ else dtypes.iinfo(dtype).min
    )


def _greatest(dtype):
    return (
        dtypes.finfo(dtype).max if dtype.category >= 2 else True if dtype is dtypes.bool_ else dtypes.iinfo(dtype).max
    )


# What stands behind the end of a sequence and changes nothing.
FILL = {
    "sum": lambda dtype: 0,
    "mean": lambda dtype: 0,
    "prod": lambda dtype: 1,
    "any": lambda dtype: False,
    "all": lambda dtype: True,
    "amax": _least,
    "max": _least,
    "argmax": _least,
    "amin": _greatest,
    "min": _greatest,
    "argmin": _greatest,
}


@rule(*FILL)
def reduce(func, t, dim=None, keepdim=False, **kwargs):
    name = func.__name__
    if is_nested(dim) or isinstance(dim, _C.TensorBase) or not is_nested(t):  # of two tensors
        return elementwise(func, t, dim)
    dim = kwargs.pop("axis", dim)
    keepdim = kwargs.pop("keepdims", keepdim)
    several = isinstance(dim, (tuple, list))
    dims = [wrapped(t, d) for d in (dim if several else [] if dim is None else [dim])]
    if not dims:
        return func(_all_values(t), **kwargs)
    r = t._ragged_idx
    others = sorted(d for d in dims if d not in (0, r))
    if 0 in dims and r not in dims:
        raise RuntimeError(
            f"{name}(): reducing along the batch dimension but not the ragged dimension is not supported for nested tensors"
        )
    if r in dims and others and 0 not in dims:
        raise RuntimeError(
            f"{name}(): reducing along a ragged and non-batch dimension is not supported for nested tensors"
        )
    if r in dims and t._lengths is not None:
        raise RuntimeError(
            f"{name}(): reducing across the ragged dimension is not supported for non-contiguous nested tensors with holes"
        )
    if r not in dims:
        return _inside(func, t, [d - 1 for d in others] if several else others[0] - 1, keepdim, kwargs)
    if 0 in dims:
        out = func(t._values, [d - 1 for d in dims if d], keepdim, **kwargs)
        return out.unsqueeze(0) if keepdim else out
    return _each_sequence(func, t, several, keepdim, kwargs)


def _all_values(t):
    """The elements, without those of holes."""
    if t._lengths is None:
        return t._values
    return t.contiguous()._values


def _inside(func, t, dim, keepdim, kwargs):
    """Over dimensions of the values."""
    out = func(t._values, dim, keepdim, **kwargs)
    gone = 0 if keepdim else sum(d + 1 < t._ragged_idx for d in (dim if isinstance(dim, list) else [dim]))
    if isinstance(out, tuple):
        return type(out)(*[like(t, x, t._ragged_idx - gone) for x in out])
    return like(t, out, t._ragged_idx - gone)


def _each_sequence(func, t, several, keepdim, kwargs):
    """Over the elements of each sequence: (B, ...) dense. ``mean`` of none is nan."""
    name, r = func.__name__, t._ragged_idx
    x = padded(t, FILL[name](t.dtype)).movedim(1, r)
    if not x.shape[r]:
        x = padded(t, FILL[name](t.dtype), 1).movedim(1, r)
    dim = [r] if several else r
    if name != "mean":
        return func(x, dim, keepdim, **kwargs)
    counts = lengths_of(t).view(-1, *[1] * (x.dim() - 2 + keepdim))
    total = x.sum(dim, keepdim, **kwargs)
    return total / counts.to(total.dtype)


@rule("std", "var")
def refused(func, t, *args, **kwargs):
    raise NotImplementedError(f"{func.__name__}: nested tensors of the jagged layout have no rule for it")
