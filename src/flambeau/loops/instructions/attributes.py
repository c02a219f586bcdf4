"""Attributes of arrays, numbers, modules and objects that are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...base.records import replace
from .. import arrays, numpy_calls, reductions, text
from ..emitter import constant
from ..machine import InterpreterPart, Machine
from ..operands import Operands
from ..values import ArrayView, Container, Declined, Expression, Known, Method, Scalar, Stream, Tuple

__all__ = ["Attributes"]


class Attributes(InterpreterPart):
    """``known_attribute``: of what is known, see Inputs."""

    def __init__(self, machine: Machine, operands: Operands, known_attribute: Callable[[Known, str], Any]):
        super().__init__(machine)
        self.operands, self._known_attribute = operands, known_attribute

    def LOAD_ATTR(self, inst):
        self.stack.append(self.attribute(self.machine.pop(), inst.argval))

    def LOAD_METHOD(self, inst):
        self.machine.push_callable(self.attribute(self.machine.pop(), inst.argval))

    def attribute(self, owner, name: str):
        asked = text.method_of(owner, name)
        if asked is not None:
            return asked
        if isinstance(owner, Known) and isinstance(owner.value, np.iinfo | np.finfo):
            n = getattr(owner.value, name)
            return constant(n) if type(n) is int or isinstance(n, np.floating) else Known(n)
        if isinstance(owner, Known):
            if owner.origin is None:
                raise Declined(f"{name} of {owner.value!r}")
            return self.operands.given(self._known_attribute(owner, name))
        if isinstance(owner, Stream | Container):
            return Method(owner, name)
        if isinstance(owner, ArrayView):
            if name == "shape":
                return Tuple(tuple(arrays.size(self.e, n) for n in owner.sizes))
            if name == "ndim":
                return constant(owner.ndim)
            if name == "size":
                return arrays.size(self.e, arrays.count(self.e, owner.sizes))
            if name == "T":
                return replace(owner, sizes=owner.sizes[::-1], strides=owner.strides[::-1], whole=None, rows=False)
            if name == "dtype":
                return Known(owner.dtype)
        if isinstance(owner, Scalar) and owner.weak is False and name == "dtype":
            return Known(owner.dtype)
        if name in ("real", "imag") and isinstance(owner, (Scalar, ArrayView, Expression)):
            return arrays.part(self.e, owner, name)
        if isinstance(owner, Scalar) and name in ("item", "is_integer", "bit_length", "bit_count"):
            return Method(owner, name)
        if name in ("conj", "conjugate") and isinstance(owner, (Scalar, ArrayView, Expression)):
            return Method(owner, name)
        if isinstance(owner, (ArrayView, Expression)) and (
            name in reductions.REDUCTIONS or name in numpy_calls.METHODS or name in ("copy", "astype", "dot", "nonzero")
        ):
            return Method(owner, name)
        raise Declined(f"the attribute {name} of a {type(owner).__name__.lower()}")
