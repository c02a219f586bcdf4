"""In-place and out= kernels, derived: compute the functional result, check that it fits, write it."""

from __future__ import annotations

import math
import warnings

import numpy as np

from .. import _C
from ..base.dtypes import saturated
from ..base.shapes import contiguous_strides
from ..core.layouts import ALIASED, copy_strides, empty_strided, refuse_overlap
from ..core.lazy import resolved
from ..core.operator import OpOverload
from ..core.out_rules import check_dtype, check_inplace, check_inplace_shape, computed_as
from .backend import accelerated, may_accelerate, rule


def _span(t):
    """(first, last) element of the storage that a dense tensor covers; None for one with gaps or overlaps, or without elements."""
    size, last = 1, 0
    for n, s in zip(t._shape, t._strides):
        size *= n
        last += (n - 1) * s
    return (t._offset, t._offset + last) if size == last + 1 else None


def _span_after(t, shape):
    """The same, once ``t`` has been resized to ``shape``."""
    return _span(t) if t._shape == shape else (t._offset, t._offset + math.prod(shape) - 1)


def refuse_partial_overlap(targets, sources, whole=False, shapes=None) -> None:
    """RuntimeError when a source shares a part of its memory with a target it is written to, or all of it in another order
    (``whole``: or in the same). ``shapes``: what the targets will be resized to."""
    for k, t in enumerate(targets):
        for x in sources:
            if (
                not isinstance(x, _C.TensorBase)
                or (x is t and not whole)
                or x._storage is not t._storage
                or x._dtype is not t._dtype
            ):
                continue
            if not whole and x._offset == t._offset and x._strides == t._strides and x._shape == t._shape:
                continue
            b = _span(t) if shapes is None else _span_after(t, shapes[k])
            a = b if x is t else _span(x)
            if a is not None and b is not None and a[0] <= b[1] and b[0] <= a[1]:
                raise RuntimeError(
                    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. "
                    "Please clone() the tensor before performing the operation."
                )


def write(op: OpOverload, target, result) -> None:
    """Copy ``result`` into ``target``. RuntimeError when shape or dtype category don't allow it; nothing is written then."""
    check_inplace(op, target._dtype, result._dtype)
    check_write(op, target, result)
    copy_into(target, result)


def check_write(op: OpOverload, target, result) -> None:
    target._check_writable()
    refuse_overlap(op, target._shape, target._strides)
    if op.kind == "inplace":
        check_inplace_shape(target, result._shape)


def fit(target, result, rows=False) -> None:
    """Give ``target`` the shape of ``result``. ``rows``: one that is resized becomes row-major, else it gets the order of the result."""
    if target._shape != result._shape:
        strides = contiguous_strides(result._shape) if rows else copy_strides(result._shape, result._strides)
        if target.numel() == 0 and target._array is not None and target._array.base is None:
            target._array = empty_strided(result._shape, strides, target._array.dtype)
        else:
            if target.numel():
                warnings.warn(
                    f"An output with one or more elements was resized since it had shape {list(target._shape)}, which does not match the "
                    f"required output shape {list(result._shape)}. This behavior is deprecated, and in a future PyTorch release outputs will "
                    "not be resized unless they have zero elements. You can explicitly reuse an out tensor t by resizing it, inplace, to zero "
                    "elements with t.resize_(0).",
                    UserWarning,
                    stacklevel=5,
                )
            target.resize_(result._shape)
            if not rows:
                target.as_strided_(result._shape, strides)


def copy_into(target, result, rows=False) -> None:
    """``rows``: see :func:`fit`."""
    fit(target, result, rows)
    np.copyto(target._array, saturated(result._array, target._array.dtype), casting="unsafe")
    target._bump_version()


@rule("inplace")
def inplace(op: OpOverload):
    functional = op.definition.functional.facet("eager")
    elementwise = op.definition.functional.kind == "pointwise"
    checked = elementwise and ALIASED not in op.definition.functional.tags
    if elementwise and may_accelerate(op.definition.functional):
        functional = accelerated(functional, op.definition.functional)

    def run(*args):
        if checked and len(args) > 1:
            refuse_partial_overlap(args[:1], args[1:])
        write(op, args[0], functional(*args))
        return args[0]

    return run


@rule("out")
def out(op: OpOverload):
    functional = op.definition.functional
    kernel = functional.facet("eager")
    n = len(functional._schema.arguments)
    outside, rows = (word in functional.out_rules for word in ("outside", "rows"))

    def run(*args):
        targets = args[n:]
        result = kernel(*computed_as(functional, args[:n], targets[0]._dtype))
        results = [resolved(r) for r in (result if isinstance(result, (tuple, list)) else (result,))]
        sources = [x for a in args[:n] for x in (a if isinstance(a, (list, tuple)) else [a])]
        refuse_partial_overlap(targets, sources, outside, [r._shape for r in results])
        for t, r in zip(targets, results):
            check_dtype(functional, t._dtype, r._dtype, len(results) > 1)
        for t, r in zip(targets, results):
            check_write(op, t, r)  # of all, before anything is written
        for t, r in zip(targets, results):
            copy_into(t, r, rows)
        return targets[0] if len(targets) == 1 else tuple(targets)

    return run
