"""Code of the program's own that is one step on a NumPy array: the native caller takes the step without a frame, as direct.py has it.

A warning is of the line that called, and without a frame there is none: only what warns of nothing is here, on dtypes for which that is so."""

from __future__ import annotations

import builtins
import operator
import types

import numpy as np

from ...base.records import slotted
from ..rules.reflect import is_among
from .direct import LARGEST, SILENT, DirectCall, Returns, has_text_of_ours
from .instructions import Inst, decode

__all__ = ["DirectStep", "direct_step"]

QUIET = frozenset({np.dtype(np.float64), np.dtype(np.int64), np.dtype(np.bool_)})
"""A number of Python's is written into these, or refused, without a warning."""
GIVING = frozenset({"item", "argsort", "nonzero"})
METHODS = GIVING | {"fill", "sort"}
NUMBERS = {"float": float, "int": int, "bool": bool}
NUMBER_OF = {"float": "f", "int": "i", "bool": "b"}
"""Global -> the kind of dtypes whose ``item`` is that number of an element."""
PYTHONS = frozenset({bool, int, float})


@slotted
class DirectStep:
    """``least``: the sizes that arrays have at least, by name, where the step is the code's own for those alone."""

    call: DirectCall
    least: dict[str, tuple[int, ...]]


def direct_step(code: types.CodeType, given: dict, scope: dict) -> DirectStep | None:
    """What ``code`` does, where that is one step on arrays that it is ``given``, by name; their descriptions are guarded, and the types of numbers
    beside them."""
    if len(code.co_code) > LARGEST or code.co_exceptiontable or not all(map(has_text_of_ours, code.co_consts)):
        return None
    arrays = {n: a for n, a in given.items() if type(a) is np.ndarray}
    if not all(a.dtype in QUIET for a in arrays.values()):
        return None
    if not all(n in arrays or is_among(type(v), PYTHONS) for n, v in given.items()):
        return None
    steps = [i for i in decode(code) if i.name not in SILENT]
    names = [i.name for i in steps]
    if names[-1:] != ["RETURN_VALUE"]:
        return None
    if names[3:] == ["STORE_SUBSCR", "LOAD_CONST", "RETURN_VALUE"] and steps[4].argval is None:
        value, target, index = steps[:3]
        return _call(operator.setitem, [target, index, value], steps[3], code)
    if len(steps) > 3 and names[0] == "LOAD_FAST" and steps[0].argval in arrays:
        return _method(steps, code)
    if names == ["LOAD_GLOBAL", "LOAD_FAST", "LOAD_CONST", "BINARY_SUBSCR", "CALL", "RETURN_VALUE"]:
        return _number(steps, code, arrays, scope)
    return None


def _call(fn, loads: list[Inst], at: Inst, code: types.CodeType, least: dict | None = None) -> DirectStep | None:
    """``fn`` of what is loaded: arguments and constants."""
    if not all(i.name == "LOAD_CONST" or (i.name == "LOAD_FAST" and i.argval in code.co_varnames) for i in loads):
        return None
    given = tuple([i.argval for i in loads if i.name == "LOAD_CONST"])
    known = iter(range(-1, -1 - len(given), -1))
    places = tuple([next(known) if i.name == "LOAD_CONST" else code.co_varnames.index(i.argval) for i in loads])
    if max(places) >= code.co_argcount:
        return None
    return DirectStep(DirectCall(fn, places, at.offset, Returns.RESULT, given=given), least or {})


def _method(steps: list[Inst], code: types.CodeType) -> DirectStep | None:
    called = next((k for k, i in enumerate(steps) if i.name == "CALL"), 0)
    name, rest = steps[1].argval, [i.name for i in steps[called + 1 :]]
    if steps[1].name not in ("LOAD_METHOD", "LOAD_ATTR") or name not in METHODS or called != 2 + steps[called].arg:
        return None
    dropped = rest == ["POP_TOP", "LOAD_CONST", "RETURN_VALUE"] and steps[-2].argval is None
    if not (rest == ["RETURN_VALUE"] or (dropped and name not in GIVING)):
        return None
    return _call(getattr(np.ndarray, name), [steps[0], *steps[2:called]], steps[called], code)


def _number(steps: list[Inst], code, arrays: dict[str, np.ndarray], scope: dict) -> DirectStep | None:
    """Python's number of an element, by a global that is guarded."""
    name, array, place = steps[0].argval, arrays.get(steps[1].argval), steps[2].argval
    if array is None or array.dtype.kind not in NUMBER_OF.get(name, "") or steps[4].arg != 1:
        return None
    if name in scope or vars(builtins).get(name) is not NUMBERS[name]:
        return None
    places = place if type(place) is tuple else (place,)
    if len(places) != array.ndim or not all(type(p) is int and -n <= p < n for p, n in zip(places, array.shape)):
        return None
    least = tuple([max(p + 1, -p) for p in places])
    return _call(np.ndarray.item, steps[1:3], steps[3], code, {steps[1].argval: least})
