"""Builtin functions and those of ``operator`` and ``math`` on what isn't a constant."""

from __future__ import annotations

import enum
import math
import operator
import types

from ...exc import unsupported
from ...graph import tensor_queries
from ...rules.reflect import name_of
from ...tracing import world
from ..base import hashable_key, refuse_unhashable
from ..containers.dicts import DictVariable
from ..containers.ranges import RangeVariable
from ..containers.sequences import SequenceVariable, TupleVariable
from ..containers.sets import SetVariable
from ..containers.slices import SliceVariable
from ..numpy.ndarray import NumpyNdarrayVariable
from ..objects import class_statements
from ..objects.identity import IdVariable
from ..objects.instance import ObjectVariable
from ..operators import binary, identical, unary
from ..tensors.tensor import TensorVariable
from ..values.constant import ConstantVariable, indexed, is_none
from ..values.given_text import GivenTextVariable
from ..values.symbolic import SymbolicRangeVariable, SymbolicVariable, wrap_number
from .handlers import handles


@handles(len)
def _(tx, args, kwargs):
    if isinstance(args[0].unwrap(), GivenTextVariable):
        return wrap_number(args[0].unwrap().size())
    known = args[0].is_constant() and not isinstance(args[0].as_constant(), enum.Enum)
    return None if known else wrap_number(args[0].length(tx))


@handles(bool)
def _(tx, args, kwargs):
    if not args:
        return ConstantVariable(False)
    return ConstantVariable(tx.truth(args[0]))


@handles(operator.truth)
def _(tx, args, kwargs):
    return ConstantVariable(tx.truth(args[0]))


@handles(operator.not_)
def _(tx, args, kwargs):
    return ConstantVariable(not tx.truth(args[0]))


@handles(operator.is_)
def _(tx, args, kwargs):
    return ConstantVariable(identical(tx, *args))


@handles(operator.is_not)
def _(tx, args, kwargs):
    return ConstantVariable(not identical(tx, *args))


@handles(operator.contains)
def _(tx, args, kwargs):
    found = args[0].contains(tx, args[1])
    return found if isinstance(found, SymbolicVariable) else ConstantVariable(tx.truth(found))


@handles(operator.getitem)
def _(tx, args, kwargs):
    return args[0].getitem(tx, args[1])


@handles(operator.setitem)
def _(tx, args, kwargs):
    args[0].setitem(tx, args[1], args[2])
    return ConstantVariable(None)


@handles(operator.delitem)
def _(tx, args, kwargs):
    args[0].delitem(tx, args[1])
    return ConstantVariable(None)


@handles(type)
def _(tx, args, kwargs):
    if len(args) not in (1, 3):
        tx.raise_user(TypeError("type() takes 1 or 3 arguments"))
    if len(args) == 3:
        return class_statements.of_type(tx, args)
    v = args[0]
    if isinstance(v, ObjectVariable):
        return tx.make_class(v.cls)
    return tx.wrap_known(v.python_type())


@handles(hash)
def _(tx, args, kwargs):
    v = args[0].unwrap()
    if type(v) is TensorVariable and v.cls.__hash__ is tensor_queries.Tensor.__hash__:
        return IdVariable(v)
    refuse_unhashable(v)
    if isinstance(v, TupleVariable) and v.python_type() is tuple and not v.can_constant():
        return ConstantVariable(hash(hashable_key(v)))
    if not isinstance(args[0], ObjectVariable):
        return None
    f = args[0].class_attr(tx, "__hash__")
    if f is None:
        tx.raise_user(TypeError(f"unhashable type: {name_of(args[0].cls)!r}"))
    if f is object.__hash__ and args[0].value is not None:
        found = IdVariable(args[0]).object(tx)
        return None if found is None else ConstantVariable(hash(found[1]))
    return args[0].call_special(tx, "__hash__") if type(f) is types.FunctionType else None


@handles(callable)
def _(tx, args, kwargs):
    return ConstantVariable(callable_variable(tx, args[0]))


def callable_variable(tx, v) -> bool:
    if isinstance(v, TensorVariable):
        return False
    if v.is_constant() or isinstance(v, (SequenceVariable, DictVariable, SetVariable)):
        return False
    return v.python_type() is type or world.class_attr(tx, v.python_type(), "__call__") is not world.ABSENT


@handles(range)
def _(tx, args, kwargs):
    for a in args:
        if isinstance(a, TensorVariable):
            unsupported("data-dependent", "range() of a tensor", "The value depends on tensor data.")
        indexed(tx, a)
        if isinstance(a, SymbolicVariable) and a.python_type() is float:
            tx.raise_user(TypeError("'float' object cannot be interpreted as an integer"))
    no_step = len(args) == 3 and args[2].is_constant() and args[2].as_constant() == 0
    if any(isinstance(a, SymbolicVariable) for a in args) and 1 <= len(args) <= 3 and not no_step:
        return SymbolicRangeVariable(args)
    try:
        return RangeVariable(range(0, 1, 0) if no_step else range(*[a.as_constant() for a in args]))
    except (TypeError, ValueError) as e:
        tx.raise_user(e)


@handles(slice)
def _(tx, args, kwargs):
    none = ConstantVariable(None)
    parts = [none, args[0], none] if len(args) == 1 else [*args, none][:3]
    return SliceVariable(parts)


@handles(abs)
def _(tx, args, kwargs):
    return unary(tx, operator.abs, args[0]) if not args[0].is_constant() else None


@handles(divmod)
def _(tx, args, kwargs):
    if any(isinstance(a, NumpyNdarrayVariable) for a in args):
        return TupleVariable([binary(tx, operator.floordiv, *args), binary(tx, operator.mod, *args)])
    return None


@handles(pow)
def _(tx, args, kwargs):
    return binary(tx, operator.pow, *args) if len(args) == 2 and not kwargs else None


@handles(round)
def _(tx, args, kwargs):
    if args and isinstance(args[0], TensorVariable):
        cls = args[0].python_type()
        found = world.class_attr(tx, cls, "__round__")
        if world.is_defined(found) and tensor_queries.is_of_program(cls, "__round__", found):
            return world.bind(tx, args[0], cls, "__round__", found).call(tx, args[1:], kwargs)
        if found is world.ABSENT:
            tx.raise_user(TypeError(f"type {name_of(cls)} doesn't define __round__ method"))
        digits = args[1] if len(args) > 1 else kwargs.get("ndigits")
        whole = is_none(digits)
        if whole and isinstance(args[0], NumpyNdarrayVariable):
            unsupported("data-dependent", f"round() of a {cls.__name__}", "It gives Python's int.", "Use np.rint.")
        return args[0].call_method(tx, "round", [], {} if whole else {"decimals": digits})
    return None


@handles(print)
def _(tx, args, kwargs):
    return None


@handles(math.sqrt, math.exp, math.sin, math.cos, math.log, math.tanh, math.floor, math.ceil)
def _(tx, args, kwargs):
    if any(isinstance(a, TensorVariable) for a in args):
        unsupported(
            "data-dependent",
            "a math function of a tensor",
            "math functions take numbers: the value depends on tensor data.",
            "Use the tensor's own function.",
        )
    return None
