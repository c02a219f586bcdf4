"""What a list of operations is made of (:mod:`.listing` records them), and the derivative of each."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ... import _runtime

__all__ = ["ENTRY", "FLAT", "NUMBERS", "RULES"]

# An operation on at most two earlier ones, by number, or constants (number 0). x, y: the operands' values, of constants or not.
ENTRY = np.dtype([("op", "u4"), ("a", "u4"), ("b", "u4"), ("unused", "u4"), ("x", "f8"), ("y", "f8")])
NUMBERS = {name: k for k, name in enumerate(_runtime.operation_names())}
# Operation -> for each operand, what writes the partial derivative: function(partials, result, operands). The tape has those of functions.
RULES: dict[str, tuple[Callable, ...]] = {
    "ADD": (lambda p, r, x, y: 1.0, lambda p, r, x, y: 1.0),
    "SUB": (lambda p, r, x, y: 1.0, lambda p, r, x, y: -1.0),
    "MUL": (lambda p, r, x, y: y, lambda p, r, x, y: x),
    "DIV": (lambda p, r, x, y: p.over(1.0, y), lambda p, r, x, y: p.over(p.code.neg(p.over(x, y)), y)),
    "NEG": (lambda p, r, x: -1.0,),
    "FREM": (lambda p, r, x, y: 1.0, lambda p, r, x, y: p.whole_turns(x, y)),
}
FLAT = frozenset(("EQ", "GT", "TRUNC"))  # whose derivatives are zero
