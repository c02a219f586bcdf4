"""Complex numbers in kernels: a complex Value is a pair of real ones, ``complex(re, im)``, and never reaches the loop IR.

A complex element lies in memory as two numbers side by side, so a complex tensor is read at twice the index and one more, and written by two
stores. :class:`ComplexTyped` runs scalar bodies on pairs with NumPy's formulas (numpy/_core/src/umath/loops.c.src, npy_math_complex.c.src);
an operation that isn't in it is left to the eager kernel."""

from __future__ import annotations

import math

from ..ir.values import Typed, Value, Values, is_complex, part_of, short
from .complex_functions import FUNCTIONS

__all__ = ["ComplexTyped", "OPERATIONS"]

_MOST_PRODUCTS = 64


class ComplexTyped(Typed):
    """Handler: scalar operations on Values, complex ones among them, and Python numbers. ``dtype``: "c64" or "c128"."""

    def __init__(self, values: Values, dtype: str):
        super().__init__(values, part_of(dtype))
        self.pairs, self.part = dtype, part_of(dtype)
        self.s = Typed(values, part_of(dtype))

    def __getattr__(self, name: str):
        on_reals = getattr(self.s, name)
        on_pairs = OPERATIONS.get(name)

        def record(*args):
            if not any(isinstance(a, complex) or (isinstance(a, Value) and is_complex(a.dtype)) for a in args):
                if name != "complex":
                    return on_reals(*args)
                return self.pair(*args)
            if on_pairs is None:
                raise NotImplementedError(f"the scalar operation {name} on complex numbers")
            return on_pairs(self, *args)

        self.__dict__[name] = record
        return record

    def parts(self, a) -> tuple[Value, Value]:
        """Real and imaginary part of a number."""
        t = self.part
        if hasattr(a, "__sym__"):
            a = self.values.symbolic(a.expr)
        if isinstance(a, Value):
            a = self.values.cast(a, self.pairs)
            return a.args
        a = complex(a)
        return self.values.const(a.real, t), self.values.const(a.imag, t)

    def pair(self, re, im) -> Value:
        t = self.part
        return self.values.make("complex", (self.s._as(re, t), self.s._as(im, t)), self.pairs)


def _add(h, a, b):
    (x, y), (u, v) = h.parts(a), h.parts(b)
    return h.pair(h.s.add(x, u), h.s.add(y, v))


def _sub(h, a, b):
    (x, y), (u, v) = h.parts(a), h.parts(b)
    return h.pair(h.s.sub(x, u), h.s.sub(y, v))


def _mul(h, a, b):
    s, (x, y), (u, v) = h.s, h.parts(a), h.parts(b)
    return h.pair(s.sub(s.mul(x, u), s.mul(y, v)), s.add(s.mul(x, v), s.mul(y, u)))


def _div(h, a, b):
    """Smith's algorithm (doi:10.1145/368637.368661), as in NumPy; over zero both parts are divided by it."""
    s, (x, y), (u, v) = h.s, h.parts(a), h.parts(b)
    au, av = s.abs(u), s.abs(v)
    wide = s.ge(au, av)
    large, small = s.where(wide, u, v), s.where(wide, v, u)
    ratio = s.div(small, large)
    scale = s.div(1.0, s.add(large, s.mul(small, ratio)))
    re = s.where(wide, s.add(x, s.mul(y, ratio)), s.add(s.mul(x, ratio), y))
    im = s.where(wide, s.sub(y, s.mul(x, ratio)), s.sub(s.mul(y, ratio), x))
    zero = s.logical_and(s.eq(au, 0.0), s.eq(av, 0.0))
    return h.pair(s.where(zero, s.div(x, au), s.mul(re, scale)), s.where(zero, s.div(y, au), s.mul(im, scale)))


def _reciprocal(h, a):
    s, (u, v) = h.s, h.parts(a)
    wide = s.ge(s.abs(u), s.abs(v))
    large, small = s.where(wide, u, v), s.where(wide, v, u)
    ratio = s.div(small, large)
    bottom = s.add(large, s.mul(small, ratio))
    return h.pair(s.div(s.where(wide, 1.0, ratio), bottom), s.div(s.where(wide, s.neg(ratio), -1.0), bottom))


def _pow(h, a, b):
    """Powers by small integers as products of squares, as NumPy does them; others by the logarithm, 0 to a power whose real part is
    positive being 0 and anything to the power 0 being 1."""
    n = b.real if isinstance(b, complex) and not b.imag else b
    if isinstance(n, (int, float)) and n == int(n) and 0 < abs(n) <= _MOST_PRODUCTS:
        return _product(h, a, int(n)) if n > 0 else _reciprocal(h, _product(h, a, -int(n)))
    s, (x, y), (u, v) = h.s, h.parts(a), h.parts(b)
    re, im = h.parts(FUNCTIONS["exp"](h, _mul(h, h.pair(u, v), FUNCTIONS["log"](h, h.pair(x, y)))))
    nothing = s.logical_and(s.eq(x, 0.0), s.eq(y, 0.0))
    grows = s.gt(u, 0.0)
    re, im = (s.where(nothing, s.where(grows, 0.0, math.nan), part) for part in (re, im))
    one = s.logical_and(s.eq(u, 0.0), s.eq(v, 0.0))
    return h.pair(s.where(one, 1.0, re), s.where(one, 0.0, im))


def _product(h, a, n):
    out = None
    while n:
        if n & 1:
            out = a if out is None else _mul(h, a, out)
        n >>= 1
        a = _mul(h, a, a) if n else a
    return out


def _compare(h, a, b, unequal):
    s, (x, y), (u, v) = h.s, h.parts(a), h.parts(b)
    return s.logical_or(s.ne(x, u), s.ne(y, v)) if unequal else s.logical_and(s.eq(x, u), s.eq(y, v))


def _where(h, c, a, b):
    if not isinstance(c, Value):
        return a if c else b
    (x, y), (u, v) = h.parts(a), h.parts(b)
    return h.pair(h.s.where(c, x, u), h.s.where(c, y, v))


def _each(name):
    return lambda h, a: h.pair(*(getattr(h.s, name)(part) for part in h.parts(a)))


OPERATIONS = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "reciprocal": _reciprocal,
    "neg": _each("neg"),
    **FUNCTIONS,
    "conj": lambda h, a: h.pair(h.parts(a)[0], h.s.neg(h.parts(a)[1])),
    "eq": lambda h, a, b: _compare(h, a, b, False),
    "ne": lambda h, a, b: _compare(h, a, b, True),
    "isnan": lambda h, a: h.s.logical_or(*map(h.s.isnan, h.parts(a))),
    "where": _where,
    "pow": _pow,
    "cast": lambda h, a, dtype: h.values.cast(a, dtype if isinstance(dtype, str) else short(dtype)),
    "complex": lambda h, re, im: h.pair(re, im),
}
"""Scalar operation -> what it is on pairs."""
