"""The functional variant of an operator that writes to its arguments and was not declared with one (a user's, usually): it runs the operator
on copies and returns what the operator returned, then the copies."""

from __future__ import annotations

from typing import Any

from ..base.records import replace
from ..core.definition import Extern, TensorMeta
from ..core.operator import OpOverload, namespace
from ..core.schema import Argument, Schema

__all__ = ["functional_variant", "take_apart"]


class FunctionalVariant(OpOverload):
    """``ns::name_functional(...) -> Tensor[]``. Derived again where a stored graph names it."""

    def __reduce__(self):
        return (functional_variant, (self.of,))


def functional_variant(op: OpOverload) -> OpOverload:
    made = op.__dict__.get("_functional_variant")
    if made is not None and made.made_of == op.version:
        return made
    if any(r.type != "Tensor" for r in op._schema.returns):
        raise RuntimeError(
            f"functionalization of {op.name()}, which writes to its arguments, requires that it returns tensors or nothing"
        )
    schema = Schema(
        f"{op.namespace}::{op._opname}_functional",
        "" if op._overloadname == "default" else op._overloadname,
        tuple(replace(a, alias_info=None) for a in op._schema.arguments),
        (Argument("", "Tensor", is_list=True),),
    )
    made = FunctionalVariant(
        op.namespace, f"{op._opname}_functional", op._overloadname, Extern(None, None), schema=schema
    )
    made.of, made.made_of, made.tags = op, op.version, op.tags
    written = [i for i, a in enumerate(op._schema.arguments) if a.is_write]

    def kernel(*values):
        values, copies = list(values), {}
        for i in written:
            values[i] = _each(values[i], lambda t: copies.setdefault(id(t), namespace("aten").clone(t)))
        out = op.facet("eager")(*values)
        return [*_listed(out), *(t for i in written for t in _listed(values[i]))]

    def meta(*values):
        out = op.facet("meta")(*values) if op._schema.returns else ()
        return [*_listed(out), *(_meta(t) for i in written for t in _listed(values[i]))]

    made.override("eager", kernel)
    made.override("meta", meta)
    op.__dict__["_functional_variant"] = made
    return made


def take_apart(op: OpOverload, results: list, written: list) -> tuple[Any, list]:
    """(what ``op`` returns, the new contents of each written argument) from the results of its functional variant."""
    n = len(op._schema.returns)
    rest = iter(results[n:])
    contents = [[next(rest) for _ in w] if isinstance(w, (list, tuple)) else next(rest) for w in written]
    return (None if not n else results[0] if n == 1 else tuple(results[:n])), contents


def _listed(x) -> list:
    return [] if x is None else list(x) if isinstance(x, (list, tuple)) and not isinstance(x, TensorMeta) else [x]


def _each(x, f):
    return type(x)(map(f, x)) if isinstance(x, (list, tuple)) else f(x)


def _meta(t) -> TensorMeta:
    return t if isinstance(t, TensorMeta) else TensorMeta(tuple(t._shape), t._strides, t._dtype, t._device, t._offset)
