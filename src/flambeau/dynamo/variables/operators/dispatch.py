"""Which rules answer an operator: by the kinds of its operands, in a fixed order."""

from __future__ import annotations

import operator

from ...exc import unsupported
from ...numpy import numpy_bridge
from ...rules.reflect import is_a
from ...tracing import world
from ..base import Variable
from ..containers.dicts import DictVariable
from ..containers.lists import ListVariable
from ..containers.sequences import SequenceVariable, TupleVariable
from ..containers.sets import SetVariable
from ..numpy.byte_arrays import ByteArrayVariable
from ..numpy.byte_arrays import binary as binary_of_bytes
from ..numpy.integer_scalars import tell_of_overflow
from ..numpy.ndarray import NumpyNdarrayVariable, as_ndarray
from ..objects.class_object import ClassVariable
from ..objects.identity import IdVariable, compared
from ..objects.instance import ObjectVariable
from ..tensors.tensor import TensorVariable
from ..tensors.tensor_subclass import SubclassVariable
from ..values.constant import ConstantVariable
from ..values.symbolic import SymbolicVariable, arithmetic, settled, specialized
from .equality import equal, settle_nans
from .folding import fold
from .on_containers import container_binary, sequence_binary
from .on_objects import object_binary
from .on_sets import SET_OPERATIONS, is_set_view, operation_on_view
from .on_tensors import tensor_binary
from .ordering import METHODS, ordered
from .tables import COMPARISONS, INPLACE, NUMPY_UNARY, UNARY

__all__ = ["binary", "unary"]


def unary(tx, fn, v: Variable) -> Variable:
    if isinstance(v, NumpyNdarrayVariable):
        impl = numpy_bridge.lookup(NUMPY_UNARY[fn])
        if impl is None:
            unsupported("numpy", f"{fn.__name__} of an ndarray", "It has no tensor counterpart registered.")
        made = as_ndarray(tx.output.call_in_graph(tx, "call_function", impl, [v], {}))
        return tell_of_overflow(tx, fn.__name__, [v], made)
    if isinstance(v, SubclassVariable) and UNARY.get(fn) and (own := v.special(tx, UNARY[fn])) is not None:
        return own.call(tx, [], {})
    if isinstance(v, TensorVariable):
        return tx.output.call_in_graph(tx, "call_function", fn, [v], {})
    if isinstance(v, SymbolicVariable):
        if fn is operator.not_:
            return ConstantVariable(not v.truth(tx))
        found = arithmetic(tx, fn, [v])
        return found if found is not None else fold(tx, fn, [specialized(tx, v)])
    if v.can_constant():
        return fold(tx, fn, [v])
    if isinstance(v, ObjectVariable) and UNARY.get(fn):
        return v.call_special(tx, UNARY[fn])
    unsupported("operator", f"{fn.__name__} of {v!r}")


def binary(tx, fn, a: Variable, b: Variable) -> Variable:
    a, b = tx.realize(a), tx.realize(b)
    if isinstance(a, IdVariable) or isinstance(b, IdVariable):
        return compared(tx, fn, a, b)
    if isinstance(a, SymbolicVariable) or isinstance(b, SymbolicVariable):
        found = symbolic_binary(tx, fn, a, b)
        if found is not None:
            return found
        a, b = (x if isinstance(x, TensorVariable) else specialized(tx, x) for x in (a, b))
    if isinstance(a, ByteArrayVariable) or isinstance(b, ByteArrayVariable):
        return binary_of_bytes(tx, fn, a, b)
    if isinstance(a, TensorVariable) or isinstance(b, TensorVariable):
        return tensor_binary(tx, fn, a, b)
    if isinstance(a, ObjectVariable) or isinstance(b, ObjectVariable):
        return object_binary(tx, fn, a, b)
    made = container_binary(tx, fn, a, b)
    if made is not None:
        return made
    written, fn = fn, INPLACE.get(fn, fn)
    for x in (a, b):
        if isinstance(x, SequenceVariable):
            x.realized(tx)
    if fn is operator.add and all(isinstance(x, TupleVariable) and x.python_type() is tuple for x in (a, b)):
        if not (a.elements and b.elements):
            return a if a.elements else b  # nothing is added: it is the tuple itself
    if (
        a.can_constant()
        and b.can_constant()
        and not (isinstance(a, (ListVariable, DictVariable, SetVariable)) and fn not in COMPARISONS)
    ):
        if fn is operator.or_ and any(isinstance(v, ClassVariable) and not plain_union(tx, v) for v in (a, b)):
            unsupported("operator", "a union of types", "Their metaclass says what that is.")
        if fn in COMPARISONS and not is_a(a.as_constant(), (int, float, complex, str)):
            settle_nans(tx, a, b)
        # An error names the operator as it is written; what has a method of its own to change itself is a copy here, and isn't changed.
        same = (
            a.is_constant()
            or isinstance(a, SequenceVariable)
            or not hasattr(a.python_type(), f"__{written.__name__}__")
        )
        return fold(tx, written if same else fn, [a, b])
    made = sequence_binary(tx, fn, a, b)
    if made is not None:
        return made
    if fn in (operator.eq, operator.ne):
        r = equal(tx, a, b)
        return ConstantVariable(r == (fn is operator.eq))
    if fn in METHODS:
        made = ordered(tx, fn, a, b)
        if made is not None:
            return made
    if is_set_view(a) and fn in SET_OPERATIONS:
        return operation_on_view(tx, fn, a, b)
    if fn is operator.mod and a.is_constant() and isinstance(a.as_constant(), str):
        known = settled(tx, b)
        if known.can_constant():
            return fold(tx, written, [a, known])
        unsupported("format", f"formatting {b!r}", "The text is not known while tracing.")
    unsupported("operator", f"{fn.__name__} of {a!r} and {b!r}", "This combination of operands is not traced.")


def symbolic_binary(tx, fn, a, b) -> Variable | None:
    """An operation on a symbolic number; None when it needs the number's value."""
    if isinstance(a, ByteArrayVariable) or isinstance(b, ByteArrayVariable):
        return binary_of_bytes(tx, fn, a, b)
    if isinstance(a, TensorVariable) or isinstance(b, TensorVariable):
        return tensor_binary(tx, fn, a, b)
    if isinstance(a, ObjectVariable) or isinstance(b, ObjectVariable):
        return object_binary(tx, fn, a, b)
    base = INPLACE.get(fn, fn)
    if base in (operator.eq, operator.ne) and any(
        x.is_constant() and type(x.as_constant()) in (str, bytes, type(None), tuple) for x in (a, b)
    ):
        return ConstantVariable(base is operator.ne)
    return arithmetic(tx, base, [a, b])


def plain_union(tx, v: ClassVariable) -> bool:
    return all(world.class_attr(tx, type(v.value), n) is vars(type)[n] for n in ("__or__", "__ror__"))
