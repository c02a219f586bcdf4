"""Captured code that makes a generator anew, at the place where its frame is."""

from __future__ import annotations

import inspect
import types
import weakref

from flambeau import _frame

from ..bytecode.codegen import resume_code
from ..bytecode.slots import Slot
from ..graph import tensor_queries
from ..rules import trace_rules
from ..variables.base import NullVariable, Variable
from ..variables.contexts.managers import ContextExit, GradModeVariable
from ..variables.exceptions.exception import ExcInfoVariable, LastiVariable
from ..variables.functions.cells import CellVariable
from ..variables.functions.python_functions import UserFunctionVariable
from .stack_slots import slots_of

__all__ = ["grad_blocks", "rebuild_generator"]


def rebuild_generator(frame, cg) -> None:
    """Push a generator that is where this frame is."""
    if frame.finished:
        cg.call_function(exhausted, None, 0)
        return
    if not frame.started and _as_called(frame, cg):
        return
    at = frame.inst.index if frame.started else next(i.index for i in frame.insts if i.name == "RETURN_GENERATOR") + 2
    stack = frame.stack[:-1] if frame.started else []
    values = [v.unwrap() for v in stack]
    frame_cells = frame.cells
    if not frame.started:  # the instructions that make its own cells haven't run
        frame_cells = {n: CellVariable(frame.locals.get(n)) for n in frame.code.co_cellvars} | frame.cells
    names = [n for n in frame.locals if n not in frame_cells]
    resumes = frame.output.resumes
    slots = (*slots_of(values), *([Slot.VALUE] if frame.started else []))
    key = (frame.code, at, slots, tuple(names), "generator")
    code = resumes.codes.get(key)
    if code is None:
        code, _ = resume_code(frame.code, at, slots, names, frame.inst.line)
        resumes.codes[key] = code
        _frame.mark_code(code, _frame.SKIP)  # what is left of it runs plainly
    cells = [frame_cells[n] for n in code.co_freevars]

    def function():
        cg.push_callable(lambda: cg.load_const(make_function))
        cg.load_const(code)
        cg.load_const(frame.globals)
        cg.load_const(frame.function.names())
        for c in cells:
            c.escapes = True
            cg(c)
        cg.call(3 + len(cells))

    blocks = grad_blocks(frame.stack)
    mode = None
    if blocks:  # they are entered again, from the mode that they go back to
        cg.call_function(tensor_queries.grad_enabled, None, 0)
        cg.emit("STORE_FAST", mode := cg.temp())
        cg.call_function(tensor_queries.set_grad_enabled, lambda: cg.load_const(bool(blocks[0].previous)), 1)
        cg.emit("POP_TOP")
    if frame.started:  # it runs to the yield where it was, whose value has been given already
        cg.push_callable(lambda: cg.load_const(begun))
    cg.push_callable(function)
    n = 0
    for v in [*(frame.locals[n] for n in names), *values]:
        if isinstance(v, ExcInfoVariable) and v.handled:
            v = v.exc
        if not isinstance(v, NullVariable | LastiVariable):
            cg(v)
            n += 1
    if frame.started:
        cg.load_const(None)
        n += 1
    cg.call(n)
    if frame.started:
        cg.call(1)
    if mode is not None:
        cg.call_function(tensor_queries.set_grad_enabled, lambda: cg.emit("LOAD_FAST", mode), 1)
        cg.emit("POP_TOP")


def _as_called(frame, cg) -> bool:
    """Push a call that makes the generator, whose pieces are captured then; False where arguments would have to be put together."""
    code = frame.code
    if code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS) or code.co_kwonlyargcount:
        return False
    if type(frame.function) is not UserFunctionVariable or trace_rules.is_polyfill(code):
        return False
    names = code.co_varnames[: code.co_argcount]
    if any(n in frame.cells for n in names):
        return False

    def function():
        def push():
            cg(frame.function)
            cg.call_function(weakref.ref(frame.output.compiler), None, 0)  # which owns this code

        cg.call_function(_frame.CompiledFunction, push, 2)

    cg.push_callable(function)
    for n in names:
        cg(frame.locals[n])
    cg.call(len(names))
    return True


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
