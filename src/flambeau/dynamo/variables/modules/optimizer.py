"""The library's optimizers: objects like any other, whose states are made before the step that needs them is traced."""

from __future__ import annotations

from ...rules import trace_rules
from ...tracing.wrapping import WRAPPERS, pin
from ..objects.instance import ObjectVariable, has_attributes
from ..tensors.tensor import TensorVariable
from .module import is_library

__all__ = ["OptimizerVariable"]


class OptimizerVariable(ObjectVariable):
    """A step that finds no state would be captured twice: once to make it, once to use it. So what ``_init_state`` makes (zeros) is made for
    real when the step is about to collect its parameters, and the first step is captured like all others."""

    def getattr(self, tx, name):
        if name == "_gather" and self.value is not None:
            if all(is_library(self.class_attr(tx, n)) for n in ("_gather", "_has_state", "_init_state")):
                self.make_states(tx)
        return super().getattr(tx, name)

    def make_states(self, tx) -> None:
        if "state" in self.written or "param_groups" in self.written:
            return
        state = self.value.state
        if id(state) in tx.output.objects.by_id:  # the traced code has looked at it: what it saw stays true
            return
        for group in self.value.param_groups:
            for p in group["params"]:
                if self.value._has_state(group) and self.has_gradient(tx, p) and not state.get(p):
                    self.value._init_state(state.setdefault(p, {}), p, group)

    def has_gradient(self, tx, p) -> bool:
        """Whether the parameter has a dense gradient where the trace is."""
        known = tx.output.objects.by_id.get(id(p))
        if isinstance(known, TensorVariable) and "grad" in known.written:
            return not known.written["grad"].is_constant()
        return p.grad is not None and not p.grad.is_sparse


@WRAPPERS.row("optimizer")
def _(tx, value, source):
    cls = type(value)
    if not trace_rules.is_optimizer_class(cls) or not has_attributes(value):
        return None
    pin(tx, source, "TYPE_MATCH", cls)
    return OptimizerVariable(value, cls, source)
