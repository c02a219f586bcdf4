"""Python numbers that the graph computes."""

from __future__ import annotations

from flambeau.core.operator import namespace

from ...exc import unsupported
from ...numpy import numpy_bridge
from ..numpy.ndarray import NumpyNdarrayVariable

__all__ = ["NumberVariable", "complex_of"]


class NumberVariable(NumpyNdarrayVariable):
    """A Python number that a loop computed, or an integer that was drawn: known as a tensor in the graph, as a number outside. Whatever is done
    with it happens outside.
    ``flag``: the node that tells whether it is NumPy's after all, where that depends on data (see loops.values.Scalar)."""

    def __init__(self, node, val, python_type, flag=None):
        super().__init__(node, val)
        self.number_type, self.flag = python_type, flag

    def python_type(self):
        if self.flag is not None:
            self.as_proxy()
        return self.number_type

    def reconstruct(self, cg):
        if self.flag is None:
            cg.call_function(numpy_bridge.to_number, lambda: cg.graph_output(self.node), 1)
            return

        def both():
            cg.graph_output(self.node)
            cg.graph_output(self.flag)

        cg.call_function(numpy_bridge.to_flagged_number, both, 2)

    def as_proxy(self):
        unsupported(
            "loop-number",
            "a number that a loop computed, or an integer that was drawn, is used in the graph",
            "It is Python's, not a tensor.",
        )

    def getattr(self, tx, name):
        self.as_proxy()

    def call_method(self, tx, name, args, kwargs):
        self.as_proxy()


def complex_of(re, im):
    """The complex number of two parts."""
    return namespace("aten").complex(re, im)
