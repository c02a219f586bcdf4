"""Graph breaks: what captured code does at the instruction that could not be captured.

The instruction runs as ordinary Python between captured code and a *resume function*, which goes on with what is left and is itself
captured when called. The value stack travels as arguments: iterators of loops, the bound ``__exit__`` of with blocks; a handled exception
is made the current one again. An instruction inside a try or with block runs under a handler whose resume function goes on in the
original's handler. A jump on tensor data, and a loop over an iterator whose elements are not known, pick one of two resume functions.

Captured code *returns* the call of its resume function (``_frame.tail_call``), which the native side makes: a loop whose body breaks does
not grow the stack. Resume functions of resume functions are made from the original code, so a loop comes back to the same ones.

Where none of this works (a cell for ``self`` under ``super()``, instructions without an entry here) the rest of the frame runs as
ordinary Python, and the functions it calls are captured.
"""

from __future__ import annotations

import builtins
import types
import weakref

from bytecode import Instr, Label, TryBegin, TryEnd

from flambeau import _frame

from ..exc import SkipFrame
from ..rules.reflect import name_of
from ..tracing.stack_slots import slots_of
from ..variables.base import Lazy, Variable
from ..variables.iterators.generators import GeneratorVariable, closes_with, must_be_closed
from ..variables.objects.weak_references import is_weakly_known
from .assembler import instrs
from .codegen import STACK_ARGUMENT, TEMP, flat_argument_names, original_instr, remainder_code, resume_code
from .instructions import Inst, decode, live_locals
from .slots import LastiSlot, Slot
from .suspension import AWAIT, DELEGATE, YIELD, Step, awaitable, entered, exited, segment
from .versions import BREAKABLE, FOR_END, NULL_FIRST, PY312, PY313

__all__ = ["SUSPENSIONS", "emit_break", "emit_suspension"]

# What a generator or coroutine is suspended by.
SUSPENSIONS = {"GET_AWAITABLE": AWAIT, "GET_YIELD_FROM_ITER": DELEGATE, "SEND": AWAIT, "YIELD_VALUE": YIELD}
# What GET_AWAITABLE says of where its operand comes from.
OF_WITH = {1: entered, 2: exited}
# They look at the frame they are called from, of which a resume function shows a part.
FRAME_READERS = ("locals", "vars", "dir", "eval", "exec")


def truth() -> list[Instr]:
    """What turns the value on the stack into the bool that a jump or UNARY_NOT wants."""
    return [Instr("TO_BOOL")] if PY313 else []


def jump(name: str, target: Label) -> Instr:
    """A normal conditional jump, forward."""
    if not PY312:
        name = name.replace("POP_JUMP_IF_", "POP_JUMP_FORWARD_IF_")
    return Instr(name, target)


def emit_break(tx, inst: Inst) -> None:
    """Finish the root frame ``tx`` in front of ``inst``."""
    tx.needs_eval = True
    for name in FRAME_READERS:
        if name in tx.code.co_names and tx.globals.get(name, getattr(builtins, name)) is getattr(builtins, name):
            raise SkipFrame(f"{name}() looks at the frame itself, and the graph breaks")
    if any(n not in tx.cells for n in (*tx.code.co_cellvars, *tx.code.co_freevars)):
        raise SkipFrame("the graph breaks in a comprehension whose variable is that of a nested function elsewhere")
    if "__class__" in tx.code.co_freevars and tx.code.co_argcount and tx.code.co_varnames[0] in tx.code.co_cellvars:
        _remainder(tx, inst)  # super() looks for its object in the first argument
    elif inst.name == "FOR_ITER" or inst.name.startswith("POP_JUMP_IF_"):
        _jump(tx, inst)
    elif inst.name in ("JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP"):
        _jump(tx, inst)
    elif inst.name in BREAKABLE:
        _resume(tx, inst)
    else:
        _remainder(tx, inst)


def _locals_of(tx) -> dict[str, Variable]:
    """Fast locals and their values, those that the frame's cells hold left out."""
    cells = {*tx.code.co_cellvars, *tx.code.co_freevars}
    # Values of the stack that a resume function was given are on the stack, or were dropped.
    return {n: v for n, v in tx.locals.items() if n not in cells and not n.startswith(STACK_ARGUMENT)}


def _locals_at(tx, index: int) -> dict[str, Variable]:
    """Those that are live, or notice that they are dropped."""
    live, mine = live_locals(tx.code, index), _locals_of(tx)
    out = {
        n: v
        for n, v in mine.items()
        if n in live or closes_with(v, tx) or is_weakly_known(v) or v.unwrap() in tx.output.references.weakly_known
    }
    if "__class__" in tx.code.co_freevars and tx.code.co_argcount:  # super() reads the first argument without naming it
        first = tx.code.co_varnames[0]
        if first in tx.locals:
            out = {first: tx.locals[first], **out}
    return out


def inner_cell(tx, name: str) -> bool:
    """Whether the place of this cell variable holds one that a comprehension made (PEP 709)."""
    return tx.cells[name].root_name != name


def _changed(tx, names: dict[str, Variable]) -> dict[str, Variable]:
    """Those whose value in captured code is not already in its local."""
    out = {f"{TEMP}cell_{n}": c for n, c in tx.cells.items() if inner_cell(tx, n)}
    for n, v in names.items():
        s = v.source
        if (
            s is not None
            and name_of(type(s)) == "LocalSource"
            and s.local == n
            and (isinstance(v, Lazy) or v.unwrap().reloadable())
        ):
            continue
        out[n] = v
    return out


def _guarded(tx, cg, inst: Inst, emit) -> None:
    """``emit()`` the instruction, under the handler that the original has for it; the handler goes on in a resume function."""
    if inst.handler is None:
        emit()
        return
    failed, behind = Label(), Label()
    begin = TryBegin(failed, inst.lasti, inst.depth)
    cg.code.append(begin)
    emit()
    cg.code.append(TryEnd(begin))
    cg.code.append(Instr("JUMP_FORWARD", behind))
    cg.code.append(failed)
    slots = slots_of(tx.stack[: inst.depth])
    if inst.lasti:
        slots.append(LastiSlot(inst.index))
    _call_resume(tx, cg, inst.handler, [*slots, Slot.VALUE], list(_locals_at(tx, inst.handler)), inst.line)
    cg.code.append(behind)


def _names_around(tx, inst: Inst) -> tuple[dict[str, Variable], list[str]]:
    """(the locals that have to be there when the instruction runs, the names of those that the rest of the frame is given)."""
    pops, pushes = BREAKABLE[inst.name](inst.arg)
    after = inst.index + 1
    names = _locals_at(tx, inst.index if pushes is None else after)
    if pushes is None:  # the frame is left: what code runs for when the traceback goes
        names = {n: v for n, v in names.items() if closes_with(v, tx)}
    if inst.name == "DELETE_FAST":
        names[inst.argval] = tx.locals[inst.argval]
    if inst.handler is not None:
        names = {**names, **_locals_at(tx, inst.handler)}
    if pushes is None:
        return names, []
    names_after = [n for n in _locals_at(tx, after) if inst.name != "DELETE_FAST" or n != inst.argval]
    given = [v.unwrap() for v in tx.stack[len(tx.stack) - pops :]]
    for n, v in _locals_of(tx).items():  # plain code may refer weakly to what it is given
        if n not in names and any(g is v.unwrap() for g in given) and v.unwrap().is_made_object():
            names[n] = v
            names_after.append(n)
    return names, names_after


def _let_go(tx, cg, leaves: bool) -> None:
    """The stack and the variables alone hold the values: an exception that leaves and this frame must not keep each other alive, and a generator
    is closed when it is dropped."""
    held = [n for n in flat_argument_names(tx.func.__code__) if n.startswith(STACK_ARGUMENT)]
    if leaves:
        held += [cg.exc_temp(k) for k, slot in enumerate(slots_of(tx.stack)) if slot is Slot.HANDLED]
    for n in (*held, *dict.fromkeys(cg.temps.values())):
        cg.emit("DELETE_FAST", n)
    cg.call_function(_frame.release_arguments, None, 0)
    cg.emit("POP_TOP")


def _instruction(cg, inst: Inst, kw_names: tuple[str, ...]) -> None:
    """The instruction itself, as plain code runs it."""
    if inst.name == "CALL":
        if kw_names:
            cg.emit("KW_NAMES", tuple(kw_names))
        cg.emit("PRECALL", inst.arg)
    if inst.name in ("LOAD_METHOD", "LOAD_SUPER_METHOD"):
        if inst.name == "LOAD_METHOD":
            cg.load_attr(inst.argval)
        else:
            cg.code.append(Instr("LOAD_SUPER_ATTR", (False, bool(inst.arg & 2), inst.argval)))
        cg.emit("PUSH_NULL")
        if NULL_FIRST:
            cg.emit("SWAP", 2)
    elif inst.name == "UNARY_NOT":
        cg.code += truth() + original_instr(inst)
    elif inst.name == "RERAISE":
        # As it is: the place it would take from the stack is one in the original code.
        cg.code.append(Instr("RERAISE", 0))
    else:
        cg.code += original_instr(inst)


def _resume(tx, inst: Inst) -> None:
    pops, pushes = BREAKABLE[inst.name](inst.arg)
    after = inst.index + 1
    names, names_after = _names_around(tx, inst)
    slots = slots_of(tx.stack[: len(tx.stack) - pops]) + [Slot.VALUE] * (pushes or 0)
    if inst.name in ("LOAD_METHOD", "LOAD_SUPER_METHOD"):
        slots[-2 if NULL_FIRST else -1] = (
            Slot.NULL
        )  # a NULL beside the bound method, as the instruction itself may leave it
    kw_names = tx.kw_names
    leaves = pushes is None and inst.handler is None

    def tail(cg):
        def run():
            closes = any(isinstance(v, GeneratorVariable) or must_be_closed(v) for v in (*tx.stack, *cg.keep))
            if leaves or closes or inst.name in ("DELETE_FAST", "STORE_FAST"):
                _let_go(tx, cg, leaves)
            _instruction(cg, inst, kw_names)

        start = len(cg.code)
        _guarded(tx, cg, inst, run)
        if pushes is None:
            pass
        elif decode(tx.code)[after].name == "RETURN_VALUE" and pushes and inst.handler is None:
            cg.emit("RETURN_VALUE")
        else:
            _call_resume(tx, cg, after, slots, names_after, inst.line)
        _place(cg, start, inst.line)

    tx.instructions = tx.output.emission.emit(tx, tx.stack, _changed(tx, names), tail, returning=False)


def _place(cg, start: int, line: int) -> None:
    """Instructions from number ``start`` on belong to ``line``."""
    cg.code[start:] = instrs(cg.code[start:])
    for i in cg.code[start:]:
        if isinstance(i, Instr) and type(i.lineno) is not int:  # None, or UNSET
            i.lineno = line


def _unload(cg, slots: list) -> list[str]:
    """Take the stack's ``slots`` into temporaries; the names of those that a resume function is given, the last one first."""
    values = []
    for k, slot in reversed(list(enumerate(slots))):
        if slot is Slot.HANDLED:
            cg.emit("POP_EXCEPT")
            values.append(cg.exc_temp(k))
        else:
            cg.emit("STORE_FAST", f"{TEMP}stack{k}")
            if slot is Slot.VALUE:
                values.append(f"{TEMP}stack{k}")
    return values


def _push_resume(tx, cg, target: int, slots: list, names: list[str], line: int) -> None:
    """Push the function that goes on at ``target`` with the locals ``names`` and the stack's values."""
    compiler = tx.output.compiler
    resumes = tx.output.resumes
    orig, shift = resumes.origins.get(tx.code, (tx.code, 0))
    moved = tuple(LastiSlot(max(s.instruction - shift, 0)) if isinstance(s, LastiSlot) else s for s in slots)
    key = (orig, target - shift, moved, tuple(names), line)
    code = resumes.codes.get(key)
    if code is None:  # one function for all variants of the frame, so that what was captured of the rest is found again
        if tx.suspends:
            code, header = segment(orig, target - shift, moved, names, line, resumes)
        else:
            code, header = resume_code(orig, target - shift, moved, names, line)
        resumes.origins[resumes.traced.get(code, code)] = (orig, header)
        # A class that the frame has just made is another one at each call.
        if tx.code in resumes.once or tx.reason is not None and tx.reason.id == "class-statement":
            resumes.once.add(code)
        compiler.register_code(code, resumes)
        # Another thread may have been first. Its captured code knows the function weakly, so that one stays.
        code = resumes.codes.setdefault(key, code)
    if code.co_freevars:
        cg.push_callable(lambda: cg.load_const(_frame.CompiledFunction))
        for name in code.co_freevars:
            if inner_cell(tx, name):
                cg.emit("LOAD_FAST", f"{TEMP}cell_{name}")
            else:
                cg.load_closure(name)
        cg.emit("BUILD_TUPLE", len(code.co_freevars))
        cg.call_function(weakref.ref(code), None, 0)
        cg.emit("MAKE_FUNCTION", 8)
        cg.call_function(weakref.ref(compiler), None, 0)
        cg.call(2)
    else:
        # The code of a function may be another function's, too, which has other globals.
        place = (key, id(tx.globals))
        fn = resumes.functions.get(place)
        if fn is None:
            made = _frame.CompiledFunction(types.FunctionType(code, tx.globals), compiler)
            fn = resumes.functions.setdefault(place, made)
        cg.call_function(weakref.ref(fn), None, 0)


def _call_resume(tx, cg, target: int, slots: list, names: list[str], line: int) -> None:
    """The stack holds ``slots``: hand it and the locals to the function that goes on at ``target``, and return what it returns."""
    values = _unload(cg, slots)
    cg.push_callable(lambda: cg.load_const(_frame.tail_call))
    _push_resume(tx, cg, target, slots, names, line)
    for name in names:
        cg.emit("LOAD_FAST", name)
    for t in reversed(values):
        cg.emit("LOAD_FAST", t)
    for t in values:
        if t.startswith(f"{TEMP}stack"):  # one may be an exception whose traceback holds this frame
            cg.emit("DELETE_FAST", t)
    for k, slot in enumerate(slots):
        if slot is Slot.HANDLED:  # or the exception and this frame would keep each other alive
            cg.emit("DELETE_FAST", cg.exc_temp(k))
    cg.call(1 + len(names) + len(values))
    cg.emit("RETURN_VALUE")


def emit_suspension(tx, inst: Inst) -> None:
    """Finish a segment of a generator or coroutine (:mod:`suspension`) at a ``yield``, ``yield from`` or ``await``: return the step."""
    at, after = inst, inst.index + 1
    if inst.name != "YIELD_VALUE":
        at = next(i for i in tx.insts[inst.index :] if i.name == "SEND")
        after = at.target
    line = inst.line
    kept = tx.stack[: -2 if inst.name == "SEND" else -1]  # SEND: of ``async for``, with None on top
    slots = slots_of(kept)
    names = _locals_at(tx, after)
    if at.handler is not None:
        names = {**names, **_locals_at(tx, at.handler)}
    orig, shift = tx.output.resumes.origins[tx.code]
    place = (orig, tx.globals, decode(orig)[at.index - shift].offset, line)

    def tail(cg):
        value = f"{TEMP}value"
        if inst.name == "SEND":
            cg.emit("POP_TOP")
        cg.emit("STORE_FAST", value)
        values = _unload(cg, slots)
        given = dict(zip((k for k in reversed(range(len(slots))) if slots[k] in (Slot.VALUE, Slot.HANDLED)), values))

        def go_on(target: int, stack: list, extra: list):
            names_there = list(_locals_at(tx, target))
            cg.push_callable(lambda: cg.load_const(_frame.tail_call))
            _push_resume(tx, cg, target, [*stack, *extra], names_there, line)
            held = [given[k] for k in range(len(stack)) if k in given]
            for n in (*names_there, *held):
                cg.emit("LOAD_FAST", n)
            cg.call(1 + len(names_there) + len(held))

        cg.push_callable(lambda: cg.load_const(Step))
        cg.load_const(SUSPENSIONS[inst.name])
        checked = awaitable if inst.name == "SEND" else OF_WITH.get(inst.arg) if inst.name == "GET_AWAITABLE" else None
        if checked is not None:
            cg.call_function(checked, lambda: cg.emit("LOAD_FAST", value), 1)
        else:
            cg.emit("LOAD_FAST", value)
        go_on(after, slots, [Slot.VALUE])
        if at.handler is None:
            cg.load_const(None)
        else:
            go_on(at.handler, slots[: at.depth], [LastiSlot(at.index), Slot.VALUE] if at.lasti else [Slot.VALUE])
        handled = [k for k, slot in enumerate(slots) if slot is Slot.HANDLED]
        cg.emit("LOAD_FAST", cg.exc_temp(handled[-1])) if handled else cg.load_const(None)
        for c in place:
            cg.load_const(c)
        cg.call(5 + len(place))
        for k, slot in enumerate(slots):
            if slot is Slot.HANDLED:
                cg.emit("DELETE_FAST", cg.exc_temp(k))
        cg.emit("RETURN_VALUE")

    tx.instructions = tx.output.emission.emit(tx, tx.stack, _changed(tx, names), tail, returning=False)


def _jump(tx, inst: Inst) -> None:
    names = {**_locals_at(tx, inst.index + 1), **_locals_at(tx, inst.target)}
    if inst.handler is not None:
        names.update(_locals_at(tx, inst.handler))
    on_truth = inst.name.endswith(("_IF_TRUE", "_IF_FALSE"))
    below = slots_of(tx.stack[:-1])
    through, taken_slots = below, below
    if inst.name == "FOR_ITER":
        through = [*below, Slot.VALUE, Slot.VALUE]
    elif inst.name.startswith("JUMP_IF"):
        taken_slots = [*below, Slot.VALUE]  # the condition stays on the stack when the jump is taken

    def tail(cg):
        start = len(cg.code)
        taken = Label()
        _guarded(tx, cg, inst, lambda: cg.code.extend([*(truth() if on_truth else ()), jump(inst.name, taken)]))
        _call_resume(tx, cg, inst.index + 1, through, list(_locals_at(tx, inst.index + 1)), inst.line)
        cg.code.append(taken)
        if inst.name == "FOR_ITER":
            cg.code += [Instr(name) for name in FOR_END]
        _call_resume(tx, cg, inst.target, taken_slots, list(_locals_at(tx, inst.target)), inst.line)
        _place(cg, start, inst.line)

    tx.instructions = tx.output.emission.emit(tx, tx.stack, _changed(tx, names), tail, returning=False)


def _remainder(tx, inst: Inst) -> None:
    if tx.suspends:
        raise SkipFrame(f"a graph break at {inst.name} in a generator")
    if any(isinstance(s, LastiSlot) for s in slots_of(tx.stack)):
        raise SkipFrame(f"a graph break at {inst.name} while an exception is handled")
    target = inst.index
    insts = decode(tx.code)
    while (
        target > 0 and insts[target - 1].name in ("PRECALL", "KW_NAMES") and insts[target].name in ("CALL", "PRECALL")
    ):
        target -= 1
    names = _locals_at(tx, target)
    tx.instructions = None
    out = tx.output
    asks = inst.name in ("POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE", "UNARY_NOT")
    body = out.emission.emit(
        tx, tx.stack, _changed(tx, names), lambda cg: cg.code.extend(truth() if asks else ()), returning=False
    )
    if out.emission.graph_module is None and not out.side_effects.any():
        raise SkipFrame(
            f"nothing was captured before a graph break that cannot be resumed from: {tx.reason.reason if tx.reason else ''}"
        )
    tx.final_code = remainder_code(tx.code, body, target, tx.code.co_name, inst.line)
