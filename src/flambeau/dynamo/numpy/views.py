"""Results that are views of an argument, or one of its elements, at a place that is known while tracing: captured code makes them of the argument
itself, by one native call and without the graph."""

from __future__ import annotations

from flambeau import _runtime
from flambeau.core.operator import namespace

from ..rules import trace_rules
from .numpy_bridge import np_dtype

__all__ = ["made_of_argument", "only_views"]

_FLIP = namespace("aten").flip.default


def made_of_argument(output, node, val, scalar: bool, read_only: bool = False, backwards: tuple[int, ...] = ()):
    """(the array that captured code takes, what is called with it) for a result of the graph, or None. ``read_only``: nobody may write into it.
    ``backwards``: dimensions along which it runs from the last element of ``val`` to the first."""
    recorder = output.recorder
    if node.graph is not recorder.root or output.modes.transforms or not _is_known(val):
        return None
    if scalar:  # a copy: nothing may have been written since
        if node.target != "clone" or any(_writes(n) for n in recorder.root.nodes if n.op.startswith("call")):
            return None
        val = node.args[0].meta.get("val")
        if not _is_known(val):
            return None
    for i in recorder.inputs:
        given = i.node.meta.get("val")
        if not (i.ndarray and _is_known(given) and given._storage is val._storage) or i.carried or i.numpy_number:
            continue
        if given.requires_grad or val.requires_grad or val.is_conj() or val.is_neg():
            return None
        if given.dtype is not val.dtype and (scalar or not given.dtype.is_complex):
            return None
        whole, part = np_dtype(given), np_dtype(val)
        strides = [n * part.itemsize for n in val.stride()]
        offset = val.storage_offset() * part.itemsize - given.storage_offset() * whole.itemsize
        for d in backwards:
            offset += strides[d] * max(val.shape[d] - 1, 0)
            strides[d] = -strides[d]
        return i.source, _runtime.ArrayView(whole, tuple(val.shape), tuple(strides), offset, scalar, read_only, part)
    return None


def _writes(node) -> bool:
    return "writes" in node.meta.get("effects", ()) or trace_rules.is_allowed(node.target)


def _is_known(val) -> bool:
    """Whether it is a tensor with sizes and strides that are numbers."""
    numbers = (*val.shape, *val.stride(), val.storage_offset()) if hasattr(val, "_storage") else (None,)
    return all(type(n) is int for n in numbers)


def only_views(recorder) -> bool:
    """Whether a graph without outputs has nothing to do: nobody counts writes to arrays, and they have no history."""
    if not all(i.ndarray and not i.carried for i in recorder.inputs):
        return False
    return all(_is_view(n) for n in recorder.root.nodes if n.op.startswith("call"))


def _is_view(node) -> bool:
    if node.target is _FLIP:  # stands for an array that runs backwards
        return True
    val, of = node.meta.get("val"), next(iter(node.all_input_nodes), None)
    first = None if of is None else of.meta.get("val")
    if _writes(node) or not (_is_known(val) and _is_known(first)):
        return False
    return val._storage is first._storage or (node.target == "clone" and not val.ndim)
