"""Factories and random draws."""

from __future__ import annotations

import numpy as np

from .. import _C
from ..base.dtypes import as_element, check_number
from ..base.shapes import elementwise_strides, is_contiguous
from ..core import generator
from ..core.operator import OpOverload
from .backend import rule
from .pointwise import NUMPY


def keeps_format(op: OpOverload) -> bool:
    """Whether the result has the memory order of the first argument (``zeros_like``)."""
    return any(a.type == "MemoryFormat" for a in op._schema.arguments)


def _empty(shape, dtype, args):
    """An uninitialised array in the memory order of the tensor ``args[0]``, unless a contiguous one is asked for."""
    t = args[0]
    if args[-1] not in (None, "preserve_format") or is_contiguous(shape, t._strides):
        return np.empty(shape, dtype)
    strides = elementwise_strides(shape, [(t._shape, t._strides)])
    order = sorted(range(len(shape)), key=lambda d: -strides[d])
    return np.empty([shape[d] for d in order], dtype).transpose(np.argsort(order))


@rule("factory")
def factory(op: OpOverload):
    d = op.definition
    like = keeps_format(op)
    from_array = _C.from_array

    def run(*args):
        shape = tuple(d.shape(*args))
        if any(n < 0 for n in shape):
            raise RuntimeError(f"Trying to create tensor with negative dimension {min(shape)}: {list(shape)}")
        dtype = d.dtype(*args).np
        if d.body is None:
            return from_array(_empty(shape, dtype, args) if like else np.empty(shape, dtype))
        index = tuple(np.arange(n).reshape((-1,) + (1,) * (len(shape) - 1 - k)) for k, n in enumerate(shape))
        value = d.body(NUMPY, index, *args)
        if value.__class__ is int or value.__class__ is float:
            made = d.dtype(*args)
            check_number(value, made)
            value = as_element(value, made) if made.category == 1 else value
        if isinstance(value, np.ndarray) and value.shape == shape and not like:
            return from_array(value.astype(dtype))
        out = _empty(shape, dtype, args) if like else np.empty(shape, dtype)
        out[...] = value
        return from_array(out)

    return run


@rule("random")
def random(op: OpOverload):
    d = op.definition
    names = [a.name for a in op._schema.arguments]
    gen_at = names.index("generator") if "generator" in names else None
    from_array = _C.from_array

    like = keeps_format(op) or "memory_order" in op.tags

    def run(*args):
        gen = args[gen_at] if gen_at is not None and args[gen_at] is not None else generator.default_generator
        shape = tuple(d.shape(*args))
        out = d.draw(gen, shape, d.dtype(*args), *args)
        if like and not is_contiguous(shape, args[0]._strides):
            # Values are drawn in the order of memory.
            place = _empty(shape, out.dtype, args if keeps_format(op) else (args[0], None))
            order = sorted(range(len(shape)), key=lambda k: -place.strides[k])
            place.transpose(order)[...] = out.reshape([shape[k] for k in order])
            out = place
        return from_array(out)

    return run
