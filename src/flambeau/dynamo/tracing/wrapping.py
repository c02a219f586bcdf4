"""How a value that existed before the call becomes a variable: ordered tables whose rows stand beside the variables that they make.

``@WRAPPERS.row("exception")`` marks a function ``(tx, value, source)`` that gives the variable, guarded at ``source``, or None for a value that
is none of its own. Rows are asked in the order in which the tables name them, the first answer counts. ``@exactly(list)`` is a row for the objects
of one class, which is found without asking any other. :func:`builder.wrap` asks the tables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..guards.source import ConstSource, Source
from ..rules import trace_rules
from ..rules.reflect import IMMUTABLE, flags_of
from ..variables.base import Variable

__all__ = ["CLASS_WRAPPERS", "FUNCTION_WRAPPERS", "WRAPPERS", "Table", "exactly", "pin"]

Rule = Callable[[Any, Any, Source], Variable | None]
EXACT: dict[type, Rule] = {}


def exactly(*classes: type):
    """A row for the objects of these classes, not of classes derived from them."""

    def decorator(rule: Rule) -> Rule:
        for cls in classes:
            EXACT[cls] = rule
        return rule

    return decorator


class Table:
    def __init__(self, *names: str):
        self.rows: dict[str, Rule | None] = dict.fromkeys(names)
        self.rules: list[Rule] | None = None

    def row(self, name: str):
        """The decorator of the row's function. KeyError for a row that the table doesn't name, or that is taken."""

        if self.rows[name] is not None:
            raise KeyError(f"the row {name!r} is taken")

        def decorator(rule: Rule) -> Rule:
            self.rows[name] = rule
            self.rules = None
            return rule

        return decorator

    def __call__(self, tx, value, source: Source) -> Variable | None:
        if self.rules is None:
            self.rules = [r for r in self.rows.values() if r is not None]
        for rule in self.rules:
            v = rule(tx, value, source)
            if v is not None:
                return v
        return None


WRAPPERS = Table(
    "substituted", "forbidden", "tensor", "ndarray", "exact class", "NumPy's generators and their functions", "class", "named tuple", "comptime",
    "compiled function", "disabled function", "nn module", "exception", "iterator", "function of NumPy", "autocast", "library function",
    "text of the library", "grad mode", "object of the library", "cached function", "mapping proxy", "value of the standard library",
    "weak reference", "callable of C", "getter", "null context", "thread local", "random generator", "derived from a builtin", "optimizer", "object",
    "other callable", "other object",
)  # fmt: skip
CLASS_WRAPPERS = Table(
    "builtin", "without an MRO", "of itertools", "of values of the standard library", "null context", "of the library",
    "autograd function", "other class",
)  # fmt: skip
FUNCTION_WRAPPERS = Table(
    "allowed in graphs", "disallowed", "check of sizes", "wrapper of the library", "of the library", "of SciPy", "pure", "with a handler",
    "of NumPy", "disabled", "skipped", "traced",
)  # fmt: skip


def pin(tx, source: Source, kind: str, payload) -> None:
    """Guard what a value is, unless it is a constant of this trace."""
    if type(source) is ConstSource and (kind == "ID_MATCH" or flags_of(payload) & IMMUTABLE):
        return  # it is what it is; only objects of Python classes can be given another class
    tx.output.guard(source, kind, payload)


@WRAPPERS.row("exact class")
def _(tx, value, source):
    cls = type(value)
    rule = EXACT.get(cls) if type(cls) is type else None
    return None if rule is None else rule(tx, value, source)


@WRAPPERS.row("class")
def _(tx, value, source):
    if not trace_rules.is_a(value, type):
        return None
    pin(tx, source, "ID_MATCH", value)
    return CLASS_WRAPPERS(tx, value, source)
