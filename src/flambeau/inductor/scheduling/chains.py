"""Chains of launches: a head, and steps that go on with a block of its rows while that is in the cache.

:class:`Chains` finds them. What heads a chain, what joins it and what a finished chain is, its rules say: products in ``rows.py``, convolutions
in ``planes.py``. Rules are made with the chains and have

``head_rows(step)``: rows of a step that can head a chain, None of any other; ``wanted_rows(i)``: those of the head that reads a kernel's result
``head_ratio(chain, i)``, ``kernel_ratio(chain, i)``: rows to an iteration of a step that joins, None where it doesn't
``join_sum(chain, i)``: whether a step that sums over the rows joined; ``beside(chain, i)``: whether a head joins that reads nothing of the chain
``fits(chain, unit, period)``: whether blocks may be multiples of ``unit``; ``ends(i)``: whether a chain never goes on behind a step
``accepts(chain)``: whether it is worth it; ``close(chain)``: the launch
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from ...base.expr import Expr, Var, const, terms
from ..ir.nodes import BufferKind, ExternCall, dense_strides
from ..ir.values import loaded_atoms, walk
from .effects import effects

__all__ = ["MOST_ARGS", "Chains", "OpenChain", "kernel_ratio"]

WINDOW = 12  # steps between two members of a chain
MOST = 16  # members of a chain
MOST_ARGS = 60  # of a kernel


class OpenChain:
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
    """Chains among ``steps``."""

    def __init__(self, steps, buffers, inplace, rules):
        self.steps, self.buffers, self.inplace = steps, buffers, inplace
        self.rules = rules(self)
        self.effects = [
            (reads | {inplace[r] for r in reads if r in inplace}, writes) for reads, writes in map(effects, steps)
        ]
        self.writers: dict[str, int] = {}
        self.readers: dict[str, set[int]] = {}
        for i, (reads, writes) in enumerate(self.effects):
            for name in writes:
                self.writers[name] = self.writers.get(name, 0) + 1
            for name in reads:
                self.readers.setdefault(name, set()).add(i)
        self.rows = {i: n for i in range(len(steps)) if (n := self.rules.head_rows(steps[i])) is not None}
        self.places: dict[int, dict[str, set]] = {}

    def run(self) -> list:
        if not self.rows:
            return self.steps
        taken: dict[int, tuple] = {}  # the last member of a chain -> (chain, members)
        gone: set[int] = set()
        for i in range(len(self.steps)):
            if i in gone:
                continue
            n = self.rows.get(i) or self.rules.wanted_rows(i)
            found = self._grow(i, n, gone) if n else None
            if found is not None:
                gone.update(found.members)
                gone.update(found.late)
                taken[found.members[-1]] = found
        out = []
        for i, s in enumerate(self.steps):
            if i in taken:
                out.append(self.rules.close(taken[i]))
                out += [self.steps[j] for j in taken[i].late]
            elif i not in gone:
                out.append(s)
        return out

    def dense(self, name: str, rows: int) -> int | None:
        """Elements of one of ``rows`` rows of a buffer that lies in C order."""
        b = self.buffers[name]
        if b.kind not in (BufferKind.TEMP, BufferKind.OUTPUT, BufferKind.INPUT, BufferKind.CONSTANT) or b.width != 1:
            return None
        if any(type(n) is Expr for n in b.shape) or b.strides != dense_strides(b.shape):
            return None
        size = math.prod(b.shape)
        return size // rows if size and size % rows == 0 else None

    def strides(self, i: int) -> dict[str, set]:
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

    def _grow(self, start: int, rows: int, gone: set[int]) -> OpenChain | None:
        chain = OpenChain(rows)
        if not self._join(chain, start):
            return None
        chain.derived = self._derived(chain.written, start)
        between_reads: set[str] = set()  # of the steps left out, which will run before the chain
        between_writes: set[str] = set()
        late_reads: set[str] = set()
        late_writes: set[str] = set()
        for j in range(start + 1, len(self.steps)):
            if j - chain.members[-1] > WINDOW or len(chain.members) == MOST or self.rules.ends(j):
                break
            reads, writes = self.effects[j]
            touched = writes | {self.inplace[w] for w in writes if w in self.inplace}
            behind = bool(reads & late_writes or touched & (late_reads | late_writes))
            if j in gone:
                if behind or self._meet(chain, reads, writes):
                    break
                continue
            joins = bool(reads & chain.written) or self.rules.beside(chain, j)
            if joins and not behind and not writes & (between_reads | between_writes) and self._join(chain, j):
                continue
            if behind or self._meet(chain, reads, writes):
                # A step that has to wait for sums (or for what waits) needn't end the chain.
                if not chain.sums:
                    break
                chain.late.append(j)
                late_reads |= reads
                late_writes |= touched
                continue
            between_reads |= reads
            between_writes |= writes
        chain.late = [j for j in chain.late if j < chain.members[-1]]
        # The tail must end with a head or with what reads one: kernels before the first head that lead nowhere don't belong.
        products = [k for k, i in enumerate(chain.members) if i in self.rows]
        return chain if products and len(chain.members) > 1 and self.rules.accepts(chain) else None

    def _derived(self, written: set[str], start: int) -> set[str]:
        out = set(written)
        for reads, writes in self.effects[start + 1 : start + 1 + 2 * WINDOW]:
            if reads & out:
                out |= writes
        return out

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
        ratio = self.rules.head_ratio(chain, i) if i in self.rows else self.rules.kernel_ratio(chain, i)
        if ratio is None:
            return self.rules.join_sum(chain, i)
        batched = i in self.rows and getattr(self.steps[i].data, "batch", ())
        period = self.steps[i].data.m if batched else chain.period
        unit = math.lcm(chain.unit, ratio.numerator)
        if not self.rules.fits(chain, unit, period) or (batched and chain.period not in (chain.rows, period)):
            return False
        chain.unit, chain.period = unit, period
        chain.members.append(i)
        chain.ratios.append(ratio)
        chain.written |= writes
        chain.reads |= reads
        return True


def kernel_ratio(chains, chain, i: int) -> Fraction | None:
    """Rows to an iteration of a kernel whose iterations run along the rows, in what the chain made and in what the kernel writes."""
    k, rows = chains.steps[i], chain.rows
    if isinstance(k, ExternCall) or k.serial or k.column or len(k.args) > MOST_ARGS or k.params:
        return None
    if type(k.total) is Expr or k.total < 2:
        return None
    reads, writes = chains.effects[i]
    ratio = None
    places = chains.strides(i)
    for name in (reads & chain.written) | writes:
        wide, apart = chains.dense(name, rows), places.get(name, {None})
        if wide is None or len(apart) != 1 or None in apart:
            return None
        found = Fraction(next(iter(apart)), wide)
        if ratio is not None and found != ratio:
            return None
        ratio = found
    if ratio is None or not (k.total - 1) * ratio < rows <= k.total * ratio:
        return None
    return ratio


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
