"""Products and the kernels beside them as one launch, block of rows by block of rows.

A kernel that makes the rows of a product's left operand, the product, a kernel that reads the product row by row, the next product: as long as each
step needs only the rows that the steps before it have just made, a thread takes some rows through all of them while they are in its cache. The
kernels are those that fusion made, unchanged: a kernel is called for a part of its parallel range anyway. Right operands are packed once
(csrc/kernels/rows.c). What nobody else reads lives in a thread's scratch memory, a block of rows at a time, and never as a whole.

The backward of attention has products that are sums over these rows, too: the gradients of keys and values, A^T B of matrices whose rows the chain
has. Such a product joins as a sum: each block adds its part. So what lies between the products (scores, weights and their cotangents) is never whole
in memory.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

from ...base.expr import Expr
from ...base.records import slotted
from ..assembly.dtypes import itemsize
from ..ir.nodes import BufferKind, ExternCall, dense_strides
from .chains import Chains, OpenChain, kernel_ratio

__all__ = ["RowChain", "chain_rows"]

LEAST = 96  # rows that are worth it
LEAST_EACH = 32  # of each matrix of a batch
NARROW = 16  # columns of a product from which our kernels are used
CACHED = 400_000
ALIGNED = 512  # most rows that a block must be a multiple of
LANES = 8  # pieces that a chain with sums should have: its rows can't be cut anywhere
PACKED = 256 << 10  # bytes of a right operand that lies packed in a second-level cache beside a block of rows
PARTIAL = 8  # sums of lanes take at most this part of what the chain keeps out of memory


def _is_symbolic(product) -> bool:
    """Whether some size, step or offset of a product is known at the call only."""
    g = product.data
    numbers = (g.m, g.n, g.k, g.lda, g.ldb, g.ldc, *(r.offset for r in product.inputs), *itertools.chain(*g.batch))
    return any(type(x) is Expr for x in numbers)


@slotted(frozen=False)
class RowChain:
    """``steps`` over ``rows`` rows, in blocks that are multiples of ``unit``, best of ``block``, and end where a ``period`` does (the rows of a
    matrix, where products are batched). ``ratios``: rows to an iteration of each kernel (to a product: 1, or 0 where it is a sum over the rows of
    a period). ``locals``: buffer that lives in a thread's scratch memory -> bytes of a row. ``lanes``: parts of a period whose sums are made
    apart; 0: there are no sums."""

    steps: list
    rows: int
    period: int
    unit: int
    block: int
    ratios: list[Fraction]
    locals: dict[str, int]
    lanes: int = 0


def chain_rows(steps: list, buffers: dict, inplace: dict[str, str]) -> list:
    """``steps`` with chains in the place of their members. ``inplace``: output buffer -> the input whose memory it takes."""
    return Chains(steps, buffers, inplace, ProductRules).run()


class ProductRules:
    """Chains that begin with products, see chains.py."""

    def __init__(self, chains: Chains):
        self.chains = chains

    def head_rows(self, s) -> int | None:
        """Rows of a product that can be made block by block."""
        if not isinstance(s, ExternCall) or s.what != "gemm":
            return None
        g = s.data
        if _is_symbolic(s) or g.n < NARROW or (g.batch and g.m < LEAST_EACH):
            return None
        rows = g.m * math.prod(row[0] for row in g.batch)
        return rows if rows >= LEAST else None

    def wanted_rows(self, i: int) -> int | None:
        """Rows that a product has which reads the kernel's result as its left operand."""
        if isinstance(self.chains.steps[i], ExternCall):
            return None
        for name in self.chains.effects[i][1]:
            for j in sorted(self.chains.readers.get(name, ())):
                if j in self.chains.rows and self.chains.steps[j].inputs[0].buffer == name:
                    return self.chains.rows[j]
        return None

    def beside(self, chain, i: int) -> bool:
        """Whether a product that needs nothing of the chain makes rows that a later step reads together with the chain's: in the backward of
        attention the cotangents of the weights, beside the scores."""
        if (
            i not in self.chains.rows
            or not self.chains.steps[i].data.batch
            or self.chains.steps[i].data.m != chain.period
        ):
            return False
        (name,) = self.chains.effects[i][1]
        return any(j > i and self.chains.effects[j][0] & chain.derived for j in self.chains.readers.get(name, ()))

    def ends(self, i: int) -> bool:
        """Whether a chain never goes on behind this step."""
        return False

    def fits(self, chain: OpenChain, unit: int, period: int) -> bool:
        """Whether blocks may be multiples of ``unit``."""
        return unit <= min(ALIGNED, chain.rows // 2) and (period == chain.rows or period % unit == 0)

    def head_ratio(self, chain, i: int) -> Fraction | None:
        s, rows = self.chains.steps[i], chain.rows
        g = s.data
        a, b = s.inputs
        if self.chains.rows[i] != rows or b.buffer in chain.written:
            return None
        if self.chains.dense(s.outputs[0], rows) != g.n or g.ldc != g.n:
            return None
        if a.buffer in chain.written:
            # Row r of the operand is row r of what the chain made.
            strides = dense_strides([row[0] for row in g.batch])
            lines = [n * g.m * g.lda for n in strides]
            if (
                g.ta != "N"
                or a.offset
                or self.chains.dense(a.buffer, rows) != g.lda
                or lines != [row[1] for row in g.batch]
            ):
                return None
        return Fraction(1) if self.is_worth(s, a.buffer in chain.written) else None

    def is_worth(self, s, made: bool) -> bool:
        """Whether a product gains by blocks of rows. A chain packs the right operand whole, into memory, and reads it again for each block; apart,
        a slice at a time is packed for all rows. That costs as much as writing and reading the right operand, and what stays in the cache instead
        are the result's rows, and those of the left operand where the chain ``made`` them."""
        g = s.data
        packed = g.n * g.k
        return packed * itemsize(self.chains.buffers[s.inputs[1].buffer].dtype) <= PACKED or packed <= g.m * (
            g.n + (g.k if made else 0)
        )

    def join_sum(self, chain, i: int) -> bool:
        """A^T B over the rows of a period, of which the chain has made A, B or both."""
        s = self.chains.steps[i]
        if not isinstance(s, ExternCall) or s.what != "gemm" or not chain.members:
            return False
        g = s.data
        if not g.batch or _is_symbolic(s) or g.k * math.prod(row[0] for row in g.batch) != chain.rows:
            return False
        if chain.period not in (chain.rows, g.k) or g.k % chain.unit or min(g.m, g.n) * 2 > g.k:
            return False
        lines = [n * g.k for n in dense_strides([row[0] for row in g.batch])]
        for r, by_rows, ld, strides in zip(
            s.inputs, (g.ta != "N", g.tb == "N"), (g.lda, g.ldb), zip(*(row[1:3] for row in g.batch))
        ):
            if r.buffer not in chain.written:
                continue
            if (
                not by_rows
                or r.offset
                or self.chains.dense(r.buffer, chain.rows) != ld
                or [n * ld for n in lines] != list(strides)
            ):
                return False
        reads, writes = self.chains.effects[i]
        chain.period = g.k
        chain.members.append(i)
        chain.ratios.append(Fraction(0))
        chain.written |= writes
        chain.sums |= writes
        chain.reads |= reads
        return True

    def close(self, chain) -> RowChain:
        inside = set(chain.members)
        local: dict[str, int] = {}
        widest = 1
        for name in sorted(chain.written - chain.sums):
            b = self.chains.buffers[name]
            wide = self.chains.dense(name, chain.rows)
            assert wide is not None
            nbytes = wide * itemsize(b.dtype)
            widest = max(widest, nbytes)
            if b.kind == BufferKind.TEMP and self.chains.readers.get(name, set()) <= inside:
                local[name] = nbytes
        steps = [self.chains.steps[i] for i in chain.members]
        block = min(192, max(48, CACHED // widest))
        # Blocks of whole tiles, where the kernels allow it.
        wished = (math.lcm(chain.unit, 12), math.lcm(chain.unit, 4))
        whole = chain.period == chain.rows
        step = next((u for u in wished if u <= 2 * block and (whole or chain.period % u == 0)), chain.unit)
        block = max(step, block // step * step)
        lanes = self._lanes(chain, sum(local.values()), block) if chain.sums else 0
        return RowChain(steps, chain.rows, chain.period, step, block, chain.ratios, local, lanes)

    def _lanes(self, chain, width: int, block: int) -> int:
        """Parts of a period that are added up apart: enough for some threads, as long as their sums are little beside what isn't in memory."""
        parts = chain.rows // chain.period
        made = sum(math.prod(self.chains.buffers[n].shape) * itemsize(self.chains.buffers[n].dtype) for n in chain.sums)
        most = min(-(-LANES // parts), -(-chain.period // block), width * chain.rows // (PARTIAL * made) + 1)
        return max(1, most)

    def kernel_ratio(self, chain, i: int) -> Fraction | None:
        return kernel_ratio(self.chains, chain, i)

    def accepts(self, chain) -> bool:
        return True
