"""``torch.masked``: reductions and normalisations over the elements that a mask keeps. Masked-out elements count as the operation's identity."""

from __future__ import annotations

import math

from .. import _C
from ..base import dtypes
from ..core.operator import namespace
from ..core.overrides import wrap_function

__all__ = [
    "amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean", "median", "norm", "normalize",
    "prod", "softmax", "softmin", "std", "sum", "var",
]  # fmt: skip

aten = namespace("aten")


def _prepared(input, mask, dtype, fill):
    """The input in ``dtype`` with ``fill`` where the mask says no."""
    x = input if dtype is None else input.to(dtype)
    if mask is None:
        return x
    if not isinstance(mask, _C.TensorBase) or mask.dtype is not dtypes.bool_:
        mask = mask.to(dtypes.bool_)
    return aten.where(mask, x, aten.full_like(x, fill))


def _kept(input, mask):
    if mask is None:
        return aten.ones_like(input, dtype=dtypes.bool_)
    return aten.expand(mask.to(dtypes.bool_), list(aten.broadcast_tensors([input, mask])[0].shape))


def _dims(input, dim):
    if dim is None or (isinstance(dim, tuple | list) and not len(dim)):
        return list(range(input.dim()))
    return [dim] if isinstance(dim, int) else list(dim)


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
    return aten.sum(_prepared(input, mask, _sum_dtype(input, dtype), 0), _dims(input, dim), keepdim)


def prod(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Product of the kept elements; 1 where none is kept."""
    x = _prepared(input, mask, _sum_dtype(input, dtype), 1)
    for d in sorted((d % max(x.dim(), 1) for d in _dims(input, dim)), reverse=True):
        x = aten.prod(x, d, keepdim) if input.dim() else x
    return x


def cumsum(input, dim, *, dtype=None, mask=None):
    """Running sums of the kept elements."""
    dtype = input.dtype if dtype is None else dtype
    return aten.cumsum(_prepared(input, mask, dtype, 0), dim, dtype=dtype)


def cumprod(input, dim, *, dtype=None, mask=None):
    """Running products of the kept elements."""
    dtype = input.dtype if dtype is None else dtype
    return aten.cumprod(_prepared(input, mask, dtype, 1), dim, dtype=dtype)


def amax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Maximum of the kept elements; the lowest number of the dtype where none is kept."""
    x = input if dtype is None else input.to(dtype)
    return aten.amax(_prepared(x, mask, None, _lowest(x, -1)), _dims(input, dim), keepdim)


def amin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Minimum of the kept elements; the highest number of the dtype where none is kept."""
    x = input if dtype is None else input.to(dtype)
    return aten.amin(_prepared(x, mask, None, _lowest(x, 1)), _dims(input, dim), keepdim)


def argmax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Position of the maximum of the kept elements, in ``dtype``: that of the input unless given, as in PyTorch."""
    x = input if dtype is None else input.to(dtype)
    return aten.argmax(_prepared(x, mask, None, _lowest(x, -1)), dim, keepdim).to(x.dtype)


def argmin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Position of the minimum of the kept elements, in ``dtype``: that of the input unless given, as in PyTorch."""
    x = input if dtype is None else input.to(dtype)
    return aten.argmin(_prepared(x, mask, None, _lowest(x, 1)), dim, keepdim).to(x.dtype)


def mean(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Mean of the kept elements; nan where none is kept."""
    dims = _dims(input, dim)
    if mask is None:
        return aten.mean(input if dtype is None else input.to(dtype), dims, keepdim)
    count = aten.sum(_kept(input, mask).to(dtypes.int64), dims, keepdim)
    total = sum(input, dims, keepdim=keepdim, dtype=dtype, mask=mask)
    return aten.div(total, count)


def median(input, dim=-1, *, keepdim=False, dtype=None, mask=None):
    """Lower median of the kept elements; nan where none is kept."""
    x = input if dtype is None else input.to(dtype)
    if input.dim() == 0:
        return x.clone() if mask is None else _prepared(x, mask, None, math.nan)
    if mask is None:
        return aten.median(x, dim, keepdim)[0]
    return aten.nanmedian(_prepared(x, mask, None, math.nan), dim, keepdim)[0]


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
    order = 2.0 if ord is None else float(ord)
    fill = math.inf if order < 0 else 0
    if order == -math.inf or order == math.inf:
        fill = 0 if order > 0 else math.inf
    return aten.linalg_vector_norm(_prepared(input, mask, dtype, fill), order, _dims(input, dim), keepdim)


def _std_var(input, dim, unbiased, keepdim, dtype, mask, root):
    correction = 1 if unbiased else 0
    x = input if dtype is None else input.to(dtype)
    x = x if x.dtype.category >= 2 else x.to(dtypes.get_default_dtype())
    dims = _dims(input, dim)
    kept = _kept(x, mask)
    count = aten.sum(kept.to(dtypes.int64), dims, True)
    centre = aten.div(sum(x, dims, keepdim=True, mask=mask), count)
    gap = aten.sub(x, centre)
    square = aten.mul(gap, aten.conj_physical(gap)) if x.dtype.is_complex else aten.mul(gap, gap)
    total = sum(aten.real(square) if x.dtype.is_complex else square, dims, keepdim=keepdim, mask=mask)
    if not keepdim:
        count = aten.reshape(count, list(total.shape))
    out = aten.div(total, aten.clamp(aten.sub(count, correction), 0))
    return (aten.sqrt(out) if root else out).to(x.dtype)  # complex numbers for complex ones, as in PyTorch


def var(input, dim=None, unbiased=None, *, keepdim=False, dtype=None, mask=None):
    """Variance of the kept elements, unbiased unless told otherwise."""
    return _std_var(input, dim, unbiased is not False, keepdim, dtype, mask, False)


def std(input, dim=None, unbiased=None, *, keepdim=False, dtype=None, mask=None):
    """Standard deviation of the kept elements, unbiased unless told otherwise."""
    return _std_var(input, dim, unbiased is not False, keepdim, dtype, mask, True)


def softmax(input, dim, *, dtype=None, mask=None):
    """Softmax over the kept elements along ``dim``; nan where none is kept."""
    return aten.softmax(_prepared(input, mask, dtype, -math.inf), dim)


def log_softmax(input, dim, *, dtype=None, mask=None):
    """log of :func:`softmax`."""
    return aten.log_softmax(_prepared(input, mask, dtype, -math.inf), dim)


def softmin(input, dim, *, dtype=None, mask=None):
    """:func:`softmax` of the negated input."""
    return aten.softmax(aten.neg(_prepared(input, mask, dtype, math.inf)), dim)


def normalize(input, ord, dim, *, eps=1e-12, dtype=None, mask=None):
    """The kept elements over their norm along ``dim``, at least ``eps``; 0 elsewhere."""
    x = input if dtype is None else input.to(dtype)
    length = aten.clamp(norm(x, ord, dim, keepdim=True, mask=mask), eps)
    return aten.div(_prepared(x, mask, None, 0), length)


globals().update({name: wrap_function(globals()[name]) for name in __all__})
