"""Reads and writes by index as steps of a call plan: coordinate maps run on loops, loaded indices and sums of multiples of loops."""

from __future__ import annotations

import numpy as np

from ...base.dtypes import check_number, from_numpy
from ...core.indexing import LinearIndex, Loop, describe, linear
from ...core.layouts import dense_like, strides_of
from .program import Program
from .steps import Load, Operand
from .values import NotPlanned, PlanValue, narrow, value_meta

__all__ = ["gather", "read", "write"]

_INDICES = (np.dtype(np.int64), np.dtype(np.int32))


class _Loaded:
    def __init__(self, value: PlanValue, coords):
        self.value, self.coords = value, coords


def _addresses(coords, shape, target: PlanValue, wrap: bool):
    """(offset in bytes, strides over the loops of ``shape``, loads) of the elements of ``target`` at ``coords``."""
    steps, loads, offset = [0] * len(shape), [], 0
    if len(coords) != len(target.shape):
        raise NotPlanned
    for c, n, stride in zip(coords, target.shape, target.strides):
        if isinstance(c, _Loaded):
            if c.value.dtype not in _INDICES:
                raise NotPlanned
            own = [0] * len(shape)
            for at, m, s in zip(c.coords, c.value.shape, c.value.strides):
                if not isinstance(at, Loop) or at.size != m and m != 1:
                    raise NotPlanned
                own[at.k] += s if m != 1 else 0
            loads.append(Load(Operand(c.value, tuple(own)), n, stride, wrap))
            continue
        c = linear(c)
        if not c.within(n):
            raise NotPlanned
        offset += c.start * stride
        for k, (_, factor) in c.terms.items():
            steps[k] += factor * stride
    return offset, steps, loads


def gather(p: Program, source: PlanValue, shape, fn, tensor, wrap, out, strides=None) -> PlanValue:
    """``fn``: coordinates in ``source`` from loops over ``shape``; ``tensor``: the value of a name that it loads from."""
    loops = tuple(Loop(k, n) for k, n in enumerate(shape))
    coords = fn(loops, lambda name, *at: _Loaded(tensor(name), at), LinearIndex())
    offset, steps, loads = _addresses(coords, shape, source, wrap)
    to = p.memory(out, shape, source.dtype, strides)
    p.gather(shape, source.seen(source.shape, source.strides, offset=offset), steps, to, loads)
    return to


def read(p: Program, op, values, out) -> PlanValue:
    d, names = op.definition, [a.name for a in op._schema.arguments]
    metas = [value_meta(x) for x in values]
    shape, fn = d.coords(describe(metas), *metas)
    source = values[names.index(d.source)]
    strides = dense_like(tuple(shape), strides_of(value_meta(source))) if d.keeps_order else None
    return gather(p, source, tuple(shape), fn, dict(zip(names, values)).__getitem__, d.wrap, out, strides)


def write(p: Program, op, values, out) -> PlanValue:
    """A copy of the base, or zeros, into which the source is written in the order of its elements. Sums of 16-bit numbers are rounded once."""
    d, names = op.definition, [a.name for a in op._schema.arguments]
    metas = [value_meta(x) for x in values]
    tensors = dict(zip(names, values))
    source, base = tensors[d.source], None if d.base is None else tensors[d.base]
    shape, fn = d.coords(describe(metas), *metas)
    shape = tuple(shape)
    dtype = (source if base is None else base).dtype
    if not isinstance(source, PlanValue):
        check_number(source, from_numpy(dtype))
        source = p.constant(source, dtype)
    if source.dtype != dtype:
        raise NotPlanned
    size = tuple(d.shape_of(*metas)) if base is None else base.shape
    strides = dense_like(size, strides_of(value_meta(base))) if d.keeps_order and base is not None else None
    if d.combine == "add" and narrow(dtype):
        source, made = p.cast(source, np.dtype(np.float32)), p.empty(size, np.dtype(np.float32))
    else:
        made = p.memory(out, size, dtype, strides)
    p.copy(p.constant(0, made.dtype) if base is None else base, made)
    loops = tuple(Loop(k, n) for k, n in enumerate(shape))
    coords = fn(loops, lambda name, *at: _Loaded(tensors[name], at), LinearIndex())
    if not coords or 0 in shape:
        raise NotPlanned
    offset, steps, loads = _addresses(coords, shape, made, d.wrap)
    if len(source.shape) == len(shape) and all(n == 1 or m >= n for m, n in zip(source.shape, shape)):
        # The part that is reached.
        source = source.seen(shape, source.strides)
    p.scatter(d.combine, shape, source, made.seen(made.shape, made.strides, offset=offset), steps, loads)
    return made if made.dtype == dtype else p.copy(made, p.memory(out, size, dtype, strides))
