"""Captured code that is one call, or none: the native caller makes it without a frame (csrc/frame/frame_eval.c, ``run_direct``).

The code calls the graph with arguments of the frame and returns an item of what it gives, an argument, or a constant. Items that are
made arrays or numbers, one or a tuple of them, go out as such: the graph's call then makes neither the list nor the tensors. What is warned
of in Python is told at the line of the program's frame: graphs that run any are called so where the frame is run plainly for a warning."""

from __future__ import annotations

import enum
import operator
import types
from typing import Any

import numpy as np

from flambeau import _C, _frame, _runtime
from flambeau.base.enums import Form
from flambeau.base.records import slotted

from ..numpy import numpy_bridge
from ..rules.reflect import is_a, is_among
from .instructions import Inst, decode

__all__ = ["DirectCall", "Returns", "direct_call", "has_text_of_ours"]

SILENT = frozenset({"CACHE", "NOP", "PRECALL", "PUSH_NULL", "RESUME"})
LARGEST = 1024  # bytes of code; a direct call has DIRECT_ARGUMENTS (csrc/frame/frame_eval.h) at most
MOST_ARGUMENTS = 16
CONSTANTS = frozenset(
    {
        type(None),
        bool,
        int,
        float,
        str,
        _frame.DisabledFunction,
        _runtime.ArrayView,
        types.FunctionType,
        types.BuiltinFunctionType,
    }
)
"""Of the code: whoever decodes it asks constants for their text, which is the program's to give for others."""

IMMUTABLE = frozenset({type(None), bool, int, float, str})


class Returns(enum.IntEnum):
    """What the captured code returns, as csrc/frame/frame_eval.h counts."""

    RESULT = 0
    ITEM = 1
    ARGUMENT = 2
    CONSTANT = 3
    LIST = 4
    """The result's items."""


@slotted
class DirectCall:
    call: Any
    """None: it makes no call."""
    arguments: tuple[int, ...]
    """Which arguments of the frame it takes; -1 - k: the k-th of ``given``."""
    lasti: int
    """Of the call in the captured code, in bytes: errors come from there. -1: what is called has a frame of its own."""
    returns: Returns
    item: int = 0
    constant: Any = None
    given: tuple = ()
    """Arguments that are known."""


def direct_call(code: types.CodeType) -> DirectCall | None:
    """What ``code`` does, where that is one call or none."""
    if len(code.co_code) > LARGEST or code.co_exceptiontable or not all(map(has_text_of_ours, code.co_consts)):
        return None
    given = code.co_argcount + code.co_kwonlyargcount
    steps = [i for i in decode(code) if i.name not in SILENT]
    if [i.name for i in steps] == ["LOAD_CONST", "RETURN_VALUE"]:
        return DirectCall(None, (), 0, Returns.CONSTANT, 0, steps[0].argval)
    constant = _constant_tuple(steps)
    if constant is not None:
        return DirectCall(None, (), 0, Returns.CONSTANT, 0, constant)
    if [i.name for i in steps] == ["LOAD_FAST", "RETURN_VALUE"] and steps[0].argval in code.co_varnames[:given]:
        return DirectCall(None, (), 0, Returns.ARGUMENT, code.co_varnames.index(steps[0].argval))
    if [i.name for i in steps] == ["LOAD_FAST", "LOAD_FAST", "BINARY_SUBSCR", "RETURN_VALUE"]:
        places = tuple([code.co_varnames.index(i.argval) for i in steps[:2]])
        return DirectCall(operator.getitem, places, steps[2].offset, Returns.RESULT) if max(places) < given else None
    n = 1
    while (
        n < len(steps)
        and steps[n].name == "LOAD_FAST"
        and steps[n].arg is not None
        and steps[n].argval in code.co_varnames[:given]
    ):
        n += 1
    named = [i.name for i in steps[: n + 2]]
    if named == ["LOAD_CONST", "LOAD_FAST", "CALL", "RETURN_VALUE"] and type(steps[0].argval) is _runtime.ArrayView:
        place = code.co_varnames.index(steps[1].argval)
        return DirectCall(steps[0].argval, (place,), steps[n].offset, Returns.RESULT)
    if n > MOST_ARGUMENTS or named != ["LOAD_CONST", *["LOAD_FAST"] * (n - 1), "CALL", "STORE_FAST"]:
        return None
    call, made = steps[0].argval, steps[n]
    if not (isinstance(call, _frame.DisabledFunction) and _needs_no_frame(call)) or made.argval != n - 1:
        return None
    arguments = tuple(code.co_varnames.index(i.argval) for i in steps[1:n])
    return _returning(call, arguments, made.offset, steps[n + 1].argval, steps[n + 2 :], code.co_varnames[:given])


def _constant_tuple(steps: list[Inst]) -> tuple | None:
    """The sizes of an array, say."""
    *items, made, last = steps
    if [made.name, last.name] != ["BUILD_TUPLE", "RETURN_VALUE"] or made.argval != len(items):
        return None
    if not all(i.name == "LOAD_CONST" and is_among(type(i.argval), IMMUTABLE) for i in items):
        return None
    return tuple([i.argval for i in items])


def has_text_of_ours(constant) -> bool:
    if type(constant) is tuple:
        return all(map(has_text_of_ours, constant))
    return is_among(type(constant), CONSTANTS) or is_a(constant, np.dtype)


def _needs_no_frame(call: _frame.DisabledFunction) -> bool:
    """Whether nothing that the graph calls has a line of the program's to name."""
    if getattr(call.fn, "calls_python", True) is False:
        return True
    return getattr(call.fn, "calls_quietly", False) is True and call.again is not None


def _returning(
    call, arguments: tuple[int, ...], lasti: int, result: str, tail: list[Inst], names: tuple[str, ...]
) -> DirectCall | None:
    shape = [i.name for i in tail]
    values = [i.argval for i in tail]
    if shape == ["LOAD_FAST", "RETURN_VALUE"] and values[0] in names:
        return DirectCall(call, arguments, lasti, Returns.ARGUMENT, names.index(values[0]))
    if shape == ["LOAD_CONST", "RETURN_VALUE"]:
        return DirectCall(call, arguments, lasti, Returns.CONSTANT, 0, values[0])
    item = ["LOAD_FAST", "LOAD_CONST", "BINARY_SUBSCR"]
    if shape == [*item, "RETURN_VALUE"] and values[0] == result and _is_place(values[1]):
        return DirectCall(call, arguments, lasti, Returns.ITEM, values[1])
    given = _all_given(tail, result)
    if given is None:
        return None
    values, packing = given
    whole = _giving(call, values, packing is not None)
    returns = Returns.LIST if packing == "BUILD_LIST" else Returns.RESULT
    return None if whole is None else DirectCall(whole, arguments, lasti, returns)


def _is_place(x) -> bool:
    return type(x) is int and x >= 0


@slotted
class Given:
    """An output in a form of NumPy's or Python's; ``flag``: the output that tells whose number it is, -1: the form does."""

    output: int
    form: int
    flag: int = -1


def _all_given(tail: list[Inst], result: str) -> tuple[list[Given], str | None] | None:
    """What the last steps return, and the instruction that makes a tuple or a list of them. None: something else."""
    given: list[Given] = []
    at = 0
    while at < len(tail) and (found := _given(tail[at:], result)):
        item, length = found
        given.append(item)
        at += length
    rest = [i.name for i in tail[at:]]
    if rest in (["BUILD_TUPLE", "RETURN_VALUE"], ["BUILD_LIST", "RETURN_VALUE"]) and tail[at].argval == len(given) > 0:
        return given, tail[at].name
    return (given, None) if rest == ["RETURN_VALUE"] and len(given) == 1 else None


ITEM = ("LOAD_FAST", "LOAD_CONST", "BINARY_SUBSCR")
MAKERS = (
    (_C.ndarray_of, ("LOAD_CONST", *ITEM, "LOAD_CONST", "CALL"), Form.ARRAY),
    (numpy_bridge.to_scalar, ("LOAD_CONST", *ITEM, "CALL"), Form.SCALAR),
    (numpy_bridge.to_number, ("LOAD_CONST", *ITEM, "CALL"), Form.NUMBER),
    (numpy_bridge.to_flagged_number, ("LOAD_CONST", *ITEM, *ITEM, "CALL"), Form.NUMBER),
)
"""What makes a value of an output, the steps of such a call, and the form that it has."""


def _given(steps: list[Inst], result: str) -> tuple[Given, int] | None:
    """The value that is made first, and in how many steps."""
    for fn, shape, form in MAKERS:
        values = [i.argval for i in steps[: len(shape)]]
        if (
            steps[0].name != "LOAD_CONST"
            or values[0] is not fn
            or tuple([i.name for i in steps[: len(shape)]]) != shape
        ):
            continue
        flagged = fn is numpy_bridge.to_flagged_number
        if fn is _C.ndarray_of and values[4] is not numpy_bridge.to_ndarray:
            return None
        for at in (1, 4) if flagged else (1,):
            if values[at] != result or not _is_place(values[at + 1]):
                return None
        return Given(values[2], form, values[5] if flagged else -1), len(shape)
    return None


def _giving(call: _frame.DisabledFunction, given: list[Given], packed: bool) -> _frame.DisabledFunction | None:
    """The same call, giving these outputs, as a tuple if ``packed``; None where the graph isn't native."""
    make = getattr(call.fn, "array_result", None)
    if make is None:
        return None
    fn = make(tuple([g.output for g in given]), tuple([g.form for g in given]), tuple([g.flag for g in given]), packed)
    if fn is None:
        return None
    made = _frame.DisabledFunction(fn)
    for name in ("again", "watch", "flagged", "written", "keeps"):
        setattr(made, name, getattr(call, name))
    return made
