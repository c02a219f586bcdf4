"""The symbolic executor: interprets a frame's bytecode on variables.

:class:`Frame` is the machine (stack, locals, cells, exceptions); the opcode handlers are in :mod:`.opcodes`. :class:`~.root_frame.RootFrame`
is the frame being captured, :class:`~.inline_frame.InlineFrame` one that is traced into it. A break is decided in the root frame: an
:class:`~..exc.Unsupported` anywhere below makes it trace again from the start and stop in front of the root instruction that led
there, so nothing has to be undone.
"""

from __future__ import annotations

import sys
import traceback
import types
from collections.abc import Callable
from typing import Any

from ..bytecode.instructions import Inst, decode, shown_name
from ..bytecode.versions import PY313
from ..exc import Unsupported, UserRaises, unsupported
from ..guards.source import ConstSource
from ..higher_order.long_loops import Turns
from ..rules import trace_rules
from ..variables.base import Lazy, Variable
from ..variables.exceptions.exception import ExceptionVariable, LastiVariable, name_attribute, variable_of
from ..variables.exceptions.tracebacks import Entry
from ..variables.functions.cells import CellVariable
from ..variables.iterators.generators import closes_with, generator_closes
from ..variables.values.constant import ConstantVariable
from . import trace_logs
from .current_frame import active_frames
from .made_for_variables import MadeForVariables
from .opcodes import Opcodes

__all__ = ["Frame"]


class Frame(Opcodes, MadeForVariables):
    """What is common to the frame being captured and those that are inlined; variables are handed it as ``tx``."""

    parent: Frame | None = None
    shown_locals: Variable | None = None  # what locals() gave
    namespace: dict[str, Variable] | None = None  # of a class body
    logged_line: int | None = None  # the last line that the log has

    def __init__(
        self, output, code: types.CodeType, globals: dict, locals: dict[str, Variable], cells: dict[str, CellVariable]
    ):
        self.output, self.code, self.globals = output, code, globals
        self.insts = decode(code)
        self.locals, self.cells = locals, cells
        self.stack: list[Variable] = []
        self.ip = 0
        self.inst: Inst = self.insts[0]
        self.kw_names: tuple[str, ...] = ()
        self.result: Variable | None = None
        self.yielded: Variable | None = None
        self.suspended = self.finished = self.started = self.running = False
        self.handling: list[Variable] = []  # exceptions being handled
        self.turns: dict[int, int] = {}  # of while loops over numbers, by their first instruction
        self.for_loops: dict[int, Turns] = {}  # by their FOR_ITER
        self.place: traceback.FrameSummary | None = None  # of the last instruction that was asked for

    @property
    def side_effects(self):
        return self.output.side_effects

    @property
    def root(self) -> Frame:
        f = self
        while f.parent is not None:
            f = f.parent
        return f

    # -- the stack --
    def push(self, v: Variable) -> None:
        self.stack.append(v if type(v) is not Lazy else v.real(self))

    def pop(self) -> Variable:
        v = self.stack.pop()
        return v.real(self) if type(v) is Lazy else v

    def popn(self, n: int) -> list[Variable]:
        if not n:
            return []
        out = self.stack[-n:]
        del self.stack[-n:]
        for i, v in enumerate(out):
            if type(v) is Lazy:
                out[i] = v.real(self)
        return out

    def top(self, n: int = 1) -> Variable:
        """The n-th value from above."""
        v = self.stack[-n]
        if type(v) is Lazy:
            v = self.stack[-n] = v.real(self)
        return v

    def realize(self, v: Variable) -> Variable:
        return v.real(self) if type(v) is Lazy else v

    # -- what instructions and variables ask for --
    def raise_user(self, e: BaseException):
        raise UserRaises(e)

    def evaluated(self, fn: Callable, *args, **kwargs) -> Any:
        """``fn(*args, **kwargs)`` for values that are known. What it raises is the program's exception at this line."""
        try:
            return fn(*args, **kwargs)
        except Exception as e:
            self.raise_user(e)

    def raise_missing(self, key: Variable):
        """A key was not found: the error holds that very object."""
        if key.is_constant():
            self.raise_user(KeyError(key.as_constant()))
        e = KeyError(key.as_constant() if key.can_constant() else None)
        raise UserRaises(e, ExceptionVariable(e, args=[key]))

    def attribute(self, v: Variable, name: str, read=None) -> Variable:
        """``v.name``, read by ``read()`` where that isn't the usual way."""
        try:
            return v.getattr(self, name) if read is None else read()
        except UserRaises as e:
            if isinstance(e.exception, AttributeError):
                name_attribute(self, e, v, name)
            raise

    def locals_dict(self) -> Variable | None:
        """``locals()``, where the frame is that of a whole function: one dict, which is made anew at each call since CPython 3.13.
        That of a class body is its namespace itself, which programs write to."""
        if self.namespace is not None or self.code in self.output.resumes.origins or self.code.co_name.startswith("<"):
            return None
        if self.shown_locals is None or PY313:
            self.shown_locals = self.make_dict({})
        held = {n: c.get(self) for n, c in self.cells.items()}
        for name in dict.fromkeys((*self.code.co_varnames, *self.code.co_cellvars, *self.code.co_freevars)):
            v = self.locals.get(name) or held.get(name)
            if v is not None:
                self.shown_locals.setitem(self, ConstantVariable(name), v)
            else:
                self.shown_locals.call_method(self, "pop", [ConstantVariable(name), ConstantVariable(None)], {})
        return self.shown_locals

    def truth(self, v: Variable) -> bool:
        b = v.truth(self)
        if b is None:
            unsupported(
                "generic_jump",
                "generic_jump TensorVariable()",
                "The branch depends on tensor data.",
                "Use torch.where, or torch.cond.",
                headline="The value of a tensor decides which way the code goes (if, while, and, or, bool).",
            )
        return b

    # -- where we are --
    def location(self) -> traceback.FrameSummary:
        line = self.inst.line
        if self.place is None or self.place.lineno != line:
            self.place = traceback.FrameSummary(self.code.co_filename, line, shown_name(self.code), lookup_line=False)
        return self.place

    def user_stack(self) -> list[traceback.FrameSummary]:
        out, f = [], self
        while f is not None:
            out.append(f.location())
            f = f.parent
        return out[::-1]

    # -- running --
    def step(self) -> bool:
        """One instruction; False when the frame is done."""
        inst = self.inst = self.insts[self.ip]
        self.ip += 1
        output = self.output
        output.executed += 1
        if output.executed > output.most_instructions:
            output.too_many()
        if output.recorder.watched:
            trace_logs.before_instruction(self)
        try:
            handler = HANDLERS_OF[inst.name]
            if handler is None:
                unsupported("opcode", f"missing: {inst.name}", "This bytecode instruction is not traced.")
            return handler(self, inst) is not False
        except UserRaises as e:
            self.passes(inst, e)
            if inst.handler is None:
                self.leaves_by_error()
                raise
            self.enter_handler(inst, e)
            return True

    def passes(self, inst: Inst, e: UserRaises) -> None:
        """The exception is raised by ``inst``, or by what it called: its traceback gets an entry, unless the instruction only raised again
        what had been caught."""
        if e.variable is None:
            e.variable = variable_of(self, e)
        again, e.again = e.again, False
        if not again and not trace_rules.is_polyfill(self.code):
            code, shift = self.output.resumes.origins.get(self.code, (self.code, 0))
            at = inst.offset if code is self.code else decode(code)[max(inst.index - shift, 0)].offset
            e.variable.add_entry(self, Entry(code, self.globals, at, inst.line))

    def leaves_by_error(self) -> None:
        """An exception leaves the frame: the stack's values go now, the locals with the last reference to the traceback. When that is, only the
        interpreter knows."""
        for v in (*self.stack, *self.locals.values()):
            if closes_with(v, self):
                generator_closes()

    def enter_handler(self, inst: Inst, e: UserRaises) -> None:
        for v in self.stack[inst.depth :]:
            self._dropped(v)
        del self.stack[inst.depth :]
        if inst.lasti:
            self.stack.append(LastiVariable(inst.index))
        self.stack.append(e.variable)
        self.ip = inst.handler

    def handles_nothing_outside(self) -> None:
        """What a caller of the captured frame handles is asked for: nothing, and guarded to stay so."""
        if self.output.outer_exception is not None:
            unsupported("exc-info", "the exception that a caller handles", "It is another one at each call.")
        self.output.guard(ConstSource(sys.exc_info, "sys.exc_info"), "CALL", handles_nothing)

    def run(self) -> Variable:
        active_frames().append(self)
        before, self.output.tx = self.output.tx, self
        try:
            while self.step():
                pass
        except Unsupported as e:
            if not e.reason.user_stack:
                e.reason.user_stack = self.user_stack()
            raise
        finally:
            active_frames().pop()
            self.output.tx = before
        return self.result


class _Handlers(dict):
    """The handler of each instruction by its name; None for one that is not traced."""

    def __missing__(self, name: str):
        self[name] = handler = getattr(Opcodes, name, None)
        return handler


HANDLERS_OF = _Handlers()


def handles_nothing(exc_info) -> bool:
    return exc_info()[1] is None
