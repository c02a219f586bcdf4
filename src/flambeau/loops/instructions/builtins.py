"""Builtin functions on numbers and containers, and what gives sizes and dtypes."""

from __future__ import annotations

import collections

import numpy as np

from .. import arrays, byte_strings, gathers, places, text
from ..containers import Containers
from ..emitter import constant
from ..machine import InterpreterPart, Machine
from ..numbers import arithmetic, comparisons, complex_functions, conversions, mathematics, wrapping
from ..operands import Operands
from ..values import ArrayView, Call, Container, Declined, Known, Scalar, Slice, Tuple, memory_type
from ..variables import Variables

__all__ = ["Builtins", "known_dtype"]


class Builtins(InterpreterPart):
    """``rerunnable``, ``tells_wrapping``: see Inputs."""

    def __init__(
        self,
        machine: Machine,
        operands: Operands,
        variables: Variables,
        containers: Containers,
        rerunnable: bool,
        tells_wrapping: bool,
    ):
        super().__init__(machine)
        self.operands, self.variables, self.containers = operands, variables, containers
        self.rerunnable, self.tells_wrapping = rerunnable, tells_wrapping

    def made_of_numbers(self, f, args):
        """What functions of numbers, and of sizes and dtypes, give; None for others."""
        e = self.e
        if f in (max, min) and len(args) > 1 and all(isinstance(a, Scalar) for a in args):
            return comparisons.choose(e, f is max, args)
        if len(args) == 1 and isinstance(args[0], Tuple) and all(isinstance(a, Scalar) for a in args[0].items):
            made = places.of_items(e, f, list(args[0].items))
            if made is not None:
                return made
        if f is np.where and len(args) == 1:
            return gathers.nonzero(e, f"where@{self.machine.at}", *args)
        if f is round and len(args) == 2:
            return mathematics.rounded_to(e, *args)
        if f is set and not args:
            return self.containers.create(self.machine.at, "set")
        if f is collections.deque and (not args or (len(args) == 1 and isinstance(args[0], Tuple))):
            made = self.containers.create(self.machine.at, "deque")
            for item in args[0].items if args else ():
                self.containers.append(made, item)
            return made
        if f is len and isinstance(args[0], Container):
            return self.containers.count(args[0])
        if f is len and byte_strings.is_bytes(args[0]):
            return constant(len(args[0].value))
        if f is len and isinstance(args[0], ArrayView):
            return arrays.size(e, args[0].sizes[0])
        if isinstance(f, type) and issubclass(f, np.generic) and len(args) == 1 and isinstance(args[0], Scalar):
            dtype = np.dtype(f)
            memory_type(dtype)
            return conversions.as_type(e, args[0], dtype)
        if f in (np.iinfo, np.finfo) and len(args) == 1:
            return Known(f(known_dtype(args[0])))
        if f in _ON_NUMBERS and len(args) == 1 and isinstance(args[0], Scalar):
            out = _ON_NUMBERS[f](e, *args)
            if f is abs and args[0].kind == "i" and self.tells_wrapping:
                wrapping.note_negative(e, args[0], out)
            return out
        if f is round and len(args) == 1 and isinstance(args[0], Scalar):
            return conversions.to_int(e, mathematics.MATH[np.rint](e, args[0]) if args[0].kind == "f" else args[0])
        if f is complex and args and all(isinstance(a, Scalar) for a in args):
            return complex_functions.python_complex(e, *args)
        return None

    def backwards(self, x):
        """reversed() of a list, a row or a range, for GET_ITER."""
        if isinstance(x, Container) and x.kind == "list":
            return Call(reversed, (x,))
        words = text.of(self.e, x)
        if words is not None:
            return text.backwards(self.e, words)
        if isinstance(x, ArrayView) and x.ndim:
            down = Slice(Known(None), Known(None), constant(-1))
            return arrays.subscript(self.e, x, down)
        if isinstance(x, Call) and x.function is range and len(x.arguments) < 3:
            ends = [constant(0), *x.arguments][-2:]
            first, last = (arithmetic.binary(self.e, "-", n, constant(1)) for n in ends)
            return Call(range, (last, first, constant(-1)))
        raise Declined(f"reversed() of a {type(x).__name__.lower()}")


_ON_NUMBERS = {
    int: conversions.to_int,
    float: conversions.to_float,
    bool: lambda e, x: Scalar(np.dtype(bool), True, conversions.to_bool(e, x)),
    abs: arithmetic.absolute,
}


def known_dtype(x) -> np.dtype:
    if not isinstance(x, Known):
        raise Declined("a dtype that isn't known")
    try:
        dtype = np.dtype(x.value)
    except TypeError:
        raise Declined(f"the dtype {x.value!r}") from None
    memory_type(dtype)
    return dtype
