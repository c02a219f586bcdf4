"""Generator expressions in a loop that ``sum``, ``min``, ``max``, ``any`` or ``all`` consumes: the generator's function with what its consumer does
in the place of ``yield``, so that nothing is kept and ``any`` and ``all`` stop where Python does. Lists are consumed by functions whose bytecode
joins that of the loop.
"""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Callable

from ..base.records import slotted
from .values import ArrayView, Container, Expression, Known, Null

__all__ = ["COMPENSATED", "MADE", "NAMES", "ON_LISTS", "consumed", "folded", "given_back", "is_generator", "on_list"]

COMPENSATED = sys.version_info >= (3, 12)
"""Whether sum() of Python's floats keeps what rounding loses."""

MADE, SOME, ITEM = ".made", ".some", ".item"
"""Variables of a generator's function: what has come of its elements so far, whether there was one, and the element at hand."""
NAMES = frozenset((MADE, SOME, ITEM))
NEXT, TAKE = "next", "take"


@slotted
class Step:
    """An instruction that is written: a jump to ``target``, a Step's ``label``, or NEXT, behind all of them."""

    name: str
    arg: int | None = None
    argval: object = None
    target: str | None = None
    label: str | None = None


@slotted
class Fold:
    """What a consumer does before the first element, with each, which is on the stack, and at the end."""

    begin: tuple[Step, ...]
    turn: tuple[Step, ...]
    end: Step


def _load(name: str) -> Step:
    return Step("LOAD_FAST", None, name)


def _store(name: str) -> Step:
    return Step("STORE_FAST", None, name)


def _constant(value) -> Step:
    return Step("LOAD_CONST", None, value)


def _least(compared: str) -> Fold:
    # An end without elements reads a variable without a value: the frame runs plainly, and Python raises.
    return Fold(
        (_constant(False), _store(SOME)),
        (
            _store(ITEM),
            _load(SOME),
            Step("POP_JUMP_IF_FALSE", target=TAKE),
            _load(ITEM),
            _load(MADE),
            Step("COMPARE_OP", None, compared),
            Step("POP_JUMP_IF_FALSE", target=NEXT),
            Step("LOAD_FAST", None, ITEM, label=TAKE),
            _store(MADE),
            _constant(True),
            _store(SOME),
        ),
        _load(MADE),
    )


def _found(jump: str, value: bool) -> Fold:
    # The iterators of the loops around are taken off first.
    return Fold((), (Step(jump, target=NEXT), _constant(value), Step("RETURN_VALUE")), _constant(not value))


def _started(elements, start):
    """``sum`` of a generator that begins with a number."""


_ADD = (Step("IS_SUMMED"), _store(ITEM), _load(MADE), _load(ITEM), Step("BINARY_OP", 0), _store(MADE))
FOLDS = {
    sum: Fold(
        (_constant(0), _store(MADE)),
        _ADD,
        _load(MADE),
    ),
    # What it begins with is there where the function is entered.
    _started: Fold((), _ADD, _load(MADE)),
    list: Fold(
        (Step("BUILD_LIST", 0), _store(MADE)),
        (_store(ITEM), _load(MADE), _load(ITEM), Step("LIST_APPEND", 1), Step("POP_TOP")),
        _load(MADE),
    ),
    math.prod: Fold(
        (_constant(1), _store(MADE)),
        (_store(ITEM), _load(MADE), _load(ITEM), Step("BINARY_OP", 5), _store(MADE)),
        _load(MADE),
    ),
    min: _least("<"),
    max: _least(">"),
    any: _found("POP_JUMP_IF_FALSE", True),
    all: _found("POP_JUMP_IF_TRUE", False),
}


WHOLE = frozenset((sorted, min, max, set, list, sum))
"""What takes a list of a generator's elements as well."""


def is_generator(code) -> bool:
    return code.co_name == "<genexpr>"


def given_back(x, *others):
    """In the place of a consumer whose generator's function has done its work."""
    return x


@slotted
class Consumer:
    """What consumes a generator: the fold that its function does, the place of the called function on the stack, whether the call then only gives
    that back, and the variable or constant that a sum begins with, if it has one."""

    how: Callable
    place: int
    done: bool
    start: object = None


def consumed(insts, at: int, stack: list) -> Consumer | None:
    """The function that is called with what instruction ``at``, a call of a generator's function, gives; or None."""
    call, between = _call_behind(insts, at + 1)
    if call is None or len(stack) < 2:
        return None
    place = next((k for k in (-1, -2) if isinstance(stack[k], Known)), None)
    if place is None or not isinstance(stack[-3 - place], Null):
        return None
    f = stack[place].value
    if not between:
        how = next((how for how in FOLDS if f is how), None)
        return Consumer(how, place, True) if how is not None else Consumer(list, place, False) if f in WHOLE else None
    if f is sum and len(between) == 1 and between[0].name in ("LOAD_FAST", "LOAD_CONST") and call.arg == 2:
        return Consumer(_started, place, True, between[0])
    return Consumer(list, place, False) if f in WHOLE else None


def _call_behind(insts, at: int) -> tuple:
    """(the call whose first argument is on the stack, the instructions that make the others): they only load values and compute."""
    between, made = [], 1
    for i in insts[at:]:
        if i.name in ("CALL", "CALL_KW"):
            given = made - (i.name == "CALL_KW")
            return (i, between) if i.arg == given else (None, [])
        if i.name in ("PRECALL", "NOP"):
            continue
        between.append(i)
        if i.name in ("LOAD_FAST", "LOAD_CONST", "LOAD_GLOBAL", "LOAD_CLOSURE", "LOAD_DEREF"):
            made += 1
        elif i.name == "BUILD_TUPLE":
            made += 1 - i.arg
        elif i.name in ("BINARY_SUBSCR", "BINARY_OP"):
            made -= 1
        elif i.name == "MAKE_FUNCTION":
            made -= bool(i.arg)
        elif i.name == "SET_FUNCTION_ATTRIBUTE":
            made -= 1
        elif i.name != "KW_NAMES":
            break
    return None, []


def folded(insts, how) -> tuple:
    """The instructions of a generator's function for the consumer ``how``."""
    fold, out, place = FOLDS[how], [], {}
    jumps: list[tuple[int, int]] = []
    skipped = 0

    def write(like, steps, labels=None):
        labels = dict(labels or {})
        labels |= {s.label: len(out) + k for k, s in enumerate(steps) if s.label}
        labels[NEXT] = len(out) + len(steps)
        for s in steps:
            made = copy.copy(like)
            made.name, made.arg, made.argval = s.name, s.arg, s.argval
            made.target = labels[s.target] if s.target else None
            out.append(made)

    for i in insts:
        place[i.index] = len(out)
        if skipped:
            skipped -= 1
        elif i.name == "RETURN_GENERATOR":
            write(i, fold.begin)
            skipped = 1
        elif i.name == "YIELD_VALUE":
            write(i, _out_of_loops(fold.turn, insts, i.index))
            # RESUME and POP_TOP of what is sent.
            skipped = 2
        elif i.name == "LOAD_CONST" and i.argval is None and insts[i.index + 1].name == "RETURN_VALUE":
            write(i, (fold.end,))
        else:
            if i.target is not None:
                jumps.append((len(out), i.target))
            out.append(copy.copy(i))
    for at, target in jumps:
        out[at].target = place[target]
    for k, i in enumerate(out):
        # The handler that covers a generator as a whole is Python's affair.
        i.index, i.handler = k, None
    return tuple(out)


def _out_of_loops(steps: tuple[Step, ...], insts, at: int) -> tuple[Step, ...]:
    """The steps at instruction ``at``, where a return takes the iterators of the loops around off the stack."""
    if all(s.name != "RETURN_VALUE" for s in steps):
        return steps
    around = sum(i.name == "FOR_ITER" and i.index < at < i.target for i in insts)
    return (steps[0], *(Step("POP_TOP") for _ in range(around)), *steps[1:])


def _sum(a):
    made = 0
    for x in a:
        made = made + x
    return made


def _prod(a):
    made = 1
    for x in a:
        made = made * x
    return made


def _min(a):
    made = a[0]
    for k in range(1, len(a)):
        x = a[k]
        if x < made:
            made = x
    return made


def _max(a):
    made = a[0]
    for k in range(1, len(a)):
        x = a[k]
        if x > made:
            made = x
    return made


def _any(a):
    for x in a:
        if x:
            return True
    return False


def _all(a):
    for x in a:
        if not x:
            return False
    return True


_WRITTEN_OUT = {sum: _sum, math.prod: _prod, min: _min, max: _max, any: _any, all: _all}
ON_LISTS = {f: g.__code__ for f, g in _WRITTEN_OUT.items()}
"""Builtins -> the code of what they do of a list, or of an array's elements."""


def on_list(f, args: list, kwargs: dict):
    """The code of a call of a builtin with a list or a row of numbers; None for other calls."""
    if len(args) != 1 or kwargs:
        return None
    (a,) = args
    is_list = isinstance(a, Container) and a.kind == "list" and not (f is sum and COMPENSATED)
    if not is_list and not (isinstance(a, ArrayView | Expression) and a.ndim == 1):
        return None
    return next((code for g, code in ON_LISTS.items() if f is g), None)
