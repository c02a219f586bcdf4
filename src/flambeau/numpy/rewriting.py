"""What writes into an array by index: ``np.add.at``, ``np.put``, ``np.place``, ``np.put_along_axis`` and the method ``partition``.

``numpy::written(Tensor[] arrays, str call) -> Tensor`` gives the first array as NumPy's call leaves it, and the graph writes that back.
Most calls are operators that write into the array itself (:mod:`index_writing`).
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Sequence

import numpy as np

from .. import _C
from ..base.device import CPU
from ..base.shapes import contiguous_strides
from ..core.declare import extern
from ..core.definition import TensorMeta
from ..core.operator import namespace
from ..core.tensor import Tensor
from ..dynamo.numpy.numpy_bridge import ufunc_methods
from .graph_calls import prepared_call, run_telling
from .index_writing import WRITTEN_IN_PLACE, updated_at
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


def _is_written_in_place(name: str, a: Tensor, args: tuple, kwargs: dict) -> bool:
    if name in UFUNCS:
        return bool(args) and not kwargs and updated_at(name, a, *args)
    write = WRITTEN_IN_PLACE.get(name)
    return write is not None and len(args) >= 2 and kwargs.keys() <= {"mode", "axis"} and write(a, *args, **kwargs)


def _writing(name: str):
    def write(a: Tensor, *args, **kwargs) -> None:
        if not is_tensor(a) or a.requires_grad or not a.ndim:
            raise TypeError(f"np.{name} into something else than an array without a gradient")
        if _is_written_in_place(name, a, args, kwargs):
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
