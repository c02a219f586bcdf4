"""Kernels of the CPU's (csrc/runtime/kernels.def) as loops, for a device of threads: what is written there for one core in order is a reduction or a
chain of steps here.

A function takes the lowering, the regions of the operands, what is said of the results, and the kernel's numbers by name. NotImplementedError: the
operator goes through the host.
"""

from __future__ import annotations

import math

from ...base.expr import floordiv, linear, mod, variable
from ...base.kernels import Conv
from ..assembly.dtypes import compute_type
from ..codegen.accumulators import identity
from ..ir.nodes import Pointwise, dense_strides
from ..ir.sizes import size
from ..ir.values import short
from . import draws
from .attention import attention, attention_backward
from .elements import Elements
from .ordering import order, search

__all__ = ["launched"]


def launched(lowering, kernel, operands, outs, numbers) -> list:
    """What a launch of the kernel gives."""
    make = LOOPS.get(kernel.name)
    if make is None:
        raise NotImplementedError(f"{kernel.name} is a kernel of the CPU's")
    for name in ("dim", "groups"):
        if type(size(numbers.get(name, 0))) is not int:  # loops are written for it
            raise NotImplementedError(f"{kernel.name} along what only a call says")
    return make(lowering, operands, outs, **numbers)


# ---- scans -------------------------------------------------------------------------------------------------------------


def _steps(lowering, shape, dim: int, t: str, first, step):
    """A chain of steps along a dimension: the lazy function of the state after each. ``first``: the state before, ``step(state, coords)``."""
    longer = tuple(n + 1 if d == dim else n for d, n in enumerate(shape))
    strides = dense_strides(longer)
    buffer = lowering.new_buffer(longer, strides, t)
    loops = lowering.variables(shape)
    coords = [variable(v) for v in loops]
    rest = [c for d, c in enumerate(coords) if d != dim]
    begin = linear(rest, [s for d, s in enumerate(strides) if d != dim])
    outer = tuple(v for d, v in enumerate(loops) if d != dim)
    lowering.add(Pointwise(buffer.name, outer, lowering.values.const(first, t), begin, "assign"))
    here = linear(coords, strides)
    state = lowering.values.load(buffer.name, here, t)
    value = lowering.values.cast(step(state, coords), t)
    order = (*outer, loops[dim])
    lowering.add(Pointwise(buffer.name, order, value, here + strides[dim], "assign", ordered=(loops[dim],)))
    return lambda c: lowering.values.load(buffer.name, linear(c, strides) + strides[dim], t)


def scan(lowering, operands, outs, dim, product, element):
    (source,), (out,) = operands, outs
    e, t = Elements(lowering), short(out.dtype)
    op, first = ("mul", 1) if product else ("add", 0)
    if 0 in source.shape:
        return [lowering.full(out.shape, out.dtype, 0, out.device)]
    after = _steps(lowering, source.shape, dim, t, first, lambda s, c: e.make(op, s, e.at(source, c)))
    return [e.result(out, after)]


def running(lowering, operands, outs, dim, least, element):
    (source,) = operands
    e, t = Elements(lowering), lowering.buffers[operands[0].buffer].dtype
    if 0 in source.shape:
        return [lowering.full(o.shape, o.dtype, 0, o.device) for o in outs]
    wide = "i32" if t == "bool" else compute_type(t)

    def load(c):
        return e.values.cast(e.at(source, c), wide)

    def wins(x, s):
        found, nan = e.compare("le" if least else "ge", x, s), e.is_nan(x)
        return found if nan is None else e.either(found, nan)

    first = identity("minimum" if least else "maximum", wide)
    best = _steps(lowering, source.shape, dim, wide, first, lambda s, c: e.choose(wins(load(c), s), load(c), s))

    def place(p, c):
        # NOTE: what is best after this element is the element itself just where it won.
        same, x = best(c), load(c)
        own = e.compare("eq", x, same)
        nan = e.is_nan(x)
        own = own if nan is None else e.either(own, nan)
        return e.choose(own, e.values.index(c[dim]), p)

    places = _steps(lowering, source.shape, dim, "i64", 0, place)
    return [e.result(outs[0], best), e.result(outs[1], places)]


def logcumsumexp(lowering, operands, outs, dim, f64):
    (source,), (out,) = operands, outs
    e, t = Elements(lowering), short(out.dtype)
    if 0 in source.shape:
        return [lowering.full(out.shape, out.dtype, 0, out.device)]
    after = _steps(lowering, source.shape, dim, t, -math.inf, lambda s, c: e.make("logaddexp", s, e.at(source, c)))
    return [e.result(out, after)]


def categories(lowering, operands, outs, f64, negative, not_finite, no_mass):
    """Where the running sum of the probabilities of a row reaches a draw of its sum."""
    (p, draws_), (out,) = operands, outs
    e = Elements(lowering)
    rows, n = p.shape

    def add(s, c):
        x = e.values.cast(e.at(p, c), "f64")
        x = e.refused(e.compare("lt", x, 0.0), negative, x)
        return e.make("add", s, e.refused(e.flip(e.compare("lt", x, math.inf)), not_finite, x))

    after = _steps(lowering, (rows, n), 1, "f64", 0.0, add)

    def before(c):
        row, k, i = c
        total = after((row, n - 1))
        total = e.refused(e.flip(e.compare("gt", total, 0.0)), no_mass, total)
        reached = e.make("mul", e.at(draws_, [row, k]), total)
        return e.values.cast(e.compare("lt", after((row, i)), reached), "i64")

    count = lowering.reduce("add", 0, (*out.shape, n), [0, 1], [2], before)
    return [e.result(out, lambda c: e.make("minimum", count(c), n - 1))]


# ---- convolutions ------------------------------------------------------------------------------------------------------


def convolution(lowering, operands, outs, direction, f64, groups, stride, padding, dilation, way):
    (a, b, bias), (out,) = operands, outs
    n = len(out.shape) - 2
    how = [tuple(map(size, x[3 - n :])) for x in (stride, padding, dilation)]  # a gradient's may depend on sizes
    if 0 in out.shape:
        return [lowering.full(out.shape, out.dtype, 0, out.device)]
    if 0 in a.shape or 0 in b.shape:
        raise NotImplementedError("a convolution of nothing")
    make = {Conv.FORWARD: _forward, Conv.INPUT: _input, Conv.WEIGHT: _weight}[Conv(direction)]
    e = Elements(lowering)
    inner, element = make(e, a, b, out.shape, how, groups)
    shape = (*out.shape, *inner)
    kept = list(range(n + 2))
    total = lowering.reduce("add", 0, shape, kept, list(range(n + 2, len(shape))), element)

    def at(c):
        return total(c) if bias is None else e.make("add", total(c), e.at(bias, [c[1]]))

    return [e.result(out, at)]


def _forward(e: Elements, x, w, shape, how, groups):
    n, per = len(shape) - 2, w.shape[1]

    def element(c):
        image, o, p, i, k = c[0], c[1], c[2 : 2 + n], c[2 + n], c[3 + n :]
        first = floordiv(o, floordiv(w.shape[0], groups)) * per
        there = [q * s + r * d - m for q, r, s, m, d in zip(p, k, *how)]
        return e.make("mul", e.within(x, [image, first + i, *there]), e.at(w, [o, i, *k]))

    return (per, *w.shape[2:]), element


def _input(e: Elements, cotangent, w, shape, how, groups):
    n, many = len(shape) - 2, floordiv(w.shape[0], groups)
    per = w.shape[1]

    def element(c):
        image, i, q, j, k = c[0], c[1], c[2 : 2 + n], c[2 + n], c[3 + n :]
        o = floordiv(i, per) * many + j
        steps = [(x + m - r * d, s) for x, r, s, m, d in zip(q, k, *how)]
        v = e.within(cotangent, [image, o, *(floordiv(x, s) for x, s in steps)])
        for x, s in steps:
            if s != 1:
                v = e.choose(e.compare("eq", e.values.index(mod(x, s)), 0), v, 0)
        return e.make("mul", v, e.at(w, [o, mod(i, per), *k]))

    return (many, *w.shape[2:]), element


def _weight(e: Elements, cotangent, x, shape, how, groups):
    n, per = len(shape) - 2, shape[1]
    many = floordiv(shape[0], groups)

    def element(c):
        o, i, k, image, p = c[0], c[1], c[2 : 2 + n], c[2 + n], c[3 + n :]
        first = floordiv(o, many) * per
        there = [q * s + r * d - m for q, r, s, m, d in zip(p, k, *how)]
        return e.make("mul", e.at(cotangent, [image, o, *p]), e.within(x, [image, first + i, *there]))

    return (cotangent.shape[0], *cotangent.shape[2:]), element


_ALL = (scan, running, categories, logcumsumexp, order, search, convolution, attention, attention_backward)
_DRAWS = (draws.draw, draws.draw_bits, draws.draw_integers, draws.draw_permutation)
LOOPS = {f.__name__: f for f in (*_ALL, *_DRAWS)}
