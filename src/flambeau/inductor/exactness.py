"""Whether compiled code gives the very bits of eager's loops: what small calls may change to while a program runs (eager/often.py).

Compiled arithmetic is IEEE's, in the order of the body, so results differ in polynomials for transcendental functions, in the order of sums and in
products of matrices, and nowhere else.
"""

from __future__ import annotations

from ..base import dtypes
from ..base.elements import FUNCTIONS
from ..core.body import TABLE, Expr, Input, topological, trace

__all__ = ["EXACT", "is_exact", "is_row_exact"]

# Expansions whose result is the one that IEEE's arithmetic has, or one of their operands.
EXACT = frozenset(
    """angle sgn sign maximum minimum floordiv truncdiv remainder isnan fmax fmin nextafter signbit heaviside conj cast where gcd lcm lshift rshift
    logical_not bitwise_not reciprocal rsqrt""".split()
)
_OF_PARTS = frozenset("complex conj cast where neg add sub".split())  # of complex numbers
_ORDERLESS = frozenset(("maximum", "minimum", "logical_and", "logical_or"))


def is_exact(program) -> bool:
    """Of an OpProgram."""
    return all(_call_is_exact(c) for c in program.calls if c.what == "call" and hasattr(c.target, "kind"))


def _call_is_exact(call) -> bool:
    op, d = call.target, call.target.definition
    if op.kind == "pointwise":
        return _body_is_exact(op, call)
    if op.kind == "reduction":
        return d.combine in _ORDERLESS | {"argmax", "argmin"} and d.finalize is None and d.map is None or _whole(call)
    if op.kind == "index":
        return True  # sums by index are taken in the order of the source
    if op.kind == "factory":
        return d.body is None or _whole(call) or _rows_are_exact(*_of_indices(call))
    return op.kind != "contraction"


def _whole(call) -> bool:
    """Whether the result has integers or truth values, and was made of such."""
    parts = [call.val, *(a.val for a in call.args if hasattr(a, "val"))]
    return all(getattr(x, "dtype", dtypes.float32).category < 2 for x in parts)


def _body_is_exact(op, call) -> bool:
    names = [a.name for a in op._schema.arguments]
    given = [*call.args, *(call.kwargs.get(n) for n in names[len(call.args) :])]
    parts = any(getattr(getattr(x, "val", None), "dtype", dtypes.float32).category > 2 for x in (*given, call))
    at = [Input(n) if hasattr(x, "val") else x for n, x in zip(names, given)]
    return _rows_are_exact(op.definition.body, at, parts)


def _of_indices(call):
    """The body of a factory with the index of an element first."""
    body, shape = call.target.definition.body, call.val.shape
    rest = [*call.args, *call.kwargs.values()]
    return lambda s, *index: body(s, index, *rest), [Input(str(k)) for k in range(len(shape))]


def _rows_are_exact(body, at, parts=False) -> bool:
    root, _ = trace(body, at)
    rows = {n.op for n in topological(root) if n.op != "input"} if isinstance(root, Expr) else set()
    return rows <= _OF_PARTS if parts else all(map(is_row_exact, rows))


def is_row_exact(name: str) -> bool:
    """Whether eager's loop of a row of the scalar table and compiled code have the same bits."""
    code = TABLE[name].llvm
    return name in EXACT or name in FUNCTIONS or (bool(code) and not code.get("f", code.get("*", "")).startswith("@"))
