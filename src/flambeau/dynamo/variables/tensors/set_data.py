"""``tensor.data = value``: the tensor goes on as another one. In the graph what follows reads a value that shares the memory of ``value`` and whose
gradient goes to the tensor; captured code writes ``.data`` with the other side effects."""

from __future__ import annotations

from flambeau.autograd.function import Function

from ...exc import unsupported
from ...higher_order.autograd_functions import AutogradFunctionVariable
from ..base import Variable
from ..contexts.managers import GradModeVariable
from ..values.constant import ConstantVariable
from .tensor import TensorVariable

__all__ = ["set_data"]


class WithData(Function):
    """Names the node of the graph; its forward and backward are :class:`Part`."""


class Part(Variable):
    def __init__(self, name: str):
        super().__init__()
        self.name = name

    def call(self, tx, args, kwargs):
        _, *given = args
        if self.name == "forward":
            return given[1].call_method(tx, "detach", [], {})
        return tx.make_tuple([given[0], ConstantVariable(None)])


class WithDataVariable(AutogradFunctionVariable):
    def getattr(self, tx, name):
        return Part(name) if name in ("forward", "backward") else super().getattr(tx, name)


def set_data(tx, t: TensorVariable, value: Variable) -> None:
    """``t.data = value``. Breaks the graph where the form of ``t`` would change, or where it has a history."""
    value, output = value.unwrap(), tx.output
    if type(value) is not TensorVariable or t.source is None or type(t) is not TensorVariable:
        unsupported("tensor-setattr", f"setting data of {t!r}", "Attributes of tensors are written outside the graph.")
    if output.recorder.levels or output.recorder.example_of(t).grad_fn is not None:
        unsupported("tensor-setattr", f"setting data of {t!r}", "The tensor has a history.")
    old, new = t.val, value.val
    changed = tuple(old.shape) != tuple(new.shape) or old.dtype != new.dtype or old.device != new.device
    if changed and new.requires_grad and not old.requires_grad:
        unsupported("tensor-setattr", f"setting data of {t!r}", "Its shape, dtype or device would change.")
    if changed and old.requires_grad:
        # Its gradient would have another form than the input of the graph: the graph doesn't use it any more.
        given = value.call_method(tx, "detach", [], {})
        t.is_replaced = True
    elif old.requires_grad:
        recording = GradModeVariable(None, True)
        recording.enter(tx)
        given = WithDataVariable(WithData).getattr(tx, "apply").call(tx, [t, value], {})
        recording.exit(tx)
    else:
        given = value.call_method(tx, "detach", [], {})
    example = output.recorder.examples[t.node]
    t.node, t.val = given.node, given.val
    if t.is_replaced:
        # It is a leaf that asks for a gradient still.
        t.val = output.eval_fake(lambda v: v.detach().requires_grad_(), [given.val])
    output.recorder.examples[t.node] = example
    t.written["data"] = given.call_method(tx, "detach", [], {})
    tx.side_effects.touch(t)
