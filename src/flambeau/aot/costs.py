"""The cost of computing a node again, from the kind of its operator and never from its name.

Views are free, pointwise operators and factories cheap, reductions and gathers medium; contractions, external kernels and
random draws are not repeated. A composite costs what its parts cost: they are found by running it once on fake tensors.
"""

from __future__ import annotations

import enum
import operator
from typing import Any

from ..autograd import no_grad
from ..base.symint import NUMBERS, SymInt
from ..core import modes
from ..core.modes import TorchDispatchMode
from ..fx import Node
from ..fx.targets import kind_of, tags_of

__all__ = ["Cost", "cost", "elements", "is_fusible", "is_size", "is_view", "nbytes"]


class Cost(enum.Enum):
    FREE, CHEAP, MEDIUM, NEVER = range(4)


_BY_KIND = {
    "view": Cost.FREE,
    "pointwise": Cost.CHEAP,
    "factory": Cost.CHEAP,
    "reduction": Cost.MEDIUM,
    "index": Cost.MEDIUM,
}
_cheap = {"view", "pointwise", "factory"}
_fusing = {*_cheap, "reduction", "index"}


def cost(node: Node) -> Cost:
    """How dear it is to compute ``node`` again."""
    if is_size(node):
        return Cost.FREE
    if "data" in tags_of(node.target):  # read again; a size, though, must be one number
        return Cost.NEVER if isinstance(node.meta.get("val"), SymInt) else Cost.FREE
    if node.op == "get_attr" or node.target is operator.getitem:
        return Cost.FREE
    if node.op != "call_function":
        return Cost.NEVER
    kind = kind_of(node.target)
    if kind == "composite":
        return Cost.CHEAP if parts(node) <= _cheap else Cost.NEVER
    return _BY_KIND.get(kind, Cost.NEVER)


def is_fusible(node: Node) -> bool:
    """Whether the value of ``node`` is computed by loops, which may be joined with the loops of what it reads."""
    if is_size(node):
        return True
    if node.op == "get_attr" or node.target is operator.getitem:
        return True
    return node.op == "call_function" and parts(node) <= _fusing


def is_size(node: Node) -> bool:
    """Whether a node is a number that follows from the sizes of tensors and from other numbers (and not from data)."""
    value = node.meta.get("val")
    return node.op == "call_function" and isinstance(value, NUMBERS) and "data" not in tags_of(node.target)


def is_view(node: Node) -> bool:
    return node.op == "call_function" and kind_of(node.target) == "view"


UNKNOWN = 4096  # what a size that depends on data is taken to be
_parts: dict[Any, frozenset[str]] = {}


def parts(node: Node) -> frozenset[str]:
    """Kinds of the operators that a node's operator consists of (its own, unless it is a composite)."""
    op = node.target
    kind = kind_of(op) or "extern"
    if kind != "composite":
        return frozenset([kind])
    if op.definition.eager is not None:  # a kernel of its own
        return frozenset(["extern"])
    if "data" in op.tags:  # gives a number of the tensor's: nothing fuses over it
        return frozenset(["extern"])
    found = _parts.get(op)
    if found is None:
        found = _parts[op] = _open(node)
    return found


class _Kinds(TorchDispatchMode):
    """Notes the kinds of the operators called, composites decomposed."""

    sees_parts = True

    def __init__(self):
        super().__init__()
        self.seen: set[str] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.kind == "composite":
            with self:
                return func.definition.fn(*func.full(*args, **(kwargs or {})))
        self.seen.add(func.kind)
        return func(*args, **(kwargs or {}))


def _open(node: Node) -> frozenset[str]:
    def value(a):
        if isinstance(a, Node):
            return a.meta["val"]
        return [value(x) for x in a] if isinstance(a, (list, tuple)) else a

    op = node.target
    args = op.full(*map(value, node.args), **{k: value(v) for k, v in node.kwargs.items()})
    fake_mode = next(t.fake_mode for t in tensors(list(args)))
    with modes.disabled("dispatch"), fake_mode, _Kinds() as kinds, no_grad():
        try:
            op.definition.fn(*args)
        except NotImplementedError:  # a part has no shape rule: it is a kernel we know nothing about
            return frozenset(["extern"])
    return frozenset(kinds.seen)


def tensors(value: Any) -> list:
    """The tensors in nested lists and tuples."""
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return [value]
    return [t for v in value for t in tensors(v)] if isinstance(value, (tuple, list)) else []


def elements(node: Node) -> int:
    """Elements of the tensors that a node produces."""
    return sum(_elements(t) for t in tensors(node.meta.get("val")))


def _elements(t) -> int:
    n = 1
    for s in t.shape:
        n *= s if isinstance(s, int) else s.hint or UNKNOWN
    return n


def nbytes(node: Node) -> int:
    """Bytes of the tensors that a node produces."""
    total = sum(t.dtype.itemsize * _elements(t) for t in tensors(node.meta.get("val")))
    return total + (8 if isinstance(node.meta.get("val"), NUMBERS) else 0)
