"""Loads and stores of a kernel by lanes: contiguous, backwards, every second element, or one by one; and which stores go past the cache."""

from __future__ import annotations

from ...base.expr import Expr, coefficient, const, terms
from ..assembly.builder import Builder
from ..assembly.dtypes import itemsize, stored_type
from ..assembly.instructions import Instruction, Operand
from ..ir.values import Value
from .addressing import Addresses
from .prefetch import LINE, Prefetch
from .scopes import Lanes, Scopes

__all__ = ["Access"]


class Access:
    """``streamed``: the buffers that are stored past the cache; ``past``: such stores -> their alignment. ``bordered``: the index of stores that
    begin on a border of a cache line, where the loop at hand sees to that."""

    def __init__(self, addresses: Addresses, prefetch: Prefetch, scopes: Scopes, lanes: Lanes, streamed: set[str]):
        self.addresses, self.prefetch, self.scopes, self.lanes = addresses, prefetch, scopes, lanes
        self.streamed = streamed
        self.past: dict[Instruction, int] = {}
        self.bordered: Expr | None = None

    def load(self, v: Value, b: Builder) -> Operand:
        addresses, lanes = self.addresses, self.lanes
        buffer, ix = v.args
        if b.lanes == 1:
            return b.load(v.dtype, addresses.pointer(buffer, addresses.index(ix), b))
        step = coefficient(ix, lanes.variable)
        if step is not None:
            position = addresses.index(ix)
            if step == 1:
                pointer = addresses.pointer(buffer, position, b)
                self.prefetch.read(buffer, ix, b, v.dtype, pointer)
                return b.load(v.dtype, pointer) if lanes.mask is None else b.load_masked(v.dtype, pointer, lanes.mask)
        if step == -1 and lanes.mask is None:
            first = b.op("add", position, 1 - b.lanes, "nsw")
            pointer = addresses.pointer(buffer, first, b)
            self.prefetch.read(buffer, ix, b, v.dtype, pointer, -1)
            return b.reversed(b.load(v.dtype, pointer))
        if step == 2 and lanes.mask is None and v.dtype in ("f32", "f64"):
            return b.load_alternate(v.dtype, addresses.pointer(buffer, position, b))
        if step is not None and lanes.mask is None:
            positions = [position]
            for i in range(1, b.lanes):
                if type(step) is Expr:
                    positions.append(b.op("add", positions[-1], addresses.index(step), "nsw"))
                else:
                    positions.append(b.op("add", position, i * step, "nsw"))
        else:
            whole = addresses.in_lanes(ix, b)
            positions = [b.extract(whole, i) for i in range(b.lanes)]
        element = stored_type(v.dtype)
        raw = Operand("poison", b.memory_type(v.dtype))
        for i, position in enumerate(positions):
            pointer = addresses.pointer(buffer, position, b)
            raw = b.insert(raw, b.read(element, pointer, f", align {itemsize(v.dtype)}"), i)
        return b.from_memory(v.dtype, raw)

    def store(self, buffer: str, ix, x: Operand, vector: bool, t: str) -> None:
        """Store a value of type ``t`` (the buffer's own, by construction of the IR)."""
        addresses, lanes = self.addresses, self.lanes
        b = self.scopes.builder(lanes.count if vector else 1)
        if not vector:
            b.store(t, x, addresses.pointer(buffer, addresses.index(ix), b))
            return
        step = coefficient(ix, lanes.variable)
        if step == 1:
            pointer = addresses.pointer(buffer, addresses.index(ix), b)
            if lanes.mask is not None:
                b.store_masked(t, x, pointer, lanes.mask)
                return
            self._store_lanes(buffer, ix, b, t, x, pointer)
            return
        if step == -1 and lanes.mask is None:
            ix = ix + (1 - b.lanes)
            pointer = addresses.pointer(buffer, addresses.index(ix), b)
            self._store_lanes(buffer, ix, b, t, x, pointer, -1)
            return
        if step == 2 and lanes.mask is None and t in ("f32", "f64"):
            b.store_alternate(t, x, addresses.pointer(buffer, addresses.index(ix), b))
            return
        one = self.scopes.builder(1)
        whole = addresses.in_lanes(ix, b)
        for i in range(b.lanes):
            element = b.extract(x, i)
            one.store(t, element, addresses.pointer(buffer, b.extract(whole, i), b))

    def _store_lanes(self, buffer: str, ix, b: Builder, t: str, x: Operand, pointer: Operand, step: int = 1) -> None:
        """A vector, whose lanes lie in order or backwards."""
        if buffer not in self.streamed:
            self.prefetch.write(buffer, ix, b, t, pointer, step)
        made = b.store(t, b.reversed(x) if step < 0 else x, pointer)
        self._stream(buffer, ix, b, t, made)

    def _stream(self, buffer: str, ix, b: Builder, t: str, made: Instruction) -> None:
        """Note that a store may go past the cache: of a vector at a place that is a multiple of its size, or of a line's, by its index or since the
        loop begins there (:class:`~.loop_code.Loops`)."""
        nbytes = b.lanes * itemsize(t)
        align = min(nbytes, LINE)
        if buffer not in self.streamed or nbytes < 32:
            return
        if ix == self.bordered or self.on_border(ix, align // itemsize(t)):
            self.past[made] = align

    def on_border(self, ix, step: int) -> bool:
        """Whether a loop along the lanes begins at a multiple of ``step`` elements."""
        rest = [const(ix), *(c for atom, c in terms(ix) if atom is not self.lanes.variable)]
        return all(type(c) is not Expr and c % step == 0 for c in rest)
