"""Calls that one kernel serves as a whole: what is large, and what has a native function of its own."""

from __future__ import annotations

import numpy as np

from ... import _C
from ...base import blas, dtypes
from ...core.contractions import check
from ...core.layouts import in_order
from ...core.native_facts import known_by_type
from ...core.operator import OpOverload
from .. import backend
from ..backend import PRODUCTS, compiled
from ..contraction import SMALL, of_one_term
from .program import LARGE
from .values import bytes_of

BF16 = dtypes.bfloat16.np


SMALL_PRODUCT = 1 << 18  # multiplications up to which a product isn't worth splitting over threads


def whole(op: OpOverload, values):
    """A Kernel: what is large goes to a compiled graph, or to BLAS, as a whole."""
    if op.kind == "contraction" and op.definition.letters in PRODUCTS:
        a, b = (t._array for t in values)
        if a.dtype != b.dtype:
            return None
        check(op, values)
        if of_one_term(a, b):  # loops over elements
            large = _multiplications(a, b) >= LARGE and backend.accelerate is not None
            found = backend.accelerate(op, values, True) if large else None
            return None if found is None else _C.Kernel(found[0], ())
        if max(a.size, b.size) < SMALL or _multiplications(a, b) <= SMALL_PRODUCT:
            return None
        if a.dtype == BF16:
            return None if blas.matmul(a, b) is None else _C.Kernel(blas.matmul_bf16, (), arrays=True)
        return (
            None
            if a.dtype.char not in "fd" or blas.matmul(a, b) is None
            else _C.Kernel(blas.native_matmul(), (), arrays=True)
        )
    if "kernel_alone" in op.tags and op.kind == "extern":
        return _after_shapes(op, values)
    if "counted" in op.overrides:  # a native function of the arrays, or None: how large the result is, they say
        fn = op.overrides["counted"](*values)
        return None if fn is None else _C.Kernel(fn, (), arrays=True)
    if "arrays" in op.overrides and op.overrides["keep_fused"](*values):
        return _of_arrays(op, values)
    if "streamed" in op.overrides:
        return None  # the general way is short beside such calls, and has the operator's own errors
    # NOTE: a description knows the numbers among a pointwise operator's operands by type; such a call may be the first with these.
    numbers = tuple(values[i] for i in known_by_type(op) if by_type(op, i, values[i]))
    found = compiled(op, values, None if numbers else True)
    return None if found is None else _C.Kernel(found[0], numbers, many=found[1])


def _of_arrays(op: OpOverload, values):
    """The override "arrays" with the numbers of this description; None for operands that are small enough for a call_plan."""
    arrays = [x._array for x in values if isinstance(x, _C.TensorBase)]
    numbers = [x for x in values if not isinstance(x, _C.TensorBase)]
    kernel = op.overrides["arrays"]
    if all(a.size < LARGE for a in arrays) or kernel(*arrays, *numbers) is None:
        return None
    return _C.Kernel(lambda *operands: kernel(*operands, *numbers), (), arrays=True)


def _after_shapes(op: OpOverload, values):
    """The kernel alone, for a description that the shape rule has been asked about."""
    metas, kernel = op.facet("meta")(*values), op.definition.eager
    kernel = getattr(kernel, "__wrapped__", kernel)  # by_columns' needn't look at the strides first
    many = isinstance(metas, (tuple, list))
    metas = metas if many else (metas,)
    places = [i for i, x in enumerate(values) if isinstance(x, _C.TensorBase)]
    if any(isinstance(y, _C.TensorBase) for x in values if isinstance(x, (list, tuple)) for y in x):
        return None
    layouts = [(m.strides, bytes_of(m.strides, m.dtype.np)) for m in metas]
    rest = [None if i in places else x for i, x in enumerate(values)]

    def run(*tensors):
        args = rest.copy()
        for i, t in zip(places, tensors):
            args[i] = t._array
        made = kernel(*args)
        return [
            _C.from_array(a if type(a) is np.ndarray and a.strides == exact else in_order(a, strides))
            for a, (strides, exact) in zip(made if many else (made,), layouts, strict=True)
        ]

    return _C.Kernel(run, (), many=many, quiet=True)


def by_type(op: OpOverload, i: int, x) -> bool:
    return x.__class__ in (float, int, bool) and (op._schema.arguments[i].is_tensor or x.__class__ is bool or x != 1)


def _multiplications(a: np.ndarray, b: np.ndarray) -> int:
    return a.size * b.shape[-1]
