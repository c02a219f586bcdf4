"""Batching of gathers and scatters: the coordinate map with a batch index in front.

The batched operator is an operator itself (namespace ``batched``, its overload name says which arguments are mapped),
made from the definition at first use: it has an eager kernel, a shape rule, a lowering like any index operator, and
its derivative is the batched derivative.
"""

from __future__ import annotations

import functools
import inspect

from .. import _C
from ..base.records import replace
from ..base.shapes import contiguous_strides
from ..core.definition import Index, TensorMeta
from ..core.operator import OpOverload, namespace
from .handler import invoke, rule
from .levels import level, value_at, wrap

aten = namespace("aten")


def _example(x, mapped: bool):
    """Shape and dtype of one example of an argument: a tensor, its description, or what the compiler has for it."""
    if not mapped or not (hasattr(x, "shape") and hasattr(x, "dtype")):
        return x
    shape = tuple(x.shape)[1:]
    return TensorMeta(shape, contiguous_strides(shape), x.dtype, x.device)


def _definition(op: OpOverload, mask: tuple[bool, ...]) -> Index:
    d = op.definition
    names = [a.name for a in op._schema.arguments]
    mapped = dict(zip(names, mask))
    first = mask.index(True)
    into = mapped[d.source] if d.mode == "read" else True

    def coords(ix, *args):
        shape, fn = d.coords(ix, *map(_example, args, mask))

        def at(i, load, h):
            def load_example(name, *c):
                return load(name, i[0], *c) if mapped[name] else load(name, *c)

            inner = fn(i[1:], load_example, h)
            return (i[0], *inner) if into else inner

        return (args[first].shape[0], *shape), at

    def shape_of(*args):
        return (args[first].shape[0], *d.shape_of(*map(_example, args, mask)))

    return Index(d.mode, d.source, coords, d.combine, d.base, shape_of if d.shape_of is not None else None)


@functools.cache
def batched(op: OpOverload, mask: tuple[bool, ...]) -> OpOverload:
    """The operator on mapped arguments; ``mask`` says which. In write mode ``base`` and a tensor ``source`` must
    be."""
    ns = namespace("batched")
    name = op._opname if op.namespace == "aten" else f"{op.namespace}_{op._opname}"
    overload = f"{op._overloadname}_" + "".join("01"[m] for m in mask)
    schema = replace(op._schema, name=f"batched::{name}", overload_name=overload)
    made = OpOverload("batched", name, overload, _definition(op, mask), schema=schema)
    made.has_inplace = made.has_out = False
    made.tags = op.tags
    if op.vjp_formulas is not None:
        made.vjp_formulas = {key: _batched_formula(op, mask, key, fn) for key, fn in op.vjp_formulas.items()}
    ns._register(made)
    return made


def _batched_formula(op: OpOverload, mask, key: str, formula):
    """The formula run under vmap; a cotangent of an argument that isn't mapped is summed over the examples."""
    mapped = dict(zip([a.name for a in op._schema.arguments], mask))
    params = list(inspect.signature(formula).parameters)

    def takes_batch(name):
        return mapped.get(name.removesuffix("_like"), name.startswith(("ct", "result")))

    def example(value, name, lvl):
        if not takes_batch(name):
            return value
        if name.endswith("_like"):  # shape, dtype and device of an argument: those of one example
            return replace(value, shape=tuple(value.shape)[1:])
        return wrap(value, lvl) if isinstance(value, _C.TensorBase) else value

    def fn(*values):
        size = next(v for n, v in zip(params, values) if isinstance(v, _C.TensorBase) and takes_batch(n))._shape[0]
        with level(size) as lvl:
            got = formula(*(example(v, n, lvl) for n, v in zip(params, values)))
            got = [None if g is None else value_at(g, lvl) for g in (got if "__" in key else (got,))]
        out = [None if g is None else _settle(*g, mapped[name], size) for name, g in zip(key.split("__"), got)]
        return tuple(out) if "__" in key else out[0]

    fn.__signature__ = inspect.signature(formula)
    return fn


def _settle(g, is_mapped, wanted, size):
    if wanted:
        return g if is_mapped else aten.expand.default(aten.unsqueeze.default(g, 0), [size, *g._shape])
    return aten.sum.dim_IntList(g, [0]) if is_mapped else aten.mul.Tensor(g, size)


@rule("index")
def index(op: OpOverload):
    d = op.definition
    names = [a.name for a in op._schema.arguments]
    whole = [names.index(n) for n in (d.source, d.base) if n is not None] if d.mode == "write" else []

    def run(call, *values):
        values, mask = list(values), list(call.mask)
        for i in whole:
            if isinstance(values[i], _C.TensorBase) and not mask[i]:
                values[i], mask[i] = call.all(values[i], False), True
        return invoke(batched(op, tuple(bool(m) for m in mask)), values)

    return run
