"""Arrays of text, dates and records: in the graph tensors of their bytes (:mod:`flambeau.numpy.byte_arrays`), of a dtype that is guarded.

Basic subscripts and fields are views of the bytes. What NumPy computes of such arrays is a call of the graph's, where the shape and dtype of the
result follow from those of the operands. The rest breaks the graph.
"""

from __future__ import annotations

import math

import numpy as np

# NumPy loads them when they are asked for, in Python that is no part of the program.
import numpy.char
import numpy.strings

from flambeau.base import upper_levels
from flambeau.base.dtypes import from_numpy

from ...exc import unsupported
from ...guards.source import CallSource, GetAttrSource
from ...numpy import numpy_bridge
from ...rules.reflect import name_of
from ...tracing.wrapping import pin
from ..base import MethodOf, Variable
from ..containers.lists import ListVariable
from ..containers.sequences import TupleVariable
from ..functions.handlers import handles
from ..tensors.tensor import TensorVariable
from ..values.constant import ConstantVariable
from ..values.graph_numbers import NumberVariable
from .array_subscripts import parts_of, runs_backwards
from .ndarray import NumpyNdarrayVariable, as_ndarray
from .ndarray_arguments import OTHER_ARRAYS
from .read_only import is_read_only, mark_read_only

__all__ = ["ByteArrayVariable", "binary", "called", "of_array"]

CREATORS = frozenset((np.array, np.asarray, np.zeros, np.ones, np.full))
FOLLOWS = "What it gives can't be told from the dtypes and shapes of its arguments"


def of_numpy():
    """What the package for NumPy knows of such arrays (:mod:`flambeau.numpy.byte_arrays`)."""
    return upper_levels.ask("byte_arrays")


class ByteArrayVariable(Variable):
    """``node``: the bytes, of shape (*shape, itemsize). ``scalar``: it is NumPy's scalar, and no array."""

    mutable = True

    def __init__(self, node, val, dtype: np.dtype, source=None, scalar=False):
        super().__init__(source)
        self.node, self.val, self.dtype, self.scalar = node, val, dtype, scalar
        node.graph.holds_arrays = True

    def __repr__(self):
        return f"an array of {self.dtype}"

    @property
    def bytes(self) -> TensorVariable:
        return TensorVariable(self.node, self.val)

    @property
    def shape(self) -> tuple:
        return tuple(self.val.shape)[:-1]

    def python_type(self):
        return self.dtype.type if self.scalar else np.ndarray

    def reconstruct(self, cg):
        if self.node.graph.carries:
            unsupported("numpy", f"{self!r} under a derivative", "It leaves captured code as it is.")

        def push():
            cg.graph_output(self.node)
            cg.load_const(self.dtype)
            if not self.scalar:
                cg.load_const(is_read_only(self.node))

        made = of_numpy().element_of if self.scalar else of_numpy().made_of
        cg.call_function(made, push, 2 if self.scalar else 3)

    def length(self, tx):
        if not self.shape or self.scalar:
            unsupported("numpy", f"the length of {self!r} without dimensions", "It is the value's.")
        return self.shape[0]

    def items(self, tx):
        n = self.length(tx)
        if type(n) is not int:
            unsupported("numpy", f"the elements of {self!r} of a size that isn't known", "They are as many as it says.")
        return [self.getitem(tx, ConstantVariable(k)) for k in range(n)]

    def getattr(self, tx, name):
        size, item = math.prod(self.shape), self.dtype.itemsize
        known = {"shape": self.shape, "ndim": len(self.shape), "size": size, "itemsize": item, "nbytes": size * item}
        if name in known:
            return tx.wrap_known(known[name])
        if name == "dtype":
            return ConstantVariable(self.dtype)
        if name in of_numpy().METHODS.split() and not self.scalar:
            return ByteMethodVariable(self, name)
        unsupported("numpy", f"{name} of {self!r}", "It isn't among what a graph has NumPy compute of such arrays.")

    def hasattr(self, tx, name):
        return hasattr(self.python_type(), name)

    def getitem(self, tx, key):
        key = tx.realize(key)
        name = key.as_constant() if key.is_constant() else None
        if isinstance(name, str):
            return self.field(tx, name)
        parts = parts_of(key, self.shape)
        if any(runs_backwards(p) for p in parts) or self.scalar:
            unsupported("numpy", f"this subscript of {self!r}", "Tensors have no counterpart of it.")
        if any(isinstance(p, NumpyNdarrayVariable | ListVariable) for p in parts):
            return _call(tx, "operator", "getitem", [self, key], {})
        whole = [p for p in parts if p.is_constant() and p.as_constant() is ...]
        for p, n in zip(parts, self.shape if not whole else ()):
            if p.is_constant() and type(p.as_constant()) is int and type(n) is int and not -n <= p.as_constant() < n:
                unsupported("numpy", f"an index out of bounds of {self!r}", "NumPy raises an error.")
        if len(parts) > len(self.shape) and not any(p.is_constant() and p.as_constant() in (None, ...) for p in parts):
            unsupported("numpy", f"too many indices for {self!r}", "NumPy raises an error.")
        if whole:
            key = TupleVariable([*parts, tx.wrap_known(slice(None))])
        out = self.bytes.getitem(tx, key)
        scalar = out.val.ndim == 1 and not whole
        if scalar and self.dtype.kind != "V":  # a copy, not a view
            out = tx.output.call_in_graph(tx, "call_method", "clone", [out], {})
        return self.view(out, self.dtype, scalar)

    def view(self, out: TensorVariable, dtype: np.dtype, scalar: bool) -> ByteArrayVariable:
        if is_read_only(self.node):
            mark_read_only(out.node)
        return ByteArrayVariable(out.node, out.val, dtype, scalar=scalar)

    def field(self, tx, name: str) -> Variable:
        if self.dtype.names is None or name not in self.dtype.names:
            unsupported("numpy", f"the field {name!r} of {self!r}", "NumPy raises an error.")
        dtype, start = self.dtype.fields[name][:2]
        whole, base = dtype, dtype.base
        if whole.shape and self.scalar:
            unsupported("numpy", f"an array in a record, {name!r}", "Tensors have no counterpart of it.")
        out = self.bytes.getitem(tx, tx.wrap_known((..., slice(start, start + whole.itemsize))))
        if base.kind in of_numpy().KINDS:
            if whole.shape or not of_numpy().captured(base):
                unsupported("numpy", f"the field {name!r} of {self!r}", "Tensors have no counterpart of it.")
            return self.view(out, base, self.scalar)
        strides = tuple(self.val.stride())[:-1]
        if any(s % base.itemsize for s in strides) or start % base.itemsize or not base.isnative:
            unsupported("numpy", f"the field {name!r} of packed records", "Its elements lie at any address.")
        torch_dtype = from_numpy(base)
        out = tx.output.call_in_graph(tx, "call_method", "view", [out, ConstantVariable(torch_dtype)], {})
        if not whole.shape:
            out = TensorVariable.getitem(out, tx, tx.wrap_known((..., 0)))
        elif len(whole.shape) > 1:
            out = out.call_method(tx, "view", [tx.wrap_known((*self.shape, *whole.shape))], {})
        if is_read_only(self.node):
            mark_read_only(out.node)
        if self.scalar and not whole.shape:
            out = tx.output.call_in_graph(tx, "call_method", "clone", [out], {})
        return as_ndarray(out, scalar=self.scalar)

    def setitem(self, tx, key, value):
        key, value = tx.realize(key), tx.realize(value)
        name = key.as_constant() if key.is_constant() else None
        if not isinstance(name, str):
            unsupported("numpy", f"an element of {self!r} that is written", "Tensors have no counterpart of it.")
        part = self.field(tx, name)
        if not isinstance(part, NumpyNdarrayVariable) or self.scalar:
            unsupported("numpy", f"a field of {self!r} that is written", "Tensors have no counterpart of it.")
        part.setitem(tx, ConstantVariable(...), value)

    def truth(self, tx):
        unsupported("data-dependent", f"the truth of {self!r}", "It depends on the values of the arguments.")

    def key_object(self):
        unsupported("data-dependent", f"{self!r} as a key", "It is hashed by its value, which isn't known.")


class ByteMethodVariable(MethodOf):
    """A method of such an array that gives a new one."""

    def call(self, tx, args, kwargs):
        return _call(tx, "ndarray", self.name, [self.owner, *args], kwargs)


def of_array(tx, value: np.ndarray, source) -> Variable | None:
    """The variable of an argument; None for arrays that are tensors, or that aren't carried."""
    if type(value) is not np.ndarray or not of_numpy().captured(value.dtype):
        return None
    if any(s < 0 for s in value.strides):
        unsupported(
            "numpy", f"an ndarray of dtype {value.dtype} that runs backwards", "Tensors have no negative strides."
        )
    pin(tx, source, "TYPE_MATCH", np.ndarray)
    tx.output.guard(GetAttrSource(source, "dtype"), "EQUALS_MATCH", value.dtype)
    held = CallSource(source, of_numpy().bytes_of, "bytes")
    found = tx.output.add_input(of_numpy().bytes_of(value), held, ndarray=True)
    return ByteArrayVariable(found.node, found.val, value.dtype, source)


def _names_bytes(v: Variable) -> bool:
    """Whether a dtype is one of arrays that are carried as bytes."""
    if not v.can_constant():
        return False
    try:
        return of_numpy().captured(np.dtype(v.as_constant()))
    except (TypeError, ValueError):
        return False


def _tells_bytes(tx, v: Variable) -> bool:
    """Whether an argument makes a new array one that is carried as bytes."""
    v = tx.realize(v)
    if isinstance(v, ListVariable | TupleVariable):
        return any(_tells_bytes(tx, e) for e in v.items(tx))
    x = v.as_constant() if v.can_constant() else None
    if isinstance(x, str):
        return True
    if isinstance(x, np.dtype):
        return of_numpy().captured(x)
    return isinstance(x, (bytes, np.datetime64, np.timedelta64)) or x in (str, bytes)


def _holds_bytes(tx, v: Variable) -> bool:
    v = tx.realize(v)
    return isinstance(v, ByteArrayVariable) or (
        isinstance(v, ListVariable | TupleVariable) and any(_holds_bytes(tx, e) for e in v.items(tx))
    )


def called(tx, f, args: list[Variable], kwargs: dict[str, Variable]) -> Variable | None:
    """A call of a function of NumPy's with such arrays, or that makes one; None for others."""
    given = [*args, *kwargs.values()]
    if not any(_holds_bytes(tx, v) for v in given):
        named = kwargs.get("dtype")
        makes = f in CREATORS and (
            _makes_text(tx, args[:1] if f in (np.array, np.asarray) else args[1:2])
            or (named is not None and _names_bytes(tx.realize(named)))
        )
        if not makes:
            return None
    where = of_numpy().name_of_function(f)
    if where is None:
        unsupported(
            "numpy", f"np.{f.__name__} of an array of text, dates or records", "It isn't among what a graph calls."
        )
    return _call(tx, *where, args, kwargs)


def _makes_text(tx, first: list[Variable]) -> bool:
    v = tx.realize(first[0]) if first else None
    return v is not None and not isinstance(v, TensorVariable) and _tells_bytes(tx, v)


def binary(tx, fn, a: Variable, b: Variable) -> Variable:
    name = fn.__name__
    if name not in of_numpy().OPERATORS.split():
        unsupported("numpy", f"{name} of {a!r} and {b!r}", "It isn't among what a graph has NumPy compute.")
    return _call(tx, "operator", name, [a, b], {})


def _literal(tx, v: Variable, arrays: list, dtypes: list, scalars: list):
    """An argument as numpy/literals.py has it."""
    Kind, Literal = of_numpy().Kind, of_numpy().Literal
    v = tx.realize(v)
    if isinstance(v, ByteArrayVariable):
        if v.scalar:
            scalars.append(len(arrays))
        arrays.append(v.bytes)
        dtypes.append(of_numpy().dtype_literal(v.dtype))
        return Literal(Kind.ARRAY, len(arrays) - 1)
    if isinstance(v, NumpyNdarrayVariable) and not isinstance(v, NumberVariable):
        arrays.append(TensorVariable(v.node, v.val))
        dtypes.append(None)
        return Literal(Kind.ARRAY, len(arrays) - 1)
    if isinstance(v, ListVariable | TupleVariable):
        return Literal(
            Kind.LIST if v.python_type() is list else Kind.TUPLE,
            [_literal(tx, e, arrays, dtypes, scalars) for e in v.items(tx)],
        )
    if not v.can_constant():
        unsupported("numpy", f"{v!r} beside an array of text, dates or records", "It is no argument of a graph's call.")
    x = v.as_constant()
    if x is str or x is bytes:
        return Literal(Kind.VALUE, x.__name__)
    if isinstance(x, np.dtype) and x.names is not None:
        return Literal(Kind.FIELDS, of_numpy().dtype_literal(x))
    if isinstance(x, (np.datetime64, np.timedelta64)):
        return Literal(Kind.DATE, (x.dtype.str, int(x.view("i8"))))
    try:
        return of_numpy().literal(x, [])
    except TypeError as e:
        unsupported("numpy", f"{name_of(type(x))} beside an array of text, dates or records", f"{e}.")


def _call(tx, module: str, name: str, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
    arrays: list = []
    dtypes: list = []
    scalars: list = []
    given = [_literal(tx, a, arrays, dtypes, scalars) for a in args]
    options = {k: _literal(tx, v, arrays, dtypes, scalars) for k, v in kwargs.items()}
    if "out" in options or "where" in options:
        unsupported("numpy", f"{name} with out= or where=", "It writes into an array of text, dates or records.")
    text = repr((module, name, given, options, scalars, dtypes))
    try:
        result = of_numpy().sample(text, of_numpy().described([a.val for a in arrays]))
    except TypeError as e:
        unsupported("numpy", f"{module}.{name} of an array of text, dates or records", f"{FOLLOWS}: {e}.")
    numpy_bridge.load()
    tx.output.guard_numpy_errors()
    made = tx.output.call_in_graph(
        tx, "call_function", of_numpy().call_bytes, [ListVariable(arrays), ConstantVariable(text)], {}
    )
    return _wrapped(result, iter(made.items(tx)))


def _wrapped(result, made) -> Variable:
    if isinstance(result, tuple | list):
        if hasattr(result, "_fields"):
            unsupported("numpy", f"a {type(result).__name__} of arrays of text", "It isn't built in captured code.")
        items = [_wrapped(r, made) for r in result]
        return TupleVariable(items) if isinstance(result, tuple) else ListVariable(items)
    t = next(made)
    scalar = not isinstance(result, np.ndarray)
    if result.dtype.kind in of_numpy().KINDS:
        return ByteArrayVariable(t.node, t.val, result.dtype, scalar=scalar)
    return as_ndarray(t, scalar=scalar)


OTHER_ARRAYS.append(of_array)


def _of_class(cls):
    @handles(cls)
    def made(tx, args, kwargs):
        """A time, or a span, that is told by constants and isn't the clock's."""
        if kwargs or not args or not all(a.is_constant() for a in args):
            return None
        given = [a.as_constant() for a in args]
        if isinstance(given[0], str) and given[0].strip().lower() in ("now", "today"):
            return None
        try:
            made = cls(*given)
        except (TypeError, ValueError) as e:
            tx.raise_user(e)
        return None if np.isnat(made) else ConstantVariable(made)


for _cls in (np.datetime64, np.timedelta64):
    _of_class(_cls)
