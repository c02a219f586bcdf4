"""Functions of the library: one node each, except those that :data:`SPECIAL` has a handler for."""

from __future__ import annotations

import types
from collections.abc import Callable

from flambeau import autograd
from flambeau.ops.affine.tracing import operator_rule

from ...config import config
from ...exc import unsupported
from ...graph import tensor_queries
from ...guards.source import ConstSource
from ...higher_order import opaque, subgraphs
from ...rules import trace_rules
from ...rules.library_classes import is_operand, is_traced
from ...rules.reflect import module_of
from ...tracing import world
from ...tracing.wrapping import FUNCTION_WRAPPERS, WRAPPERS, pin
from ..base import HeldVariable
from .backward import check_ends, derivative, free_way
from .tensor import TensorVariable
from .tensor_methods import TensorMethodVariable
from .untraced import NOT_TRACED_METHODS

__all__ = ["TorchFunctionVariable", "TorchObjectVariable", "special"]

SPECIAL: dict[str, Callable] = {}


def special(*names: str):
    """Register a handler ``(tx, variable, args, kwargs)`` for library functions of these names."""

    def add(f):
        for n in names:
            SPECIAL[n] = f
        return f

    return add


class TorchFunctionVariable(HeldVariable):
    def __repr__(self):
        return f"torch.{getattr(self.value, '__name__', self.value)}"

    def as_proxy(self):
        return self.value

    def real_value(self, tx):
        return self.value

    def is_key(self):
        return True

    def distinct_from(self, other):
        return other.is_constant() or getattr(other, "value", None) is not self.value

    def truth(self, tx):
        return True

    def getattr(self, tx, name):
        return world.library_attr(tx, self, self.value, self.source, name)

    def hasattr(self, tx, name):
        return world.has(tx, lambda: self.getattr(tx, name))

    def call(self, tx, args, kwargs):
        fn = self.value
        name = getattr(fn, "__name__", "")
        if trace_rules.is_disallowed(fn):
            unsupported(
                "disallowed",
                f"call to disallowed operator {name or fn}",
                "disallow_in_graph was called for it.",
                "allow_in_graph undoes it.",
            )
        if trace_rules.is_allowed(fn) and config.check_allow_in_graph:
            opaque.watch(tx, fn)
        if (
            name in NOT_TRACED_METHODS
            and args
            and isinstance(args[0], TensorVariable)
            and getattr(tensor_queries.Tensor, name, None) is fn
        ):
            return TensorMethodVariable(args[0], name).call(tx, args[1:], kwargs)
        rule = None if trace_rules.is_allowed(fn) else operator_rule(fn)
        if rule is not None:
            return tx.wrap_function(rule).call(tx, args, kwargs)
        handler = SPECIAL.get(name) if not trace_rules.is_allowed(fn) else None
        if handler is not None:
            r = handler(tx, self, args, kwargs)
            if r is not None:
                return r
        operands = [*args, *kwargs.values()]
        if (
            not subgraphs.NO_CALLABLES.issuperset(map(type, operands))
            and any(map(subgraphs.is_callable_of_user, operands))
            and not trace_rules.is_allowed(fn)
        ):
            return subgraphs.call_library(tx, fn, args, kwargs)
        return tx.output.call_in_graph(tx, "call_function", fn, args, kwargs)


class TorchObjectVariable(HeldVariable):
    """An object of the library that is no tensor (an operator namespace, a Generator class, a device module): read for real."""

    def __repr__(self):
        return repr(self.value)

    def as_proxy(self):
        if not is_operand(type(self.value)):
            unsupported("library-object", f"{self!r} in an operation of the graph", "It may have state of its own.")
        return self.value

    def truth(self, tx):
        return bool(self.value)

    def getattr(self, tx, name):
        return world.library_attr(tx, self, self.value, self.source, name)

    def hasattr(self, tx, name):
        return world.has(tx, lambda: self.getattr(tx, name))

    def call(self, tx, args, kwargs):
        call = world.class_attr(tx, type(self.value), "__call__")
        if isinstance(call, types.FunctionType) and not trace_rules.is_torch_callable(call):
            return tx.wrap(call, ConstSource(call, "__call__")).call(tx, [self, *args], kwargs)
        return TorchFunctionVariable(self.value).call(tx, args, kwargs)


@special("grad")
def _(tx, var, args, kwargs):

    if var.value is not autograd.grad:
        return None
    given = {**dict(zip(("outputs", "inputs", "grad_outputs", "retain_graph", "create_graph"), args)), **kwargs}
    check_ends(tx, given.get("outputs"), given.get("inputs"))
    result = derivative(tx, args, kwargs)
    flags = [given[name].as_constant() for name in ("retain_graph", "create_graph") if name in given]
    if not next((keep for keep in flags if keep is not None), False):
        free_way(tx, given["outputs"], given["inputs"])
    return result


@FUNCTION_WRAPPERS.row("allowed in graphs")
def _(tx, value, source):
    if not trace_rules.is_allowed(value):
        return None
    pin(tx, source, "ID_MATCH", value)
    return TorchFunctionVariable(value, source)


@FUNCTION_WRAPPERS.row("of the library")
def _(tx, value, source):
    if not trace_rules.is_torch_callable(value):
        return None
    pin(tx, source, "ID_MATCH", value)
    return TorchFunctionVariable(value, source)


@WRAPPERS.row("library function")
def _(tx, value, source):
    if not trace_rules.is_torch_callable(value):
        return None
    pin(tx, source, "ID_MATCH", value)
    return TorchFunctionVariable(value, source)


@WRAPPERS.row("object of the library")
def _(tx, value, source):
    cls = type(value)
    if not str(module_of(cls)).startswith("flambeau.") or trace_rules.is_nn_module_class(cls) or is_traced(cls):
        return None
    pin(tx, source, "ID_MATCH", value)
    return TorchObjectVariable(value, source)
