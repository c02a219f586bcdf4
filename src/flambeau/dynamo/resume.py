"""Graph breaks: what captured code does at the instruction that could not be captured.

Three shapes. A *resume*: the instruction runs as ordinary Python, then a resume function goes on with what is left (itself
captured when called). A *jump* on tensor data: the condition is computed, and one of two resume functions goes on. A *remainder*,
where the stack cannot travel into another function (inside with, try or a loop): the rest of the frame runs as ordinary Python,
and the functions it calls are captured.
"""

from __future__ import annotations

import types

from bytecode import Instr, Label

from flambeau import _frame

from .codegen import TEMP, original_instr, remainder_code, resume_code
from .exc import SkipFrame
from .instructions import Inst, decode, in_loop, live_locals
from .variables.base import Lazy, NullVariable, Variable

__all__ = ["emit_break"]

# Instructions that may run alone between captured code: name → (values popped, values pushed), given the argument.
BREAKABLE = {
    "BINARY_OP": lambda a: (2, 1),
    "BINARY_SUBSCR": lambda a: (2, 1),
    "BUILD_STRING": lambda a: (a, 1),
    "CALL": lambda a: (a + 2, 1),
    "CALL_FUNCTION_EX": lambda a: (3 + (a & 1), 1),
    "COMPARE_OP": lambda a: (2, 1),
    "CONTAINS_OP": lambda a: (2, 1),
    "DELETE_ATTR": lambda a: (1, 0),
    "DELETE_SUBSCR": lambda a: (2, 0),
    "DICT_MERGE": None,
    "FORMAT_VALUE": lambda a: (1 + ((a & 4) == 4), 1),
    "GET_ITER": lambda a: (1, 1),
    "IMPORT_NAME": lambda a: (2, 1),
    "IS_OP": lambda a: (2, 1),
    "LOAD_ATTR": lambda a: (1, 1),
    "LOAD_METHOD": lambda a: (1, 2),
    "STORE_ATTR": lambda a: (2, 0),
    "STORE_SUBSCR": lambda a: (3, 0),
    "UNARY_INVERT": lambda a: (1, 1),
    "UNARY_NEGATIVE": lambda a: (1, 1),
    "UNARY_NOT": lambda a: (1, 1),
    "UNARY_POSITIVE": lambda a: (1, 1),
    "UNPACK_SEQUENCE": lambda a: (1, a),
}


def emit_break(tx, inst: Inst) -> None:
    """Finish the root frame ``tx`` in front of ``inst``."""
    tx.needs_eval = True
    if tx.handling:
        raise SkipFrame("a graph break while an exception is handled")
    blocked = inst.handler is not None or in_loop(tx.code, inst.index)
    if "__class__" in tx.code.co_freevars and tx.code.co_argcount and tx.code.co_varnames[0] in tx.code.co_cellvars:
        blocked = True
    if not blocked and inst.name.startswith("POP_JUMP_") and inst.name.endswith(("_TRUE", "_FALSE", "_NONE")):
        _jump(tx, inst)
    elif not blocked and inst.name in ("JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP"):
        _jump(tx, inst)
    elif not blocked and BREAKABLE.get(inst.name) is not None:
        _resume(tx, inst)
    else:
        _remainder(tx, inst)


def _locals_at(tx, index: int) -> dict[str, Variable]:
    """Live fast locals and their values, those that the frame's cells hold left out."""
    live = live_locals(tx.code, index)
    cells = set(tx.code.co_cellvars) | set(tx.code.co_freevars)
    out = {n: v for n, v in tx.locals.items() if n in live and n not in cells}
    if "__class__" in cells and tx.code.co_argcount:  # super() reads the first argument without naming it
        first = tx.code.co_varnames[0]
        if first in tx.locals:
            out = {first: tx.locals[first], **out}
    return out


def _changed(tx, names: dict[str, Variable]) -> dict[str, Variable]:
    """Those whose value in captured code is not already in its local."""
    out = {}
    for n, v in names.items():
        s = v.source
        if (
            s is not None
            and type(s).__name__ == "LocalSource"
            and s.local == n
            and (isinstance(v, Lazy) or v.unwrap().reloadable())
        ):
            continue
        out[n] = v
    return out


def _resume(tx, inst: Inst) -> None:
    pops, pushes = BREAKABLE[inst.name](inst.arg)
    after = inst.index + 1
    names = _locals_at(tx, after)
    kept = len(tx.stack) - pops
    slots = [isinstance(v, NullVariable) for v in tx.stack[:kept]] + [False] * pushes
    if inst.name == "LOAD_METHOD":
        slots[-2] = True  # a NULL below the bound method, as LOAD_METHOD itself may leave it
    kw_names = tx.kw_names

    def tail(cg):
        if inst.name == "CALL":
            if kw_names:
                cg.emit("KW_NAMES", tuple(kw_names))
            cg.emit("PRECALL", inst.arg)
        if inst.name == "LOAD_METHOD":
            cg.load_attr(inst.argval)
            cg.emit("PUSH_NULL")
            cg.emit("SWAP", 2)
        else:
            cg.code.append(original_instr(inst))
        if decode(tx.code)[after].name == "RETURN_VALUE" and pushes:
            cg.emit("RETURN_VALUE")
            return
        _call_resume(tx, cg, after, slots, list(names), inst.line)

    tx.instructions = tx.output.emit(tx, tx.stack, _changed(tx, names), tail, returning=False)


def _call_resume(tx, cg, target: int, slots: list[bool], names: list[str], line: int) -> None:
    """The stack holds ``slots``: hand it and the locals to the function that goes on at ``target``, and return what it returns."""
    temps = [f"{TEMP}stack{k}" for k in range(len(slots))]
    for t in reversed(temps):
        cg.emit("STORE_FAST", t)
    compiler = tx.output.compiler
    key = (tx.code, target, tuple(slots), tuple(names), line)
    code = compiler.resume_codes.get(key)
    if code is None:  # one function for all variants of the frame, so that what was captured of the rest is found again
        code = compiler.resume_codes[key] = resume_code(tx.code, target, slots, names, line)
        compiler.register_code(code)
    if code.co_freevars:
        cg.emit("PUSH_NULL")
        for name in code.co_freevars:
            cg.load_closure(name)
        cg.emit("BUILD_TUPLE", len(code.co_freevars))
        cg.load_const(code)
        cg.emit("MAKE_FUNCTION", 8)
    else:
        fn = types.FunctionType(code, tx.globals)
        cg.emit("PUSH_NULL")
        cg.load_const(_frame.CompiledFunction(fn, compiler.context))
    for name in names:
        cg.emit("LOAD_FAST", name)
    n = 0
    for t, null in zip(temps, slots):
        if not null:
            cg.emit("LOAD_FAST", t)
            n += 1
    cg.call(n + len(names))
    cg.emit("RETURN_VALUE")


def _jump(tx, inst: Inst) -> None:
    keeps = inst.name.startswith("JUMP_IF")  # the condition stays on the stack when the jump is taken
    names = {**_locals_at(tx, inst.index + 1), **_locals_at(tx, inst.target)}
    slots = [isinstance(v, NullVariable) for v in tx.stack[:-1]]

    def tail(cg):
        taken = Label()
        cg.code.append(Instr(inst.name.replace("BACKWARD", "FORWARD"), taken))
        live = _locals_at(tx, inst.index + 1)
        _call_resume(tx, cg, inst.index + 1, slots, list(live), inst.line)
        cg.code.append(taken)
        live = _locals_at(tx, inst.target)
        _call_resume(tx, cg, inst.target, slots + ([False] if keeps else []), list(live), inst.line)

    tx.instructions = tx.output.emit(tx, tx.stack, _changed(tx, names), tail, returning=False)


def _remainder(tx, inst: Inst) -> None:
    target = inst.index
    insts = decode(tx.code)
    while (
        target > 0 and insts[target - 1].name in ("PRECALL", "KW_NAMES") and insts[target].name in ("CALL", "PRECALL")
    ):
        target -= 1
    names = _locals_at(tx, target)
    tx.instructions = None
    out = tx.output
    body = out.emit(tx, tx.stack, _changed(tx, names), lambda cg: None, returning=False)
    if out.graph_module is None and not out.side_effects.any():
        raise SkipFrame(
            f"nothing was captured before a graph break that cannot be resumed from: {tx.reason.reason if tx.reason else ''}"
        )
    tx.final_code = remainder_code(tx.code, body, target, tx.code.co_name, inst.line)
