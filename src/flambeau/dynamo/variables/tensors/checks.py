"""Assertions about data and sizes: checks in the graph, or decided while tracing."""

from __future__ import annotations

from flambeau.base import shape_checks

from ...rules import trace_rules
from ..base import Variable
from ..values.constant import ConstantVariable
from ..values.symbolic import CheckVariable, SymbolicVariable, message_of, require_element
from .graph_results import wrap_result
from .tensor import TensorVariable
from .torch_functions import special

__all__ = ["truth_tensor"]


@special("_assert", "_assert_async", "_check_tensor_all")
def _(tx, var, args, kwargs):
    condition = tx.realize(args[0] if args else next(iter(kwargs.values())))
    rest = [*args[1:], *(v for k, v in kwargs.items() if k not in ("cond", "condition", "input"))]
    said = message_of(tx, rest[0]) if rest else None
    if type(condition) is TensorVariable:
        if not tx.output.shapes.data_symbols():
            return None
        if var.value.__name__ == "_check_tensor_all":
            condition = condition.call_method(tx, "all", [], {})
        require_element(tx, condition, said)
    elif isinstance(condition, SymbolicVariable):
        CheckVariable(shape_checks.check).require(tx, condition, said)
    elif not tx.truth(condition):
        tx.raise_user(AssertionError(said) if var.value.__name__ == "_assert" else RuntimeError(said))
    return ConstantVariable(None)


@special("demand_all")
def _(tx, var, args, kwargs):
    condition = tx.realize(args[0])
    if type(condition) is not TensorVariable:
        return None
    with tx.output.shapes.data_numbers():
        require_element(tx, condition.call_method(tx, "all", [], {}), "a value violates a constraint")
    return ConstantVariable(None)


def truth_tensor(tx, v: SymbolicVariable) -> Variable:
    """A truth value about sizes as a tensor of the graph: it isn't decided while tracing."""
    fn = trace_rules.library_attr("scalar_tensor")
    node = tx.output.shapes.number_node(v.number, decide=False)
    made = tx.output.recorder.create_node(tx, "call_function", fn, (node,), {})
    made.meta["val"] = made.meta["example_value"] = value = tx.output.eval_fake(fn, [v.number])
    return wrap_result(tx, made, value)


@special("scalar_tensor")
def _(tx, var, args, kwargs):
    v = tx.realize(args[0]) if args else None
    if not isinstance(v, SymbolicVariable) or v.number.__sym__ != "bool" or len(args) > 1 or kwargs:
        return None
    return truth_tensor(tx, v)
