"""Tiles of loops that read across: the part of an operand that a tile needs is transposed into a row of scratch memory first.

A tile is two inner loops, the last of them along the lanes. An operand that jumps along the last loop and is contiguous along the other is read in
square blocks, a vector for each line; stages of exchanges between pairs of vectors (of halves, quarters, ..., single elements; Eklundh 1972)
transpose a block in registers, and from then on the tile's loops read it side by side. However far apart the operand's lines lie (rows a power of two
apart share a few sets of the cache), each is met once, as whole cache lines.
"""

from __future__ import annotations

from ..base.expr import Expr, coefficient, variable
from .addressing import FETCHED, Addressing, Scope
from .builder import Builder, itemsize
from .values import Value, loaded_atoms, walk

__all__ = ["Tiles"]

_RAW = {1: "i8", 2: "i16", 4: "i32", 8: "i64"}


class Tiles(Addressing):
    """Part of the kernel writer. ``staged``: load -> pointer to its part of the tile at hand, turned."""

    def find_staged(self, nodes) -> list[Value]:
        """The loads of a tile that are turned first."""
        k = self.k
        if self.vv is None or k.column or len(k.inner) != 2 or any(n.reduction or n.combine is not None for n in nodes):
            return []
        across, last = k.inner
        if last is not self.vv or type(last.extent) is Expr or across.extent != last.extent or last.extent % 16:
            return []
        loads = (v for v in walk(*(n.value for n in nodes)) if v.op == "load" and v.args[0] not in self.produced)
        found = [v for v in loads if self._turns(v.args[1], across, last)]
        return found

    def _turns(self, ix, across, last) -> bool:
        step = coefficient(ix, last)
        if step is None or (type(step) is not Expr and step in (0, 1)) or coefficient(ix, across) != 1:
            return False
        return not any({across, last} & v.variables() for v in loaded_atoms(ix))

    def stage(self, v: Value) -> None:
        """Write the code that turns a load's part of the tile."""
        (across, last), (buffer, ix) = self.k.inner, v.args
        side, item = last.extent, itemsize(v.dtype)
        raw, n = _RAW[item], 8 if item == 8 else 16
        room = self.names.fresh("tile")
        self.names.entry.append(f"{room} = alloca [{side * side} x {raw}], align 64")
        self.staged[v] = room
        step = coefficient(ix, last)
        origin = self._pointer(buffer, self._index(ix - variable(across) - variable(last) * step), self.scopes[-1])
        step = self.size(step)
        ends = self._end(last), self._end(across)

        def at(scope, pointer, row, column, width):
            place = self._line(scope, f"add i64 {self._line(scope, f'mul i64 {row}, {width}')}, {column}")
            return self._line(scope, f"getelementptr {raw}, ptr {pointer}, i64 {place}")

        def block(scope, rows, columns):
            """Lines rows to rows + n of the operand, elements columns to columns + n."""
            b = Builder(self.names, n, scope.lines)
            source, target = at(scope, origin, rows, columns, step), at(scope, room, columns, rows, side)
            ahead = type(self.buffers[buffer].size) is not Expr and self.buffers[buffer].size * item >= FETCHED
            vectors = []
            for i in range(n):
                line = self._line(scope, f"mul i64 {step}, {i}") if i else "0"
                place = self._line(scope, f"getelementptr {raw}, ptr {source}, i64 {line}")
                vectors.append(b.emit(f"load <{n} x {raw}>, ptr {place}, align {item}"))
                if ahead:
                    place = self._line(scope, f"getelementptr {raw}, ptr {place}, i64 {side}")
                    b.out.append(f"call void @llvm.prefetch.p0(ptr {place}, i32 0, i32 2, i32 1)")
            for i, x in enumerate(_transposed(b, raw, vectors)):
                place = self._line(scope, f"getelementptr {raw}, ptr {target}, i64 {i * side}")
                b.out.append(f"store <{n} x {raw}> {x}, ptr {place}, align {item}")

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
                source, target = at(inside, origin, i, j, step), at(inside, room, j, i, side)
                x = self._line(inside, f"load {raw}, ptr {source}, align {item}")
                inside.lines.append(f"store {raw} {x}, ptr {target}, align {item}")

            columns_too = lambda: self._loop_text(outside, two, "0", counts[1], 1, inside, copy)  # noqa: E731
            self._loop_text(scope, one, "0", counts[0], 1, outside, columns_too)

        def blocks():
            scope = self.scopes[-1]
            rows, columns = self._variable(last), self._variable(across)
            if ends == (str(side), str(side)):
                block(scope, rows, columns)
                return
            whole = None
            for start, end in zip((rows, columns), ends):
                stop = self._line(scope, f"add i64 {start}, {n}")
                fits = self._line(scope, f"icmp sle i64 {stop}, {end}")
                whole = fits if whole is None else self._line(scope, f"and i1 {whole}, {fits}")
            yes, no, join = (self.names.fresh(x) for x in ("block", "part", "joined"))
            scope.lines += [f"br i1 {whole}, label {yes}, label {no}", f"{yes[1:]}:"]
            block(scope, rows, columns)
            scope.lines += [f"br label {join}", f"{no[1:]}:"]
            rest(scope, rows, columns)
            scope.lines += [f"br label {join}", f"{join[1:]}:"]

        lines, elements = Scope([], {last}), Scope([], {across})
        inner = lambda: self._loop_text(lines, across, "0", ends[1], n, elements, blocks)  # noqa: E731
        self._loop_text(self.scopes[-1], last, "0", ends[0], n, lines, inner)

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
