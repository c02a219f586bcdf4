"""Pointwise kernels: the body, run by the NumPy handler.

dtypes are settled before the body runs (core/promotion.py), so that the body sees operands of one compute dtype; Python numbers stay
weak. float16 and bfloat16 are computed in float32 and rounded once at the end.
"""

from __future__ import annotations

import numpy as np

from .. import _C
from ..base import dtypes
from ..base.dtypes import as_element
from ..base.shapes import broadcast_shapes, contiguous_strides
from ..core.body import TABLE
from ..core.layouts import empty_strided, in_order, pointwise_strides
from ..core.operator import OpOverload
from ..core.promotion import (
    NARROW,
    check_scalars,
    compute_dtype,
    operand_indices,
    result_dtype,
    rounded,
    rounds_operands,
)
from .backend import rule


class NumpyHandler:
    """Gives each scalar operation its NumPy function."""

    def __getattr__(self, name):
        if name == "cast":
            fn = _cast
        else:
            fn = TABLE[name].numpy
        setattr(self, name, fn)
        return fn


def _cast(x, dtype):
    x = np.asarray(x)
    if dtype in _WIDE and x.dtype != dtype.np:
        x = x.astype(np.float32, copy=False)  # as PyTorch: rounded twice where it had more than 24 bits
    return dtypes.saturated(x, dtype.np).astype(dtype.np, copy=False)


NUMPY = NumpyHandler()
_WIDE = dict.fromkeys(NARROW, np.dtype(np.float32))


@rule("pointwise")
def pointwise(op: OpOverload):
    d = op.definition
    body = d.body
    operands = set(operand_indices(op))
    tensor_at = [i for i, a in enumerate(op._schema.arguments) if a.is_tensor]
    layout = pointwise_strides(op)
    scalar_at = [i for i, a in enumerate(op._schema.arguments) if a.type == "Scalar"]
    from_array = _C.from_array
    format_at = next((i for i, a in enumerate(op._schema.arguments) if a.type == "MemoryFormat"), None)

    def run(*args):
        compute = compute_dtype(op, args)
        out_dtype = result_dtype(op, args, compute)
        wide = _WIDE.get(compute, compute.np)
        rounds = rounds_operands(op, compute)
        values, tensors = list(args), []
        for i in tensor_at:
            x = args[i]
            if isinstance(x, _C.TensorBase):
                tensors.append(x)
                a = x._array
                if rounds and x._dtype is not compute:
                    a = rounded(a, compute)
                values[i] = a.astype(wide) if i in operands and a.dtype != wide else a
            elif compute.category == 1 and (x.__class__ is int or x.__class__ is float):
                values[i] = as_element(x, compute)
        if scalar_at:
            check_scalars(op, args, compute)
            if compute.category == 1:
                for i in scalar_at:
                    x = args[i]
                    if x.__class__ is float or (x.__class__ is int and not 0 <= x <= 127):
                        values[i] = as_element(x, compute)
            elif compute.category == 0:
                for i in scalar_at:
                    values[i] = bool(args[i]) if args[i] is not None else None
            elif rounds:
                for i in scalar_at:
                    values[i] = rounded(args[i], compute)
        result = body(NUMPY, *values)
        if type(result) is not np.ndarray:
            result = np.asarray(result)
        if result.dtype != out_dtype.np:
            result = dtypes.saturated(result, out_dtype.np).astype(out_dtype.np)
        plain = True
        shape = result.shape
        for t in tensors:
            a = t._array
            if not a.flags.c_contiguous or (a.shape != shape and len(tensors) > 1):
                plain = False
                break
        strides = None
        if not plain or format_at is not None or not result.flags.c_contiguous or not shape or 1 in shape or 0 in shape:
            shape = broadcast_shapes(*[t._shape for t in tensors])
            strides = layout(shape, args)
            if result.shape != shape:
                result = np.broadcast_to(result, shape)
        if any(
            result is t._array or (result.base is not None and np.may_share_memory(result, t._array)) for t in tensors
        ):  # a body that returns its argument (clone) still makes a new tensor
            own = empty_strided(
                result.shape, contiguous_strides(result.shape) if strides is None else strides, result.dtype
            )
            own[...] = result
            result = own
        return from_array(result if strides is None else in_order(result, strides))

    def checked(*args):
        try:
            return run(*args)
        except ValueError as e:
            shapes = [x._shape for x in args if isinstance(x, _C.TensorBase)]
            broadcast_shapes(*shapes)  # the shape error in PyTorch's words, when that was it
            raise RuntimeError(f"{op._opname}: {e} (shapes {', '.join(str(list(s)) for s in shapes)})") from e

    return checked
