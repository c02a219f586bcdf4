"""Conditions on data that a graph's kernels look at: the call raises where one doesn't hold."""

from __future__ import annotations

from ...core.messages import About
from ..ir.values import Value

__all__ = ["dividing", "expect"]


def _condition(lowering, text: str):
    """A function: truth value -> the same (true), computed with a look at it; where it is false the call raises RuntimeError with ``text``."""
    values, tag = lowering.values, lowering.message(text, About.CONDITION)

    def seen(holds: Value) -> Value:
        bad = values.cast(values.make("logical_not", (holds,), "bool"), "i64")
        return values.make("eq", (values.make("checked", (bad, 1, tag, False), "i64"), values.const(0, "i64")), "bool")

    return seen


def expect(lowering, holds: Value, text: str) -> Value:
    """A truth value (true) that the graph's kernel computes together with ``holds``; where that is false the call raises RuntimeError with
    ``text``."""
    return _condition(lowering, text)(holds)


def dividing(lowering, handler, names: set[str]) -> None:
    """From now on these operations of the handler, on integers, refuse a zero among the divisors as the eager kernels do."""
    values, seen = lowering.values, _condition(lowering, "ZeroDivisionError")

    def refusing(divide):
        def call(x, y):
            if not isinstance(y, Value) and y == 0:
                y = values.const(0, x.dtype)
            if isinstance(y, Value) and not (y.op == "const" and y.args[0]):
                one = values.const(1, y.dtype)
                y = values.make(
                    "where", (seen(values.make("ne", (y, values.const(0, y.dtype)), "bool")), y, one), y.dtype
                )
            return divide(x, y)

        return call

    for name in names:
        setattr(handler, name, refusing(getattr(handler, name)))
