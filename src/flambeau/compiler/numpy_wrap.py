"""``wrap_numpy``: a NumPy function as a function on tensors. Captured, the arrays are the tensors themselves, gradients included."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from flambeau import _C
from flambeau.dynamo.numpy.numpy_bridge import array_of_tensor, tensor_of_array

__all__ = ["wrap_numpy"]

ARRAYS = (np.ndarray, np.generic)


def wrap_numpy(fn: Callable) -> Callable:
    """``fn`` takes and returns ndarrays, also in lists, tuples and dicts; the result takes and returns tensors. Called plainly, tensors
    that require grad are refused, as by ``Tensor.numpy``; under compile() gradients flow."""

    @functools.wraps(fn)
    def wrapped(*args, **kwargs):
        arrays, named = _map(array_of_tensor, _C.TensorBase, args), _map(array_of_tensor, _C.TensorBase, kwargs)
        made = fn(*arrays, **named)
        device = _device_of((args, kwargs))
        return _map(lambda a: tensor_of_array(a, device), ARRAYS, made)

    # Code of its own: what compile() keeps for a code object is limited in number.
    wrapped.__code__ = wrapped.__code__.replace(co_name=getattr(fn, "__name__", "wrapped"))
    return wrapped


def _device_of(x):
    """The device of the first tensor that doesn't lie on the CPU, else None: code behind a graph break holds copies on the host."""
    if isinstance(x, _C.TensorBase):
        return None if x.device.type == "cpu" else x.device
    parts = x.values() if isinstance(x, dict) else x if isinstance(x, (tuple, list)) else ()
    for y in parts:
        found = _device_of(y)
        if found is not None:
            return found
    return None


def _map(fn, cls, x):
    if isinstance(x, cls):
        return fn(x)
    if isinstance(x, dict):
        return {k: _map(fn, cls, v) for k, v in x.items()}
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*[_map(fn, cls, v) for v in x])
    if isinstance(x, tuple):
        return tuple([_map(fn, cls, v) for v in x])
    if isinstance(x, list):
        return [_map(fn, cls, v) for v in x]
    return x
