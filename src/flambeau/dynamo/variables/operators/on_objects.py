"""Operators on objects of the program's classes: their methods are asked in the interpreter's order."""

from __future__ import annotations

import operator
import types

from ...exc import UserRaises, unsupported
from ...rules.reflect import dict_of, mro_of
from ...tracing import world
from ..base import Variable, contents_of
from ..numpy.byte_arrays import ByteArrayVariable
from ..numpy.ndarray import NumpyNdarrayVariable
from ..objects.builtin_subclass import DerivedVariable
from ..objects.instance import ObjectVariable, SlotMethod
from ..tensors.tensor import TensorVariable
from ..values.constant import ConstantVariable
from .same_object import identical
from .tables import COMPARISONS, INPLACE, REFLECTED

__all__ = ["declines", "object_binary"]


def declines(r: Variable) -> bool:
    """Whether a method of an operator leaves the answer to the next one."""
    return r.is_constant() and r.as_constant() is NotImplemented


def reflected_first(tx, a, b, name) -> bool:
    """Whether the right operand is asked first: its class is derived from the left one's and has a method of its own."""
    if not isinstance(b, ObjectVariable) or isinstance(a, TensorVariable):
        return False
    p, q = a.python_type(), b.python_type()
    return p is not q and issubclass(q, p) and world.class_attr(tx, p, name) is not world.class_attr(tx, q, name)


def takes_functions(tx, v: ObjectVariable) -> bool:
    """Whether the class of an object that is no tensor takes functions over. It is looked up without its metaclass's hooks before it is asked."""
    said = any("__torch_function__" in dict_of(c) for c in mro_of(v.python_type()))
    return said and tx.subclasses.interposes(tx.output, [v], {}) == "function"


def object_binary(tx, fn, a, b):
    try:
        return _object_binary(tx, fn, a, b)
    except UserRaises as e:
        if type(e.exception) is TypeError and (isinstance(a, DerivedVariable) or isinstance(b, DerivedVariable)):
            said = _as_said_of_classes(fn, a, b, str(e.exception))
            if said is not None:
                tx.raise_user(said)
        raise


def _object_binary(tx, fn, a, b):
    base = INPLACE.get(fn, fn)
    if fn is not base and isinstance(a, ObjectVariable):
        f = a.special(tx, f"__{fn.__name__}__")
        r = None if f is None else f.call(tx, [b], {})
        if r is not None and not declines(r):
            return r
    forward, reflected = REFLECTED[base]
    order = [(a, b, forward), (b, a, reflected)]
    if a.python_type() is b.python_type() and base not in COMPARISONS:
        # Its own method has declined.
        order.pop()
    elif reflected_first(tx, a, b, reflected):
        order.reverse()
    for x, y, name in order:
        if isinstance(x, ObjectVariable):
            f = x.special(tx, name)
            if type(f) is SlotMethod and f.value is object.__ne__:  # asks __eq__, and turns its answer round
                same = x.special(tx, "__eq__")
                if same is not None and type(same) is not SlotMethod:
                    r = same.call(tx, [y], {})
                    if not declines(r):
                        return tx.operators.unary(tx, operator.not_, r)
                continue
            if f is not None and (type(f) is not SlotMethod or isinstance(x, DerivedVariable)):
                r = f.call(tx, [y], {})
                if not declines(r):
                    return r
        elif isinstance(x, TensorVariable) and takes_functions(tx, y):
            return tx.output.call_in_graph(tx, "call_function", fn, [a, b], {})
    if isinstance(a, DerivedVariable) or isinstance(b, DerivedVariable):
        return tx.operators.binary(tx, base, contents_of(a), contents_of(b))
    of_numpy = any(isinstance(v, NumpyNdarrayVariable | ByteArrayVariable) for v in (a, b))
    # An array compares its elements with any object.
    if base in (operator.eq, operator.ne) and not of_numpy:
        return ConstantVariable(equal_in_c(tx, a, b) == (base is operator.eq))
    unsupported("operator", f"{fn.__name__} of {a!r} and {b!r}", "This combination of operands is not traced.")


def _as_said_of_classes(fn, a: Variable, b: Variable, text: str) -> TypeError | None:
    """The interpreter's error of an operator that the classes don't have, where ``text`` is what it says of those that they are derived from."""
    bases = [contents_of(v).python_type() for v in (a, b)]
    if not all(isinstance(v, DerivedVariable) or v.is_constant() for v in (a, b)):
        return None
    if text not in {_error_of(f, *(base() for base in bases)) for f in (fn, INPLACE.get(fn, fn))}:
        return None
    derived = [
        type(v.python_type().__name__, (base,), {})() if v.python_type() is not base else base()
        for v, base in zip((a, b), bases)
    ]
    said = _error_of(fn, *derived)
    return None if said is None else TypeError(said)


def _error_of(fn, *operands) -> str | None:
    try:
        fn(*operands)
    except TypeError as e:
        return str(e)
    return None


def equal_in_c(tx, a: Variable, b: Variable) -> bool:
    """Equality of objects whose classes have no method for it in Python: the interpreter's, identity mostly."""
    if identical(tx, a, b):
        return True
    ways = {v.class_attr(tx, "__eq__") for v in (a, b) if isinstance(v, ObjectVariable)} - {object.__eq__}
    if ways == {types.SimpleNamespace.__eq__} and all(isinstance(v, ObjectVariable) for v in (a, b)):
        if all(issubclass(v.cls, types.SimpleNamespace) for v in (a, b)):
            return tx.truth(tx.operators.binary(tx, operator.eq, *(v.own_getattr(tx, "__dict__") for v in (a, b))))
    elif any(type(f) is not types.FunctionType for f in ways):
        unsupported("operator", f"eq of {a!r} and {b!r}", "A class in C says when its objects are equal.")
    return False
