"""Loops over elements of NumPy arrays that break the graph at each turn, or go over a long list of data. Captured code would launch a graph for one
number, or hold a node for each item and be for these items only; Python is faster."""

from __future__ import annotations

import math
import types

import numpy as np

from ..bytecode.instructions import Inst
from ..bytecode.versions import BREAKABLE
from ..exc import SkipForGood, Unsupported
from ..variables.base import Lazy, Variable
from ..variables.containers.sequences import SequenceVariable
from ..variables.iterators.container_iterators import ListIteratorVariable
from ..variables.numpy.ndarray import NumpyNdarrayVariable
from .native_loops import NOTES

__all__ = ["is_element_loop", "leave_data_loop"]

PUSH = ("LOAD_CONST", "LOAD_FAST", "LOAD_GLOBAL", "PUSH_NULL", "COPY")
AS_BEFORE = ("KW_NAMES", "NOP", "PRECALL", "SWAP")
NUMBERS = (int, float, complex, str, np.generic)
OF_SIZE = ("shape", "size", "ndim", "item")
"""Attributes of an array that cost nothing."""
TURNS = 100  # of a loop over a list of data that reads and writes elements


def is_element_loop(tx) -> bool:
    """Whether the root frame ``tx`` breaks in a loop that computes with single numbers: nothing else is in the graph yet, and the loop only reads and
    writes elements of its arrays, and calls no function of the program's."""
    loop = _outermost(tx.insts, tx.inst.index)
    if loop is None or not _holds_numbers(tx.output.recorder.graph):
        return False
    body = tx.insts[loop.start : loop.stop]
    if not all(_is_light(tx, body, k) for k in range(len(body))):
        return False
    _stays(tx, body, "each turn breaks the graph, and computes with single numbers")
    return True


def _stays(tx, body: tuple[Inst, ...], why: str) -> None:
    """For ``explain``."""
    NOTES.setdefault(f"{tx.code.co_name} ({tx.code.co_filename}:{body[0].line})", f"stays Python: {why}")


def leave_data_loop(tx, header: int) -> None:
    """At the jump back to ``header``, a FOR_ITER: SkipForGood where the root frame ``tx`` has taken many turns over a list that came from elsewhere
    (``a.tolist()``, an argument) and writes nothing but elements of arrays."""
    over = tx.stack[-1].unwrap() if tx.stack else None
    if not isinstance(over, ListIteratorVariable) or over.position != TURNS or tx.fullgraph or tx.suspends:
        return
    graph, body = tx.output.recorder.graph, tx.insts[header : tx.inst.index + 1]
    if over.over.source is None or not graph.holds_arrays or tx.output.modes.transforms:
        return
    if any(i.name == "STORE_SUBSCR" for i in body) and all(_is_light(tx, body, k) for k in range(len(body))):
        _stays(tx, body, "it goes over a list of data and writes single elements")
        raise SkipForGood(f"a loop over a list writes elements of arrays, in line {body[0].line}")


def _outermost(insts: tuple[Inst, ...], at: int) -> range | None:
    """The instructions of the outermost loop around number ``at``."""
    loops = [range(i.target, i.index + 1) for i in insts if i.target is not None and i.target < i.index]
    around = [r for r in loops if at in r]
    return range(min(r.start for r in around), max(r.stop for r in around)) if around else None


def _holds_numbers(graph) -> bool:
    """Whether all that the graph computes so far is NumPy's numbers."""
    computed = [n.meta.get("val") for n in graph.nodes if n.op.startswith("call")]
    return graph.holds_arrays and all(getattr(v, "ndim", 1) == 0 for v in computed)


def _is_light(tx, body: tuple[Inst, ...], k: int) -> bool:
    """Whether instruction ``k`` of the body takes nothing that is worth a graph."""
    inst = body[k]
    if inst.name == "LOAD_FAST":
        v = tx.locals.get(inst.argval)
        return v is None or _is_number(v.unwrap()) or _takes_elements(body, k)
    if inst.name == "LOAD_GLOBAL":
        x = tx.globals.get(inst.argval)  # a builtin is missing there
        return x is None or x is np or x is math or isinstance(x, (*NUMBERS, type, types.BuiltinFunctionType))
    return inst.name not in ("LOAD_DEREF", "IMPORT_NAME")


def _is_number(v: Variable) -> bool:
    """Whether it is a number or a text, or a container of such."""
    if isinstance(v, NumpyNdarrayVariable):
        return v.val.ndim == 0
    if isinstance(v, Lazy):
        return _is_known_number(v.value)
    if isinstance(v, SequenceVariable):
        return all(_is_number(e.unwrap()) for e in v.elements)
    try:
        kind = v.python_type()
    except Unsupported:  # of a value whose type isn't known
        return False
    return issubclass(kind, (*NUMBERS, dict, set, range))


def _is_known_number(x: object) -> bool:
    return all(map(_is_known_number, x)) if type(x) in (list, tuple) else isinstance(x, (*NUMBERS, dict, set, range))


def _takes_elements(body: tuple[Inst, ...], k: int) -> bool:
    """Whether what instruction ``k`` loads is indexed by what is loaded behind it, or only asked for its size."""
    depth = 1  # of the stack from the value on
    for inst in body[k + 1 :]:
        if inst.name in PUSH:
            depth += 1
        elif inst.name == "BUILD_TUPLE":
            depth += 1 - inst.arg
        elif inst.name in BREAKABLE and inst.name != "BUILD_SLICE":
            pops, pushes = BREAKABLE[inst.name](inst.arg)
            if pops >= depth:
                return _asks_little(inst, depth, body[:k])
            depth += (pushes or 0) - pops
        elif inst.name not in AS_BEFORE:
            return False
    return False


def _asks_little(inst: Inst, depth: int, before: tuple[Inst, ...]) -> bool:
    """Whether the instruction that takes an array at this depth gives an element, writes one or asks for a size."""
    if inst.name in ("LOAD_ATTR", "LOAD_METHOD"):
        return inst.argval in OF_SIZE
    if inst.name == "CALL":
        return any(i.name == "LOAD_GLOBAL" and i.argval == "len" for i in before[-2:])
    return inst.name == "STORE_SUBSCR" or (inst.name == "BINARY_SUBSCR" and depth == 2)
