"""Gather and scatter kernels: the coordinate map run on NumPy index arrays."""

from __future__ import annotations

from itertools import zip_longest

import numpy as np

from .. import _C
from ..base.dtypes import as_element, check_number
from ..base.shapes import contiguous_strides
from ..core.indexing import LinearIndex, Loop, NotLinear, check_bounds, describe, is_full_loop, linear
from ..core.layouts import dense_like, empty_strided, in_order
from ..core.operator import OpOverload
from .backend import rule

_UFUNC = {"add": np.add, "multiply": np.multiply, "minimum": np.minimum, "maximum": np.maximum}


class ArrayIndex:
    """Index handler: loop indices are open-grid aranges, loads are fancy indexing. What is loaded is a copy: another thread may change an index
    after it has been checked, and NumPy reads it again."""

    def __init__(self, op, args, sizes):
        self.op, self.sizes, self.nloops = op, sizes, len(sizes)
        self.arrays = {a.name: x._array for a, x in zip(op._schema.arguments, args) if isinstance(x, _C.TensorBase)}

    def array(self, i):
        """A loop index as an array that broadcasts over the loops."""
        if isinstance(i, Loop):
            return np.arange(i.size).reshape((1,) * i.k + (-1,) + (1,) * (self.nloops - 1 - i.k))
        return i

    def load(self, name, *coords):
        a = self.arrays[name]
        if a.ndim == 0:
            return a.copy()
        if all(is_full_loop(c, n) for c, n in zip(coords, a.shape)) and [c.k for c in coords] == sorted(
            c.k for c in coords
        ):
            at = {c.k: c.size for c in coords}
            return np.array(a).reshape([at.get(k, 1) for k in range(self.nloops)])
        return a[tuple(map(self.array, coords))] if coords else np.array(a)

    def __getattr__(self, name):
        fn = {
            "add": np.add,
            "mul": np.multiply,
            "sub": np.subtract,
            "floordiv": np.floor_divide,
            "mod": np.remainder,
            "where": np.where,
            "lt": np.less,
            "maximum": np.maximum,
            "minimum": np.minimum,
        }[name]
        return lambda *a: fn(*map(self.array, a))


def coordinates(op: OpOverload, args, target_shape):
    """(loop sizes, coordinates as arrays or Loops, bounds-checked and non-negative) into a tensor of ``target_shape``. Behind its dimensions may
    stand a coordinate of one element, as scalars are indexed: it is only checked."""
    shape, fn = op.definition.coords(describe(args), *args)
    loops = tuple(Loop(k, n) for k, n in enumerate(shape))
    handler = ArrayIndex(op, args, shape)
    coords = []
    for c, n in zip_longest(fn(loops, handler.load, handler), target_shape, fillvalue=1):
        if isinstance(c, (np.ndarray, np.generic)) and c.dtype.kind in "iub":
            c = check_bounds(op, c, n)
        coords.append(c)
    return tuple(shape), coords[: len(target_shape)], handler


def _refuse_load(name, *coords):
    raise NotLinear


def _view(op: OpOverload, args, a: np.ndarray):
    """Those elements of ``a`` that a map without loads says, as a view over the loops; None for other maps and coordinates out of bounds."""
    shape, fn = op.definition.coords(describe(args), *args)
    loops = tuple(Loop(k, n) for k, n in enumerate(shape))
    start, strides = [], [0] * len(shape)
    try:
        coords = [linear(c) for c in fn(loops, _refuse_load, LinearIndex())]
    except NotLinear:
        return None
    if 0 in shape or not all(c.within(n) for c, n in zip(coords, a.shape)):
        return None
    for c, step in zip(coords, a.strides):
        start.append(slice(c.start, None))
        for k, (_, factor) in c.terms.items():
            strides[k] += factor * step
    return np.lib.stride_tricks.as_strided(a[(*start, ...)], shape, strides)


@rule("index")
def index(op: OpOverload):
    return _read(op) if op.definition.mode == "read" else _write(op)


def _read(op):
    names = [a.name for a in op._schema.arguments]
    at = names.index(op.definition.source)
    keeps_order = op.definition.keeps_order

    def run(*args):
        source = args[at]._array
        view = _view(op, args, source)
        if view is not None:
            strides = dense_like(view.shape, args[at]._strides) if keeps_order else contiguous_strides(view.shape)
            out = empty_strided(view.shape, strides, source.dtype)
            out[...] = view
            return _C.from_array(out)
        shape, coords, handler = coordinates(op, args, source.shape)
        if 0 in shape:
            strides = dense_like(shape, args[at]._strides) if keeps_order else contiguous_strides(shape)
            return _C.from_array(empty_strided(shape, strides, source.dtype))
        loaded = [d for d, c in enumerate(coords) if not isinstance(c, Loop)]
        if len(loaded) == 1 and isinstance(coords[loaded[0]], np.ndarray):
            d = loaded[0]
            c = coords[d]
            # One loaded coordinate among whole dimensions in order: np.take.
            varying = [k for k in range(len(shape)) if k < c.ndim and c.shape[k] != 1] if c.ndim == len(shape) else None
            others = [(e, x) for e, x in enumerate(coords) if e != d]
            own = [k for k in range(len(shape)) if k not in [x.k for _, x in others]]
            if (
                varying is not None
                and all(is_full_loop(x, source.shape[e]) for e, x in others)
                and set(varying) <= set(own)
                and [x.k for _, x in others] == sorted(x.k for _, x in others)
                and own == list(range(d, d + len(own)))
            ):
                idx = np.broadcast_to(c, [shape[k] if k in own else 1 for k in range(len(shape))]).reshape(
                    [shape[k] for k in own]
                )
                out = np.asarray(np.take(source, idx, axis=d), order="C")
                return (
                    _C.from_array(in_order(out, dense_like(shape, args[at]._strides)))
                    if keeps_order
                    else _C.computed(out)
                )
        out = np.asarray(source[tuple(map(handler.array, coords))])
        out = np.array(np.broadcast_to(out, shape), order="C")
        return _C.from_array(in_order(out, dense_like(shape, args[at]._strides))) if keeps_order else _C.computed(out)

    return run


def _in_float32(t):
    return _C.from_array(t._array.astype(np.float32))


def _write(op):
    d = op.definition
    names = [a.name for a in op._schema.arguments]
    at, base_at = names.index(d.source), names.index(d.base) if d.base is not None else None

    finish = _C.from_array if d.keeps_order and base_at is not None else _C.computed

    def run(*args):
        source = args[at]
        if d.combine == "add" and source._dtype.is_floating_point and source._dtype.itemsize == 2:
            # Sums of 16-bit numbers are rounded once.
            wide = [_in_float32(a) if k in (at, base_at) else a for k, a in enumerate(args)]
            return finish(run(*wide)._array.astype(source._array.dtype))
        if base_at is not None:
            base = args[base_at]
            out = np.array(base._array, order="C")
            if d.keeps_order:
                out = in_order(out, dense_like(base._shape, base._strides))
        else:
            out = np.zeros(tuple(d.shape_of(*args)), source._array.dtype)
        if base_at is None and not source._array.size:
            return finish(out)
        view = _view(op, args, out) if d.combine == "assign" and isinstance(source, _C.TensorBase) else None
        if view is not None and view.shape == source._array.shape:
            view[...] = source._array
            return finish(out)
        shape, coords, handler = coordinates(op, args, out.shape)
        if 0 in shape:
            return finish(out)
        if isinstance(source, _C.TensorBase):
            src = source._array
        else:
            made = args[base_at]._dtype
            check_number(source, made)
            src = as_element(source, made)
        if isinstance(src, np.ndarray) and src.shape != shape:
            if not shape and src.size == 1:
                src = src.reshape(())
            src = (
                src[tuple(slice(0, n) for n in shape)]
                if src.ndim == len(shape) and all(m >= n for m, n in zip(src.shape, shape))
                else np.broadcast_to(src, shape)
            )
        where = tuple(map(handler.array, coords))
        if not where:
            src = np.asarray(src).reshape(-1)
            src = src[-1] if d.combine == "assign" else _UFUNC[d.combine].reduce(src)
        if d.combine == "assign":
            out[where] = src
        else:
            _UFUNC[d.combine].at(out, where, src)
        return finish(out)

    return run
