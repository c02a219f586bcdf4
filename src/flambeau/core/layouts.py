"""The memory order of results: which operands decide it, and arrays that have it. One truth for shape rules, kernels, call_plans, lowering."""

from __future__ import annotations

import functools

import numpy as np

from .. import _C
from ..base.memory_format import MemoryFormat, contiguous_format, format_strides, preserve_format, suggested_format
from ..base.records import replace
from ..base.shapes import (
    are_products,
    contiguous_strides,
    elementwise_strides,
    is_contiguous,
    preserved_strides,
    same_shape,
)
from ..base.symint import SymBool, SymFloat, SymInt, is_symbolic
from .operator import OpOverload

__all__ = [
    "ALIASED",
    "by_columns",
    "column_strides",
    "copy_strides",
    "dense_like",
    "empty_strided",
    "common_image_strides",
    "image_format",
    "image_strides",
    "in_order",
    "made_strides",
    "operands_of",
    "overlaps_itself",
    "pointwise_strides",
    "refuse_overlap",
    "result_strides",
    "strides_of",
    "takes_format",
]

_NUMBERS = (int, float, complex, SymInt, SymFloat, SymBool)
OVERLAPPING = "overlapping_writes"  # tag of an operator that may write to a tensor whose elements share memory (fill_)
ALIASED = "aliased_operands"  # tag of an operator whose operands may lie in the memory that it writes: they are read before (fill_)


def overlaps_itself(shape, strides) -> bool:
    """Whether a dimension is expanded. Overlaps that strides alone hide (``unfold``) pass, as in PyTorch."""
    for n, s in zip(shape, strides):
        if isinstance(s, int) and s == 0 and n > 1:
            return 0 not in shape
    return False


def refuse_overlap(op: OpOverload, shape, strides) -> None:
    """RuntimeError when ``op``, an in-place or out= form, may not write to memory laid out so."""
    if overlaps_itself(shape, strides) and OVERLAPPING not in op.definition.functional.tags:
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the "
            "tensor before performing the operation."
        )


@functools.cache
def pointwise_strides(op: OpOverload):
    """``f(shape, args)``: strides of the result of a pointwise operator of all its arguments (tensors, their metas, numbers)."""
    layout, arguments = op.definition.layout, op._schema.arguments
    at = {a.name: i for i, a in enumerate(arguments)}
    first = next(i for i, a in enumerate(arguments) if a.is_tensor)
    format_at = next((i for i, a in enumerate(arguments) if a.type == "MemoryFormat"), None)
    if format_at is not None:
        return lambda shape, args: copy_strides(shape, strides_of(args[first]), args[format_at])
    if isinstance(layout, str):
        like = at[layout]
        return lambda shape, args: (
            dense_like(shape, strides_of(args[like]))
            if same_shape(args[like].shape, shape)
            else contiguous_strides(shape)
        )
    positions = (
        tuple(i for i, a in enumerate(arguments) if a.is_tensor)
        if layout is None
        else tuple(at[n] for n in layout if n)
    )
    number = [((), ())] if layout is not None and None in layout else []
    return lambda shape, args: result_strides(shape, operands_of(args, positions) + number)


def operands_of(args, positions) -> list:
    """(shape, strides) of the arguments at ``positions`` that decide the order of an elementwise result. A number is a tensor without dimensions."""
    return [
        ((), ()) if isinstance(x, _NUMBERS) else (x.shape, strides_of(x))
        for x in (args[i] for i in positions)
        if x is not None
    ]


def takes_format(op: OpOverload) -> bool:
    """Whether the last argument of a factory says the memory format of its result."""
    return op._schema.arguments[-1].type == "MemoryFormat"


def made_strides(shape, args) -> tuple[int, ...]:
    """Strides of the result of a factory that takes a memory format: ``empty``, or one like its first argument."""
    like, format = args[0], args[-1]
    if isinstance(like, (list, tuple)):
        return format_strides(shape, contiguous_format if format is None else format)
    return copy_strides(shape, strides_of(like), format)


def result_strides(shape, operands) -> tuple[int, ...]:
    """Strides of an elementwise result. ``operands``: (shape, strides) of the arguments that decide; without any it is row-major."""
    return elementwise_strides(shape, operands) if operands else contiguous_strides(shape)


def dense_like(shape, strides) -> tuple[int, ...]:
    """Strides of ``empty_like``: those of a dense tensor, else the dimension order without the gaps."""
    return preserved_strides(shape, strides)


def copy_strides(shape, strides, format=None) -> tuple[int, ...]:
    """Strides of a copy in a memory format; without one, or with ``preserve_format``, as ``empty_like``."""
    return preserved_strides(shape, strides) if format in (None, preserve_format) else format_strides(shape, format)


def image_format(shape, strides, line=False) -> MemoryFormat:
    """The memory format of images (N, C, ...) that strides suggest. ``line``: (N, C, L) are images of one row, and can be channels-last too."""
    if is_symbolic((*shape, *strides)) and are_products(shape, strides):
        return contiguous_format
    if line and len(shape) == 3:
        shape, strides = (*shape[:2], 1, shape[2]), (*strides[:2], shape[2] * strides[2], strides[2])
    return suggested_format(shape, strides)


def image_strides(shape, format: MemoryFormat) -> tuple[int, ...]:
    """Strides of images, or of (N, C, L), in a format that :func:`image_format` told."""
    if format.rank is not None and len(shape) == 3:
        n, _, h, w = format_strides((*shape[:2], 1, shape[2]), format)
        return n, 1, w
    return format_strides(shape, format)


def common_image_strides(shape, *images) -> tuple[int, ...]:
    """Strides of a result that is channels-last when one of ``images`` (tensors, their metas, arrays) is, else row-major."""
    for t in images:
        format = image_format(tuple(t.shape), strides_of(t), True)
        if format is not contiguous_format:
            return image_strides(shape, format)
    return contiguous_strides(shape)


def column_strides(shape) -> tuple[int, ...]:
    """Strides of a batch of column-major matrices."""
    if len(shape) < 2:
        return contiguous_strides(shape)
    *batch, n, m = contiguous_strides((*shape[:-2], shape[-1], shape[-2]))
    return (*batch, m, n)


def by_columns(meta, kernel, which):
    """A shape rule and a kernel with the results at the positions ``which`` (or that ``which(*arguments)`` gives) as column-major matrices."""

    of_array = functools.lru_cache(64)(column_strides)

    def each(made, args, fn):
        if not isinstance(made, (tuple, list)):
            return fn(made)
        at = which(*args) if callable(which) else which
        return type(made)(fn(x) if k in at else x for k, x in enumerate(made))

    def rule(*args):
        return each(meta(*args), args, lambda m: replace(m, strides=column_strides(m.shape)))

    def run(*args):
        return each(kernel(*args), args, lambda a: in_order(a, of_array(a.shape)))

    return functools.wraps(meta)(rule), functools.wraps(kernel)(run)


def strides_of(t) -> tuple[int, ...]:
    """Strides in elements of a tensor, its TensorMeta, or an ndarray."""
    if isinstance(t, np.ndarray):
        return tuple(s // t.itemsize for s in t.strides)
    return t._strides if isinstance(t, _C.TensorBase) else t.strides


def in_order(array: np.ndarray, strides) -> np.ndarray:
    """``array``, copied if it must be to have exactly ``strides`` (in elements; those of a dense tensor)."""
    array = np.asarray(array)  # of 0-dimensional arithmetic NumPy makes a scalar
    item, shape = array.itemsize, array.shape
    if not all(n <= 1 or s == w * item for n, s, w in zip(shape, array.strides, strides)) and array.size:
        order = sorted(range(len(shape)), key=lambda d: (-strides[d], shape[d] == 1))
        out = np.empty([shape[d] for d in order], array.dtype).transpose(np.argsort(order))
        out[...] = array
        array = out
    return _C.laid(array, tuple(strides))


def empty_strided(shape, strides, dtype: np.dtype) -> np.ndarray:
    """Uninitialised memory of a dense tensor with exactly these strides."""
    shape = tuple(shape)
    if is_contiguous(shape, strides):
        return _C.laid(np.empty(shape, dtype), tuple(strides))
    order = sorted(range(len(shape)), key=lambda d: (-strides[d], shape[d] == 1))
    return _C.laid(np.empty([shape[d] for d in order], dtype).transpose(np.argsort(order)), tuple(strides))
