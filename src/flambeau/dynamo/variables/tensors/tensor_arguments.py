"""Tensors that existed before the call: inputs of the graph, but for kinds that graphs don't have."""

from __future__ import annotations

from flambeau import _C
from flambeau.core.tensor import strided
from flambeau.modules.parameter import is_lazy

from ...exc import unsupported
from ...graph import tensor_queries
from ...rules import trace_rules
from ...rules.reflect import module_of, name_of, qualname_of
from ...tracing.wrapping import WRAPPERS
from ..base import Variable

# Bits of a tensor's flags and of its keys, as C has them.
FLB_FUNCTION = 8
FAKE_OR_WRAPPED = 2 | 4


class UncapturedTensorVariable(Variable):
    """A sparse tensor that existed before: what uses it breaks the graph and runs as ordinary Python."""

    def __init__(self, kind, source):
        super().__init__(source)
        self.kind = kind

    def __repr__(self):
        return f"a {self.kind} tensor"


@WRAPPERS.row("tensor")
def _(tx, value, source):
    return tensor_argument(tx, value, source) if trace_rules.is_a(value, _C.TensorBase) else None


def tensor_argument(tx, value, source):
    cls = type(value)
    if is_lazy(value):
        unsupported("lazy-parameter", f"a {name_of(cls)}", "Its shape is not known before the first call.")
    if tensor_queries.is_subclass(cls) and (
        tensor_queries.overrides_function(cls) or tensor_queries.overrides_dispatch(cls)
    ):
        return tx.subclasses.of_argument(tx, value, source)
    if cls is not tensor_queries.Tensor and not trace_rules.is_parameter_class(cls):
        if value._keys & FAKE_OR_WRAPPED or value._flags & FLB_FUNCTION or name_of(cls) == "FakeTensor":
            unsupported(
                "tensor-subclass",
                f"a tensor of class {module_of(cls)}.{qualname_of(cls)}",
                "Tensor subclasses that override operations run as ordinary Python.",
            )
    elif value._keys & FAKE_OR_WRAPPED:
        unsupported(
            "wrapped-tensor",
            "a tensor that belongs to a function transform or a dispatch mode",
            "The call runs as ordinary Python under it.",
        )
    if not value._has_data and value.is_quantized:
        return tx.subclasses.of_quantised(tx, value, source)
    if not value._has_data and value.layout is not strided:
        return UncapturedTensorVariable(value.layout, source)
    if value.is_conj() or value.is_neg():
        unsupported(
            "conjugated-view",
            "a tensor whose elements are the conjugates or negatives of its memory",
            "Graphs are given plain memory: call resolve_conj() or resolve_neg() before.",
        )
    return tx.output.add_input(value, source, ndarray=False)
