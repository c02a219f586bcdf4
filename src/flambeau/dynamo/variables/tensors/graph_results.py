"""Variables for what operations of the graph give: tensors, structures of them, and functions."""

from __future__ import annotations

import functools
import operator
import types

from ...exc import unsupported
from ...graph import tensor_queries
from ...higher_order.opaque import call_value
from ...rules.constants import is_constant_value
from ...rules.reflect import name_of
from ..base import Variable
from ..containers.dicts import DictVariable
from ..containers.graph_sequences import Result
from ..containers.lists import ListVariable
from ..containers.sequences import TupleVariable
from ..values.constant import ConstantVariable
from .tensor import TensorVariable

__all__ = ["Opaque", "wrap_result"]


class Opaque:
    """A variable on its way through a function of the library, which only passes it on."""

    def __init__(self, variable: Variable):
        self.variable = variable


class GraphCallableVariable(Variable):
    """A function that an operation of the graph returned, for example the second result of vjp."""

    def __init__(self, node, val):
        super().__init__()
        self.node, self.val = node, val

    def python_type(self):
        return type(self.val)

    def truth(self, tx):
        return True

    def as_proxy(self):
        return self.node

    def call(self, tx, args, kwargs):
        return tx.output.call_in_graph(tx, "call_function", call_value, [self, *args], kwargs)


def wrap_result(tx, node, value, *inputs) -> Variable:
    """The variable for a node's value. In-place operations return their own input."""
    if isinstance(value, Opaque):
        return value.variable

    if tensor_queries.is_tensor(value):
        for v in inputs:
            for item in v.elements if isinstance(v, TupleVariable) else (v,):  # out=(a, b)
                if isinstance(item, TensorVariable) and item.val is value:
                    return item
        return TensorVariable.of_result(node, value)

    def element(key, v) -> Variable:
        if v is None or is_constant_value(v):
            return ConstantVariable(v)
        if isinstance(v, Opaque):
            return v.variable
        n = tx.output.recorder.create_node(tx, "call_function", operator.getitem, (node, key), {})
        n.meta["val"] = n.meta["example_value"] = v
        return wrap_result(tx, n, v, *inputs)

    if isinstance(value, (tuple, list)):
        if is_constant_value(tuple(value)):
            return tx.wrap_known(value)
        if type(value) in (list, tuple) and all(map(tensor_queries.is_tensor, value)):
            return Result.of(node, value, lambda: [element(i, v) for i, v in enumerate(value)])
        elements = [element(i, v) for i, v in enumerate(value)]
        return ListVariable(elements) if isinstance(value, list) else TupleVariable(elements, cls=type(value))
    if isinstance(value, types.FunctionType | functools.partial):
        return GraphCallableVariable(node, value)
    if type(value) is dict and all(isinstance(k, str | int) for k in value):
        return DictVariable({k: (ConstantVariable(k), element(k, v)) for k, v in value.items()})
    unsupported(
        "graph-result",
        f"an operation in the graph returned {name_of(type(value))}",
        "Only tensors, and lists and tuples of them, come out of the graph.",
    )
