"""Writes the LLVM assembly of one loop kernel.

``i64 @KERNEL(ptr data, ptr meta, ptr ints, ptr floats, ptr out)``: addresses of the runtime's functions (:data:`RUNTIME`), then of the
arrays; for each array its sizes and byte strides; the numbers that the loop reads; a slot of 8 bytes for each result and three more for the
numbers of an error message. It returns 0, the number of an error, or -1 when a signal's
handler has raised. Local variables are stack slots, which LLVM turns into registers.
"""

from __future__ import annotations

import re
import struct

import numpy as np

from ..inductor.builder import Builder, Names
from ..inductor.vector_math import EXPANSIONS
from . import bounds as between
from .values import Scalar, memory_type, register_type

__all__ = ["Emitter", "float_literal"]

I64 = np.dtype(np.int64)
F64 = np.dtype(np.float64)
BOOL = np.dtype(bool)
RUNTIME = ("malloc", "free", "parallel", "interrupted", "product")
PIECE = 32768  # elements that are worth a thread
WORK = 1 << 21  # turns and elements after which a kernel asks whether it has been interrupted
SMALL_SIZE = 4  # sizes up to this are part of the text where they are known
SCOPES = 100_000  # number of the first metadata node that tells memory apart
FIRST_NODE = 10  # number of the first metadata node that a kernel makes


def float_literal(x: float, dtype: np.dtype = F64) -> str:
    """A float as LLVM writes it: the bits of the double that equals it."""
    x = float(np.float32(x)) if dtype == np.float32 else float(x)
    return f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"


class _Names(Names):
    """The names of an emitter for the builder of an expansion."""

    def __init__(self, e):
        super().__init__()
        self.e = e

    def fresh(self, prefix: str = "v") -> str:
        self.e.count += 1
        return f"%{prefix}.{self.e.count}"


class Region:
    """The text of a parallel loop nest while it is written. :meth:`close` moves it into a function of its own, which runs a part of the outermost
    loop, and calls that for all of it, on the thread pool when there is much to do."""

    def __init__(self, e: Emitter):
        self.e, self.start = e, len(e.lines)
        self.slots, self.errors = set(e.slots.values()), len(e.error_blocks)
        self.inner: list[str] | None = None  # sizes of the first loops within

    def close(self, sizes, outermost) -> None:
        e = self.e
        lines = e.lines[self.start :]
        counter, index, head, _ = outermost
        local = [(llvm, slot) for (_, llvm), slot in e.slots.items() if slot not in self.slots]
        made = {m[1] for line in lines if (m := re.match(r"\s*(%[\w.]+) =", line))}
        made |= {slot for _, slot in local}
        used = dict.fromkeys(
            name for line in lines for name in re.findall(r"(?<!label )%[\w.]+", line) if name not in made
        )
        if len(e.error_blocks) != self.errors or any(name in self.slots for name in used):
            return  # it can end the kernel, or changes a variable: it stays where it is
        del e.lines[self.start :]
        inner = "1"
        for n in (*sizes[1:], *(n for n in self.inner or () if n not in made)):
            inner = e.mul(inner, n)
        work = e.mul(sizes[0], inner)
        number = len(e.pieces)
        context = e.slot(f"context{number}", f"[{max(2 * len(used), 1)} x i64]")  # a complex number is two
        body = []
        for k, name in enumerate(used):
            place = e.op(f"getelementptr i64, ptr {context}, i64 {2 * k}")
            e.line(f"store {type_of(name, e)} {name}, ptr {place}, align 8")
            body += [
                f"  {name}.at = getelementptr i64, ptr %context, i64 {2 * k}",
                f"  {name} = load {type_of(name, e)}, ptr {name}.at, align 8",
            ]
        body += [f"  {slot} = alloca {llvm}" for llvm, slot in local]
        slot = e.slots[counter, "i64"]
        # The outermost loop runs from %begin to %end.
        first = next(i for i, line in enumerate(lines) if line == f"  store i64 0, ptr {slot}")
        lines[first] = f"  store i64 %begin, ptr {slot}"
        test = next(i for i, line in enumerate(lines) if f" = icmp slt i64 {index}, " in line)
        lines[test] = lines[test].rpartition(", ")[0] + ", %end"
        e.pieces.append(
            "\n".join(
                [
                    f"define internal void @KERNEL.p{number}(ptr %context, i64 %begin, i64 %end) noinline {{",
                    *body,
                    *lines,
                    "  ret void",
                    "}",
                ]
            )
        )
        many, few, on = e.new_label(), e.new_label(), e.new_label()
        e.branch(e.op(f"icmp sge i64 {work}, {2 * PIECE}"), many, few)
        e.label(many)
        # There is an element, so no size is 0.
        grain = e.add(e.op(f"sdiv i64 {PIECE}, {inner}"), "1")
        e.line(f"call void %parallel(ptr @KERNEL.p{number}, ptr {context}, i64 {sizes[0]}, i64 {grain})")
        e.jump(on)
        e.label(few)
        e.line(f"call void @KERNEL.p{number}(ptr {context}, i64 0, i64 {sizes[0]})")
        e.jump(on)
        e.label(on)


def type_of(name: str, e: Emitter) -> str:
    """The type of a value that an instruction of the kernel makes."""
    text = e.types.get(name) or next((t for t, n in e.entry.items() if n == name), None)
    if text is None:
        return "i64" if re.fullmatch(r"%a\d+\.[ns]\d+", name) else "ptr"
    for pair, token in _PAIRS.items():
        text = text.replace(pair, token)
    out = _of_instruction(text)
    return next((pair for pair, token in _PAIRS.items() if token == out), out)


_PAIRS = {"<2 x double>": "pair64", "<2 x float>": "pair32"}


def _of_instruction(text: str) -> str:
    what, *rest = text.split()
    if what == "extractelement":
        return "double" if rest[0] == "pair64" else "float"
    if what in ("icmp", "fcmp"):
        return "i1"
    if what == "getelementptr":
        return "ptr"
    if what == "extractvalue":
        return "double" if "{ double" in text else "i1" if text.endswith("1") else "i64"
    if " to " in text:
        return text.rsplit(" to ", 1)[1]
    if what == "select":
        return text.split(", ")[1].split()[0]
    if what == "call" and rest[0] == "{":
        return text[text.index("{") : text.index("}") + 1]
    return next(w.rstrip(",") for w in rest if w.rstrip(",") in _TYPES)


_ROUNDED = ("fadd ", "fsub ", "fmul ", "fdiv ")
_FAST = "reassoc nsz arcp contract"  # nans and infinities stay what they are
_TYPES = ("i1", "i8", "i16", "i32", "i64", "float", "double", "ptr", *_PAIRS.values())


class Emitter:
    noting = False  # whether each operation on floats is noted, see tape.py

    def __init__(self, sizes: dict[str, tuple[int, int]] | None = None, fast: bool = False):
        self.fast = fast
        self.sizes = sizes if sizes is not None else {}  # bounds of values that are known when the kernel starts
        self.known: dict[str, tuple[int, int]] = {}  # and of others, which sizes are made of
        self.lines: list[str] = []
        self.slots: dict[str, str] = {}
        self.entry: dict[str, str] = {}  # instructions at the start of the kernel -> names of their values
        self.declared: set[str] = set()
        self.errors: list[tuple[str, str]] = []
        self.count = 0
        self.error_blocks: list[str] = []
        self.results = 0
        self.helpers = False
        self.functions: dict[str, str] = {}  # that the kernel calls, by name
        self.ones: set[str] = set()  # sizes that are expected to be 1
        self.expecting = False  # whether sizes are what they are expected to be, in the code that is being written
        self.types: dict[str, str] = {}  # names of values -> the instructions that make them
        self.pieces: list[str] = []  # functions for parts of parallel loops
        self.rare = False  # whether the code that is being written is for sizes that aren't
        self.element_loops = 0  # so far
        self.region: Region | None = None  # the innermost parallel loop nest that is being written
        self.inside = 0  # element loops around the code that is being written
        self.group: int | None = None  # the metadata node of the accesses of a parallel loop
        self.metadata: list[str] = []
        self.scopes: set[int] = set()  # operands whose accesses have been told apart
        self.turns = False  # whether the text is a function for a part of the outermost loop's turns
        self.touched: dict[
            int, frozenset
        ] = {}  # operands -> what is known of all elements that are read and written, see View.turn
        self.owned: list[str] = []  # variables whose buffers are given back at the end

    # -- text --
    def line(self, text: str) -> None:
        self.lines.append("  " + text)

    def op(self, text: str) -> str:
        """An instruction that has a value."""
        self.count += 1
        if self.fast and text.startswith(_ROUNDED):
            what, rest = text.split(" ", 1)
            text = f"{what} {_FAST} {rest.removeprefix('reassoc ').removeprefix('contract ')}"
        self.types[f"%t{self.count}"] = text
        self.lines.append(f"  %t{self.count} = {text}")
        return f"%t{self.count}"

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def new_label(self) -> str:
        self.count += 1
        return f"L{self.count}"

    def jump(self, label: str) -> None:
        self.line(f"br label %{label}")

    def branch(self, v: str, yes: str, no: str) -> None:
        self.line(f"br i1 {v}, label %{yes}, label %{no}")

    # -- memory --
    def slot(self, name: str, llvm: str) -> str:
        """A stack slot of this name and type."""
        key = f"%s.{len(self.slots)}" if (name, llvm) not in self.slots else self.slots[name, llvm]
        self.slots[name, llvm] = key
        return key

    def get(self, name: str, llvm: str) -> str:
        return self.op(f"load {llvm}, ptr {self.slot(name, llvm)}")

    def set(self, name: str, llvm: str, v: str) -> None:
        self.line(f"store {llvm} {v}, ptr {self.slot(name, llvm)}")

    def argument(self, which: str, i: int, llvm: str) -> str:
        p = self.op(f"getelementptr i64, ptr %{which}, i64 {i}")
        return self.op(f"load {llvm}, ptr {p}")

    def load(self, p: str, dtype: np.dtype, origins: frozenset = frozenset()) -> str:
        v = self.op(
            f"load {memory_type(dtype)}, ptr {p}, align {alignment(dtype)}{self.grouped()}{self.scope(origins)}"
        )
        return self.op(f"icmp ne i8 {v}, 0") if dtype.kind == "b" else v

    def store(self, p: str, dtype: np.dtype, v: str, origins: frozenset = frozenset()) -> None:
        if dtype.kind == "b":
            v = self.op(f"zext i1 {v} to i8")
        self.line(
            f"store {memory_type(dtype)} {v}, ptr {p}, align {alignment(dtype)}{self.grouped()}{self.scope(origins)}"
        )

    def touch(self, view) -> None:
        """Elements of the view are read or written."""
        for n in view.origins:
            self.touched[n] = self.touched.get(n, view.turn) & view.turn

    def scope(self, origins: frozenset) -> str:
        """What tells LLVM that an operand which is written shares no memory with others. ``origins``: see View."""
        if len(origins) != 1:
            return ""
        (n,) = origins
        if not isinstance(n, int):
            return ""
        self.scopes.add(n)
        return f", !alias.scope !{SCOPES + 3 * n + 1}, !noalias !{SCOPES + 3 * n + 2}"

    def grouped(self) -> str:
        return "" if self.group is None else f", !llvm.access.group !{self.group}"

    def node(self, text: str) -> int:
        """A metadata node, by number."""
        self.metadata.append(f"!{len(self.metadata) + FIRST_NODE} = distinct {text}")
        return len(self.metadata) + FIRST_NODE - 1

    def at(self, p: str, offset: str) -> str:
        """The address ``offset`` bytes behind ``p``."""
        return p if offset == "0" else self.op(f"getelementptr inbounds i8, ptr {p}, i64 {offset}")

    # -- buffers of the loop's own: references are counted; a buffer without any waits in a list, from which it is freed where nothing on
    # the stack can refer to it, unless a variable has got it meanwhile. Its header: count, link, whether it waits. --
    def buffer(self, size: str) -> str:
        p = self.helper("flb_new", "ptr", ("i64", size), ("ptr", "%malloc"))
        self.check(self.op(f"icmp ne ptr {p}, null"), "MemoryError", "")
        return p

    def helper(self, name: str, result: str, *args: tuple[str, str]) -> str:
        self.helpers = True
        text = f"call {result} @{name}({', '.join(f'{t} {v}' for t, v in args)})"
        if result == "void":
            self.line(text)
            return ""
        return self.op(text)

    def product(self, f64: bool, sizes: tuple[str, str, str], a: tuple[str, ...], b: tuple[str, ...], out: str) -> None:
        """``out`` (m, n) in C order = ``a`` (m, k) times ``b`` (k, n), each as its address and byte strides; ``sizes``: m, n, k."""
        self.spend(self.mul(sizes[0], self.mul(sizes[1], sizes[2])))
        self.element_loops += 1
        numbers = [f"i64 {v}" for v in (str(int(f64)), *sizes)]
        operands = [f"ptr {x[0]}, i64 {x[1]}, i64 {x[2]}" for x in (a, b)]
        self.line(f"call void %product({', '.join((*numbers, *operands))}, ptr {out})")

    def function(self, name: str, text: str) -> None:
        """A function of the kernel's module; what it declares is in lines of their own."""
        lines = text.strip().split("\n")
        self.declared.update(line for line in lines if line.startswith("declare "))
        self.functions[name] = "\n".join(line for line in lines if not line.startswith("declare "))

    def flush(self) -> None:
        if self.helpers:
            self.helper("flb_flush", "void", ("ptr", "%limbo"), ("ptr", "%free"))

    # -- integers of addresses and sizes --
    def bounds_of(self, v: str) -> tuple[int, int] | None:
        return (int(v), int(v)) if _number(v) else self.sizes.get(v) or self.known.get(v)

    def know(self, v: str, bounds: tuple[int, int] | None) -> str:
        """The value, of which that is known; a number or a size of an operand where it is one of these."""
        if _number(v) or bounds is None:
            return v
        if bounds[0] == bounds[1]:
            if 0 <= bounds[0] <= SMALL_SIZE:
                return str(bounds[0])
            same = next((size for size, b in self.sizes.items() if b == bounds), None)
            if same is not None:
                return same
        self.known.setdefault(v, bounds)
        return v

    def add(self, a: str, b: str) -> str:
        if a == "0":
            return b
        if b == "0":
            return a
        if _number(a) and _number(b):
            return str(int(a) + int(b))
        return self.know(self.op(f"add i64 {a}, {b}"), between.of("+", self.bounds_of(a), self.bounds_of(b)))

    def sub(self, a: str, b: str) -> str:
        if b == "0":
            return a
        if _number(a) and _number(b):
            return str(int(a) - int(b))
        return self.know(self.op(f"sub i64 {a}, {b}"), between.of("-", self.bounds_of(a), self.bounds_of(b)))

    def mul(self, a: str, b: str) -> str:
        if a == "1":
            return b
        if b == "1":
            return a
        if _number(a) and _number(b):
            return str(int(a) * int(b))
        return self.op(f"mul i64 {a}, {b}")

    def smaller(self, a: str, b: str) -> str:
        x, y = self.bounds_of(a), self.bounds_of(b)
        if x and y and (x[1] <= y[0] or y[1] <= x[0]):
            return a if x[1] <= y[0] else b
        return self.op(f"select i1 {self.op(f'icmp slt i64 {a}, {b}')}, i64 {a}, i64 {b}")

    def larger(self, a: str, b: str) -> str:
        x, y = self.bounds_of(a), self.bounds_of(b)
        if x and y and (x[1] <= y[0] or y[1] <= x[0]):
            return b if x[1] <= y[0] else a
        return self.op(f"select i1 {self.op(f'icmp sgt i64 {a}, {b}')}, i64 {a}, i64 {b}")

    def at_entry(self, text: str) -> str:
        """An instruction whose operands are known when the kernel starts, written once, there."""
        return self.entry.setdefault(text, f"%e{len(self.entry)}")

    def larger_at_entry(self, a: str, b: str) -> str:
        return self.at_entry(f"select i1 {self.at_entry(f'icmp sgt i64 {a}, {b}')}, i64 {a}, i64 {b}")

    # -- interrupts --
    def spend(self, n: str) -> None:
        """Count ``n`` turns or elements, and leave the kernel if the user has interrupted it. Asked for before long work, never inside what LLVM
        is to vectorise."""
        total = self.op(f"add i64 {self.get('@work', 'i64')}, {n}")
        self.set("@work", "i64", total)
        ask, stop, on = self.new_label(), self.new_label(), self.new_label()
        self.line(f"br i1 {self.op(f'icmp ugt i64 {total}, {WORK}')}, label %{ask}, label %{on}, !prof !1")
        self.label(ask)
        self.set("@work", "i64", "0")
        signal = ends = self.op("call i64 %interrupted()")
        if self.turns:  # or other turns have ended the loop
            ends = self.op(f"or i64 {ends}, {self.op('load atomic i64, ptr %shared monotonic, align 8')}")
        self.branch(self.op(f"icmp eq i64 {ends}, 0"), on, stop)
        self.label(stop)
        asked = self.op(f"icmp ne i64 {signal}, 0")
        self.line(f"store i64 {self.op(f'sext i1 {asked} to i64')}, ptr %code")
        self.jump("cleanup")
        self.label(on)

    # -- calls, errors, loops --
    def call(self, name: str, result: str, *args: tuple[str, str]) -> str:
        """Call an external function or intrinsic; ``args``: (type, value)."""
        self.declared.add(f"declare {result} @{name}({', '.join(t for t, _ in args)})")
        text = f"call {result} @{name}({', '.join(f'{t} {v}' for t, v in args)})"
        if result == "void":
            self.line(text)
            return ""
        return self.op(text)

    def expanded(self, name: str, t: str, *args: str) -> str:
        """A function of inductor/vector_math.py; ``t``: "f32" or "f64"."""
        names, lines = _Names(self), []
        out = EXPANSIONS[name](Builder(names, 1, lines), t, *args)
        self.lines += ["  " + line for line in lines]
        self.types.update(line.split(" = ", 1) for line in lines)
        return out

    def check(self, holds: str, error: str, text: str, *numbers: str) -> None:
        """Leave the kernel with this error (a type's name, and its text with places for ``numbers``) unless ``holds``."""
        entry = (error, text)
        if entry not in self.errors:
            self.errors.append(entry)
        number = self.errors.index(entry) + 1
        on, off = self.new_label(), self.new_label()
        self.line(f"br i1 {holds}, label %{on}, label %{off}, !prof !0")
        block = [f"{off}:"]
        for k, v in enumerate(numbers):
            block.append(f"  %{off}.{k} = getelementptr i64, ptr %errors, i64 {k}")
            block.append(f"  store i64 {v}, ptr %{off}.{k}")
        block.append(f"  store i64 {number}, ptr %code")
        block.append("  br label %cleanup")
        self.error_blocks += block
        self.label(on)

    def loop(self, sizes, parallel: bool = False, pieces: bool = True):
        """Opens nested loops over ``sizes`` (LLVM values); yields the indices once, and closes the loops after. ``parallel``: no turn reads
        what another writes, so that the loops may be vectorised without looking at addresses. ``pieces``: several threads may do parts of them."""
        closing, indices, outer = [], [], self.group
        rare, parallel = parallel and self.rare, parallel and not self.rare
        if not self.inside and sizes:
            many = "1"
            for n in sizes:
                many = self.mul(many, n)
            self.spend(many)
        self.inside += 1
        self.element_loops += 1
        if parallel:
            self.group = self.node("!{}")
        region = Region(self) if parallel and pieces and outer is None and sizes else None
        if self.region is not None and self.region.inner is None:
            self.region.inner = list(sizes)
        around, self.region = self.region, region or self.region
        for n in sizes:
            self.count += 1
            name = f"loop{self.count}"
            self.set(name, "i64", "0")
            head, body, end = self.new_label(), self.new_label(), self.new_label()
            self.jump(head)
            self.label(head)
            i = self.get(name, "i64")
            self.branch(self.op(f"icmp slt i64 {i}, {n}"), body, end)
            self.label(body)
            indices.append(i)
            closing.append((name, i, head, end))
        yield tuple(indices)
        for name, i, head, end in reversed(closing):
            self.set(name, "i64", self.op(f"add nuw nsw i64 {i}, 1"))
            if parallel:
                accesses = self.node(f'!{{!"llvm.loop.parallel_accesses", !{self.group}}}')
                this = self.node(f"!{{!{len(self.metadata) + FIRST_NODE}, !{accesses}}}")
                self.line(f"br label %{head}, !llvm.loop !{this}")
            elif rare:
                plain = self.node('!{!"llvm.loop.vectorize.enable", i1 false}')
                once = self.node('!{!"llvm.loop.unroll.disable"}')
                this = self.node(f"!{{!{len(self.metadata) + FIRST_NODE}, !{plain}, !{once}}}")
                self.line(f"br label %{head}, !llvm.loop !{this}")
            else:
                self.jump(head)
            self.label(end)
        self.group = outer
        self.inside -= 1
        self.region = around
        if region is not None:
            region.close(sizes, closing[0])

    def versions(self, pairs, write) -> None:
        """``write()`` the code twice, for sizes that are as expected and for others. ``pairs``: sizes that are broadcast to other sizes."""
        holds = None
        for n, size in dict.fromkeys(pairs):
            as_expected = self.op(f"icmp eq i64 {n}, {'1' if n in self.ones else size}")
            holds = as_expected if holds is None else self.op(f"and i1 {holds}, {as_expected}")
        if holds is None or self.expecting or self.rare:
            write()
            return
        yes, no, on = self.new_label(), self.new_label(), self.new_label()
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

    def result(self, value: Scalar) -> None:
        """Give a number back in the next slot of ``out``."""
        self.store(self.op(f"getelementptr i64, ptr %out, i64 {self.results}"), value.dtype, value.v)
        self.results += 1

    def text(self, shapes: list[int], fresh: int = 0, written=(), spread: tuple | None = None) -> str:
        """The whole module. ``shapes``: the number of dimensions of each array; ``fresh``: the number of arrays that are results, whose
        addresses follow those of the others; ``written``: the arrays that are written, which share no memory with others. ``spread``: (places of the
        ends of the outermost range among the integers, its step, turns that are worth a thread) where the lines are for a part of its turns."""
        for n in sorted(self.scopes):
            others = [f"!{SCOPES + 3 * m}" for m in sorted(self.scopes) if m != n and (n in written or m in written)]
            scope = SCOPES + 3 * n
            self.metadata += [
                f"!{scope} = distinct !{{!{scope}, !{SCOPES - 1}}}",
                f"!{scope + 1} = !{{!{scope}}}",
                f"!{scope + 2} = !{{{', '.join(others)}}}",
            ]
        if self.scopes:
            self.metadata.append(f"!{SCOPES - 1} = distinct !{{!{SCOPES - 1}}}")
        entry = []
        addresses = [*RUNTIME, *(f"a{k}" for k in range(len(shapes))), *(f"f{k}" for k in range(fresh))]
        for n, name in enumerate(addresses):
            entry += [f"  %p{n} = getelementptr ptr, ptr %data, i64 {n}", f"  %{name} = load ptr, ptr %p{n}"]
        at = 0
        for n, ndim in enumerate(shapes):
            for what in ("n", "s"):
                for d in range(ndim):
                    entry.append(f"  %a{n}.{what}{d}.p = getelementptr i64, ptr %meta, i64 {at}")
                    entry.append(f"  %a{n}.{what}{d} = load i64, ptr %a{n}.{what}{d}.p")
                    at += 1
        entry += [f"  {name} = {text}" for text, name in self.entry.items()]
        cleanup = ["cleanup:"]
        if self.helpers:
            for name in self.owned:
                slot = self.slot(f"{name}.b", "ptr")
                cleanup += [
                    f"  {slot}.last = load ptr, ptr {slot}",
                    f"  call void @flb_drop(ptr {slot}.last, ptr %limbo)",
                ]
            cleanup.append("  call void @flb_flush(ptr %limbo, ptr %free)")
        if spread is None:
            cleanup += ["  %end = load i64, ptr %code", "  ret i64 %end"]
        else:
            cleanup += [
                "  %end = load i64, ptr %code",
                "  %before = atomicrmw umax ptr %shared, i64 %end monotonic",
                "  ret void",
            ]
        entry += [f"  {slot} = alloca {llvm}" for (_, llvm), slot in self.slots.items()]
        entry += [
            f"  store ptr null, ptr {slot}"
            for (name, llvm), slot in self.slots.items()
            if llvm == "ptr" and name.endswith(".b")
        ]
        entry += [
            "  %code = alloca i64",
            "  store i64 0, ptr %code",
            "  %limbo = alloca ptr",
            "  store ptr null, ptr %limbo",
        ]
        if ("@work", "i64") in self.slots:
            entry.append(f"  store i64 0, ptr {self.slots['@work', 'i64']}")
        entry.append(f"  %errors = getelementptr i64, ptr %out, i64 {self.results}")
        lines = [
            *(_SERIAL if spread is None else _spread(*spread)),
            *entry,
            *self.lines,
            *self.error_blocks,
            *cleanup,
            "}",
            *([_HELPERS] if self.helpers else []),
            *self.functions.values(),
            *sorted(self.declared),
            '!0 = !{!"branch_weights", i32 2000, i32 1}',
            '!1 = !{!"branch_weights", i32 1, i32 2000}',
            *self.metadata,
            *self.pieces,
        ]
        return "\n".join(lines) + "\n"


_GIVEN = ("data", "meta", "ints", "floats", "out")
_HEAD = f"define i64 @KERNEL({', '.join(f'ptr noalias %{name}' for name in _GIVEN)}) {{"
_SERIAL = (_HEAD, "entry:")


def _spread(ends: tuple[int, int], step: int, grain: int) -> list[str]:
    """The kernel that gives the turns of a range to the thread pool, and the head of the function for some of them. What both know is
    in a table: the arguments, and the number of an error, or -1, which ends all turns."""
    lines = [_HEAD, f"  %table = alloca [{len(_GIVEN) + 1} x i64]"]
    for k, name in enumerate(_GIVEN):
        lines += [f"  %at.{name} = getelementptr i64, ptr %table, i64 {k}", f"  store ptr %{name}, ptr %at.{name}"]
    lines += [
        f"  %shared = getelementptr i64, ptr %table, i64 {len(_GIVEN)}",
        "  store i64 0, ptr %shared",
        f"  %parallel.at = getelementptr ptr, ptr %data, i64 {RUNTIME.index('parallel')}",
        "  %parallel = load ptr, ptr %parallel.at",
    ]
    for name, n in zip(("start", "stop"), ends):
        lines += [f"  %{name}.at = getelementptr i64, ptr %ints, i64 {n}", f"  %{name} = load i64, ptr %{name}.at"]
    a, b = ("stop", "start") if step > 0 else ("start", "stop")
    lines += [
        f"  %span = sub i64 %{a}, %{b}",
        f"  %more = add i64 %span, {abs(step) - 1}",
        f"  %count = sdiv i64 %more, {abs(step)}",
        f"  call void %parallel(ptr @KERNEL.turns, ptr %table, i64 %count, i64 {grain})",
        "  %code = load i64, ptr %shared",
        "  ret i64 %code",
        "}",
        "define internal void @KERNEL.turns(ptr %table, i64 %turns.begin, i64 %turns.end) {",
        "start:",
        f"  %shared = getelementptr i64, ptr %table, i64 {len(_GIVEN)}",
        "  %ended = load atomic i64, ptr %shared monotonic, align 8",
        "  %on = icmp eq i64 %ended, 0",
        "  br i1 %on, label %entry, label %stopped",
        "stopped:",
        "  ret void",
        "entry:",
    ]
    for k, name in enumerate(_GIVEN):
        lines += [f"  %at.{name} = getelementptr i64, ptr %table, i64 {k}", f"  %{name} = load ptr, ptr %at.{name}"]
    return lines


_HELPERS = """
define internal ptr @flb_new(i64 %size, ptr %malloc) {
  %whole = add i64 %size, 64
  %p = call ptr %malloc(i64 %whole)
  %no = icmp eq ptr %p, null
  br i1 %no, label %end, label %yes
yes:
  store i64 1, ptr %p
  %waits = getelementptr i8, ptr %p, i64 16
  store i64 0, ptr %waits
  %data = getelementptr i8, ptr %p, i64 64
  br label %end
end:
  %r = phi ptr [ null, %0 ], [ %data, %yes ]
  ret ptr %r
}
define internal void @flb_keep(ptr %data) {
  %no = icmp eq ptr %data, null
  br i1 %no, label %end, label %yes
yes:
  %p = getelementptr i8, ptr %data, i64 -64
  %n = load i64, ptr %p
  %m = add i64 %n, 1
  store i64 %m, ptr %p
  br label %end
end:
  ret void
}
define internal void @flb_drop(ptr %data, ptr %limbo) {
  %no = icmp eq ptr %data, null
  br i1 %no, label %end, label %yes
yes:
  %p = getelementptr i8, ptr %data, i64 -64
  %n = load i64, ptr %p
  %m = sub i64 %n, 1
  store i64 %m, ptr %p
  %last = icmp eq i64 %m, 0
  br i1 %last, label %dead, label %end
dead:
  %waits = getelementptr i8, ptr %p, i64 16
  %w = load i64, ptr %waits
  %known = icmp ne i64 %w, 0
  br i1 %known, label %end, label %enter
enter:
  store i64 1, ptr %waits
  %next = load ptr, ptr %limbo
  %link = getelementptr i8, ptr %p, i64 8
  store ptr %next, ptr %link
  store ptr %p, ptr %limbo
  br label %end
end:
  ret void
}
define internal void @flb_flush(ptr %limbo, ptr %free) {
  br label %head
head:
  %p = load ptr, ptr %limbo
  %no = icmp eq ptr %p, null
  br i1 %no, label %end, label %yes
yes:
  %link = getelementptr i8, ptr %p, i64 8
  %next = load ptr, ptr %link
  store ptr %next, ptr %limbo
  %waits = getelementptr i8, ptr %p, i64 16
  store i64 0, ptr %waits
  %n = load i64, ptr %p
  %dead = icmp eq i64 %n, 0
  br i1 %dead, label %gone, label %head
gone:
  call void %free(ptr %p)
  br label %head
end:
  ret void
}"""


def _number(v: str) -> bool:
    return not v.startswith("%")


def alignment(dtype: np.dtype) -> int:
    """Of elements in memory: a complex one lies as its parts do."""
    return dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize


def constant(value, weak: bool | None = True) -> Scalar:
    """A Python or NumPy number as a Scalar."""
    dtype = (
        value.dtype
        if isinstance(value, np.generic)
        else BOOL
        if type(value) is bool
        else I64
        if type(value) is int
        else np.dtype(np.complex128)
        if type(value) is complex
        else F64
    )
    if isinstance(value, np.generic):
        weak = False
    if dtype.kind == "f":
        return Scalar(dtype, weak, float_literal(value, dtype), None, value)
    if dtype.kind == "c":
        t, of = ("double", F64) if dtype.itemsize == 16 else ("float", np.dtype(np.float32))
        re, im = (f"{t} {float_literal(x, of)}" for x in (value.real, value.imag))
        return Scalar(dtype, weak, f"<{re}, {im}>", None, value)
    if dtype.kind == "b":
        return Scalar(dtype, weak, "true" if value else "false", None, value)
    n = int(value)
    signed = n - (1 << 64) if n >= 1 << 63 else n
    return Scalar(dtype, weak, str(signed), (n, n), value)


def llvm_of(s: Scalar) -> str:
    return register_type(s.dtype)
