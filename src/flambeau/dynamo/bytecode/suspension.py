"""Generators and coroutines as captured functions.

The code between two suspensions is a *segment*, captured like a resume function: it returns a :class:`Step` that tells what is yielded,
delegated to or awaited, and which segment goes on, with what is sent or with what is thrown. A *driver* is the real generator or coroutine: it
makes the steps, so ``send``, ``throw``, ``close``, ``yield from`` and ``await`` are the interpreter's own.

A segment has three codes: the *traced* one, which is the original's without being a generator's and is never run; the *plain* one, the
original's from there on, as a generator's; and the *runnable* one, which delegates to the plain one. The runnable one is what a cache
belongs to, so whatever can't be captured runs plainly from there to the end.
"""

from __future__ import annotations

import inspect
import types
from typing import Any

from bytecode import Bytecode, Instr

from flambeau import _frame
from flambeau.base.weak import remembered

from .assembler import instrs
from .codegen import SUSPENDS, Codegen, finished, flat_argument_names, header_of, resume_code, stack_depth
from .instructions import Shown, decode, show_as, shown_as

__all__ = ["SUSPENDS", "Step", "begin", "segment"]

YIELD, DELEGATE, AWAIT, PLAIN = "yield", "delegate", "await", "plain"


class Step:
    """What a segment came to. ``how``: ``value`` is yielded, delegated to, awaited, or is a generator that does the rest. ``sent`` goes on
    with the result, ``thrown`` with an exception (None: there is no handler). ``handled``: the exception that is being handled there.
    ``place``: code, globals, instruction and line, for tracebacks."""

    __slots__ = ("handled", "how", "place", "sent", "thrown", "value")

    def __init__(self, how: str, value: Any, sent=None, thrown=None, handled=None, *place):
        self.how, self.value, self.sent, self.thrown, self.handled, self.place = (
            how,
            value,
            sent,
            thrown,
            handled,
            place,
        )


def segment(
    orig: types.CodeType, target: int, slots: tuple, names: list[str], line: int, resumes
) -> tuple[types.CodeType, int]:
    """The runnable code of the segment that begins at instruction ``target``, and the size of the traced code's header."""
    traced, header = resume_code(orig, target, slots, names, line, suspends=False)
    plain, _ = resume_code(orig, target, slots, names, line)
    _frame.mark_code(plain, _frame.SKIP)
    arguments = flat_argument_names(plain)
    cg = Codegen(plain, {})
    cg.push_callable(lambda: cg.load_const(Step))
    cg.load_const(PLAIN)

    def function():
        for name in plain.co_freevars:
            cg.load_closure(name)
        if plain.co_freevars:
            cg.emit("BUILD_TUPLE", len(plain.co_freevars))
        cg.load_const(plain)
        cg.emit("MAKE_FUNCTION", 8 if plain.co_freevars else 0)

    cg.push_callable(function)
    for name in arguments:
        cg.emit("LOAD_FAST", name)
    cg.call(len(arguments))
    cg.call(2)
    cg.emit("RETURN_VALUE")
    body: list = [*header_of(plain.co_freevars), *instrs(cg.code)]
    for i in body:
        if isinstance(i, Instr) and i.lineno is None:
            i.lineno = line
    bc = Bytecode(body)
    code = finished(bc, orig, orig.co_name, arguments, list(plain.co_freevars), [], stack_depth(body))
    show_as(code, shown_as(traced))
    resumes.traced[code] = traced
    return code, header


def begin(compiler, resumes, func: types.FunctionType, args: tuple):
    """The generator or coroutine of a call of ``func`` with these flat arguments."""
    code = func.__code__
    names = flat_argument_names(code)
    values = dict(zip(names, args))
    cells = tuple(types.CellType(values[n]) if n in values else types.CellType() for n in code.co_cellvars)
    names = [n for n in names if n not in code.co_cellvars]
    found = resumes.codes.get((code, "begin"))
    if found is None:
        at = next(i.index for i in decode(code) if i.name == "RETURN_GENERATOR") + 2
        found, header = segment(code, at, (), names, code.co_firstlineno, resumes)
        for c in (found, resumes.traced[found]):
            show_as(c, Shown(code.co_name))
        resumes.origins[resumes.traced[found]] = (code, header)
        compiler.register_code(found, resumes)
        found = resumes.codes.setdefault((code, "begin"), found)
    run = resumes.functions.get("begin")
    if found.co_freevars or run is None or run.fn.__globals__ is not func.__globals__:
        closure = cells + (func.__closure__ or ()) if found.co_freevars else None
        run = _frame.CompiledFunction(types.FunctionType(found, func.__globals__, closure=closure), compiler)
        if closure is None:
            resumes.functions["begin"] = run
    driver = types.FunctionType(driver_for(code), globals(), func.__name__)
    driver.__qualname__ = func.__qualname__
    return driver(_frame.tail_call(run, *(values[n] for n in names)), resumes)


@remembered
def driver_for(code: types.CodeType) -> types.CodeType:
    """The driver's code under the function's name."""
    kind = code.co_flags & SUSPENDS
    driver: Any = {inspect.CO_GENERATOR: generator, inspect.CO_COROUTINE: coroutine}.get(kind, async_generator)
    return driver.__code__.replace(
        co_name=code.co_name,
        co_qualname=code.co_qualname,
        co_filename=code.co_filename,
        co_firstlineno=code.co_firstlineno,
    )


def without_driver(e: BaseException) -> None:
    """A segment raised: the driver's entry in front of the segment's goes."""
    if e.__traceback__ is not None and e.__traceback__.tb_next is not None:
        e.__traceback__ = e.__traceback__.tb_next


def at_place(e: BaseException, step: Step) -> None:
    """Something was thrown where the function is suspended: the driver's entry becomes the function's."""
    if step.how == PLAIN:
        without_driver(e)
        return
    if step.handled is not None and e is not step.handled:
        e.__context__ = step.handled
    if e.__traceback__ is not None:
        below = None if isinstance(step.value, NotAwaitable) else e.__traceback__.tb_next
        e.__traceback__ = _frame.traceback_entry(below, *step.place)


class Awaitable:
    """What ``async for`` gets from ``__anext__``, where that is an iterator already."""

    def __init__(self, iterator):
        self.iterator = iterator

    def __await__(self):
        return self.iterator


def awaitable(x):
    return x if hasattr(type(x), "__await__") else Awaitable(x)


class NotAwaitable:
    """Where ``async with`` awaits something else: awaited, it raises what the interpreter does."""

    def __init__(self, method: str, kind: type):
        self.method, self.kind = method, kind

    def __await__(self):
        raise TypeError(
            f"'async with' received an object from {self.method} that does not implement __await__: {self.kind.__name__:.100}"
        )


def entered(x):
    return x if inspect.isawaitable(x) else NotAwaitable("__aenter__", type(x))


def exited(x):
    return x if inspect.isawaitable(x) else NotAwaitable("__aexit__", type(x))


# In the drivers ``resumes`` keeps the segments alive. An exception that is thrown in is handed on outside of the handler that caught it: the
# segment's own handler makes it current.


def generator(first, resumes):
    step = None
    try:
        step = first()
    except BaseException as e:
        without_driver(e)
        raise
    first = None
    while type(step) is Step:
        try:
            if step.how == YIELD:
                sent = yield step.value
            else:
                sent = yield from step.value
        except BaseException as e:
            at_place(e, step)
            if step.thrown is None:
                raise
            follow, sent = step.thrown, e
        else:
            if step.how == PLAIN:
                return sent
            follow = step.sent
        step = None
        try:
            step = follow(sent)
        except BaseException as e:
            without_driver(e)
            raise
        finally:
            follow = sent = None
    return step


async def coroutine(first, resumes):
    step = None
    try:
        step = first()
    except BaseException as e:
        without_driver(e)
        raise
    first = None
    while type(step) is Step:
        try:
            sent = await step.value
        except BaseException as e:
            at_place(e, step)
            if step.thrown is None:
                raise
            follow, sent = step.thrown, e
        else:
            if step.how == PLAIN:
                return sent
            follow = step.sent
        step = None
        try:
            step = follow(sent)
        except BaseException as e:
            without_driver(e)
            raise
        finally:
            follow = sent = None
    return step


async def async_generator(first, resumes):
    step = None
    try:
        step = first()
    except BaseException as e:
        without_driver(e)
        raise
    first = None
    while type(step) is Step:
        if step.how == PLAIN:
            break
        try:
            sent = (yield step.value) if step.how == YIELD else await step.value
        except BaseException as e:
            at_place(e, step)
            if step.thrown is None:
                raise
            follow, sent = step.thrown, e
        else:
            follow = step.sent
        step = None
        try:
            step = follow(sent)
        except BaseException as e:
            without_driver(e)
            raise
        finally:
            follow = sent = None
    if type(step) is not Step:
        return
    plain, send, sent = step.value, step.value.asend, None
    while True:
        try:
            value = await send(sent)
        except StopAsyncIteration:
            return
        try:
            send, sent = plain.asend, (yield value)
        except GeneratorExit:
            await plain.aclose()
            raise
        except BaseException as e:
            send, sent = plain.athrow, e
