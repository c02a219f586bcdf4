"""From a fused kernel to instructions for a device of threads.

Without a reduction a thread makes an element. With one there are two ways: a thread makes a whole row, where rows are short or neighbouring threads
read neighbouring elements; else a block does: its threads take elements by turns, and what they have is combined by shuffles within a warp, then
through shared memory, always in the same order. Every thread of the block knows the result.
"""

from __future__ import annotations

import math
import re

from ...base.expr import Expr, Var, floordiv
from ..assembly.builder import Builder
from ..assembly.code import Code
from ..assembly.dtypes import compute_type
from ..assembly.instructions import I32, I64, Instruction, Operand, integer
from ..assembly.instructions import label as named
from ..ir.nodes import Buffer
from ..ir.values import Values
from .accumulators import better
from .kernel import Kernel, _Writer
from .nests import ids
from .scalar_ops import emit_scalar
from .scopes import Scope
from .targets import WARP, Target

__all__ = ["MOST_NARROW", "blocks_of", "counts_of", "widened", "write_threads"]

BLOCK = 256  # threads, of kernels whose threads know nothing of each other
SHORT = 16  # elements of a row that one thread makes
MOST_NARROW = 2**31 - 1  # the greatest number of a kernel with indices of 32 bits: its threads, its sizes
_SLOT = 8  # bytes of a value in shared memory


def write_threads(kernel: Kernel, buffers: dict[str, Buffer], values: Values, target: Target) -> None:
    """Fill in ``text`` (with the name ``KERNEL`` still to be replaced), ``total`` (threads, or rows), ``threads``, ``by_rows`` and ``shared``."""
    kernel.threads, kernel.by_rows = _schedule(kernel, values)
    kernel.column = False
    _ThreadWriter(kernel, buffers, values, target).run()


def blocks_of(kernel: Kernel):
    """How many blocks a launch has."""
    return kernel.total if kernel.by_rows else floordiv(kernel.total + (kernel.threads - 1), kernel.threads)


def counts_of(kernel: Kernel) -> tuple:
    """What a kernel counts up to: its rows or elements, and the elements of a row."""
    return math.prod(v.extent for v in kernel.outer), math.prod(v.extent for v in kernel.inner)


def widened(text: str) -> str:
    """The kernel for numbers of any size: that of a text whose threads and sizes are said to have 32 bits."""
    return re.sub(r"(%narrow\d+ = and i64 [^,]+), \d+", r"\1, -1", text)


def _narrow(x: Operand, code: Code) -> Operand:
    """A number that is said to have 32 bits: LLVM then divides with fewer. (``widened`` takes it back.)"""
    return code.emit("and", x.type, (x, integer(2**32 - 1)), prefix="narrow")


def _schedule(kernel: Kernel, values: Values) -> tuple[int, bool]:
    """Threads of a block, and whether it makes a row."""
    length = values.hint(math.prod(v.extent for v in kernel.inner))
    if kernel.serial or not kernel.inner or length <= SHORT:
        return BLOCK, False
    if kernel.column and values.hint(math.prod(v.extent for v in kernel.outer)) >= WARP:
        return BLOCK, False
    return (WARP if length <= 8 * WARP else 4 * WARP if length <= 1024 else BLOCK), True


class _ThreadWriter(_Writer):
    """Writes one kernel, an element at a time."""

    def __init__(self, kernel: Kernel, buffers: dict[str, Buffer], values: Values, target: Target):
        self.target = target
        super().__init__(kernel, buffers, values, frozenset())
        self.loops.opaque = False
        self.narrow = all(type(n) is Expr or n <= MOST_NARROW for n in counts_of(kernel))
        if self.narrow:
            self.addresses.narrow = _narrow

    def _along(self) -> Var | None:
        return None

    def run(self) -> None:
        k, entry = self.kernel, self.scopes.entry.code
        scope = Scope(self.names, k.outer)
        self.scopes.open.append(scope)
        self.scopes.once = scope
        k.total = math.prod(v.extent for v in k.outer)
        self.block, self.thread = self.target.block(entry), self.target.thread(entry)
        p = self.block if k.by_rows else entry.op("add", entry.op("mul", self.block, k.threads), self.thread)
        if self.narrow:
            p = _narrow(p, entry)
        self._decompose(scope, k.outer, p)
        self._items()
        body = self._whole(p, scope.code.out)
        pointers = [(self.addresses.pointers[name], self.buffers[name].dtype) for name in k.args]
        k.text = f"; {self.target.name}\n" + self.target.text(k, body, self.names, pointers)

    def _whole(self, p: Operand, each: list[Instruction]) -> list[Instruction]:
        """The function's body. ``each``: what is done for one thread, or for a thread of one row."""
        total = self.addresses.size(self.kernel.total)
        code, names = Code(self.names, []), self.names
        code.label(named("entry"))
        code.out += names.entry
        code.out += self.scopes.entry.code.out
        inside, leave = named("each"), named("exit")
        if self.kernel.by_rows:  # there are as many blocks
            code.jump(inside)
        else:
            code.branch(code.cmp("slt", p, total), inside, leave)
        code.label(inside)
        code.out += each
        code.jump(leave)
        code.label(leave)
        code.do("ret", flags="void")
        return code.out

    # --- loops --------------------------------------------------------------------------------------------------------
    def _nest(self, nodes) -> None:
        if not self.kernel.by_rows:
            self._loops(nodes, [])
            return
        reductions = [n for n in nodes if n.reduction]
        for node in reductions:
            self.accumulators.open(node, 1)
        self._by_turns(nodes)
        for node in reductions:
            value, place = self._combined(node, *self.accumulators.partial(node))
            self._bind(node, value if place is None else place, False)

    def _by_turns(self, nodes) -> None:
        """One loop over the elements of the row, of which this thread takes every so-manieth."""
        inner, here = self.kernel.inner, self.scopes.here
        first, *rest = inner
        row, end = math.prod(v.extent for v in inner), self.loops.end(first)
        if first in self.kernel.limits:  # it is the outermost
            inside = self.addresses.size(math.prod(v.extent for v in rest))
            end = here.code.op("mul", end, inside) if rest else end
        else:
            end = self.addresses.size(row)
        body = self.loops.scope(set(inner))
        at = Var(next(ids), row)

        def fill():
            if self.narrow:
                body.names[at] = _narrow(body.names[at], body.code)
            self._decompose(body, inner, body.names[at])
            self._statements(nodes)

        self.loops.write(here, at, self.thread, end, self.kernel.threads, body, fill)

    # --- reductions across threads ------------------------------------------------------------------------------------
    def _combined(self, node, value: Operand, place: Operand | None) -> tuple[Operand, Operand | None]:
        """What all threads of the block have together."""
        b, t, k = self.scopes.builder(1), compute_type(node.value.dtype), self.kernel
        mask = WARP // 2
        while mask:
            other = self._exchange(b, value, mask)
            there = None if place is None else self._exchange(b, place, mask)
            value, place = _both(b, node.combine, t, (value, place), (other, there))
            mask //= 2
        warps = k.threads // WARP
        if warps == 1:
            return value, place
        begin, k.shared = k.shared, k.shared + _SLOT * warps * (1 if place is None else 2)
        parts = [(begin, value)] + ([] if place is None else [(begin + _SLOT * warps, place)])
        self._publish(b, parts)
        self.target.barrier(b)
        made: tuple[Operand, Operand | None] | None = None
        for w in range(warps):
            found = [b.read(x.type, self.target.shared(b, at + _SLOT * w)) for at, x in parts]
            one = (found[0], found[1] if place is not None else None)
            made = one if made is None else _both(b, node.combine, t, made, one)
        assert made is not None
        return made

    def _publish(self, b: Builder, parts: list[tuple[int, Operand]]) -> None:
        """The first thread of each warp writes what the warp has."""
        yes, join = self.names.label("first"), self.names.label("joined")
        warp = b.op("udiv", self.thread, WARP)
        b.branch(b.cmp("eq", b.op("and", self.thread, WARP - 1), 0), yes, join)
        b.label(yes)
        for at, x in parts:
            b.write(x, self.target.shared(b, b.op("add", b.op("mul", warp, _SLOT), at)))
        b.jump(join)
        b.label(join)

    def _exchange(self, b: Builder, x: Operand, mask: int) -> Operand:
        """The value of another thread of the warp."""
        type, shuffle = x.type, lambda y: self.target.shuffle(b, y, mask)
        if type.bits < 32:
            return b.to("trunc", shuffle(b.to("zext", x, I32)), type)
        if type.bits == 32:
            return b.to("bitcast", shuffle(b.to("bitcast", x, I32)), type) if type.floating else shuffle(x)
        bits = b.to("bitcast", x, I64) if type.floating else x
        low, high = b.to("trunc", bits, I32), b.to("trunc", b.op("lshr", bits, 32), I32)
        low, high = (b.to("zext", shuffle(part), I64) for part in (low, high))
        whole = b.op("or", low, b.op("shl", high, 32))
        return b.to("bitcast", whole, type) if type.floating else whole


def _both(b: Builder, combine: str, t: str, one, other) -> tuple[Operand, Operand | None]:
    """Two (value, place) together."""
    if one[1] is None:
        return emit_scalar(b, combine, t, [one[0], other[0]]), None
    return better(b, combine, t, one, other, tie=True)
