"""Functions that make one small call of NumPy's, or touch a few elements: the function itself serves their calls.

A launch of a graph costs more there than NumPy does, and so do the guards of one. What plain code does needs no guard, so that the type, dtype and
sizes of the arrays are all that is asked, and the type of numbers: a larger array, or one of another size, is captured."""

from __future__ import annotations

import types

import numpy as np

from ...base.records import slotted
from ..bytecode.direct import DirectCall, Returns, direct_call, direct_store
from ..bytecode.instructions import decode
from ..config import config
from ..guards.source import LocalSource
from ..guards.tree import CHECK_NAME, GuardBuilder
from ..rules.reflect import is_among
from .glances import FEW, SHORT

__all__ = ["PlainFrame", "guards_of", "plain_frame"]

FEW_ELEMENTS = 12
"""Reads, writes and operations on single elements."""
LOOKED_AT = frozenset({"getitem", "clone", "ravel", "reshape"})
UPDATED = frozenset({"setitem", "add", "subtract", "multiply", "overflow_of_integers", "sqrt"})
WHOLE = frozenset({"sort_in_place", "fill"})
CALLS_OF_NUMPY = "numpy_"
NUMBERS = frozenset({bool, int, float})
VARIADIC = 0x04 | 0x08
"""inspect.CO_VARARGS and CO_VARKEYWORDS; the module would be imported for them alone."""
QUIET = frozenset({np.dtype(np.float64), np.dtype(np.int64), np.dtype(np.bool_)})
"""A number of Python's is written into these, or refused, without a warning."""


@slotted
class PlainFrame:
    """``code``: a copy of the function's, since captured code is never captured again, and the program's own is where others call it.
    ``direct``: what it does without a frame, or a call of the copy."""

    code: types.CodeType
    direct: DirectCall


def plain_frame(tx) -> PlainFrame | None:
    """How the frame ``tx``, which is about to return, serves itself; None where a graph is to."""
    output = tx.output
    compiler, code = output.compiler, tx.code
    if not config.small_arrays_plainly or compiler.name != "inductor" or compiler.listeners or config.verify:
        return None
    if tx.suspends or tx.break_at is not None or not output.of_numpy or output.modes.transforms or tx.needs_eval:
        return None
    if code.co_freevars or code.co_cellvars or code.co_kwonlyargcount or code.co_flags & VARIADIC:
        return None
    inputs = output.recorder.inputs
    if not all(map(_is_small, inputs)):
        return None
    graph = output.recorder.graph
    nodes = [n for n in graph.nodes if n.op not in ("placeholder", "output")]
    if graph.carries or not graph.holds_arrays or not nodes or not (_is_one_call(nodes) or _is_of_elements(nodes)):
        return None
    insts = decode(code)
    if len(insts) > SHORT or any(i.target is not None for i in insts):
        return None
    copy = code.replace()
    return PlainFrame(copy, _direct(copy, output.globals, inputs))


def _direct(code: types.CodeType, scope: dict, inputs) -> DirectCall:
    arrays = [i.example for i in inputs if i.ndarray]
    direct = direct_call(code)
    if direct is None and all(np.dtype(a.dtype.np) in QUIET for a in arrays):
        direct = direct_store(code)
    if direct is not None:
        return direct
    return DirectCall(types.FunctionType(code, scope), tuple(range(code.co_argcount)), -1, Returns.RESULT)


def _is_small(given) -> bool:
    """Whether an input is a number or a NumPy array of a few elements, of sizes that are known."""
    if given.number:
        return True
    known = all(type(n) is int for n in given.node.meta["val"].shape)
    return given.ndarray and not given.carried and known and given.example.numel() <= FEW


def _name(node) -> str:
    return node.target if type(node.target) is str else getattr(node.target, "__name__", "")


def _is_one_call(nodes: list) -> bool:
    node, name = nodes[0], _name(nodes[0])
    taken = name == "getitem" and not _is_view(node)
    return len(nodes) == 1 and (taken or name.startswith(CALLS_OF_NUMPY) or name in WHOLE)


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


def guards_of(output, args: tuple):
    """The tree of guards of such a frame: of its arrays what the capture asked of them, of numbers among its arguments the type."""
    asked, guards = output.guards, GuardBuilder()
    for given in output.recorder.inputs:
        if given.ndarray:
            checks = asked.nodes[asked.node(given.source)][3]
            (facts,) = [payload for number, payload in checks if CHECK_NAME[number] == "NDARRAY_MATCH"]
            guards.add(given.source, "NDARRAY_MATCH", facts)
    for i, (name, value) in enumerate(zip(output.code.co_varnames, args)):
        if is_among(type(value), NUMBERS):
            guards.add(LocalSource(name, i), "TYPE_MATCH", type(value))
    return guards.build()
