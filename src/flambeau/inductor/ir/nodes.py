"""The loop IR: a program is a list of nodes that fill buffers.

Four classes: :class:`Buffer` (memory), :class:`Pointwise` (each element of a loop nest stored somewhere), :class:`Reduction` (a loop nest
with reduced loops inside), :class:`ExternCall` (a matrix product or an eager kernel). Positions in a buffer are :class:`~..base.expr.Expr`
expressions over the loop variables, counted in elements. ``after``: buffers whose making also tells a size the node uses (a size that depends
on data). :func:`verify` holds after every pass.
"""

from __future__ import annotations

import enum
from typing import Any

from ...base.expr import Expr, Var, variables
from ...base.records import slotted
from ...base.sizes import dense_strides
from .values import Value, loaded_atoms

__all__ = [
    "Buffer",
    "BufferKind",
    "ExternCall",
    "Pointwise",
    "Reduction",
    "dense_strides",
    "eliminate_dead",
    "show",
    "verify",
]


class BufferKind(enum.Enum):
    """Where a buffer's memory comes from. NUMBER has none: it is an integer that a step gives. OBJECT: a tensor that
    a Python step returns, VALUE: any object. OWN: an intermediate result with memory of its own (memory.py)."""

    INPUT = enum.auto()
    CONSTANT = enum.auto()
    TEMP = enum.auto()
    OUTPUT = enum.auto()
    NUMBER = enum.auto()
    VALUE = enum.auto()
    OBJECT = enum.auto()
    OWN = enum.auto()


@slotted(frozen=False)
class Buffer:
    """Memory of ``size`` elements; element ``i`` of a tensor with ``strides`` lies at ``sum(i * strides)`` (outputs and inputs start at
    their first element, so no offset). ``width``: 2 for complex numbers, which are
    pairs of numbers of ``dtype``: positions in memory count these. ``planar``: a large one
    that a convolution finishes plane by plane (planes.py)."""

    name: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    kind: BufferKind = BufferKind.TEMP
    np_dtype: Any = None  # where it isn't the one that ``dtype`` names
    constant: Any = None
    width: int = 1
    planar: bool = False

    @property
    def size(self) -> int:
        if 0 in self.shape:
            return 0
        return 1 + sum((n - 1) * s for n, s in zip(self.shape, self.strides))


@slotted(frozen=False)
class Pointwise:
    """For all loops: ``buffer[index] = value``; with ``combine`` (assign, add, multiply, minimum, maximum) it is a scatter: the buffer keeps
    what it had where nothing is written, and iterations that may meet are run in order. ``ordered``: loops of a scatter whose iterations read what
    earlier ones wrote."""

    buffer: str
    loops: tuple[Var, ...]
    value: Value
    index: Expr | int
    combine: str | None = None
    after: frozenset = frozenset()
    ordered: tuple[Var, ...] = ()


@slotted(frozen=False)
class Reduction:
    """For all loops: ``buffer[index] = combine over reduced loops of value``. ``limit``: (outer variable, inner variable, n) when the
    reduced loop ``inner`` stops where ``outer * extent + inner`` reaches ``n``."""

    buffer: str
    loops: tuple[Var, ...]
    reduced: tuple[Var, ...]
    combine: str
    init: Any
    value: Value
    index: Expr | int
    limit: tuple[Var, Var, int] | None = None
    after: frozenset = frozenset()


@slotted(frozen=False)
class Region:
    """A strided part of a buffer, as an extern call reads it."""

    buffer: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0


@slotted(frozen=False)
class ExternCall:
    """``what``: "gemm" (``data``: a Gemm record), "native" (a Native: a kernel of csrc/runtime/kernels.def), "bind" (numbers in memory that
    are the symbols of ``outputs`` from there on) or "call" (the Python callable on tensors). Writes all of ``outputs``."""

    what: str
    name: str
    inputs: list[Region]
    outputs: list[str]
    data: Any
    effect: bool = False  # must run in program order, even when its results aren't used
    after: frozenset = frozenset()
    replays: bool = False  # it may end the graph so that all is done again plainly: nothing may be overwritten before


Node = Pointwise | Reduction | ExternCall


def is_dense(shape, strides, hint=int) -> bool:
    """Strides of a permutation of C order."""
    step = 1
    for n, s in sorted(((n, s) for n, s in zip(shape, strides) if n != 1), key=lambda p: hint(p[1])):
        if s != step:
            return False
        step = step * n
    return True


def loads(node) -> frozenset[str] | set[str]:
    """Names of the buffers a node reads."""
    if isinstance(node, ExternCall):
        return {r.buffer for r in node.inputs} | node.after
    out = node.value.buffers() | node.after
    for x in loaded_atoms(node.index):
        out = out | x.buffers()
    return out


def stores(node) -> list[str]:
    return node.outputs if isinstance(node, ExternCall) else [node.buffer]


def verify(nodes, buffers: dict[str, Buffer]) -> None:
    """Every read buffer is an input or was written before; loops cover what indices use. AssertionError naming the node otherwise."""
    written = {b.name for b in buffers.values() if b.kind in (BufferKind.INPUT, BufferKind.CONSTANT) or b.size == 0}
    for node in nodes:
        for name in loads(node):
            assert name in buffers, f"{node} reads unknown buffer {name}"
            assert name in written, f"{node} reads {name} before it is written"
        if not isinstance(node, ExternCall):
            free = node.value.variables() | variables(node.index)
            bound = set(node.loops) | set(getattr(node, "reduced", ()))
            assert free <= bound, f"{node} uses loop variables {free - bound} that it doesn't loop over"
        written.update(stores(node))


def eliminate_dead(nodes, outputs: set[str]) -> list:
    """Nodes whose results nobody reads, dropped."""
    wanted, keep = set(outputs), []
    for node in reversed(nodes):
        if wanted & set(stores(node)) or (isinstance(node, ExternCall) and node.effect):
            keep.append(node)
            wanted |= loads(node)
    return keep[::-1]


def show(nodes, buffers: dict[str, Buffer]) -> str:
    """The program as text, one node a line."""
    lines = []
    for b in buffers.values():
        lines.append(f"{b.name}: {b.kind.name.lower()} {b.dtype}{list(b.shape)} strides {list(b.strides)}")
    for node in nodes:
        if isinstance(node, ExternCall):
            ins = ", ".join(f"{r.buffer}{list(r.shape)}" for r in node.inputs)
            lines.append(f"{', '.join(node.outputs)} = {node.what} {node.name}({ins})")
            continue
        loops = ", ".join(f"i{v.id}<{v.extent}" for v in node.loops)
        if isinstance(node, Reduction):
            inner = ", ".join(f"i{v.id}<{v.extent}" for v in node.reduced)
            lines.append(f"for {loops}: {node.buffer}[{node.index!r}] = {node.combine} over {inner} of {node.value!r}")
        else:
            lines.append(f"for {loops}: {node.buffer}[{node.index!r}] {node.combine or ''}= {node.value!r}")
    return "\n".join(lines) + "\n"
