"""Arrays at the edge of captured code: how they enter a graph as tensors and leave it as arrays. The table of NumPy's functions is
:mod:`.function_table`; its names are found here as well."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from flambeau import _C

from ...base.device import current_device
from ..exc import AccuracyError
from .carried import Carried as Carried
from .carried import asks as asks
from .carried import asks_not as asks_not
from .carried import carried, on_host, tensor_of
from .function_table import ATTRIBUTE_OF as ATTRIBUTE_OF
from .function_table import DESCRIPTIONS as DESCRIPTIONS
from .function_table import attributes as attributes
from .function_table import binary as binary
from .function_table import draws as draws
from .function_table import functions as functions
from .function_table import in_python as in_python
from .function_table import late as late
from .function_table import load as load
from .function_table import loaders as loaders
from .function_table import lookup as lookup
from .function_table import makers as makers
from .function_table import methods as methods
from .function_table import of_the_global as of_the_global
from .function_table import register as register
from .function_table import register_attribute as register_attribute
from .function_table import register_method as register_method
from .function_table import register_operator as register_operator
from .function_table import ufunc_method as ufunc_method
from .function_table import ufunc_methods as ufunc_methods


def from_ndarray(a: np.ndarray):
    """The graph's input: a tensor over the array's memory."""
    return _C.from_array(a)


def from_number(x: np.generic):
    """The same for a NumPy number: a tensor without dimensions."""
    return _C.from_array(np.asarray(x))


def to_ndarray(t) -> np.ndarray:
    """The graph's output, as the array that the user's code holds. One that carries a gradient is of a class of its own (see carried.py)."""
    return carried(t, False) if t.requires_grad else on_host(t).numpy()


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
    return (t._array if plain else on_host(t).numpy())[()]


def to_number(t):
    """The Python number that a result without dimensions holds."""
    return t.item()


def to_flagged_number(t, flag):
    """The number of a result without dimensions as NumPy's, or as Python's float or int, as ``flag`` says (see loops.values.Scalar)."""
    kind = flag.item()
    return to_scalar(t) if kind == 0 else t.item() if kind == 1 else int(t.item().real)


def array_of_tensor(t) -> np.ndarray:
    """For wrap_numpy; while tracing the array is the tensor's node itself."""
    return t.numpy()


def tensor_of_array(a, device=None):
    """For wrap_numpy: the way back, to the device of its arguments, or (None) the one that factories use."""
    made = tensor_of(a) if isinstance(a, np.ndarray) else _C.from_array(np.asarray(a))
    device = device or current_device()
    return made if device.type != "cuda" else made.to(device)


def is_told_before_writing(error: Exception) -> bool:
    """Whether an error comes from a graph that writes into its inputs when nothing but memory can be lacking any more."""
    return not isinstance(error, MemoryError) and is_ours(error)


def is_ours(error: Exception) -> bool:
    """Whether an error comes from the graph, and not from a signal handler, a hook or another piece of the program that ran meanwhile, or a tool
    that compares the graph with the plain frame."""
    if isinstance(error, AccuracyError) or getattr(error, "raised_by_program", False):
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
