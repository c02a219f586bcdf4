"""NumPy in captured code: a table from NumPy's functions, ufuncs and ndarray methods to functions on tensors.

The implementations are registered from outside (flambeau.numpy fills the table in); capture only looks them up. ``functions`` is keyed by
the NumPy callable, ``methods`` and ``attributes`` by name. An implementation takes tensors where NumPy takes arrays, and follows NumPy's
promotion; its result is a tensor or a tuple of tensors. In the graph the implementation is the node's target.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

functions: dict[int, tuple[Any, Callable]] = {}
methods: dict[str, Callable] = {}
attributes: dict[str, Callable] = {}
binary: dict[str, Callable] = {}


ATTRIBUTE_OF = {np.shape: "shape", np.ndim: "ndim", np.size: "size"}
"""Functions that give an attribute of their only argument."""
DESCRIPTIONS = {
    *ATTRIBUTE_OF, np.result_type, np.can_cast, np.promote_types, np.broadcast_shapes, np.issubdtype, np.isscalar, np.iscomplexobj,
    np.isrealobj, np.min_scalar_type, np.common_type, np.iterable, np.base_repr, np.binary_repr, np.isdtype, np.mintypecode, np.typename,
    np.format_float_positional, np.format_float_scientific, np.busday_count, np.is_busday, np.datetime_data, np.einsum_path,
}  # fmt: skip
"""Functions whose results follow from shapes, dtypes and constants alone."""

TEXTS = {
    np.array2string,
    np.array_repr,
    np.array_str,
    np.save,
    np.savez,
    np.savetxt,
    np.shares_memory,
    np.may_share_memory,
}
"""Functions whose results have no gradient: they read the numbers of an array that carries one."""


def register(np_callable, impl: Callable) -> None:
    functions[id(np_callable)] = (np_callable, impl)


def register_method(name: str, impl: Callable) -> None:
    methods[name] = impl


def register_attribute(name: str, impl: Callable) -> None:
    attributes[name] = impl


def register_operator(name: str, impl: Callable) -> None:
    """``name``: of the operator module, e.g. ``"truediv"``. Operators without an entry are the tensor's own."""
    binary[name] = impl


def ufunc_method(np_callable) -> Callable | None:
    """The function for a bound method of a ufunc. Filled in by flambeau.numpy."""
    return ufunc_methods.get((np_callable.__self__.__name__, np_callable.__name__))


ufunc_methods: dict[tuple[str, str], Callable] = {}
in_python: dict[Callable, Callable] = {}
"""Functions that capture traces as Python: functions of flambeau that do the same. Filled in by flambeau.numpy."""
draws: dict[tuple[type, str], Callable] = {}
"""Methods of random generators, by class and name: functions of a generator's table. Filled in by flambeau.numpy, as are the next two."""
makers: dict[int, tuple[Any, Callable]] = {}
"""Functions and classes that make generators: functions that give a table."""
of_the_global: dict[int, tuple[Any, str]] = {}
"""Functions of np.random that call a method of its own generator."""
loaders: list[Callable[[], Any]] = []


def load() -> None:
    """Fill the tables in: runs what was put into ``loaders``, once."""
    while loaders:
        loaders.pop()()


def lookup(np_callable) -> Callable | None:
    load()
    if isinstance(getattr(np_callable, "__self__", None), np.ufunc):  # np.add.reduce: a new object at each access
        return ufunc_method(np_callable)
    hit = functions.get(id(np_callable))
    if hit is None and any([fill() for fill in late]):  # each of them: the function may be any library's
        hit = functions.get(id(np_callable))
    return hit[1] if hit is not None and hit[0] is np_callable else None


late: list[Callable[[], bool]] = []
"""Asked when a function isn't known: each enters functions of libraries that the program has imported meanwhile, and says whether it found any."""
