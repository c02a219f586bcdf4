"""Writes the LLVM code of one loop kernel.

Local variables are stack slots, which LLVM turns into registers. A size, a stride or an offset is an operand (an i64), or a Python int where it
is known. What is written becomes a module in :mod:`.module`.
"""

from __future__ import annotations

import itertools
import math
import platform
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ..base.records import slotted
from ..inductor.assembly import instructions as llvm
from ..inductor.assembly.builder import Builder
from ..inductor.assembly.code import Code, Given, Names
from ..inductor.assembly.instructions import Instruction, Operand, ParameterOperand, Type, integer, label
from ..inductor.assembly.printing import declared
from ..inductor.codegen.expansions import EXPANSIONS
from . import bounds as between
from .bounds import Bounds
from .outlining import ParallelNest
from .values import Scalar, Size, alignment, known, memory_type, plain, register_type

__all__ = ["Emitter", "block_label", "constant", "turn_label"]

I64 = np.dtype(np.int64)
F64 = np.dtype(np.float64)
BOOL = np.dtype(bool)
WORK = 1 << 21  # turns and elements after which a kernel asks whether it has been interrupted
FEW = 8  # elements of which each gets code of its own, where their number is known
SMALL_BUFFER = 192  # bytes; buffers of up to this many are used again, those of a known size
SMALL_SIZE = 16  # sizes up to this are part of the text where they are known
SCOPES = 100_000  # number of the first metadata node that tells memory apart
FIRST_NODE = 10  # number of the first metadata node that a kernel makes
# FE_DIVBYZERO of fenv.h.
BY_ZERO = 4 if platform.machine() in ("x86_64", "AMD64") else 2
USUALLY, RARELY = ", !prof !0", ", !prof !1"  # of a branch: the first way is taken, or the second
LIMBO, CODE, SHARED = (Operand(f"%{name}", llvm.PTR) for name in ("limbo", "code", "shared"))
CLEANUP, EXIT = label("cleanup"), label("exit")
SEEN = "@seen"  # the slot of errors that are told when the kernel ends, a bit each
_PLACES = [llvm.constant(llvm.I32, k) for k in (0, 1)]
_ROUNDED = frozenset(("fadd", "fsub", "fmul", "fdiv"))
_COUNTING = frozenset(("add", "sub", "mul"))
_FAST = "reassoc nsz arcp contract"  # nans and infinities stay what they are


def block_label(at: int) -> Operand:
    """Of the block of bytecode that begins at this instruction."""
    return label(f"b{at}")


def turn_label(at: int) -> Operand:
    """Of a turn of the loop that begins at this instruction, within a strip of turns."""
    return label(f"b{at}.turn")


class Arithmetic(Code):
    """``fast``: sums may be taken in another order, products and sums contracted, divisions be products."""

    def __init__(self, names: Names, out: list[Instruction], fast: bool):
        super().__init__(names, out)
        self.fast = fast

        # What integers have been computed to in the code that always runs before this, by operation and operands.
        self.computed: dict[tuple, Instruction] = {}

    def op(self, operation: str, x: Given, y: Given, flags: str = "") -> Instruction:
        """Sizes and places that are computed again are the same operand, so that equal sizes need no check."""
        if operation not in _COUNTING:
            return super().op(operation, x, y, _FAST if self.fast and operation in _ROUNDED else flags)
        given = [v if isinstance(v, Operand) else integer(v) for v in (x, y)]
        key = operation, flags, *((v.type, v.text) for v in given)
        found = self.computed.get(key)
        if found is None:
            found = self.computed[key] = super().op(operation, x, y, flags)
        return found

    def label(self, name: Operand) -> None:
        """Another way may lead here."""
        self.computed = {}
        super().label(name)

    def go_on(self, name: Operand) -> None:
        """A label to which all ways lead through the code before it."""
        super().label(name)


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


class Emitter(Arithmetic):
    noting = False  # whether each operation on floats is noted, see tape.py
    freeing = Operand("%free", llvm.PTR)  # the function that gives a buffer's memory back

    rows = False  # whether the text is a function for a part of the rows that its element loops run over

    def __init__(self, sizes: dict[Operand, tuple[int, int]] | None = None, fast: bool = False, turns: bool = False):
        super().__init__(Names("t"), [], fast)
        self.turns = turns  # whether the text is a function for a part of the outermost loop's turns
        self.sizes = sizes if sizes is not None else {}  # bounds of values that are known when the kernel starts
        self.known: dict[Operand, tuple[int, int]] = {}  # and of others, which sizes are made of
        self.slots: dict[tuple[str, Type], Operand] = {}
        self.zeroed: dict[str, int] = {}  # slots that are 0 when the kernel starts, and how many integers they have
        self.entry: dict[tuple, Instruction] = {}  # instructions at the start of the kernel, by what they do
        self.declared: set[str] = set()
        self.errors: list[tuple[str, str]] = []
        self.at_end: list[int] = []  # errors that are told when the kernel ends, by number
        self.error_blocks: list[Instruction] = []
        self.results = 0
        self.helpers = False  # whether the functions that count references to buffers are wanted
        self.functions: dict[str, str] = {}  # that the kernel calls, by name
        self.leaves_to_python = False  # whether the kernel calls Python
        self.ones: set[Size] = set()  # sizes that are expected to be 1
        self.expecting = False  # whether sizes are what they are expected to be, in the code that is being written
        self.pieces: list[llvm.Function] = []  # functions for parts of parallel loops
        self.splits = True  # whether parallel loops become such functions
        self.rare = False  # whether the code that is being written is for sizes that aren't
        self.element_loops = 0  # so far
        self.nest: ParallelNest | None = None  # the innermost parallel loop nest that is being written
        self.inside = 0  # element loops around the code that is being written
        self.copies = (
            1  # of the code that is being written: how many elements the loops around it have that are no loops
        )
        self.group: int | None = None  # the metadata node of the accesses of a parallel loop
        self.metadata: list[str] = []
        self.scopes: set[int] = set()  # operands whose accesses have been told apart
        self.parts_of: dict[Operand, tuple[Operand, Operand]] = {}  # complex numbers -> what they were made of
        # Operands -> what is known of all elements that are read and written, see ArrayView.turn.
        self.touched: dict[int, frozenset] = {}
        self.foreign: set[int | str] = set()  # origins of elements that may be in other rows, see row_blocks.py
        self.nests: list[Sequence[Size]] = []  # sizes of the outermost element loops; of none, where there is an order
        self.row: Operand | None = None  # index of the outermost element loop
        self.apart = False  # whether elements of a row that element loops read or write lie apart

    def mark(self) -> Callable[[], None]:
        """A function that takes back what is written after this."""
        lists = [(made, len(made)) for made in (self.out, self.error_blocks, self.errors, self.at_end, self.pieces)]
        loops = self.inside, self.group, self.nest, self.expecting, self.rare, self.copies

        def back() -> None:
            for made, n in lists:
                del made[n:]
            self.computed = {}
            self.inside, self.group, self.nest, self.expecting, self.rare, self.copies = loops

        return back

    # -- names --
    def unique(self, prefix: str) -> str:
        return self.names.fresh(prefix)[1:]

    def new_label(self) -> Operand:
        return label(self.unique("L"))

    # -- memory --
    def slot(self, name: str, type: Type) -> Operand:
        """A stack slot of this name and type."""
        found = self.slots.get((name, type))
        if found is None:
            found = self.slots[name, type] = Operand(f"%s.{len(self.slots)}", llvm.PTR)
        return found

    def counters(self, name: str, n: int) -> Operand:
        """A slot for ``n`` integers that are 0 when the kernel starts."""
        self.zeroed[name] = n
        return self.slot(name, llvm.I64 if n == 1 else llvm.aggregate(f"[{n} x i64]"))

    def get(self, name: str, type: Type) -> Operand:
        return self.read(type, self.slot(name, type))

    def set(self, name: str, type: Type, v: Operand | int) -> Instruction:
        return self.write(v if isinstance(v, Operand) else llvm.constant(type, v), self.slot(name, type))

    def argument(self, which: str, i: int, type: Type) -> Operand:
        return self.read(type, self.place(llvm.I64, Operand(f"%{which}", llvm.PTR), i))

    def load(self, p: Operand, dtype: np.dtype, origins: frozenset = frozenset()) -> Operand:
        how = self._accessed(dtype, origins)
        if dtype.kind == "c":  # by parts: LLVM vectorises loops over numbers, not over vectors
            part = memory_type(dtype).element
            return self.complex(*(self.read(part, q, how) for q in (p, self.place(part, p, 1, inbounds=True))))
        v = self.read(memory_type(dtype), p, how)
        return self.cmp("ne", v, 0) if dtype.kind == "b" else v

    def store(self, p: Operand, dtype: np.dtype, v: Operand, origins: frozenset = frozenset()) -> None:
        how = self._accessed(dtype, origins)
        if dtype.kind == "c":
            for k, part in enumerate(self.parts(v)):
                self.write(part, self.place(part.type, p, k, inbounds=True), how)
            return
        if dtype.kind == "b":
            v = self.to("zext", v, llvm.I8)
        self.write(v, p, how)

    # -- complex numbers, which are vectors of two --
    def complex(self, re: Operand, im: Operand) -> Operand:
        t = re.type.vector(2)
        half = self.emit("insertelement", t, (Operand("undef", t), re, _PLACES[0]))
        made = self.emit("insertelement", t, (half, im, _PLACES[1]))
        self.parts_of[made] = re, im
        return made

    def parts(self, v: Operand) -> tuple[Operand, Operand]:
        """The real and the imaginary part."""
        found = self.parts_of.get(v)
        if found is None:
            re, im = (self.emit("extractelement", v.type.element, (v, k)) for k in _PLACES)
            found = re, im
        return found

    def _accessed(self, dtype: np.dtype, origins: frozenset) -> str:
        group = "" if self.group is None else f", !llvm.access.group !{self.group}"
        return f", align {alignment(dtype)}{group}{self._scope(origins)}"

    def touch(self, view, in_row: bool = False) -> None:
        """Elements of the view are read or written. ``in_row``: in the row that the outermost element loop has come to."""
        for n in view.origins:
            self.touched[n] = self.touched.get(n, view.turn) & view.turn
        if not in_row:
            self.foreign |= view.origins
        if self.row is not None and view.strides and known(view.strides[-1]) not in (0, view.dtype.itemsize):
            self.apart = True

    def _scope(self, origins: frozenset) -> str:
        """What tells LLVM that an operand which is written shares no memory with others. ``origins``: see ArrayView."""
        if len(origins) != 1:
            return ""
        (n,) = origins
        if not isinstance(n, int):
            return ""
        self.scopes.add(n)
        return f", !alias.scope !{SCOPES + 3 * n + 1}, !noalias !{SCOPES + 3 * n + 2}"

    def node(self, text: str) -> int:
        """A metadata node, by number."""
        self.metadata.append(f"!{len(self.metadata) + FIRST_NODE} = distinct {text}")
        return len(self.metadata) + FIRST_NODE - 1

    def at(self, p: Operand, offset: Size) -> Operand:
        """The address ``offset`` bytes behind ``p``."""
        if known(offset) == 0:
            return p
        key = "at", p.text, integer(offset).text
        found = self.computed.get(key)
        if found is None:
            found = self.computed[key] = self.place(llvm.I8, p, offset, inbounds=True)
        return found

    # -- buffers of the loop's own: references are counted; a buffer without any waits in a list, from which it is freed where nothing on
    # the stack can refer to it, unless a variable has got it meanwhile. Its header: count, link, whether it waits, whether it is a small one. A
    # small one goes into the second list of LIMBO, from which it is taken again. --
    def buffer(self, size: Size) -> Operand:
        if type(known(size)) is int and known(size) <= SMALL_BUFFER:
            p = self._helper("flb_small", llvm.PTR, LIMBO, Operand("%malloc", llvm.PTR))
        else:
            p = self._helper("flb_new", llvm.PTR, integer(size), Operand("%malloc", llvm.PTR))
        self.check(self.cmp("ne", p, Operand("null", llvm.PTR)), "MemoryError", "")
        return p

    def keep(self, p: Operand) -> None:
        """One more reference to a buffer."""
        self._helper("flb_keep", llvm.VOID, p)

    def drop(self, p: Operand) -> None:
        """One reference less."""
        self._helper("flb_drop", llvm.VOID, p, LIMBO)

    def flush(self) -> None:
        if self.helpers:
            self._helper("flb_flush", llvm.VOID, LIMBO, self.freeing)

    def _helper(self, name: str, result: Type, *args: Operand) -> Operand:
        self.helpers = True
        return self.call(result, f"@{name}", *args)

    def product(self, f64: bool, sizes: tuple[Size, Size, Size], a: tuple, b: tuple, out: Operand) -> None:
        """``out`` (m, n) in C order = ``a`` (m, k) times ``b`` (k, n), each as its address and byte strides; ``sizes``: m, n, k."""
        self.spend(self.mul(sizes[0], self.mul(sizes[1], sizes[2])))
        self.element_loops += 1
        self.nests.append(())
        given = map(integer, (int(f64), *sizes, *a, *b))
        self.call(llvm.VOID, Operand("%product", llvm.PTR), *given, out)

    def python(self, text: str, rerunnable: bool, views: Sequence) -> None:
        """Have Python compute what ``text`` says of these views, operands and results (see numpy_calls.py). ``rerunnable``: see Inputs."""
        self.leaves_to_python = True
        data = text.encode()
        name = f"@said.{self.unique('text')}"
        said = "".join(chr(c) if c not in b'"\\' and 32 <= c < 127 else f"\\{c:02x}" for c in data)
        self.functions[name] = f'{name} = private unnamed_addr constant [{len(data) + 1} x i8] c"{said}\\00"'
        numbers: list[Operand] = []
        for view in views:
            head = (integer(view.dtype.num), integer(view.ndim), self.emit("ptrtoint", llvm.I64, (view.ptr,)))
            numbers += [*head, *map(integer, (*view.sizes, *view.strides))]
        table = self.slot(self.unique("table"), llvm.aggregate(f"[{len(numbers)} x i64]"))
        for k, n in enumerate(numbers):
            self.write(n, self.place(llvm.I64, table, k))
        given = (Operand(name, llvm.PTR), integer(int(rerunnable)), integer(len(views)), table)
        code = self.call(llvm.I64, Operand("%python", llvm.PTR), *given)
        stop, on = self.new_label(), self.new_label()
        self.branch(self.cmp("slt", code, 0), stop, on, RARELY)
        self.label(stop)
        self.write(-1, CODE)
        self.jump(CLEANUP)
        self.label(on)
        self.check(self.cmp("eq", code, 0), "RuntimeError", f"{text} raised in a compiled loop")

    def function(self, name: str, text: str) -> None:
        """A function of the kernel's module; what it declares is in lines of their own."""
        lines = text.strip().split("\n")
        self.declared.update(line for line in lines if line.startswith("declare "))
        self.functions[name] = "\n".join(line for line in lines if not line.startswith("declare "))

    # -- integers of addresses and sizes --
    def bounds_of(self, v: Size) -> Bounds:
        v = plain(v)
        return (v, v) if isinstance(v, int) else self.sizes.get(v) or self.known.get(v)

    def know(self, v: Size, bounds: Bounds) -> Size:
        """The value, of which that is known; a number or a size of an operand where it is one of these."""
        v = plain(v)
        if isinstance(v, int) or bounds is None:
            return v
        if bounds[0] == bounds[1]:
            if 0 <= bounds[0] <= SMALL_SIZE:
                return bounds[0]
            same = next((size for size, b in self.sizes.items() if b == bounds), None)
            if same is not None:
                return same
        self.known.setdefault(v, bounds)
        return v

    def add(self, a: Size, b: Size) -> Size:
        a, b = plain(a), plain(b)
        if a == 0:
            return b
        if b == 0:
            return a
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        return self.know(self.op("add", a, b), between.of("+", self.bounds_of(a), self.bounds_of(b)))

    def sub(self, a: Size, b: Size) -> Size:
        a, b = plain(a), plain(b)
        if b == 0:
            return a
        if isinstance(a, int) and isinstance(b, int):
            return a - b
        return self.know(self.op("sub", a, b), between.of("-", self.bounds_of(a), self.bounds_of(b)))

    def mul(self, a: Size, b: Size) -> Size:
        a, b = plain(a), plain(b)
        if a == 1:
            return b
        if b == 1:
            return a
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        return self.op("mul", a, b)

    def smaller(self, a: Size, b: Size) -> Size:
        a, b = plain(a), plain(b)
        x, y = self.bounds_of(a), self.bounds_of(b)
        if x and y and (x[1] <= y[0] or y[1] <= x[0]):
            return a if x[1] <= y[0] else b
        return self.select(self.cmp("slt", a, b), a, b)

    def larger(self, a: Size, b: Size) -> Size:
        a, b = plain(a), plain(b)
        x, y = self.bounds_of(a), self.bounds_of(b)
        if x and y and (x[1] <= y[0] or y[1] <= x[0]):
            return b if x[1] <= y[0] else a
        return self.select(self.cmp("sgt", a, b), a, b)

    # -- what is known when the kernel starts --
    def at_entry(self, operation: str, type: Type, *args: Operand, flags: str = "") -> Instruction:
        """An instruction whose operands are known when the kernel starts, written once, there."""
        key = operation, type, flags, *(a.text for a in args)
        found = self.entry.get(key)
        if found is None:
            found = self.entry[key] = Instruction(f"%e{len(self.entry)}", type, operation, args, flags)
        return found

    def is_at_entry(self, v: Operand) -> bool:
        """Whether a size is known when the kernel starts."""
        return isinstance(v, ParameterOperand) or any(v is made for made in self.entry.values())

    def added_at_entry(self, v: Operand, n: int) -> Operand:
        return self.at_entry("add", llvm.I64, v, integer(n))

    def larger_at_entry(self, a: Operand, n: int) -> Operand:
        above = self.at_entry("icmp", llvm.I1, a, integer(n), flags="sgt")
        return self.at_entry("select", llvm.I64, above, a, integer(n))

    def field_at_entry(self, p: Operand, n: int, element: Type = llvm.I64) -> Operand:
        """The address that lies at element ``n``."""
        return self.at_entry(
            "load", llvm.PTR, self.at_entry("getelementptr", llvm.PTR, p, integer(n), flags=element.text)
        )

    # -- interrupts --
    def spend(self, n: Size) -> None:
        """Count ``n`` turns or elements, and leave the kernel if the user has interrupted it. Asked for before long work, never inside what LLVM
        is to vectorise."""
        work = self.counters("@work", 1)
        total = self.op("add", self.read(llvm.I64, work), n)
        self.write(total, work)
        ask, stop, on = self.new_label(), self.new_label(), self.new_label()
        computed = self.computed
        self.branch(self.cmp("ugt", total, WORK), ask, on, RARELY)
        self.label(ask)
        self.write(0, work)
        signal = ends = self.call(llvm.I64, Operand("%interrupted", llvm.PTR))
        if self.turns or self.rows:  # or other turns have ended the loop
            ends = self.op("or", ends, self.emit("load", llvm.I64, (SHARED,), "atomic", " monotonic, align 8"))
        self.branch(self.cmp("eq", ends, 0), on, stop)
        self.label(stop)
        asked = self.cmp("ne", signal, 0)
        self.write(self.to("sext", asked, llvm.I64), CODE)
        self.jump(CLEANUP)
        self.computed = computed
        self.go_on(on)

    # -- calls, errors --
    def external(self, name: str, result: Type, *args: Operand) -> Operand:
        """Call an external function."""
        self.declare(name, result, args)
        return self.call(result, f"@{name}", *args)

    def tell_of_division(self, by_zero: Operand) -> None:
        """Raise the processor's flag of a division by zero, for which NumPy tells of it (dynamo/numpy/floating_errors.py), where an integer is."""
        divided, on = self.new_label(), self.new_label()
        self.branch(by_zero, divided, on, RARELY)
        self.label(divided)
        self.external("feraiseexcept", llvm.I32, llvm.constant(llvm.I32, BY_ZERO))
        self.jump(on)
        self.label(on)

    def declare(self, name: str, result: Type, args: Sequence[Operand]) -> None:
        self.declared.add(declared(name, result, [a.type for a in args]))

    def expanded(self, name: str, t: str, *args: Operand) -> Operand:
        """A function of inductor/expansions; ``t``: "f32" or "f64"."""
        return EXPANSIONS[name](Builder(self.names, 1, self.out), t, *args)

    def check(self, holds: Operand, error: str, text: str, *numbers: Size) -> None:
        """Leave the kernel with this error (a type's name, and its text with places for ``numbers``) unless ``holds``."""
        number = self.error(error, text)
        on, off = self.new_label(), self.new_label()
        self.branch(holds, on, off, USUALLY)
        block = Code(self.names, self.error_blocks)
        block.label(off)
        for k, v in enumerate(numbers):
            errors = Operand("%errors", llvm.PTR)
            place = block.named(f"{off.text}.{k}", "getelementptr", llvm.PTR, errors, integer(k), flags="i64")
            block.write(v, place)
        block.write(number, CODE)
        block.jump(CLEANUP)
        self.go_on(on)

    def check_at_end(self, holds: Operand, error: str, text: str) -> None:
        """As :meth:`check`, but turns go on: LLVM may vectorise a loop that isn't left. For what does no harm meanwhile; errors that come
        later are passed over."""
        number = self.error(error, text)
        if number not in self.at_end:
            self.at_end.append(number)
        seen = self.counters(SEEN, 1)
        self.write(
            self.op("or", self.read(llvm.I64, seen), self.select(holds, 0, 1 << self.at_end.index(number))), seen
        )

    def ended(self, code: Code) -> Operand:
        """The number of the error that the kernel ends with: the first one that was seen, unless a signal ends it."""
        end = code.named("%end", "load", llvm.I64, CODE)
        if not self.at_end:
            return end
        seen = code.read(llvm.I64, self.counters(SEEN, 1))
        for k, number in enumerate(self.at_end):
            met = code.cmp("ne", code.op("and", seen, 1 << k), 0)
            end = code.select(code.op("and", met, code.cmp("sge", end, 0)), number, end)
        return end

    def error(self, kind: str, text: str) -> int:
        """The number of an error."""
        if (kind, text) not in self.errors:
            self.errors.append((kind, text))
        return self.errors.index((kind, text)) + 1

    # -- loops --
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
        return self._loop_node(about)

    def unvectorised(self) -> str:
        """What LLVM is told of a loop whose body becomes vectors, on the branch back to its head."""
        return self._loop_node([self.node('!{!"llvm.loop.vectorize.enable", i1 false}')])

    def _loop_node(self, about: list[int]) -> str:
        itself = len(self.metadata) + FIRST_NODE
        return f", !llvm.loop !{self.node('!{' + ', '.join(f'!{n}' for n in (itself, *about)) + '}')}"

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

    def result(self, value: Scalar) -> None:
        """Give a number back in the next slot of ``out``."""
        self.store(self.place(llvm.I64, Operand("%out", llvm.PTR), self.results), value.dtype, value.v)
        self.results += 1

    # -- the module --
    def begin(self, code: Code, arrays: int) -> None:
        """Write what else is read when the kernel starts. ``arrays``: how many it is given."""

    def own_functions(self) -> list[str]:
        """The text of further functions of the module."""
        return []


def constant(value, weak: bool | None = True) -> Scalar:
    """A Python or NumPy number as a Scalar."""
    if isinstance(value, np.generic):
        dtype, weak = value.dtype, False
    else:
        dtype = {bool: BOOL, int: I64, complex: np.dtype(np.complex128)}.get(type(value), F64)
    t = register_type(dtype)
    if dtype.kind == "c":
        parts = [llvm.constant(t.element, x) for x in (value.real, value.imag)]
        return Scalar(dtype, weak, Operand(f"<{parts[0]!r}, {parts[1]!r}>", t), None, value)
    n = int(value) if dtype.kind in "iu" else None
    return Scalar(dtype, weak, llvm.constant(t, value), None if n is None else (n, n), value)
