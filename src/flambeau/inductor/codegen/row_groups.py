"""Short rows by groups: a stage of a kernel is done for all rows of a group before the next stage is done for any.

A stage that reads a row's maximum or sum waits for it: for the last additions across a vector, for the logarithm of one number. Where rows are short
that is half of their time. Rows of a group don't wait for one another, so that the processor does one row's additions while it waits for another's.
Between the stages the results of reductions lie on the stack, and what the rows read stays in the first-level cache. What is computed for a row
doesn't change.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ...base.expr import Expr, Var, coefficient
from ...base.expr import variables as variables_of
from ..assembly.dtypes import itemsize, stored_type
from ..assembly.instructions import Operand, Type, aggregate
from ..ir.values import HEAVY, Values, loaded_atoms, walk
from .expressions import Expressions
from .loop_code import Loops
from .nests import ids
from .scopes import Scope, Scopes

__all__ = ["RowGroups", "rows_of_group"]

WriteItem = Callable[[str, Any], None]
MOST = 16  # rows of a group
CACHED = 8 << 10  # bytes of a group's rows
NEAR = 1 << 21  # bytes of a buffer from which on it comes from memory
IN_ORDER = (
    2 << 10
)  # bytes of a group's rows that come from there, where little is computed: longer breaks in reading cost more than they gain


def rows_of_group(kernel, items, buffers, values: Values) -> int:
    """How many rows of a kernel make a group; 1: it has none."""
    if kernel.column or kernel.serial or kernel.limits or kernel.threads or not kernel.inner:
        return 1
    length = math.prod(v.extent for v in kernel.inner)
    if type(length) is Expr or len(items) < 2 or not any(n.reduction for n in _loop_nodes(items[:-1])):
        return 1
    last, along = kernel.inner[-1], set(kernel.inner)
    read: dict[tuple, int] = {}
    for n in _nodes(items):
        for v in walk(n.value, *loaded_atoms(n.index)):
            if v.op != "load" or not along & variables_of(v.args[1]):
                continue
            if coefficient(v.args[1], last) not in (0, 1):
                return 1  # what jumps is read better in tiles
            if not kernel.scratch.get(v.args[0]):
                read[v.args] = itemsize(v.dtype)
    far = any(values.hint(buffers[name].size) * item >= NEAR for (name, _), item in read.items())
    heavy = any(v.op in HEAVY for v in walk(*(n.value for n in _nodes(items))))
    most = IN_ORDER if far and not heavy else CACHED
    row = length * (sum(read.values()) + sum(map(itemsize, kernel.scratch.values())))
    rows = MOST
    while rows > 1 and (rows * row > most or 2 * rows > values.hint(math.prod(v.extent for v in kernel.outer))):
        rows //= 2
    return rows if rows >= 4 else 1


def _loop_nodes(items):
    return [n for kind, what in items if kind == "loop" for n in what]


def _nodes(items):
    return [n for kind, what in items for n in (what if kind == "loop" else [what])]


class _Results(NamedTuple):
    """A number for each row of a group, on the stack."""

    room: Operand
    element: Type


class RowGroups:
    """Writes the items of a kernel for ``rows`` rows at a time. ``write_item``: writes one for the row at hand."""

    def __init__(
        self, kernel, rows: int, scopes: Scopes, expressions: Expressions, loops: Loops, write_item: WriteItem
    ):
        self.kernel, self.rows, self.scopes, self.expressions = kernel, rows, scopes, expressions
        self.loops, self.write_item = loops, write_item
        self._kept: dict[str, _Results] = {}  # by the buffers of reductions

    def write(self, items, p: Operand, end: Operand, decompose: Callable[[Scope, Operand], None]) -> None:
        """All items for the rows from ``p`` on, before ``end``. ``decompose``: binds the outer variables of a row."""
        here, row = self.scopes.here, Var(next(ids), self.rows)
        count = here.code.intrinsic("smin", here.code.op("sub", end, p), self.rows)
        rows = dict(self.expressions.addresses.pointers)
        once = self.scopes.once
        for i, (kind, what) in enumerate(items):
            body = self.loops.scope({row, *self.kernel.outer})

            def fill(kind=kind, what=what, body=body, later=items[i + 1 :]) -> None:
                at = body.names[row]
                decompose(body, body.code.op("add", p, at, "nsw"))
                self._point_to_row(body, at, rows)
                self.expressions.bound = self._bound(body, at, [(kind, what)])
                known = set(self.expressions.bound)
                self.write_item(kind, what)
                self._keep(at, known, later)

            self.scopes.once = body
            self.loops.write(here, row, 0, count, 1, body, fill)
        self.scopes.once = once

    def _point_to_row(self, body: Scope, at: Operand, rows: dict[str, Operand]) -> None:
        """What is kept of a row between its stages, for the row at hand."""
        length = math.prod(v.extent for v in self.kernel.inner)
        for name, t in self.kernel.scratch.items():
            begin = body.code.op("mul", at, length)
            self.expressions.addresses.pointers[name] = body.code.place(stored_type(t), rows[name], begin)

    def _bound(self, body: Scope, at: Operand, items) -> dict[str, tuple[Operand, bool]]:
        bound = {}
        for name in _read(items):
            slot = self._kept.get(name)
            if slot is not None:
                bound[name] = body.code.read(slot.element, body.code.place(slot.element, slot.room, at)), False
        return bound

    def _keep(self, at: Operand, known: set[str], later) -> None:
        wanted = _read(later)
        code = self.scopes.here.code
        for name, (made, vector) in self.expressions.bound.items():
            if name in known or name not in wanted:
                continue
            assert not vector, "a row's result is one number"
            slot = self._kept.get(name)
            if slot is None:
                room = self.scopes.names.slot(aggregate(f"[{self.rows} x {made.type.text}]"), "results", 64)
                slot = self._kept[name] = _Results(room, made.type)
            code.write(made, code.place(slot.element, slot.room, at))


def _read(items) -> dict[str, None]:
    """The buffers that items load, in order."""
    loads = walk(*(v for n in _nodes(items) for v in (n.value, *loaded_atoms(n.index))))
    return {v.args[0]: None for v in loads if v.op == "load"}
