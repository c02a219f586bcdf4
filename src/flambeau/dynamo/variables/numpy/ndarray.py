"""ndarrays, and NumPy's scalars: nodes of the graph that are tensors over the same memory.

Functions of NumPy's become the functions on tensors that ``flambeau.numpy`` has for them (``dynamo/numpy/numpy_bridge.py``)."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from flambeau import _C
from flambeau.base.dtypes import may_overflow

from ....base.quiet import errstate
from ...exc import SkipFrame, unsupported
from ...graph import tensor_queries
from ...numpy import numpy_bridge
from ...numpy.views import made_of_argument
from ...rules.reflect import name_of
from ...tracing.current_frame import current
from ..base import MethodOf, Variable
from ..containers.lists import ListVariable
from ..containers.sequences import TupleVariable
from ..iterators.container_iterators import NumpyIteratorVariable
from ..tensors.tensor import TensorVariable
from ..tensors.tensor_methods import method
from ..values.constant import ConstantVariable
from .array_subscripts import element_key, is_element, is_small_integer, is_whole, parts_of, runs_backwards
from .read_only import is_read_only, mark_read_only, views_read_only

__all__ = ["ATTRIBUTES", "METHODS_IN_PYTHON", "NumpyNdarrayVariable", "as_ndarray"]

ATTRIBUTES: dict[str, Callable] = {}
"""Attributes of ndarray that are neither tensors nor constants: (tx, array) -> variable."""
METHODS_IN_PYTHON: dict[str, Callable] = {}
"""Methods of ndarray that aren't operations: (tx, array, args, kwargs) -> variable, or None for what NumPy has to say."""


class NumpyNdarrayVariable(TensorVariable):
    """An ndarray; in the graph a tensor over the same memory."""

    def key_object(self):
        unsupported(
            "data-dependent", "a NumPy number or array as a key", "It is hashed by its value, which isn't known."
        )

    def __init__(self, node, val, source=None, scalar=True):
        self.scalar = scalar and source is None and val.ndim == 0
        node.graph.holds_arrays = True
        if node.graph.read_only and not is_read_only(node) and views_read_only(node, val):
            mark_read_only(node)
        super().__init__(node, val, source, numpy_bridge.np_dtype(val).type if self.scalar else np.ndarray)

    def reconstruct(self, cg):
        if not self.node.graph.carries:
            made = made_of_argument(current().output, self.node, self.val, self.scalar, is_read_only(self.node))
            if made is not None:
                cg.call_function(made[1], lambda: cg.load_source(made[0]), 1)
                return

        if self.scalar:
            cg.call_function(numpy_bridge.to_scalar, lambda: cg.graph_output(self.node), 1)
            return

        if is_read_only(self.node):
            current().output.flips.refuse_parts(self.val)
            cg.call_function(numpy_bridge.to_read_only, lambda: cg.graph_output(self.node), 1)
            return

        if self.node.graph.carries:
            cg.call_function(numpy_bridge.to_carried, lambda: cg.graph_output(self.node), 1)
            return

        def arguments():
            cg.graph_output(self.node)
            cg.load_const(numpy_bridge.to_ndarray)

        cg.call_function(_C.ndarray_of, arguments, 2)

    def iter(self, tx):
        return NumpyIteratorVariable(self, self.val.shape[0]) if self.val.ndim else super().iter(tx)

    def getattr(self, tx, name):
        if name == "shape":
            return tx.wrap_known(tuple(self.val.shape))
        if name in ("ndim", "size", "itemsize", "nbytes"):
            n = 1
            for s in self.val.shape:
                n *= s
            item = numpy_bridge.np_dtype(self.val).itemsize
            return tx.wrap_known({"ndim": len(self.val.shape), "size": n, "itemsize": item, "nbytes": n * item}[name])
        if name == "dtype":
            return ConstantVariable(numpy_bridge.np_dtype(self.val))
        if name in ATTRIBUTES and not self.scalar:
            return ATTRIBUTES[name](tx, self)
        numpy_bridge.load()
        impl = numpy_bridge.attributes.get(name)
        if impl is not None:
            return self.call_impl(tx, impl, [self], {}, self)
        if name in numpy_bridge.methods or name in METHODS_IN_PYTHON:
            return NumpyMethodVariable(self, name)
        if name == "resize":
            raise SkipFrame("ndarray.resize() counts who refers to the array")
        unsupported("numpy", f"ndarray.{name}", "This attribute of ndarray has no tensor counterpart registered.")

    def hasattr(self, tx, name):
        return hasattr(self.python_type(), name)

    @staticmethod
    def call_impl(tx, impl, args, kwargs, owner=None):
        r = tx.output.call_in_graph(tx, "call_function", impl, args, kwargs)
        if isinstance(r, TensorVariable) and numpy_bridge.gives_read_only(
            impl, [getattr(a, "val", None) for a in args]
        ):
            mark_read_only(r.node)
        # NumPy returns scalars for results without dimensions, except where the function makes or rearranges arrays; a scalar's methods give scalars.
        gives_array = getattr(impl, "gives_array", False)
        if callable(gives_array):
            gives_array = gives_array(*(a.val for a in args))
        if owner is None and args and getattr(impl, "keeps_scalars", False):
            owner = args[0]
        scalar = not gives_array or getattr(owner, "scalar", False)
        if not scalar and getattr(
            r, "scalar", False
        ):  # np.asarray of a number: the number keeps its value when the array is written
            r = tx.output.call_in_graph(tx, "call_method", "clone", [r], {})
        return as_ndarray(r, scalar)

    def call_method(self, tx, name, args, kwargs):
        return NumpyMethodVariable(self, name).call(tx, args, kwargs)

    def getitem(self, tx, key):
        parts = parts_of(key, self.val.shape)
        whole = any(
            p.is_constant() and p.as_constant() is ... for p in parts
        )  # x[..., 0] is an array even without dimensions
        if any(runs_backwards(p) for p in parts):
            if not self.scalar and all(is_whole(p) for p in parts):
                axes = tuple(k for k, p in enumerate(parts) if runs_backwards(p))
                return tx.wrap_known(np.flip).call(tx, [self, ConstantVariable(axes)], {})
            unsupported(
                "numpy",
                "a slice with a negative step",
                "It gives a view that runs backwards; tensors have no negative strides.",
            )
        key, first = element_key(tx, *numbers_key(tx, key, parts), self.val.ndim)
        out = super().getitem(tx, key)
        if first:
            return as_ndarray(TensorVariable.getitem(out, tx, ConstantVariable(0)))
        if not whole and isinstance(out, TensorVariable) and out.val.ndim == 0:  # NumPy's scalar: a copy, not a view
            out = tx.output.call_in_graph(tx, "call_method", "clone", [out], {})
        return as_ndarray(out, scalar=not whole)

    def cast_number(self, number) -> ConstantVariable:
        """A number as NumPy writes it into an array like this one; the graph breaks where it refuses, or warns."""
        place = np.zeros(1, numpy_bridge.np_dtype(self.val))
        try:
            with errstate(all="raise"), warnings.catch_warnings():
                warnings.simplefilter("error")
                place[0] = number
        except (ArithmeticError, TypeError, ValueError, Warning) as e:
            unsupported("numpy", f"{number!r} written into an array of {place.dtype}", f"NumPy raises or warns: {e}.")
        return ConstantVariable(place[0].item())

    def refuse_overflow(self, given: np.dtype, parts: list) -> None:
        """Break where a number of the dtype ``given`` may not fit an element. Where other arrays pick the elements NumPy casts."""
        dtype = numpy_bridge.np_dtype(self.val)
        casts = any(isinstance(p, NumpyNdarrayVariable) and not p.scalar or isinstance(p, ListVariable) for p in parts)
        if not casts and may_overflow(given, dtype):
            unsupported(
                "numpy", f"a number of {given} written into an array of {dtype}", "NumPy raises where it doesn't fit."
            )

    def as_element(self) -> NumpyNdarrayVariable:
        """What is written where it is assigned to an element."""
        return self

    def setitem(self, tx, key, value):
        if self.scalar:
            return tx.raise_user(
                TypeError(f"'numpy.{name_of(self.python_type())}' object does not support item assignment")
            )
        parts = parts_of(key, self.val.shape)
        if isinstance(value, NumpyNdarrayVariable):
            value = value.as_element()
        if isinstance(value, NumpyNdarrayVariable) and value.val.dtype.is_complex and not self.val.dtype.is_complex:
            unsupported(
                "numpy", "a complex value written into a real array", "NumPy warns that it discards the imaginary part."
            )
        if isinstance(value, ListVariable | TupleVariable):
            numbers = all(
                e.is_symbol
                or getattr(e, "scalar", False)
                or (e.is_constant() and isinstance(e.as_constant(), int | float | complex | np.generic))
                for e in map(tx.realize, value.items(tx))
            )
            if not numbers or (len(parts) >= self.val.ndim and all(map(is_element, parts))):
                unsupported(
                    "numpy", "lists in lists written into an array, or a list into an element", "NumPy says what fits."
                )
            value = tx.wrap_known(np.array).call(
                tx, [value], {"dtype": ConstantVariable(numpy_bridge.np_dtype(self.val))}
            )
        if getattr(value, "scalar", False) and isinstance(value, NumpyNdarrayVariable):
            self.refuse_overflow(numpy_bridge.np_dtype(value.val), parts)
        if value.is_constant() and isinstance(value.as_constant(), (int, float, complex, np.generic)):
            value = self.cast_number(value.as_constant())
        if (
            isinstance(value, NumpyNdarrayVariable)
            and value.val.dtype is not self.val.dtype
            and numpy_bridge.np_dtype(self.val) == np.float16
        ):
            value = value.call_method(tx, "astype", [ConstantVariable(np.dtype(np.float16))], {})
        if isinstance(value, NumpyNdarrayVariable) and value.val._storage is self.val._storage:
            value = tx.output.call_in_graph(
                tx, "call_method", "clone", [value], {}
            )  # read as a whole before it is written
        super().setitem(tx, element_key(tx, *numbers_key(tx, key, parts), self.val.ndim)[0], value)


def numbers_key(tx, key, parts):
    """(key, its parts) with arrays of uint8 as int64."""
    parts = [tx.realize(p) for p in parts]
    small = [is_small_integer(p) for p in parts]
    if not any(small):
        return key, parts
    as_int64 = [ConstantVariable(np.dtype(np.int64))]
    parts = [
        as_ndarray(p).call_method(tx, "astype", as_int64, {}) if is_small else p for p, is_small in zip(parts, small)
    ]
    return (TupleVariable(parts) if hasattr(key, "elements") else parts[0]), parts


def as_ndarray(v: Variable, scalar=True) -> Variable:
    if isinstance(v, TensorVariable) and not isinstance(v, NumpyNdarrayVariable):
        return NumpyNdarrayVariable(v.node, v.val, scalar=scalar)
    if hasattr(v, "elements"):
        v.elements = [as_ndarray(e, scalar) for e in v.elements]
    return v


class NumpyMethodVariable(MethodOf):
    def call(self, tx, args, kwargs):
        numpy_bridge.load()
        in_python = METHODS_IN_PYTHON.get(self.name)
        made = None if in_python is None else in_python(tx, self.owner, args, kwargs)
        if made is not None:
            return made
        impl = numpy_bridge.methods.get(self.name)
        if impl is None:
            unsupported(
                "numpy",
                f"ndarray.{self.name}()",
                "This method of ndarray has no tensor counterpart registered.",
                "The piece runs in NumPy.",
            )
        return NumpyNdarrayVariable.call_impl(tx, impl, [self.owner, *args], kwargs, self.owner)


@method("numpy")
def numpy_of(tx, method, args, kwargs) -> Variable | None:
    t = method.owner
    if isinstance(t, NumpyNdarrayVariable):
        return None
    if t.val.requires_grad and tensor_queries.grad_enabled():
        unsupported(
            "numpy",
            "call_method TensorVariable() numpy",
            "The tensor requires grad, so numpy() raises.",
            headline=".numpy() of a tensor that requires grad raises.",
        )
    return NumpyNdarrayVariable(t.node, t.val, scalar=False)
