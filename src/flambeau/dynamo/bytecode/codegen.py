"""Writing captured code: pushing values back onto a real stack, and assembling code objects.

Two passes run over the same values: the first counts how often each is needed and which graph outputs there are, the second emits.
A value needed twice is built once and kept in a temporary, so identities between the user's objects are preserved.
"""

from __future__ import annotations

import contextlib
import dis
import inspect
import types
from collections import Counter
from collections.abc import Callable
from typing import Any

from bytecode import Bytecode, CellVar, FreeVar, Instr, Label, TryBegin
from bytecode.instr import InstrLocation

from ..exc import SkipFrame, unsupported
from ..guards.source import ConstSource, GlobalSource, LocalSource, Source
from .assembler import Op, instrs, straight, with_fields
from .instructions import Inst, Lasti, Shown, decode, show_as
from .slots import LastiSlot, Slot
from .versions import NULL_FIRST, PY313, original, real, split

__all__ = [
    "Codegen",
    "assemble",
    "finished",
    "flat_argument_names",
    "header_of",
    "original_instr",
    "remainder_code",
    "resume_code",
    "stack_depth",
]

SUSPENDS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
TEMP = "___flb_"
STACK_ARGUMENT = "___stack"
AT_ONCE = (LocalSource, ConstSource, GlobalSource)  # loaded by one instruction


def flat_argument_names(code: types.CodeType) -> list[str]:
    n = code.co_argcount + code.co_kwonlyargcount
    n += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return list(code.co_varnames[:n])


class Codegen:
    def __init__(self, code: types.CodeType, globals: dict[str, Any], graph=None):
        self.globals, self.graph = globals, graph
        self.made_classes: dict[int, Any] = {}  # by the ids of their stand-ins
        self.enumerations: dict[int, Any] = {}  # made while tracing, by their ids
        self.cells = frozenset(code.co_cellvars)
        self.free = frozenset(code.co_freevars)
        self.counts: Counter[int] = Counter()
        self.keep: list[Any] = []  # variables whose id is a key must stay alive
        self.counting = True
        self.returning = False
        self.wants_outer = False
        self.depth = 0  # values of the frame's stack pushed so far
        self.outputs: dict[Any, int] = {}  # graph node -> position in the graph's output
        self.shared: dict[
            int, str | None
        ] = {}  # paths that several sources begin with, and the temporary that holds each
        self.path: Callable[[Source], int] | None = None  # the number of a source's path, while ``shared`` counts
        self.start()

    def start(self) -> None:
        self.code: list[Any] = []
        self.temps: dict[int, str] = {}
        self.in_progress: set[int] = set()
        self.n_temps = 0
        self.behind_writes: list[Callable[[], None]] = []  # what is emitted when the side effects are replayed

    # -- single instructions --
    def emit(self, name: str, *arg) -> None:
        """A normal instruction (:mod:`versions`)."""
        self.code += real(name, *arg, make=Op)

    def load_const(self, value) -> None:
        if id(value) in self.made_classes:  # a stand-in: the class itself is made by this code
            self(self.made_classes[id(value)])
            return
        if id(value) in self.enumerations:
            self(self.enumerations[id(value)])
            return
        if id(type(value)) in self.enumerations:
            self.call_function(type(value), lambda: self.load_const(value._value_), 1)
            return
        self.emit("LOAD_CONST", value)

    def load_fast(self, name: str) -> None:
        if name in self.cells:
            self.emit("LOAD_DEREF", CellVar(name))
        else:
            self.emit("LOAD_FAST", name)

    def load_source(self, source: Source) -> None:
        """Push what is found at ``source``."""
        place = self.path(source) if self.path is not None and source.guarded else None
        if place not in self.shared:
            source.load(self)
            return
        name = self.shared[place]
        if name is None:
            source.load(self)
            name = self.shared[place] = self.temp()
            self.emit("COPY", 1)
            self.emit("STORE_FAST", name)
        else:
            self.emit("LOAD_FAST", name)

    @contextlib.contextmanager
    def sharing(self, sources: list[Source], path: Callable[[Source], int]):
        """Within this block, in which nothing is written, a path that several of ``sources`` begin with is followed once."""
        onwards: dict[int, set[int]] = {}
        for source in sources:
            base = source.base
            while base is not None and not isinstance(base, AT_ONCE):
                ways = onwards.setdefault(path(base), set())
                first = not ways
                ways.add(path(source))
                source, base = base, base.base if first else None
        self.path = path
        self.shared = {p: None for p, ways in onwards.items() if len(ways) > 1}
        try:
            yield
        finally:
            self.path, self.shared = None, {}

    def store_local(self, name: str) -> None:
        if name in self.cells:
            self.emit("STORE_DEREF", CellVar(name))
        elif name in self.free:
            self.emit("STORE_DEREF", FreeVar(name))
        else:
            self.emit("STORE_FAST", name)

    def load_closure(self, name: str) -> None:
        self.emit("LOAD_CLOSURE", CellVar(name) if name in self.cells else FreeVar(name))

    def delete_closure(self, name: str) -> None:
        self.emit("DELETE_DEREF", CellVar(name) if name in self.cells else FreeVar(name))

    def load_global(self, name: str) -> None:
        self.emit("LOAD_GLOBAL", (False, name))

    def load_attr(self, name: str) -> None:
        self.emit("LOAD_ATTR", name)

    def call_function(self, fn, push_args: Callable[[], Any] | None, n: int) -> None:
        """Push ``fn(args)``; ``push_args`` pushes the n arguments."""
        self.push_callable(lambda: self.load_const(fn))
        if push_args is not None:
            push_args()
        self.call(n)

    def push_callable(self, push: Callable[[], Any]) -> None:
        """``push()`` pushes what is called; its NULL goes where this version has it."""
        if NULL_FIRST:
            self.emit("PUSH_NULL")
        push()
        if not NULL_FIRST:
            self.emit("PUSH_NULL")

    def call(self, n: int, names: tuple[str, ...] = ()) -> None:
        """``names``: those of the last arguments."""
        if names and not PY313:
            self.emit("KW_NAMES", names)
        if names and PY313:
            self.load_const(names)
            self.emit("CALL_KW", n)
            return
        self.emit("PRECALL", n)
        self.emit("CALL", n)

    def temp(self) -> str:
        self.n_temps += 1
        return f"{TEMP}{self.n_temps}"

    def outer_exception(self) -> None:
        """Push the exception that a caller handles, or None."""
        self.wants_outer = True
        self.emit("LOAD_FAST", f"{TEMP}outer")

    @staticmethod
    def exc_temp(depth: int) -> str:
        """Holds the exception whose handling is shown at this place of the stack."""
        return f"{TEMP}exc{depth}"

    def call_behind_writes(self, fn, var, *consts) -> None:
        """When the side effects are replayed, call ``fn`` with the value on top of the stack, ``var`` and constants."""
        names = self.temp(), self.temp()
        self.emit("COPY", 1)
        self.emit("STORE_FAST", names[0])
        self(var)
        self.emit("STORE_FAST", names[1])

        def push():
            for n in names:
                self.emit("LOAD_FAST", n)
            for c in consts:
                self.load_const(c)

        def call():
            self.call_function(fn, push, 2 + len(consts))
            self.emit("POP_TOP")
            for n in names:
                self.emit("DELETE_FAST", n)

        self.behind_writes.append(call)

    # -- values --
    def stack(self, vars) -> None:
        """Push the frame's stack."""
        for self.depth, v in enumerate(vars):
            self(v)

    def __call__(self, var) -> None:
        """Push ``var``."""
        var = var.unwrap()
        key = id(var)
        if self.counting:
            self.keep.append(var)
            self.counts[key] += 1
            if self.counts[key] > 1 and not var.is_constant():
                return
        if key in self.temps:
            self.emit("LOAD_FAST", self.temps[key])
            return
        if var.reloadable():
            var.source.load(self)
            return
        if key in self.in_progress:
            raise SkipFrame(f"a {var.python_type_name()} that contains itself cannot be rebuilt")
        self.in_progress.add(key)
        var.reconstruct(self)
        self.in_progress.discard(key)
        if self.counts[key] > 1 and not var.is_constant() and key not in self.temps:
            t = self.temps[key] = self.temp()
            self.emit("COPY", 1)
            self.emit("STORE_FAST", t)

    def all(self, vars) -> None:
        for v in vars:
            self(v)

    def graph_output(self, node) -> None:
        """Push one output of the compiled graph."""
        if node.graph is not self.graph:
            unsupported(
                "subgraph-escape", "a tensor that a transformed function made leaves it other than as its result"
            )
        i = self.outputs.setdefault(node, len(self.outputs))
        self.emit("LOAD_FAST", f"{TEMP}graph_out")
        self.load_const(i)
        self.emit("BINARY_SUBSCR")


def original_instr(i: Inst) -> list[Instr]:
    """An instruction of the original code (no jump, no cell) for use in captured code, at its place in the source."""
    out = original(i)
    if i.positions is not None and i.positions.lineno is not None:
        for o in out:
            o.location = InstrLocation.from_positions(i.positions)
    return out


def finished(
    bc: Bytecode,
    like: types.CodeType,
    name: str,
    argnames: list[str],
    freevars: list[str],
    cellvars: list[str],
    own_depth: int,
    suspends: int = 0,
) -> types.CodeType:
    bc.name = name
    bc.qualname = like.co_qualname.rpartition(".")[0] + ("." if "." in like.co_qualname else "") + name
    bc.filename = like.co_filename
    bc.first_lineno = like.co_firstlineno
    bc.argcount, bc.kwonlyargcount, bc.posonlyargcount = len(argnames), 0, 0
    bc.argnames = list(argnames)
    bc.freevars, bc.cellvars = list(freevars), list(cellvars)
    bc.flags = _flags(freevars) | suspends
    bc.docstring = None
    # The depth is computed here: the assembler's own computation refuses code that no path reaches, which every resume function has.
    return bc.to_code(stacksize=own_depth + like.co_stacksize, compute_exception_stack_depths=False)


def stack_depth(code: list) -> int:
    """The deepest stack of straight code with forward jumps."""
    depth = deepest = 0
    at_label: dict[Any, int] = {}
    for i in code:
        if isinstance(i, Label):
            depth = at_label.get(i, depth)
        elif isinstance(i, TryBegin):
            at_label[i.target] = i.stack_depth + 1 + i.push_lasti
            deepest = max(deepest, at_label[i.target])
        elif isinstance(i, Instr):
            if isinstance(i.arg, Label):
                at_label[i.arg] = depth + i.stack_effect(jump=True)
                deepest = max(deepest, at_label[i.arg])
            depth += i.stack_effect(jump=False)
            deepest = max(deepest, depth)
    return deepest + 2


def header_of(freevars) -> list:
    """What a function with this closure starts with."""
    out: list = []
    _header(out, freevars, ())
    return out


def _header(bc: list, freevars, cellvars, generator=0) -> None:
    if freevars:
        bc.append(Instr("COPY_FREE_VARS", len(freevars)))
    for c in cellvars:
        bc.append(Instr("MAKE_CELL", CellVar(c)))
    if generator:
        bc.extend([Instr("RETURN_GENERATOR"), Instr("POP_TOP")])
    bc.append(Instr("RESUME", 0))


def assemble(orig: types.CodeType, code: list, name: str, line: int) -> types.CodeType:
    """Code with the flat arguments, cells and closure of ``orig`` and the given body."""
    body: list = []
    _header(body, orig.co_freevars, orig.co_cellvars)
    body.extend(code)
    arguments = flat_argument_names(orig)
    fields = straight(body, line, arguments, orig.co_cellvars, orig.co_freevars, orig.co_stacksize)
    if fields is not None:
        return with_fields(orig, fields, name, len(arguments), _flags(orig.co_freevars))
    body = instrs(body)
    for i in body:
        if isinstance(i, Instr) and i.lineno is None:
            i.lineno = line
    bc = Bytecode()
    bc.extend(body)
    return finished(bc, orig, name, arguments, orig.co_freevars, orig.co_cellvars, stack_depth(body))


def _flags(freevars) -> int:
    return inspect.CO_OPTIMIZED | inspect.CO_NEWLOCALS | (inspect.CO_NESTED if freevars else 0)


def _labelled(orig: types.CodeType, target: int) -> tuple[list, Label]:
    """The original body without its header, with a label before instruction number ``target``."""
    bc = Bytecode.from_code(orig, conserve_exception_block_stackdepth=True)
    out: list = []
    label = Label()
    n = 0
    header = True
    for item in bc:
        if not isinstance(item, Instr):
            out.append(item)
            continue
        for part in split(item):
            if n == target:
                # NOTE: a TryBegin in front of the target must stay in front of the label, or the block would not be entered.
                out.append(label)
            n += 1
            header = header and part.name not in ("RESUME", "RETURN_GENERATOR")
            if header and part.name in ("COPY_FREE_VARS", "MAKE_CELL"):
                part = Instr("NOP", location=part.location)
            out.append(part)
    return out, label


def remainder_code(orig: types.CodeType, prologue: list, target: int, name: str, line: int) -> types.CodeType:
    """``prologue``, then the original code from instruction ``target`` on, as ordinary Python."""
    body, label = _labelled(orig, target)
    head: list = []
    _header(head, orig.co_freevars, orig.co_cellvars)
    head.extend(instrs(prologue))
    head.append(Instr("JUMP_FORWARD", label))
    for i in head:
        if isinstance(i, Instr) and i.lineno is None:
            i.lineno = line
    bc = Bytecode()
    bc.extend(head + body)
    return finished(bc, orig, name, flat_argument_names(orig), orig.co_freevars, orig.co_cellvars, stack_depth(head))


def resume_code(
    orig: types.CodeType,
    target: int,
    stack: tuple[Slot | LastiSlot, ...],
    names: list[str],
    line: int,
    suspends: bool = True,
) -> tuple[types.CodeType, int]:
    """The function that goes on at instruction ``target``, and the number of instructions in front of the original ones. ``stack``: what
    each place of the stack holds; the locals ``names`` are the first arguments, then the values. Cells of
    the original are free variables here. Of a generator's code it is a generator again, unless ``suspends`` is off."""
    code, header = _resume_code(orig, target, stack, names, line, {}, suspends)
    places = {s.instruction for s in stack if isinstance(s, LastiSlot)}
    if places:  # known only when it is assembled
        insts = decode(code)
        places = {k: Lasti(insts[header + k].offset // 2, k) for k in places}
        code, header = _resume_code(orig, target, stack, names, line, places, suspends)
    return code, header


def _resume_code(
    orig, target: int, stack, names, line: int, places: dict, suspends: bool
) -> tuple[types.CodeType, int]:
    body, label = _labelled(orig, target)
    free = [*orig.co_cellvars, *orig.co_freevars]
    head: list = []
    generator = orig.co_flags & SUSPENDS if suspends else 0
    _header(head, free, [], generator)
    stack_names = []
    for k, slot in enumerate(stack):
        if slot is Slot.NULL:
            head.append(Instr("PUSH_NULL"))
        elif isinstance(slot, LastiSlot):
            head.append(Instr("LOAD_CONST", places.get(slot.instruction, 0)))
        else:
            stack_names.append(f"{STACK_ARGUMENT}{k}")
            head.append(Instr("LOAD_FAST", stack_names[-1]))
            if slot is Slot.HANDLED:
                head.extend([Instr("PUSH_EXC_INFO"), Instr("POP_TOP")])
            head.append(Instr("DELETE_FAST", stack_names[-1]))  # from here on the stack alone holds it
    head.append(Instr("JUMP_FORWARD", label))
    for i in head:
        if isinstance(i, Instr) and i.lineno is None:
            i.lineno = line
    out, renamed, n = [], {}, 0
    for i in head + body:
        if isinstance(i, Instr):
            if isinstance(i.arg, CellVar):
                i = Instr(i.name, FreeVar(str(i.arg.name)), location=i.location)
            elif i.opcode in dis.haslocal and i.arg in free:  # the cell itself is moved
                if not PY313:  # the assembler knows no such instruction: one with the same argument, renamed afterwards
                    renamed[n] = i.name
                i = Instr(i.name if PY313 else "LOAD_CLOSURE", FreeVar(i.arg), location=i.location)
            n += 1
        out.append(i)
    bc = Bytecode()
    bc.extend(out)
    # NOTE: locals first, so that the first argument stays the first: super() without arguments looks there.
    code = finished(bc, orig, orig.co_name, names + stack_names, free, [], stack_depth(head), generator)
    code = _rename(code, renamed) if renamed else code
    if not generator:
        show_as(code, Shown(f"torch_dynamo_resume_in_{orig.co_name}_at_{line}", line))
    return code, len(head)


def _rename(code: types.CodeType, names: dict[int, str]) -> types.CodeType:
    """The code with other names for the instructions of these numbers."""
    insts, raw = decode(code), bytearray(code.co_code)
    for n, name in names.items():
        raw[insts[n].offset] = dis.opmap[name]
    return code.replace(co_code=bytes(raw))
