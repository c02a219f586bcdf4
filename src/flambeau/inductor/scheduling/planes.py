"""Convolutions and the kernels behind them as one launch, a few planes at a time.

A plane is one channel of one image. The thread that finishes a block of planes runs the kernels that read it on it at once, while the block is
in its cache: normalisation with given statistics, activation, residual, a sum over the plane (csrc/kernels/planes.c). As in
``rows.py`` the kernels are those that fusion made: iteration p touches elements [p s, (p + 1) s) of the result and of what the kernels
write. Where only one kernel reads the result, at the element that it writes, it writes over it.
"""

from __future__ import annotations

import math
from fractions import Fraction

from ...base.expr import Expr
from ...base.records import made_by, slotted
from ..assembly.dtypes import itemsize
from ..ir.nodes import BufferKind, ExternCall
from ..ir.values import walk
from ..settings import config
from .chains import Chains, OpenChain, kernel_ratio
from .rows import RowChain

__all__ = ["PlaneChain", "chain_planes"]


@slotted(frozen=False)
class PlaneChain:
    """A convolution, then the kernels that take its result of ``rows`` planes in multiples of ``unit``; ``ratios``: planes to an
    iteration of each kernel. ``over``: the result -> the buffer in whose memory it lies, that of the kernel which is its only reader."""

    steps: list
    rows: int
    unit: int
    ratios: list[Fraction]
    over: dict[str, str] = made_by(dict)

    @property
    def locals(self) -> dict[str, str]:
        """Buffers that have no memory of their own."""
        return self.over


def chain_planes(launches: list, buffers: dict, inplace: dict[str, str]) -> list:
    """``launches`` with convolutions and those behind them as one. ``inplace``: output buffer -> the input whose memory it takes."""
    return Chains(launches, buffers, inplace, ConvolutionRules).run()


class ConvolutionRules:
    """Chains that begin with convolutions, see chains.py."""

    def __init__(self, chains: Chains):
        self.chains = chains

    def head_rows(self, s) -> int | None:
        if not isinstance(s, ExternCall) or s.what != "native" or not s.outputs:
            return None
        made = self.chains.buffers[s.outputs[0]]
        if not made.planar or any(type(n) is Expr for r in s.inputs for n in r.shape):
            return None
        return made.shape[0] * made.shape[1]

    def wanted_rows(self, i: int) -> int | None:
        return None  # nothing goes before a convolution: it reads planes of all channels

    def accepts(self, chain) -> bool:
        return not config.planes_bytes or self._is_worth(chain)

    def beside(self, chain, i: int) -> bool:
        return False

    def join_sum(self, chain, i: int) -> bool:
        return False

    def _is_worth(self, chain) -> bool:
        """Whether nothing large is touched but the result, which is written over: other images come and go past the cache that the
        convolution needs."""
        large = _bytes(self.chains.buffers[self.chains.steps[chain.members[0]].outputs[0]]) // 2
        names = {
            a for i in chain.members[1:] for a in self.chains.steps[i].args if _bytes(self.chains.buffers[a]) > large
        }
        return len(names - self.close(chain).over.keys()) == 1 and bool(self.close(chain).over)

    def ends(self, i: int) -> bool:
        # A convolution that ran later than it could would find what it reads gone from the cache.
        return isinstance(self.chains.steps[i], (ExternCall, RowChain))

    def head_ratio(self, chain, i: int) -> Fraction | None:
        return None if chain.members else Fraction(1)

    def fits(self, chain: OpenChain, unit: int, period: int) -> bool:
        name = self.chains.steps[chain.members[0]].outputs[0] if chain.members else None
        return name is None or self.chains.buffers[name].shape[1] % unit == 0

    def kernel_ratio(self, chain, i: int) -> Fraction | None:
        return None if isinstance(self.chains.steps[i], (RowChain, PlaneChain)) else kernel_ratio(self.chains, chain, i)

    def close(self, chain) -> PlaneChain:
        steps = [self.chains.steps[i] for i in chain.members]
        made = PlaneChain(steps, chain.rows, chain.unit, chain.ratios[1:])
        (name,) = steps[0].outputs
        readers = self.chains.readers.get(name, set())
        if len(readers) == 1 and readers <= set(chain.members) and self.chains.buffers[name].kind == BufferKind.TEMP:
            (reader,) = readers
            over = self._same_place(name, self.chains.steps[reader])
            if over is not None:
                made.over[name] = over
        return made

    def _same_place(self, name: str, kernel) -> str | None:
        """The buffer that the kernel may write over ``name``: loops run in one pass, and read the very element that they write."""
        if len(kernel.items) != 1 or any(n.reduction for n in kernel.nodes):
            return None
        b = self.chains.buffers[name]
        read = {
            v.args[1]
            for n in kernel.nodes
            for v in walk(n.value)
            if v.op == "load" and kernel.renamed.get(v.args[0], v.args[0]) == name
        }
        for n in kernel.nodes:
            to = self.chains.buffers[n.buffer]
            if n.buffer in kernel.args and read == {n.index} and _bytes(to) == _bytes(b) and to.dtype == b.dtype:
                return n.buffer
        return None


def _bytes(buffer) -> int:
    return math.prod(buffer.shape) * buffer.width * itemsize(buffer.dtype)
