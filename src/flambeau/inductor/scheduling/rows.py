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
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ...base.expr import Expr, Var, const, terms
from ..assembly.dtypes import itemsize
from ..ir.nodes import BufferKind, ExternCall, dense_strides
from ..ir.values import loaded_atoms, walk
from .effects import effects

__all__ = ["Chains", "Open", "RowChain", "chain_rows"]

LEAST = 96  # rows that are worth it
LEAST_EACH = 32  # of each matrix of a batch
NARROW = 16  # columns of a product from which our kernels are used
WINDOW = 12  # steps between two members of a chain
MOST = 16  # members of a chain
CACHED = 400_000
ALIGNED = 512  # most rows that a block must be a multiple of
MOST_ARGS = 60  # of a kernel
LANES = 8  # pieces that a chain with sums should have: its rows can't be cut anywhere
PARTIAL = 8  # sums of lanes take at most this part of what the chain keeps out of memory


def _is_symbolic(product) -> bool:
    """Whether some size, step or offset of a product is known at the call only."""
    g = product.data
    numbers = (g.m, g.n, g.k, g.lda, g.ldb, g.ldc, *(r.offset for r in product.inputs), *itertools.chain(*g.batch))
    return any(type(x) is Expr for x in numbers)


@dataclass(slots=True)
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
    return Chains(steps, buffers, inplace).run()


class Open:
    """A chain that is being made."""

    def __init__(self, rows: int):
        self.rows, self.members, self.ratios, self.written = rows, [], [], set()
        self.unit = 1
        self.period = rows
        self.reads: set[str] = set()
        self.sums: set[str] = set()  # of the written: results of sums, which are whole only at the end
        self.late: list[int] = []  # steps between the members that run behind the chain
        self.derived: set[str] = set()  # what is made of what the chain makes, by the steps in reach


class Chains:
    """Chains among ``steps``: which begin with a product, and what joins one."""

    def __init__(self, steps, buffers, inplace):
        self.steps, self.buffers, self.inplace = steps, buffers, inplace
        self.effects = [effects(s) for s in steps]
        self.writers: dict[str, int] = {}
        self.readers: dict[str, set[int]] = {}
        for i, (reads, writes) in enumerate(self.effects):
            for name in writes:
                self.writers[name] = self.writers.get(name, 0) + 1
            for name in reads:
                self.readers.setdefault(name, set()).add(i)
        self.rows = {i: n for i in range(len(steps)) if (n := self._product_rows(steps[i])) is not None}
        self.places: dict[int, dict[str, set]] = {}

    def run(self) -> list:
        if not self.rows:
            return self.steps
        taken: dict[int, tuple] = {}  # the last member of a chain -> (chain, members)
        gone: set[int] = set()
        for i in range(len(self.steps)):
            if i in gone:
                continue
            n = self.rows.get(i) or self._wanted_rows(i)
            found = self._grow(i, n, gone) if n else None
            if found is not None:
                gone.update(found.members)
                gone.update(found.late)
                taken[found.members[-1]] = found
        out = []
        for i, s in enumerate(self.steps):
            if i in taken:
                out.append(self._close(taken[i]))
                out += [self.steps[j] for j in taken[i].late]
            elif i not in gone:
                out.append(s)
        return out

    # --- what a step is like ------------------------------------------------------------------------------------------
    def _product_rows(self, s) -> int | None:
        """Rows of a product that can be made block by block."""
        if not isinstance(s, ExternCall) or s.what != "gemm":
            return None
        g = s.data
        if _is_symbolic(s) or g.n < NARROW or (g.batch and g.m < LEAST_EACH):
            return None
        rows = g.m * math.prod(row[0] for row in g.batch)
        return rows if rows >= LEAST else None

    def _wanted_rows(self, i: int) -> int | None:
        """Rows that a product has which reads the kernel's result as its left operand."""
        if isinstance(self.steps[i], ExternCall):
            return None
        for name in self.effects[i][1]:
            for j in sorted(self.readers.get(name, ())):
                if j in self.rows and self.steps[j].inputs[0].buffer == name:
                    return self.rows[j]
        return None

    def _dense(self, name: str, rows: int) -> int | None:
        """Elements of one of ``rows`` rows of a buffer that lies in C order."""
        b = self.buffers[name]
        if b.kind not in (BufferKind.TEMP, BufferKind.OUTPUT, BufferKind.INPUT, BufferKind.CONSTANT) or b.width != 1:
            return None
        if any(type(n) is Expr for n in b.shape) or b.strides != dense_strides(b.shape):
            return None
        size = math.prod(b.shape)
        return size // rows if size and size % rows == 0 else None

    def _strides(self, i: int) -> dict[str, set]:
        """Buffer -> how far apart in it the iterations of the kernel read and write (None: not apart)."""
        if i not in self.places:
            out: dict[str, set] = {}
            k = self.steps[i]
            for n in k.nodes:
                out.setdefault(n.buffer, set()).add(_apart(k, n.index))
                for v in walk(n.value, *loaded_atoms(n.index)):
                    if v.op == "load":
                        name = k.renamed.get(v.args[0], v.args[0])
                        out.setdefault(name, set()).add(_apart(k, v.args[1]))
            self.places[i] = out
        return self.places[i]

    # --- growing ------------------------------------------------------------------------------------------------------
    def _grow(self, start: int, rows: int, gone: set[int]) -> Open | None:
        chain = Open(rows)
        if not self._join(chain, start):
            return None
        chain.derived = self._derived(chain.written, start)
        between_reads: set[str] = set()  # of the steps left out, which will run before the chain
        between_writes: set[str] = set()
        late_reads: set[str] = set()
        late_writes: set[str] = set()
        for j in range(start + 1, len(self.steps)):
            if j - chain.members[-1] > WINDOW or len(chain.members) == MOST or self._parts(j):
                break
            reads, writes = self.effects[j]
            touched = writes | {self.inplace[w] for w in writes if w in self.inplace}
            behind = bool(reads & late_writes or touched & (late_reads | late_writes))
            if j in gone:
                if behind or self._meet(chain, reads, writes):
                    break
                continue
            joins = bool(reads & chain.written) or self._beside(chain, j)
            if joins and not behind and not writes & (between_reads | between_writes) and self._join(chain, j):
                continue
            if behind or self._meet(chain, reads, writes):
                # A step that has to wait for sums (or for what waits) needn't end the chain.
                if not chain.sums:
                    break
                chain.late.append(j)
                late_reads |= reads
                late_writes |= writes
                continue
            between_reads |= reads
            between_writes |= writes
        chain.late = [j for j in chain.late if j < chain.members[-1]]
        # The tail must end with a product or with what reads one: kernels before the first product that lead nowhere don't belong.
        products = [k for k, i in enumerate(chain.members) if i in self.rows]
        return chain if products and len(chain.members) > 1 else None

    def _derived(self, written: set[str], start: int) -> set[str]:
        out = set(written)
        for reads, writes in self.effects[start + 1 : start + 1 + 2 * WINDOW]:
            if reads & out:
                out |= writes
        return out

    def _beside(self, chain, i: int) -> bool:
        """Whether a product that needs nothing of the chain makes rows that a later step reads together with the chain's: in the backward of
        attention the cotangents of the weights, beside the scores."""
        if i not in self.rows or not self.steps[i].data.batch or self.steps[i].data.m != chain.period:
            return False
        (name,) = self.effects[i][1]
        return any(j > i and self.effects[j][0] & chain.derived for j in self.readers.get(name, ()))

    def _parts(self, i: int) -> bool:
        """Whether a chain never goes on behind this step."""
        return False

    def _meet(self, chain, reads, writes) -> bool:
        """Whether a step that is left out has to stay behind the chain."""
        touched = writes | {self.inplace[w] for w in writes if w in self.inplace}
        return bool(reads & chain.written or touched & (chain.reads | chain.written))

    def _join(self, chain, i: int) -> bool:
        reads, writes = self.effects[i]
        if any(
            self.writers[w] != 1
            or w in self.inplace
            or self.buffers[w].kind not in (BufferKind.TEMP, BufferKind.OUTPUT)
            for w in writes
        ):
            return False
        if reads & chain.sums:
            return False
        ratio = self._join_product(chain, i) if i in self.rows else self._join_kernel(chain, i)
        if ratio is None:
            return self._join_sum(chain, i)
        batched = i in self.rows and getattr(self.steps[i].data, "batch", ())
        period = self.steps[i].data.m if batched else chain.period
        unit = math.lcm(chain.unit, ratio.numerator)
        if not self._fits(chain, unit, period) or (batched and chain.period not in (chain.rows, period)):
            return False
        chain.unit, chain.period = unit, period
        chain.members.append(i)
        chain.ratios.append(ratio)
        chain.written |= writes
        chain.reads |= reads
        return True

    def _fits(self, chain: Open, unit: int, period: int) -> bool:
        """Whether blocks may be multiples of ``unit``."""
        return unit <= min(ALIGNED, chain.rows // 2) and (period == chain.rows or period % unit == 0)

    def _join_product(self, chain, i: int) -> Fraction | None:
        s, rows = self.steps[i], chain.rows
        g = s.data
        a, b = s.inputs
        if self.rows[i] != rows or b.buffer in chain.written:
            return None
        if self._dense(s.outputs[0], rows) != g.n or g.ldc != g.n:
            return None
        if a.buffer in chain.written:
            # Row r of the operand is row r of what the chain made.
            strides = dense_strides([row[0] for row in g.batch])
            lines = [n * g.m * g.lda for n in strides]
            if g.ta != "N" or a.offset or self._dense(a.buffer, rows) != g.lda or lines != [row[1] for row in g.batch]:
                return None
        return Fraction(1)

    def _join_sum(self, chain, i: int) -> bool:
        """A^T B over the rows of a period, of which the chain has made A, B or both."""
        s = self.steps[i]
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
                or self._dense(r.buffer, chain.rows) != ld
                or [n * ld for n in lines] != list(strides)
            ):
                return False
        reads, writes = self.effects[i]
        chain.period = g.k
        chain.members.append(i)
        chain.ratios.append(Fraction(0))
        chain.written |= writes
        chain.sums |= writes
        chain.reads |= reads
        return True

    def _join_kernel(self, chain, i: int) -> Fraction | None:
        """Rows to an iteration of a kernel whose iterations run along the rows, in what the chain made and in what the kernel writes."""
        k, rows = self.steps[i], chain.rows
        if isinstance(k, ExternCall) or k.serial or k.column or len(k.args) > MOST_ARGS or k.params:
            return None
        if type(k.total) is Expr or k.total < 2:
            return None
        reads, writes = self.effects[i]
        ratio = None
        places = self._strides(i)
        for name in (reads & chain.written) | writes:
            wide, apart = self._dense(name, rows), places.get(name, {None})
            if wide is None or len(apart) != 1 or None in apart:
                return None
            found = Fraction(next(iter(apart)), wide)
            if ratio is not None and found != ratio:
                return None
            ratio = found
        if ratio is None or not (k.total - 1) * ratio < rows <= k.total * ratio:
            return None
        return ratio

    def _close(self, chain) -> RowChain:
        inside = set(chain.members)
        local: dict[str, int] = {}
        widest = 1
        for name in sorted(chain.written - chain.sums):
            b = self.buffers[name]
            wide = self._dense(name, chain.rows)
            assert wide is not None
            nbytes = wide * itemsize(b.dtype)
            widest = max(widest, nbytes)
            if b.kind == BufferKind.TEMP and self.readers.get(name, set()) <= inside:
                local[name] = nbytes
        steps = [self.steps[i] for i in chain.members]
        block = min(192, max(48, CACHED // widest))
        # Blocks of whole tiles, where the kernels allow it.
        wished = (math.lcm(chain.unit, 48), math.lcm(chain.unit, 4))
        whole = chain.period == chain.rows
        step = next((u for u in wished if u <= 2 * block and (whole or chain.period % u == 0)), chain.unit)
        block = max(step, block // step * step)
        lanes = self._lanes(chain, sum(local.values()), block) if chain.sums else 0
        return RowChain(steps, chain.rows, chain.period, step, block, chain.ratios, local, lanes)

    def _lanes(self, chain, width: int, block: int) -> int:
        """Parts of a period that are added up apart: enough for some threads, as long as their sums are little beside what isn't in memory."""
        parts = chain.rows // chain.period
        made = sum(math.prod(self.buffers[n].shape) * itemsize(self.buffers[n].dtype) for n in chain.sums)
        most = min(-(-LANES // parts), -(-chain.period // block), width * chain.rows // (PARTIAL * made) + 1)
        return max(1, most)


def _apart(kernel, index) -> int | None:
    """Elements between the places of one iteration and of the next, where each has a run of its own; None otherwise."""
    coefficients: dict[Any, int] = {}
    for atom, c in terms(index):
        if not isinstance(atom, Var) or type(c) is Expr:
            return None
        coefficients[atom] = c
    start = const(index)
    if start < 0:
        return None
    apart, step = None, 1
    for v in reversed(kernel.outer):
        if type(v.extent) is Expr:
            return None
        if v.extent == 1:
            continue
        c = coefficients.pop(v, 0)
        if apart is None:
            apart, step = c, c * v.extent
        elif c != step:
            return None
        else:
            step = c * v.extent
    if not apart or apart < 1:
        return None
    reach = start
    for v in kernel.inner:
        c = coefficients.pop(v, 0)
        if type(v.extent) is Expr or c < 0:
            return None
        reach += c * (v.extent - 1)
    for v in [v for v in coefficients if v in kernel.outer]:
        del coefficients[v]  # of extent 1
    return apart if not coefficients and reach < apart else None
