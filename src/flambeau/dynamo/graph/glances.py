"""Small functions that only look at NumPy arrays, or change a few elements: a graph for that costs more than NumPy itself."""

from __future__ import annotations

import builtins
import math
import operator
import types

import numpy as np

from flambeau.loops.binary_operators import binary_name

from ..bytecode.instructions import decode

__all__ = ["is_glance", "is_plain_argument", "is_small_argument", "only_glances", "only_looks"]

# Instructions of such a function, elements that it may copy.
SHORT, FEW = 60, 256
# Classes of arguments whose subscripts and attributes run no code of the program's.
PLAIN = (np.ndarray, np.int64, np.float64, np.bool_, int, float, complex, bool)
OPTIMIZED = 0x01  # inspect.CO_OPTIMIZED
# Globals that read nothing of the process, as far as a frame without a graph can tell.
LOOKING = frozenset("len bool int float complex abs isinstance tuple list range min max divmod np numpy math".split())
SUBSCRIPTS = (operator.getitem, operator.setitem)


def is_plain_argument(value) -> bool:
    """Compared by identity: a class may have a metaclass of the program's, with an ``__eq__``."""
    return any(type(value) is cls for cls in PLAIN)


def is_small_argument(value) -> bool:
    """Of such a class."""
    return type(value) is not np.ndarray or (value.size <= FEW and not value.dtype.hasobject)


def only_glances(tx) -> bool:
    """Whether the frame ``tx``, which is about to return and was called by code that runs plainly, is such a function, whatever the next call
    gives it: it has no branches and calls nothing, and its graph has nothing but views, elements and small parts of arrays."""
    output = tx.output
    if (
        tx.fullgraph
        or tx.suspends
        or tx.break_at is not None
        or not output.of_numpy
        or tx.code in output.compiler.top_codes
    ):
        return False
    insts = decode(tx.code)
    if len(insts) > SHORT or any(i.target is not None or i.name.startswith("CALL") or _is_in_place(i) for i in insts):
        return False
    graph = output.recorder.graph
    if not graph.holds_arrays or graph.carries or output.modes.transforms:
        return False
    return all(is_glance(n) for n in graph.nodes if n.op not in ("placeholder", "output"))


def only_looks(output) -> bool:
    """Whether captured code without a graph looks at arrays and numbers alone, so that no state of the process changes what it does."""
    code, graph = output.code, output.recorder.root
    if not output.of_numpy or graph.carries or output.modes.transforms or code.co_freevars or code.co_cellvars:
        return False
    if not all(i.ndarray and not i.carried for i in output.recorder.inputs):
        return False
    if any(type(c) is types.CodeType for c in code.co_consts) or not code.co_flags & OPTIMIZED:
        return False
    insts = decode(code)
    if len(insts) > SHORT or any(i.name.startswith("IMPORT") for i in insts):
        return False
    named = {i.argval for i in insts if i.name == "LOAD_GLOBAL"}
    if not named <= LOOKING or any("err" in name or name.startswith("__") for name in code.co_names):
        return False
    return all(_is_what_it_says(name, output.globals) for name in named)


def _is_what_it_says(name: str, scope: dict) -> bool:
    """Whether a global name is Python's own, NumPy or math."""
    if name in scope:
        return scope[name] is np or scope[name] is math
    return name in vars(builtins)


def _is_in_place(inst) -> bool:
    """``x += y`` of large arrays is worth a graph."""
    return inst.name == "BINARY_OP" and binary_name(inst).endswith("=")


def is_glance(node) -> bool:
    val = node.meta.get("val")
    if node.op == "call_function" and node.target in SUBSCRIPTS:
        return val is None or _is_small(val) or _is_view(node, val)
    return node.op.startswith("call") and (_is_view(node, val) or (node.target == "clone" and _is_small(val)))


def _is_small(val) -> bool:
    return all(type(n) is int for n in val.shape) and val.numel() <= FEW


def _is_view(node, val) -> bool:
    first = next(iter(node.all_input_nodes), None)
    of = None if first is None else first.meta.get("val")
    return hasattr(val, "_storage") and hasattr(of, "_storage") and val._storage is of._storage
