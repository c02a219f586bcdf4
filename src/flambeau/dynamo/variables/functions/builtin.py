"""Builtin functions and classes: folded on constants, else what :data:`~.handlers.HANDLERS` has for them."""

from __future__ import annotations

import functools
import inspect
import math
import operator
import types

import numpy as np

from flambeau.base.symint import sym_max, sym_min

from ...exc import unsupported
from ...rules import trace_rules
from ...rules.reflect import flags_of, is_among, module_of
from ...tracing import world
from ...tracing.wrapping import CLASS_WRAPPERS, FUNCTION_WRAPPERS, pin
from ..base import KnownVariable, Variable
from ..contexts.managers import ContextManagerVariable
from ..exceptions.exception import make_exception
from ..objects.builtin_subclass import MAPPINGS
from ..objects.instance import ObjectVariable
from ..operators import INPLACE, OPERATORS, UNARY, binary, fold, unary
from ..tensors.tensor import TensorVariable
from ..values.constant import ConstantVariable
from ..values.symbolic import FUNCTIONS, SymbolicVariable, arithmetic, specialized
from .handlers import HANDLERS, takes
from .unbound_methods import UnboundMethod

__all__ = ["BuiltinVariable", "PURE", "PURE_MODULES"]

PURE_MODULES = {"math", "_operator", "cmath"}
WRITERS = {"setitem", "delitem", "iconcat", *(fn.__name__ for fn in INPLACE)}  # they may write to the first argument
PURE = {
    abs, all, any, ascii, bin, bool, bytes, chr, complex, divmod, float, format, frozenset, hash, hex, int, len, max, min, oct, ord, pow,
    repr,
    round, str, sum, tuple, np.dtype, np.float32, np.float64, np.int32, np.int64, np.finfo, np.iinfo, np.prod, math.prod,
    functools.reduce, inspect.isclass, inspect.isfunction,
}  # fmt: skip
CONVERSIONS = {int: "__int__", float: "__float__"}  # to a number, by the class's own method


class BuiltinVariable(KnownVariable):
    """A builtin function or type, or another C callable that may be folded."""

    def __repr__(self):
        return f"{getattr(self.value, '__name__', self.value)}"

    def hasattr(self, tx, name):
        return world.has(tx, lambda: self.getattr(tx, name))

    def getattr(self, tx, name):
        value = getattr(self.value, name, None)
        if isinstance(self.value, type) and isinstance(
            value, (types.MethodDescriptorType, types.WrapperDescriptorType)
        ):
            return UnboundMethod(self.value, name, value)
        if name == "fromkeys" and isinstance(self.value, type) and is_among(self.value, MAPPINGS):
            return BuiltinVariable(self.value.fromkeys)
        return world.library_attr(tx, self, self.value, self.source, name)

    def getitem(self, tx, key):
        if isinstance(self.value, type) and hasattr(self.value, "__class_getitem__") and key.can_constant():
            return fold(tx, operator.getitem, [self, key])
        return super().getitem(tx, key)

    def call(self, tx, args, kwargs):
        fn = self.value
        if args and isinstance(args[0], ContextManagerVariable) and fn.__name__ in ("__enter__", "__exit__"):
            return args[0].call_method(tx, fn.__name__, args[1:], kwargs)  # found on its class, as ExitStack does
        if any(isinstance(tx.realize(a), SymbolicVariable) for a in args):
            args = [tx.realize(a) for a in args]
            found = self.call_symbolic(tx, args, kwargs)
            if found is not None:
                return found
            if not any(isinstance(a, TensorVariable) for a in args):
                args = [specialized(tx, a) for a in args]
        h = HANDLERS.get(fn)
        if h is not None and takes(fn, len(args), tuple(kwargs)):
            r = h(tx, args, kwargs)
            if r is not None:
                return r
        if fn in OPERATORS and len(args) == 2:
            return binary(tx, fn, *args)
        if fn in UNARY and len(args) == 1:
            return unary(tx, fn, args[0])
        everything = [*args, *kwargs.values()]
        pure = fn in PURE or (module_of(fn) in PURE_MODULES and fn.__name__ not in WRITERS)
        if pure and all(a.can_constant() for a in everything):
            return fold(tx, fn, args, kwargs)
        if isinstance(fn, type) and issubclass(fn, BaseException):
            return make_exception(tx, fn, args, kwargs)
        if isinstance(fn, (types.MethodDescriptorType, types.WrapperDescriptorType)) and args:
            return UnboundMethod(fn.__objclass__, fn.__name__, fn).call(tx, args, kwargs)
        if fn in CONVERSIONS and len(args) == 1 and not kwargs and isinstance(args[0], ObjectVariable):
            if type(world.class_attr(tx, args[0].cls, CONVERSIONS[fn])) is types.FunctionType:
                made = args[0].call_method(tx, CONVERSIONS[fn], [], {})
                if made.is_constant() and type(made.as_constant()) is fn:
                    return made
        if fn in CONVERSIONS and len(args) == 1 and not kwargs and isinstance(args[0], TensorVariable):
            if tx.output.shapes.data_symbols("item"):
                return args[0].call_method(tx, CONVERSIONS[fn], [], {})
        name = getattr(fn, "__name__", str(fn))
        kinds = [type(a) for a in args]
        if any(isinstance(a, TensorVariable) for a in everything):
            why = (
                f"{name}() of a tensor depends on tensor data."
                if fn in (int, float, bool, str, repr, complex)
                else f"{name}() with these arguments isn't traced."
            )
        else:
            why = f"{name}() is ordinary Python with effects that a graph can't hold, or isn't traced with these arguments."
        unsupported(
            f"builtin-{name}",
            f"builtin: {name} {kinds!r} {bool(kwargs)}",
            why,
            "Move the call out of the compiled function, or accept the graph break.",
            headline=why,
        )

    def call_symbolic(self, tx, args, kwargs) -> Variable | None:
        """A call with a symbolic number among the arguments; None when the number's value is needed."""
        fn = self.value
        if fn in OPERATORS and len(args) == 2:
            return binary(tx, fn, *args)
        if fn in UNARY and len(args) == 1:
            return unary(tx, fn, args[0])
        if fn is bool and len(args) == 1:
            return ConstantVariable(args[0].truth(tx))
        if fn in (min, max) and len(args) == 2 and not kwargs:
            kinds = {a.python_type() for a in args}
            if bool in kinds or len(kinds) > 1:
                # One of the two, with its type, not a number that equals it.
                second = binary(tx, operator.lt if fn is min else operator.gt, args[1], args[0])
                return args[1] if tx.truth(second) else args[0]
            return arithmetic(tx, sym_min if fn is min else sym_max, args)
        if fn is pow and len(args) == 2:
            return arithmetic(tx, operator.pow, args)
        if fn in FUNCTIONS and not kwargs:
            return arithmetic(tx, fn, args)
        if fn in TAKE_NUMBERS:
            h = HANDLERS.get(fn)
            return h(tx, args, kwargs) if h is not None else None
        return None


# Builtins that pass numbers on without looking at them.
TAKE_NUMBERS = (
    isinstance, type, tuple, list, slice, set, dict, setattr, getattr, hasattr, iter, next, zip, enumerate, operator.getitem,
    operator.setitem, operator.is_, operator.is_not, operator.truth, operator.not_, id, range,
)  # fmt: skip


@FUNCTION_WRAPPERS.row("with a handler")
def _(tx, value, source):
    if value not in HANDLERS or trace_rules.inline_reason(value).inlined:
        return None
    pin(tx, source, "ID_MATCH", value)
    return BuiltinVariable(value, source)


@CLASS_WRAPPERS.row("builtin")
def _(tx, value, source):
    immutable = module_of(value) == "builtins" and flags_of(value) & world.IMMUTABLE
    if is_among(value, HANDLERS) or is_among(value, PURE) or immutable:
        return BuiltinVariable(value, source)
    of_numpy = module_of(value) == "numpy" and not issubclass(value, np.ndarray)
    return BuiltinVariable(value, source) if of_numpy else None


@CLASS_WRAPPERS.row("of itertools")
def _(tx, value, source):
    return BuiltinVariable(value, source) if module_of(value) == "itertools" or value is functools.partial else None
