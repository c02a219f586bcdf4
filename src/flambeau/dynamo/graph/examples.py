"""What an operation gets while it is captured: fake tensors for nodes of the graph, in plain containers."""

from __future__ import annotations

from flambeau import _C, fx
from flambeau.base.errors import InternalError
from flambeau.base.symint import NUMBERS

from ..exc import unsupported

__all__ = ["example", "thaw"]


def example(x):
    """An argument of a node as the operation gets it: fake tensors for nodes, in plain containers."""
    t = type(x)
    if t is fx.Node:
        value = x.meta["now"] if "now" in x.meta else x.meta["val"]
        return thaw(value) if isinstance(value, (list, tuple, dict)) else value
    if t in ATOMS:
        return x
    if isinstance(x, list):
        return list(map(example, x))
    if isinstance(x, dict):
        return {k: example(v) for k, v in x.items()}
    if isinstance(x, tuple):
        return t(*map(example, x)) if hasattr(x, "_fields") else tuple(map(example, x))
    if t is slice:
        return slice(example(x.start), example(x.stop), example(x.step))
    # Objects in the graph must be values that mean the same at every call.
    if isinstance(x, _C.TensorBase):
        unsupported("not-proxyable", "a tensor that is no graph input is an argument of an operation")
    if isinstance(x, NUMBERS):
        raise InternalError(f"the symbolic number {x} would be a constant of the graph")
    return x


ATOMS = frozenset({int, float, bool, str, type(None), complex, bytes})


def thaw(x):
    """Plain containers from the graph's immutable ones: operators may check for list."""
    if isinstance(x, list):
        return [thaw(v) for v in x]
    if isinstance(x, dict):
        return {k: thaw(v) for k, v in x.items()}
    if isinstance(x, tuple):
        return type(x)(*map(thaw, x)) if hasattr(x, "_fields") else tuple(map(thaw, x))
    return x
