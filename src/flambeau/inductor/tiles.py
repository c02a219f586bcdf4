"""Tiles of loops that read across: the part of an operand that a tile needs is transposed into a row of scratch memory first.

A tile is two inner loops, the last of them along the lanes. An operand that jumps along the last loop and is contiguous along the other is read in
square blocks, a vector for each line; stages of exchanges between pairs of vectors (of halves, quarters, ..., single elements; Eklundh 1972)
transpose a block in registers, and from then on the tile's loops read it side by side. However far apart the operand's lines lie (rows a power of two
apart share a few sets of the cache), each is met once, as whole cache lines.
"""

from __future__ import annotations

from ..base.expr import Expr, coefficient, variable
from .addressing import FETCHED, LINE, NEXT, Addressing, Scope
from .builder import Builder, itemsize
from .nests import ROWS
from .processor import holds_lines
from .values import Value, loaded_atoms, walk, weight

__all__ = ["Tiles"]

LITTLE = 8  # weight of what is written sixteen times over, for the vectors of a square
_RAW = {1: "i8", 2: "i16", 4: "i32", 8: "i64"}


class Tiles(Addressing):
    """Part of the kernel writer. ``staged``: load -> pointer to its part of the tile at hand, turned."""

    def find_staged(self, nodes) -> list[Value]:
        """The loads of a tile that are turned first."""
        k = self.k
        if self.vv is None or k.column or len(k.inner) != 2 or any(n.reduction or n.combine is not None for n in nodes):
            return []
        across, last = k.inner
        if last is not self.vv or type(last.extent) is Expr or across.extent % 16 or last.extent % 16:
            return []
        loads = (v for v in walk(*(n.value for n in nodes)) if v.op == "load" and v.args[0] not in self.produced)
        found = [v for v in loads if self._turns(v.args[1], across, last)]
        return found

    def _turns(self, ix, across, last) -> bool:
        step = coefficient(ix, last)
        if step is None or (type(step) is not Expr and step in (0, 1)) or coefficient(ix, across) != 1:
            return False
        return not any({across, last} & v.variables() for v in loaded_atoms(ix))

    def goes_by_rows(self, nodes) -> bool:
        """Whether the rows of the inner loops are read by turns (``nests``): each lies where a loaded index says."""
        k = self.k
        if (
            len(k.inner) != 2
            or k.inner[0].extent != ROWS
            or self.vv is not k.inner[1]
            or type(self.vv.extent) is Expr
            or k.limits
        ):
            return False
        if any(n.reduction or n.combine is not None or n.buffer not in self.streamed for n in nodes):
            return False
        if (
            self.vv.extent % self.row_lanes
            or self.row_lanes == 1
            or any(coefficient(n.index, self.vv) != 1 for n in nodes)
        ):
            return False
        found = [x for v in walk(*(n.value for n in nodes)) if v.op == "load" for x in loaded_atoms(v.args[1])]
        return bool(found) and not any(self.vv in x.variables() for x in found)

    def move_rows(self, nodes) -> None:
        """A few rows side by side, a vector or two of each in turn."""
        (row, v), lanes, before = self.k.inner, self.row_lanes, self.scopes[-1]
        rows = [Scope(before.lines, {row}) for _ in range(row.extent)]
        for i, scope in enumerate(rows):
            scope.names[row] = str(i)
        body = Scope([], {v})

        def fill():
            loop = self.scopes.pop()
            for scope in rows:
                inside = Scope(loop.lines, {v})
                inside.names.update(loop.names)
                self.scopes += [scope, inside]
                self.fetched.clear()
                self._statements(nodes, {})
                del self.scopes[-2:]
            self.scopes.append(loop)

        self.lanes = lanes
        self._loop_text(before, v, "0", str(v.extent), lanes, body, fill)

    def whole_tile(self) -> str | None:
        """Whether the tile at hand is a whole one; None: all are."""
        condition, scope = None, self.scopes[-1]
        for v in self.k.inner:
            end = self._end(v)
            if end != str(v.extent):
                full = self._line(scope, f"icmp eq i64 {end}, {v.extent}")
                condition = full if condition is None else self._line(scope, f"and i1 {condition}, {full}")
        return condition

    def stage(self, v: Value) -> None:
        """Write the code that turns a load's part of the tile."""
        (across, last), item = self.k.inner, itemsize(v.dtype)
        raw, side, n = _RAW[item], last.extent, _side(item)
        room = self.names.fresh("tile")
        self.names.entry.append(f"{room} = alloca [{across.extent * side} x {raw}], align 64")
        self.staged[v] = room
        ends = self._end(last), self._end(across)

        def block(scope, rows, columns):
            target = self._place(scope, room, raw, columns, rows, side)
            for i, x in enumerate(self._block(v, scope, rows, columns)):
                place = self._line(scope, f"getelementptr {raw}, ptr {target}, i64 {i * side}")
                scope.lines.append(f"store <{n} x {raw}> {x}, ptr {place}, align {item}")

        def rest(scope, rows, columns):
            """The same one by one, as far as the tile goes."""
            starts, counts = (rows, columns), []
            for start, end in zip(starts, ends):
                left = self._line(scope, f"sub i64 {end}, {start}")
                counts.append(self._line(scope, f"call i64 @llvm.smin.i64(i64 {left}, i64 {n})"))
            one, two = object(), object()
            outside, inside = Scope([], {one}), Scope([], {two})

            def copy():
                i = self._line(inside, f"add i64 {rows}, {outside.names[one]}")
                j = self._line(inside, f"add i64 {columns}, {inside.names[two]}")
                source, step = self._origin(v)
                source = self._place(inside, source, raw, i, j, step)
                target = self._place(inside, room, raw, j, i, side)
                x = self._line(inside, f"load {raw}, ptr {source}, align {item}")
                inside.lines.append(f"store {raw} {x}, ptr {target}, align {item}")

            columns_too = lambda: self._loop_text(outside, two, "0", counts[1], 1, inside, copy)  # noqa: E731
            self._loop_text(scope, one, "0", counts[0], 1, outside, columns_too)

        def blocks():
            scope = self.scopes[-1]
            rows, columns = self._variable(last), self._variable(across)
            if ends == (str(side), str(across.extent)):
                block(scope, rows, columns)
                return
            whole = None
            for start, end in zip((rows, columns), ends):
                stop = self._line(scope, f"add i64 {start}, {n}")
                fits = self._line(scope, f"icmp sle i64 {stop}, {end}")
                whole = fits if whole is None else self._line(scope, f"and i1 {whole}, {fits}")
            self._branch(scope, whole, lambda: block(scope, rows, columns), lambda: rest(scope, rows, columns))

        self._origin(v)
        self._each_block(ends, n, blocks)

    def moves_squares(self, nodes, found) -> bool:
        """Whether squares of a whole tile may go from registers to where they are stored: one operand is turned, all is stored in whole
        vectors."""
        if (
            len(found) != 1
            or any(n.combine is not None for n in nodes)
            or weight(walk(*(n.value for n in nodes))) > LITTLE
        ):
            return False
        item = itemsize(found[0].dtype)
        if (
            _side(item) * item != LINE
            or not holds_lines()
            or any(x.op == "checked" for n in nodes for x in walk(n.value))
        ):
            return False
        return all(itemsize(n.value.dtype) == item and coefficient(n.index, self.vv) == 1 for n in nodes)

    def squares(self, nodes, v: Value, loops) -> None:
        """A tile whose squares are moved where it is a whole one; ``loops`` writes what is done otherwise."""
        whole, scope = self.whole_tile(), self.scopes[-1]
        if whole is None:
            self.move_squares(nodes, v)
            return
        moved = lambda: self._apart(scope, lambda: self.move_squares(nodes, v))  # noqa: E731
        self._branch(scope, whole, moved, lambda: self._apart(scope, loops))

    def move_squares(self, nodes, v: Value) -> None:
        """All of a whole tile: squares of ``v`` are turned, and each of their vectors goes through the nodes to where it is stored."""
        across, last = self.k.inner
        n = _side(itemsize(v.dtype))
        lanes, self.lanes = self.lanes, n

        def square():
            scope = self.scopes[-1]
            rows, columns = self._variable(last), self._variable(across)
            for i, x in enumerate(self._block(v, scope, rows, columns)):
                line = Scope(scope.lines, {across, last})
                line.names[across] = self._line(scope, f"add i64 {columns}, {i}") if i else columns
                line.names[last] = rows
                memory = Builder(self.names, n, scope.lines)
                x = memory.emit(f"bitcast <{n} x {_RAW[itemsize(v.dtype)]}> {x} to {memory.memory_type(v.dtype)}")
                line.cache[v] = memory.from_memory(v.dtype, x), True
                self.scopes.append(line)
                self._statements(nodes, {})
                self.scopes.pop()

        self._each_block((str(last.extent), str(across.extent)), n, square)
        self.lanes = lanes

    def _each_block(self, ends, n, fill) -> None:
        """Loops over the squares of a tile, the ones that lie together in the result first."""
        across, last = self.k.inner
        lines, elements = Scope([], {last}), Scope([], {across})
        inner = lambda: self._loop_text(elements, last, "0", ends[0], n, lines, fill)  # noqa: E731
        self._loop_text(self.scopes[-1], across, "0", ends[1], n, elements, inner)

    def _branch(self, scope, condition, then, otherwise) -> None:
        yes, no, join = (self.names.fresh(x) for x in ("block", "part", "joined"))
        scope.lines += [f"br i1 {condition}, label {yes}, label {no}", f"{yes[1:]}:"]
        then()
        scope.lines += [f"br label {join}", f"{no[1:]}:"]
        otherwise()
        scope.lines += [f"br label {join}", f"{join[1:]}:"]

    def _place(self, scope, pointer, raw, row, column, width) -> str:
        place = self._line(scope, f"add i64 {self._line(scope, f'mul i64 {row}, {width}')}, {column}")
        return self._line(scope, f"getelementptr {raw}, ptr {pointer}, i64 {place}")

    def _origin(self, v: Value) -> tuple[str, str]:
        """Where a load's part of the tile begins, and how far its lines lie apart."""
        (across, last), (buffer, ix) = self.k.inner, v.args
        step, scope = coefficient(ix, last), self.once
        key = ("origin", v)
        if key not in scope.cache:
            scope.cache[key] = self._pointer(buffer, self._index(ix - variable(across) - variable(last) * step), scope)
        return scope.cache[key], self.size(step)

    def _block(self, v: Value, scope, rows, columns) -> list[str]:
        """Lines ``rows`` to ``rows + n`` of the operand, elements ``columns`` to ``columns + n``: vectors of n, turned."""
        item, buffer = itemsize(v.dtype), v.args[0]
        raw, n = _RAW[item], _side(item)
        origin, step = self._origin(v)
        b = Builder(self.names, n, scope.lines)
        source = self._place(scope, origin, raw, rows, columns, step)
        ahead = type(self.buffers[buffer].size) is not Expr and self.buffers[buffer].size * item >= FETCHED
        vectors = []
        for i in range(n):
            line = self._line(scope, f"mul i64 {step}, {i}") if i else "0"
            place = self._line(scope, f"getelementptr {raw}, ptr {source}, i64 {line}")
            vectors.append(b.emit(f"load <{n} x {raw}>, ptr {place}, align {item}"))
            if ahead:
                place = self._line(scope, f"getelementptr i8, ptr {place}, i64 {NEXT}")
                b.out.append(f"call void @llvm.prefetch.p0(ptr {place}, i32 0, i32 2, i32 1)")
        return _transposed(b, raw, vectors)

    def load_staged(self, v: Value, b: Builder) -> str:
        """A load from the tile, whose lines lie along the lanes."""
        across, last = self.k.inner
        scope = Scope(b.out)
        line = self._line(scope, f"mul nsw i64 {self._variable(across)}, {last.extent}")
        place = self._line(scope, f"add nsw i64 {line}, {self._variable(last)}")
        element = Builder(self.names, 1, []).memory_type(v.dtype)
        pointer = self._line(scope, f"getelementptr inbounds {element}, ptr {self.staged[v]}, i64 {place}")
        if self.mask is None or b.lanes == 1:
            return b.load(v.dtype, pointer)
        return b.load_masked(v.dtype, pointer, self.mask)


def _side(item: int) -> int:
    """Elements of a side of the squares that are turned in registers."""
    return 8 if item == 8 else 16


def _transposed(b: Builder, raw: str, rows: list[str]) -> list[str]:
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
                for k, lanes in ((i, low), (i | half, high)):
                    mask = ", ".join(f"i32 {lane}" for lane in lanes)
                    out[k] = b.emit(f"shufflevector <{n} x {raw}> {x}, <{n} x {raw}> {y}, <{n} x i32> <{mask}>")
        rows, half = out, half // 2
    return rows
