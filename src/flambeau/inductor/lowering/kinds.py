"""Rules of lowering: one for each kind of operator, none for an operator.

A rule is called with (lowering, operator, all its arguments, its result without data) and returns a :class:`LazyTensor` or several.
NotLowered: the operator is run by its eager kernel.
"""

from __future__ import annotations

import math

from ...base.dtypes import as_element, complex64
from ...base.shapes import normalize_dims
from ...core.body import TABLE, Input, topological, trace
from ...core.promotion import compute_dtype, operand_indices, rounded, rounds_operands
from ...core.reductions import arguments as reduction_arguments
from ...core.viewmap import Strided, ViewRecorder, source_index
from ..assembly.dtypes import compute_type
from ..ir.nodes import Region
from ..ir.sizes import IndexOps, size, sizes, symbolic
from ..ir.values import Value, is_complex, short
from . import conditions
from .complex_tensors import reduce_pairs
from .complex_values import OPERATIONS as PAIRED
from .contractions import lower_contraction
from .eager_call import NotLowered
from .indexing import index
from .lazy import LazyTensor, broadcast_coords, strides_of
from .native import random
from .reductions import reduce

__all__ = ["pointwise"]


def _may_divide_by_zero(node) -> bool:
    """Whether a scalar operation raises for a divisor that isn't known."""
    if node.op == "input" or not getattr(TABLE[node.op].numpy, "refuses_zero", False):
        return False
    return not (isinstance(node.args[1], (int, float)) and node.args[1])


def _converted(lowering, x, dtype):
    """A number as elements of ``dtype``, of integers or bool, have it: without its fraction. What is no number stays."""
    if x.__class__ in (int, float):
        return as_element(x, dtype).item() if dtype.category == 1 else bool(x)
    return lowering.values.const(x, short(dtype)) if hasattr(x, "__sym__") and _changes(x, dtype) else x


def _changes(x, dtype) -> bool:
    """Whether a symbolic number isn't one of an integer or bool ``dtype`` already."""
    return x.__sym__ == "float" or x.__sym__ == "int" and dtype.category == 0


def pointwise(lowering, op, full, val):
    d = op.definition
    known = [isinstance(x, LazyTensor) or hasattr(x, "__sym__") for x in full]
    compute = compute_dtype(op, full)
    if compute.category < 2:  # numbers wrap as in the eager kernel; those that must fit were checked by the shape rule
        full = [
            _converted(lowering, x, compute) if a.type == "Scalar" or a.is_tensor and compute.category == 1 else x
            for a, x in zip(op._schema.arguments, full)
        ]
    rounds = rounds_operands(op, compute)
    if rounds:
        full = [rounded(x, compute) if a.type == "Scalar" else x for a, x in zip(op._schema.arguments, full)]
    try:
        root, _ = trace(d.body, [Input(a.name) if k else x for a, x, k in zip(op._schema.arguments, full, known)])
    except TypeError as e:
        raise NotLowered(f"it looks at a symbolic number ({e})") from e
    taking = set(operand_indices(op))
    paired = (
        compute.is_complex
        or val.dtype.is_complex
        or any(isinstance(x, LazyTensor) and x.dtype.is_complex for x in full)
    )
    for node in topological(root):
        if node.op != "input" and not (TABLE[node.op].llvm or paired and node.op in PAIRED):
            raise NotLowered(f"scalar operation {node.op} has no LLVM text{' for complex numbers' if paired else ''}")
    t, out = short(compute), short(val.dtype)
    shape = sizes(val.shape)
    # Integers beside complex numbers are computed with as the latter.
    pair = compute.to_complex() if compute.category == 2 else compute if compute.is_complex else complex64
    handler = lowering.handler(short(pair) if paired else t)
    if compute.category == 1 and (divisions := {n.op for n in topological(root) if _may_divide_by_zero(n)}):
        conditions.dividing(lowering, handler, divisions)
    if paired:
        d.body(
            handler, *[lowering.values.const(0, short(x.dtype)) if isinstance(x, LazyTensor) else x for x in full]
        )  # refuses what it can't

    def at(coords):
        actual = []
        for k, x in enumerate(full):
            if isinstance(x, LazyTensor):
                v = x.at(broadcast_coords(coords, x.sizes))
                v = lowering.values.cast(v, t) if k in taking else v
                actual.append(lowering.values.cast(v, compute_type(v.dtype)))
            else:
                v = handler.number(x)
                if rounds and isinstance(v, Value):
                    v = lowering.values.cast(lowering.values.cast(v, t), compute_type(t))
                actual.append(v)
        result = d.body(handler, *actual)
        if not isinstance(result, Value):
            result = handler.number(result)
        if not isinstance(result, Value):
            result = lowering.values.const(result, compute_type(out))
        return lowering.values.cast(result, out)

    return lowering.lazy(shape, val.dtype, at, strides=strides_of(val), device=val.device)


def reduction(lowering, op, full, val):
    d = op.definition
    r = reduction_arguments(op)(full)
    x, params, keepdim = r.input, r.params, r.keepdim
    dims = sorted(normalize_dims(r.dims, x.ndim)) if x.ndim else []
    acc = compute_type(short(r.acc))
    handler = lowering.handler(acc)
    n = math.prod(x.sizes[k] for k in dims)
    kept = [k for k in range(x.ndim) if k not in dims]

    def element(coords):
        v = x.at(coords)
        v = (
            lowering.values.cast(v, compute_type(v.dtype))
            if d.acc == "bool" and d.map is not None
            else lowering.values.cast(v, acc)
        )
        if d.map is not None:
            v = d.map(handler, v, *params)
            v = v if isinstance(v, Value) else lowering.values.const(v, acc)
        return lowering.values.cast(v, acc)

    if n == 0 and d.init is None:
        raise NotLowered("empty reduction without an initial value")
    if is_complex(acc):
        result = reduce_pairs(lowering, d, x, kept, dims, element)
    else:
        result = reduce(lowering, d.combine, d.init, x.sizes, kept, dims, element)
    out = short(val.dtype)

    def at(coords):
        outer = (
            [c for k, c in enumerate(coords) if k not in dims] if keepdim and x.ndim == len(coords) else list(coords)
        )
        v = result(tuple(outer))
        if d.finalize is not None:
            v = d.finalize(handler, v, symbolic(n, lowering.example), *params)
            v = v if isinstance(v, Value) else lowering.values.const(v, acc)
        return lowering.values.cast(v, out)

    return lowering.lazy(sizes(val.shape), val.dtype, at, strides=strides_of(val), device=val.device)


def view(lowering, op, full, val):
    x, rest = full[0], full[1:]
    if not isinstance(x, LazyTensor):
        raise NotLowered("no tensor argument")
    results = None
    if x.region is not None:
        try:
            results = op.definition.map(lowering.strided(x.region), *rest)
        except RuntimeError:
            results = None  # a reshape that needs other strides: by index below
    if results is None:
        results = op.definition.map(ViewRecorder(x.shape), *rest)
    vals = val if isinstance(val, (tuple, list)) else [val]
    listed = isinstance(results, (tuple, list))
    out = []
    for position, (r, v) in enumerate(zip(results if listed else [results], vals)):
        if isinstance(r, Strided):
            region = Region(x.region.buffer, sizes(r.shape), sizes(r.strides), size(r.offset))
            out.append(lowering.in_memory(region, x.dtype, strides_of(v), x.device))
            continue

        def at(coords, r=r):
            return x.at(source_index(r.steps, coords, IndexOps))

        def again(handler, n=position):
            made = op.definition.map(handler, *rest)
            return made[n] if listed else made

        out.append(lowering.lazy(sizes(r.shape), x.dtype, at, strides=strides_of(v), device=x.device))
        out[-1].view = (x, again)
    return out if listed else out[0]


def factory(lowering, op, full, val):
    body = op.definition.body
    t = short(val.dtype)
    handler = lowering.handler(t)

    def at(coords):
        v = 0 if body is None else body(handler, tuple(lowering.values.index(c) for c in coords), *full)
        if v.__class__ is int and val.dtype.category == 1:
            v = as_element(v, val.dtype).item()
        return lowering.values.cast(v, t) if isinstance(v, Value) else lowering.values.element(v, t)

    if is_complex(t):
        at((0,) * len(val.shape))  # refuses what it can't
    made = lowering.lazy(sizes(val.shape), val.dtype, at, strides=strides_of(val), device=val.device)
    made.undefined = body is None
    return made


def composite(lowering, op, full, val):
    raise NotLowered("a composite that wasn't decomposed")


# The rule of each kind. Of kinds that aren't here an override "lower" makes something, or the eager kernel is called.
KINDS = {
    "pointwise": pointwise,
    "reduction": reduction,
    "view": view,
    "factory": factory,
    "index": index,
    "contraction": lower_contraction,
    "composite": composite,
    "random": random.random,
}
