"""Memory that a kernel will touch soon, asked for ahead: the processor itself guesses no further than to the end of a page."""

from __future__ import annotations

from ...base.expr import Expr, Var, coefficient, substitute, variable
from ..assembly.builder import Builder
from ..assembly.dtypes import itemsize
from ..assembly.instructions import I8, I32, VOID, Operand, constant
from ..ir.values import Value, Values, loaded_atoms
from ..machine.processor import asks_ahead_for_writes, follows_runs, foresees_sums
from .addressing import Addresses
from .scopes import Lanes, Scopes

__all__ = ["FETCHED", "LINE", "NEXT", "WIDE", "Prefetch", "fetch"]

LINE, PAGE = 64, 4096  # bytes of a line of the cache, of a page
AHEAD = 2048  # bytes between what is read and what is asked for
NEXT = 256  # the same where columns are read, a strip of lines at a time
WIDE = 4 * LINE  # bytes of a strip of columns that nothing is asked ahead for
FETCHED = 1 << 19  # bytes of a buffer that isn't likely to be in a near cache
FAR = 1 << 25  # bytes of a kernel's buffers together that aren't likely to be in any cache


def fetch(b: Builder, place: Operand, write: bool = False) -> None:
    """Ask for the line at an address. What is read is asked into the second-level cache: lines on their way into the first would hold up the loads
    that miss it."""
    how = [constant(I32, n) for n in ((1, 3, 1) if write else (0, 2, 1))]
    b.call(VOID, "@llvm.prefetch.p0", place, *how)


class Prefetch:
    """Of one kernel. ``by_tiles``, ``by_rows``: whether the loops at hand turn a tile of some operand, go through several rows by turns.
    ``by_blocks``: whether columns are read along their lines, which the processor foresees. ``alone``: whether the loops read one run of memory and
    write nothing."""

    def __init__(self, kernel, addresses: Addresses, scopes: Scopes, lanes: Lanes, values: Values):
        self.kernel, self.addresses, self.scopes, self.lanes, self.values = kernel, addresses, scopes, lanes, values
        self.by_tiles = self.by_rows = self.by_blocks = self.alone = False
        self._bytes: int | None = None
        self._asked: set[tuple] = set()  # (buffer, index) of what is asked for ahead

    def forget(self) -> None:
        """What has been asked for is asked for again."""
        self._asked.clear()

    def read(self, buffer: str, ix, b: Builder, t: str, pointer: Operand, step: int = 1) -> None:
        """Ask for what a loop will read soon, once for each run of memory."""
        k, item = self.kernel, itemsize(t)
        if not self._worth(buffer, ix, b, item):
            return
        if k.column:  # a strip of the next columns: more lines are read in turn than the processor foresees
            if k.inner and b.lanes * item < WIDE and not self.by_blocks:
                self._asked.add((buffer, ix))
                self._lines(b, b.place(I8, pointer, NEXT), item)
            return
        if self.lanes.variable not in k.inner:
            return
        if self.by_tiles:  # the same lines of the next tile
            across = coefficient(ix, k.inner[0])
            if type(across) is int and across:
                self._lines(b, b.place(I8, pointer, across * k.inner[0].extent * item), item)
            return
        self._along(buffer, ix, b, item, pointer, step)

    def write(self, buffer: str, ix, b: Builder, t: str, pointer: Operand, step: int = 1) -> None:
        """The same for what a loop will write, on processors that do better with it."""
        k, item = self.kernel, itemsize(t)
        if not self._worth(buffer, ix, b, item) or not asks_ahead_for_writes():
            return
        if k.column or self.lanes.variable not in k.inner or self.by_tiles:
            return
        self._along(buffer, ix, b, item, pointer, step, write=True)

    def _worth(self, buffer: str, ix, b: Builder, item: int) -> bool:
        if self.lanes.mask is not None or buffer in self.kernel.scratch or (buffer, ix) in self._asked:
            return False
        return b.lanes * item >= LINE and self.values.hint(self.addresses.buffers[buffer].size) * item >= FETCHED

    def _touched(self) -> int:
        """Bytes of the kernel's buffers."""
        if self._bytes is None:
            buffers = [self.addresses.buffers[name] for name in self.kernel.args]
            self._bytes = sum(self.values.hint(x.size) * itemsize(x.dtype) for x in buffers)
        return self._bytes

    def _along(self, buffer: str, ix, b: Builder, item: int, pointer: Operand, step: int, write: bool = False) -> None:
        """Rows: at the end of one, for where the next one begins; where they are short, for one that is some turns later."""
        k = self.kernel
        around = k.outer[-1:] if self.by_rows else (*k.outer, *k.inner)[-2:-1]
        extent = self.lanes.along.extent
        goes_on = bool(around) and coefficient(ix, around[0]) == extent * step
        if goes_on or write or not around:
            if self.alone and foresees_sums() or follows_runs() and self._touched() < FAR:
                return
            if not goes_on and self.values.hint(extent) * item < PAGE:
                return
            self._asked.add((buffer, ix))
            self._lines(b, b.place(I8, pointer, AHEAD * step), item, write)
            return
        width = self.values.hint(extent) * item
        if width < 2 * LINE:
            return
        line = self._line_ahead(buffer, ix, step, around[0], max(1, AHEAD // width), b.lanes, item)
        if line is None:
            return
        self._asked.add((buffer, ix))
        here = self.scopes.variable(self.lanes.along)
        if width < PAGE:
            place = b.place(I8, line, b.op("mul", here, item * step))
        else:
            near = b.place(I8, pointer, AHEAD * step)
            past = b.op("add", here, AHEAD // item - extent)
            there = b.place(I8, line, b.op("mul", past, item * step))
            place = b.select(b.cmp("slt", past, 0), near, there)
        self._lines(b, place, item)

    @staticmethod
    def _lines(b: Builder, place: Operand, item: int, write: bool = False) -> None:
        for at in range(0, b.lanes * item, LINE):
            fetch(b, b.place(I8, place, at) if at else place, write)

    def _line_ahead(self, buffer: str, ix, step: int, around: Var, turns: int, lanes: int, item: int) -> Operand | None:
        """Where the loop along the lanes begins some turns of the one around it later. Rows by index: by what is loaded for that turn, unchecked."""
        inner, scopes = self.lanes.along, self.scopes
        if type(around.extent) is Expr or type(inner.extent) is Expr or around.extent == 1:
            return None
        expressions = self.addresses.expressions
        loaded = loaded_atoms(ix)
        if any(expressions.depends(v) or inner in v.variables() for v in loaded) or coefficient(ix, around) == 0:
            return None
        scope = scopes.of({around})
        then = Var(-1 - around.id, around.extent)
        key = ("later", around, turns)
        if key not in scope.cache:
            after = scope.code.op("add", scopes.variable(around), turns, "nsw")
            scope.cache[key] = scope.code.intrinsic("smin", after, around.extent - 1)
        scope.names[then] = scope.cache[key]
        scope.vars.add(then)
        env = {around: variable(then)}

        def atom(v: Value):
            v = self.values.substitute(v, env)
            return v.args[0] if v.op == "checked" else v

        begin = substitute(ix - variable(inner) * step, env, atom)
        position = self.addresses.index(begin + (1 - lanes if step < 0 else 0))
        far = scope.code.op("mul", position, item)
        return scope.code.place(I8, self.addresses.pointers[buffer], far)
