"""Arrays that run backwards (``np.flip``, ``a[::-1]``), which tensors can't: in the graph copies that nobody may write, nor the array that they show.

What leaves captured code is made by NumPy of that array, so it is the view that a program expects."""

from __future__ import annotations

import numpy as np

from flambeau.core.operator import namespace

from ..exc import SkipFrame, unsupported
from .base import Variable
from .constant import ConstantVariable
from .tensor import NumpyNdarrayVariable, TensorVariable, mark_read_only

__all__ = ["FlippedVariable", "flip", "flipped"]

AXES = {np.flip: None, np.flipud: 0, np.fliplr: 1}


class FlippedVariable(NumpyNdarrayVariable):
    """``base`` backwards along ``axes``."""

    def __init__(self, node, val, base: NumpyNdarrayVariable, axes: tuple[int, ...]):
        super().__init__(node, val, scalar=False)
        self.base, self.axes = base, axes
        mark_read_only(node)

    def reconstruct(self, cg):
        def push():
            cg(self.base)
            cg.load_const(self.axes)

        cg.call_function(np.flip, push, 2)


def flip(tx, fn, args: list[Variable], kwargs: dict[str, Variable]) -> Variable | None:
    """A call of one of :data:`AXES`; None for one that NumPy has to make."""
    given = {**dict(zip(("m", "axis"), args)), **kwargs}
    a, axis = given.get("m"), given.get("axis", ConstantVariable(AXES[fn]))
    if not isinstance(a, NumpyNdarrayVariable) or a.scalar or not axis.can_constant() or given.keys() - {"m", "axis"}:
        return None
    try:
        return flipped(tx, a, axis.as_constant())
    except ValueError as e:  # NumPy's AxisError is one
        tx.raise_user(e)


def flipped(tx, a: NumpyNdarrayVariable, axis) -> Variable:
    """``np.flip(a, axis)``. ValueError for an axis that ``a`` hasn't."""
    graph, n = tx.output.root, a.val.ndim
    if getattr(graph, "carries", False) or tx.output.levels:
        unsupported("numpy", "an array that runs backwards, under a derivative", "NumPy makes it.")
    np.flip(np.empty((1,) * n), axis)  # the error
    axes = tuple(range(n)) if axis is None else tuple(k % n for k in (axis if isinstance(axis, tuple) else (axis,)))
    out = TensorVariable(a.node, a.val)
    copy = tx.wrap_known(namespace("aten").flip.default).call(tx, [out, ConstantVariable(axes)], {})
    tx.output.flips.append((copy.val._storage, a.val._storage))
    return FlippedVariable(copy.node, copy.val, a, axes)


def refuse_shown(output, nodes) -> None:
    """A call may write into one of these: not into an array that one running backwards shows."""
    bases = [base for _, base in output.flips]
    if any(getattr(n.meta.get("val"), "_storage", None) is base for n in nodes for base in bases):
        unsupported("numpy", "a write into an array that another one shows backwards", "NumPy's array sees the write.")


def refuse_parts(output, v: NumpyNdarrayVariable) -> None:
    """A view of such an array leaves captured code: it would be one of the copy."""
    if type(v) is not FlippedVariable and any(copy is v.val._storage for copy, _ in output.flips):
        raise SkipFrame("a view of an array that runs backwards leaves captured code")
