"""``__torch_function__`` of the library's, and the switches that turn overriding off."""

from __future__ import annotations

from flambeau.core.tensor import attribute_of, keeps_type

from ..exc import unsupported
from ..graph import tensor_queries
from ..guards.source import ConstSource
from ..rules.reflect import name_of
from ..tracing import world
from ..variables.base import KnownVariable
from ..variables.contexts.managers import ContextManagerVariable
from ..variables.tensors.torch_functions import special
from ..variables.values.constant import ConstantVariable
from .making import as_class

__all__ = ["AttributeFunction", "DisableFunctionVariable", "function_disabled"]


@special("is_torch_function_enabled", "is_torch_function_all_disabled")
def _(tx, var, args, kwargs):
    """As it was before the call, which is guarded, and what blocks of the traced code make of it."""
    disabled = max(tx.output.process.field("function_disabled"), tx.output.blocks.function_disabled)
    return ConstantVariable(not disabled if var.value.__name__.endswith("_enabled") else disabled > 1)


@special("__torch_function__")
def _(tx, var, args, kwargs):
    """``super().__torch_function__(func, types, args, kwargs)``: the library's own."""
    if var.value is not tensor_queries.Tensor.__dict__["__torch_function__"].__func__:
        return None
    cls, func, kinds, *rest = args
    given = rest[0] if rest else kwargs.get("args")
    named = rest[1] if len(rest) > 1 else kwargs.get("kwargs")
    cls = cls.as_constant()
    if not all(issubclass(cls, t.as_constant()) for t in kinds.items(tx)):
        return ConstantVariable(NotImplemented)
    positional = given.items(tx) if given is not None else []
    keywords = {} if named is None or named.is_constant() else {k.as_constant(): v for k, v in named.pairs(tx)}
    with function_disabled(tx):
        out = func.call(tx, positional, keywords)
    return out if keeps_type(getattr(func, "value", None)) else as_class(tx, out, cls)


class function_disabled:
    """While entered, subclasses do not override."""

    def __init__(self, tx):
        self.output = tx.output

    def __enter__(self):
        self.output.blocks.function_disabled += 1

    def __exit__(self, *exc):
        self.output.blocks.function_disabled -= 1


class DisableFunctionVariable(ContextManagerVariable):
    """DisableTorchFunctionSubclass, DisableTorchFunction."""

    enters_again = True

    def __init__(self, cls):
        super().__init__()
        self.cls = cls
        self.modes: list = []

    def python_type(self):
        return self.cls

    def enter(self, tx):
        tx.output.blocks.function_disabled += 1
        if name_of(self.cls) == "DisableTorchFunction":
            self.modes, tx.output.blocks.function_modes = tx.output.blocks.function_modes, []
        return ConstantVariable(None)

    def exit(self, tx):
        tx.output.blocks.function_disabled -= 1
        if name_of(self.cls) == "DisableTorchFunction":
            tx.output.blocks.function_modes = self.modes

    def reconstruct(self, cg):
        cg.call_function(self.cls, None, 0)


class AttributeFunction(KnownVariable):
    """``Tensor.shape.__get__``: what ``__torch_function__`` gets when an attribute is read."""

    def __init__(self, value):
        super().__init__(value, ConstSource(value, "attribute"))
        self.name = attribute_of(value)

    def real_value(self, tx):
        return self.value

    def getattr(self, tx, name):
        return world.library_attr(tx, self, self.value, self.source, name)

    def call(self, tx, args, kwargs):
        if self.value.__name__ != "__get__":
            unsupported("tensor-setattr", f"setting {self.name} of {args[0]!r}")
        with function_disabled(tx):
            return args[0].getattr(tx, self.name)
