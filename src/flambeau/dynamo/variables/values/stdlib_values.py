"""Values of the standard library: objects that never change (fractions, dates, paths, patterns, ...) are known while tracing, as constants are.
What is asked of them, and pure functions (:mod:`...rules.pure`), is computed while tracing on whatever is known."""

from __future__ import annotations

import collections
import inspect
import sys
import types
from collections.abc import Iterator

from ...exc import Unsupported, unsupported
from ...guards.source import ConstSource
from ...rules import pure, trace_rules
from ...rules.constants import is_constant_value
from ...rules.reflect import error_name_of, module_of, name_of, qualname_of
from ...tracing import world
from ...tracing.wrapping import CLASS_WRAPPERS, FUNCTION_WRAPPERS, WRAPPERS, pin
from ..base import HeldVariable, KnownVariable, MethodOf, Variable
from ..containers.dicts import DictVariable
from ..containers.lists import ListVariable
from ..containers.mapping_views import MappingVariable
from ..containers.sequences import TupleVariable
from ..containers.sets import SetVariable
from ..functions import polyfills
from ..functions.handlers import HANDLERS
from ..functions.python_functions import UserFunctionVariable
from ..functions.skipped_functions import skipped
from ..iterators.container_iterators import ElementsVariable
from ..objects.builtin_subclass import DerivedVariable
from ..objects.class_object import ClassVariable
from ..objects.instance import ObjectVariable
from .symbolic import SymbolicVariable

__all__ = [
    "PureFunctionVariable",
    "ValueClassVariable",
    "ValueVariable",
    "known_value",
    "made",
    "of_value",
]


class SameValue:
    """Guard: the value is equal to the one that was captured, in all that can be asked of it."""

    def __init__(self, value):
        self.cls, self.key = type(value), pure.value_key(value)

    def __call__(self, o) -> bool:
        return type(o) is self.cls and pure.value_key(o) == self.key

    def __repr__(self):
        return f"{name_of(self.cls)} {self.key!r}"


def known_value(value) -> bool:
    return pure.value_key(value) is not None


def of_value(tx, value, source) -> ValueVariable:
    """The variable of a value that :func:`known_value` holds for."""
    if type(source) is not ConstSource:
        if pure.value_key(value) is pure.SAME:
            tx.output.guard(source, "ID_MATCH", value)
        else:
            tx.output.guard(source, "CALL", SameValue(value))
    return ValueVariable(value, source)


def made(tx, value) -> Variable:
    """What a function returned that was called while tracing: captured code makes its containers anew at each call."""
    cls = type(value)
    if cls is list:
        return ListVariable([made(tx, v) for v in value])
    if cls is dict:
        return DictVariable({k: (made(tx, k), made(tx, v)) for k, v in value.items()})
    if cls is set:
        return SetVariable([made(tx, v) for v in value])
    if issubclass(cls, tuple) and (cls is tuple or hasattr(cls, "_fields")):
        return TupleVariable([made(tx, v) for v in value], cls=cls)
    if not is_constant_value(value) and known_value(value):
        return ValueVariable(value)
    return tx.wrap_known(value)


def unpatched(tx, cls: type, name: str):
    """What the class has under a name, guarded; refused where a program has put something else there."""
    found = world.class_attr(tx, cls, name)
    code = getattr(getattr(found, "fget", None) or getattr(found, "__func__", found), "__code__", None)
    if code is not None and not pure.is_library_code(code):
        unsupported(
            "patched", f"{qualname_of(cls)}.{name}", "The program has replaced a method of the standard library."
        )
    return found


class ValueVariable(KnownVariable):
    """An immutable object of the standard library."""

    def __repr__(self):
        return repr(self.value)

    def truth(self, tx):
        for name in ("__bool__", "__len__"):
            unpatched(tx, type(self.value), name)
        return bool(self.value)

    def folded(self, tx, fn, args, kwargs) -> Variable:
        """An operator or a builtin on this and other known values."""
        for name in world.FOLDED:
            unpatched(tx, type(self.value), name)
        return computed(
            tx, fn, "pure", [a.as_constant() for a in args], {k: v.as_constant() for k, v in kwargs.items()}
        )

    def getattr(self, tx, name):
        cls = type(self.value)
        found = unpatched(tx, cls, name)
        if trace_rules.is_a(found, (types.FunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)):
            return ValueMethod(self, name)
        try:
            value = getattr(self.value, name)
        except AttributeError as e:
            tx.raise_user(e)
        if isinstance(value, type) or known_value(value) or pure.is_plain(value):
            return made(tx, value)
        if trace_rules.is_a(value, types.MappingProxyType):
            return MappingVariable(made(tx, dict(value)))
        return world.library_attr(tx, self, self.value, self.source, name)

    def hasattr(self, tx, name):
        return world.has(tx, lambda: self.getattr(tx, name))

    def call_method(self, tx, name, args, kwargs):
        return self.getattr(tx, name).call(tx, args, kwargs)

    def call(self, tx, args, kwargs):
        if unpatched(tx, type(self.value), "__call__") is world.ABSENT:
            tx.raise_user(TypeError(f"{error_name_of(type(self.value))!r} object is not callable"))
        return self.getattr(tx, "__call__").call(tx, args, kwargs)

    def getitem(self, tx, key):
        return self.getattr(tx, "__getitem__").call(tx, [key], {})

    def contains(self, tx, key):
        return self.getattr(tx, "__contains__").call(tx, [key], {})

    def items(self, tx):
        if unpatched(tx, type(self.value), "__iter__") is world.ABSENT:
            tx.raise_user(TypeError(f"{error_name_of(type(self.value))!r} object is not iterable"))
        return [made(tx, v) for v in self.value]

    def length(self, tx):
        return self.getattr(tx, "__len__").call(tx, [], {}).as_constant()


class ValueMethod(MethodOf):
    """A bound method of such an object."""

    def python_type(self):
        return types.MethodType

    def call(self, tx, args, kwargs):
        cls, name = type(self.owner.value), self.name
        if name in ("sub", "subn") and name_of(cls) == "Pattern" and args and not args[0].can_constant():
            substitute = polyfills.pattern_sub if name == "sub" else polyfills.pattern_subn
            return tx.wrap_function(substitute).call(tx, [self.owner, *args], kwargs)
        method = pure.asked_method(cls, name)
        if method is None:
            unsupported(
                "library-method",
                f"call to {name_of(cls)}.{name}",
                "It looks at the world or changes it, and isn't asked again by guards.",
            )
        given = values_of(tx, [self.owner, *args], kwargs)
        if given is None:
            unsupported("library-method", f"call to {name_of(cls)}.{name} with what isn't known while tracing")
        return computed(tx, getattr(cls, name), method, *given)


def computed(tx, fn, method: str, given: list, named: dict) -> Variable:
    """The result of a pure function, or of one that the guard asks again, on these values."""
    subscript = (
        getattr(fn, "__name__", "") == "__getitem__" and module_of(type(given[0])) == "typing"
    )  # of classes, kept as they are
    if not subscript and not all(map(pure.is_plain, (*given, *named.values()))) and method != "asked of its object":
        unsupported(
            "library-function",
            f"call to {fn.__qualname__} with objects of the program",
            "Their methods are called by code that isn't traced.",
        )
    try:
        result = decimals(tx, fn, given, named) if "decimal" in sys.modules else fn(*given, **named)
    except Unsupported:
        raise
    except Exception as e:  # the user's own mistake: happens again, for real, in the plain frame
        tx.raise_user(e)
    if method.startswith("asked"):
        if not is_constant_value(result):
            unsupported("library-function", f"call to {fn.__qualname__}", "Guards can't compare what it returns.")
        world.library_state(tx, fn, tuple(given), named, result)
    if isinstance(result, Iterator):
        return ElementsVariable([made(tx, v) for v in result], cls=type(result))
    return made(tx, result)


class ValueClassVariable(ClassVariable):
    """A class of such objects: they are made while tracing from what is known."""

    def call(self, tx, args, kwargs):
        for name in ("__new__", "__init__"):
            unpatched(tx, self.value, name)
        given = values_of(tx, args, kwargs)
        if given is None:
            unsupported(
                "construct", f"constructing {module_of(self.value)}.{self.value.__qualname__} of what isn't known"
            )
        return computed(tx, self.value, "pure", *given)

    def found(self, tx, name, a, source):
        if trace_rules.is_a(a, classmethod) and pure.asked_method(self.value, name) == "pure":
            unpatched(tx, self.value, name)
            return PureFunctionVariable(getattr(self.value, name), super().found(tx, name, a, source))
        return super().found(tx, name, a, source)


class Unknown(Exception):
    """An argument whose value is not known while tracing."""


def value_of(tx, v: Variable):
    """The value of an argument: numbers that vary are constants then, containers are copied. Unknown where there is none."""
    v = tx.realize(v)
    if isinstance(v, SymbolicVariable):
        return v.as_constant()
    if type(v) is DictVariable and v.cls in (dict, collections.OrderedDict):
        return v.cls([(value_of(tx, k), value_of(tx, x)) for k, x in v.pairs(tx)])
    if type(v) in (ListVariable, TupleVariable):
        return v.make([value_of(tx, e) for e in v.realized(tx)])
    if not v.can_constant() or isinstance(v.unwrap(), DerivedVariable):  # which the function may give back
        raise Unknown
    return v.as_constant()


def values_of(tx, args, kwargs) -> tuple[list, dict] | None:
    """The values of all arguments; None when one isn't known."""
    try:
        return [value_of(tx, a) for a in args], {k: value_of(tx, v) for k, v in kwargs.items()}
    except Unknown:
        return None


def is_settled(tx, v: Variable) -> bool:
    """Whether it is an object that existed before and wasn't written to; that it is the same one at the next call is guarded then."""
    if not isinstance(v, ObjectVariable) or v.value is None or v.written or v.source is None:
        return False
    if type(v.source) is not ConstSource:
        tx.output.guard(v.source, "ID_MATCH", v.value)
    return True


class PureFunctionVariable(HeldVariable):
    """A function of the standard library that is computed while tracing where its arguments are known; what else it is, ``otherwise`` says."""

    def __init__(self, value, otherwise: Variable, source=None):
        super().__init__(value, source)
        self.otherwise = otherwise

    def __repr__(self):
        return repr(self.otherwise)

    def truth(self, tx):
        return True

    def key_object(self):
        return self.value

    def distinct_from(self, other):
        return other.is_constant()

    def getattr(self, tx, name):
        return self.otherwise.getattr(tx, name)

    def hasattr(self, tx, name):
        return self.otherwise.hasattr(tx, name)

    def call(self, tx, args, kwargs):
        method = pure.how(self.value) or "pure"
        if method == "asked of its object" and args and is_settled(tx, args[0].unwrap()):
            given = values_of(tx, args[1:], kwargs)
            if given is not None:
                return computed(tx, self.value, method, [args[0].unwrap().value, *given[0]], given[1])
        given = values_of(tx, args, kwargs)
        if given is not None:
            if method == "same object":
                return tx.wrap_known(self.value(*given[0], **given[1]))
            return (
                self.made_class(tx, *given) if method == "makes a class" else computed(tx, self.value, method, *given)
            )
        if module_of(self.value) == "re" and self.value.__name__ in ("sub", "subn"):
            substitute = polyfills.sub if self.value.__name__ == "sub" else polyfills.subn
            return tx.wrap_function(substitute).call(tx, args, kwargs)
        return self.otherwise.call(tx, args, kwargs)

    def made_class(self, tx, args, kwargs) -> Variable:
        """The class, made once for all calls of the captured code."""
        module = kwargs.get("module") or tx.globals.get("__name__") or "__main__"
        if "module" in inspect.signature(self.value).parameters:
            kwargs["module"] = module  # or it is looked for in the frame that calls, which is ours
        cls = tx.evaluated(self.value, *args, **kwargs)
        cls.__module__ = module
        return tx.wrap_known(cls)


def decimal_state() -> tuple:
    """What arithmetic on decimals depends on: settings, and signals as far as they were raised."""
    c = decimal_context()
    signals = tuple((s.__name__, c.traps[s], c.flags[s]) for s in c.flags)
    return c.prec, c.rounding, c.Emin, c.Emax, c.capitals, c.clamp, signals


def decimal_context():
    return sys.modules["decimal"].getcontext()


def decimals(tx, fn, given: list, named: dict):
    """Call ``fn``, which may work on decimals: what it depends on is guarded, and the signals that it raises for the first time are an effect."""
    before = decimal_state()
    with sys.modules["decimal"].localcontext():
        result = fn(*given, **named)
        after = decimal_state()
    if after != before:
        unsupported(
            "decimal", f"{fn.__qualname__} of decimals", "It raises a signal (Inexact, say) in the decimal context."
        )
    if any(
        module_of(v if isinstance(v, type) else type(v)) == "decimal" for v in (fn, result, *given, *named.values())
    ):
        world.library_state(tx, decimal_state, (), {}, before)
    return result


@FUNCTION_WRAPPERS.row("pure")
def _(tx, value, source):
    if value in HANDLERS or pure.how(value) is None:
        return None
    pin(tx, source, "ID_MATCH", value)
    decision = trace_rules.inline_reason(value)
    otherwise = UserFunctionVariable(value, source) if decision.inlined else skipped(value, decision.why, source)
    return PureFunctionVariable(value, otherwise, source)


@WRAPPERS.row("value of the standard library")
def _(tx, value, source):
    return of_value(tx, value, source) if known_value(value) else None


@CLASS_WRAPPERS.row("of values of the standard library")
def _(tx, value, source):
    return None if pure.value_class(value) is None else ValueClassVariable(value, source)
