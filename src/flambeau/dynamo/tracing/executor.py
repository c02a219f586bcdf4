"""The symbolic executor: interprets a frame's bytecode on variables, inlining the functions it calls.

:class:`Frame` is the machine (stack, locals, cells, exceptions); the opcode handlers are in :mod:`opcodes`. :class:`RootFrame`
is the frame being captured, :class:`InlineFrame` one that is traced into it. A break is decided in the root frame: an
:class:`~.exc.Unsupported` anywhere below makes it trace again from the start and stop in front of the root instruction that led
there, so nothing has to be undone.
"""

from __future__ import annotations

import inspect
import sys
import traceback
import types
import weakref
from collections.abc import Callable
from typing import Any

from flambeau import _frame

from ..bytecode import resume
from ..bytecode.codegen import STACK_ARGUMENT, resume_code
from ..bytecode.instructions import Inst, decode, shown_name
from ..bytecode.versions import PY312, PY313
from ..exc import BreakReason, RestartAnalysis, SkipForGood, SkipFrame, TraceAgain, Unsupported, UserRaises, unsupported
from ..graph import tensor_queries
from ..graph.function_nodes import function_node
from ..graph.glances import only_glances
from ..graph.plain_frames import plain_frame
from ..guards.source import ConstSource
from ..higher_order import comprehensions, nested_regions, recursion
from ..higher_order.element_loops import is_element_loop
from ..rules import trace_rules
from ..rules.reflect import name_of, qualname_of
from ..subclasses import subclass_operations
from ..variables import operators
from ..variables.base import Lazy, NullVariable, Variable
from ..variables.containers.dicts import DictVariable
from ..variables.containers.lists import ListVariable, TupleVariable
from ..variables.contexts.managers import ContextExit, GradModeVariable
from ..variables.exceptions.exception import (
    ExceptionVariable,
    ExcInfoVariable,
    LastiVariable,
    name_attribute,
    variable_of,
)
from ..variables.exceptions.tracebacks import Entry
from ..variables.functions.bound import c_callable
from ..variables.functions.python_functions import (
    CellVariable,
    FunctionVariable,
    UserFunctionVariable,
    UserMethodVariable,
    bind,
)
from ..variables.iterators.consumers import sort
from ..variables.iterators.container_iterators import LIST_ITERATOR, ElementsVariable
from ..variables.iterators.generators import GeneratorVariable, closes_with, generator_closes
from ..variables.iterators.protocol import checked_iterator
from ..variables.objects.class_object import ClassVariable
from ..variables.objects.instance import SlotMethod
from ..variables.objects.namespaces import NamespaceDict
from ..variables.objects.weak_references import check_callbacks
from ..variables.tensors.set_data import set_data
from ..variables.values.constant import ConstantVariable
from ..variables.values.constant_methods import ConstantMethodVariable
from ..variables.values.stdlib_values import made
from . import builder, trace_logs
from .current_frame import active_frames
from .opcodes import Opcodes
from .stack_slots import slots_of

__all__ = ["Frame", "InlineFrame", "RootFrame"]


MAX_INLINE_DEPTH = 120
# A recursion that branches is inlined call by call, and their number may double with each level.
MAX_RECURSIVE_CALLS = 1000
# Instructions within recursive calls: what takes more is a sort, a search or a walk, whose every step would be part of the graph.
MAX_RECURSIVE_STEPS = 50_000
# Recursive calls of a function that has met no tensor, array or varying number: there is nothing to capture in it.
MAX_PLAIN_CALLS = 16


class Frame(Opcodes):
    """What variables are handed as ``tx``. They import only what lies below them; what builds on them they reach through it."""

    operators = operators
    subclasses = subclass_operations
    regions = nested_regions
    function_node = staticmethod(function_node)
    set_data = staticmethod(set_data)

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
        self.for_loops: dict[
            int, tuple
        ] = {}  # of for loops: the iterator, its turns so far, the nodes behind the first
        self.place: traceback.FrameSummary | None = None  # of the last instruction that was asked for

    @property
    def side_effects(self):
        return self.output.side_effects

    @property
    def root(self) -> RootFrame:
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

    # -- making variables --
    def wrap(self, value, source) -> Variable:
        if source is None:
            return self.wrap_known(value)
        return builder.wrap(self, value, source)

    def wrap_known(self, value) -> Variable:
        """A value that is the same at every call as far as guards already made say; what is read from it is guarded."""
        return builder.wrap(self, value, ConstSource(value, f"const<{name_of(type(value))}>"))

    def wrap_made(self, value) -> Variable:
        """What a function returned that was called while tracing: captured code makes its containers anew."""
        return made(self, value)

    def wrap_function(self, fn, source=None) -> Variable:
        return builder.wrap(self, fn, source or ConstSource(fn, getattr(fn, "__qualname__", "fn")))

    def wrap_c_callable(self, value) -> Variable:
        return c_callable(self, value, None)

    def wrap_key(self, key) -> Variable:
        return self.wrap_known(key)

    def make_constant(self, value) -> Variable:
        return ConstantVariable(value)

    def make_constant_method(self, value, name: str) -> Variable:
        return ConstantMethodVariable(value, name)

    def make_class(self, cls: type) -> Variable:
        made = self.output.objects.made_classes.get(id(cls))
        return made or ClassVariable(cls, ConstSource(cls, qualname_of(cls)))

    def make_method(self, fn: Variable, owner: Variable) -> Variable:
        return UserMethodVariable(fn, owner)

    def make_slot_method(self, owner: Variable, name: str, method) -> Variable:
        return SlotMethod(owner, name, method)

    def make_namespace(self, table: dict, label: str) -> Variable:
        return NamespaceDict(table, label)

    def make_iterator(self, elements, over: Variable | None = None, cls: type = LIST_ITERATOR) -> Variable:
        """An iterator over known elements: the own iterator of the container ``over``, or that of a new list."""
        return ElementsVariable(elements, over, cls)

    def checked_iterator(self, it: Variable) -> Variable:
        """What an ``__iter__`` returned, which has to be an iterator."""
        return checked_iterator(self, it)

    def make_tuple(self, elements) -> Variable:
        return TupleVariable(elements)

    def make_list(self, elements) -> Variable:
        return ListVariable(elements)

    def make_dict(self, entries: dict[str, Variable]) -> Variable:
        return DictVariable({k: (ConstantVariable(k), v) for k, v in entries.items()})

    def realize(self, v: Variable) -> Variable:
        return v.real(self) if type(v) is Lazy else v

    def sort(self, items: list[Variable], kwargs: dict[str, Variable]) -> None:
        sort(self, items, kwargs)

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

    def inline(self, f: FunctionVariable, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
        depth, p, recursive = 0, self, False
        while p is not None:
            recursive = recursive or p.code is f.code
            depth, root, p = depth + 1, p, p.parent
        if depth > MAX_INLINE_DEPTH:
            unsupported("inline-depth", f"more than {MAX_INLINE_DEPTH} nested calls", "Deep recursion is not traced.")
        if recursive:
            if not root.recursive_calls:
                root.executed_before = self.output.executed
            root.recursive_calls += 1
            root.recurses |= root.code is f.code
            self.refuse_long_recursion(root, f)
        if isinstance(f, UserFunctionVariable):
            what, why = trace_rules.inline_reason(f.fn)
            if what == "skip":
                unsupported(
                    "skipped-function",
                    f"call to skipped function {f.name}",
                    f"Not traced: {why}.",
                    "torch._dynamo.allow_in_graph puts it in the graph as it is.",
                )
        code = f.code
        if code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
            unsupported("async", f"call to async function {f.name}", "Coroutines are not traced.")
        locals = bind(self, f, args, kwargs)
        if self.output.recorder.watched:
            trace_logs.called(self, f"inlined call {shown_name(code)}")
        frame = self.frame_of(f, locals)
        if code.co_flags & inspect.CO_GENERATOR:
            return comprehensions.try_generator(self, frame) or GeneratorVariable(frame)
        if not recursive:
            recursion.try_native(frame)
        result = frame.run()
        frame.locals.clear()  # the frame may be in cycles; what it alone held is dropped now
        if self.output.references.calling_references:
            check_callbacks(self, result)
        return result

    def refuse_long_recursion(self, root: RootFrame, f: FunctionVariable) -> None:
        """Unsupported for a recursion that would take long to trace, or in which nothing can be captured."""
        why = f"{f.name} is inlined call by call."
        if root.recursive_calls > MAX_RECURSIVE_CALLS:
            unsupported("recursion", f"more than {MAX_RECURSIVE_CALLS} recursive calls", why)
        if self.output.executed - root.executed_before > MAX_RECURSIVE_STEPS:
            unsupported("recursion", f"more than {MAX_RECURSIVE_STEPS} instructions in recursive calls", why)
        plain = root.recurses and not root.fullgraph and not self.output.recorder.inputs
        if plain and root.recursive_calls > MAX_PLAIN_CALLS and self.output.recorder.first_call is None:
            unsupported("recursion", "a recursive function that computes nothing with tensors or arrays", why)

    def frame_of(self, f: FunctionVariable, locals: dict[str, Variable]) -> InlineFrame:
        """A frame of ``f``, called from here."""
        cells = dict(zip(f.code.co_freevars, f.closure(self)))
        return InlineFrame(self, f, f.code, f.globals, locals, cells)


class _Handlers(dict):
    """The handler of each instruction by its name; None for one that is not traced."""

    def __missing__(self, name: str):
        self[name] = handler = getattr(Opcodes, name, None)
        return handler


HANDLERS_OF = _Handlers()


class InlineFrame(Frame):
    def __init__(self, parent: Frame, function: FunctionVariable, code, globals, locals, cells):
        super().__init__(parent.output, code, globals, locals, cells)
        self.parent = parent
        self.function = function
        self.output.references.inlined.append(weakref.ref(self))

    def load_global(self, name: str) -> Variable:
        return builder.global_of_dict(self, self.globals, name)

    # -- a generator's frame --
    def resume(self, consumer: Frame, sent: Variable) -> Variable | None:
        """Run to the next value; None when it is exhausted. ``sent``: the value of the yield."""
        self.refuse_running()
        if self.finished:
            return None
        if self.started:
            self.stack[-1] = sent
        self.started = True
        return self._go_on(consumer, self.run)

    def throw(self, consumer: Frame, exc: Variable) -> Variable | None:
        """As resume(), with the exception raised at the yield."""
        self.refuse_running()
        if self.finished:
            raise UserRaises(exc.exception, exc)
        if not self.started:
            return self._go_on(consumer, lambda: self._raise_first(exc))
        below = self.delegate()
        if below is not None:
            return self._go_on(consumer, lambda: self._throw_below(below, exc))
        return self._go_on(consumer, lambda: self._raise_here(exc))

    def refuse_running(self) -> None:
        if self.running:
            self.raise_user(ValueError("generator already executing"))

    def delegate(self) -> Variable | None:
        """The generator that ``yield from`` is at."""
        after = self.insts[self.ip] if self.suspended else self.inst  # one that runs may be at its last instruction
        if after.name == "RESUME" and after.arg & 3 == 2 and isinstance(self.stack[-2], GeneratorVariable):
            return self.stack[-2]
        return None

    def _throw_below(self, below: GeneratorVariable, exc: Variable) -> None:
        if isinstance(exc.exception, GeneratorExit):
            below.close(self)
            return self._raise_here(exc)
        try:
            v = below.frame.throw(self, exc)
        except UserRaises as e:
            return self._raise_here(e.variable)
        if v is not None:
            self.yielded, self.suspended = v, True
            return
        send = next(i for i in reversed(self.insts[: self.ip]) if i.name == "SEND")
        del self.stack[-2:]
        self.stack.append(below.returned())
        self.ip = send.target
        self.run()

    def _raise_here(self, exc: Variable) -> None:
        inst = self.inst
        self.suspended = False
        try:
            self._raise_thrown(exc)
        except UserRaises as e:
            self.passes(inst, e)
            if inst.handler is None:
                self.leaves_by_error()
                raise
            self.enter_handler(inst, e)
        self.run()

    def _raise_thrown(self, exc: Variable) -> None:
        """The context of an exception is the one that the generator itself handles. Its consumer's doesn't count."""
        if self.handling:
            exc.set_context(self, self.handling[-1])
        raise UserRaises(exc.exception, exc)

    def _raise_first(self, exc: Variable) -> None:
        """The exception is raised before the first instruction of the function."""
        try:
            self._raise_thrown(exc)
        except UserRaises as e:
            first = next(i for i in self.insts if i.name == "RETURN_GENERATOR")
            e.variable.add_entry(self, Entry(self.code, self.globals, first.offset, first.line))
            raise

    def _go_on(self, consumer: Frame, run) -> Variable | None:
        self.parent = consumer
        self.suspended, self.running = False, True
        try:
            run()
        except UserRaises as e:
            self.finished = True
            # Since 3.12 a handler in the function does it, which doesn't reach in front of it.
            if isinstance(e.exception, StopIteration) and (self.started or not PY312):
                stopped = UserRaises(RuntimeError("generator raised StopIteration"))
                stopped.variable = variable_of(consumer, stopped)
                stopped.variable.setattr(consumer, "__cause__", e.variable)
                stopped.variable.set_context(consumer, e.variable)
                raise stopped from None
            raise
        finally:
            self.running = False
            self.parent = consumer.root  # the consumer may be a generator that alone holds this one
        if self.suspended:
            return self.yielded
        self.finished = True
        return None

    def must_be_closed(self) -> bool:
        """Whether code runs when the generator is dropped now."""
        return self.started and not self.finished and (self.inst.handler is not None or self.delegate() is not None)

    def _as_called(self, cg) -> bool:
        """Push a call that makes the generator, whose pieces are captured then; False where arguments would have to be put together."""
        code = self.code
        if code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS) or code.co_kwonlyargcount:
            return False
        if type(self.function) is not UserFunctionVariable or trace_rules.is_polyfill(code):
            return False
        names = code.co_varnames[: code.co_argcount]
        if any(n in self.cells for n in names):
            return False

        def function():
            def push():
                cg(self.function)
                cg.call_function(weakref.ref(self.output.compiler), None, 0)  # which owns this code

            cg.call_function(_frame.CompiledFunction, push, 2)

        cg.push_callable(function)
        for n in names:
            cg(self.locals[n])
        cg.call(len(names))
        return True

    def reconstruct_generator(self, cg) -> None:
        """Push a generator that is where this frame is."""
        if self.finished:
            cg.call_function(exhausted, None, 0)
            return
        if not self.started and self._as_called(cg):
            return
        at = self.inst.index if self.started else next(i.index for i in self.insts if i.name == "RETURN_GENERATOR") + 2
        stack = self.stack[:-1] if self.started else []
        values = [v.unwrap() for v in stack]
        frame_cells = self.cells
        if not self.started:  # the instructions that make its own cells haven't run
            frame_cells = {n: CellVariable(self.locals.get(n)) for n in self.code.co_cellvars} | self.cells
        names = [n for n in self.locals if n not in frame_cells]
        resumes = self.output.resumes
        kinds = (*slots_of(values), *("v" * self.started))
        key = (self.code, at, kinds, tuple(names), "generator")
        code = resumes.codes.get(key)
        if code is None:
            code, _ = resume_code(self.code, at, kinds, names, self.inst.line)
            resumes.codes[key] = code
            _frame.mark_code(code, _frame.SKIP)  # what is left of it runs plainly
        cells = [frame_cells[n] for n in code.co_freevars]

        def function():
            cg.push_callable(lambda: cg.load_const(make_function))
            cg.load_const(code)
            cg.load_const(self.globals)
            cg.load_const(self.function.names())
            for c in cells:
                c.escapes = True
                cg(c)
            cg.call(3 + len(cells))

        blocks = grad_blocks(self.stack)
        mode = None
        if blocks:  # they are entered again, from the mode that they go back to
            cg.call_function(tensor_queries.grad_enabled, None, 0)
            cg.emit("STORE_FAST", mode := cg.temp())
            cg.call_function(tensor_queries.set_grad_enabled, lambda: cg.load_const(bool(blocks[0].previous)), 1)
            cg.emit("POP_TOP")
        if self.started:  # it runs to the yield where it was, whose value has been given already
            cg.push_callable(lambda: cg.load_const(begun))
        cg.push_callable(function)
        n = 0
        for v in [*(self.locals[n] for n in names), *values]:
            if isinstance(v, ExcInfoVariable) and v.handled:
                v = v.exc
            if not isinstance(v, NullVariable | LastiVariable):
                cg(v)
                n += 1
        if self.started:
            cg.load_const(None)
            n += 1
        cg.call(n)
        if self.started:
            cg.call(1)
        if mode is not None:
            cg.call_function(tensor_queries.set_grad_enabled, lambda: cg.emit("LOAD_FAST", mode), 1)
            cg.emit("POP_TOP")


def handles_nothing(exc_info) -> bool:
    return exc_info()[1] is None


def make_function(code: types.CodeType, globals: dict, names: tuple[str, str], *cells) -> types.FunctionType:
    f = types.FunctionType(code, globals, names[0], None, cells or None)
    f.__qualname__ = names[1]
    return f


def grad_blocks(stack: list[Variable]) -> list[GradModeVariable]:
    """The grad modes of the with blocks on a stack that were entered while tracing and not left."""
    exits = [v for v in stack if isinstance(v, ContextExit) and not v.left and v.source is None]
    return [v.manager for v in exits if isinstance(v.manager, GradModeVariable)]


def begun(generator):
    """The generator, brought to its first yield."""
    next(generator)
    return generator


def exhausted():
    """A generator that has ended."""
    g = (x for x in ())
    next(g, None)
    return g


class RootFrame(Frame):
    """The captured frame. ``break_at``: the visit count of the root instruction to stop in front of, from an earlier attempt."""

    def __init__(
        self,
        output,
        func: types.FunctionType,
        locals,
        cells,
        break_at: int | None,
        reason: BreakReason | None,
        fullgraph: bool,
    ):
        traced = output.resumes.traced.get(func.__code__)
        super().__init__(output, traced or func.__code__, func.__globals__, locals, cells)
        self.suspends = traced is not None
        self.func = func
        self.break_at, self.reason, self.fullgraph = break_at, reason, fullgraph
        self.visits = 0
        self.instructions: list | None = None
        self.needs_eval = False
        self.recursive_calls = 0  # that were inlined
        self.executed_before = 0  # instructions in front of the first of them
        self.recurses = False  # by way of itself
        self.unrolled = False  # elements of an iterator that existed before were taken one by one

    def load_global(self, name: str) -> Variable:
        return builder.global_of_frame(self, name)

    def run(self):
        active_frames().append(self)
        before, self.output.tx = self.output.tx, self
        try:
            if self.break_at is None and not self.suspends:
                recursion.try_native(self)
            while True:
                if self.visits == self.break_at:
                    self.inst = self.insts[self.ip]
                    resume.emit_break(self, self.inst)
                    return
                self.visits += 1
                if self.suspends and self.insts[self.ip].name in resume.SUSPENSIONS:
                    self.inst = self.insts[self.ip]
                    resume.emit_suspension(self, self.inst)
                    return
                if self.insts[self.ip].name == "RETURN_VALUE":
                    self.inst = self.insts[self.ip]
                    if self.output.recorder.watched:
                        trace_logs.before_instruction(self)
                    self.emit_return()
                    return
                self.step()
                if self.output.references.generator_dropped:
                    generator_closes()
        except Unsupported as e:
            if not e.reason.user_stack:
                e.reason.user_stack = self.user_stack()
            if e.reason.id == "finalizer":  # a frame that is continued elsewhere keeps what it was given
                raise SkipFrame(e.reason.reason) from e
            if e.reason.id == "recursion" and self.recurses:
                raise SkipForGood(e.reason.reason) from e
            if not self.fullgraph and not self.suspends and is_element_loop(self):
                if not self.output.resumes.short_loops:
                    self.output.resumes.short_loops = True
                    raise TraceAgain("short loops over arrays become native too") from e
                raise SkipForGood(f"a loop over elements of arrays breaks at each turn: {e.reason.reason}") from e
            if self.unrolled and self.break_at is None:
                # The loop goes on after the break, so what is left of it has another length each time: one iteration is captured.
                raise RestartAnalysis(None, e.reason, e) from e
            if self.break_at is not None and self.visits >= self.break_at:
                raise SkipFrame(f"the state at the graph break cannot be rebuilt: {e.reason.reason}") from e
            raise RestartAnalysis(self.visits - 1, e.reason, e) from e
        finally:
            active_frames().pop()
            self.output.tx = before

    def release(self) -> None:
        """Let go of the values of this call: what the trace keeps is in cycles, and a generator or an object with ``__del__`` would live on."""
        self.stack.clear()
        self.locals.clear()
        self.cells.clear()
        self.output.release()

    def emit_return(self) -> None:
        if only_glances(self):
            raise SkipForGood("it only looks at arrays, or changes a few of their elements: NumPy is faster")
        self.plain = plain_frame(self)
        if self.plain is not None:
            return
        value = self.stack[-1]
        kept = {n: v for n, v in self.locals.items() if closes_with(v, self) and not n.startswith(STACK_ARGUMENT)}
        self.instructions = self.output.emission.emit(
            self, [value], kept, lambda cg: cg.emit("RETURN_VALUE"), returning=True
        )

    def base_grad_mode(self) -> bool:
        """The mode in which the with blocks on the stack were entered."""
        blocks = grad_blocks(self.stack)
        return bool(blocks[0].previous) if blocks else tensor_queries.grad_enabled()

    def rebuilt_grad_mode(self) -> bool:
        """The mode when they have been entered again."""
        blocks = grad_blocks(self.stack)
        return blocks[-1].mode if blocks else tensor_queries.grad_enabled()
