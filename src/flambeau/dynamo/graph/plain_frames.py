"""Functions that make one small call of NumPy's, touch a few elements, or make numbers of them: the function itself serves their calls.

A launch of a graph costs more there than NumPy does, and so do the guards of one. What plain code does needs no guard, so that the type, dtype and
sizes of the arrays are all that is asked, and the type of numbers: a larger array, or one of another size, is captured."""

from __future__ import annotations

import math
import types

import numpy as np

from ...base.records import slotted
from ..bytecode.direct import SILENT, DirectCall, Returns, direct_call
from ..bytecode.direct_numpy import direct_step
from ..bytecode.instructions import decode
from ..config import config
from ..guards.source import LocalSource
from ..guards.tree import GuardBuilder, few_facts
from ..rules.reflect import is_a
from .glances import FEW, SHORT, is_glance, is_small_argument, only_looks

__all__ = ["PlainFrame", "guards_of", "plain_at_break", "plain_frame"]

FEW_ELEMENTS = 12
"""Reads, writes and operations on single elements."""
LOOKED_AT = frozenset({"getitem", "clone", "ravel", "reshape"})
VIEWS = frozenset({"getitem", "ravel", "reshape", "transpose"})
UPDATED = frozenset({"setitem", "add", "subtract", "multiply", "overflow_of_integers", "sqrt"})
WHOLE = frozenset({"sort_in_place", "fill"})
CALLS_OF_NUMPY = "numpy_"
VARIADIC = 0x04 | 0x08
"""inspect.CO_VARARGS and CO_VARKEYWORDS; the module would be imported for them alone."""
MAKE_NUMBERS = frozenset({"bool", "int", "float", "complex", "abs", "len", "math"})
"""Globals of a function that makes Python's numbers of elements, which ends a graph."""
ATTRIBUTES = frozenset({"item", "tolist", "nonzero", "shape", "size", "ndim", "T", "real", "imag", *vars(math)})
NAMED = {"LOAD_GLOBAL": MAKE_NUMBERS, "LOAD_ATTR": ATTRIBUTES, "LOAD_METHOD": ATTRIBUTES}
WORK = frozenset({"BINARY_SUBSCR", "STORE_SUBSCR", "BINARY_OP", "COMPARE_OP", "CALL"})
STRAIGHT = frozenset(
    "LOAD_FAST LOAD_FAST_CHECK LOAD_CONST LOAD_GLOBAL LOAD_ATTR LOAD_METHOD STORE_FAST BINARY_SUBSCR STORE_SUBSCR BINARY_OP COMPARE_OP "
    "UNARY_NEGATIVE BUILD_SLICE BUILD_TUPLE CALL KW_NAMES POP_TOP RETURN_VALUE".split()
)


@slotted
class PlainFrame:
    """``code``: a copy of the function's, since captured code is never captured again, and the program's own is where others call it.
    ``direct``: what it does without a frame, or a call of the copy."""

    code: types.CodeType
    direct: DirectCall
    asks_all: bool
    """The trace has not seen all that becomes of the arguments: each has its guard."""
    most: int
    """Elements that its arrays have at most, 0: any number."""
    least: dict[str, tuple[int, ...]]
    """Sizes that they have at least, by name, where that is more than none."""


def plain_frame(tx) -> PlainFrame | None:
    """How the frame ``tx``, which is about to return, serves itself; None where a graph is to."""
    if tx.break_at is not None or not _may_be(tx):
        return None
    output, code = tx.output, tx.code
    nodes = _calls(output.recorder.graph)
    few = all(_is_small(i, output.given) for i in output.recorder.inputs)
    if few:
        few = bool(nodes) and (_is_one_call(nodes) or _is_one_store(nodes) or _is_of_elements(nodes))
    if not few and not _looks_at_what_varies(output, nodes):
        return None
    insts = decode(code)
    if len(insts) > SHORT or any(i.target is not None for i in insts):
        return None
    return _made(tx, False, FEW if few else 0)


def _looks_at_what_varies(output, nodes: list) -> bool:
    """Whether the graph has nothing to do but to look at arrays whose sizes vary: those that are known make captured code without a graph."""
    varies = any(type(n) is not int for i in output.recorder.inputs if i.ndarray for n in i.node.meta["val"].shape)
    return varies and only_looks(output) and all(map(is_glance, nodes))


def plain_at_break(tx) -> PlainFrame | None:
    """The same where the graph of the frame ``tx`` is about to end: if all that the frame does, the part behind the break as well, is to make
    numbers of a few elements."""
    if not tx.output.of_few or not _may_be(tx):
        return None
    insts = [i for i in decode(tx.code) if i.name not in SILENT]
    if len(insts) > SHORT or not STRAIGHT.issuperset([i.name for i in insts]):
        return None
    if sum(i.name in WORK for i in insts) > FEW_ELEMENTS:
        return None
    if not all(NAMED[i.name].issuperset((i.argval,)) for i in insts if i.name in NAMED):
        return None
    return _made(tx, True, FEW)


def _may_be(tx) -> bool:
    """Whether the frame ``tx`` was given arrays and numbers, and nothing asks for a graph of it."""
    output = tx.output
    compiler, code = output.compiler, tx.code
    if not config.small_arrays_plainly or compiler.name != "inductor" or compiler.listeners or config.verify:
        return False
    if tx.suspends or not output.of_numpy or output.modes.transforms or tx.needs_eval:
        return False
    if code.co_freevars or code.co_cellvars or code.co_kwonlyargcount or code.co_flags & VARIADIC:
        return False
    graph = output.recorder.graph
    return graph.holds_arrays and not graph.carries


def _calls(graph) -> list:
    return [n for n in graph.nodes if n.op not in ("placeholder", "output")]


def _made(tx, asks_all: bool, most: int) -> PlainFrame:
    output, code = tx.output, tx.code.replace()
    direct = direct_call(code)
    if direct is not None:
        return PlainFrame(code, direct, asks_all, most, {})
    step = direct_step(code, output.given, output.globals)
    if step is not None:
        return PlainFrame(code, step.call, asks_all, most, step.least)
    call = types.FunctionType(code, output.globals)
    return PlainFrame(code, DirectCall(call, tuple(range(code.co_argcount)), -1, Returns.RESULT), asks_all, most, {})


def _is_small(given, arguments: dict) -> bool:
    """Whether an input is a number, or a NumPy array of a few elements: an argument, or one of sizes that are known."""
    if given.number:
        return True
    if not given.ndarray or given.carried:
        return False
    array = arguments.get(given.source.local) if is_a(given.source, LocalSource) else None
    if array is not None:
        return is_small_argument(array)
    known = all(type(n) is int for n in given.node.meta["val"].shape)
    return known and given.example.numel() <= FEW


def _name(node) -> str:
    return node.target if type(node.target) is str else getattr(node.target, "__name__", "")


def _is_one_call(nodes: list) -> bool:
    node, name = nodes[0], _name(nodes[0])
    taken = name == "getitem" and not _is_view(node)
    return len(nodes) == 1 and (taken or name.startswith(CALLS_OF_NUMPY) or name in WHOLE)


def _is_one_store(nodes: list) -> bool:
    """Whether all that is done is to write what is given, or a view of it, into a view."""
    *before, node = nodes
    return _name(node) == "setitem" and all(_name(n) in VIEWS and _is_view(n) for n in before)


def _is_view(node) -> bool:
    of = node.all_input_nodes[0].meta["val"]
    return node.meta["val"]._storage is of._storage


def _is_of_elements(nodes: list) -> bool:
    names = [_name(n) for n in nodes]
    if len(names) > FEW_ELEMENTS or not LOOKED_AT | UPDATED >= {*names} or UPDATED.isdisjoint(names):
        return False
    return all(_is_one_element(n) for n, name in zip(nodes, names) if name in UPDATED)


def _is_one_element(node) -> bool:
    """Whether a node computes or writes a single element."""
    if _name(node) != "setitem":
        return not getattr(node.meta.get("val"), "shape", ())
    target, key, _ = node.args
    places = key if type(key) in (tuple, list) else (key,)
    single = all(type(p) is int or hasattr(getattr(p, "meta", {}).get("val"), "__sym__") for p in places)
    return single and len(places) == len(target.meta["val"].shape)


def guards_of(plain: PlainFrame, output, args: tuple):
    """The tree of guards of such a frame: of its arrays dtype, dimensions and how many elements they have, of numbers among its arguments the
    type. Arrays that aren't arguments are as they were captured."""
    asked, guards = output.guards, GuardBuilder()
    looked_at = set()
    for given in output.recorder.inputs:
        if is_a(given.source, LocalSource):
            looked_at.add(given.source.local)
        elif given.ndarray:
            (facts,) = asked.checked(given.source, "NDARRAY_MATCH")
            guards.add(given.source, "NDARRAY_MATCH", facts)
    for i, (name, value) in enumerate(zip(output.code.co_varnames, args)):
        if type(value) is not np.ndarray:
            guards.add(LocalSource(name, i), "TYPE_MATCH", type(value))
        elif plain.asks_all or name in looked_at:
            least = plain.least.get(name, (0,) * value.ndim)
            guards.add(LocalSource(name, i), "NDARRAY_FEW", few_facts(value, least, plain.most))
    if plain.least:  # the step stands for the call of a global
        for i, facts in asked.facts.items():
            for fact in () if i in asked.of_type else facts.values():
                guards.fact(asked.sources[i], fact.key, fact.value, fact.exact)
    return guards.build()
