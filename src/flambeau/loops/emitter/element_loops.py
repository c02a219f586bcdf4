"""Element loops: the loops over the elements of arrays that one statement of the program is, which LLVM vectorises."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

from ...base.records import slotted
from ...inductor.assembly import instructions as llvm
from ...inductor.assembly.instructions import Function, Instruction, Operand, integer
from ..threads.outlining import ParallelNest
from ..values import Size, known
from .exits import ExitCode
from .memory import FIRST_NODE

__all__ = ["ElementLoops"]


FEW = 8  # elements of which each gets code of its own, where their number is known


@slotted(frozen=False)
class _Opened:
    """A loop whose body is being written: the variable that counts its turns, the store that it starts with, its index, the comparison with
    its end, and the labels of its head and of what follows."""

    counter: str
    first: Instruction
    index: Operand
    test: Instruction
    head: Operand
    end: Operand


class ElementLoops(ExitCode):
    def __init__(self, sizes: dict[Operand, tuple[int, int]] | None, fast: bool, turns: bool):
        super().__init__(sizes, fast, turns)
        self.inside = 0  # element loops around the code that is being written
        self.element_loops = 0  # so far
        self.turn_products: list = []  # products that are made for several turns at once, see turn_products.py
        self.nests: list[Sequence[Size]] = []  # sizes of the outermost element loops; of none, where there is an order
        # Of the code that is being written: how many elements the loops around it have that are no loops.
        self.copies = 1
        self.same: set[str] = set()  # texts of numbers that are the same for all elements of an expression
        self.pieces: list[Function] = []  # functions for parts of parallel loops
        self.splits = True  # whether parallel loops become such functions
        self.nest: ParallelNest | None = None  # the innermost parallel loop nest that is being written
        self.ones: set[Size] = set()  # sizes that are expected to be 1
        self.expecting = False  # whether sizes are what they are expected to be, in the code that is being written
        self.rare = False  # whether the code that is being written is for sizes that aren't
        self.told_of_loops: dict[str, list[int]] = {}  # what LLVM is told of loops -> the nodes that say it

    def written_out(self, sizes: Sequence[Size]) -> int:
        """The number of elements, where each gets code of its own; else 0."""
        if not sizes or not all(type(known(n)) is int for n in sizes):
            return 0
        few = math.prod(known(n) for n in sizes)
        return few if few * self.copies <= FEW else 0

    def loop(self, sizes: Sequence[Size], parallel: bool = False, pieces: bool = True) -> Iterator[tuple[Operand, ...]]:
        """Opens nested loops over ``sizes``; yields the indices once, and closes the loops after. Where it is known that there are few elements
        it yields the indices of each. ``parallel``: no turn reads what another writes, so that the loops may be vectorised without looking at
        addresses. ``pieces``: several threads may do parts of them."""
        few = self.written_out(sizes)
        if few:
            self.copies *= few
            for indices in itertools.product(*(range(known(n)) for n in sizes)):
                yield tuple(map(integer, indices))
            self.copies //= few
            return
        outer, computed = self.group, self.computed
        rare, parallel = parallel and self.rare, parallel and not self.rare
        if not self.inside and sizes:
            many: Size = 1
            for n in sizes:
                many = self.mul(many, n)
            self.spend(many)
        outermost = not self.inside and bool(sizes)
        if outermost:
            self.nests.append(sizes if parallel or rare else ())
        self.inside += 1
        self.element_loops += 1
        if parallel:
            self.group = self.node("!{}")
        nest = ParallelNest(self) if parallel and pieces and self.splits and outer is None and sizes else None
        if self.nest is not None and self.nest.inner is None:
            self.nest.inner = list(sizes)
        around, self.nest = self.nest, nest or self.nest
        opened = [self._open(n, outermost and self.rows and k == 0) for k, n in enumerate(sizes)]
        if outermost:
            self.row = opened[0].index
        yield tuple([it.index for it in opened])
        for it in reversed(opened):
            self.set(it.counter, llvm.I64, self.op("add", it.index, 1, "nuw nsw"))
            self.jump(it.head, self._loop_metadata(parallel, rare))
            self.label(it.end)
        self.group = outer
        self.inside -= 1
        if outermost:
            self.row = None
        self.nest = around
        if nest is not None:
            nest.close(sizes, opened[0].first, opened[0].test)
        if sizes:
            self.computed = computed

    def _open(self, n: Size, part: bool = False) -> _Opened:
        """Write the head of one loop. ``part``: it is for the rows that the function is given."""
        name = self.unique("loop")
        begin, n = (Operand("%turns.begin", llvm.I64), Operand("%turns.end", llvm.I64)) if part else (0, n)
        first = self.set(name, llvm.I64, begin)
        head, body, end = self.new_label(), self.new_label(), self.new_label()
        self.jump(head)
        self.label(head)
        index = self.get(name, llvm.I64)
        test = self.cmp("slt", index, n)
        self.branch(test, body, end)
        self.label(body)
        return _Opened(name, first, index, test, head, end)

    def _loop_metadata(self, parallel: bool, rare: bool) -> str:
        """What LLVM is told of a loop, on the branch back to its head."""
        if parallel:
            about = [self.node(f'!{{!"llvm.loop.parallel_accesses", !{self.group}}}')]
        elif rare:
            about = [
                self.node('!{!"llvm.loop.vectorize.enable", i1 false}'),
                self.node('!{!"llvm.loop.unroll.disable"}'),
            ]
        else:
            return ""
        return self.loop_node(about)

    def unvectorised(self) -> str:
        """What LLVM is told of a loop whose body becomes vectors, on the branch back to its head."""
        return self.loop_node([self.node('!{!"llvm.loop.vectorize.enable", i1 false}')])

    def loop_node(self, about: list[int]) -> str:
        """What LLVM is told of a loop, by metadata nodes, on the branch back to its head."""
        itself = len(self.metadata) + FIRST_NODE
        told = f", !llvm.loop !{self.node('!{' + ', '.join(f'!{n}' for n in (itself, *about)) + '}')}"
        self.told_of_loops[told] = about
        return told

    def told_again(self, told: str) -> str:
        """The same of a copy of the loop."""
        return self.loop_node(self.told_of_loops[told]) if told in self.told_of_loops else told

    def versions(self, pairs, write) -> None:
        """``write()`` the code twice, for sizes that are as expected and for others. ``pairs``: sizes that are broadcast to other sizes."""
        holds = None
        for n, size in dict.fromkeys(pairs):
            as_expected = self.cmp("eq", n, 1 if n in self.ones else size)
            holds = as_expected if holds is None else self.op("and", holds, as_expected)
        if holds is None or self.expecting or self.rare:
            write()
            return
        yes, no, on = self.new_label(), self.new_label(), self.new_label()
        computed = self.computed
        self.branch(holds, yes, no)
        self.label(yes)
        self.expecting = True
        write()
        self.expecting = False
        self.jump(on)
        self.label(no)
        outer, self.rare = self.rare, True
        write()
        self.rare = outer
        self.jump(on)
        self.label(on)
        self.computed = computed

    def product(
        self,
        f64: bool,
        sizes: tuple[Size, Size, Size],
        a: tuple,
        b: tuple,
        out: Operand,
        several: Callable[[list[Operand]], None] | None = None,
    ) -> None:
        """``out`` (m, n) in C order = ``a`` (m, k) times ``b`` (k, n), each as its address and byte strides; ``sizes``: m, n, k.
        ``several``, given the numbers that tell of it, writes a call that may make the products of several turns."""
        self.spend(self.mul(sizes[0], self.mul(sizes[1], sizes[2])))
        self.element_loops += 1
        self.nests.append(())
        given = [*map(integer, (int(f64), *sizes, *a, *b)), out]
        if several is not None:
            several(given)
        else:
            self.call(llvm.VOID, Operand("%product", llvm.PTR), *given)
