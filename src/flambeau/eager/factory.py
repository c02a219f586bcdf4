"""Factories and random draws."""

from __future__ import annotations

import numpy as np

from .. import _C
from ..base.dtypes import as_element, check_number
from ..base.shapes import is_contiguous
from ..core.generator import source_of_draws
from ..core.layouts import empty_strided, made_strides, takes_format
from ..core.operator import OpOverload
from .backend import rule
from .pointwise import NUMPY


class _Index:
    """The index of every element: an array for each dimension, made when the body asks for it."""

    __slots__ = ("shape",)

    def __init__(self, shape):
        self.shape = shape

    def __getitem__(self, k: int):
        k = range(len(self.shape))[k]
        return np.arange(self.shape[k]).reshape((-1,) + (1,) * (len(self.shape) - 1 - k))

    def __len__(self):
        return len(self.shape)


@rule("factory")
def factory(op: OpOverload):
    d = op.definition
    formed = takes_format(op)
    from_array = _C.from_array

    def room(shape, dtype, args):
        return empty_strided(shape, made_strides(shape, args), dtype) if formed else np.empty(shape, dtype)

    def run(*args):
        shape = tuple(d.shape(*args))
        if any(n < 0 for n in shape):
            raise RuntimeError(f"Trying to create tensor with negative dimension {min(shape)}: {list(shape)}")
        dtype = d.dtype(*args).np
        if d.body is None:
            return from_array(room(shape, dtype, args))
        value = d.body(NUMPY, _Index(shape), *args)
        if value.__class__ in (int, float, complex):
            made = d.dtype(*args)
            check_number(value, made)
            value = as_element(value, made)
        if isinstance(value, np.ndarray) and value.shape == shape and not formed:
            return from_array(value.astype(dtype))
        out = room(shape, dtype, args)
        out[...] = value
        return from_array(out)

    return run


@rule("random")
def random(op: OpOverload):
    d = op.definition
    names = [a.name for a in op._schema.arguments]
    gen_at = names.index("generator") if "generator" in names else None
    from_array = _C.from_array
    formed, in_order = takes_format(op), "memory_order" in op.tags

    def run(*args):
        gen = source_of_draws(None if gen_at is None else args[gen_at])
        shape = tuple(d.shape(*args))
        out = np.asarray(d.draw(gen, shape, d.dtype(*args), *args))  # of 0-dimensional arithmetic NumPy makes a scalar
        if not formed and not in_order:
            return _C.computed(out)
        strides = made_strides(shape, args if formed else (args[0], None))
        if is_contiguous(shape, strides):
            return from_array(_C.laid(out, strides))
        # Values are drawn in the order of memory.
        place = empty_strided(shape, strides, out.dtype)
        order = sorted(range(len(shape)), key=lambda k: -place.strides[k])
        place.transpose(order)[...] = out.reshape([shape[k] for k in order])
        return from_array(place)

    return run
