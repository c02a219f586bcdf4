"""What writes into an array by index: ``np.add.at``, ``np.put``, ``np.place``, ``np.put_along_axis`` and the method ``partition``.

``numpy::written(Tensor[] arrays, str call) -> Tensor`` gives the first array as NumPy's call leaves it, and the graph writes that back.
``np.add.at`` by one array of indices, with values of the array's dtype, is ``index_put_``, which goes into the array itself.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Sequence

import numpy as np

from .. import _C
from ..base.device import CPU
from ..base.dtypes import float32, float64, int32, int64
from ..base.shapes import contiguous_strides
from ..core.declare import extern
from ..core.definition import TensorMeta
from ..core.operator import namespace
from ..core.tensor import Tensor
from ..dynamo.numpy.numpy_bridge import ufunc_methods
from .graph_calls import prepared_call, run_telling
from .literals import arguments_of, literal, value
from .promotion import is_tensor
from .table import METHODS, UFUNCS, implements

__all__ = ["written"]

aten = namespace("aten")
_FUNCTIONS = {
    "put": np.ndarray.put,
    "place": np.place,
    "put_along_axis": np.put_along_axis,
    "partition": np.ndarray.partition,
}


def _meta(arrays, call):
    a = arrays[0]
    return TensorMeta(tuple(a.shape), contiguous_strides(a.shape), a.dtype, CPU)


@extern("numpy::written(Tensor[] arrays, str call) -> Tensor", meta=_meta, variants="", tags=("has_side_effects",))
def written(arrays: Sequence[np.ndarray], call: str) -> np.ndarray:
    """Its errors are effects: it is called though its result is not used."""
    f, args, kwargs = _parsed(call)
    out = np.array(arrays[0], order="C")
    f(out, *(value(a, arrays) for a in args), **{k: value(v, arrays) for k, v in kwargs.items()})
    return out


@functools.lru_cache(1024)
def _parsed(call: str):
    """(function, the positional arguments behind the array, the keyword arguments) of a call's text."""
    name, *given = ast.literal_eval(call)
    args, kwargs = arguments_of(*given)
    return _FUNCTIONS.get(name) or getattr(np, name).at, args, kwargs


def _prepared(template: list) -> Callable | None:
    """How a graph calls it, see ``EagerCall``."""
    slots, call = template

    def plainly(*given) -> list[Tensor]:
        arrays = [getattr(given[s.k], "_array", given[s.k]) for s in slots]
        return [_C.from_array(run_telling(lambda text, arrays: written(arrays, text), call, arrays))]

    f, args, kwargs = _parsed(call)
    return prepared_call(slots, f, args, kwargs, None, plainly, writes=True)


written.override("prepared", _prepared)
written.override("quiet", True)


def _are_added(a: Tensor, *args) -> bool:
    """Whether ``np.add.at(a, *args)`` is index_put_: one array of int64 in front, values of the array's dtype that need no broadcasting."""
    if len(args) != 2 or a.dtype not in (float64, float32, int64, int32) or not is_tensor(args[0]):
        return False
    index, v = args
    if index.dtype is not int64 or not index.ndim:
        return False
    if type(v) in (int, float):
        # NumPy adds a Python number to float32 in float64.
        return a.dtype is float64 or (type(v) is int and a.dtype is not float32 and -(2**31) <= v < 2**31)
    return (
        is_tensor(v)
        and not v.requires_grad
        and v.dtype is a.dtype
        and tuple(v.shape) in ((), (*index.shape, *a.shape[1:]))
    )


def _added(a: Tensor, index: Tensor, v) -> bool:
    """Add in place; False for an index out of bounds, with nothing added: NumPy's own call words the error."""
    v = v if is_tensor(v) else aten.scalar_tensor.default(v, dtype=a.dtype)
    try:
        a.index_put_((index,), v, True)
    except IndexError:
        return False
    return True


def _writing(name: str):
    def write(a: Tensor, *args, **kwargs) -> None:
        if not is_tensor(a) or a.requires_grad or not a.ndim:
            raise TypeError(f"np.{name} into something else than an array without a gradient")
        if name == "add" and not kwargs and _are_added(a, *args) and _added(a, *args):
            return
        arrays = [a]
        given = [literal(x, arrays) for x in args]
        named = {k: literal(v, arrays) for k, v in kwargs.items()}
        if any(isinstance(x, np.ndarray) for x in arrays) or any(x.requires_grad for x in arrays):
            raise TypeError(
                f"np.{name} with an array that isn't an argument of the captured function, or has a gradient"
            )
        a.copy_(written(arrays, repr((name, given, named))))

    write.__name__ = write.__qualname__ = f"numpy_{name}"
    return write


for _name in ("put", "place", "put_along_axis"):
    implements(getattr(np, _name))(_writing(_name))
for _name in ("put", "partition"):
    METHODS[_name] = _writing(_name)
for _name, _f in UFUNCS.items():
    if _f.signature is None and _f.nout == 1:
        ufunc_methods[_name, "at"] = _writing(_name)
