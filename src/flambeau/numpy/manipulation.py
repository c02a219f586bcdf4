"""Shapes, axes, joining and picking. What NumPy returns as a view is a view here."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..base.dtypes import bool_
from ..base.memory_format import contiguous_format
from ..core.operator import namespace
from ..core.tensor import Tensor
from . import reductions
from .layout import in_order, kept
from .promotion import as_tensor, cast, dtype_of, is_tensor, numpy_dtype, result_dtype
from .reductions import axes_of
from .table import always, implements, into

aten = namespace("aten")


def _sizes(args) -> list[int]:
    if len(args) == 1 and isinstance(args[0], (tuple, list)):
        args = args[0]
    return [operator.index(n) for n in args]


def _axis(a, ndim: int) -> int:
    a = operator.index(a)
    if not -ndim <= a < ndim:
        raise np.exceptions.AxisError(a, ndim)
    return a % ndim


@implements(np.reshape, gives_array=True, keeps_scalars=True)
def reshape(
    a: ArrayLike,
    /,
    shape: int | Sequence[int] | None = None,
    order: str | None = "C",
    *,
    newshape: int | Sequence[int] | None = None,
    copy: bool | None = None,
) -> Tensor:
    """np.reshape."""
    return _reshape_method(a, newshape if shape is None else shape, order=order, copy=copy)


def _reshape_method(a, *shape, order="C", copy=None):
    x, shape = as_tensor(a), _sizes(shape)
    if order not in ("C", "F", "A"):
        raise TypeError(f"np.reshape in memory order {order!r}")
    if copy is False:
        raise TypeError("np.reshape with copy=False")
    if order != "F" and in_order(x.ndim, order, x) == list(range(x.ndim)):
        out = x.reshape(shape)
    else:
        out = _backwards(_backwards(x).reshape(shape[::-1]))
    return out.clone() if copy else out


def _backwards(x):
    return aten.permute.default(x, list(range(x.ndim))[::-1])


implements(method="reshape", gives_array=True)(_reshape_method)


@implements(np.transpose, np.permute_dims, gives_array=True, keeps_scalars=True)
def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Tensor:
    """np.transpose."""
    x = as_tensor(a)
    return aten.permute.default(x, list(range(x.ndim))[::-1] if axes is None else axes_of(x, tuple(axes)))


implements(method="transpose", gives_array=True)(
    lambda a, *axes: transpose(a, None if axes in ((), (None,)) else _sizes(axes))
)
implements(attribute="T", gives_array=True)(lambda a: transpose(a))


@implements(np.matrix_transpose, np.linalg.matrix_transpose, attribute="mT", gives_array=True)
def matrix_transpose(x: ArrayLike, /) -> Tensor:
    """The last two axes exchanged."""
    return swapaxes(x, -1, -2)


@implements(np.swapaxes, method="swapaxes", gives_array=True)
def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Tensor:
    """np.swapaxes."""
    x = as_tensor(a)
    return aten.transpose.int(x, _axis(axis1, x.ndim), _axis(axis2, x.ndim))


@implements(np.moveaxis, gives_array=True, keeps_scalars=True)
def moveaxis(a: ArrayLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """np.moveaxis."""
    x = as_tensor(a)
    src, dst = axes_of(x, source), axes_of(x, destination)
    if len(src) != len(dst):
        raise ValueError("`source` and `destination` arguments must have the same number of elements")
    order = [n for n in range(x.ndim) if n not in src]
    for d, s in sorted(zip(dst, src)):
        order.insert(d, s)
    return aten.permute.default(x, order)


def _with_ndim(a):
    if not is_tensor(a):
        raise TypeError(f"{type(a).__name__}, of which NumPy asks for ndim")
    return a


@implements(np.rollaxis, gives_array=True)
def rollaxis(a: ArrayLike, axis: int, start: float = 0) -> Tensor:
    """np.rollaxis."""
    x = _with_ndim(a)
    axis = _axis(axis, x.ndim)
    start = _axis(start, x.ndim + 1) if start >= 0 else _axis(start, x.ndim)
    return moveaxis(x, axis, start - 1 if axis < start else start)


@implements(np.ravel, method="ravel")
def ravel(a: ArrayLike, order: str | None = "C") -> Tensor:
    """np.ravel: a copy of what doesn't lie together, though a reshape might view it."""
    x = as_tensor(a)
    return aten.permute.default(x, in_order(x.ndim, order, x)).contiguous().reshape(-1)


@implements(method="flatten")
def flatten(a: ArrayLike, order: str | None = "C") -> Tensor:
    """ndarray.flatten: a copy."""
    x = as_tensor(a)
    return aten.permute.default(x, in_order(x.ndim, order, x)).clone(memory_format=contiguous_format).reshape(-1)


@implements(np.lib.stride_tricks.sliding_window_view, gives_array=True, read_only=always)
def sliding_window_view(
    x: ArrayLike,
    window_shape: int | Sequence[int],
    axis: int | Sequence[int] | None = None,
    *,
    subok: bool = False,
    writeable: bool = False,
) -> Tensor:
    """np.lib.stride_tricks.sliding_window_view: a view with a dimension more for each window."""
    if not is_tensor(x) or subok or writeable:
        raise TypeError("np.sliding_window_view of what isn't an array, or to be written into")
    sizes = tuple(window_shape) if isinstance(window_shape, (tuple, list)) else (window_shape,)
    axes = tuple(range(x.ndim)) if axis is None else tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    if len(sizes) != len(axes) or any(type(n) is not int or n < 0 for n in sizes):
        raise ValueError("a window has a size for each axis, none below zero")
    for n, d in zip(sizes, [_axis(d, x.ndim) for d in axes]):
        if n > x.shape[d]:
            raise ValueError("window shape cannot be larger than input array shape")
        x = aten.unfold.default(x, d, n, 1)
    return x


@implements(np.expand_dims, gives_array=True)
def expand_dims(a: ArrayLike, axis: int | Sequence[int]) -> Tensor:
    """np.expand_dims."""
    x = as_tensor(a)
    axes = axis if isinstance(axis, (tuple, list)) else [axis]
    ndim = x.ndim + len(axes)
    places = sorted(_axis(d, ndim) for d in axes)
    if len(set(places)) < len(places):
        raise ValueError("repeated axis")
    for d in places:
        x = aten.unsqueeze.default(x, d)
    return x


@implements(np.squeeze, method="squeeze", gives_array=True, keeps_scalars=True)
def squeeze(a: ArrayLike, axis: int | Sequence[int] | None = None) -> Tensor:
    """np.squeeze."""
    x = as_tensor(a)
    if axis is None:
        return aten.squeeze.default(x) if 1 in x.shape else x
    axes = axes_of(x, axis)
    if any(x.shape[d] != 1 for d in axes):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    return aten.squeeze.dims(x, axes)


@implements(method="view", gives_array=True, keeps_scalars=True)
def view(a: ArrayLike, *dtype, **options) -> Tensor:
    """``a.view()``; one of another dtype or class is NumPy's to make."""
    if dtype or options:
        raise TypeError("a view of another dtype or class")
    return aten.alias.default(as_tensor(a))


@implements(np.broadcast_to, gives_array=True, read_only=always)
def broadcast_to(array: ArrayLike, shape: int | Sequence[int], subok: bool = False) -> Tensor:
    """np.broadcast_to."""
    sizes = _sizes((shape,)) if isinstance(shape, (tuple, list)) else [operator.index(shape)]
    if any(n < 0 for n in sizes):
        raise ValueError("all elements of broadcast shape must be non-negative")
    return as_tensor(array).expand(sizes)


@implements(np.broadcast_arrays, gives_array=True)
def broadcast_arrays(*args, subok: bool = False) -> tuple[Tensor, ...]:
    """np.broadcast_arrays, a tuple."""
    xs = [as_tensor(a) for a in args]
    shape = np.broadcast_shapes(*(tuple(x.shape) for x in xs))
    return tuple(x if tuple(x.shape) == shape else x.expand(list(shape)) for x in xs)


def _at_least(n, place):
    def one(a: ArrayLike) -> Tensor:
        x = as_tensor(a)
        while x.ndim < n:
            x = aten.unsqueeze.default(x, place(x.ndim))
        return x

    def at_least(*arys) -> Tensor | tuple[Tensor, ...]:
        return one(arys[0]) if len(arys) == 1 else tuple(map(one, arys))

    at_least.__name__ = at_least.__qualname__ = f"atleast_{n}d"
    return at_least


atleast_1d = implements(np.atleast_1d)(_at_least(1, lambda n: 0))
atleast_2d = implements(np.atleast_2d)(_at_least(2, lambda n: 0))
atleast_3d = implements(np.atleast_3d)(_at_least(3, lambda n: 2 if n == 2 else 0))

# ---- joining and splitting
# ---------------------------------------------------------------------------------------------------


def _rows(arrays):
    """The arrays as tensors; an array stands for the sequence of its rows."""
    return list(aten.unbind.int(arrays, 0)) if is_tensor(arrays) else [as_tensor(a) for a in arrays]


@implements(np.concatenate, np.concat)
def concatenate(
    arrays: Sequence[ArrayLike],
    /,
    axis: int | None = 0,
    out: Tensor | None = None,
    *,
    dtype: DTypeLike | None = None,
    casting: str = "same_kind",
) -> Tensor:
    """np.concatenate."""
    if out is not None and dtype is not None:
        raise TypeError("concatenate() only takes `out` or `dtype` as an argument, but both were provided.")
    xs = _rows(arrays)
    d = result_dtype(*xs) if dtype is None else numpy_dtype(dtype)
    if not all(np.can_cast(dtype_of(x), d, casting) for x in xs):
        raise TypeError(f"Cannot cast array data to {d!r} according to the rule '{casting}'")
    if axis is None:
        xs, axis = [x.reshape(-1) for x in xs], 0
    if any(x.ndim == 0 for x in xs):
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    if len({x.ndim for x in xs}) > 1:
        raise ValueError("all the input array dimensions except for the concatenation axis must match exactly")
    xs = [cast(x, d) for x in xs]
    joined = aten.cat.default(xs, _axis(axis, xs[0].ndim))
    return kept(joined, *xs) if out is None else into(out, joined, casting)


@implements(np.stack)
def stack(
    arrays: Sequence[ArrayLike],
    axis: int = 0,
    out: Tensor | None = None,
    *,
    dtype: DTypeLike | None = None,
    casting: str = "same_kind",
) -> Tensor:
    """np.stack."""
    xs = _rows(arrays)
    if not xs:
        raise ValueError("need at least one array to stack")
    if len({tuple(x.shape) for x in xs}) > 1:
        raise ValueError("all input arrays must have the same shape")
    at = _axis(axis, xs[0].ndim + 1)
    return concatenate([aten.unsqueeze.default(x, at) for x in xs], at, out, dtype=dtype, casting=casting)


@implements(np.vstack)
def vstack(tup: Sequence[ArrayLike], *, dtype: DTypeLike | None = None, casting: str = "same_kind") -> Tensor:
    """np.vstack."""
    return concatenate([atleast_2d(x) for x in _rows(tup)], 0, dtype=dtype, casting=casting)


@implements(np.hstack)
def hstack(tup: Sequence[ArrayLike], *, dtype: DTypeLike | None = None, casting: str = "same_kind") -> Tensor:
    """np.hstack."""
    xs = [atleast_1d(x) for x in _rows(tup)]
    if not xs:
        raise ValueError("need at least one array to concatenate")
    return concatenate(xs, 0 if xs[0].ndim == 1 else 1, dtype=dtype, casting=casting)


@implements(np.dstack)
def dstack(tup: Sequence[ArrayLike]) -> Tensor:
    """np.dstack."""
    return concatenate([atleast_3d(x) for x in _rows(tup)], 2)


@implements(np.column_stack)
def column_stack(tup: Sequence[ArrayLike]) -> Tensor:
    """np.column_stack."""
    return concatenate([x if x.ndim > 1 else x.reshape(-1, 1) for x in _rows(tup)], 1)


@implements(np.array_split)
def array_split(ary: ArrayLike, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """np.array_split: views, in a list."""
    x = as_tensor(ary)
    d = _axis(axis, x.ndim)
    n = x.shape[d]
    if isinstance(indices_or_sections, (tuple, list)):
        ends = [0, *indices_or_sections, n]
        bounds = [slice(a, b).indices(n)[:2] for a, b in zip(ends[:-1], ends[1:])]
    else:
        k = operator.index(indices_or_sections)
        if k <= 0:
            raise ValueError("number sections must be larger than 0.")
        longer, cuts = n % k, [0]
        for i in range(k):
            cuts.append(cuts[-1] + n // k + (1 if i < longer else 0))
        bounds = list(zip(cuts[:-1], cuts[1:]))
    return [aten.slice.Tensor(x, d, a, b) for a, b in bounds]


@implements(np.split)
def split(ary: ArrayLike, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """np.split: array_split into equal parts."""
    x = as_tensor(ary)
    if not isinstance(indices_or_sections, (tuple, list)) and x.shape[_axis(axis, x.ndim)] % operator.index(
        indices_or_sections
    ):
        raise ValueError("array split does not result in an equal division")
    return array_split(x, indices_or_sections, axis)


@implements(np.vsplit)
def vsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int]) -> list[Tensor]:
    x = as_tensor(ary)
    if x.ndim < 2:
        raise ValueError("vsplit only works on arrays of 2 or more dimensions")
    return split(x, indices_or_sections, 0)


implements(np.hsplit)(
    lambda ary, indices_or_sections: split(ary, indices_or_sections, 1 if as_tensor(ary).ndim > 1 else 0)
)


@implements(np.unstack)
def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """np.unstack, a tuple of views."""
    t = _with_ndim(x)
    return tuple(aten.unbind.int(t, _axis(axis, t.ndim)))


@implements(np.tile)
def tile(A: ArrayLike, reps: int | Sequence[int]) -> Tensor:
    """np.tile."""
    x = as_tensor(A)
    reps = [operator.index(r) for r in reps] if isinstance(reps, (tuple, list)) else [operator.index(reps)]
    n = max(x.ndim, len(reps))
    x, reps = x.reshape([1] * (n - x.ndim) + list(x.shape)), [1] * (n - len(reps)) + reps
    shape = list(x.shape)
    wide = x.reshape([v for s in shape for v in (1, s)]).expand([v for r, s in zip(reps, shape) for v in (r, s)])
    return wide.clone(memory_format=contiguous_format).reshape([r * s for r, s in zip(reps, shape)])


@implements(np.repeat, method="repeat")
def repeat(a: ArrayLike, repeats: int | ArrayLike, axis: int | None = None) -> Tensor:
    """np.repeat by a number."""
    if not isinstance(repeats, (int, np.integer)) or repeats < 0:
        raise TypeError("np.repeat by different or negative numbers")
    x = as_tensor(a)
    if axis is None:
        x, axis = x.reshape(-1), 0
    d = _axis(axis, x.ndim)
    shape = list(x.shape)
    wide = aten.unsqueeze.default(x, d + 1).expand([*shape[: d + 1], int(repeats), *shape[d + 1 :]])
    return wide.clone(memory_format=contiguous_format).reshape([*shape[:d], shape[d] * int(repeats), *shape[d + 1 :]])


@implements(np.roll, gives_array=True)
def roll(a: ArrayLike, shift: int | Sequence[int], axis: int | Sequence[int] | None = None) -> Tensor:
    """np.roll."""
    x = as_tensor(a)
    if axis is None:
        return roll(x.reshape(-1), shift, 0).reshape(x.shape)
    shifts = shift if isinstance(shift, (tuple, list)) else [shift]
    axes = axis if isinstance(axis, (tuple, list)) else [axis]
    if len(shifts) == 1:
        shifts = list(shifts) * len(axes)
    elif len(axes) == 1:
        axes = list(axes) * len(shifts)
    out = x
    for s, d in zip(shifts, axes):
        d = _axis(d, x.ndim)
        n = x.shape[d]
        k = operator.index(s) % n if n else 0
        if k:
            out = aten.cat.default([aten.slice.Tensor(out, d, n - k, n), aten.slice.Tensor(out, d, 0, n - k)], d)
    return out.clone() if out is x else kept(out, x)


# ---- diagonals and triangles
# -------------------------------------------------------------------------------------------------


@implements(np.diagonal, method="diagonal", read_only=always)
def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """np.diagonal."""
    x = as_tensor(a)
    return aten.diagonal.default(x, operator.index(offset), _axis(axis1, x.ndim), _axis(axis2, x.ndim))


@implements(np.linalg.diagonal, read_only=always)
def matrix_diagonal(x: ArrayLike, /, *, offset: int = 0) -> Tensor:
    """np.linalg.diagonal: of the last two axes."""
    return diagonal(x, offset, -2, -1)


@implements(np.diag, read_only=lambda v, *_: is_tensor(v) and v.ndim == 2)
def diag(v: ArrayLike, k: int = 0) -> Tensor:
    """np.diag: the diagonal of a matrix, or the matrix with this diagonal."""
    x = as_tensor(v)
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ValueError("Input must be 1- or 2-d.")
    n, k = x.shape[0], operator.index(k)
    size = n + abs(k)
    difference = aten.sub(aten.arange(size), aten.unsqueeze(aten.arange(size), 1))
    column = aten.cat.default(
        [aten.zeros.default([max(-k, 0)], dtype=x.dtype), x, aten.zeros.default([max(k, 0)], dtype=x.dtype)], 0
    )
    return aten.where(aten.eq(difference, k), aten.unsqueeze(column, 1), aten.zeros.default([], dtype=x.dtype))


@implements(np.trace, method="trace")
def trace(
    a: ArrayLike,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """np.trace."""
    return reductions.sum(diagonal(a, offset, axis1, axis2), -1, dtype, out)


def _triangle(packet, name):
    def triangle(m: ArrayLike, k: int = 0) -> Tensor:
        x = as_tensor(m)
        if x.ndim < 2:
            raise TypeError(f"np.{name} of a vector")
        if x.is_contiguous():
            return packet.default(x, operator.index(k))
        mask = packet.default(aten.ones.default(list(x.shape[-2:]), dtype=bool_), operator.index(k))
        return kept(aten.where(mask, x, aten.zeros.default([], dtype=x.dtype)), mask, x)

    triangle.__name__ = triangle.__qualname__ = name
    return triangle


implements(np.tril)(_triangle(aten.tril, "tril"))
implements(np.triu)(_triangle(aten.triu, "triu"))


@implements(np.meshgrid)
def meshgrid(*xi, copy: bool | None = True, sparse: bool = False, indexing: str = "xy") -> tuple[Tensor, ...]:
    """np.meshgrid of vectors, a tuple."""
    xs = [as_tensor(x).reshape(-1) for x in xi]
    n = len(xs)
    place = list(range(n))
    if indexing == "xy" and n > 1:
        place[:2] = [1, 0]
    elif indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    shape = [0] * n
    for x, p in zip(xs, place):
        shape[p] = x.shape[0]
    out = [x.reshape([-1 if q == p else 1 for q in range(n)]) for x, p in zip(xs, place)]
    if not sparse:
        out = [x.expand(shape) for x in out]
    return tuple(x.clone(memory_format=contiguous_format) if copy else x for x in out)


# ---- picking
# -----------------------------------------------------------------------------------------------------------------


@implements(np.take, method="take")
def take(
    a: ArrayLike, indices: ArrayLike, axis: int | None = None, out: Tensor | None = None, mode: str = "raise"
) -> Tensor:
    """np.take with known indices (others may be out of bounds, which NumPy checks first)."""
    if mode != "raise" or is_tensor(indices) and axis is None:
        raise TypeError("np.take with mode=")
    x = as_tensor(a)
    if axis is None:
        x, axis = x.reshape(-1), 0
    d = _axis(axis, x.ndim)
    if isinstance(indices, (int, np.integer)):
        return into(out, aten.select.int(x, d, int(indices)).clone())
    i = as_tensor(indices)
    if dtype_of(i).kind not in "iu":
        raise TypeError("np.take by indices that aren't integers")
    return into(out, aten.index.Tensor(x, [None] * d + [cast(i, np.int64)]))


@implements(np.sort)
def sort(
    a: ArrayLike,
    axis: int | None = -1,
    kind: str | None = None,
    order: str | None = None,
    *,
    stable: bool | None = None,
) -> Tensor:
    """np.sort of real numbers."""
    x = as_tensor(a)
    if order is not None or dtype_of(x).char not in "?bhilqfd":
        raise TypeError("np.sort of fields, or of complex or half precision numbers")
    if kind not in (None, "quicksort", "heapsort", "mergesort", "stable"):
        raise TypeError(f"np.sort of kind {kind!r}")
    if axis is None:
        x, axis = x.reshape(-1), 0
    if kind is not None and stable is not None:
        raise TypeError("np.sort with kind= and stable=")
    return kept(aten.sort.default(x, _axis(axis, x.ndim), False)[0], x)
