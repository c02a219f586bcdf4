"""Factories and random draws."""

from __future__ import annotations

import numpy as np

from .. import _C
from ..core import generator
from ..core.operator import OpOverload
from .backend import rule
from .pointwise import NUMPY


@rule("factory")
def factory(op: OpOverload):
    d = op.definition
    from_array = _C.from_array

    def run(*args):
        shape = tuple(d.shape(*args))
        if any(n < 0 for n in shape):
            raise RuntimeError(f"Trying to create tensor with negative dimension {min(shape)}: {list(shape)}")
        dtype = d.dtype(*args).np
        if d.body is None:
            return from_array(np.empty(shape, dtype))
        index = tuple(np.arange(n).reshape((-1,) + (1,) * (len(shape) - 1 - k)) for k, n in enumerate(shape))
        value = d.body(NUMPY, index, *args)
        if isinstance(value, np.ndarray) and value.shape == shape:
            return from_array(value.astype(dtype))
        out = np.empty(shape, dtype)
        out[...] = value
        return from_array(out)

    return run


@rule("random")
def random(op: OpOverload):
    d = op.definition
    names = [a.name for a in op._schema.arguments]
    gen_at = names.index("generator") if "generator" in names else None
    from_array = _C.from_array

    def run(*args):
        gen = args[gen_at] if gen_at is not None and args[gen_at] is not None else generator.default_generator
        return from_array(d.draw(gen, tuple(d.shape(*args)), d.dtype(*args), *args))

    return run
