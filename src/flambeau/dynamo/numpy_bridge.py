"""NumPy in captured code: a table from NumPy's functions, ufuncs and ndarray methods to functions on tensors.

The implementations are registered from outside (flambeau.numpy fills the table in); capture only looks them up. ``functions`` is keyed by
the NumPy callable, ``methods`` and ``attributes`` by name. An implementation takes tensors where NumPy takes arrays, and follows NumPy's
promotion; its result is a tensor or a tuple of tensors. In the graph the implementation is the node's target.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau import _C

from .exc import AccuracyError

__all__ = [
    "Carried",
    "asks",
    "asks_not",
    "attributes",
    "carried",
    "from_ndarray",
    "functions",
    "gives_read_only",
    "lookup",
    "methods",
    "np_dtype",
    "register",
    "register_attribute",
    "register_method",
    "tensor_of",
    "to_carried",
    "to_ndarray",
    "to_read_only",
]

functions: dict[int, tuple[Any, Callable]] = {}
methods: dict[str, Callable] = {}
attributes: dict[str, Callable] = {}
binary: dict[str, Callable] = {}


ATTRIBUTE_OF = {np.shape: "shape", np.ndim: "ndim", np.size: "size"}
"""Functions that give an attribute of their only argument."""
DESCRIPTIONS = {
    *ATTRIBUTE_OF, np.result_type, np.can_cast, np.promote_types, np.broadcast_shapes, np.issubdtype, np.isscalar, np.iscomplexobj,
    np.isrealobj, np.min_scalar_type, np.common_type, np.iterable,
}  # fmt: skip
"""Functions whose results follow from shapes, dtypes and constants alone."""


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
    if hit is None and any(fill() for fill in late):
        hit = functions.get(id(np_callable))
    return hit[1] if hit is not None and hit[0] is np_callable else None


late: list[Callable[[], bool]] = []
"""Asked when a function isn't known: each enters functions of libraries that the program has imported meanwhile, and says whether it found any."""


def from_ndarray(a: np.ndarray):
    """The graph's input: a tensor over the array's memory."""
    return _C.from_array(a)


def to_ndarray(t) -> np.ndarray:
    """The graph's output, as the array that the user's code holds. One that carries a gradient is of a class of its own (see carried.py)."""
    return carried(t, False) if t.requires_grad else t.numpy()


def to_read_only(t) -> np.ndarray:
    """The same for an array into which NumPy lets nobody write."""
    a = to_ndarray(t)
    if a.flags.writeable:
        a = a.view()
        a.flags.writeable = False
    return a


def gives_read_only(impl: Callable, operands: list) -> bool:
    """Whether the result of a function on tensors is an array into which NumPy lets nobody write."""
    asked = getattr(impl, "read_only", None)
    return asked is not None and asked(*operands)


def to_carried(t) -> np.ndarray:
    """The same where an input of the graph carries a gradient: code that isn't captured may write it into this array."""
    return carried(t, False, True)


def to_scalar(t) -> np.generic:
    """A result without dimensions: NumPy's functions return scalars, not 0-d arrays. One that carries a gradient stays an array."""
    if t.requires_grad:
        return carried(t, True)
    plain = t._array is not None and not t._keys  # as nearly always: numpy() takes as long as a small kernel
    return (t._array if plain else t.numpy())[()]


def array_of_tensor(t) -> np.ndarray:
    """For wrap_numpy; while tracing the array is the tensor's node itself."""
    return t.numpy()


def tensor_of_array(a):
    """For wrap_numpy: the way back."""
    return tensor_of(a) if isinstance(a, np.ndarray) else _C.from_array(np.asarray(a))


def is_ours(error: Exception) -> bool:
    """Whether an error comes from the graph, and not from a signal handler, another piece of the program that ran meanwhile, or a tool that
    compares the graph with the plain frame."""
    if isinstance(error, AccuracyError):
        return False
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return last is None or last.tb_frame.f_globals.get("__name__", "flambeau").split(".")[0] in (
        "flambeau",
        "numpy",
        "scipy",
    )


def is_of_data(error: Exception) -> bool:
    """Whether it is the values that the graph was given: memory that ran out says so itself."""
    return not isinstance(error, MemoryError) and is_ours(error)


def np_dtype(fake) -> np.dtype:
    return np.dtype(fake.dtype.np)


from .carried import Carried, asks, asks_not, carried, tensor_of  # noqa: E402
