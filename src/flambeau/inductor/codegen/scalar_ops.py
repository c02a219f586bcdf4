"""What one scalar operation is in LLVM: an operation, a comparison, an intrinsic, or an expansion, as the scalar table names it."""

from __future__ import annotations

import functools
from collections.abc import Callable

from ...core.body import TABLE
from ..assembly.builder import Builder
from ..assembly.dtypes import compute_type, letter
from ..assembly.instructions import Operand
from .expansions import EXPANSIONS

__all__ = ["emit_scalar"]


def emit_scalar(b: Builder, name: str, t: str, args: list[Operand]) -> Operand:
    """Emit operation ``name`` on operands of type ``t`` (for ``where`` the first operand is a truth value)."""
    t = compute_type(t)
    return _rule(name, letter(t))(b, t, *args)


@functools.cache
def _rule(name: str, key: str) -> Callable[..., Operand]:
    """A function of a builder, a dtype and operands."""
    named = TABLE[name].llvm
    what = named.get(key) or (named.get("i") if key == "u" else None) or named.get("*")
    if what is None:
        raise NotImplementedError(f"scalar operation {name} isn't known to LLVM for type {key}")
    if what[0] == "@":
        return EXPANSIONS[what[1:]]
    if what.startswith("llvm."):
        return lambda b, t, *args: b.intrinsic(what[5:], *args)
    if what == "select":
        return lambda b, t, *args: b.select(*args)
    if what == "fneg":
        return lambda b, t, x: b.neg(x)
    operation, _, predicate = what.partition(" ")
    if predicate:
        return lambda b, t, x, y: b.cmp(predicate, x, y)
    return lambda b, t, x, y: b.op(operation, x, y)
