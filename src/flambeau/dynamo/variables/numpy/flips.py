"""Arrays that run backwards (``np.flip``, ``a[::-1]``), which tensors can't: in the graph copies that nobody may write, nor the array that they show.

What leaves captured code is made by NumPy of that array, so it is the view that a program expects."""

from __future__ import annotations

import numpy as np

from flambeau.core.operator import namespace

from ...exc import unsupported
from ...numpy.views import made_of_argument
from ...tracing.current_frame import current
from ..base import Variable
from ..tensors.tensor import TensorVariable
from ..values.constant import ConstantVariable
from .ndarray import NumpyNdarrayVariable
from .read_only import is_read_only, mark_read_only

__all__ = ["FlippedVariable", "flip", "flipped"]

AXES = {np.flip: None, np.flipud: 0, np.fliplr: 1}


class FlippedVariable(NumpyNdarrayVariable):
    """``base`` backwards along ``axes``."""

    def __init__(self, node, val, base: NumpyNdarrayVariable, axes: tuple[int, ...]):
        super().__init__(node, val, scalar=False)
        self.base, self.axes = base, axes
        mark_read_only(node)

    def reconstruct(self, cg):
        base = self.base
        made = made_of_argument(current().output, base.node, base.val, False, is_read_only(base.node), self.axes)
        if made is not None:
            cg.call_function(made[1], lambda: cg.load_source(made[0]), 1)
            return

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
    graph, n = tx.output.recorder.root, a.val.ndim
    if graph.carries or tx.output.recorder.levels:
        unsupported("numpy", "an array that runs backwards, under a derivative", "NumPy makes it.")
    np.flip(np.empty((1,) * n), axis)  # the error
    axes = tuple(range(n)) if axis is None else tuple(k % n for k in (axis if isinstance(axis, tuple) else (axis,)))
    out = TensorVariable(a.node, a.val)
    copy = tx.wrap_known(namespace("aten").flip.default).call(tx, [out, ConstantVariable(axes)], {})
    tx.output.flips.add(copy.val, a.val)
    return FlippedVariable(copy.node, copy.val, a, axes)
