"""``a is b``: known of what is made while tracing, guarded where the objects existed before."""

from __future__ import annotations

import enum

import numpy as np

from ...exc import unsupported
from ...guards.source import ConstSource
from ...numpy import numpy_bridge
from ..base import Variable
from ..containers.sequences import TupleVariable
from ..numpy.ndarray import NumpyNdarrayVariable
from ..objects.builtin_subclass import DerivedVariable
from ..objects.namespaces import InstanceDict, NamespaceDict
from ..tensors.tensor import TensorVariable
from ..tensors.tensor_subclass import SubclassVariable
from ..values.graph_numbers import NumberVariable
from ..values.symbolic import SymbolicVariable, specialized

__all__ = ["identical"]

WHICH_TRUTH = "Which truth value a graph computes is not known while tracing."
SINGLETONS = (bool, type(None), type(Ellipsis), type(NotImplemented), enum.Enum)


def identical(tx, a: Variable, b: Variable) -> bool:
    """``a is b``. When that is a matter of which objects the arguments are, it is guarded."""
    a, b = a.unwrap(), b.unwrap()
    if a is b:
        return True
    if isinstance(a, SymbolicVariable) or isinstance(b, SymbolicVariable):
        other = b if isinstance(a, SymbolicVariable) else a
        if other.is_constant() and not isinstance(other.as_constant(), (int, float)):
            return False
        return identical(tx, specialized(tx, a), specialized(tx, b))
    if isinstance(a, SubclassVariable) or isinstance(b, SubclassVariable):
        if a.source is not None and b.source is not None:
            tx.output.guards.not_aliased([a.source, b.source])
        return False
    if isinstance(a, TensorVariable) and isinstance(b, TensorVariable):
        same = a.node is b.node and type(a) is type(b)
        if not same:
            settle_numbers(a, b)
        if not same and a.source is not None and b.source is not None:
            tx.output.guards.not_aliased([a.source, b.source])  # the graph may need neither
        return same
    if isinstance(a, TensorVariable) or isinstance(b, TensorVariable):
        number, other = (a, b) if isinstance(a, TensorVariable) else (b, a)
        settle_number(number, other)
        return False
    if a.is_constant() and b.is_constant():
        x, y = a.as_constant(), b.as_constant()
        if type(x) is not type(y) or isinstance(x, SINGLETONS):
            return x is y
        return same_objects(tx, a, b, x, y)
    if a.is_constant() or b.is_constant():  # a class may be one or the other
        x, y = (v.as_constant() if v.is_constant() else known_object(v) for v in (a, b))
        return x is not None and x is y
    if isinstance(a, InstanceDict) and isinstance(b, InstanceDict):
        return a.owner is b.owner
    x, y = known_object(a), known_object(b)
    if x is not None and y is not None:
        return same_objects(tx, a, b, x, y)
    if a.mutable or b.mutable:
        return False  # at least one of them is made while tracing
    if x is not None or y is not None:
        return False
    if any(isinstance(v, TupleVariable) and v.source is None and not may_be_in_code(v) for v in (a, b)):
        return False  # it is made while tracing
    unsupported("identity", f"{a!r} is {b!r}", "Whether they are one object is not known while tracing.")


def settle_number(number: Variable, other: Variable) -> None:
    """Break the graph where a number that the graph computes may be the very object that ``other`` is: there is one of each truth value, and of small
    integers."""
    x = other.as_constant() if other.is_constant() else known_object(other)
    if isinstance(number, NumberVariable):
        if number.flag is not None or type(x) is number.number_type:
            number.as_proxy()
    elif isinstance(x, np.bool_) and is_truth(number):
        unsupported("identity", f"{number!r} is {other!r}", WHICH_TRUTH)


def settle_numbers(a: TensorVariable, b: TensorVariable) -> None:
    """The same for two of them."""
    if isinstance(a, NumberVariable) and isinstance(b, NumberVariable):
        if a.flag is not None or b.flag is not None or a.number_type is b.number_type:
            a.as_proxy()
    elif all(is_truth(v) for v in (a, b)):
        unsupported("identity", f"{a!r} is {b!r}", WHICH_TRUTH)


def is_truth(v: Variable) -> bool:
    """Whether it is one of NumPy's truth values, computed by the graph."""
    plain = type(v) is NumpyNdarrayVariable and v.scalar
    return plain and numpy_bridge.np_dtype(v.val).kind == "b"


def may_be_in_code(v: Variable) -> bool:
    """Whether a tuple may be a constant of the code, which is one object however often it is loaded."""
    return v.is_constant() or (isinstance(v, TupleVariable) and all(may_be_in_code(e.unwrap()) for e in v.elements))


def known_object(v: Variable):
    if type(v) is NamespaceDict:
        return v.table
    # Its base is a class.
    if isinstance(v, DerivedVariable):
        return v.value
    for name in ("value", "base", "open_value"):
        found = getattr(v, name, None)
        if found is not None:
            return found
    return None


def same_objects(tx, a, b, x, y) -> bool:
    p = a.source or ConstSource(x, "const")
    q = b.source or ConstSource(y, "const")
    if a.source is None and b.source is None and a.is_constant():
        if x != y and x == x:
            return False
        unsupported(
            "identity", f"{a!r} is {b!r}", "Whether equal constants are one object is the interpreter's choice."
        )
    if type(p) is ConstSource and type(q) is ConstSource:
        return x is y
    if x is y:
        tx.output.guards.same_as(p, q)
    else:
        tx.output.guards.not_aliased([p, q])
    return x is y
