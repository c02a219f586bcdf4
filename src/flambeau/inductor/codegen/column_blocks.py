"""Reductions of columns, a block of columns at a time.

A strip of two cache lines visits a page for each row, and a core has few of those lines on their way. Here some rows are read side by side, each
along its line, as a processor foresees it; what has been found of the block's columns lies on the stack, in the first-level cache. Each column is
still reduced one row after the other, so that no bit changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...base.expr import Expr, coefficient
from ...base.expr import variables as variables_of
from ..assembly.dtypes import compute_type, itemsize
from ..assembly.instructions import Operand, aggregate
from ..ir.values import Values, loaded_atoms, walk, weight
from .accumulators import PLACES, Accumulators
from .expressions import Expressions
from .loop_code import Loops
from .scopes import Lanes, Scope, Scopes

__all__ = ["ColumnBlocks", "columns_of_block"]

ROWS = 8  # that are read side by side
SUMS = 4 << 10, 2 << 10  # bytes of a block's results: at most, and at least where there are few blocks
FEW = 4  # blocks
NARROW = 4  # vectors of columns that blocks are for
LARGE = 1 << 18  # bytes of an operand that blocks are for
LITTLE = 16  # weight of what is done for an element: it is written out for each of the rows


def columns_of_block(kernel, items, buffers, values: Values, lanes: int) -> int:
    """The columns of a block, 0 where a kernel isn't made so."""
    if not kernel.column or kernel.serial or kernel.threads or len(kernel.inner) != 1 or lanes < 8:
        return 0
    (kind, nodes), *rest = items
    if kind != "loop" or any(kind == "loop" for kind, _ in rest) or any(n.combine in PLACES for n in nodes):
        return 0
    (row,), last = kernel.inner, kernel.outer[-1]
    if type(last.extent) is Expr or type(row.extent) is Expr or row.extent < 2 * ROWS or kernel.scratch:
        return 0
    parts = walk(*(n.value for n in nodes))
    loads = [v for v in parts if v.op == "load" and row in variables_of(v.args[1])]
    if weight(parts) > LITTLE * len(nodes) or any(loaded_atoms(v.args[1]) for v in loads):
        return 0
    # Beside what lies along the columns there may be numbers of the rows, one for all columns: means and scales of a normalisation.
    loads = [v for v in loads if last in variables_of(v.args[1])]
    if not loads or any(coefficient(v.args[1], last) != 1 for v in loads):
        return 0
    if not any(values.hint(buffers[v.args[0]].size) * itemsize(v.dtype) >= LARGE for v in loads):
        return 0
    each = len(nodes) * max(itemsize(compute_type(n.value.dtype)) for n in nodes)
    most, least = (nbytes // each // lanes * lanes for nbytes in SUMS)
    if least < lanes or last.extent < NARROW * lanes:
        return 0
    around = values.hint(math.prod(v.extent for v in kernel.outer[:-1]))
    wanted = last.extent * min(around, FEW) // FEW // lanes * lanes
    return min(most, max(least, wanted), -(-last.extent // lanes) * lanes)


class ColumnBlocks:
    """Writes such a kernel. ``bind``: makes the result of a reduction known; ``write_item``: writes what follows from the results."""

    def __init__(
        self,
        kernel,
        scopes: Scopes,
        lanes: Lanes,
        expressions: Expressions,
        loops: Loops,
        accumulators: Accumulators,
        bind: Callable[[Any, Operand, bool], None],
        write_item: Callable[[str, Any], None],
    ):
        self.kernel, self.scopes, self.lanes, self.expressions = kernel, scopes, lanes, expressions
        self.loops, self.accumulators, self.bind, self.write_item = loops, accumulators, bind, write_item

    def write(self, items, base: Operand | int, columns: int) -> None:
        """The items for the columns from ``base`` on, ``columns`` of them or as many as there are."""
        (_, nodes), *rest = items
        self.expressions.prefetch.by_blocks = True
        here, last, most = self.scopes.here, self.kernel.outer[-1], self.loops.row_lanes
        code = here.code
        sums = {id(n): self._room(n, columns) for n in nodes}
        # Ends of the columns that whole vectors take, and of all.
        whole: Operand | int
        end: Operand | int
        if last.extent % columns == 0:
            whole = end = code.op("add", base, columns)
        else:
            end = code.intrinsic("smin", code.op("add", base, columns), last.extent)
            left = code.op("sub", end, base)
            whole = end if last.extent % most == 0 else code.op("add", base, code.op("and", left, -most))
        pieces = [(base, whole, most)] + ([(whole, end, 1)] if last.extent % most else [])
        for begin, stop, lanes in pieces:
            for n in nodes:
                self.accumulators.open(n, lanes)
            self._along(begin, stop, lanes, lambda lanes=lanes: self._empty(nodes, sums, base, lanes))
        row = self.kernel.inner[0]
        count = self.loops.end(row)
        turns = code.op("and", count, -ROWS) if isinstance(count, Operand) else count // ROWS * ROWS
        for start, stop, together in ((0, turns, ROWS), (turns, count, 1)):
            if start is stop or (type(start) is int and start == stop):
                continue
            body = self.loops.scope({row})
            self.loops.write(
                here,
                row,
                start,
                stop,
                together,
                body,
                lambda n=together, body=body: self._rows(nodes, sums, base, pieces, n, body),
            )
        for begin, stop, lanes in pieces:
            self._along(begin, stop, lanes, lambda lanes=lanes: self._results(nodes, rest, sums, base, lanes))

    def _room(self, node, columns: int) -> tuple[Operand, Any]:
        b = self.scopes.builder(1)
        t = b.ty(compute_type(node.value.dtype))
        return self.scopes.names.slot(aggregate(f"[{columns} x {t.text}]"), "sums", 64), t

    def _along(self, begin, stop, lanes: int, fill: Callable[[], None]) -> None:
        """A loop along the columns, a vector at a time."""
        last = self.kernel.outer[-1]
        self.lanes.count = lanes
        self.loops.write(self.scopes.here, last, begin, stop, lanes, Scope(self.scopes.names, {last}), fill)

    def _place(self, sums, node, base) -> Operand:
        """Where the sums of the columns at hand lie."""
        room, t = sums[id(node)]
        code = self.scopes.here.code
        return code.place(t, room, code.op("sub", self.scopes.variable(self.kernel.outer[-1]), base))

    def _empty(self, nodes, sums, base, lanes: int) -> None:
        for n in nodes:
            self._keep(n, sums, base, lanes)

    def _keep(self, node, sums, base, lanes: int) -> None:
        self.accumulators.keep(node, lanes, self._place(sums, node, base))

    def _take(self, node, sums, base, lanes: int) -> None:
        self.accumulators.resume(node, lanes, self._place(sums, node, base))

    def _rows(self, nodes, sums, base, pieces, together: int, body: Scope) -> None:
        """Some rows, a vector of each in turn."""
        names, row = self.scopes.names, self.kernel.inner[0]
        last = self.kernel.outer[-1]
        here = self.scopes.here
        rows = [Scope(names, {row}, here.code.out) for _ in range(together)]
        for i, scope in enumerate(rows):
            scope.names[row] = here.code.op("add", body.names[row], i, "nsw") if i else body.names[row]
        for begin, stop, lanes in pieces:

            def fill(lanes=lanes) -> None:
                loop = self.scopes.open[-1]
                for n in nodes:
                    self._take(n, sums, base, lanes)
                self.scopes.open.pop()
                for scope in rows:
                    inside = Scope(names, {last}, loop.code.out)
                    inside.names.update(loop.names)
                    self.expressions.prefetch.forget()
                    self.scopes.open += [scope, inside]
                    for n in nodes:
                        self.accumulators.add(n)
                    del self.scopes.open[-2:]
                self.scopes.open.append(loop)
                for n in nodes:
                    self._keep(n, sums, base, lanes)

            self._along(begin, stop, lanes, fill)

    def _results(self, nodes, rest, sums, base, lanes: int) -> None:
        once, self.scopes.once = self.scopes.once, self.scopes.here
        self.expressions.bound = {}
        for n in nodes:
            self._take(n, sums, base, lanes)
            self.bind(n, *self.accumulators.close(n, [lanes]))
        for kind, what in rest:
            self.write_item(kind, what)
        self.scopes.once = once
