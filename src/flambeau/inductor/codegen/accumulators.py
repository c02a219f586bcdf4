"""Reductions of a kernel: an accumulator for each number of lanes, elements combined into it, and the lanes combined at the end."""

from __future__ import annotations

import math

from ...base.expr import variable
from ..assembly.builder import Builder
from ..assembly.dtypes import compute_type, is_float, is_unsigned, itemsize
from ..assembly.instructions import Operand
from ..ir.values import Values
from .expressions import Expressions
from .scalar_ops import emit_scalar
from .scopes import Lanes, Scopes

__all__ = ["Accumulators", "better", "identity"]

PLACES = ("argmax", "argmin")
_INT_MIN = {"i8": -(1 << 7), "i16": -(1 << 15), "i32": -(1 << 31), "i64": -(1 << 63)}


def identity(combine: str, t: str):
    """The element that leaves ``combine`` unchanged, for a type."""
    if combine in ("add", "logical_or", "bitwise_or", "bitwise_xor", "logical_xor"):
        return 0
    if combine in ("mul", "logical_and", "multiply"):
        return 1
    if combine in ("maximum", "argmax"):
        if is_float(t):
            return -math.inf
        return 0 if is_unsigned(t) or t == "bool" else _INT_MIN[t]
    if combine in ("minimum", "argmin"):
        if is_float(t):
            return math.inf
        return 1 if t == "bool" else (1 << (itemsize(t) * 8)) - 1 if is_unsigned(t) else -_INT_MIN[t] - 1
    raise NotImplementedError(f"reduction by {combine}")


class Accumulators:
    """Those of the loops at hand, in stack slots: of the value, and for argmax and argmin of its place."""

    def __init__(self, kernel, scopes: Scopes, lanes: Lanes, expressions: Expressions, values: Values):
        self.kernel, self.scopes, self.lanes, self.expressions, self.values = kernel, scopes, lanes, expressions, values
        self._slots: dict[tuple[int, int], tuple[Operand, Operand | None]] = {}  # of a node, by its lanes

    def open(self, node, lanes: int) -> None:
        """Write the accumulator of a reduction by so many lanes, with nothing in it."""
        t = compute_type(node.value.dtype)
        b = self.scopes.builder(lanes)
        slot, at = b.names.slot(b.ty(t)), None
        b.write(b.const(t, identity(node.combine, t)), slot)
        if node.combine in PLACES:
            at = b.names.slot(b.ty("i64"))
            b.write(b.const("i64", 0), at)
        self._slots[id(node), lanes] = slot, at

    def keep(self, node, lanes: int, place: Operand) -> None:
        """Put what has been found by so many lanes to an address."""
        slot, _ = self._slots[id(node), lanes]
        b, t = self.scopes.builder(lanes), compute_type(node.value.dtype)
        b.write(b.read(b.ty(t), slot), place, f", align {itemsize(t)}")

    def resume(self, node, lanes: int, place: Operand) -> None:
        """Go on with what was kept at an address."""
        slot, _ = self._slots[id(node), lanes]
        b, t = self.scopes.builder(lanes), compute_type(node.value.dtype)
        b.write(b.read(b.ty(t), place, f", align {itemsize(t)}"), slot)

    def add(self, node) -> None:
        """Combine the elements at hand into it."""
        t = compute_type(node.value.dtype)
        slot, at = self._slots[id(node), self.lanes.count]
        b = self.scopes.builder(self.lanes.count)
        x = self.expressions.operand(node.value, b)
        if self.lanes.mask is not None:
            x = b.select(self.lanes.mask, x, b.const(t, identity(node.combine, t)))
        old = b.read(b.ty(t), slot)
        if at is None:
            b.write(emit_scalar(b, node.combine, t, [old, x]), slot)
            return
        position = 0
        for v in self.kernel.inner:
            position = position * v.extent + variable(v)
        here = self.expressions.operand(self.values.index(position), b)
        best, where = better(b, node.combine, t, (old, b.read(b.ty("i64"), at)), (x, here))
        b.write(best, slot)
        b.write(where, at)

    def partial(self, node) -> tuple[Operand, Operand | None]:
        """The partial result of one thread: the value, and for argmax and argmin its place."""
        slot, at = self._slots[id(node), 1]
        b = self.scopes.builder(1)
        return b.read(b.ty(compute_type(node.value.dtype)), slot), None if at is None else b.read(b.ty("i64"), at)

    def close(self, node, lanes: list[int]) -> tuple[Operand, bool]:
        """(the result, whether it is a vector): the accumulators of these lanes, combined by a tree. The lanes of a column are results of their
        own."""
        t = compute_type(node.value.dtype)
        if self.kernel.column:
            ((slot, at),) = [self._slots[id(node), n] for n in lanes]
            b = self.scopes.builder(lanes[0])
            return (b.read(b.ty(t), slot) if at is None else b.read(b.ty("i64"), at)), lanes[0] > 1
        total: Operand | None = None
        where: Operand | None = None
        for n in lanes:
            slot, at = self._slots[id(node), n]
            b = self.scopes.builder(n)
            x: Operand = b.read(b.ty(t), slot)
            i: Operand | None = b.read(b.ty("i64"), at) if at is not None else None
            while b.lanes > 1:
                half = self.scopes.builder(b.lanes // 2)
                x, y = _halves(b, x)
                if i is not None:
                    i, j = _halves(b, i)
                    x, i = better(half, node.combine, t, (x, i), (y, j), tie=True)
                else:
                    x = emit_scalar(half, node.combine, t, [x, y])
                b = half
            if total is None:
                total, where = x, i
            elif i is not None:
                total, where = better(b, node.combine, t, (total, where), (x, i), tie=True)
            else:
                total = emit_scalar(b, node.combine, t, [total, x])
        assert total is not None, "a reduction over no loop"
        return (total if where is None else where), False


def better(b: Builder, combine: str, t: str, one, other, tie: bool = False) -> tuple[Operand, Operand]:
    """Of two (value, place) the winner; NaN wins, equal values keep the earlier place. ``tie``: the other may have it."""
    (x, i), (y, j) = one, other
    kind = "o" if is_float(t) else "u" if is_unsigned(t) or t == "bool" else "s"
    win, same = b.cmp(kind + ("gt" if combine == "argmax" else "lt"), y, x), None
    if is_float(t):
        xnan, ynan = b.cmp("uno", x, x), b.cmp("uno", y, y)
        win = b.op("or", win, b.op("and", ynan, b.flip(xnan)))
        if tie:
            same = b.op("or", b.cmp("oeq", x, y), b.op("and", xnan, ynan))
    elif tie:
        same = b.cmp("eq", x, y)
    if same is not None:
        win = b.op("or", win, b.op("and", same, b.cmp("slt", j, i)))
    return b.select(win, y, x), b.select(win, j, i)


def _halves(b: Builder, x: Operand) -> tuple[Operand, Operand]:
    n = b.lanes // 2
    if n == 1:
        return b.extract(x, 0), b.extract(x, 1)
    return b.shuffle(x, range(n)), b.shuffle(x, range(n, 2 * n))
