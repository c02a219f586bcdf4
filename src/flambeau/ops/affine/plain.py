"""Operators of the namespace ``quantized`` whose arguments and results are plain tensors: graphs hold them as they are."""

from __future__ import annotations

import functools

import numpy as np

from ... import _C
from ...base.shapes import contiguous_strides
from ...core import keys as K
from ...core.declare import extern
from ...core.definition import TensorMeta
from ...core.dispatch import excluding
from ...core.tensor import CPU

__all__ = ["below", "fresh", "operator", "plain_operator"]


def below():
    """While entered, operators run as they do in a kernel."""
    return excluding(K.PYTHON | K.FUNCTIONALIZE | K.AUTOGRAD | K.TRANSFORM)


def operator(schema: str, meta):
    """Declare an operator by its kernel on ndarrays and its shape rule."""
    return extern(schema, meta=meta, variants="", ns="quantized")


def plain_operator(schema: str, meta):
    """Declare an operator by its kernel on tensors and its shape rule."""

    def wrap(fn):
        @functools.wraps(fn)
        def kernel(*args):
            with below():
                return fn(*(_C.from_array(a) if isinstance(a, np.ndarray) else a for a in args))._array

        return operator(schema, meta)(kernel)

    return wrap


def fresh(shape, dtype) -> TensorMeta:
    """A contiguous result on the CPU."""
    shape = tuple(shape)
    return TensorMeta(shape, contiguous_strides(shape), dtype, CPU)
