"""Reads and writes by index: elements at places that are computed, or loaded."""

from __future__ import annotations

import math

from ...base import dtypes
from ...base.expr import at_least, const, linear, of, symbols, terms, variable
from ...base.records import astuple
from ..assembly.dtypes import compute_type
from ..ir.index_ranges import apart, lies_inside
from ..ir.nodes import Pointwise, Region, dense_strides
from ..ir.sizes import IndexOps, sizes
from ..ir.values import Value, loaded_atoms, short, walk
from .eager_call import NotLowered
from .lazy import LazyTensor, broadcast_coords, strides_of
from .native import data_sizes
from .native.launch import as_dtype

__all__ = ["checked_before", "put", "take"]


def index(lowering, op, full, val):
    d = op.definition
    bound = dict(zip((a.name for a in op._schema.arguments), full))
    source = bound[d.source]
    shape, fn = d.coords(IndexOps, *full)
    shape = sizes(shape)
    tag = lowering.message(op.name())
    into = source.sizes if d.mode == "read" else sizes(val.shape)
    if math.prod(shape) and len(fn((0,) * len(shape), lambda name, *at: 0, IndexOps)) != len(into):
        raise NotLowered("a place in a tensor without dimensions")

    def load(name, *coords):
        tensor = bound[name] if isinstance(name, str) else name
        v = tensor.at(tuple(coords))
        return of(lowering.values.cast(v, "i64"))

    def position(coords, extents):
        out = []
        for c, extent in zip(fn(tuple(coords), load, IndexOps), extents):
            if loaded_atoms(c) and (known := _known_inside(c, extent)) is not None:
                c = known
            elif loaded_atoms(c):
                whole = lowering.values.index(c)
                if len(terms(c)) == 1 and not const(c) and c.terms[0][1] == 1 and isinstance(c.terms[0][0], Value):
                    whole = c.terms[0][0]
                c = of(lowering.values.make("checked", (whole, extent, tag, d.wrap), "i64"))
            out.append(c)
        return tuple(out)

    if d.mode == "read":
        if math.prod(shape):
            _refuse_empty(source.sizes)
        _realize_table(lowering, source, shape)
        return lowering.lazy(
            shape,
            source.dtype,
            lambda coords: _looked_at(lowering, source, position(coords, source.sizes)),
            strides=strides_of(val),
            device=source.device,
        )
    out_shape = sizes(val.shape)
    # Sums of 16-bit numbers are rounded once.
    made = (
        dtypes.float32 if d.combine == "add" and val.dtype.is_floating_point and val.dtype.itemsize == 2 else val.dtype
    )
    t = short(made)
    start = bound.get(d.base) if d.base else None
    if start is None:
        zero = lowering.values.const(0, compute_type(t))
        start = lowering.lazy(out_shape, made, lambda coords: lowering.values.cast(zero, t))
    target = lowering.new_buffer(out_shape, dense_strides(out_shape), t)
    lowering.fill(target, start)
    if math.prod(shape):
        _refuse_empty(out_shape)
        loops = lowering.variables(shape)
        coords = tuple(variable(v) for v in loops)
        place = position(coords, out_shape)
        _refuse_outside(place, out_shape)
        if lowering.checks_first and lowering.overwritten:
            place = _places_before(lowering, shape, lambda c: position(c, out_shape), place, coords)
        where = linear(place, target.strides)
        if isinstance(source, LazyTensor):
            element = source.at(broadcast_coords(coords, source.sizes))
            if lowering.checks_first and _fails(element):
                element = _taken_before(lowering, source).at(broadcast_coords(coords, source.sizes))
            elif start is not None and _finds_written(lowering, element, where):
                element = _taken_before(lowering, source).at(broadcast_coords(coords, source.sizes))
            value = lowering.values.cast(element, t)
        else:
            value = lowering.values.element(source, t)
        lowering.parts_written.append(where)
        lowering.add(Pointwise(target.name, loops, value, where, d.combine))
    result = lowering.in_memory(Region(target.name, out_shape, target.strides), made, target.strides, val.device)
    return as_dtype(lowering, result, val.dtype)


def _refuse_empty(shape, indices=None) -> None:
    """NotLowered for a tensor that may have no elements: an index that is out of bounds is read as 0, which has to be one. Masks name places that
    there are."""
    masks = indices is not None and all(t is None or t.dtype in (dtypes.bool_, dtypes.uint8) for t in indices)
    if 0 in shape or not masks and not all(at_least(n, 1) for n in shape):
        raise NotLowered("indexing a tensor that is empty, or may be")


def _refuse_outside(place, shape) -> None:
    """NotLowered where a computed place isn't one of the result: the eager kernel says what is wrong."""
    computed = [(c, n) for c, n in zip(place, shape) if not loaded_atoms(c) and type(n) is int and not symbols(c)]
    if len(place) != len(shape) or not all(lies_inside(c, n) for c, n in computed):
        raise NotLowered("places outside of the result")


def _realize_table(lowering, source: LazyTensor, shape) -> None:
    """Give memory to what is read by index where its elements are costly to compute, and each is read twice or more, as of a table of few values."""
    of_table, read = (lowering.backed_hint(math.prod(n)) for n in (source.sizes, shape))
    few = of_table is not None and read is not None and read >= 2 * of_table
    if source.region is None and few and lowering.costly(source):
        lowering.realize(source)


def _known_inside(place, extent):
    """An index that an operator computes of the coordinates alone (``arange``), where it is known to lie inside; None for others."""
    (atom, factor), *more = terms(place)
    computed = atom.args[0] if isinstance(atom, Value) and atom.op == "index" and not more and factor == 1 else None
    if computed is None or const(place) != 0 or type(extent) is not int:
        return None
    return computed if lies_inside(computed, extent) else None


def _finds_written(lowering, element: Value, where) -> bool:
    """Whether an element that is to be written reads an input at a place that may have been written by then, if the input's new contents lie in
    its memory."""
    inputs = {lowering.inputs[k] for k in lowering.overwritten if k < len(lowering.inputs)}
    read = [v.args[1] for v in walk(element) if v.op == "load" and v.args[0] in inputs] if inputs else []
    return any(
        (index != where and not apart(index, where)) or any(not apart(index, other) for other in lowering.parts_written)
        for index in read
    )


def _taken_before(lowering, x: LazyTensor) -> LazyTensor:
    """The same elements in memory of their own."""
    buffer = lowering.new_buffer(x.sizes, dense_strides(x.sizes), short(x.dtype))
    lowering.fill(buffer, x)
    return lowering.in_memory(Region(buffer.name, x.sizes, buffer.strides), x.dtype)


def _fails(element: Value) -> bool:
    return any(v.op == "checked" for v in walk(element))


def checked_before(lowering, extents, indices, wrap: bool = True) -> list:
    """The same indices in memory of their own, from 0 on and inside: what reads or writes by them can't fail. ``wrap``: they may count from the
    end."""
    values, tag, out = lowering.values, lowering.message("aten::index_put"), []
    for given, extent in zip(indices, extents):
        if given is not None:
            same = None if given.region is None else (*astuple(given.region), extent, wrap)
            if same in lowering.checked:
                out.append(lowering.checked[same])
                continue

            def place(coords, given=given, extent=extent):
                return values.make("checked", (values.cast(given.at(coords), "i64"), extent, tag, wrap), "i64")

            given = _taken_before(lowering, lowering.lazy(given.sizes, dtypes.int64, place, device=given.device))
            lowering.inside[given.region.buffer] = extent
            if same is not None:
                lowering.checked[same] = given
        out.append(given)
    return out


def _places_before(lowering, shape, position, place: tuple, coords) -> tuple:
    """The coordinates of a write with those that are checked in memory of their own: what writes by them can't fail."""
    out = []
    for d, c in enumerate(place):
        if any(v.op == "checked" for v in loaded_atoms(c)):
            checked = lowering.lazy(shape, dtypes.int64, lambda at, d=d: lowering.values.index(position(at)[d]))
            c = of(_taken_before(lowering, checked).at(coords))
        out.append(c)
    return tuple(out)


def _looked_at(lowering, source, place) -> Value:
    """The element of ``source`` at ``place``. A constant, or an expanded dimension, has the same element everywhere: the place is checked all the
    same."""
    values, element = lowering.values, source.at(place)
    checks = [v for p in place for v in loaded_atoms(p) if v.op == "checked"]
    seen = set(walk(element)) if checks else ()
    for v in checks:
        if v not in seen:
            inside = values.make("ge", (v, values.const(0, "i64")), "bool")
            element = values.make("where", (inside, element, values.const(0, element.dtype)), element.dtype)
    return element


def take(lowering, x, indices, val) -> LazyTensor:
    """``x[indices]``."""
    _refuse_empty(x.sizes, indices)
    mask, *others = indices
    if mask is not None and mask.dtype is dtypes.bool_ and all(t is None for t in others):
        found = data_sizes.chosen(lowering, val, x, mask)
        if found is not None:
            return found
    indices = data_sizes.masked(lowering, x.sizes, indices, lambda at: val.shape[at])
    if lowering.checks_first and lowering.parts_written:
        indices = checked_before(lowering, x.sizes, indices)
    shape, position = data_sizes.advanced(lowering, x.sizes, indices, "aten::index")
    _realize_table(lowering, x, shape)
    return lowering.lazy(
        shape,
        x.dtype,
        lambda coords: _looked_at(lowering, x, position(coords)),
        strides=strides_of(val),
        device=x.device,
    )


def put(lowering, x, indices, values, accumulate, val) -> LazyTensor:
    """``x`` with ``values`` put at ``x[indices]``, or added there."""
    _refuse_empty(x.sizes, indices)
    indices = data_sizes.places_to_put(lowering, x, indices, values)
    if lowering.checks_first:
        indices = checked_before(lowering, x.sizes, indices)
    shape, position = data_sizes.advanced(lowering, x.sizes, indices, "aten::index_put")
    t = short(val.dtype)
    target = lowering.new_buffer(x.sizes, dense_strides(x.sizes), t)
    if lowering.overwritten and x.region is not None:
        lowering.copies.add(target.name)
    lowering.fill(target, x)
    if math.prod(shape):
        loops = lowering.variables(shape)
        coords = tuple(variable(v) for v in loops)
        where = linear(position(coords), target.strides)
        element = values.at(broadcast_coords(coords, values.sizes))
        if lowering.checks_first and (_fails(element) or _finds_written(lowering, element, where)):
            element = _taken_before(lowering, values).at(broadcast_coords(coords, values.sizes))
        value = lowering.values.cast(element, t)
        lowering.parts_written.append(where)
        lowering.add(Pointwise(target.name, loops, value, where, "add" if accumulate else "assign"))
    return lowering.in_memory(Region(target.name, target.shape, target.strides), val.dtype, target.strides, val.device)
