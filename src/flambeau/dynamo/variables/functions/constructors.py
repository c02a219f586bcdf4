"""Objects that builtin classes make: ``object()``, partials, getters, bound methods, and ``__new__`` of builtin classes for derived ones."""

from __future__ import annotations

import functools
import operator
import types

from ...exc import unsupported
from ...rules import trace_rules
from ...rules.reflect import qualname_of
from ..base import Variable, never_called
from ..objects.builtin_subclass import NEW, builtin_base, new_derived
from ..objects.instance import ObjectVariable, refuse_excess
from .getters import GetterVariable
from .handlers import HANDLERS, handles
from .partials import PartialVariable
from .python_functions import UserMethodVariable


@handles(functools.partial)
def _(tx, args, kwargs):
    if not args:
        tx.raise_user(TypeError("type 'partial' takes at least one argument"))
    fn, *given = args
    if never_called(fn):
        tx.raise_user(TypeError("the first argument must be callable"))
    if isinstance(inner := tx.realize(fn).unwrap(), PartialVariable) and inner.is_merged(tx):
        fn, given, kwargs = inner.fn, [*inner.args, *given], {**inner.keywords(tx), **kwargs}
    return PartialVariable(fn, given, kwargs)


def made_getter(tx, cls: type, args, kwargs) -> Variable:
    """One whose names are looked at when it is made."""
    try:
        cls(*(a.as_constant() if a.is_constant() else a for a in args), **dict.fromkeys(kwargs))
    except TypeError as e:
        tx.raise_user(e)
    return GetterVariable(cls, args, kwargs)


@handles(operator.attrgetter)
def _(tx, args, kwargs):
    return made_getter(tx, operator.attrgetter, args, {})


@handles(operator.itemgetter)
def _(tx, args, kwargs):
    return GetterVariable(operator.itemgetter, args, {})


@handles(operator.methodcaller)
def _(tx, args, kwargs):
    return made_getter(tx, operator.methodcaller, args, kwargs)


@handles(object)
def _(tx, args, kwargs):
    return ObjectVariable(None, object)


@handles(object.__new__)
def _(tx, args, kwargs):
    cls = args[0].as_constant()
    if trace_rules.is_nn_module_class(cls) or builtin_base(cls) is not None or issubclass(cls, BaseException):
        unsupported("construct", f"object.__new__({qualname_of(cls)})", "Its base is not plain Python.")
    if args[1:] or kwargs:
        refuse_excess(tx, cls, "__new__")
    return ObjectVariable(None, cls)


def _new(base):
    def handler(tx, args, kwargs):
        cls = args[0].as_constant()
        if cls is base:
            return tx.wrap_known(base).call(tx, args[1:], kwargs)
        if builtin_base(cls) is not base:
            unsupported("construct", f"{base.__name__}.__new__({qualname_of(cls)})")
        return new_derived(tx, base, cls, args[1:], kwargs)

    return handler


for _f, _base in NEW.items():
    HANDLERS[_f] = _new(_base)


@handles(types.MethodType)
def _(tx, args, kwargs):
    return UserMethodVariable(*args) if len(args) == 2 else None
