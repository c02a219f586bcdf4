"""Operators on tensors and ndarrays: nodes of the graph, unless a tensor subclass or a number's own rules answer first."""

from __future__ import annotations

import operator

import numpy as np

from ...exc import unsupported
from ...graph.inputs import integer_of_numpys
from ...numpy import numpy_bridge
from ..base import Variable, contents_of
from ..numpy.integer_scalars import tell_of_overflow
from ..numpy.ndarray import NumpyNdarrayVariable, as_ndarray
from ..objects.builtin_subclass import DerivedVariable
from ..objects.instance import ObjectVariable
from ..tensors.tensor import TensorVariable
from ..tensors.tensor_subclass import SubclassVariable
from ..values.complex_numbers import as_numpys, of_complex
from ..values.constant import ConstantVariable
from .on_objects import declines, object_binary
from .tables import COMPARISONS, INPLACE, REFLECTED, SWAPPED

__all__ = ["tensor_binary"]


def special_binary(tx, fn, a, b) -> Variable | None:
    """An operator that a tensor subclass defines itself; None when it is the library's."""
    base = INPLACE.get(fn, fn)
    forward, reflected = REFLECTED[base]
    order = [(a, b, forward), (b, a, reflected)]
    if fn is not base:
        order.insert(0, (a, b, f"__{fn.__name__}__"))
    p, q, declined = a.python_type(), b.python_type(), False
    if p is q and base not in COMPARISONS:
        order.pop()
    elif p is not q and issubclass(q, p):
        order.insert(0, order.pop())
    for x, y, name in order:
        own = x.special(tx, name) if isinstance(x, SubclassVariable) else None
        if own is not None:
            r = own.call(tx, [y], {})
            if not declines(r):
                return r
            declined = True
        elif isinstance(x, TensorVariable):
            return None
    if declined:
        unsupported("operator", f"{fn.__name__} of {a!r} and {b!r}", "Their methods leave it to each other.")
    return None


def tensor_binary(tx, fn, a, b):
    if isinstance(a, SubclassVariable) or isinstance(b, SubclassVariable):
        own = special_binary(tx, fn, a, b)
        if own is not None:
            return own
        if fn in SWAPPED and a.python_type() is not b.python_type() and issubclass(b.python_type(), a.python_type()):
            a, b, fn = b, a, SWAPPED[fn]  # a derived class is asked first
    numpy = isinstance(a, NumpyNdarrayVariable) or isinstance(b, NumpyNdarrayVariable)
    if fn in (operator.mod, operator.imod) and issubclass(a.python_type(), (str, bytes, bytearray)):
        unsupported("format", f"formatting {b!r}", "The text depends on tensor data.")
    if isinstance(b, DerivedVariable) or (isinstance(a, DerivedVariable) and a.can_constant()):
        a, b = contents_of(a), contents_of(b)  # the tensor's own operation takes it for what it is derived from
    for x, y in ((a, b), (b, a)):
        if isinstance(x, ObjectVariable):
            return object_binary(tx, fn, a, b)
        if (
            isinstance(y, TensorVariable)
            and fn in (operator.eq, operator.ne)
            and x.is_constant()
            and x.as_constant() is None
        ):
            if isinstance(y, NumpyNdarrayVariable) and not y.scalar:
                unsupported("numpy", f"{fn.__name__} of an array and None", "NumPy compares each element with it.")
            return ConstantVariable(fn is operator.ne)
    if numpy:
        return array_binary(tx, fn, a, b)
    return tx.output.call_in_graph(tx, "call_function", fn, [a, b], {})


def array_binary(tx, fn, a, b):
    """Where one of them is an ndarray or a scalar of NumPy's."""
    made = of_complex(tx, fn, a, b)
    if made is not None:
        return made
    a, b = as_numpys([a, b])
    arrays = isinstance(a, NumpyNdarrayVariable), isinstance(b, NumpyNdarrayVariable)
    if isinstance(a, TensorVariable) and isinstance(b, TensorVariable) and arrays[0] is not arrays[1]:
        if is_number_for(b, a):
            return tx.output.call_in_graph(tx, "call_function", fn, [a, TensorVariable(b.node, b.val)], {})
        numbers = [integer_of_numpys(tx.output, x) if of_numpy else x for x, of_numpy in zip((a, b), arrays)]
        if None not in numbers:
            return tx.output.call_in_graph(tx, "call_function", fn, numbers, {})
        unsupported(
            "numpy",
            f"{fn.__name__} of a tensor and an ndarray",
            "The two libraries decide the result's type between them.",
        )
    if (
        fn in (operator.pow, operator.ipow)
        and isinstance(a, TensorVariable)
        and numpy_bridge.np_dtype(a.val) == np.bool_
    ):
        unsupported("numpy", "a power of booleans", "NumPy gives int8 for it.")
    if fn in (operator.mul, operator.imul) and (is_repetition(a, b) or is_repetition(b, a)):
        unsupported("data-dependent", "a sequence repeated by a NumPy number", "How long it gets depends on data.")
    numpy_bridge.load()
    base = INPLACE.get(fn)
    if base is not None and (a.python_type() is not np.ndarray):
        fn = base  # NumPy's scalars are not changed, nor is what is no array
    impl = numpy_bridge.binary.get(fn.__name__, fn)
    made = as_ndarray(tx.output.call_in_graph(tx, "call_function", impl, [a, b], {}))
    return tell_of_overflow(tx, fn.__name__, [a, b], made)


def is_repetition(sequence: Variable, number: Variable) -> bool:
    """Whether a product of these repeats a sequence of Python's: NumPy's numbers leave that to it, its arrays don't."""
    repeatable = (list, tuple, str, bytes, bytearray)
    return getattr(number, "scalar", False) and issubclass(sequence.python_type(), repeatable)


def is_number_for(b: Variable, a: Variable) -> bool:
    """Whether NumPy's scalar ``b`` on the right of the tensor ``a`` counts as a tensor without dimensions does, as it is a number of a's kind."""
    if not isinstance(b, NumpyNdarrayVariable) or not b.scalar or isinstance(a, NumpyNdarrayVariable) or not a.val.ndim:
        return False
    kind = numpy_bridge.np_dtype(b.val).kind
    return (
        kind == "f" if a.val.is_floating_point() else kind == "i" and not a.val.is_complex() and a.val.dtype.is_signed
    )
