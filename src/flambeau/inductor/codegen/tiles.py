"""Tiles of loops that read across: the part of an operand that a tile needs is transposed into a row of scratch memory first.

A tile is two inner loops, the last of them along the lanes. An operand that jumps along the last loop and is contiguous along the other is read in
square blocks, a vector for each line; stages of exchanges between pairs of vectors (of halves, quarters, ..., single elements; Eklundh 1972)
transpose a block in registers, and from then on the tile's loops read it side by side. However far apart the operand's lines lie (rows a power of two
apart share a few sets of the cache), each is met once, as whole cache lines.
"""

from __future__ import annotations

from collections.abc import Callable

from ...base.expr import Expr, coefficient, variable
from ..assembly.builder import Builder
from ..assembly.code import Code
from ..assembly.dtypes import itemsize, stored_type
from ..assembly.instructions import I8, I16, I32, I64, Operand, Type, aggregate
from ..ir.values import Value, loaded_atoms, walk, weight
from ..machine.processor import holds_lines
from .expressions import Expressions
from .loop_code import Loops
from .nests import ROWS
from .prefetch import FETCHED, LINE, NEXT, fetch
from .scopes import Lanes, Scope, Scopes

__all__ = ["Tiles"]

LITTLE = 8  # weight of what is written sixteen times over, for the vectors of a square
_RAW = {1: I8, 2: I16, 4: I32, 8: I64}


class Tiles:
    """``statements(nodes)``: writes what is done for one element, or one vector of them."""

    def __init__(
        self,
        kernel,
        scopes: Scopes,
        lanes: Lanes,
        expressions: Expressions,
        loops: Loops,
        statements: Callable[[list], None],
    ):
        self.kernel, self.scopes, self.lanes, self.expressions = kernel, scopes, lanes, expressions
        self.loops, self.statements = loops, statements
        self.addresses, self.prefetch = expressions.addresses, expressions.prefetch

    def staged(self, nodes) -> list[Value]:
        """The loads of a tile that are transposed first."""
        k, v = self.kernel, self.lanes.variable
        if v is None or k.column or len(k.inner) != 2 or any(n.reduction or n.combine is not None for n in nodes):
            return []
        across, last = k.inner
        if last is not v or type(last.extent) is Expr or across.extent % 16 or last.extent % 16:
            return []
        produced = self.expressions.produced
        loads = (x for x in walk(*(n.value for n in nodes)) if x.op == "load" and x.args[0] not in produced)
        return [x for x in loads if _reads_across(x.args[1], across, last)]

    # --- several rows -------------------------------------------------------------------------------------------------
    def goes_by_rows(self, nodes) -> bool:
        """Whether the rows of the inner loops are read by turns (``nests``): each lies where a loaded index says."""
        k, v, streamed = self.kernel, self.lanes.variable, self.expressions.access.streamed
        if len(k.inner) != 2 or k.inner[0].extent != ROWS or v is not k.inner[1] or type(v.extent) is Expr or k.limits:
            return False
        if any(n.reduction or n.combine is not None or n.buffer not in streamed for n in nodes):
            return False
        lanes = self.loops.row_lanes
        if v.extent % lanes or lanes == 1 or any(coefficient(n.index, v) != 1 for n in nodes):
            return False
        found = [x for y in walk(*(n.value for n in nodes)) if y.op == "load" for x in loaded_atoms(y.args[1])]
        return bool(found) and not any(v in x.variables() for x in found)

    def move_rows(self, nodes) -> None:
        """A few rows side by side, a vector or two of each in turn."""
        (row, v), lanes, before = self.kernel.inner, self.loops.row_lanes, self.scopes.here
        names = self.scopes.names
        rows = [Scope(names, {row}, before.code.out) for _ in range(row.extent)]
        for i, scope in enumerate(rows):
            scope.names[row] = i

        def fill() -> None:
            loop = self.scopes.open.pop()
            for scope in rows:
                inside = Scope(names, {v}, loop.code.out)
                inside.names.update(loop.names)
                self.prefetch.forget()
                self.scopes.open += [scope, inside]
                self.statements(nodes)
                del self.scopes.open[-2:]
            self.scopes.open.append(loop)

        self.lanes.count = lanes
        self.loops.write(before, v, 0, v.extent, lanes, self.loops.scope({v}), fill)

    # --- transposed through memory ------------------------------------------------------------------------------------
    def stage(self, v: Value) -> None:
        """Write the code that transposes a load's part of the tile."""
        (across, last), item = self.kernel.inner, itemsize(v.dtype)
        raw, side, n = _RAW[item], last.extent, _side(item)
        room = self.scopes.names.slot(aggregate(f"[{across.extent * side} x {raw.text}]"), "tile", 64)
        self.expressions.staged[v] = lambda b: self._load(v, room, b)
        ends = self.loops.end(last), self.loops.end(across)
        aligned = f", align {item}"

        def block(scope: Scope, rows, columns) -> None:
            code = scope.code
            target = _place(code, room, raw, columns, rows, side)
            for i, x in enumerate(self._block(v, code, rows, columns)):
                code.write(x, code.place(raw, target, i * side), aligned)

        def rest(scope: Scope, rows, columns) -> None:
            """The same one by one, as far as the tile goes."""
            code, counts = scope.code, []
            for start, end in zip((rows, columns), ends):
                counts.append(code.intrinsic("smin", code.op("sub", end, start), n))
            one, two = object(), object()
            outside, inside = self.loops.scope({one}), self.loops.scope({two})

            def copy() -> None:
                code = inside.code
                i = code.op("add", rows, outside.names[one])
                j = code.op("add", columns, inside.names[two])
                source, step = self._origin(v)
                source = _place(code, source, raw, i, j, step)
                target = _place(code, room, raw, j, i, side)
                code.write(code.read(raw, source, aligned), target, aligned)

            columns_too = lambda: self.loops.write(outside, two, 0, counts[1], 1, inside, copy)  # noqa: E731
            self.loops.write(scope, one, 0, counts[0], 1, outside, columns_too)

        def blocks() -> None:
            scope = self.scopes.here
            rows, columns = self.scopes.variable(last), self.scopes.variable(across)
            if ends == (side, across.extent):
                block(scope, rows, columns)
                return
            code = scope.code
            below, beside = (
                code.cmp("sle", code.op("add", start, n), end) for start, end in zip((rows, columns), ends)
            )
            whole = code.op("and", below, beside)
            self.loops.either(scope, whole, lambda: block(scope, rows, columns), lambda: rest(scope, rows, columns))

        self._origin(v)
        self._each_block(ends, n, blocks)

    def _load(self, v: Value, room: Operand, b: Builder) -> Operand:
        """A load from the tile, whose lines lie along the lanes."""
        across, last = self.kernel.inner
        line = b.op("mul", self.scopes.variable(across), last.extent, "nsw")
        place = b.op("add", line, self.scopes.variable(last), "nsw")
        pointer = b.place(stored_type(v.dtype), room, place, inbounds=True)
        if self.lanes.mask is None or b.lanes == 1:
            return b.load(v.dtype, pointer)
        return b.load_masked(v.dtype, pointer, self.lanes.mask)

    # --- from registers to where it is stored -------------------------------------------------------------------------
    def moves_squares(self, nodes, found: list[Value]) -> bool:
        """Whether squares of a whole tile may go from registers to where they are stored: one operand is transposed, all is stored in whole
        vectors."""
        if len(found) != 1 or any(n.combine is not None for n in nodes):
            return False
        if weight(walk(*(n.value for n in nodes))) > LITTLE:
            return False
        item = itemsize(found[0].dtype)
        checked = any(x.op == "checked" for n in nodes for x in walk(n.value))
        if _side(item) * item != LINE or not holds_lines() or checked:
            return False
        v = self.lanes.variable
        return all(itemsize(n.value.dtype) == item and coefficient(n.index, v) == 1 for n in nodes)

    def squares(self, nodes, v: Value, otherwise: Callable[[], None]) -> None:
        """A tile whose squares are moved where it is a whole one."""
        whole, scope = self._whole(), self.scopes.here
        if whole is None:
            self._move_squares(nodes, v)
            return
        moved = lambda: self.scopes.apart(scope, lambda: self._move_squares(nodes, v))  # noqa: E731
        self.loops.either(scope, whole, moved, lambda: self.scopes.apart(scope, otherwise))

    def _whole(self) -> Operand | None:
        """Whether the tile at hand is a whole one; None: all are."""
        condition, code = None, self.scopes.here.code
        for v in self.kernel.inner:
            end = self.loops.end(v)
            if end != v.extent:
                full = code.cmp("eq", end, v.extent)
                condition = full if condition is None else code.op("and", condition, full)
        return condition

    def _move_squares(self, nodes, v: Value) -> None:
        """All of a whole tile: squares of ``v`` are transposed, and each of their vectors goes through the nodes to where it is stored."""
        across, last = self.kernel.inner
        n = _side(itemsize(v.dtype))
        count, self.lanes.count = self.lanes.count, n

        def square() -> None:
            scope = self.scopes.here
            rows, columns = self.scopes.variable(last), self.scopes.variable(across)
            memory = self.scopes.builder(n)
            for i, x in enumerate(self._block(v, scope.code, rows, columns)):
                line = Scope(self.scopes.names, {across, last}, scope.code.out)
                line.names[across] = scope.code.op("add", columns, i) if i else columns
                line.names[last] = rows
                x = memory.to("bitcast", x, memory.memory_type(v.dtype))
                line.cache[v] = memory.from_memory(v.dtype, x), True
                self.scopes.inside(line, lambda: self.statements(nodes))

        self._each_block((last.extent, across.extent), n, square)
        self.lanes.count = count

    # --- squares ------------------------------------------------------------------------------------------------------
    def _each_block(self, ends, n: int, fill: Callable[[], None]) -> None:
        """Loops over the squares of a tile, the ones that lie together in the result first."""
        across, last = self.kernel.inner
        lines, elements = self.loops.scope({last}), self.loops.scope({across})
        inner = lambda: self.loops.write(elements, last, 0, ends[0], n, lines, fill)  # noqa: E731
        self.loops.write(self.scopes.here, across, 0, ends[1], n, elements, inner)

    def _origin(self, v: Value) -> tuple[Operand, Operand | int]:
        """Where a load's part of the tile begins, and how far its lines lie apart."""
        (across, last), (buffer, ix) = self.kernel.inner, v.args
        step, scope, addresses = coefficient(ix, last), self.scopes.once, self.addresses
        key = ("origin", v)
        if key not in scope.cache:
            first = addresses.index(ix - variable(across) - variable(last) * step)
            scope.cache[key] = addresses.pointer(buffer, first, scope.code)
        return scope.cache[key], addresses.size(step)

    def _block(self, v: Value, code: Code, rows, columns) -> list[Operand]:
        """Lines ``rows`` to ``rows + n`` of the operand, elements ``columns`` to ``columns + n``: vectors of n, transposed."""
        item, size = itemsize(v.dtype), self.addresses.buffers[v.args[0]].size
        raw, n = _RAW[item], _side(item)
        origin, step = self._origin(v)
        b = Builder(code.names, n, code.out)
        source = _place(code, origin, raw, rows, columns, step)
        ahead = type(size) is not Expr and size * item >= FETCHED
        vectors: list[Operand] = []
        for i in range(n):
            place = code.place(raw, source, code.op("mul", step, i) if i else 0)
            vectors.append(code.read(raw.vector(n), place, f", align {item}"))
            if ahead:
                fetch(b, code.place(I8, place, NEXT))
        return _transposed(b, vectors)


def _reads_across(ix, across, last) -> bool:
    step = coefficient(ix, last)
    if step is None or (type(step) is not Expr and step in (0, 1)) or coefficient(ix, across) != 1:
        return False
    return not any({across, last} & v.variables() for v in loaded_atoms(ix))


def _place(code: Code, pointer: Operand, raw: Type, row, column, width) -> Operand:
    return code.place(raw, pointer, code.op("add", code.op("mul", row, width), column))


def _side(item: int) -> int:
    """Elements of a side of the squares that are transposed in registers."""
    return 8 if item == 8 else 16


def _transposed(b: Builder, rows: list[Operand]) -> list[Operand]:
    """A square of vectors, transposed."""
    n = len(rows)
    half = n // 2
    while half:
        low = [n + (j & ~half) if j & half else j for j in range(n)]
        high = [n + j if j & half else j | half for j in range(n)]
        out = list(rows)
        for i in range(n):
            if not i & half:
                x, y = rows[i], rows[i | half]
                out[i], out[i | half] = b.shuffle(x, low, y), b.shuffle(x, high, y)
        rows, half = out, half // 2
    return rows
