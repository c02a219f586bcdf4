"""``torch.masked``: reductions and normalisations over the elements that a mask keeps. Masked-out elements count as the operation's identity."""

from __future__ import annotations

import math

from ..base import dtypes
from ..core.operator import namespace
from ..core.overrides import wrap_function

__all__ = [
    "amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean", "median", "norm", "normalize",
    "prod", "softmax", "softmin", "std", "sum", "var",
]  # fmt: skip

aten = namespace("aten")


def _spread(input, mask):
    """The mask in bool, as wide as the input. IndexError for a mask of more dimensions, RuntimeError for other sizes."""
    if len(mask.shape) > input.dim():
        raise IndexError("_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)")
    return aten.expand(mask if mask.dtype is dtypes.bool_ else mask.to(dtypes.bool_), list(input.shape))


def _prepared(input, mask, dtype, fill):
    """The input in ``dtype`` with ``fill`` where the mask says no."""
    x = input if dtype is None else input.to(dtype)
    return x if mask is None else aten.where(_spread(input, mask), x, aten.full_like(x, fill))


def _kept(input, mask):
    return aten.ones_like(input, dtype=dtypes.bool_) if mask is None else _spread(input, mask)


def _dims(input, dim):
    """The dimensions to reduce, from 0 up: all for None and the empty tuple. RuntimeError for one named twice."""
    rank, found = max(input.dim(), 1), []
    if dim is None or (isinstance(dim, tuple | list) and not len(dim)):
        return list(range(input.dim()))
    for d in (dim,) if isinstance(dim, int) else dim:
        if not -rank <= d < rank:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {d})")
        if d % rank in found:
            raise RuntimeError(f"dim={d % rank} appears multiple times in the list of dims")
        found.append(d % rank)
    return found


def _line(input, dim):
    """The one dimension that elements are in order along: the lowest of several, as in PyTorch. IndexError for an empty list."""
    if isinstance(dim, list) and not dim:
        raise IndexError("tuple index out of range")
    return min(_dims(input, dim), default=0)


def _lowest(x, sign):
    if x.dtype.category >= 2:
        return sign * math.inf
    if x.dtype is dtypes.bool_:
        return sign > 0
    info = dtypes.iinfo(x.dtype)
    return info.max if sign > 0 else info.min


def _sum_dtype(input, dtype):
    return dtype if dtype is not None else dtypes.int64 if input.dtype.category < 2 else input.dtype


def sum(input, dim=None, *, keepdim=False, dtype=None, mask=None):  # noqa: A001
    """Sum of the kept elements along ``dim`` (all when None); 0 where none is kept."""
    x = _prepared(input, mask, _sum_dtype(input, dtype), 0)
    return aten.sum(x, _dims(input, dim), bool(keepdim))


def prod(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Product of the kept elements; 1 where none is kept."""
    x = _prepared(input, mask, _sum_dtype(input, dtype), 1)
    for d in sorted(_dims(input, dim), reverse=True):
        x = aten.prod(x, d, bool(keepdim)) if input.dim() else x
    return x


def cumsum(input, dim, *, dtype=None, mask=None):
    """Running sums of the kept elements."""
    dtype, line = input.dtype if dtype is None else dtype, _line(input, dim)
    return aten.cumsum(_prepared(input, mask, dtype, 0), line, dtype=dtype)


def cumprod(input, dim, *, dtype=None, mask=None):
    """Running products of the kept elements."""
    dtype, line = input.dtype if dtype is None else dtype, _line(input, dim)
    return aten.cumprod(_prepared(input, mask, dtype, 1), line, dtype=dtype)


def amax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Maximum of the kept elements; the lowest number of the dtype where none is kept."""
    x = input if dtype is None else input.to(dtype)
    return aten.amax(_prepared(x, mask, None, _lowest(x, -1)), _dims(input, dim), bool(keepdim))


def amin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Minimum of the kept elements; the highest number of the dtype where none is kept."""
    x = input if dtype is None else input.to(dtype)
    return aten.amin(_prepared(x, mask, None, _lowest(x, 1)), _dims(input, dim), bool(keepdim))


def argmax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Position of the maximum of the kept elements, in ``dtype``: that of the input unless given, as in PyTorch."""
    x = input if dtype is None else input.to(dtype)
    return aten.argmax(_prepared(x, mask, None, _lowest(x, -1)), dim, bool(keepdim)).to(x.dtype)


def argmin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Position of the minimum of the kept elements, in ``dtype``: that of the input unless given, as in PyTorch."""
    x = input if dtype is None else input.to(dtype)
    return aten.argmin(_prepared(x, mask, None, _lowest(x, 1)), dim, bool(keepdim)).to(x.dtype)


def mean(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Mean of the kept elements; nan where none is kept. ValueError for integers without a ``dtype``."""
    if (dtype or input.dtype).category < 2:
        raise ValueError(
            "mean(): Could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: "
            f"{dtype or input.dtype}"
        )
    if mask is None:
        return aten.mean(input if dtype is None else input.to(dtype), _dims(input, dim), bool(keepdim))
    kept, dims = _kept(input, mask), _dims(input, dim)
    count = aten.sum(kept.to(dtypes.int64), dims, bool(keepdim))
    total = sum(input, dims, keepdim=keepdim, dtype=dtype, mask=mask)
    return aten.div(total, count)


def median(input, dim=-1, *, keepdim=False, dtype=None, mask=None):
    """Lower median of the kept elements; nan where none is kept."""
    x, line = input if dtype is None else input.to(dtype), _line(input, dim)
    if input.dim() == 0:
        return x.clone() if mask is None else _prepared(x, mask, None, math.nan)
    if mask is None:
        return aten.median(x, line, bool(keepdim))[0]
    return aten.nanmedian(_prepared(x, mask, None, math.nan), line, bool(keepdim))[0]


def logsumexp(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """log of the sum of the exponentials of the kept elements."""
    whole = input.dtype.category < 2 and dtype is None
    x = _prepared(input, mask, dtypes.get_default_dtype() if whole else dtype, -math.inf)
    out = aten.logsumexp(x, _dims(input, dim), keepdim)
    return out.to(input.dtype) if whole else out  # integers for integers, as in PyTorch


def logaddexp(input, other, *, dtype=None, input_mask=None, other_mask=None):
    """log(exp(input) + exp(other)), what is masked out counting as nothing."""
    return aten.logaddexp(
        _prepared(input, input_mask, dtype, -math.inf), _prepared(other, other_mask, dtype, -math.inf)
    )


def norm(input, ord=2.0, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Vector norm of the kept elements."""
    if isinstance(ord, str):
        raise TypeError("linalg_vector_norm(): argument 'ord' (position 2) must be Number, not str")
    order = 2.0 if ord is None else float(ord)
    fill = math.inf if order < 0 else 0
    if order == -math.inf or order == math.inf:
        fill = 0 if order > 0 else math.inf
    return aten.linalg_vector_norm(_prepared(input, mask, dtype, fill), order, _dims(input, dim), bool(keepdim))


def _std_var(input, dim, unbiased, correction, keepdim, dtype, mask, root):
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    if correction is None:
        correction = int(unbiased is not False)
    x = input if dtype is None else input.to(dtype)
    x = x if x.dtype.category >= 2 else x.to(dtypes.get_default_dtype())
    kept, dims = _kept(x, mask), _dims(input, dim)
    count = aten.sum(kept.to(dtypes.int64), dims, True)
    centre = aten.div(sum(x, dims, keepdim=True, mask=mask), count)
    gap = aten.sub(x, centre)
    square = aten.mul(gap, aten.conj_physical(gap)) if x.dtype.is_complex else aten.mul(gap, gap)
    total = sum(aten.real(square) if x.dtype.is_complex else square, dims, keepdim=keepdim, mask=mask)
    if not keepdim:
        count = aten.reshape(count, list(total.shape))
    out = aten.div(total, aten.clamp(aten.sub(count, correction), 0))
    return (aten.sqrt(out) if root else out).to(x.dtype)  # complex numbers for complex ones, as in PyTorch


def var(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """Variance of the kept elements: their squares over their number less ``correction``, or 1 unless ``unbiased`` is False.

    AssertionError where both are given."""
    return _std_var(input, dim, unbiased, correction, keepdim, dtype, mask, False)


def std(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """Standard deviation of the kept elements, the root of :func:`var`."""
    return _std_var(input, dim, unbiased, correction, keepdim, dtype, mask, True)


def softmax(input, dim, *, dtype=None, mask=None):
    """Softmax over the kept elements along ``dim``; nan where none is kept."""
    line = _line(input, dim)
    return aten.softmax(_prepared(input, mask, dtype, -math.inf), line)


def log_softmax(input, dim, *, dtype=None, mask=None):
    """log of :func:`softmax`."""
    line = _line(input, dim)
    return aten.log_softmax(_prepared(input, mask, dtype, -math.inf), line)


def softmin(input, dim, *, dtype=None, mask=None):
    """:func:`softmax` of the negated input."""
    line = _line(input, dim)
    return aten.softmax(aten.neg(_prepared(input, mask, dtype, math.inf)), line)


def normalize(input, ord, dim, *, eps=1e-12, dtype=None, mask=None):
    """The kept elements over their norm along ``dim``, at least ``eps``; 0 elsewhere."""
    x = input if dtype is None else input.to(dtype)
    length = aten.clamp(norm(x, ord, dim, keepdim=True, mask=mask), eps)
    return aten.div(_prepared(x, mask, None, 0), length)


globals().update({name: wrap_function(globals()[name]) for name in __all__})
