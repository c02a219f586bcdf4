"""What functions and methods do in a loop: Python's and NumPy's on numbers, reductions, products, new arrays."""

from __future__ import annotations

import inspect

import numpy as np

from .. import arrays, gathers, generators, numpy_calls, numpy_functions, reductions, text
from ..arrays import OnElements
from ..emitter import constant
from ..numbers import arithmetic, complexes, conversions, integers, mathematics
from ..numpy_functions import FUNCTIONS
from ..random_numbers import draws
from ..values import (
    CHARACTER,
    ArrayView,
    Call,
    Container,
    Declined,
    Expression,
    Known,
    Method,
    Scalar,
    Stream,
    Text,
    Tuple,
)
from .builtins import Builtins, known_dtype

__all__ = ["KnownFunctions"]


class KnownFunctions(Builtins):
    """What there is code for, beside builtins; the rest is left to NumPy."""

    def call(self, fn, args, kwargs):
        """The value of a call: by code of its own, or left to NumPy."""
        if isinstance(fn, Method) and fn.name in numpy_calls.METHODS:
            fn, args = Known(numpy_calls.METHODS[fn.name]), [fn.owner, *args]
        rule = numpy_calls.rule_of(fn.value) if isinstance(fn, Known) else None
        if rule is None:
            return self.own_code(fn, args, kwargs)
        back = self.e.mark()
        try:
            return self.own_code(fn, list(args), dict(kwargs))
        except Declined:
            back()
            return numpy_calls.called(
                self.e, fn.value, args, kwargs, f"{fn.value.__name__}@{self.machine.at}", self.rerunnable
            )

    def own_code(self, fn, args, kwargs):
        e = self.e
        if isinstance(fn, Method):
            return self.method(fn, args, kwargs)
        if not isinstance(fn, Known):
            raise Declined(f"a call of a {type(fn).__name__.lower()}")
        f = fn.value
        if f is generators.given_back:
            return args[0]
        made = text.called(e, f, args) if not kwargs else None
        if made is not None:
            return made
        if text.has_text((*args, *kwargs.values())) and f not in (enumerate, zip, reversed):
            raise Declined(f"a call of {getattr(f, '__name__', f)} with text")
        method = _ufunc_method(f)
        if method is not None:
            return self.ufunc_method(*method, args, kwargs)
        if isinstance(f, np.ufunc) and ("out" in kwargs or len(args) > f.nin):
            return self.into(f, args, kwargs)
        try:
            reduction, making = _REDUCTIONS.get(f), _MAKING.get(f)
        except TypeError:
            raise Declined(f"a call of {f!r}") from None
        if reduction is not None and args:
            return self.reduction(reduction, *args, **kwargs)
        if making is not None:
            return self.new_array(making, args, kwargs)
        assembled = FUNCTIONS.get(f)
        if assembled is not None:
            try:
                inspect.signature(assembled).bind(e, "", *args, **kwargs)
            except TypeError:
                raise Declined(f"a call of {f.__name__} with these arguments") from None
            return assembled(e, f"{f.__name__}@{self.machine.at}", *args, **kwargs)
        if f in (range, enumerate, zip, np.ndindex):  # for GET_ITER
            return Call(f, tuple(args), kwargs)
        if kwargs:
            raise Declined(f"a call of {getattr(f, '__name__', f)} with keyword arguments")
        if f is reversed and len(args) == 1:
            return self.backwards(*args)
        made = self.made_of_numbers(f, args)
        if made is not None:
            return made
        if f in (abs, np.absolute) and len(args) == 1:
            (x,) = args
            whole = isinstance(x, (ArrayView, Expression)) and x.dtype.kind == "c"
            rule = complexes.absolute_of_element if whole else arithmetic.absolute if f is abs else mathematics.MATH[f]
            return arrays.elementwise(e, OnElements(e, rule), x)
        if f in (np.dot, np.matmul, np.vdot) and len(args) == 2:
            if f is np.vdot and not all(getattr(x, "ndim", 0) == 1 and x.dtype.kind != "c" for x in args):
                raise Declined("np.vdot of matrices or complex numbers")
            return reductions.dot(e, *args, f"product@{self.machine.at}", self.stack)
        if f is np.where and len(args) == 3:
            return arrays.elementwise(e, OnElements(e, arrays.where), *args)
        known = mathematics.MATH.get(f)
        if known is None:
            raise Declined(f"a call of {getattr(f, '__name__', f)}")
        return arrays.elementwise(e, OnElements(e, known), *args)

    def method(self, fn: Method, args, kwargs):
        """A call of a method of a container, a generator or an array."""
        e = self.e
        if isinstance(fn.owner, Text) or getattr(fn.owner, "dtype", None) == CHARACTER:
            return text.method(e, fn.owner, fn.name, args)
        if isinstance(fn.owner, Container):
            if kwargs:
                raise Declined(f"{fn.name}() with keyword arguments")
            return self.containers.method(fn.owner, fn.name, list(args))
        if isinstance(fn.owner, Stream):
            self.operands.drawn[fn.owner.n] = self.operands.drawn.get(fn.owner.n, False) or fn.name in draws.NORMALS
            if fn.name == "shuffle" and args and isinstance(args[0], ArrayView):
                self.variables.about_to_write(args[0])
            return draws.draw(e, fn.owner, fn.name, args, kwargs, f"{fn.name}@{self.machine.at}")
        if fn.name in ("conj", "conjugate") and not args and not kwargs:
            return arrays.elementwise(e, OnElements(e, complexes.conjugate), fn.owner)
        if fn.name in reductions.REDUCTIONS:
            return self.reduction(fn.name, fn.owner, *args, **kwargs)
        if kwargs:
            raise Declined(f"{fn.name}() with keyword arguments")
        if fn.name in _OF_NUMBERS and isinstance(fn.owner, Scalar) and not args:
            return _OF_NUMBERS[fn.name](e, fn.owner)
        if fn.name == "nonzero" and not args:
            return gathers.nonzero(e, f"nonzero@{self.machine.at}", fn.owner)
        if fn.name == "copy":
            return arrays.as_dtype(e, fn.owner, fn.owner.dtype)
        if fn.name == "astype":
            return arrays.as_dtype(e, fn.owner, known_dtype(args[0]))
        return reductions.dot(e, fn.owner, args[0], f"product@{self.machine.at}", self.stack)

    def into(self, f: np.ufunc, args: list, kwargs: dict):
        """A ufunc that is given the array to write: ``f(x, y, out)`` or ``f(x, y, out=out)``."""
        given = [*args[f.nin :], *([kwargs["out"]] if "out" in kwargs else ())]
        out = given[0].items[0] if isinstance(given[0], Tuple) and len(given[0].items) == 1 else given[0]
        if len(given) > 1 or kwargs.keys() - {"out"}:
            raise Declined(f"np.{f.__name__} with these arguments")
        value = self.call(Known(f), args[: f.nin], {})
        if isinstance(out, Known) and out.value is None:
            return value
        if not isinstance(out, ArrayView) or not arrays.may_hold(out.dtype, value.dtype):
            raise Declined(f"np.{f.__name__} with such an out")
        self.variables.about_to_write(out)
        arrays.assign(self.e, out, value)
        return out

    def ufunc_method(self, f: np.ufunc, name: str, args: list, kwargs: dict):
        """``np.add.outer`` and its like."""
        if name == "outer" and len(args) == 2 and not kwargs:
            return numpy_functions.outer_of(self.e, lambda *pair: self.call(Known(f), pair, {}), *args)
        if name == "reduce" and f in _REDUCED and args:
            x, *rest = args
            return self.reduction(_REDUCED[f], x, *(rest or [constant(0)] if "axis" not in kwargs else ()), **kwargs)
        if name == "accumulate" and f is np.add and len(args) == 1 and not kwargs:
            return numpy_functions.cumsum(self.e, f"accumulate@{self.machine.at}", *args)
        raise Declined(f"np.{f.__name__}.{name} with these arguments")

    def reduction(self, name: str, x, *args, **kwargs):
        given = {**dict(zip(("axis",), args)), **kwargs}
        axis, keepdims = map(_plain, (given.pop("axis", Known(None)), given.pop("keepdims", constant(False))))
        axes = (axis,) if type(axis) is int else axis
        known = axes is None or (isinstance(axes, tuple) and all(type(k) is int for k in axes))
        if given or len(args) > 1 or not known or type(keepdims) is not bool:
            raise Declined(f"{name} with these arguments")
        return reductions.reduce(self.e, name, x, axes, keepdims, f"{name}@{self.machine.at}")

    def new_array(self, value: int, args, kwargs):
        """zeros, ones and empty, and those like another array (value None: the first argument's shape and a fill value)."""
        e = self.e
        dtype = (
            known_dtype(kwargs.pop("dtype"))
            if "dtype" in kwargs
            else known_dtype(args.pop(1))
            if len(args) > 1
            else None
        )
        if kwargs or len(args) != 1:
            raise Declined("a new array with these arguments")
        (shape,) = args
        if isinstance(shape, ArrayView):
            return arrays.filled(constant((dtype or shape.dtype).type(value)), shape.sizes)
        sizes = arrays.given_sizes(e, shape)
        return arrays.filled(constant((dtype or np.dtype(np.float64)).type(value)), sizes)


_REDUCTIONS = {
    np.sum: "sum", np.prod: "prod", np.max: "max", np.min: "min", np.mean: "mean", np.argmax: "argmax", np.argmin: "argmin",
    np.any: "any", np.all: "all",
}  # fmt: skip
_REDUCED = {
    np.add: "sum",
    np.multiply: "prod",
    np.maximum: "max",
    np.minimum: "min",
    np.logical_and: "all",
    np.logical_or: "any",
}
_MAKING = {np.zeros: 0, np.ones: 1, np.empty: 0, np.zeros_like: 0, np.ones_like: 1, np.empty_like: 0}


_OF_NUMBERS = {
    "item": conversions.item,
    "is_integer": mathematics.is_integer,
    "bit_length": integers.bit_length,
    "bit_count": integers.bit_count,
}


def _ufunc_method(f) -> tuple[np.ufunc, str] | None:
    """The ufunc and the name of a method of one."""
    owner = getattr(f, "__self__", None)
    return (owner, f.__name__) if isinstance(owner, np.ufunc) else None


def _plain(v):
    """The Python object that a value is known to be."""
    if isinstance(v, Tuple):
        return tuple(map(_plain, v.items))
    return v.value if isinstance(v, Known) else getattr(v, "const", v)
