"""Comprehensions over long ranges and arrays as native loops, whose list, dict or set is a result, and generator expressions that are consumed at
once; those that stay Python and would be long if unrolled run plainly."""

from __future__ import annotations

import math
import types

import numpy as np

from flambeau.base.weak import remembered

from ..bytecode.instructions import decode
from ..config import config
from ..exc import SkipFrame, unsupported
from ..variables.base import Variable
from ..variables.containers.lists import ListVariable
from ..variables.containers.ranges import RangeVariable
from ..variables.iterators.builtin_iterators import EnumerateVariable, ZipVariable
from ..variables.iterators.container_iterators import ElementsVariable, NumpyIteratorVariable
from ..variables.iterators.protocol import IteratorVariable
from . import native_loops

__all__ = ["try_comprehension", "try_generator"]

COLLECTS = ("LIST_APPEND", "SET_ADD", "MAP_ADD")
CONSUMERS = (sum, min, max, list, tuple, set, frozenset, sorted, math.fsum, math.prod, np.fromiter)
# So many instructions aren't unrolled: tracing them takes seconds.
TOO_MANY = 3_000


@remembered
def _outermost(code: types.CodeType) -> frozenset[int]:
    """The FOR_ITERs that are the outermost loop of a comprehension: what it fills lies right beneath their iterator."""
    insts, out = decode(code), set()
    for k, inst in enumerate(insts):
        if inst.name in COLLECTS:
            around = [i.index for i in insts if i.name == "FOR_ITER" and i.index < k < i.target]
            # 1 is a display's: [*a, b], or one of many elements.
            if 2 <= inst.arg <= len(around) + 1:
                out.add(around[1 - inst.arg])
    return frozenset(out)


def try_comprehension(tx, inst) -> bool:
    """At FOR_ITER. True where it was a comprehension's and has run as a native loop; its iterator is gone and control is behind the loop then."""
    return config.native_loops and inst.index in _outermost(tx.code) and _run(tx, inst.index, tx.stack[-2])


def try_generator(tx, frame) -> Variable | None:
    """What a generator expression gives, as a list, where a function that wants all of it is called with it next and it is a native loop.
    ``frame``: of the generator, which hasn't begun."""
    if not config.native_loops or frame.code.co_name != "<genexpr>" or not _is_consumed(tx):
        return None
    header = next((i for i in frame.insts if i.name == "FOR_ITER"), None)
    yields = [i for i in frame.insts if i.name == "YIELD_VALUE"]
    if header is None or len(yields) != 1 or frame.insts[header.index - 1].argval != ".0":
        return None
    at, out = frame.ip, ListVariable([])
    frame.push(frame.locals[".0"])
    frame.ip = header.index
    if _run(frame, header.index, out):
        return out
    frame.pop()
    frame.ip = at
    return None


def _is_consumed(tx) -> bool:
    """Whether what is pushed next is the first argument of a function that takes all its elements before anything else happens."""
    given = 1
    for inst in tx.insts[tx.ip : tx.ip + 8]:
        if inst.name == "CALL":
            return inst.arg == given and any(_consumes(v) for v in tx.stack[-2:])
        if inst.name in ("LOAD_CONST", "LOAD_FAST", "LOAD_GLOBAL", "LOAD_DEREF"):
            given += 1
        elif inst.name not in ("PRECALL", "KW_NAMES", "NOP"):
            return False
    return False


def _consumes(v) -> bool:
    value = getattr(v.unwrap(), "fn", None) or getattr(v.unwrap(), "value", None)
    return any(value is f for f in CONSUMERS)


def _run(tx, header: int, collects: Variable) -> bool:
    """The loop at ``header``, whose iterator is on the stack."""
    it = tx.top()
    over = _untouched(it)
    if over is None or _is_held(tx, it):
        return False
    trip = native_loops.trip_of(tx, over)
    if trip is None:
        return False
    compiler, body = tx.output.compiler, tx.insts[header + 1 : tx.insts[header].target]
    size = trip.about * len(body) * 10 ** (sum(i.name == "FOR_ITER" for i in body) + _makes_functions(body))
    one_graph = compiler.fullgraph or tx.output.modes.transforms
    if size < (TOO_MANY if one_graph else native_loops.WORTH) and (one_graph or not native_loops.recurses(tx, header)):
        return False
    over_range = isinstance(over, RangeVariable)
    if over_range and not (native_loops.reads_arrays(tx, header) or native_loops.recurses(tx, header)):
        return False
    if native_loops.try_collecting(tx, header, trip, collects):
        return True
    if size >= TOO_MANY and not one_graph:
        _leave(tx, tx.insts[header].line, trip.about)
    return False


def _makes_functions(body) -> int:
    """How many comprehensions there are within, which are functions before CPython 3.12."""
    return sum(i.name == "MAKE_FUNCTION" for i in body)


def _untouched(it):
    """What an iterator of which nothing was taken runs over, as native loops take it; else None."""
    if isinstance(it, EnumerateVariable | ZipVariable):
        return it
    if isinstance(it, NumpyIteratorVariable):
        return it if it.over is not None and not it.at else None
    if isinstance(it, ElementsVariable) and not it.position and isinstance(it.over, RangeVariable) and it.way is iter:
        return it.over
    return None


def _is_held(tx, it: IteratorVariable) -> bool:
    """Whether something else may ask for what is left of the iterator."""
    others, frame = list(tx.stack[:-1]), tx
    while frame is not None:
        others += [v for name, v in frame.locals.items() if name != ".0"]
        others += frame.stack if frame is not tx else []
        frame = frame.parent
    return any(v is it for v in others)


def _leave(tx, line: int, count: int) -> None:
    why = f"a comprehension of {count} turns over arrays in line {line} is no native loop, and too long to be unrolled"
    if tx.parent is None:
        raise SkipFrame(why)
    unsupported("long-loop", why, "It runs as Python.")
