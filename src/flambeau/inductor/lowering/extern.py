"""Operators that a graph calls from Python: their eager kernels, on tensors over the graph's buffers."""

from __future__ import annotations

import functools

from ...base.expr import Expr, Symbol, of, symbols
from ...base.relations import symbols as floatingof
from ...core.higher_order import HigherOrderOperator
from ...fx import GraphModule
from ..ir.nodes import BufferKind, ExternCall, Region, dense_strides, is_dense
from ..ir.sizes import sizes
from ..ir.values import stored
from .eager_call import EagerCall, call_rule, call_schema, replace
from .lazy import flatten, tensors_in

__all__ = ["call_eagerly", "floats"]


def call_eagerly(lowering, op, full, val):
    """A call of the operator itself, on tensors over the buffers."""
    tensors = tensors_in(full)
    regions = [lowering.realize(x) for x in tensors]
    outs: list[str | None] = []  # None for a number that is the same at each call

    def result(v):
        if isinstance(v, (tuple, list)):
            return [result(x) for x in v]
        if hasattr(v, "__sym__"):
            outs.append(bind_number(lowering, v))
            return v
        if not hasattr(v, "stride"):
            if v is not None:
                outs.append(None)
            return v
        for n in (*v.shape, *v.stride()):
            lowering.meet(n)
        shape, strides = sizes(v.shape), sizes(v.stride())
        if not is_dense(shape, strides, lowering.values.hint):
            strides = dense_strides(shape)
        buffer = lowering.new_buffer(shape, strides, stored(v.dtype), BufferKind.OBJECT, v.dtype.np)
        for n in (*shape, *strides):
            for s in symbols(n):
                if s not in lowering.values.hints and s not in lowering.given:
                    lowering.late.setdefault(s, buffer.name)
        outs.append(buffer.name)
        return lowering.in_memory(Region(buffer.name, shape, strides), v.dtype, strides, v.device)

    made = result(val)
    if isinstance(op, HigherOrderOperator):
        full = replace(full, functools.partial(compiled_body, lowering), GraphModule)
        name, effect, run = op.__name__, True, functools.partial(call_rule, op)
    else:
        effect = bool({"nondeterministic_seeded", "has_side_effects"} & set(op.tags))
        effect = (
            effect or op.definition.kind in ("random", "extern") or any(hasattr(v, "__sym__") for v in flatten(val))
        )
        name, run = op.name(), functools.partial(call_schema, op)
    floating, more = floats(lowering, full)
    regions += more
    plan = EagerCall(
        run, full, [None if n is None else lowering.buffers[n] for n in outs], lowering.values.hint, floating
    )
    lowering.add(
        ExternCall(
            "call",
            name,
            regions,
            [n for n in outs if n is not None],
            plan,
            effect,
            replays="may_run_plainly" in op.tags,
        )
    )
    return made


def compiled_body(lowering, gm: GraphModule):
    """The body of an operator, compiled once however many nodes call it."""
    found = lowering.bodies.get(gm)
    if found is None:
        found = lowering.bodies[gm] = lowering.compile_body(gm)
    return found


def bind_number(lowering, v) -> str:
    """The buffer of a number that a call tells: a floating-point one is read from memory, an integer is no memory at all."""
    lowering.meet(v)
    inside = floatingof(v.expr)
    if all(isinstance(s, Symbol) for s in inside):  # an integer, or a truth value: its symbol is 0 or 1
        (symbol,) = inside
        buffer = lowering.new_buffer((), (), "i64", BufferKind.NUMBER)
        buffer.constant = of(symbol)
        lowering.late.setdefault(symbol, buffer.name)
    else:
        buffer = lowering.new_buffer((), (), "f64", BufferKind.OBJECT)
        lowering.values.scalars[v.expr] = buffer.name
    return buffer.name


def floats(lowering, args):
    """(floating-point symbols in the numbers among ``args``, the memory of each)."""
    found: dict = {}
    for x in flatten(args):
        if hasattr(x, "__sym__") and not isinstance(x.expr, Expr):
            for s in floatingof(x.expr):
                if not isinstance(s, Symbol):
                    if s not in lowering.values.scalars:
                        raise NotImplementedError(f"inductor: {s!r} is not a number of the inputs")
                    found[s] = Region(lowering.values.scalars[s], (), ())
    return list(found), list(found.values())
